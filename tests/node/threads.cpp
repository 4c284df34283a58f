// Recurrent layers whose batch is shared by threads: each part runs the whole loop over the steps alone.
#include "threads.hpp"

#include <isogloss/node/gru.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/qrnn.hpp>
#include <isogloss/node/rhn.hpp>
#include <isogloss/node/rnn.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

struct Size {
    Index T = 5, B = 13, n = 6;
};

// Two passes, the second from the state of the first, forward and back by either quantity: all that comes
// out.
template <template <class> class Cell, class S>
Numbers results(int count, typename Cell<S>::Options options, Size size) {
    const auto [T, B, n] = size;
    threads(count);
    options.units = n;
    Graph<S> g({.time = T, .batch = B});
    const auto x = g.input("x", n), w = g.input("w", n);
    const auto y = g.template add<Cell>("cell", options, x);
    const auto l = g.template add<Dot>("loss", {}, w, y);
    const Random random(7, 1);
    std::vector<S> in(std::size_t(T * B * n)), weights(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<S>(random.normal(Index(i)));
        weights[i] = static_cast<S>(random.normal(Index(in.size() + i)));
    }
    Numbers all;
    const auto keep = [&](const auto& values) {
        for (const double v : flat(values)) all.push_back(v);
    };
    for (int pass = 0; pass < 2; ++pass) {
        g.forward(l, {x, in.data(), T, B}, {w, weights.data(), T, B});
        g.backward(l);
        keep(g.value(y)), keep(g.adjoint(x));
        for (const auto* p : g.parameters())
            for (Index i = 0; i < p->size(); ++i) all.push_back(static_cast<double>(p->gradient[i]));
        g.template backward<Modulus>(l);
        keep(g.modulus(x));
        g.parameters().clear_gradients();
    }
    return all;
}

template <template <class> class Cell, class S>
void same(typename Cell<S>::Options options = {}, Size size = {}, std::vector<int> counts = {2, 3, 16}) {
    const Threads restored(1);
    for (const auto scheme : {DropoutScheme::tied, DropoutScheme::gal, DropoutScheme::recurrent}) {
        options.scheme = scheme;
        options.keep = std::is_same_v<Cell<S>, Qrnn<S>> && scheme == DropoutScheme::recurrent ? 1 : 0.7;
        const Numbers alone = results<Cell, S>(1, options, size);
        for (const int count : counts) {
            CAPTURE(count, static_cast<int>(scheme));
            REQUIRE(apart(results<Cell, S>(count, options, size), alone) < (sizeof(S) == 4 ? 1e-5 : 1e-13));
        }
    }
}

}  // namespace

TEMPLATE_TEST_CASE("Threads that share a batch compute what one computes", "[node][threads]", float, double) {
    same<Lstm, TestType>();
    same<Gru, TestType>();
    same<Gru, TestType>({.reset_after = true});
    same<Lstm, TestType>({.rounds = 1});
    same<Lstm, TestType>({.rounds = 5, .rank = 2});
    same<Gru, TestType>({.rounds = 2});
    same<Gru, TestType>({.reset_after = true, .rounds = 5, .rank = 2});
    same<Rnn, TestType>();
    same<Rhn, TestType>({.depth = 3});
    same<Qrnn, TestType>();
}

TEST_CASE("Threads that share the products and rows of every step of large cells compute what one computes",
          "[node][threads]") {
    // Matrices beyond a core's cache, rows of enough gates to share, and enough steps to pack the matrices.
    constexpr Size large{.T = 4, .B = 5, .n = 420};
    same<Lstm, float>({}, large, {3});
    same<Gru, float>({}, large, {3});
    same<Lstm, float>({.rounds = 2, .rank = 40}, large, {3});
    same<Rhn, float>({.depth = 3}, large, {3});
    same<Qrnn, float>({}, large, {3});
    same<Lstm, float>({}, {.T = 2, .B = 7, .n = 420}, {3});  // products of matrices that are not packed
}

TEST_CASE("In the portable mode rounds of a mogrifier have the same bits on any number of threads",
          "[node][threads]") {
    const Threads restored(1);
    portable(true);
    for (const Size size : {Size{}, Size{.T = 4, .B = 5, .n = 420}}) {
        const auto lstm = [&](int count) {
            return results<Lstm, float>(count, {.rounds = 3, .rank = 5}, size);
        };
        const auto gru = [&](int count) { return results<Gru, float>(count, {.rounds = 2}, size); };
        CHECK(lstm(1) == lstm(3));
        CHECK(gru(1) == gru(3));
    }
    portable(false);
}
