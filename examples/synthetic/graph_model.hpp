// A graph that reads symbols x and predicts the next ones: what all networks share.
#pragma once

#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>

#include "learner.hpp"

namespace ig = isogloss;
using tasks::Index;
using tasks::Text;
using tasks::Token;

// What position t is to predict: the next symbol, where it counts.
inline std::vector<Token> targets(const Text& text) {
    std::vector<Token> y;
    for (std::size_t t = 1; t < text.x.size(); ++t)
        y.push_back(text.predicted[t] ? text.x[t] : ig::not_predicted);
    return y;
}

// How often each symbol occurs, or has to be predicted.
inline std::vector<double> counts(const Text& text, bool predicted_alone) {
    std::vector<double> n(text.symbols.size(), 0);
    for (std::size_t t = predicted_alone; t < text.x.size(); ++t)
        if (!predicted_alone || text.predicted[t]) ++n[static_cast<std::size_t>(text.x[t])];
    return n;
}

template <class T> struct GraphModel : Learner {
    std::string_view symbols;
    ig::Graph<T> g;
    ig::Tokens x, y;
    ig::Logits<T> o;
    ig::Loss<T> l;
    std::vector<std::vector<T>> kept;

    GraphModel(const Text& text, ig::GraphOptions options)
        : symbols(text.symbols),
          g(options),
          x(g.tokens("x", text.vocabulary())),
          y(g.tokens("y", text.vocabulary())) {}

    void finish(ig::Seq<T> h) {
        o = g.template add<ig::Softmax>("out", {.vocabulary = x.vocabulary}, h);
        l = g.template add<ig::CrossEntropy>("loss", {}, o, y);
    }

    Foreseen foresee(const Text& text) override {
        const ig::Evaluation evaluation(g);
        Judge judge(text);
        constexpr Index rows = 256;
        std::vector<T> p(static_cast<std::size_t>(rows * x.vocabulary));
        for (Index first = 0; first + 1 < text.size(); first += g.capacity().time) {
            const Index n = std::min(g.capacity().time, text.size() - 1 - first);
            g.forward(o, {x, {text.x.data() + first, n, 1}});
            for (Index r = 0; r < n; r += rows) {
                const Index some = std::min(rows, n - r);
                g.probabilities(o, r, {p.data(), some, x.vocabulary});
                for (Index k = 0; k < some; ++k)
                    judge.position(first + r + k + 1, p.data() + k * x.vocabulary);
            }
        }
        return judge.verdict();
    }

    std::string sample(Index length, std::uint64_t seed) override {
        const ig::Evaluation evaluation(g);
        const ig::Random random(seed, ig::stream_of("sample"));
        std::vector<T> p(static_cast<std::size_t>(x.vocabulary));
        std::string text(1, symbols[0]);
        for (Index t = 1; t < length; ++t) {
            const Token last = static_cast<Token>(symbols.find(text.back()));
            g.forward(o, {x, {&last, 1, 1}});
            g.probabilities(o, 0, {p.data(), 1, x.vocabulary});
            text += symbols[static_cast<std::size_t>(ig::sample(p, random.uniform(t)))];
        }
        return text;
    }

    void keep() override {
        kept.clear();
        for (auto* p : g.parameters()) kept.emplace_back(p->value, p->value + p->size());
    }
    void restore() override {
        for (std::size_t k = 0; k < kept.size(); ++k)
            std::copy(kept[k].begin(), kept[k].end(), g.parameters()[k].value);
    }
};
