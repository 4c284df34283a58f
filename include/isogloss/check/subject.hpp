/// @file check/subject.hpp  What the laws of a node are tried on: a graph with inputs, and distances between results.
#pragma once

#include <cmath>
#include <isogloss/graph/graph.hpp>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace check {

/// What the laws run on.
struct LawOptions {
    Index time = 4, batch = 3;  ///< size of the pass; time even, or the seventh law is not tried
    /// On gradients against difference quotients, relative to 1 + the gradient's largest entry.
    double tolerance = 2e-7;
    /// On float against double gradients, relative to the gradient's length.
    double float_tolerance = 2e-3;
    /// Patterns, with commas between them, of parameters and inputs without difference quotients: those that the loss
    /// reads as constants on purpose.
    std::string hold = {};
};

namespace detail {

/// The name of number k of a sequence: "x[t, b, j]".
template <class T> std::string place(const graph::SeqRecord<T>& s, Index batch, Index k) {
    return message(s.name, "[", k / (batch * s.width), ", ", k / s.width % batch, ", ", k % s.width, "]");
}

/// A graph with random inputs and everything to run it, for a pass of o.time × o.batch with room for `spare` more
/// steps and columns, on weights of its own or on shared ones.
template <class T> struct Subject {
    Graph<T> g;
    Loss<T> l;
    std::vector<std::vector<Token>> tokens;
    std::vector<std::vector<T>> values;
    std::vector<Feed<T>> feeds;
    Index time, batch;

    template <class Build, class... Weights>
    Subject(Build& build, const LawOptions& o, Index spare = 0, const Weights&... shared)
        : g(GraphOptions{.time = o.time + spare, .batch = o.batch + spare, .seed = 3}, shared...),
          l(build(g)),
          time(o.time),
          batch(o.batch) {
        auto& store = graph::Inspect::store(g);
        int id = 0;
        for (const auto& x : store.tokens) {
            const Random random(11, stream_of(x.name));
            auto& block = tokens.emplace_back();
            for (Index i = 0; i < time * batch; ++i) {
                const bool absent = !x.read_by_node && random.uniform(2 * i + 1) < 0.2;
                block.push_back(absent ? not_predicted
                                       : static_cast<Token>(random.below(2 * i, x.vocabulary)));
            }
            feeds.emplace_back(Tokens{id++, x.vocabulary, store.serial},
                               TokenBlock{block.data(), time, batch});
        }
        id = 0;
        for (const auto& s : store.seqs) {
            if (s.node < 0) {
                const Random random(13, stream_of(s.name));
                auto& block = values.emplace_back();
                for (Index i = 0; i < time * batch * s.width; ++i)
                    block.push_back(static_cast<T>(0.5 * random.normal(i)));
                feeds.emplace_back(Seq<T>{id, s.width, store.serial}, block.data(), time, batch);
            }
            ++id;
        }
    }

    /// Other inputs: each number negated, each symbol the next one.
    void change_inputs() {
        for (auto& block : values)
            for (T& v : block) v = -v;
        for (std::size_t i = 0; i < tokens.size(); ++i)
            for (Token& x : tokens[i])
                if (x != not_predicted) x = static_cast<Token>((x + 1) % feeds[i].tokens.vocabulary);
    }
    double forward() {
        g.reset();
        g.training_step(5);
        return g.forward(l, std::span<const Feed<T>>(feeds));
    }
    void pass() {
        forward();
        g.backward(l);
    }
    void clear() {
        if (!graph::Inspect::store(g).parameters.empty()) g.parameters().clear_gradients();
    }
    /// All gradients of one pass one after the other: parameters that are trained, then inputs.
    std::vector<T> gradients() {
        forward();
        clear();
        pass();
        return collect();
    }
    std::vector<T> collect() {
        std::vector<T> all;
        for (auto& p : graph::Inspect::store(g).parameters) {
            if (!p.is_trained()) continue;
            const auto m = p.dense_gradient();
            all.insert(all.end(), m.data, m.data + p.size());
        }
        for (std::size_t i = 0; i < graph::Inspect::store(g).seqs.size(); ++i)
            if (const auto& s = graph::Inspect::store(g).seqs[i]; s.node < 0) {
                const T* a = graph::Inspect::store(g).adjoint(static_cast<int>(i), 0);
                all.insert(all.end(), a, a + time * batch * s.width);
            }
        return all;
    }
    /// How many of them are of parameters.
    Index parameter_count() {
        Index n = 0;
        for (const auto& p : graph::Inspect::store(g).parameters) n += p.is_trained() ? p.size() : 0;
        return n;
    }
    /// The name of one of them.
    std::string entry(std::size_t i) {
        Index k = static_cast<Index>(i);
        for (const auto& p : graph::Inspect::store(g).parameters) {
            if (!p.is_trained()) continue;
            if (k < p.size()) return message(p.name, "[", k / p.cols, ", ", k % p.cols, "]");
            k -= p.size();
        }
        for (const auto& s : graph::Inspect::store(g).seqs) {
            if (s.node >= 0) continue;
            if (k < time * batch * s.width) return place(s, batch, k);
            k -= time * batch * s.width;
        }
        return {};
    }
    /// The numbers those gradients are with respect to.
    std::vector<T*> variables() {
        std::vector<T*> all;
        for (auto& p : graph::Inspect::store(g).parameters)
            for (Index i = 0; i < p.size() && p.is_trained(); ++i) all.push_back(p.value + i);
        for (auto& block : values)
            for (T& v : block) all.push_back(&v);
        return all;
    }
    /// Which of them are tried: at most 250, without those of parameters and inputs that match `hold`.
    std::vector<std::size_t> sample(const std::string& hold) {
        std::vector<std::size_t> all, some;
        std::size_t next = 0;
        const auto take = [&](const std::string& name, Index size) {
            bool held = false;
            graph::for_each_pattern(hold, [&](std::string_view one) { held |= graph::matches(one, name); });
            for (const std::size_t end = next + std::size_t(size); next < end; ++next)
                if (!held) all.push_back(next);
        };
        for (const auto& p : graph::Inspect::store(g).parameters) take(p.name, p.is_trained() ? p.size() : 0);
        for (const auto& s : graph::Inspect::store(g).seqs)
            if (s.node < 0) take(s.name, time * batch * s.width);
        if (all.size() <= 250) return all;
        for (Index k = 0; k < 250; ++k) some.push_back(all[Random(17, 0).below(k, std::ssize(all))]);
        return some;
    }
    /// The derivative of the loss by v from four points: the error is of fourth order in h, so that curvature is
    /// no excuse.
    double quotient(T& v) {
        constexpr double h = 1e-4;
        const T at = v;
        const auto loss_at = [&](double offset) {
            v = at + static_cast<T>(offset);
            return forward();
        };
        const double near = loss_at(h) - loss_at(-h), far = loss_at(2 * h) - loss_at(-2 * h);
        v = at;
        return (8 * near - far) / (12 * h);
    }
    /// Fills what a backward pass must not read.
    void poison() {
        const T nan = std::numeric_limits<T>::quiet_NaN();
        for (auto& p : graph::Inspect::store(g).parameters)
            if (p.is_trained()) std::fill_n(p.gradient, p.size(), nan);
        for (auto& s : graph::Inspect::store(g).seqs)
            std::fill_n(s.adjoint[0], (s.lead + g.capacity().time) * g.capacity().batch * s.width, nan);
    }
    /// A backward pass of moduli; false where a node has none, which breaks no law.
    bool modulus() {
        forward();
        for (const auto& n : graph::Inspect::nodes(g))
            if (n.needed && !n.node->has_modulus()) return false;
        g.template backward<Modulus>(l);
        return true;
    }
};

template <class T> double length(const std::vector<T>& v) {
    return std::sqrt(kernel::plain::dot(std::ssize(v), v.data(), v.data()));
}
/// |a - b|, infinite where that is no number.
inline double distance(double a, double b) {
    return std::isfinite(a - b) ? std::abs(a - b) : std::numeric_limits<double>::infinity();
}
template <class A, class B> double distance(const std::vector<A>& a, const std::vector<B>& b) {
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double s = 0;
    for (std::size_t i = 0; i < a.size(); ++i) s += std::pow(distance(double(a[i]), double(b[i])), 2);
    return std::sqrt(s);
}
/// The place where two lists are furthest apart.
template <class A, class B> std::size_t furthest(const std::vector<A>& a, const std::vector<B>& b) {
    std::size_t worst = 0;
    for (std::size_t i = 1; i < std::min(a.size(), b.size()); ++i)
        if (distance(double(a[i]), double(b[i])) > distance(double(a[worst]), double(b[worst]))) worst = i;
    return worst;
}

}  // namespace detail
}}}  // namespace isogloss::check
