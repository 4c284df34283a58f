/// @file io/torch.hpp  Importing and exporting PyTorch layers, as a state dict in a safetensors file.
#pragma once

#include <algorithm>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/utf8.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// The PyTorch layers that have a counterpart here.
enum class Torch {
    embedding,  ///< nn.Embedding; `ours` is the table: E = weight
    linear,     ///< nn.Linear as a Linear: W = weightᵀ, b = bias
    head,       ///< nn.Linear(n, V) as a Softmax or TiedSoftmax: W or the table = weight, b = bias
    rnn,  ///< a layer of nn.RNN, tanh, as an Rnn: W = weight_ihᵀ, U = weight_hhᵀ, b = bias_ih + bias_hh
    lstm  ///< a layer of nn.LSTM as an Lstm: as above; the gate order is i, f, g, o in both
};

/// A layer, with its name in PyTorch and here.
struct TorchLayer {
    Torch type;
    std::string
        theirs;  ///< its name in the state dict: "encoder" of "encoder.weight"; empty: names without a prefix
    std::string ours;        ///< the name of the node; for an embedding, of the table
    Index layer = 0;         ///< ≥ 0, for rnn and lstm: the number after `_l` in "rnn.weight_ih_l0"
    bool reverse = false;    ///< for rnn and lstm: the backward direction, "rnn.weight_ih_l0_reverse"
    std::string table = {};  ///< for a tied head: the name of the table it shares
};

namespace detail {

/// A parameter here, and the PyTorch tensors whose sum it is.
struct TorchPart {
    std::string parameter;
    std::vector<std::string> tensors;
    bool transposed, bias;
};

inline std::vector<TorchPart> parts_of(const TorchLayer& l) {
    const std::string dot = l.theirs.empty() ? "" : l.theirs + ".";
    if (l.type == Torch::embedding) return {{l.ours, {dot + "weight"}, false, false}};
    if (l.type == Torch::linear || l.type == Torch::head) {
        const bool linear = l.type == Torch::linear;
        return {{l.table.empty() ? l.ours + ".W" : l.table, {dot + "weight"}, linear, false},
                {l.ours + ".b", {dot + "bias"}, false, true}};
    }
    const std::string end = message("_l", l.layer, l.reverse ? "_reverse" : "");
    return {{l.ours + ".W", {dot + "weight_ih" + end}, true, false},
            {l.ours + ".U", {dot + "weight_hh" + end}, true, false},
            {l.ours + ".b", {dot + "bias_ih" + end, dot + "bias_hh" + end}, false, true}};
}

/// The parameter, or null for a bias that the node was built without. Throws UsageError for other names that
/// do not exist, and for nodes without the form of the layer.
template <class T> Parameter<T>* parameter_of(Graph<T>& g, const TorchLayer& l, const TorchPart& part) {
    constexpr std::string_view who = "layers of PyTorch";
    require(who, "layer", l.layer, 0);
    const auto all = g.parameters();
    const auto named = [&](const std::string& name) {
        const auto found = std::find_if(all.begin(), all.end(), [&](auto* p) { return p->name == name; });
        return found == all.end() ? nullptr : *found;
    };
    if (part.bias) {
        const auto& nodes = graph::Inspect::store(g).node_names;
        if (std::ranges::find(nodes, l.ours) == nodes.end())
            throw UsageError(who, ": there is no node '", l.ours, "'; there are: ", graph::names_of(nodes));
        if (l.type == Torch::head && named(l.ours + ".P"))
            throw UsageError(who, ": the head '", l.ours, "' has a projection '", l.ours,
                             ".P', which an nn.Linear has not; give its parts to layers of their own");
        return named(part.parameter);
    }
    Parameter<T>& p = g.parameter(part.parameter);
    const Index blocks = l.type == Torch::lstm ? 4 : 1;
    if (part.parameter == l.ours + ".U" && p.cols != blocks * p.rows)
        throw UsageError(who, ": '", p.name, "' has shape [", p.rows, ", ", p.cols, "], expected [", p.rows,
                         ", ", blocks * p.rows, "]; is '", l.ours, "' the node for an nn.",
                         blocks == 4 ? "LSTM" : "RNN", "?");
    return &p;
}

/// The shape of a PyTorch tensor for this parameter.
template <class T> std::vector<Index> shape_there(const Parameter<T>& p, const TorchPart& part) {
    if (part.bias) return {p.cols};
    return part.transposed ? std::vector<Index>{p.cols, p.rows} : std::vector<Index>{p.rows, p.cols};
}

/// Where the tensor has the entry [i, j] of the parameter.
template <class T> std::size_t place_there(const Parameter<T>& p, const TorchPart& part, Index i, Index j) {
    return static_cast<std::size_t>(part.transposed ? j * p.rows + i : i * p.cols + j);
}

/// The weights of PyTorch layers, read from a file for the parameters of a graph, and what does not fit.
template <class T> class TorchReading {
public:
    TorchReading(const Safetensors& file, Graph<T>& g) : file_(file), g_(g) {}

    /// Reads one layer. Throws UsageError as read_torch; what is wrong with the file is kept for set().
    void read(const TorchLayer& l) {
        for (const TorchPart& part : parts_of(l)) read(l, part);
        if (file_.find(message(l.theirs, l.theirs.empty() ? "" : ".", "weight_hr_l", l.layer)))
            fault(in_quotes(l.theirs), " projects its states (proj_size), which Lstm does not");
    }
    /// Sets the parameters. Throws FileError with everything that does not fit; none is set then.
    void set() const {
        if (!faults_.empty())
            throw FileError(file_.name(), ": the file does not fit the layers; nothing was read.", faults_);
        for (const auto& [p, values] : read_) {
            std::ranges::copy(values.numbers, p->value);
            p->clear_gradient();
        }
    }
    /// The tensors of the file that no layer used, in file order.
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const TensorView& t : file_.tensors())
            if (std::ranges::find(used_, t.name) == used_.end()) names.push_back(t.name);
        return names;
    }

