// What language_model builds from its options: masks, published sizes, and what it watches.
#include "../../../programs/language_model/health.hpp"
#include "../../../programs/language_model/log.hpp"
#include "../../../programs/language_model/presets.hpp"
#include "catch.hpp"

using namespace lm;

namespace {

Options small(const std::string& scheme) {
    Options o;
    o.layers = 2, o.units = {4}, o.scheme = scheme;
    o.keep = 0.5;
    return o;
}

// A model with the masks of one training pass.
struct Built {
    Graph g{{.time = 3, .batch = 2}};
    lm::Model model;
    double nats = 0;

    explicit Built(Options o) {
        settle(o, false);
        model = build(g, o, 6);
        const std::vector<ig::Token> x = {0, 1, 2, 3, 4, 5}, y = {1, 2, 3, 4, 5, 0};
        nats = g.forward(model.loss, {model.x, {x.data(), 3, 2}}, {model.y, {y.data(), 3, 2}});
    }
    // keep of a mask, read off its entries; 1 where there is no such mask or nothing is masked.
    double keep(const std::string& name) const {
        try {
            double most = 0;
            for (const float v : g.mask(name)) most = std::max(most, double(v));
            return most > 0 ? 1 / most : 0;
        } catch (const ig::UsageError&) {
            return 1;
        }
    }
};

const char* const places[] = {"embed.mask",       "lstm1.input_mask", "lstm1.mask",   "dropout1.mask",
                              "lstm2.input_mask", "lstm2.mask",       "dropout2.mask"};

}  // namespace

TEST_CASE("Each keep governs the masks that the help says, under every scheme", "[language_model]") {
    struct Case {
        std::string scheme;
        double input, state, output;  // 0: not given
        std::vector<double> expected;
    };
    for (const auto& [scheme, input, state, output, expected] : {
             Case{"tied", 0, 0, 0, {.5, 1, .5, 1, 1, .5, 1}},
             {"tied", .25, .75, 0, {.25, 1, .75, 1, 1, .75, 1}},
             {"gal", 0, 0, 0, {1, .5, .5, 1, .5, .5, .5}},
             {"gal", 0, .75, .25, {1, .75, .75, 1, .75, .75, .25}},
             {"recurrent", 0, 0, 0, {.5, 1, .5, .5, 1, .5, .5}},
             {"recurrent", .25, .75, .9, {.25, 1, .75, .25, 1, .75, .9}},
         }) {
        CAPTURE(scheme, input, state, output);
        Options o = small(scheme);
        if (input > 0) o.keep_input = input;
        if (state > 0) o.keep_state = state;
        if (output > 0) o.keep_output = output;
        const Built built(o);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            CAPTURE(places[i]);
            REQUIRE(built.keep(places[i]) == Approx(expected[i]));
        }
    }
}

TEST_CASE("A keep that a scheme cannot set apart is refused", "[language_model]") {
    Options o = small("tied");
    o.keep_output = 0.9;
    REQUIRE_THROWS_MATCHES(settle(o, false), ig::UsageError,
                           says("--keep-output is 0.9", "--keep-state, 0.5", "recurrent"));
    o.keep_output = 0.5;
    settle(o, false);
    o = small("gal");
    o.keep_input = 0.9;
    REQUIRE_THROWS_MATCHES(settle(o, false), ig::UsageError,
                           says("--keep-input is 0.9", "--keep-state, 0.5", "recurrent"));
}

TEST_CASE("The highway network of Zilly et al. has its size and its masks", "[language_model]") {
    Options o;
    o.cell = "rhn";
    o.layers = 1;
    o.depth = 10;
    o.units = {830};
    o.embedding = 830;
    o.scheme = "recurrent";
    o.keep = o.keep_words = 0.75;
    o.keep_input = o.keep_output = 0.25;
    o.head_bias = true;
    settle(o, false);
    Graph g({.time = 2, .batch = 2});
    const lm::Model model = build(g, o, 10000);
    // E, W, R1 ... R10, b1 ... b10, and a bias for each word.
    REQUIRE(g.parameters().elements() == 10'000 * 830 + 830 * 1660 + 10 * (830 * 1660 + 1660) + 10'000);
    const std::vector<ig::Token> x = {0, 1, 2, 3}, y = {1, 2, 3, 4};
    g.forward(model.loss, {model.x, {x.data(), 2, 2}}, {model.y, {y.data(), 2, 2}});
    const auto most = [&](const char* name) {
        const auto m = g.mask(name);
        return *std::max_element(m.begin(), m.end());
    };
    REQUIRE(most("embed.mask") == 4);                // 0.75 dropped
    REQUIRE(most("rhn1.mask") == Approx(1 / 0.75));  // 0.25 dropped
    REQUIRE(most("dropout1.mask") == 4);             // 0.75 dropped
    REQUIRE(g.parameter("rhn1.b10").value[829] == 0);
    REQUIRE(g.parameter("rhn1.b10").value[830] == -2);
}

