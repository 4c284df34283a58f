// A step that cannot be finished on rows held at norm 1 moves nothing.
#include <isogloss/isogloss.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

/// A head over a table of unit rows behind a linear layer, after a backward pass.
struct Trained {
    Graph<double> g{{.time = 3, .batch = 1}};
    Weight<double> E = g.weight("E", 4, 3, uniform(0.5), {.unit_rows = true});
    Seq<double> u = g.input("u", 2);
    Tokens y = g.tokens("y", 4);
    Loss<double> l = g.add<CrossEntropy>(
        "loss", {}, g.add<TiedSoftmax>("o", {}, g.add<Linear>("h", {.units = 3}, u), E), y);

    Trained() {
        const double values[] = {1, -2, 0.5, 0.3, -1, 2};
        const std::vector<Token> targets = {0, 2, 1};
        g.forward(l, {u, values, 3, 1}, {y, TokenBlock{targets.data(), 3, 1}});
        g.backward(l);
    }
    std::vector<double> all(bool gradients) {
        std::vector<double> v;
        for (auto* p : g.parameters()) {
            const double* from = gradients ? p->dense_gradient().data : p->value;
            v.insert(v.end(), from, from + p->size());
        }
        return v;
    }
    template <class Update> void refuses(Update& update) {
        const auto before = all(false), gradients = all(true);
        REQUIRE_THROWS_MATCHES(update.step(), NumericError,
                               says("'E'", "row 0", "nothing was changed", "Lower the learning rate"));
        CHECK(all(false) == before);
        CHECK(all(true) == gradients);
    }
};

}  // namespace

TEST_CASE("A step too long for rows held at norm 1 moves nothing", "[update][unit_rows][errors]") {
    Trained m;
    Sgd<double> sgd(m.g.parameters(), {.rate = 1e300});
    m.refuses(sgd);
    Sgd<double> decayed(m.g.parameters(), {.rate = 1e300, .weight_decay = 0.5});
    m.refuses(decayed);
    Riemannian<double> riemannian(m.g, "*", {.rate = 1e300});
    m.refuses(riemannian);

    Adam<double> adam(m.g.parameters(), {.rate = 1e300});
    m.refuses(adam);
    m.refuses(adam);
    adam.rate(0.01);  // as if nothing had been tried: the first step of Adam
    Trained other;
    Adam<double> untouched(other.g.parameters(), {.rate = 0.01});
    CHECK(adam.step() == untouched.step());
    CHECK(m.all(false) == other.all(false));
}

TEST_CASE("A step to zero on a row held at norm 1 moves nothing, a looked-up row alone counts",
          "[update][unit_rows][errors]") {
    Graph<double> g({.time = 1, .batch = 1});
    const auto E = g.weight("E", 3, 2, constant(1), {.unit_rows = true});
    const auto x = g.tokens("x", 3);
    g.add<Embedding>("e", {}, x, E);
    auto& p = g.parameter("E");
    Sgd<double> sgd(g.parameters(), {.rate = 1, .divisor = Divisor::none});
    p.value[0] = p.value[1] = 0;              // a row without a direction, which no step touches
    p.gradient_row(2)[0] = 0.5 * p.value[4];  // (½, 1) before the row is rescaled
    sgd.step();
    CHECK(g.value(E)(2, 0) == Approx(std::sqrt(0.2)));
    double* row = p.gradient_row(2);
    row[0] = p.value[4], row[1] = p.value[5];
    REQUIRE_THROWS_MATCHES(sgd.step(), NumericError, says("row 2 of 'E'", "norm 0"));
    CHECK(g.value(E)(2, 0) == Approx(std::sqrt(0.2)));
}
