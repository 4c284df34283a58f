/// @file check.hpp  The laws of a node, for the library's tests and for your own nodes and losses.
///
///     std::string broken = check::laws([](auto& g) {
///         auto x = g.input("x", 3);
///         return check::probe(g, g.template add<MyCell>("cell", {.units = 4}, x));
///     });
///     // empty when every law holds, otherwise one line for each that does not
#pragma once

#include <cmath>
#include <cstring>
#include <isogloss/graph/graph.hpp>
#include <isogloss/update/sgd.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace isogloss::check {

/// l = Σ c_tbj y_tbj with fixed random c in (-1, 1): turns any sequence into a loss, so that a node can be
/// checked by itself. Its modulus is c².
template <class T> struct Probe {
    struct Options {};
    Options options;
    Seq<T> y;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Seq<T> sequence) {
        y = sequence;
        return l = s.loss();
    }
    // By row from the end of the segment, so that a longer capacity changes nothing.
    static T weight(Index i) { return static_cast<T>(2 * Random(7, 7).uniform(i) - 1); }
    void forward(Forward<T>& p) {
        double total = 0;
        for (Index r = 0; r < p.rows(); ++r) {
            double row = 0;
            for (Index j = 0; j < y.width; ++j)
                row += double(weight(r * y.width + j)) * double(p.data(y)[r * y.width + j]);
            p.by_token(l)[r] = row;
            total += row;
        }
        p.set(l, total, p.rows());
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        T* dy = p.adjoint_data(y);
        for (Index i = 0; i < p.rows() * y.width; ++i)
            dy[i] += p.chain(static_cast<T>(p.upstream(l)) * weight(i));
    }
};

/// Adds a Probe over a sequence.
template <class T, class Sequence> Loss<T> probe(Graph<T>& g, const Sequence& y) {
    return g.template add<Probe>("probe", {}, Seq<T>(y));
}

/// Counts allocations; a program that wants that law checked sets it to a function that returns how often
/// operator new has run (see tests/allocations.cpp).
inline std::size_t (*allocations)() = nullptr;

/// What laws() runs on.
struct LawOptions {
    Index time = 4, batch = 3;  ///< size of the pass; time even
    double tolerance =
        2e-7;  ///< on gradients against differences, relative to 1 + the gradient's largest entry
    double float_tolerance = 2e-3;  ///< on float against double gradients, relative to the gradient's length
    std::string hold = {};  ///< pattern of parameters left out of the difference quotients: those that the
                            ///< loss deliberately reads as constants
};

