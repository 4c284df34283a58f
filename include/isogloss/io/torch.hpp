/// @file io/torch.hpp  Weights of PyTorch layers, from a state dict in a safetensors file.
#pragma once

#include <algorithm>
#include <isogloss/error.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/utf8.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// The PyTorch layers that have a counterpart here.
enum class Torch {
    embedding,  ///< nn.Embedding; `ours` is the table: E = weight
    linear,     ///< nn.Linear as a Linear: W = weightᵀ, b = bias
    head,       ///< nn.Linear(n, V) as a Softmax or TiedSoftmax: W or the table = weight, b = bias
    rnn,   ///< a layer of nn.RNN, tanh, as an Rnn: W = weight_ihᵀ, U = weight_hhᵀ, b = bias_ih + bias_hh
    lstm,  ///< a layer of nn.LSTM as an Lstm: as above; the gate order is i, f, g, o in both
    gru  ///< a layer of nn.GRU as a Gru with reset_after: of the gates r, z, n there, z and r make W, U and b, and n makes
         ///< Wq, Uq, bq = bias_ih and cq = bias_hh
};

/// A layer, with its name in PyTorch and here.
struct TorchLayer {
    Torch type;
    std::string
        theirs;  ///< its name in the state dict: "encoder" of "encoder.weight"; empty: names without a prefix
    std::string ours;        ///< the name of the node; for an embedding, of the table
    Index layer = 0;         ///< ≥ 0, for cells: the number after `_l` in "rnn.weight_ih_l0"
    bool reverse = false;    ///< for cells: the backward direction, "rnn.weight_ih_l0_reverse"
    std::string table = {};  ///< for a tied head: the name of the table it shares
};

namespace detail {

/// A parameter here, and the PyTorch tensors whose sum it is.
struct TorchPart {
    std::string parameter;
    std::vector<std::string> tensors;
    bool transposed, bias;
    std::vector<Index> gates = {
        0};  ///< of three in each tensor those wanted, in our order; {0}: all as they are
};

inline std::vector<TorchPart> parts_of(const TorchLayer& l) {
    const std::string dot = l.theirs.empty() ? "" : l.theirs + ".";
    if (l.type == Torch::embedding) return {{l.ours, {dot + "weight"}, false, false}};
    if (l.type == Torch::linear || l.type == Torch::head)
        return {{l.table.empty() ? l.ours + ".W" : l.table, {dot + "weight"}, l.type == Torch::linear, false},
                {l.ours + ".b", {dot + "bias"}, false, true}};
    require("read_torch", "layer", l.layer, 0);
    const std::string end = message("_l", l.layer, l.reverse ? "_reverse" : "");
    if (l.type == Torch::gru)
        return {{l.ours + ".W", {dot + "weight_ih" + end}, true, false, {1, 0}},
                {l.ours + ".U", {dot + "weight_hh" + end}, true, false, {1, 0}},
                {l.ours + ".b", {dot + "bias_ih" + end, dot + "bias_hh" + end}, false, true, {1, 0}},
                {l.ours + ".Wq", {dot + "weight_ih" + end}, true, false, {2}},
                {l.ours + ".Uq", {dot + "weight_hh" + end}, true, false, {2}},
                {l.ours + ".bq", {dot + "bias_ih" + end}, false, true, {2}},
                {l.ours + ".cq", {dot + "bias_hh" + end}, false, true, {2}}};
    return {{l.ours + ".W", {dot + "weight_ih" + end}, true, false},
            {l.ours + ".U", {dot + "weight_hh" + end}, true, false},
            {l.ours + ".b", {dot + "bias_ih" + end, dot + "bias_hh" + end}, false, true}};
}

/// The values of a parameter: the sum of the tensors, or 0 for a bias that the file does not have.
template <class T>
std::vector<T> torch_values(const Safetensors& file, const Parameter<T>& p, const TorchPart& part) {
    std::vector<T> sum(static_cast<std::size_t>(p.size()), T(0));
    const auto found = [&](const std::string& name) { return file.find(name) != nullptr; };
    if (part.bias && std::ranges::none_of(part.tensors, found)) return sum;
    // A column of ours is an entry of their first dimension, except where nothing is transposed.
    const Index n = p.cols / std::ssize(part.gates), all = part.gates == std::vector<Index>{0} ? n : 3 * n;
    const std::vector<Index> shape = part.bias         ? std::vector<Index>{all}
                                     : part.transposed ? std::vector<Index>{all, p.rows}
                                                       : std::vector<Index>{p.rows, p.cols};
    const auto column = [&](Index j) { return part.gates[static_cast<std::size_t>(j / n)] * n + j % n; };
    for (const std::string& name : part.tensors) {
        if (file.at(name).shape != shape)
            throw FileError(file.name(), ": ", in_quotes(name), " is ", dimensions_text(file.at(name).shape),
                            ", expected ", dimensions_text(shape), " for '", p.name, "'");
        const auto theirs = numbers<T>(file, name);
        for (Index i = 0; i < p.rows; ++i)
            for (Index j = 0; j < p.cols; ++j)
                sum[static_cast<std::size_t>(i * p.cols + j)] += theirs[static_cast<std::size_t>(
                    part.transposed ? column(j) * p.rows + i : i * p.cols + column(j))];
    }
    require_finite<FileError>(file.name(), in_quotes(part.tensors.front()), p.size(), sum.data());
    return sum;
}

}  // namespace detail

