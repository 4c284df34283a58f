/// @file graphs.hpp  What the tests of nodes and losses share: a loss of known weights, numbers in and out.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/edges.hpp>
#include <limits>
#include <string>
#include <vector>

using Numbers = std::vector<double>;

/// l = Σ w ∘ y with weights w that are an input: any gradient can be asked of any sequence. Its modulus is
/// w².
template <class T> struct Dot {
    struct Options {};
    Options options;
    isogloss::Seq<T> w, y;
    isogloss::Loss<T> l;

    isogloss::Loss<T> setup(isogloss::Setup<T>& s, isogloss::Seq<T> weights, isogloss::Seq<T> sequence) {
        w = weights;
        y = sequence;
        return l = s.loss(false);
    }
    void forward(isogloss::Forward<T>& p) {
        double total = 0;
        for (isogloss::Index i = 0; i < p.rows() * y.width; ++i)
            total += double(p.data(w)[i]) * double(p.data(y)[i]);
        p.set(l, total, p.rows());
    }
    template <class Quantity> void backward(isogloss::Backward<T, Quantity>& p) {
        for (isogloss::Index i = 0; i < p.rows() * y.width; ++i)
            p.adjoint_data(y)[i] += p.chain(static_cast<T>(p.upstream(l)) * p.data(w)[i]);
    }
};

/// n numbers between -1 and 1, others for another seed.
inline Numbers numbers(isogloss::Index n, std::uint64_t seed) {
    const isogloss::Random random(seed, 99);
    Numbers v;
    for (isogloss::Index i = 0; i < n; ++i) v.push_back(2 * random.uniform(i) - 1);
    return v;
}

/// The numbers of a matrix view, row by row.
template <class View> Numbers flat(const View& view) {
    Numbers v;
    for (std::size_t i = 0; i < view.shape(0); ++i)
        for (std::size_t j = 0; j < view.shape(1); ++j) v.push_back(static_cast<double>(view(i, j)));
    return v;
}

/// Largest |a - b| / (1 + |b|); infinity when sizes differ or something is not finite.
template <class A, class B> double apart(const A& a, const B& b) {
    if (std::size(a) != std::size(b) || std::size(a) == 0) return std::numeric_limits<double>::infinity();
    double worst = 0;
    auto other = std::begin(b);
    for (const auto v : a) {
        const double expected = static_cast<double>(*other++),
                     d = std::abs(static_cast<double>(v) - expected);
        if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
        worst = std::max(worst, d / (1 + std::abs(expected)));
    }
    return worst;
}

/// Sets a parameter, row by row.
template <class T, class List> void set(isogloss::Graph<T>& g, const std::string& name, const List& values) {
    auto& p = g.parameter(name);
    if (std::ssize(values) != p.size())
        throw isogloss::UsageError(
            isogloss::message("set ", name, ": ", std::size(values), " values for ", p.size()));
    std::transform(std::begin(values), std::end(values), p.value, [](auto v) { return static_cast<T>(v); });
}
template <class T>
void set(isogloss::Graph<T>& g, const std::string& name, std::initializer_list<double> values) {
    set(g, name, Numbers(values));
}

/// The gradient of a parameter.
template <class T> Numbers gradient(isogloss::Graph<T>& g, const std::string& name) {
    return flat(g.gradient(g.weight(name)));
}

/// A sequence inside a node, by its full name.
template <class T> isogloss::Seq<T> sequence(isogloss::Graph<T>& g, const std::string& name) {
    return g.sequence(name);
}

/// What the first network on a sparse graph has published of itself.
template <class T> const isogloss::EdgeRecord<T>& edge_record(isogloss::Graph<T>& g) {
    return *isogloss::graph::Inspect::store(g).template all<isogloss::EdgeRecord<T>>().at(0);
}

/// The mask [groups, B, width] that a node has drawn in the last pass, by its full name; empty where none is
/// active.
template <class T> Numbers mask(isogloss::Graph<T>& g, const std::string& name) {
    for (const auto& m : isogloss::graph::Inspect::store(g).masks)
        if (m.stream == isogloss::stream_of(name)) {
            if (!m.active) return {};
            return Numbers(m.value, m.value + m.groups * isogloss::graph::Inspect::store(g).batch * m.width);
        }
    return {};
}