TEST_CASE("The soft term is what the loss has beside the weighted cross-entropy", "[language_model]") {
    Options o = small("tied");
    o.keep = 1, o.temperature = 2, o.alpha = 3;
    const auto soft = [](const Options& options) {
        Built built(options);
        Health health;
        const double hard = options.loss == "mixture" ? 1 - *options.beta : 1;
        health.add(
            built.g.result(built.model.text).nats() - hard * built.g.result(built.model.text).cross_entropy(),
            double(built.g.result(built.model.text).predicted()), {});
        return health.soft_term();
    };
    const double with_alpha = soft(o);
    REQUIRE(with_alpha > 0);
    o.loss = "mixture", o.alpha.reset(), o.beta = 0.3;  // weight beta tau^2 V in place of alpha
    REQUIRE(soft(o) == Approx(with_alpha * 0.3 * 4 * 6 / 3).epsilon(1e-6));
    o.loss = "ce";
    REQUIRE(soft(o) == 0);
}

TEST_CASE("Health adds up steps, and starts anew with an epoch", "[language_model]") {
    Health health;
    for (const double norm : {1., 5., 3.}) health.add(0, 6, {norm, norm > 2});
    REQUIRE(health.mean_norm() == 3);
    REQUIRE(health.largest == 5);
    REQUIRE(health.clipped_share() == Approx(2. / 3));
    health.next(1.5);
    REQUIRE(
        (health.steps == 0 && health.mean_norm() == 0 && health.largest == 0 && health.validation == 1.5));

    const std::vector<float> table = {1, 2, 0, -3, 1, 1};
    const auto longest = longest_row({table.data(), 3, 2});
    REQUIRE((longest.square == 9 && longest.word == 1));
}

TEST_CASE("A training stops for want of a better epoch, or where it runs away", "[language_model]") {
    Options o;
    const double nan = std::numeric_limits<double>::quiet_NaN(), best = 4, doubled = best + std::log(2);
    o.patience = 2, o.runaway = 2;
    constexpr ig::Index types = 50;
    const double unusable = std::log(1000. * types), infinite = std::numeric_limits<double>::infinity();
    // The first epoch to do, the best one, the best loss, the last one.
    REQUIRE(stop_of(o, 1, 0, infinite, nan, types) == Stop::none);
    REQUIRE(stop_of(o, 7, 5, best, best + 0.1, types) == Stop::none);      // one epoch without a best
    REQUIRE(stop_of(o, 8, 5, best, best + 0.1, types) == Stop::patience);  // two
    REQUIRE(stop_of(o, 6, 5, best, nan, types) == Stop::none);
    REQUIRE(stop_of(o, 7, 5, best, doubled - 1e-9, types) == Stop::none);
    REQUIRE(stop_of(o, 7, 5, best, doubled + 1e-9, types) == Stop::runaway);
    // Without a best to compare it with.
    REQUIRE(stop_of(o, 2, 0, infinite, unusable - 1e-9, types) == Stop::none);
    REQUIRE(stop_of(o, 2, 0, infinite, unusable + 1e-9, types) == Stop::runaway);
    REQUIRE(stop_of(o, 2, 0, infinite, infinite, types) == Stop::runaway);
    o.patience = 0, o.runaway = 0;
    REQUIRE(stop_of(o, 100, 5, best, 10 * best, types) == Stop::none);
    REQUIRE(stop_of(o, 100, 5, best, 1000, types) == Stop::runaway);  // exp(1000) is infinite
}

TEST_CASE("A word in the log stays in its field", "[language_model]") {
    REQUIRE(csv_field("the") == "the");
    REQUIRE(csv_field(",") == "\",\"");
    REQUIRE(csv_field("\"") == "\"\"\"\"");
    REQUIRE(csv_field("\n") == "\\x0A");
}

TEST_CASE("Penalties, masks and dropped words are those of their options", "[language_model]") {
    Options o = small("recurrent");
    o.keep = 1, o.keep_between = 0.25, o.ar = 2, o.tar = 3, o.loss = "ce", o.init = 1;
    Built built(o);
    REQUIRE(built.keep("dropout1.mask") == Approx(0.25));
    REQUIRE(built.keep("embed.mask") == 1);
    const auto h = built.g.value(built.g.sequence("dropout2.y"));
    double size = 0, change = 0;
    for (std::size_t r = 0; r < 6; ++r)  // three steps of two columns
        for (std::size_t i = 0; i < 4; ++i) {
            const double now = h(r, i), before = r < 2 ? 0 : h(r - 2, i);
            size += now * now, change += (now - before) * (now - before);
        }
    REQUIRE(built.nats - built.g.result(built.model.text).nats() ==
            Approx((2 * size + 3 * change) / 4).epsilon(1e-5));
    o.keep_words = 1e-9;
    Built none(o);
    for (const float v : none.g.value(none.g.sequence("embed.y"))) REQUIRE(v == 0);
}

TEST_CASE("An adversary raises the loss of a training pass alone", "[language_model]") {
    Options o = small("tied");
    o.keep = o.init = 1;
    o.loss = GENERATE("ce", "al");
    CAPTURE(o.loss);
    const auto evaluated = [](Built& it) {
        const std::vector<ig::Token> x = {0, 1, 2, 3, 4, 5}, y = {1, 2, 3, 4, 5, 0};
        it.g.training(false);
        it.g.reset();
        return it.g.forward(it.model.loss, {it.model.x, {x.data(), 3, 2}}, {it.model.y, {y.data(), 3, 2}});
    };
    Built plain(o);
    o.adversarial = 0.5;
    Built moved(o);
    CHECK(moved.nats > 1.01 * plain.nats);
    CHECK(evaluated(moved) == evaluated(plain));
}
