#include <algorithm>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/rhn.hpp>
#include <set>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

constexpr Index T = 4, B = 3, n = 5;

// Dropout on ones: the output is the mask.
struct Masks {
    Graph<double> g{{.time = T, .batch = B, .seed = 6}};
    Seq<double> x = g.input("x", n), w = g.input("w", n), y;
    Loss<double> l;
    Numbers ones = Numbers(T * B * n, 1), weights = numbers(T * B * n, 1);

    explicit Masks(Dropout<double>::Options options) {
        y = g.add<Dropout>("drop", options, x);
        l = g.add<Dot>("loss", {}, w, y);
    }
    Numbers draw() {
        g.forward(l, {x, ones.data(), T, B}, {w, weights.data(), T, B});
        return flat(g.value(y));
    }
};

// Whether all steps of a mask are the same.
bool constant_in_time(const Numbers& m) {
    for (std::size_t i = B * n; i < m.size(); ++i)
        if (m[i] != m[i - B * n]) return false;
    return true;
}

}  // namespace

TEST_CASE("Dropout obeys the laws of a node", "[node][dropout]") {
    const double keep = GENERATE(1., 0.6);
    const bool variational = GENERATE(false, true), below = GENERATE(false, true);
    CAPTURE(keep, variational, below);
    REQUIRE(laws([=](auto& g) {
                auto x = g.input("x", 3);
                if (below) x = g.template add<Linear>("map", {.units = 4}, x);
                return check::probe(
                    g, g.template add<Dropout>("drop", {.keep = keep, .variational = variational}, x));
            }) == "");
}

TEST_CASE("Variational dropout keeps its mask over the steps, plain dropout does not", "[node][dropout]") {
    const bool variational = GENERATE(false, true);
    CAPTURE(variational);
    Masks m({.keep = 0.5, .variational = variational});
    std::set<Numbers> drawn;
    for (int pass = 0; pass < 10; ++pass) {
        const Numbers mask = m.draw();
        for (const double v : mask) REQUIRE((v == 0 || v == 2));
        REQUIRE(constant_in_time(mask) == variational);
        drawn.insert(mask);
    }
    REQUIRE(drawn.size() == 10);
}

TEST_CASE("Dropout has the right mean and spread, and is the identity in evaluation", "[node][dropout]") {
    const bool variational = GENERATE(false, true);
    const double keep = GENERATE(0.3, 0.9, 1.);
    CAPTURE(variational, keep);
    Masks m({.keep = keep, .variational = variational});
    constexpr int passes = 2000;
    Numbers mean(T * B * n), square(T * B * n);
    for (int pass = 0; pass < passes; ++pass) {
        const Numbers mask = m.draw();
        for (std::size_t i = 0; i < mask.size(); ++i) {
            mean[i] += mask[i] / passes;
            square[i] += mask[i] * mask[i] / passes;
        }
    }
    const double deviation = std::sqrt((1 / keep - 1) / passes);
    for (const double v : mean) REQUIRE(v == Approx(1).margin(5 * deviation + 1e-12));
    for (const double v : square) REQUIRE(v == Approx(1 / keep).margin(5 * deviation / keep + 1e-12));
    m.g.training(false);
    REQUIRE(m.draw() == m.ones);
}

TEST_CASE("Dropout sends back what it let through, and its square for moduli", "[node][dropout]") {
    const bool variational = GENERATE(false, true), training = GENERATE(true, false);
    CAPTURE(variational, training);
    Masks m({.keep = 0.5, .variational = variational});
    m.g.training(training);
    const Numbers mask = m.draw();
    m.g.backward(m.l);
    m.g.backward<Modulus>(m.l);
    Numbers gradients, moduli;
    for (std::size_t i = 0; i < mask.size(); ++i) {
        gradients.push_back(mask[i] * m.weights[i]);
        moduli.push_back(gradients.back() * gradients.back());
    }
    REQUIRE(apart(flat(m.g.adjoint(m.x)), gradients) < 1e-15);
    REQUIRE(apart(flat(m.g.modulus(m.x)), moduli) < 1e-15);
}

