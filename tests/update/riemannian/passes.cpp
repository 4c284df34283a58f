// Of which passes a Riemannian step takes its metric, and which it refuses.
#include <isogloss/check.hpp>
#include <isogloss/update/riemannian/dynamic.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>
#include <span>
#include <vector>

#include "networks.hpp"

TEST_CASE("A metric is of the pass that made the gradients, and of that alone",
          "[riemannian][update][errors]") {
    Map<> m;
    Riemannian<double> update(m.g, "map.*", {});
    SearchStep<double> search(m.g, "map.*", {}), plain(m.g.parameters());
    RiemannianDynamic<double> dynamic(m.g, m.g.parameters("map.*"), {.rest = {.rule = DynamicRule::sgd}});
    m.backward();
    m.backward();  // adds to the gradients
    const auto refused = says("the gradient of 'map.", "not that of one backward(loss)");
    REQUIRE_THROWS_MATCHES(update.step(), UsageError, refused);
    REQUIRE_THROWS_MATCHES(search.add(1), UsageError, refused);
    REQUIRE_THROWS_MATCHES(dynamic.collect(), UsageError, refused);
    plain.add(1);  // without a metric a sum over passes is a gradient like any other
    {
        Map<> stale;
        Riemannian<double> late(stale.g, "map.*", {});
        stale.backward();
        stale.g.forward(stale.l, {stale.x, stale.in.data(), Map<>::T, Map<>::B},
                        {stale.w, stale.weights.data(), Map<>::T, Map<>::B});
        REQUIRE_THROWS_MATCHES(late.step(), UsageError, says("since the last forward pass"));
    }
    std::vector<double> sums(static_cast<std::size_t>(update.sums()));
    update.take_sums(std::span<double>(sums));
    for (double& s : sums) s *= 2;  // of both, which are alike
    update.give_sums(std::span<const double>(sums));
    const double both = update.step();
    REQUIRE(both > 0);
    Map<> alone;
    Riemannian<double> one(alone.g, "map.*", {});
    alone.backward();
    REQUIRE(one.step() == Approx(both).epsilon(1e-12));

    // A layer that the last pass left out.
    Graph<double> g({.time = 2, .batch = 1});
    const auto u = g.input("u", 3);
    const auto y = g.tokens("y", 4);
    const auto a = g.add<CrossEntropy>("a", {}, g.add<Softmax>("left", {.vocabulary = 4}, u), y);
    g.add<CrossEntropy>("b", {}, g.add<Softmax>("right", {.vocabulary = 4}, u), y);
    Riemannian<double> heads(g, "*", {}), left(g, "left.*", {});
    const std::vector<double> in(6, 0.5);
    const std::vector<Token> next = {1, 2};
    g.forward(a, {u, in.data(), 2, 1}, {y, TokenBlock{next.data(), 2, 1}});
    g.backward(a);
    REQUIRE_THROWS_MATCHES(heads.step(), UsageError, says("'right.", "one backward(loss)"));
    REQUIRE(left.step() > 0);
}

TEST_CASE("Passes of several losses on weights of their own are told apart", "[riemannian][update][errors]") {
    Graph<double> g({.time = 1, .batch = 2});
    const auto x = g.input("x", 2);
    const auto of_left = g.add<check::Probe>("of.left", {}, g.add<Linear>("left", {.units = 2}, x));
    const auto of_right = g.add<check::Probe>("of.right", {}, g.add<Linear>("right", {.units = 2}, x));
    Riemannian<double> both(g, "*", {}), left(g, "left.*", {}), right(g, "right.*", {});
    const double values[] = {1, 2, 3, 4};
    const auto pass = [&](Loss<double> l) {
        g.forward(l, {x, values, 1, 2});
        g.backward(l);
    };
    pass(of_left), pass(of_right);  // sums over as many columns in both
    const Numbers before = flat(g.value(g.weight("left.W")));
    for (auto* update : {&both, &left})
        REQUIRE_THROWS_MATCHES(update->step(), UsageError, says("'left.", "since the last forward pass"));
    REQUIRE(flat(g.value(g.weight("left.W"))) == before);
    REQUIRE(right.step() > 0);
    g.parameters().clear_gradients();
    pass(of_left);
    REQUIRE(left.step() > 0);
    pass(of_right), pass(of_right);
    g.parameters().summed_over(2, 2);  // what to divide by is not what was summed
    REQUIRE_THROWS_MATCHES(right.step(), UsageError, says("'right.", "one backward(loss)"));
}

TEST_CASE("Moduli that stop above the weights of an RBPM metric are refused",
          "[riemannian][update][errors]") {
    Graph<double> g({.time = 1, .batch = 2});
    const auto x = g.input("x", 2);
    const auto low = g.add<Linear>("low", {.units = 2}, x);
    const auto l = check::probe(g, g.add<Linear>("high", {.units = 2}, low));
    Riemannian<double> all(g, "*", {.modulus = UnitModulus::rbpm});
    SearchStep<double> search(g, "*", {.modulus = UnitModulus::rbpm});
    const double values[] = {1, 2, 3, 4};
    g.forward(l, {x, values, 1, 2});
    g.backward(l);
    g.backward<Modulus>(l, low);
    std::vector<double> sums(static_cast<std::size_t>(all.sums()));
    const auto refused = says("backward<Modulus>(loss) as far");
    REQUIRE_THROWS_MATCHES(all.take_sums(sums), UsageError, refused);
    REQUIRE_THROWS_MATCHES(search.add(1), UsageError, refused);
    REQUIRE_THROWS_MATCHES(all.step(), UsageError, refused);
    g.backward<Modulus>(l);
    search.add(1);
    g.parameters().clear_gradients();
    g.forward(l, {x, values, 1, 2});
    g.backward(l, low);  // to the same place: what is below has neither
    g.backward<Modulus>(l, low);
    search.add(1);
}