/// Sets parameters of a graph to the weights of PyTorch layers: all of them or, on any mismatch, none.
///
///     const auto file = Safetensors::open("theirs.safetensors", {.require_checksum = false});
///     const auto left = read_torch(file, g, {{Torch::embedding, "encoder", "E"}, {Torch::lstm, "rnn", "lstm1"},
///                                            {Torch::lstm, "rnn", "lstm2", 1}, {Torch::head, "decoder", "softmax"}});
///
/// Numbers may be F16, BF16, F32 or F64. A bias that exists only here becomes 0. Two layers for the same
/// parameter, such as an embedding and the head tied to it, must be equal, a missing bias being 0. Gradients
/// of the parameters read are cleared.
/// @return  the tensors of the file that no layer used, in file order
///
/// Errors   FileError for a tensor that is missing, of another shape or type or not finite, a bias without counterpart
///          here, and layers that disagree. UsageError for names that the graph does not have, such as the cq of a Gru
///          without reset_after, tables with unit_rows, a
///          graph on shared weights, weights that are lent (Lease) to a DynamicUpdate or WeightDrop.
template <class T> [[nodiscard]] std::vector<std::string> read_torch(const Safetensors& file, Graph<T>& g,
                                                                     const std::vector<TorchLayer>& layers) {
    if (graph::Inspect::store(g).shared)
        throw UsageError("read_torch: the graph is on shared weights; read into the graph that owns them");
    graph::require_unlent(graph::Inspect::store(g).parameters, "read_torch");
    const auto all = g.parameters();
    std::map<Parameter<T>*, std::vector<T>> read;
    std::set<std::string> used;
    for (const TorchLayer& layer : layers)
        for (const detail::TorchPart& part : detail::parts_of(layer)) {
            used.insert(part.tensors.begin(), part.tensors.end());
            const bool has = std::ranges::any_of(all, [&](auto* p) { return p->name == part.parameter; });
            if (part.bias && !has && layer.type != Torch::gru) {
                if (file.find(part.tensors[0]))
                    throw FileError(file.name(), ": ", in_quotes(part.tensors[0]), ": '", layer.ours,
                                    "' has no bias");
                continue;
            }
            Parameter<T>& p = g.parameter(part.parameter);
            if (p.unit_rows)
                throw UsageError("read_torch: rows of '", p.name,
                                 "' are held at norm 1, unlike PyTorch's; make it without unit_rows");
            auto values = detail::torch_values(file, p, part);
            const auto [before, added] = read.try_emplace(&p, values);
            if (!added && before->second != values)
                throw FileError(file.name(), ": ", in_quotes(part.tensors[0]), " differs from another '",
                                p.name, "'");
        }
    for (const auto& [p, values] : read) {
        std::ranges::copy(values, p->value);
        p->clear_gradient();
    }
    std::vector<std::string> left;
    for (const std::string& name : file.names())
        if (!used.contains(name)) left.push_back(name);
    return left;
}

}}}  // namespace isogloss::io
