// Sequences within a node as inputs of other nodes.
#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/qrnn.hpp>
#include <isogloss/node/rhn.hpp>
#include <isogloss/node/rnn.hpp>

#include "catch.hpp"
#include "laws.hpp"

using namespace isogloss;

TEST_CASE("A penalty on a sequence within a cell has the right gradient", "[node][laws]") {
    const std::string name =
        GENERATE("lstm.c", "lstm.h", "gru.reset", "gru.h", "rnn.h", "rhn.s1", "qrnn.c", "qrnn.h", "net.V");
    CAPTURE(name);
    REQUIRE(laws([&](auto& g) {
                const auto x = g.input("x", 3);
                if (name.starts_with("lstm")) g.template add<Lstm>("lstm", {.units = 4}, x);
                if (name.starts_with("gru")) g.template add<Gru>("gru", {.units = 4}, x);
                if (name.starts_with("rnn")) g.template add<Rnn>("rnn", {.units = 4}, x);
                if (name.starts_with("rhn")) g.template add<Rhn>("rhn", {.units = 4, .depth = 2}, x);
                if (name.starts_with("qrnn")) g.template add<Qrnn>("qrnn", {.units = 4}, x);
                if (name.starts_with("net")) g.template add<Glnn>("net", {.units = 4, .edges = 2}, x);
                return g.template add<ActivationPenalty>("penalty", {.size = 1}, g.sequence(name));
            }) == "");
}

TEST_CASE("A sequence whose adjoint its node overwrites is refused as an input and can be read",
          "[node][errors]") {
    Graph<double> g({.time = 2, .batch = 2});
    const auto x = g.input("x", 3);
    const auto lstm = g.add<Lstm>("lstm", {.units = 4}, x);
    g.add<Gru>("gru", {.units = 4}, x);
    g.add<Rnn>("rnn", {.units = 4}, x);
    g.add<Rhn>("rhn", {.units = 4, .depth = 2}, x);
    g.add<Qrnn>("qrnn", {.units = 4}, x);
    for (const std::string name : {"lstm.z", "lstm.tanh_c", "gru.gates", "gru.candidate", "rnn.z", "rhn.z1",
                                   "rhn.z2", "qrnn.z", "qrnn.x"}) {
        CAPTURE(name);
        REQUIRE_THROWS_MATCHES(g.add<ActivationPenalty>("penalty", {.size = 1}, g.sequence(name)), UsageError,
                               says("node 'penalty'"));
    }
    const std::vector<double> in(12, 0.5);
    g.forward(lstm, {x, in.data(), 2, 2});
    CHECK(g.value(g.sequence("lstm.z"))(0, 0) != 0);
}

namespace {

/// Has two masks.
template <class T> struct MasksTaken {
    struct Options {
        std::string second = "m";
    };
    Options options;

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        s.mask("m", x.width, 0.5), s.mask(options.second, x.width, 0.5);
        return x;
    }
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

/// Gives its bias the name of its units.
template <class T> struct NameTaken {
    struct Options {};
    Options options;
    Units<T> b;

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        b = s.units("b", 2).from("W", x).bias("b");
        return b;
    }
    void forward(Forward<T>& p) { p.affine(b); }
    template <class Quantity> void backward(Backward<T, Quantity>& p) { p.affine_backward(b); }
};

/// h_t = tanh(r_t), r_t = x_t W: r is opened on request.
template <class T> struct Inner {
    struct Options {
        bool open = false;
    };
    Options options;
    Units<T> r;
    Seq<T> h;

    Seq<T> setup(Setup<T>& s, Seq<T> x) {
        h = s.sequence("h", 2);
        r = s.units("r", 2).from("W", x);
        if (options.open) s.open(r);
        return h;
    }
    void forward(Forward<T>& p) {
        p.affine(r);
        noalias(p.at(h)) = tanh(p.at(r));
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        noalias(p.adjoint(r)) += p.chain(1 - square(p.at(h))) * p.adjoint(h);
        p.affine_backward(r);
    }
};

}  // namespace

TEST_CASE("A node's own sequences are internal unless it returns or opens them", "[node][laws][errors]") {
    const auto on = [](bool open, const std::string& name) {
        return [=](auto& g) {
            g.template add<Inner>("cell", {.open = open}, g.input("x", 3));
            return g.template add<ActivationPenalty>("penalty", {.size = 1}, g.sequence(name));
        };
    };
    REQUIRE(laws(on(false, "cell.h")) == "");
    REQUIRE(laws(on(true, "cell.r")) == "");
    Graph<double> g({});
    REQUIRE_THROWS_AS(on(false, "cell.r")(g), UsageError);
}

TEST_CASE("The name of units is that of a sequence of units", "[node][errors]") {
    Graph<double> g({});
    const auto x = g.input("x", 3);
    REQUIRE_THROWS_AS(g.add<NameTaken>("cell", {}, x), UsageError);
}

TEST_CASE("Two masks of one name, which would draw the same numbers, are refused", "[node][errors]") {
    Graph<double> g({});
    const auto x = g.input("x", 3);
    REQUIRE_THROWS_AS(g.add<MasksTaken>("drop", {}, x), UsageError);
    g.add<MasksTaken>("drop", {.second = "other"}, x);
}
