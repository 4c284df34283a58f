// A weight used as its transpose: terms of units, and a head tied through the projection of its input.
#include <isogloss/isogloss.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

/// h_t = tanh(k x_t W + k' h_{t-1} U + s_t S[y_t] + b), masks k of two groups, each matrix given, as it is or transposed.
template <class T> struct Cell {
    struct Options {
        bool turned = false;
        double keep = 1;
    };
    Options options;
    Units<T> z;
    Seq<T> h;

    Seq<T> setup(Setup<T>& s, Seq<T> x, Tokens y, Weight<T> W, Weight<T> U, Weight<T> S) {
        const Index n = options.turned ? W.rows : W.cols;
        const auto in = s.mask("in", x.width, options.keep, 2), back = s.mask("back", n, options.keep, 2);
        h = s.recurrent("h", n);
        auto u = s.units("z", n);
        if (options.turned)
            u.from(s.transposed(W), x, in)
                .from(s.transposed(U), s.previous(h), back)
                .from(s.transposed(S), x, y);
        else u.from(W, x, in).from(U, s.previous(h), back).from(S, x, y);
        z = u.bias("b");
        return h;
    }
    void forward(Forward<T>& p) {
        p.affine(z);
        p.over_batch([&](const auto& part) {
            for (const auto t : part.steps()) {
                part.affine(z, t);
                noalias(part.at(h, t)) = tanh(part.at(z, t));
            }
        });
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        p.over_batch([&](const auto& part) {
            for (const auto t : part.steps_back()) {
                noalias(part.adjoint(z, t)) = p.chain(1 - square(part.at(h, t))) * part.adjoint(h, t);
                part.affine_backward(z, t);
            }
        });
        p.affine_backward(z);
    }
};

Numbers turn(const Numbers& m, Index rows) {
    Numbers out;
    const Index cols = std::ssize(m) / rows;
    for (Index j = 0; j < cols; ++j)
        for (Index i = 0; i < rows; ++i) out.push_back(m[std::size_t(i * cols + j)]);
    return out;
}

/// A model tied through the projection of its input: V words, vectors of m numbers, n units.
template <class T> struct Tied {
    Graph<T> g;
    Tokens x = g.tokens("x", 9), y = g.tokens("y", 9);
    Logits<T> o;
    Loss<T> l;

    template <class... Weights> explicit Tied(GraphOptions options, const Weights&... weights)
        : g(options, weights...) {
        const auto E = g.weight("E", 9, 5, uniform(0.8), {.trained = false});
        auto h = g.template add<Linear>("project", {.units = 3, .bias = false, .init = uniform(0.8)},
                                        g.template add<Embedding>("embed", {}, x, E));
        h = g.template add<Rnn>("rnn", {.units = 3, .init = uniform(0.8)}, h);
        o = g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E, g.weight("project.W"));
        l = g.template add<CrossEntropy>("loss", {}, o, y);
    }
};

}  // namespace

TEMPLATE_TEST_CASE("Terms of transposed weights are those of the weights", "[node][transposed]", float,
                   double) {
    using T = TestType;
    constexpr Index time = 5, batch = 8, m = 3, n = 4, symbols = 3;
    const int threads_before = threads(), count = GENERATE(1, 2);
    const double keep = GENERATE(1., 0.6);  // without masks the matrices of steps are packed
    threads(count);
    const Numbers in = numbers(time * batch * m, 1), weights = numbers(time * batch * n, 2);
    const std::vector<T> x(in.begin(), in.end()), w(weights.begin(), weights.end());
    std::vector<Token> y;
    for (Index i = 0; i < time * batch; ++i) y.push_back(Token(i * i % symbols));
    const auto run = [&](bool turned) {
        Graph<T> g({.time = time, .batch = batch});
        const auto weight = [&](const char* name, Index rows, Index cols, std::uint64_t seed) {
            const Numbers values = numbers(rows * cols, seed);
            const auto handle =
                turned ? g.weight(name, cols, rows, constant(0)) : g.weight(name, rows, cols, constant(0));
            set(g, name, turned ? turn(values, rows) : values);
            return handle;
        };
        const auto W = weight("W", m, n, 3), U = weight("U", n, n, 4), S = weight("S", symbols * m, n, 5);
        const auto a = g.input("a", m), b = g.input("b", n);
        const auto in_y = g.tokens("y", symbols);
        const auto h = g.template add<Cell>("cell", {.turned = turned, .keep = keep}, a, in_y, W, U, S);
        const auto l = g.template add<Dot>("loss", {}, b, h);
        for (int pass = 0; pass < 2; ++pass)  // the second adds
            g.forward(l, {a, x.data(), time, batch}, {b, w.data(), time, batch},
                      {in_y, {y.data(), time, batch}}),
                g.backward(l);
        g.template backward<Modulus>(l);
        Numbers all = flat(g.value(h));
        for (const auto& more : {flat(g.adjoint(a)), flat(g.modulus(a)), gradient(g, "cell.b")})
            all.insert(all.end(), more.begin(), more.end());
        for (const char* name : {"W", "U", "S"}) {
            const Numbers d = gradient(g, name), as_plain = turned ? turn(d, n) : d;
            all.insert(all.end(), as_plain.begin(), as_plain.end());
        }
        return all;
    };
    const Numbers plain = run(false), turned = run(true);
    threads(threads_before);
    REQUIRE(apart(turned, plain) < (sizeof(T) == 4 ? 2e-5 : 1e-13));
}

