/// @file language_model.hpp  What the tests of data-parallel training share: a small language model, and its text.
#pragma once

#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/isogloss.hpp>
#include <vector>

#include "graphs.hpp"

namespace isogloss::data_parallel_test {

using distributed::Alone;
using distributed::DataParallel;
using distributed::DataParallelOptions;
using distributed::ThreadGroup;

inline constexpr Index V = 30, steps = 6;

inline std::vector<Token> text_of(Index n) {
    const Random random(8, 5);
    std::vector<Token> tokens;
    for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(random.below(i, V)));
    return tokens;
}

// A language model with every kind of mask; its own head, or one tied to the table.
template <class T> struct LanguageModel {
    Graph<T> g;
    Tokens x, y;
    Loss<T> l;
    LanguageModel(Index columns, bool tied, double epsilon = 0)
        : g({.time = steps, .batch = columns, .seed = 5, .epsilon = epsilon}) {
        x = g.tokens("x", V), y = g.tokens("y", V);
        const auto E = g.weight("E", V, 8, uniform(0.5));
        auto h = g.template add<Embedding>("embed", {.keep = 0.7, .keep_words = 0.8}, x, E);
        h = g.template add<Lstm>("lstm", {.units = 8, .keep = 0.6, .init = uniform(0.5)}, h);
        h = g.template add<Gru>(
            "gru", {.units = 8, .keep = 0.6, .scheme = DropoutScheme::gal, .init = uniform(0.5)}, h);
        h = g.template add<Dropout>("dropout", {.keep = 0.8}, h);
        const auto o = tied ? g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E)
                            : g.template add<Softmax>("softmax", {.vocabulary = V, .init = uniform(0.5)}, h);
        if (tied) l = g.template add<AugmentedLoss>("loss", {.gamma = 0.5, .temperature = 5}, o, y, E);
        else l = g.template add<CrossEntropy>("loss", {}, o, y);
    }
    void pass(const text::Batch& part) {
        g.forward(l, {x, part.input}, {y, part.target});
        g.backward(l);
    }
    Numbers values() {
        Numbers all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
    Numbers gradients() {
        Numbers all;
        for (auto* p : g.parameters()) {
            const auto d = p->dense_gradient();
            all.insert(all.end(), d.data, d.data + p->size());
        }
        return all;
    }
};

inline text::Batches batches_of(const std::vector<Token>& text, Index columns) {
    return {text, V, {steps, columns}};
}

}  // namespace isogloss::data_parallel_test