TEST_CASE("A mask is a function of seed, step and node", "[node][dropout]") {
    const bool variational = GENERATE(false, true);
    Masks a({.keep = 0.5, .variational = variational}), b({.keep = 0.5, .variational = variational});
    const Numbers first = a.draw(), second = a.draw();
    b.g.training_step(1);
    REQUIRE(b.draw() == second);
    b.g.training_step(0);
    REQUIRE(b.draw() == first);

    Graph<double> g({.time = T, .batch = B, .seed = 7});
    const auto x = g.input("x", n);
    const auto y = g.add<Dropout>("drop", {.keep = 0.5, .variational = variational}, x);
    const auto z = g.add<Dropout>("other", {.keep = 0.5, .variational = variational}, x);
    g.forward(y, {x, a.ones.data(), T, B});
    const Numbers under_another_seed = flat(g.value(y));
    REQUIRE(under_another_seed != first);
    g.training_step(0);
    g.forward(z, {x, a.ones.data(), T, B});
    REQUIRE(flat(g.value(z)) != under_another_seed);
}

TEST_CASE("Masks are read by name, and are those that Random draws", "[node][dropout][graph]") {
    Graph<double> g({.time = 5, .batch = 4, .seed = 11});
    const Index V = 9;
    const auto x = g.tokens("x", V);
    const auto E = g.weight("E", V, 3, uniform(0.5));
    auto h = g.add<Embedding>("embed", {.keep = 0.6, .keep_words = 0.5}, x, E);
    const auto e = h;
    h = g.add<Lstm>("c1", {.units = 4, .keep = 0.7, .scheme = DropoutScheme::gal}, h);
    h = g.add<Gru>("c2", {.units = 2, .keep = 0.8, .scheme = DropoutScheme::gal}, h);
    h = g.add<Rhn>("c3", {.units = 3, .depth = 2, .keep = 0.9}, h);
    const auto all = g.add<Dropout>("c4", {.keep = 0.5, .variational = true}, h);
    const std::vector<Token> words = {0, 1, 2, 3, 3, 3, 2, 8};
    g.forward(all, {x, {words.data(), 4, 2}});  // smaller than the capacities
    g.forward(all, {x, {words.data(), 4, 2}});

    struct Expected {
        const char* name;
        double keep;
        Index groups, width;
    };
    for (const auto& [name, keep, groups, width] : {Expected{"embed.mask", 0.6, 1, 3},
                                                    {"c1.mask", 0.7, 4, 4},
                                                    {"c1.input_mask", 0.7, 4, 3},
                                                    {"c2.mask", 0.8, 2, 2},
                                                    {"c2.input_mask", 0.8, 2, 4},
                                                    {"c2.candidate_mask", 0.8, 1, 2},
                                                    {"c2.candidate_input_mask", 0.8, 1, 4},
                                                    {"c3.mask", 0.9, 1, 3},
                                                    {"c4.mask", 0.5, 1, 3}}) {
        CAPTURE(name);
        const auto mask = g.mask(name);
        REQUIRE(mask.shape()[0] == static_cast<std::size_t>(groups * 2));
        REQUIRE(mask.shape()[1] == static_cast<std::size_t>(width));
        const Random random(g.options().seed, stream_of(name), g.training_step());
        for (Index i = 0; i < groups * 2 * width; ++i)
            REQUIRE(mask.data()[i] == (random.uniform(i) < keep ? 1 / keep : 0));
    }
    // What comes out is what the masks say, with the masks of whole words drawn here.
    const auto m0 = g.mask("embed.mask"), m4 = g.mask("c4.mask");
    const Random of_words(g.options().seed, stream_of("embed"), g.training_step());
    for (std::size_t r = 0; r < 8; ++r)
        for (std::size_t j = 0; j < 3; ++j) {
            const auto b = r % 2;
            const double k = of_words.uniform(Index(b) * V + words[r]) < 0.5 ? 2 : 0;
            REQUIRE(g.value(e)(r, j) ==
                    Approx(m0(b, j) * k * g.value(E)(static_cast<std::size_t>(words[r]), j)).margin(1e-15));
            REQUIRE(g.value(all)(r, j) == m4(b, j) * g.value(h)(r, j));
        }

    g.add<Dropout>("plain", {.keep = 0.5}, h);  // no mask is that of all steps
    REQUIRE_THROWS_AS(g.mask("plain.mask"), UsageError);
    REQUIRE_THROWS_AS(g.mask("c5.mask"), UsageError);
    g.forward(e, {x, {words.data(), 4, 2}});
    REQUIRE_THROWS_AS(g.mask("c4.mask"), UsageError);
    g.training(false);
    g.forward(all, {x, {words.data(), 5, 1}});
    const auto ones = g.mask("c1.mask");
    REQUIRE(ones.shape()[0] == 4);
    REQUIRE(std::all_of(ones.begin(), ones.end(), [](double v) { return v == 1; }));
}