TEST_CASE("A head tied through the projection of its input obeys the laws of a node",
          "[node][transposed][softmax]") {
    const bool trained = GENERATE(true, false);
    CAPTURE(trained);
    REQUIRE(laws([=](auto& g) {
                const auto E = g.weight("E", 7, 4, uniform(0.8), {.trained = trained});
                const auto h = g.template add<Linear>(
                    "project", {.units = 3}, g.template add<Embedding>("embed", {}, g.tokens("x", 7), E));
                const auto o = g.template add<TiedSoftmax>("head", {.bias = true},
                                                           g.template add<Rnn>("rnn", {.units = 3}, h), E,
                                                           g.weight("project.W"));
                return g.template add<CrossEntropy>("loss", {}, o, g.tokens("y", 7));
            }) == "");
}

TEST_CASE("A head tied through the projection of its input is E (h W')", "[node][transposed][softmax]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto E = g.weight("E", 3, 2, constant(0)), W = g.weight("W", 2, 3, constant(0));
    const auto h = g.input("h", 3);
    const auto o = g.add<TiedSoftmax>("head", {.bias = true}, h, E, W);
    set(g, "E", {1, 0, 0, 1, 1, 1});
    set(g, "W", {1, 0, 0, 0, 2, 0});
    set(g, "head.b", {0, 0, 0.5});
    const Numbers in = {0.3, 0.4, 9};  // projected: 0.3, 0.8
    g.forward(o, {h, in.data(), 1, 1});
    CHECK(apart(flat(g.head(o).logits()), Numbers{0.3, 0.8, 1.6}) < 1e-15);
    CHECK(g.parameters("head.*").size() == 1);
    const auto wide = g.input("wide", 4);
    CHECK_THROWS_MATCHES(g.add<TiedSoftmax>("other", {}, wide, E, W), UsageError,
                         says("'other'", "'W'", "[2, 3]", "[2, 4]"));
}

TEST_CASE("Packed weights hold a projection as it is and transposed", "[node][transposed][packed]") {
    Tied<float> model({.time = 4, .batch = 2});
    const std::vector<Token> x = {0, 3, 8, 2, 5, 5, 1, 7}, y = {3, 8, 2, 5, 5, 1, 7, 0};
    const auto nats = [&](auto& m) {
        m.g.training(false);
        m.g.reset();
        return m.g.forward(m.l, {m.x, {x.data(), 4, 2}}, {m.y, {y.data(), 4, 2}});
    };
    const double expected = nats(model);
    for (const auto precision : {Precision::full, Precision::int8, Precision::bf16}) {
        Tied<float> server({.time = 4, .batch = 2}, model.g.packed_weights(precision));
        CHECK(nats(server) == Approx(expected).epsilon(precision == Precision::full ? 1e-6 : 0.02));
    }
}

TEST_CASE("Transposed weights have no metric", "[node][transposed][riemannian]") {
    Graph<double> g({});
    const auto E = g.weight("E", 3, 2, constant(0)), W = g.weight("W", 2, 3, constant(0));
    g.add<TiedSoftmax>("head", {}, g.input("h", 3), E, W);
    CHECK_THROWS_MATCHES((Riemannian<double>(g, "W", {})), UsageError,
                         says("'head.projected'", "transposed", "train them by another update"));
}
