/// @file by_hand.hpp  Recurrent cells written out unit by unit: what the layers are compared with.
///
/// A unit is a number and a function of other units. Its derivatives are taken by complex steps,
/// f'(x) = Im f(x + i h) / h, exact to rounding and without a formula to get wrong. What flows back follows
/// from the definition alone:
///
///     flow(u) = upstream(u) + Σ over units v that u feeds:  d flow(v),  d = ∂v/∂u;  for moduli d² in place of d
#pragma once

#include <complex>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graphs.hpp"

namespace by_hand {

using isogloss::Index;
using Number = std::complex<double>;
using Function = std::function<Number(const std::vector<Number>&)>;
using Ids = std::vector<int>;

class Net {
public:
    /// A unit that no other feeds.
    int given(double value) {
        return unit({}, [value](const auto&) { return Number(value); });
    }
    Ids given(const Numbers& values) {
        Ids ids;
        for (const double v : values) ids.push_back(given(v));
        return ids;
    }
    /// A unit fed by units, each named once.
    int unit(Ids from, Function f) {
        std::vector<Number> v;
        for (const int u : from) v.push_back(units_[std::size_t(u)].value);
        units_.push_back({std::move(from), f, f(v).real(), 0});
        return static_cast<int>(units_.size()) - 1;
    }
    double value(int u) const { return units_[std::size_t(u)].value; }
    Numbers values(const Ids& ids) const {
        Numbers v;
        for (const int u : ids) v.push_back(value(u));
        return v;
    }
    void upstream(int u, double s) { units_[std::size_t(u)].upstream += s; }

    /// What flows back into these units: gradient, or modulus.
    Numbers flow(const Ids& ids, bool modulus) const {
        Numbers flow(units_.size());
        for (std::size_t v = units_.size(); v-- > 0;) {
            const auto& unit = units_[v];
            flow[v] += unit.upstream;
            std::vector<Number> at;
            for (const int u : unit.from) at.push_back(value(u));
            for (std::size_t k = 0; k < at.size(); ++k) {
                constexpr double step = 1e-30;
                at[k] += Number(0, step);
                const double d = unit.f(at).imag() / step;
                at[k] = value(unit.from[k]);
                flow[std::size_t(unit.from[k])] += (modulus ? d * d : d) * flow[v];
            }
        }
        Numbers wanted;
        for (const int u : ids) wanted.push_back(flow[std::size_t(u)]);
        return wanted;
    }

private:
    struct Unit {
        Ids from;
        Function f;
        double value, upstream;
    };
    std::vector<Unit> units_;
};

inline Number sigmoid(Number x) { return 1. / (1. + std::exp(-x)); }

/// A cell of a graph in its last pass: weights, masks, sizes, and the states before the first step.
struct Cell {
    std::function<double(const std::string&, Index, Index)> weight;  // name, row, column
    std::function<double(const std::string&, Index, Index, Index)>
        mask;  // name, group, column of the batch, unit
    Index time = 0, batch = 0, width = 0, units = 0;
    std::vector<Numbers> before;  // [B, n] each

    template <class T> Cell(isogloss::Graph<T>& g, const std::string& node, Index m, Index n)
        : width(m), units(n) {
        time = isogloss::graph::Inspect::store(g).time;
        batch = isogloss::graph::Inspect::store(g).batch;
        weight = [&g, node](const std::string& name, Index i, Index j) {
            const auto& p = g.parameter(node + "." + name);
            return static_cast<double>(p.value[i * p.cols + j]);
        };
        mask = [&g, node, b = batch](const std::string& name, Index group, Index column, Index unit) {
            for (const auto& r : isogloss::graph::Inspect::store(g).masks)
                if (r.stream == isogloss::stream_of(node + "." + name) && r.active)
                    return static_cast<double>(r.value[((group % r.groups) * b + column) * r.width + unit]);
            return 1.;
        };
    }