namespace inside {

/// A graph with random inputs and everything to run it.
template <class T> struct Subject {
    Graph<T> g;
    Loss<T> l;
    std::vector<std::vector<Token>> tokens;
    std::vector<std::vector<T>> values;
    std::vector<Feed<T>> feeds;
    Index time, batch;

    template <class Build> Subject(Build& build, Capacity capacity, Index t, Index b)
        : g(GraphOptions{.time = capacity.time, .batch = capacity.batch, .seed = 3}),
          l(build(g)),
          time(t),
          batch(b) {
        auto& store = g.store();
        int id = 0;
        for (const auto& x : store.tokens) {
            const Random random(11, stream_of(x.name));
            auto& block = tokens.emplace_back();
            for (Index i = 0; i < t * b; ++i) {
                const bool absent = !x.read_by_node && random.uniform(2 * i + 1) < 0.2;
                block.push_back(absent ? not_predicted
                                       : static_cast<Token>(random.below(2 * i, x.vocabulary)));
            }
            feeds.emplace_back(Tokens{id++, x.vocabulary, store.serial}, TokenBlock{block.data(), t, b});
        }
        id = 0;
        for (const auto& s : store.seqs) {
            if (s.node < 0) {
                const Random random(13, stream_of(s.name));
                auto& block = values.emplace_back();
                for (Index i = 0; i < t * b * s.width; ++i)
                    block.push_back(static_cast<T>(0.5 * random.normal(i)));
                feeds.emplace_back(Seq<T>{id, s.width, store.serial}, block.data(), t, b);
            }
            ++id;
        }
    }

    double forward() {
        g.reset();
        g.training_step(5);
        return g.forward(l, std::span<const Feed<T>>(feeds));
    }
    void clear() {
        if (!g.store().parameters.empty()) g.parameters().clear_gradients();
    }
    /// All gradients one after the other: parameters, then inputs.
    std::vector<T> gradients() {
        forward();
        clear();
        forward();
        g.backward(l);
        return collect();
    }
    std::vector<T> collect() {
        std::vector<T> all;
        for (auto& p : g.store().parameters) {
            const auto m = p.dense_gradient();
            all.insert(all.end(), m.data, m.data + p.size());
        }
        for (std::size_t i = 0; i < g.store().seqs.size(); ++i)
            if (const auto& s = g.store().seqs[i]; s.node < 0) {
                const T* a = g.store().adjoint(static_cast<int>(i), 0);
                all.insert(all.end(), a, a + time * batch * s.width);
            }
        return all;
    }
    /// The numbers those gradients are with respect to.
    std::vector<T*> variables() {
        std::vector<T*> all;
        for (auto& p : g.store().parameters)
            for (Index i = 0; i < p.size(); ++i) all.push_back(p.value + i);
        for (auto& block : values)
            for (T& v : block) all.push_back(&v);
        return all;
    }
    void poison() {
        const T nan = std::numeric_limits<T>::quiet_NaN();
        for (auto& p : g.store().parameters) std::fill_n(p.gradient, p.size(), nan);
        for (auto& s : g.store().seqs)
            std::fill_n(s.adjoint[0], (s.lead + g.capacity().time) * g.capacity().batch * s.width, nan);
    }
};

template <class T> double length(const std::vector<T>& v) {
    double s = 0;
    for (const T x : v) s += double(x) * double(x);
    return std::sqrt(s);
}
template <class A, class B> double distance(const std::vector<A>& a, const std::vector<B>& b) {
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double s = 0;
    for (std::size_t i = 0; i < a.size(); ++i) s += std::pow(double(a[i]) - double(b[i]), 2);
    return std::isfinite(s) ? std::sqrt(s) : std::numeric_limits<double>::infinity();
}

/// Largest |difference quotient - gradient| over all variables, or over 60 of them picked at random.
template <class Build>
double worst_difference(Build& build, const LawOptions& o, bool training, double& largest) {
    Subject<double> s(build, {o.time, o.batch}, o.time, o.batch);
    s.g.training(training);
    const auto gradient = s.gradients();
    const auto variables = s.variables();
    std::vector<std::size_t> checked;
    std::size_t next = 0;
    for (const auto& p : s.g.store().parameters) {
        const std::size_t end = next + static_cast<std::size_t>(p.size());
        if (o.hold.empty() || !matches(o.hold, p.name))
            for (std::size_t i = next; i < end; ++i) checked.push_back(i);
        next = end;
    }
    for (; next < variables.size(); ++next) checked.push_back(next);
    const auto n = std::ssize(checked);
    double worst = 0;
    for (Index k = 0; k < std::min<Index>(n, 250); ++k) {
        const std::size_t i = checked[static_cast<std::size_t>(n <= 250 ? k : Random(17, 0).below(k, n))];
        double& v = *variables[i];
        const double at = v, h = 1e-4;
        const auto loss_at = [&](double x) {
            v = x;
            return s.forward();
        };
        // The four-point stencil: its error is of fourth order in h, so curvature is no excuse.
        const double quotient =
            (8 * (loss_at(at + h) - loss_at(at - h)) - (loss_at(at + 2 * h) - loss_at(at - 2 * h))) /
            (12 * h);
        v = at;
        worst = std::max(worst, std::abs(quotient - gradient[i]));
        largest = std::max(largest, std::abs(gradient[i]));
    }
    return std::isfinite(length(gradient)) ? worst : std::numeric_limits<double>::infinity();
}

}  // namespace inside

