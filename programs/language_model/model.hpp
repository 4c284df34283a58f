/// @file model.hpp  The construction of a language model.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <string>

#include "options.hpp"

namespace lm {

using Graph = ig::Graph<float>;

/// Handles to the parts of a model that the program uses.
struct Model {
    ig::Tokens x, y;       ///< input and target, [T, B]
    ig::Weight<float> E;   ///< word vectors, [V, embedding]
    ig::Logits<float> o;   ///< of the next token
    ig::Loss<float> nll;   ///< cross-entropy, for perplexities
    ig::Loss<float> text;  ///< of the text: cross-entropy, augmented or mixed
    ig::Loss<float> loss;  ///< minimised in training: `text` plus penalties
};

/// Recurrent layer l, counted from 1.
inline ig::Seq<float> add_cell(Graph& g, const Options& m, ig::Index l, ig::Seq<float> h) {
    const std::string name = ig::message(m.cell, l);
    const ig::Index units = width(m, l);
    // The graph is part of the model, and the same whatever --seed.
    const ig::SparseRecurrentOptions graph{
        .units = units, .edges = m.edges, .seed = static_cast<std::uint64_t>(l), .bound = m.bound};
    if (m.cell == "glnn") return g.add<ig::Glnn>(name, graph, h);
    if (m.cell == "gnn") return g.add<ig::Gnn>(name, graph, h);
    if (m.cell == "leaky") return g.add<ig::LeakyRnn>(name, graph, h);
    const auto scheme = m.scheme == "tied"  ? ig::DropoutScheme::tied
                        : m.scheme == "gal" ? ig::DropoutScheme::gal
                                            : ig::DropoutScheme::recurrent;
    const auto init = ig::uniform(m.init);
    const double keep = keeps(m).state;
    if (m.cell == "rnn")
        return g.add<ig::Rnn>(name, {.units = units, .keep = keep, .scheme = scheme, .init = init}, h);
    if (m.cell == "gru")
        return g.add<ig::Gru>(name,
                              {.units = units,
                               .keep = keep,
                               .scheme = scheme,
                               .init = init,
                               .rounds = m.rounds,
                               .rank = m.rank},
                              h);
    if (m.cell == "rhn")
        return g.add<ig::Rhn>(
            name, {.units = units, .depth = m.depth, .keep = keep, .scheme = scheme, .init = init}, h);
    if (m.cell == "qrnn")  // under recurrent all its masks are between the layers
        return g.add<ig::Qrnn>(
            name,
            {.units = units, .keep = m.scheme == "recurrent" ? 1 : keep, .scheme = scheme, .init = init}, h);
    return g.add<ig::Lstm>(
        name,
        {.units = units, .keep = keep, .scheme = scheme, .init = init, .rounds = m.rounds, .rank = m.rank},
        h);
}

/// Word vectors, recurrent layers, a softmax head and the losses, over a vocabulary of V types.
inline Model build(Graph& g, const Options& m, ig::Index V) {
    Model it;
    it.x = g.tokens("x", V);
    it.y = g.tokens("y", V);
    it.E =
        g.weight("E", V, m.embedding, ig::uniform(m.init), {.unit_rows = m.unit_rows, .trained = !m.freeze});

    // In the scheme gal a layer masks its own input; in recurrent the masks between layers are nodes. Networks on graphs
    // have no masks inside: a node before or after the layer takes their place.
    const bool inside = m.scheme == "gal", between = m.scheme == "recurrent", around = sparse(m);
    const Keeps keep = keeps(m);
    const auto drop = [&](const char* name, ig::Index l, double p, ig::Seq<float> a) {
        return g.add<ig::Dropout>(ig::message(name, l), {.keep = p, .variational = true}, a);
    };
    auto h = g.add<ig::Embedding>("embed", {.keep = inside ? 1 : keep.input, .keep_words = m.keep_words},
                                  it.x, it.E);
    for (ig::Index l = 1; l <= *m.layers; ++l) {
        if (inside && around) h = drop("input", l, keep.state, h);
        h = add_cell(g, m, l, h);
        if (between || (inside && l == *m.layers))
            h = drop("dropout", l, l < *m.layers ? keep.between : keep.output, h);
        else if (around && !inside) h = drop("dropout", l, keep.state, h);
    }

    if (m.head == "tied")
        it.o = g.add<ig::TiedSoftmax>(
            "softmax",
            {.bias = m.head_bias, .projection = h.width != m.embedding, .init = ig::uniform(m.init)}, h,
            it.E);
    else it.o = g.add<ig::Softmax>("softmax", {.vocabulary = V, .init = ig::uniform(m.init)}, h);

    it.nll = g.add<ig::CrossEntropy>("nll", {}, it.o, it.y);
    it.text = it.nll;
    if (m.loss == "ce" && m.adversarial != 0)
        it.text = g.add<ig::CrossEntropy>("loss", {.adversarial = m.adversarial}, it.o, it.y);
    if (m.loss != "ce") {
        ig::AugmentedLoss<float>::Options a{.temperature = m.temperature,
                                            .differentiate_target = m.target == "differentiated",
                                            .adversarial = m.adversarial};
        if (m.loss == "mixture") {
            a.beta = m.beta;
        } else {
            a.alpha = m.alpha;
            a.gamma = m.gamma;
        }
        it.text = g.add<ig::AugmentedLoss>("loss", a, it.o, it.y, it.E);
    }
    it.loss = it.text;
    if (m.ar != 0 || m.tar != 0)
        it.loss = g.add<ig::TotalLoss>(
            "total", {}, it.text,
            g.add<ig::ActivationPenalty>("activations", {.size = m.ar, .change = m.tar}, h));
    return it;
}

}  // namespace lm