private:
    struct Values {
        std::string from;
        std::vector<T> numbers;
    };

    template <class... Parts> void fault(Parts... what) { faults_ += "\n    " + message(what...); }

    void read(const TorchLayer& l, const TorchPart& part) {
        Parameter<T>* const p = parameter_of(g_, l, part);
        if (p && p->unit_rows)
            throw UsageError("read_torch: rows of '", p->name,
                             "' are held at norm 1, those of PyTorch are not");
        used_.insert(used_.end(), part.tensors.begin(), part.tensors.end());
        const Index there = std::count_if(part.tensors.begin(), part.tensors.end(),
                                          [&](const auto& name) { return file_.find(name); });
        if (!p) {
            if (there > 0)
                fault(in_quotes(part.tensors[0]), " has no counterpart: node '", l.ours, "' has no bias");
            return;
        }
        std::vector<T> sum(static_cast<std::size_t>(p->size()), T(0));
        if (part.bias && there == 0)
            return keep(*p, in_quotes(part.tensors[0]) + ", which is missing and counts as 0,",
                        std::move(sum));
        bool complete = true;
        for (const std::string& name : part.tensors) complete = add(name, *p, part, sum) && complete;
        if (!complete) return;
        // Each tensor is finite, but the sum of two biases may not be.
        if (const Index bad = kernel::first_non_finite(std::ssize(sum), sum.data()); bad < std::ssize(sum))
            return fault(in_quotes(part.tensors.front()), " and ", in_quotes(part.tensors.back()), " sum to ",
                         sum[static_cast<std::size_t>(bad)], " at ", bad,
                         ", expected finite numbers in the range of the graph's type");
        keep(*p, in_quotes(part.tensors[0]), std::move(sum));
    }
    // Adds a tensor to the values of a parameter; returns whether it fits.
    bool add(const std::string& name, const Parameter<T>& p, const TorchPart& part, std::vector<T>& sum) {
        const TensorView* const t = file_.find(name);
        const auto shape = shape_there(p, part);
        if (!t) {
            fault(in_quotes(name), " ", dimensions_text(shape), " is missing");
            return false;
        }
        if (t->shape != shape) {
            const bool gru =
                name.find("weight_hh") != name.npos && t->shape.size() == 2 && t->shape[0] == 3 * t->shape[1];
            fault(in_quotes(name), " is ", dimensions_text(t->shape), ", expected ", dimensions_text(shape),
                  gru ? "; three blocks are those of an nn.GRU, which no node here computes" : "");
            return false;
        }
        if (!is_numeric(file_, *t)) {
            fault(in_quotes(name), " has type ", info(t->dtype).name, ", expected F16, BF16, F32 or F64");
            return false;
        }
        std::vector<T> numbers(sum.size());
        widen(file_, *t, numbers.data());
        if (const Index bad = kernel::first_non_finite(std::ssize(numbers), numbers.data());
            bad < std::ssize(numbers)) {
            fault(in_quotes(name), " holds ", numbers[static_cast<std::size_t>(bad)], " at ", bad,
                  ", expected finite numbers in the range of the graph's type");
            return false;
        }
        for (Index i = 0; i < p.rows; ++i)
            for (Index j = 0; j < p.cols; ++j)
                sum[static_cast<std::size_t>(i * p.cols + j)] += numbers[place_there(p, part, i, j)];
        return true;
    }
    // Two layers for one parameter must agree.
    void keep(Parameter<T>& p, const std::string& from, std::vector<T> numbers) {
        const auto [before, added] = read_.try_emplace(&p, Values{from, numbers});
        if (!added && !std::ranges::equal(std::as_bytes(std::span(before->second.numbers)),
                                          std::as_bytes(std::span(numbers))))  // bytes: the sign of 0, too
            fault(from, " and ", before->second.from, " differ, but both map to '", p.name, "'");
    }

    const Safetensors& file_;
    Graph<T>& g_;
    std::string faults_;
    std::map<Parameter<T>*, Values> read_;
    std::vector<std::string> used_;
};

}  // namespace detail