    /// The units at step t of a sequence [T, B, width] (or of one block, for t = 0).
    static Ids row(const Ids& ids, Index t, Index b, Index batch, Index width) {
        const auto first = ids.begin() + (t * batch + b) * width;
        return {first, first + width};
    }
};

/// Units of every position: [T, B, n] each, in the order of the layer's own sequences.
struct Layer {
    Ids x, z, candidate, c, h, y;
};

/// One term of an affine map: units, and what each is multiplied with.
using Term = std::pair<Ids, Numbers>;

inline int affine(Net& net, const std::vector<Term>& terms, double bias) {
    Ids from;
    Numbers by;
    for (const auto& [ids, weights] : terms) {
        from.insert(from.end(), ids.begin(), ids.end());
        by.insert(by.end(), weights.begin(), weights.end());
    }
    return net.unit(from, [by, bias](const std::vector<Number>& v) {
        Number sum = bias;
        for (std::size_t i = 0; i < v.size(); ++i) sum += by[i] * v[i];
        return sum;
    });
}

/// The term a W of unit j of gate k: masked inputs times a column of W.
inline Term term(const Cell& cell, const Ids& from, const char* weight, const char* mask, Index b, Index gate,
                 Index j, Index group) {
    Numbers by;
    for (Index i = 0; i < std::ssize(from); ++i)
        by.push_back(cell.weight(weight, i, gate * cell.units + j) * cell.mask(mask, group, b, i));
    return {from, by};
}

/// What goes up: h, or m ∘ h.
inline void go_up(Net& net, const Cell& cell, Layer& l, bool tied) {
    l.y = l.h;
    if (!tied) return;
    for (Index i = 0; i < std::ssize(l.h); ++i) {
        const double m = cell.mask("mask", 0, i / cell.units % cell.batch, i % cell.units);
        l.y[std::size_t(i)] = net.unit({l.h[std::size_t(i)]}, [m](const auto& v) { return m * v[0]; });
    }
}

inline Layer rnn(Net& net, const Cell& c, const Ids& x, bool tied) {
    Layer l;
    l.x = x;
    Ids state = net.given(c.before[0]);
    for (Index t = 0; t < c.time; ++t) {
        for (Index b = 0; b < c.batch; ++b)
            for (Index j = 0; j < c.units; ++j)
                l.z.push_back(
                    affine(net,
                           {term(c, c.row(l.x, t, b, c.batch, c.width), "W", "input_mask", b, 0, j, 0),
                            term(c, c.row(state, 0, b, c.batch, c.units), "U", "mask", b, 0, j, 0)},
                           c.weight("b", 0, j)));
        state.clear();
        for (const int z : c.row(l.z, t, 0, 1, c.batch * c.units))
            state.push_back(net.unit({z}, [](const auto& v) { return std::tanh(v[0]); }));
        l.h.insert(l.h.end(), state.begin(), state.end());
    }
    go_up(net, c, l, tied);
    return l;
}

/// How the rounds of a mogrifier are set.
struct Rounds {
    Index count = 0, rank = 0;
    bool own_masks = false;
};

/// x and h of column b of the batch after the rounds.
inline void mogrify(Net& net, const Cell& c, Rounds rounds, Index b, Ids& x, Ids& h) {
    for (Index i = 1; i <= rounds.count; ++i) {
        const bool odd = i % 2 == 1;
        const std::string name = isogloss::message(odd ? "Q" : "R", i);
        const std::string mask = rounds.own_masks ? name + "_mask" : odd ? "mask" : "none";
        Ids from = odd ? h : x, &scaled = odd ? x : h;
        const auto product = [&](const std::string& weight, const char* masked, Index j) {
            return affine(net, {term(c, from, weight.c_str(), masked, b, 0, j, 0)}, 0);
        };
        if (rounds.rank > 0) {
            Ids low;
            for (Index j = 0; j < rounds.rank; ++j) low.push_back(product(name + "_left", mask.c_str(), j));
            from = low;
        }
        Ids gates;
        for (Index j = 0; j < std::ssize(scaled); ++j)
            gates.push_back(rounds.rank > 0 ? product(name + "_right", "none", j)
                                            : product(name, mask.c_str(), j));
        for (std::size_t j = 0; j < scaled.size(); ++j)
            scaled[j] =
                net.unit({gates[j], scaled[j]}, [](const auto& v) { return 2. * sigmoid(v[0]) * v[1]; });
    }
}

inline Layer lstm(Net& net, const Cell& c, const Ids& x, bool tied, Rounds rounds = {}) {
    Layer l;
    const Index n = c.units;
    l.x = x;
    Ids state = net.given(c.before[0]), memory = net.given(c.before[1]);
    for (Index t = 0; t < c.time; ++t) {
        Ids next, next_memory;
        for (Index b = 0; b < c.batch; ++b) {
            Ids in = c.row(l.x, t, b, c.batch, c.width), back = c.row(state, 0, b, c.batch, n);
            mogrify(net, c, rounds, b, in, back);
            Ids z;
            for (Index k = 0; k < 4; ++k)
                for (Index j = 0; j < n; ++j)
                    z.push_back(affine(
                        net,
                        {term(c, in, "W", "input_mask", b, k, j, k), term(c, back, "U", "mask", b, k, j, k)},
                        c.weight("b", 0, k * n + j)));
            for (Index j = 0; j < n; ++j) {
                const auto gate = [&](Index k) { return z[std::size_t(k * n + j)]; };
                const int before = memory[std::size_t(b * n + j)];
                const int cell = net.unit({gate(0), gate(1), gate(2), before}, [](const auto& v) {
                    return sigmoid(v[1]) * v[3] + sigmoid(v[0]) * std::tanh(v[2]);
                });
                next_memory.push_back(cell);
                next.push_back(
                    net.unit({gate(3), cell}, [](const auto& v) { return sigmoid(v[0]) * std::tanh(v[1]); }));
            }
            l.z.insert(l.z.end(), z.begin(), z.end());
        }
        state = next;
        memory = next_memory;
        l.h.insert(l.h.end(), state.begin(), state.end());
        l.c.insert(l.c.end(), memory.begin(), memory.end());
    }
    go_up(net, c, l, tied);
    return l;
}

inline Layer gru(Net& net, const Cell& c, const Ids& x, bool tied, bool own_masks, bool after = false,
                 Rounds rounds = {}) {
    Layer l;
    const Index n = c.units;
    const char* candidate_mask = own_masks ? "candidate_mask" : "mask";
    l.x = x;
    Ids state = net.given(c.before[0]);
    for (Index t = 0; t < c.time; ++t) {
        Ids next;
        for (Index b = 0; b < c.batch; ++b) {
            Ids in = c.row(l.x, t, b, c.batch, c.width), back = c.row(state, 0, b, c.batch, n);
            const Ids kept = back;
            mogrify(net, c, rounds, b, in, back);
            Ids gates, reset;
            for (Index k = 0; k < 2; ++k)
                for (Index j = 0; j < n; ++j)
                    gates.push_back(affine(
                        net,
                        {term(c, in, "W", "input_mask", b, k, j, k), term(c, back, "U", "mask", b, k, j, k)},
                        c.weight("b", 0, k * n + j)));
            const auto product = [&](const Ids& from, Index j) {
                return term(c, from, "Uq", candidate_mask, b, 0, j, 0);
            };
            for (Index j = 0; j < n; ++j) {
                const int by_reset =
                    after ? affine(net, {product(back, j)}, c.weight("cq", 0, j)) : back[std::size_t(j)];
                reset.push_back(net.unit({gates[std::size_t(n + j)], by_reset},
                                         [](const auto& v) { return sigmoid(v[0]) * v[1]; }));
            }
            for (Index j = 0; j < n; ++j) {
                const int q = affine(net,
                                     {term(c, in, "Wq", "candidate_input_mask", b, 0, j, 0),
                                      after ? Term{{reset[std::size_t(j)]}, {1}} : product(reset, j)},
                                     c.weight("bq", 0, j));
                l.candidate.push_back(q);
                next.push_back(net.unit({gates[std::size_t(j)], q, kept[std::size_t(j)]}, [](const auto& v) {
                    return sigmoid(v[0]) * v[2] + (1. - sigmoid(v[0])) * std::tanh(v[1]);
                }));
            }
            l.z.insert(l.z.end(), gates.begin(), gates.end());
        }
        state = next;
        l.h.insert(l.h.end(), state.begin(), state.end());
    }
    go_up(net, c, l, tied);
    return l;
}

inline Layer rhn(Net& net, const Cell& c, const Ids& x, bool tied, Index depth) {
    Layer l;
    const Index n = c.units;
    l.x = x;
    Ids state = net.given(c.before[0]);
    for (Index t = 0; t < c.time; ++t)
        for (Index d = 1; d <= depth; ++d) {
            const std::string R = isogloss::message("R", d), bias = isogloss::message("b", d);
            Ids next;
            for (Index b = 0; b < c.batch; ++b) {
                const Ids in = c.row(l.x, t, b, c.batch, c.width), back = c.row(state, 0, b, c.batch, n);
                const auto sum = [&](Index k, Index j) {
                    std::vector<Term> terms = {term(c, back, R.c_str(), "mask", b, k, j, k)};
                    if (d == 1) terms.push_back(term(c, in, "W", "input_mask", b, k, j, k));
                    return affine(net, terms, c.weight(bias, 0, k * n + j));
                };
                Ids z;
                for (Index k = 0; k < 2; ++k)
                    for (Index j = 0; j < n; ++j) z.push_back(sum(k, j));
                for (Index j = 0; j < n; ++j)
                    next.push_back(net.unit({z[std::size_t(j)], z[std::size_t(n + j)], back[std::size_t(j)]},
                                            [](const auto& v) {
                                                const Number gate = sigmoid(v[1]);
                                                return std::tanh(v[0]) * gate + v[2] * (1. - gate);
                                            }));
                if (d == 1) l.z.insert(l.z.end(), z.begin(), z.end());
            }
            state = next;
            if (d == depth) l.h.insert(l.h.end(), state.begin(), state.end());
        }
    go_up(net, c, l, tied);
    return l;
}

inline Layer qrnn(Net& net, const Cell& c, const Ids& x, bool tied, Index window) {
    Layer l;
    const Index n = c.units;
    l.x = x;
    Ids memory = net.given(c.before[0]), past;
    if (window == 2) past = net.given(c.before[1]);
    past.insert(past.end(), x.begin(), x.end());
    for (Index t = 0; t < c.time; ++t) {
        Ids next;
        for (Index b = 0; b < c.batch; ++b) {
            const auto sum = [&](Index k, Index j) {
                std::vector<Term> terms = {
                    term(c, c.row(x, t, b, c.batch, c.width), "W", "input_mask", b, k, j, k)};
                if (window == 2)
                    terms.push_back(
                        term(c, c.row(past, t, b, c.batch, c.width), "V", "input_mask", b, k, j, k));
                return affine(net, terms, c.weight("b", 0, k * n + j));
            };
            Ids z;
            for (Index k = 0; k < 3; ++k)
                for (Index j = 0; j < n; ++j) z.push_back(sum(k, j));
            for (Index j = 0; j < n; ++j) {
                const int cell =
                    net.unit({z[std::size_t(j)], z[std::size_t(n + j)], memory[std::size_t(b * n + j)]},
                             [](const auto& v) {
                                 return sigmoid(v[1]) * v[2] + (1. - sigmoid(v[1])) * std::tanh(v[0]);
                             });
                next.push_back(cell);
                l.h.push_back(net.unit({z[std::size_t(2 * n + j)], cell},
                                       [](const auto& v) { return sigmoid(v[0]) * v[1]; }));
            }
            l.z.insert(l.z.end(), z.begin(), z.end());
        }
        memory = next;
    }
    go_up(net, c, l, tied);
    return l;
}

/// How far a cell of the library is from one by hand in a training pass that goes on from carried states.
struct Distance {
    double value = 0, gradient = 0, modulus = 0, unit_gradient = 0, unit_modulus = 0;
    double largest() const { return std::max({value, gradient, modulus, unit_gradient, unit_modulus}); }
};

/// Builds a cell named "cell" of 4 units over 3 inputs and compares it; `units` names its sequence of sums.
template <template <class> class Node, class ByHand>
Distance compare(typename Node<double>::Options options, const std::string& units, ByHand&& layer_by_hand) {
    constexpr Index T = 5, B = 2, m = 3, n = 4;
    isogloss::Graph<double> g({.time = T, .batch = B, .seed = 5});
    const auto x = g.input("x", m), w = g.input("w", n);
    options.units = n;
    options.init = isogloss::uniform(0.9);
    const isogloss::Seq<double> y = g.add<Node>("cell", options, x);
    const auto l = g.add<Dot>("loss", {}, w, y);
    const Numbers in = numbers(T * B * m, 1), weights = numbers(T * B * n, 2);

    g.forward(l, {x, numbers(T * B * m, 3).data(), T, B}, {w, weights.data(), T, B});
    const auto before = g.states().saved().values;
    g.forward(l, {x, in.data(), T, B}, {w, weights.data(), T, B});
    g.backward(l);
    g.template backward<isogloss::Modulus>(l);

    Net net;
    Cell cell(g, "cell", m, n);
    cell.before = before;
    const Layer layer = layer_by_hand(net, cell, net.given(in));
    for (std::size_t i = 0; i < weights.size(); ++i) net.upstream(layer.y[i], weights[i]);
    Distance d;
    d.value = apart(flat(g.value(y)), net.values(layer.y));
    d.gradient = apart(flat(g.adjoint(x)), net.flow(layer.x, false));
    d.unit_gradient = apart(flat(g.adjoint(sequence(g, "cell." + units))), net.flow(layer.z, false));
    for (std::size_t i = 0; i < weights.size(); ++i)  // a modulus starts from w²
        net.upstream(layer.y[i], weights[i] * weights[i] - weights[i]);
    d.modulus = apart(flat(g.modulus(x)), net.flow(layer.x, true));
    d.unit_modulus = apart(flat(g.modulus(sequence(g, "cell." + units))), net.flow(layer.z, true));
    return d;
}

}  // namespace by_hand
