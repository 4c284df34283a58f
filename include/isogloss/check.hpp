/// @file check.hpp  The laws of a node, for the library's tests and for your own nodes and losses.
///
///     std::string broken = check::laws([](auto& g) {
///         auto x = g.input("x", 3);
///         return check::probe(g, g.template add<MyCell>("cell", {.units = 4}, x));
///     });
///     // empty when every law holds, otherwise one line for each that does not:
///     // "gradient: training, cell.W[2, 1]: 0 against 0.41"
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <isogloss/check/subject.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/update/sgd.hpp>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace check {

namespace detail {
struct ProbeRecord {};  // published by probes
}

/// l = Σ c_tbj y_tbj with random c in (-1, 1) that are fixed for each place in the pass: turns any sequence into a
/// loss, so that a node can be checked by itself. Its modulus is c².
template <class T> struct Probe {
    struct Options {};
    Options options;
    Seq<T> y;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Seq<T> sequence) {
        y = sequence;
        s.publish(detail::ProbeRecord{});
        return l = s.loss();
    }
    // Indexed by row of the pass, so that a larger capacity changes nothing.
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

/// Returns the number of calls of operator new so far. A program sets it to such a function to have the third law
/// checked (tests/allocations.cpp has one); otherwise that law is skipped.
inline std::size_t (*allocations)() = nullptr;

/// A law that does not hold, and the place of the largest discrepancy.
struct Breach {
    std::string law = {};  ///< the name of its function in check::law
    /// Parameter or sequence and entry, "cell.W[2, 1]", "x[t, b, j]" in a sequence; or what was run.
    std::string where = {};
    double found = 0, expected = 0;  ///< at that place; both 0 if the law compares no numbers
    double allowed = 0;              ///< tolerance for the difference, or for the norm of all differences
};

/// One line: "gradient: training, cell.W[2, 1]: 0 against 0.41".
inline std::string to_string(const Breach& b) {
    if (b.found == b.expected && std::signbit(b.found) == std::signbit(b.expected))
        return message(b.law, ": ", b.where);
    std::string found = message(b.found), expected = message(b.expected);
    if (found == expected)  // apart by less than a message shows
        found = isogloss::detail::in_full(b.found), expected = isogloss::detail::in_full(b.expected);
    return message(b.law, ": ", b.where, ": ", found, " against ", expected);
}

namespace detail {

/// Nothing if all gradients together are within `allowed` of the expected ones, else the breach.
template <class T, class A, class B>
std::optional<Breach> compare(const char* law, Subject<T>& s, const std::vector<A>& found,
                              const std::vector<B>& expected, double allowed) {
    // An infinite entry makes the tolerance infinite, too.
    if (const double apart = distance(found, expected); std::isfinite(apart) && apart <= allowed)
        return std::nullopt;
    const std::size_t i = furthest(found, expected);
    return Breach{law, s.entry(i), double(found.at(i)), double(expected.at(i)), allowed};
}

/// Nothing if the first `count` gradients have the same bits as those expected, else the first that has not.
template <class T> std::optional<Breach> compare_bits(const char* law, Subject<T>& s, Index count,
                                                      const std::vector<double>& found,
                                                      const std::vector<double>& expected) {
    for (Index i = 0; i < count; ++i)
        if (std::bit_cast<std::uint64_t>(found.at(i)) != std::bit_cast<std::uint64_t>(expected.at(i)))
            return Breach{law, s.entry(std::size_t(i)), found[i], expected[i], 0};
    return std::nullopt;
}

}  // namespace detail

/// The laws, one function each, which returns nothing if the law holds. `build` makes the model, as for laws().
namespace law {

/// 1. The gradient equals difference quotients, in training (masks held fixed) and in evaluation.
template <class Build>
std::optional<Breach> gradient(Build& build, const LawOptions& o, const char* name = "gradient") {
    for (const bool training : {true, false}) {
        detail::Subject<double> s(build, o);
        s.g.training(training);
        const auto gradient = s.gradients();
        const auto variables = s.variables();
        auto tried = s.sample(o.hold);
        for (std::size_t i = 0; i < gradient.size(); ++i)
            if (!std::isfinite(gradient[i])) tried.push_back(i);
        double worst = -1, largest = 0;
        Breach breach{.law = name};
        for (const std::size_t i : tried) {
            const double quotient = s.quotient(*variables[i]),
                         apart = detail::distance(gradient[i], quotient);
            if (std::isfinite(gradient[i])) largest = std::max(largest, std::abs(gradient[i]));
            if (!(apart > worst)) continue;
            worst = apart;
            breach.where = (training ? "training, " : "evaluation, ") + s.entry(i);
            breach.found = gradient[i], breach.expected = quotient;
        }
        breach.allowed = o.tolerance * (1 + largest);
        if (!(worst <= breach.allowed)) return breach;
    }
    return std::nullopt;
}

/// 2. backward accumulates, and reads no memory it has not written.
template <class Build> std::optional<Breach> accumulation(Build& build, const LawOptions& o) {
    detail::Subject<double> s(build, o);
    auto expected = s.gradients();
    s.clear();
    s.poison();
    s.pass();
    s.pass();
    const double allowed = 1e-12 * (1 + detail::length(expected));
    for (Index i = 0; i < s.parameter_count(); ++i) expected[i] *= 2;
    return detail::compare("accumulation", s, s.collect(), expected, 2 * allowed);
}

/// 3. Forward, backward and an update allocate nothing. Checked only if check::allocations is set.
template <class Build> std::optional<Breach> allocation(Build& build, const LawOptions& o) {
    if (!allocations) return std::nullopt;
    detail::Subject<double> s(build, o);
    std::optional<Sgd<double>> sgd;
    if (s.parameter_count() > 0) sgd.emplace(s.g.parameters(), SgdOptions{.rate = 0, .clip = 1});
    std::size_t count = 0;
    for (int step = 0; step < 2; ++step) {
        const std::size_t before = allocations();
        s.pass();
        try {
            if (sgd) sgd->step();
        } catch (const NumericError&) {
            return std::nullopt;  // a gradient that is not finite, which the first law reports
        }
        count = allocations() - before;
    }
    if (count == 0) return std::nullopt;
    return Breach{"allocation", "calls of operator new in a step", double(count), 0, 0};
}

/// 4. A pass smaller than the capacity gives the same result as in a graph of that size, whatever a pass of full size
/// has left in the memory of the node.
template <class Build> std::optional<Breach> capacity(Build& build, const LawOptions& o) {
    LawOptions of_full = o;
    of_full.time += 2, of_full.batch += 2;
    detail::Subject<double> s(build, o), larger(build, o, 2), full(build, of_full);
    full.change_inputs();  // else what it leaves is what belongs there
    auto feeds = larger.feeds;
    for (std::size_t i = 0; i < feeds.size(); ++i)
        feeds[i].values = full.feeds[i].values, feeds[i].block = full.feeds[i].block;
    larger.g.training_step(5);
    larger.g.forward(larger.l, std::span<const Feed<double>>(feeds));
    larger.g.backward(larger.l);
    const auto expected = s.gradients();
    if (auto breach = detail::compare("capacity", s, larger.gradients(), expected,
                                      1e-12 * (1 + detail::length(expected))))
        return breach;
    const double loss = s.forward(), found = larger.forward(), allowed = 1e-12 * (1 + std::abs(loss));
    if (detail::distance(found, loss) <= allowed) return std::nullopt;
    return Breach{"capacity", "the loss after a larger pass", found, loss, allowed};
}

/// 5. The same seed gives bitwise the same result.
template <class Build> std::optional<Breach> determinism(Build& build, const LawOptions& o) {
    detail::Subject<double> s(build, o), again(build, o);
    const auto expected = s.gradients();
    return detail::compare_bits("determinism", s, std::ssize(expected), again.gradients(), expected);
}

/// 6. Nothing is written outside a block of memory.
template <class Build> std::optional<Breach> guards(Build& build, const LawOptions& o) {
    for (const Index spare : {0, 2}) {
        detail::Subject<double> s(build, o, spare);
        s.pass();
        try {
            s.modulus();
        } catch (const UsageError&) {
            // Which the ninth law reports.
        }
        if (!graph::Inspect::store(s.g).arena.guards_intact())
            return Breach{"guards", spare ? "written beyond a block in a pass smaller than the capacity"
                                          : "written beyond a block"};
    }
    return std::nullopt;
}

/// 7. State is carried: in evaluation two half passes equal one whole pass. Checked only if o.time is even.
template <class Build> std::optional<Breach> carrying(Build& build, const LawOptions& o) {
    if (o.time % 2 != 0) return std::nullopt;
    detail::Subject<double> s(build, o);
    s.g.training(false);
    double halves = 0;
    for (const Index part : {Index{0}, Index{1}}) {
        auto feeds = s.feeds;
        for (auto& f : feeds) {
            f.block.time = o.time / 2;
            if (f.values) f.values += part * o.time / 2 * o.batch * f.seq.width;
            else f.block.data += part * o.time / 2 * o.batch;
        }
        halves += s.g.forward(s.l, std::span<const Feed<double>>(feeds));
    }
    const auto found = s.g.states().saved().values;
    const double whole = s.forward();
    const auto expected = s.g.states().saved().values;
    Breach breach{"carrying", "loss", halves, whole, 1e-10 * (1 + std::abs(whole))};
    const bool placed = !graph::Inspect::store(s.g)
                             .template all<detail::ProbeRecord>()
                             .empty();  // by their place in the pass
    double total = placed ? 0 : detail::distance(halves, whole), worst = placed ? -1 : total;
    std::size_t i = 0;
    for (const auto& seq : graph::Inspect::store(s.g).seqs) {
        if (!seq.carried) continue;
        const double apart = detail::distance(found[i], expected[i]);
        total += apart;
        if (apart > worst) {
            const std::size_t k = detail::furthest(found[i], expected[i]);
            const auto at = static_cast<Index>(k);
            worst = apart;
            breach.where = message(seq.name, "[", at / seq.width, ", ", at % seq.width, "]");
            breach.found = found[i][k], breach.expected = expected[i][k];
        }
        ++i;
    }
    if (total <= breach.allowed) return std::nullopt;
    return breach;
}

/// 8. float agrees with double.
template <class Build> std::optional<Breach> precision(Build& build, const LawOptions& o) {
    detail::Subject<double> s(build, o);
    detail::Subject<float> in_float(build, o);
    const auto expected = s.gradients();
    return detail::compare("precision", s, in_float.gradients(), expected,
                           o.float_tolerance * (1e-3 + detail::length(expected)));
}

/// 9. A modulus, where every node has one, is finite and not negative, and its pass leaves all gradients as they are.
template <class Build> std::optional<Breach> modulus(Build& build, const LawOptions& o) {
    detail::Subject<double> s(build, o);
    const auto gradients = s.gradients();
    try {
        if (!s.modulus()) return std::nullopt;
    } catch (const UsageError& error) {
        return Breach{"modulus", std::string(error.text())};
    }
    if (auto breach = detail::compare_bits("modulus", s, s.parameter_count(), s.collect(), gradients)) {
        breach->where = "gradient of " + breach->where + " after a pass of moduli";
        return breach;
    }
    int id = 0;
    for (const auto& seq : graph::Inspect::store(s.g).seqs) {
        const double* phi = graph::Inspect::store(s.g).adjoint(id++, 1);
        for (Index k = 0; k < o.time * o.batch * seq.width; ++k)
            if (!(phi[k] >= 0 && std::isfinite(phi[k])))
                return Breach{"modulus", detail::place(seq, o.batch, k), phi[k], 0,
                              std::numeric_limits<double>::max()};
    }
    return std::nullopt;
}

/// 10. A graph for evaluation only, on the weights of a training graph, computes the same loss as that graph, also
/// after these weights have changed.
template <class Build> std::optional<Breach> evaluation(Build& build, const LawOptions& o) {
    detail::Subject<double> s(build, o), alone(build, o, 0, s.g.shared_weights());
    s.g.training(false);
    for (const char* where : {"the loss", "the loss after a change of weights"}) {
        const double expected = s.forward(), allowed = 1e-12 * (1 + std::abs(expected));
        try {
            const double found = alone.forward();
            if (!(detail::distance(found, expected) <= allowed))
                return Breach{"evaluation", where, found, expected, allowed};
        } catch (const UsageError& e) {
            return Breach{"evaluation", std::string(e.text())};
        }
        for (auto& p : graph::Inspect::store(s.g).parameters) kernel::scale(p.size(), 1.25, p.value);
    }
    return std::nullopt;
}

/// 11. Frozen weights have no gradient and change no other gradient: checked with every second weight frozen. The
/// forward pass of a node may refuse this with UsageError, which breaks no law; backward may not.
template <class Build> std::optional<Breach> freezing(Build& build, const LawOptions& o) {
    using Condition = Parameter<double>::Condition;
    const auto all = detail::Subject<double>(build, o).gradients();
    for (const std::size_t first : {0, 1}) {
        detail::Subject<double> s(build, o);
        s.poison();
        auto expected = all;
        auto rest = expected.begin();
        std::size_t number = 0;
        for (auto& p : graph::Inspect::store(s.g).parameters) {
            if (!p.is_trained()) continue;
            if (number++ % 2 == first) {
                p.trained = false;
                rest = expected.erase(rest, rest + p.size());
            } else {
                rest += p.size();
            }
        }
        try {
            s.forward();
        } catch (const UsageError&) {
            continue;
        }
        std::vector<double> found;
        try {
            found = s.gradients();
        } catch (const UsageError& error) {
            return Breach{"freezing", std::string(error.text())};
        }
        for (const auto& p : graph::Inspect::store(s.g).parameters)
            if (!p.trained && p.condition != Condition::empty)
                return Breach{"freezing", message(p.name, ", which is not trained, has a gradient")};
        if (auto breach =
                detail::compare("freezing", s, found, expected, 1e-12 * (1 + detail::length(expected))))
            return breach;
    }
    return std::nullopt;
}

/// 12. Backward adds to the adjoints of inputs and of the sequences that nodes return or open, and overwrites none,
/// and a loss multiplies its derivative by the weight of a total (Pass::upstream): the gradient law for half the loss
/// and a probe on each of them. Checked only if the first law holds.
template <class Build> std::optional<Breach> adding(Build& build, const LawOptions& o) {
    auto with_probes = [&](auto& g) {
        auto l = build(g);
        double of_loss = 0.5;
        const auto last = graph::Inspect::store(g).seqs.count();
        for (int id = 0; id < last; ++id) {
            const auto& s = graph::Inspect::store(g).seqs[id];
            if (s.internal) continue;
            const auto also = g.template add<Probe>(message("probe.of.", id), {}, g.sequence(s.name));
            l = g.template add<TotalLoss>(message("probe.sum.", id), {.weights = {of_loss, 1}}, l, also);
            of_loss = 1;
        }
        return l;
    };
    auto breach = gradient(with_probes, o, "adding");
    if (breach) breach->where += ", where backward overwrites an adjoint or a loss leaves out p.upstream";
    return breach;
}

}  // namespace law

/// A way to make a model, for float and for double, whatever its type: the laws are compiled for this one alone.
struct Model {
    template <class Build> explicit Model(Build build) : in_float(build), in_double(build) {}

    Loss<float> operator()(Graph<float>& g) const { return in_float(g); }
    Loss<double> operator()(Graph<double>& g) const { return in_double(g); }

    std::function<Loss<float>(Graph<float>&)> in_float;
    std::function<Loss<double>(Graph<double>&)> in_double;
};

/// The laws that a model breaks, in order; `build(Graph<T>&) -> Loss<T>` makes the model for float and double.
template <class Build> [[nodiscard]] std::vector<Breach> broken_laws(Build build, const LawOptions& o = {}) {
    if constexpr (!std::is_same_v<Build, Model>) {
        return broken_laws(Model(std::move(build)), o);
    } else {
        std::vector<Breach> broken;
        for (const auto& breach :
             {law::gradient(build, o), law::accumulation(build, o), law::allocation(build, o),
              law::capacity(build, o), law::determinism(build, o), law::guards(build, o),
              law::carrying(build, o), law::precision(build, o), law::modulus(build, o),
              law::evaluation(build, o), law::freezing(build, o)})
            if (breach) broken.push_back(*breach);
        if (broken.empty() || broken.front().law != "gradient")
            if (auto breach = law::adding(build, o)) broken.push_back(std::move(*breach));
        return broken;
    }
}

/// The same as text: one line for each broken law, empty when all hold.
template <class Build> [[nodiscard]] std::string laws(Build build, const LawOptions& o = {}) {
    if constexpr (!std::is_same_v<Build, Model>) {
        return laws(Model(std::move(build)), o);
    } else {
        std::string lines;
        for (const Breach& b : broken_laws(std::move(build), o)) lines += to_string(b) + "\n";
        return lines;
    }
}

}}}  // namespace isogloss::check