/// Sets parameters of a graph to the weights of PyTorch layers: all of them or, on any mismatch, none.
///
///     const auto file = Safetensors::open("theirs.safetensors", {.require_checksum = false});
///     const auto left = read_torch(file, g, {{Torch::embedding, "encoder", "E"}, {Torch::lstm, "rnn", "lstm1"},
///                                            {Torch::lstm, "rnn", "lstm2", 1}, {Torch::head, "decoder", "softmax"}});
///
/// Numbers may be F16, BF16, F32 or F64. A bias that exists only here becomes 0. Two layers for the same
/// parameter, such as an embedding and the head tied to it, must be bit-identical, a missing bias being 0. Gradients
/// of the parameters read are cleared.
/// @return  the tensors of the file that no layer used, in file order
///
/// Errors   FileError listing tensors that are missing, of other shapes or types or not finite, biases without counterpart
///          here, and layers that disagree. UsageError for names that the graph does not have, nodes of another
///          form, tables with unit_rows, a graph on shared weights, weights that are lent (Lease) to a
///          DynamicUpdate or WeightDrop.
template <class T> [[nodiscard]] std::vector<std::string> read_torch(const Safetensors& file, Graph<T>& g,
                                                                     const std::vector<TorchLayer>& layers) {
    if (graph::Inspect::store(g).shared)
        throw UsageError("read_torch: the graph is on shared weights; read into the graph that owns them");
    graph::require_unlent(graph::Inspect::store(g).parameters, "read_torch");
    detail::TorchReading<T> reading(file, g);
    for (const TorchLayer& l : layers) reading.read(l);
    reading.set();
    return reading.left();
}

/// Writes parameters of a graph as a PyTorch state dict, in a safetensors file for `load_state_dict`: the inverse
/// of read_torch. The bias of a recurrent layer becomes bias_ih, bias_hh is 0; a node without a bias writes none.
///
/// Errors   UsageError for names that the graph does not have, nodes of another form, weights that are lent (Lease)
///          of a DynamicUpdate or WeightDrop; else as write_safetensors.
template <class T>
void write_torch(const std::filesystem::path& path, Graph<T>& g, const std::vector<TorchLayer>& layers) {
    graph::require_unlent(graph::Inspect::store(g).parameters, "write_torch", false);
    std::vector<std::vector<T>> owned;
    std::vector<TensorView> tensors;
    for (const TorchLayer& l : layers) {
        for (const detail::TorchPart& part : detail::parts_of(l)) {
            const Parameter<T>* const p = detail::parameter_of(g, l, part);
            if (!p) continue;
            for (const std::string& name : part.tensors) {
                auto& numbers = owned.emplace_back(static_cast<std::size_t>(p->size()), T(0));
                if (name == part.tensors[0])
                    for (Index i = 0; i < p->rows; ++i)
                        for (Index j = 0; j < p->cols; ++j)
                            numbers[detail::place_there(*p, part, i, j)] = p->value[i * p->cols + j];
                tensors.push_back(tensor_view<T>(name, detail::shape_there(*p, part), numbers));
            }
        }
    }
    write_safetensors(path, tensors);
}

}}}  // namespace isogloss::io