/// Checks a model, given as `build(Graph<T>&) -> Loss<T>` for float and double, against the laws:
/// 1. the gradient equals difference quotients, in training (masks held) and in evaluation;
/// 2. backward adds, and reads no memory it has not written;
/// 3. forward, backward and an update allocate nothing;
/// 4. a pass smaller than the capacity gives what a graph of that size gives;
/// 5. same seed, same bits;
/// 6. nothing is written beyond a block;
/// 7. the state is carried: two half passes are one whole pass, in evaluation;
/// 8. float agrees with double;
/// 9. a modulus, where every node carries one, is finite and not negative.
///
/// Returns one line for each broken law, nothing when all hold.
template <class Build> std::string laws(Build build, LawOptions o = {}) {
    using inside::Subject;
    std::string broken;
    const auto report = [&](const std::string& line) { broken += line + "\n"; };

    for (const bool training : {true, false}) {
        double largest = 0;
        const double worst = inside::worst_difference(build, o, training, largest);
        if (!(worst <= o.tolerance * (1 + largest)))
            report(message("gradient: differs from difference quotients by ", worst, " in ",
                           training ? "training" : "evaluation"));
    }

    Subject<double> a(build, {o.time, o.batch}, o.time, o.batch),
        b(build, {o.time, o.batch}, o.time, o.batch);
    const auto once = a.gradients();
    a.clear();
    a.poison();
    a.forward();
    a.g.backward(a.l);
    a.forward();
    a.g.backward(a.l);
    auto twice = a.collect();
    const std::size_t of_parameters = twice.size() - [&] {
        std::size_t n = 0;
        for (const auto& v : a.values) n += v.size();
        return n;
    }();
    for (std::size_t i = 0; i < of_parameters; ++i) twice[i] /= 2;
    if (!(inside::distance(once, twice) <= 1e-12 * (1 + inside::length(once))))
        report(
            "accumulation: two backward passes do not add up to twice the gradient, or stale memory was "
            "read");

    if (allocations) {
        std::optional<Sgd<double>> sgd;
        if (!a.g.store().parameters.empty()) sgd.emplace(a.g.parameters(), SgdOptions{.rate = 0, .clip = 1});
        const auto step = [&] {
            a.forward();
            a.g.backward(a.l);
            if (sgd) sgd->step();
        };
        step();
        const std::size_t before = allocations();
        step();
        if (const std::size_t count = allocations() - before; count != 0)
            report(message("allocation: a step allocated ", count, " times"));
    }

    {
        Subject<double> large(build, {o.time + 2, o.batch + 2}, o.time, o.batch);
        if (!(inside::distance(once, large.gradients()) <= 1e-12 * (1 + inside::length(once))))
            report("smaller batch: a graph with larger capacity gives other gradients");
        if (!large.g.guards_intact()) report("guards: something was written beyond a block");
    }
    if (const auto again = b.gradients();
        again.size() != once.size() ||
        std::memcmp(again.data(), once.data(), once.size() * sizeof(double)) != 0)
        report("determinism: the same seed gave other bits");
    if (!a.g.guards_intact()) report("guards: something was written beyond a block");

    if (o.time % 2 == 0) {
        const bool placed =
            b.g.store().losses[std::size_t(b.l.id)].name == "probe";  // weighs positions by place
        b.g.training(false);
        const double whole = b.forward();
        b.g.reset();
        double halves = 0;
        for (const Index part : {Index{0}, Index{1}}) {
            std::vector<Feed<double>> feeds = b.feeds;
            for (auto& f : feeds) {
                f.block.time = o.time / 2;
                if (f.values) f.values += part * o.time / 2 * o.batch * f.seq.width;
                else f.block.data += part * o.time / 2 * o.batch;
            }
            halves += b.g.forward(b.l, std::span<const Feed<double>>(feeds));
        }
        const auto carried = b.g.carried().values;
        b.forward();
        double apart = placed ? 0 : std::abs(whole - halves);
        const auto whole_carried = b.g.carried().values;
        for (std::size_t i = 0; i < carried.size(); ++i)
            apart += inside::distance(carried[i], whole_carried[i]);
        if (!(apart <= 1e-10 * (1 + std::abs(whole))))
            report(message("carrying: two half passes differ from a whole one by ", apart));
        b.g.training(true);
    }

    {
        Subject<float> f(build, {o.time, o.batch}, o.time, o.batch);
        const double apart = inside::distance(once, f.gradients());
        if (!(apart <= o.float_tolerance * (1e-3 + inside::length(once))))
            report(message("float: gradients differ from double by ", apart, " of ", inside::length(once)));
    }

    try {
        b.forward();
        b.g.template backward<Modulus>(b.l);
        for (std::size_t i = 0; i < b.g.store().seqs.size(); ++i) {
            const auto& s = b.g.store().seqs[i];
            const double* phi = b.g.store().adjoint(static_cast<int>(i), 1);
            for (Index k = 0; k < o.time * o.batch * s.width; ++k)
                if (!(phi[k] >= 0 && std::isfinite(phi[k]))) {
                    report(message("modulus: '", s.name, "' has ", phi[k]));
                    break;
                }
        }
        if (!b.g.guards_intact()) report("guards: the modulus pass wrote beyond a block");
    } catch (const UsageError&) {  // some node carries none, which is its right
    }
    return broken;
}

}  // namespace isogloss::check
