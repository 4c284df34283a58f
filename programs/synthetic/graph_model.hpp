// A graph that reads symbols x and predicts the next ones: the base of all networks.
#pragma once

#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/update/riemannian/start_at_frequencies.hpp>
#include <numeric>

#include "learner.hpp"
#include "options.hpp"

namespace ig = isogloss;
using tasks::Index;
using tasks::Text;
using tasks::Token;

// How often each symbol occurs, or is to be predicted.
inline std::vector<double> counts(const Text& text, bool predicted_alone) {
    std::vector<double> n(static_cast<std::size_t>(text.vocabulary()), 0);
    for (std::size_t t = predicted_alone; t < text.x.size(); ++t)
        if (!predicted_alone || text.predicted[t]) ++n[static_cast<std::size_t>(text.x[t])];
    return n;
}

template <class T> struct GraphModel : Learner {
    ig::Graph<T> g;
    ig::Tokens x, y;
    ig::Seq<T> activity, potential;  // a and V of units on a sparse graph, if any
    ig::Logits<T> o;
    ig::Loss<T> l;
    Token first;                             // the first symbol of a sample
    std::vector<std::vector<T>> kept, last;  // parameters: the best, and those at the stop of training

    GraphModel(const Text& text, ig::GraphOptions options)
        : g(options),
          x(g.tokens("x", text.vocabulary())),
          y(g.tokens("y", text.vocabulary())),
          first(text.x[0]) {}

    void finish(ig::Seq<T> h) {
        o = g.template add<ig::Softmax>("out", {.vocabulary = x.vocabulary}, h);
        l = g.template add<ig::CrossEntropy>("loss", {}, o, y);
    }
    // Adds pull · Σ V² of the units on a graph to the loss of every position. It still reaches a unit at a
    // bound of its range, where s' = 0.
    void pull(double pull) {
        if (!(pull > 0)) return;
        const auto penalty = g.template add<ig::ActivationPenalty>(
            "pull", {.size = pull * static_cast<double>(potential.width)}, potential);
        l = g.template add<ig::TotalLoss>("total", {}, l, penalty);
    }

    // A network on a sparse graph under a head initialised with the frequencies of the symbols.
    ig::Seq<T> add_sparse(const Options& options, const Text& text) {
        const ig::SparseRecurrentOptions network{.units = options.units,
                                                 .edges = options.edges,
                                                 .activation = options.named_activation(),
                                                 .seed = options.network_seed(),
                                                 .longest = options.slowest,
                                                 .frequencies = counts(text, false),
                                                 .bound = options.named_bound()};
        activity = options.network == "glnn"    ? g.template add<ig::Glnn>("net", network, x)
                   : options.network == "gnn"   ? g.template add<ig::Gnn>("net", network, x)
                   : options.network == "leaky" ? g.template add<ig::LeakyRnn>("net", network, x)
                                                : g.template add<ig::SparseRnn>("net", network, x);
        potential = g.sequence("net.V");
        bound_ = static_cast<T>(network.bound);
        if (network.activation == ig::Activation::logistic) middle_ = half_ = 0.5;
        finish(activity);
        auto targets = counts(text, true);
        // A symbol that other texts alone have would cost 40 bits each time.
        for (double& n : targets) n = std::max(n, 1.0);
        ig::start_at_frequencies(g, "out", targets);
        pull(options.pull);
        return activity;
    }

    Foreseen foresee(const Text& text) override {
        const ig::Evaluation evaluation(g);
        Judge judge(text);
        std::vector<int> stuck(static_cast<std::size_t>(std::max<Index>(activity.width, 0)), 1);
        constexpr Index rows = 256;
        std::vector<T> p(static_cast<std::size_t>(rows * x.vocabulary));
        for (Index from = 0; from + 1 < text.size(); from += g.capacity().time) {
            const Index n = std::min(g.capacity().time, text.size() - 1 - from);
            g.forward(o, {x, {text.x.data() + from, n, 1}});
            for (Index r = 0; r < n; r += rows) {
                const Index some = std::min(rows, n - r);
                g.head(o).probabilities(r, {p.data(), some, x.vocabulary});
                for (Index k = 0; k < some; ++k)
                    judge.position(from + r + k + 1, p.data() + k * x.vocabulary);
            }
            for (Index t = 0; activity.id >= 0 && t < n; ++t)
                if (from + t >= text.size() / 2) judge_saturation(t, stuck);
        }
        Foreseen seen = judge.verdict();
        if (activity.id >= 0)
            seen.saturated = static_cast<double>(std::accumulate(stuck.begin(), stuck.end(), 0)) /
                             static_cast<double>(stuck.size());
        return seen;
    }

    std::vector<Token> sample(Index length, std::uint64_t seed) override {
        const ig::Evaluation evaluation(g);
        const ig::Random random(seed, ig::stream_of("sample"));
        std::vector<T> p(static_cast<std::size_t>(x.vocabulary));
        std::vector<Token> text(1, first);
        for (Index t = 1; t < length; ++t) {
            g.forward(o, {x, {&text.back(), 1, 1}});
            g.head(o).probabilities(0, {p.data(), 1, x.vocabulary});
            text.push_back(static_cast<Token>(ig::sample(p, random.uniform(t))));
        }
        return text;
    }

    void keep() override { kept = values(); }
    void stop() override {
        last = values();
        restore();
    }
    void go_on() override {
        keep();
        assign(last);
    }
    void parts(ig::io::Checkpoint& c) override {
        if (last.empty()) last = values();
        c.model(g).state("last", *this);
    }
    template <class Visitor> void visit(Visitor& v) {
        for (std::size_t k = 0; k < last.size(); ++k) {
            const auto& p = g.parameters()[k];
            v.array(p.name, last[k].data(), p.rows, p.cols);
        }
    }

protected:
    void restore() {
        if (!kept.empty()) assign(kept);
    }

private:
    std::vector<std::vector<T>> values() {
        std::vector<std::vector<T>> all;
        for (const auto* p : g.parameters()) all.emplace_back(p->value, p->value + p->size());
        return all;
    }
    void assign(const std::vector<std::vector<T>>& all) {
        for (std::size_t k = 0; k < all.size(); ++k)
            std::copy(all[k].begin(), all[k].end(), g.parameters()[k].value);
    }
    // A unit is saturated while no gradient reaches it: its activity is within 1e-6 of an end of its range, or
    // its V is clamped. (Of the default bound 4, tanh is 0.9993.)
    void judge_saturation(Index t, std::vector<int>& stuck) {
        const T *a = ig::graph::Inspect::store(g).value(activity.id, t),
                *V = ig::graph::Inspect::store(g).value(potential.id, t);
        for (std::size_t j = 0; j < stuck.size(); ++j) {
            const bool clamped = bound_ > 0 && std::abs(V[j]) >= bound_;
            if (!clamped && std::abs(static_cast<double>(a[j]) - middle_) < half_ - 1e-6) stuck[j] = 0;
        }
    }

    double middle_ = 0, half_ = 1;  // of the range of an activity
    T bound_ = 0;                   // of V; 0: none
};
