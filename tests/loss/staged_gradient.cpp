#include <isogloss/graph/graph.hpp>
#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/loss/staged_gradient.hpp>
#include <isogloss/loss/total.hpp>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

namespace {

std::vector<bool> staged, committed;  // what every stage() and commit() has said

// l = Σ_t h_t wᵀ, which stages its gradient where it may.
template <class T> struct Staging {
    struct Options {
        bool wanted = true;
    };
    Options options;
    detail::StagedGradient<T> gradient;
    Seq<T> h;
    Weight<T> w;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Seq<T> sequence, Weight<T> weight) {
        h = sequence, w = weight;
        return l = s.loss();
    }
    void forward(Forward<T>& p) {
        T* adjoint = gradient.stage(p, options.wanted, 7, h, {{w, {}, {}}});
        staged.push_back(adjoint != nullptr);
        double total = 0;
        for (Index i = 0; i < p.rows() * h.width; ++i)
            total += double(p.data(h)[i]) * double(p.values(w).data[i % h.width]);
        p.set(l, total, p.rows());
        if (adjoint) write(p, adjoint);
    }
    void backward(Backward<T>& p) {
        committed.push_back(gradient.commit(p));
        if (!committed.back()) write(p, p.adjoint_data(h));
    }
    void write(Pass<T>& p, T* adjoint) {
        for (Index t = 0; t < p.rows(); ++t) {
            const auto [dw, beta] = gradient.weight(p, w);
            for (Index i = 0; i < h.width; ++i) {
                dw.data[i] = (beta == T(0) ? T(0) : dw.data[i]) + p.data(h)[t * h.width + i];
                adjoint[t * h.width + i] += p.values(w).data[i];
            }
        }
    }
};

using Said = std::vector<bool>;

template <class T> struct Case {
    using Condition = typename Parameter<T>::Condition;
    Graph<T> g{{.time = 2, .batch = 1}};
    Seq<T> h = g.input("h", 2);
    Weight<T> w = g.weight("w", 1, 2, uniform(1));
    Loss<T> l;
    const std::vector<T> in = {1, 2, 10, 20};
    explicit Case(bool wanted = true) : l(g.template add<Staging>("loss", {.wanted = wanted}, h, w)) {
        staged.clear(), committed.clear();
    }
    void forward() { g.forward(l, {h, in.data(), 2, 1}); }
    Condition condition() { return g.parameter("w").condition; }
    // Whether weight and hidden states have the gradient of so many passes.
    bool has(double times) {
        const Numbers w_now = flat(g.value(w));
        return gradient(g, "w") == Numbers{11 * times, 22 * times} &&
               flat(g.adjoint(h)) == Numbers{w_now[0], w_now[1], w_now[0], w_now[1]};
    }
};

}  // namespace

TEMPLATE_TEST_CASE("none, staged, committed", "[loss][staged_gradient]", float, double) {
    Case<TestType> c;
    c.forward();
    REQUIRE(c.condition() == Case<TestType>::Condition::staged);
    c.g.backward(c.l);
    REQUIRE(c.condition() == Case<TestType>::Condition::dense);
    REQUIRE(c.has(1));
    c.g.backward(c.l);  // there is nothing staged any more: it is computed, and added
    REQUIRE(c.has(2));
    REQUIRE(staged == Said{true});
    REQUIRE(committed == Said{true, false});
}

TEMPLATE_TEST_CASE("What is staged is committed before other losses add to it", "[loss][staged_gradient]",
                   float, double) {
    Case<TestType> c;
    Numbers h_expected = flat(c.g.value(c.w));  // of each of the two positions
    h_expected.insert(h_expected.end(), h_expected.begin(), h_expected.begin() + 2);
    SECTION("to the hidden states") {
        c.l = c.g.template add<TotalLoss>("total", {}, c.l,
                                          c.g.template add<ActivationPenalty>("penalty", {.size = 1}, c.h));
        c.forward();
        c.g.backward(c.l);
        REQUIRE(committed == Said{true});
        for (std::size_t i = 0; i < 4; ++i) h_expected[i] = double(TestType(h_expected[i]) + c.in[i]);
        REQUIRE(flat(c.g.adjoint(c.h)) == h_expected);
        REQUIRE(gradient(c.g, "w") == Numbers{11, 22});
    }
    SECTION("to the weight") {
        const auto k = c.g.input("k", 2);
        c.l = c.g.template add<TotalLoss>("total", {}, c.l, c.g.template add<Staging>("other", {}, k, c.w));
        c.g.forward(c.l, {c.h, c.in.data(), 2, 1}, {k, c.in.data(), 2, 1});
        c.g.backward(c.l);
        REQUIRE(staged == Said{true, false});
        REQUIRE(committed == Said{true, false});
        REQUIRE(flat(c.g.adjoint(c.h)) == h_expected);
        REQUIRE(gradient(c.g, "w") == Numbers{22, 44});
    }
}

TEMPLATE_TEST_CASE("What was written to since is not committed", "[loss][staged_gradient]", float, double) {
    Case<TestType> c;
    c.forward();
    SECTION("cleared") { c.g.parameter("w").clear_gradient(); }
    SECTION("made dense, as by somebody who adds to it") { c.g.parameter("w").dense_gradient(); }
    SECTION("staged by another") { c.g.parameter("w").staged_by = 8; }
    c.g.backward(c.l);
    REQUIRE(committed == Said{false});
    REQUIRE(c.has(1));
}
