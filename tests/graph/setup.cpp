// What the declarations of a node refuse.
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/lstm.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

namespace {

enum class Slip { none, late_sequence, shared_weight, choice, other_graph, plain_sequence, mask_fit };

/// y = x W, with a handle used before it is assigned, or another graph's.
template <class T> struct Slipping {
    struct Options {
        Slip slip = Slip::none;
    };
    Options options;
    Seq<T> x, y, late;
    Weight<T> a;
    Tokens symbols;

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        auto z = s.units("z", 2);
        if (options.slip == Slip::late_sequence) z.from("U", s.previous(late));
        if (options.slip == Slip::plain_sequence) z.from("U", s.previous(s.sequence("plain", 2)));
        if (options.slip == Slip::mask_fit) z.from("U", x, s.mask("m", 2, 0.5));
        if (options.slip == Slip::shared_weight) z.from(a, x);
        if (options.slip == Slip::choice) z.from("U", x, symbols);
        if (options.slip == Slip::other_graph) {
            Graph<T> other({});
            z.from("U", other.input("x", 3));
        }
        z.from("W", x);
        return y = s.sequence("y", 2);
    }
    void forward(Forward<T>&) {}
    void backward(Backward<T>&) {}
};

/// A loss that says nothing of a pass without targets, unless it is careful.
template <class T> struct Forgetful {
    struct Options {
        bool careful = false;
    };
    Options options;
    Tokens y;
    Loss<T> l;
    Loss<T> setup(Setup<T>& s, Seq<T>, Tokens targets) {
        y = targets;
        return l = s.loss();
    }
    void forward(Forward<T>& p) {
        Index count = 0;
        for (Index r = 0; r < p.rows(); ++r) count += p.data(y)[r] != not_predicted;
        if (count == 0 && !options.careful) return;
        for (Index r = 0; r < p.rows(); ++r)
            if (p.data(y)[r] != not_predicted) p.by_token(l)[r] = 2;
        p.set(l, 2. * static_cast<double>(count), count);
    }
    void backward(Backward<T>&) {}
};

}  // namespace

TEST_CASE("A loss that says nothing of a pass does not show those of the pass before",
          "[graph][setup][errors]") {
    for (const bool careful : {false, true}) {
        Graph<double> g({.time = 2, .batch = 1});
        const auto x = g.input("x", 1);
        const auto y = g.tokens("y", 3);
        const auto l = g.add<Forgetful>("loss", {.careful = careful}, x, y);
        const double in[] = {1, 2};
        const Token some[] = {1, 2}, none[] = {not_predicted, not_predicted}, last[] = {not_predicted, 2};
        const auto pass = [&](const Token* targets) {
            return g.forward(l, {x, in, 2, 1}, {y, {targets, 2, 1}});
        };
        REQUIRE(pass(some) == 4);
        if (!careful) {
            REQUIRE_THROWS_AS(pass(none), UsageError);
        } else {
            REQUIRE(pass(none) == 0);
            REQUIRE(g.result(l).predicted() == 0);
        }
        REQUIRE(pass(last) == 2);
        REQUIRE(g.result(l).by_token()(0, 0) == 0);
        REQUIRE(g.result(l).by_token()(1, 0) == 2);
    }
}

TEST_CASE("A handle that a node uses before it is assigned is refused by name", "[graph][setup][errors]") {
    for (const Slip slip : {Slip::late_sequence, Slip::shared_weight, Slip::choice, Slip::plain_sequence,
                            Slip::mask_fit, Slip::other_graph}) {
        Graph<double> g({});
        const auto x = g.input("x", 3);
        REQUIRE_THROWS_MATCHES(g.add<Slipping>("slip", {.slip = slip}, x), UsageError, says("node 'slip'"));
    }
    Graph<double> g({});
    REQUIRE_NOTHROW(g.add<Slipping>("slip", {}, g.input("x", 3)));
}

TEST_CASE("Initial weights that are no numbers are refused where they are declared",
          "[graph][setup][errors]") {
    Graph<float> g({});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    REQUIRE_THROWS_AS(g.weight("E", 2, 3, constant(1e39)), UsageError);
    const auto x = g.input("x", 3);
    REQUIRE_THROWS_AS(g.add<Lstm>("lstm", {.units = 2, .forget_bias = nan}, x), UsageError);
    REQUIRE_NOTHROW(g.weight("E", 2, 3, uniform(1)));  // nothing was left behind
}
