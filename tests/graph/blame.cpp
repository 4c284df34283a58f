// Names that files can hold, and whom an error names.
#include <isogloss/isogloss.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("Names that no file can hold are refused when they are given", "[graph][names][errors]") {
    Graph<float> g({});
    const auto weight = [&](const std::string& name) { g.weight(name, 1, 1, constant(0)); };
    for (const std::string bad : {"", "\xff", "a\xc3", "__metadata__", "\xed\xa0\x80", "a\rb", "a\x1b[31m",
                                  "a b", "a\x7f", "a/b", "a*"})
        REQUIRE_THROWS_AS(weight(bad), UsageError);
    REQUIRE_THROWS_AS(weight(std::string("a\0b", 3)), UsageError);
    REQUIRE_THROWS_AS(g.input("\xff", 1), UsageError);
    REQUIRE_THROWS_AS(g.tokens("\xff", 1), UsageError);
    const auto u = g.input("u", 1);
    REQUIRE_THROWS_AS(g.add<Linear>("__metadata__", {.units = 1}, u), UsageError);
    REQUIRE_THROWS_AS(weight("\x1b\n" + std::string(1000, 'x')), UsageError);
    weight("Gewicht\u00e4");
    weight("_metadata_");
    CHECK(g.parameters().size() == 2);
}

TEST_CASE("A loss that is not finite names what was not before", "[graph][errors]") {
    Graph<double> g({.time = 2, .batch = 2});
    const auto u = g.input("u", 3);
    const auto y = g.tokens("y", 4);
    const auto h = g.add<Linear>("l1", {.units = 2}, u);
    const auto o = g.add<Softmax>("o", {.vocabulary = 4}, h);
    const auto l = g.add<CrossEntropy>("loss", {}, o, y);
    std::vector<double> values(12, 0.5);
    const std::vector<Token> targets = {0, 1, 2, 3};
    const auto forward = [&] {
        return g.forward(l, {u, values.data(), 2, 2}, {y, TokenBlock{targets.data(), 2, 2}});
    };
    const auto message = [&] {
        try {
            forward();
        } catch (const NumericError& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    const auto has = [](const std::string& s, const char* part) { return s.find(part) != std::string::npos; };
    const std::uint64_t step = g.training_step();
    for (const bool checking : {false, true}) {
        g.checking(checking);
        values[8] = std::numeric_limits<double>::quiet_NaN();
        const std::string of_input = message();
        CAPTURE(of_input);
        CHECK(has(of_input, "The input 'u' is nan at step 1, batch row 0, unit 2"));
        CHECK_FALSE(has(of_input, "learning rate"));
        values[8] = 0.5;

        double& w = g.parameter("l1.W").value[3];
        const double good = w;
        w = std::numeric_limits<double>::infinity();
        const std::string of_weight = message();
        CAPTURE(of_weight);
        CHECK(has(of_weight, "The weight 'l1.W' is inf at row 1, column 1"));
        w = good;
        CHECK(std::isfinite(forward()));
    }
    CHECK(g.training_step() == step + 2);  // only the passes that succeeded are counted
    g.checking(false);
    g.parameter("o.b").value[0] = 1e308;
    g.parameter("o.b").value[1] = -1e308;  // finite, but their difference is not
    CHECK(has(message(), "Lower the learning rate"));
    g.parameter("o.b").value[0] = std::numeric_limits<double>::quiet_NaN();
    g.training(false);
    g.forward(o, {u, values.data(), 2, 2});
    REQUIRE_THROWS_AS(g.head(o).probabilities(), NumericError);
}

namespace {

/// Takes an array of all steps for that of one, or a row for a column.
template <class T> struct WrongShape {
    struct Options {
        bool columns = false, backwards = false;
    };
    Options options;
    Seq<T> x, h;

    Seq<T> setup(Setup<T>& s, Seq<T> input) {
        x = input;
        return h = s.sequence("h", input.width);
    }
    void forward(Forward<T>& p) {
        noalias(p.at(h)) = p.at(x);
        if (options.backwards) return;
        if (options.columns) p.at(h, 0) = p.at(x, 0) + Tensor<T, 1>({T(1), T(2), T(3)});
        else p.at(h, 0) = T(2) * p.at(x);
    }
    void backward(Backward<T, Gradient>& p) { p.adjoint(x, 0) = T(2) * p.adjoint(h); }
};

}  // namespace

TEST_CASE("Arrays that do not fit within a node come with its name and shapes", "[graph][errors]") {
    for (const auto& [options, way, word] :
         {std::tuple<WrongShape<double>::Options, const char*, const char*>{
              {}, "forward", "found an array [15, 2] assigned to a matrix [3, 2]"},
          {{.columns = true}, "forward", "shapes that do not broadcast to one"},
          {{.backwards = true}, "backward", "assigned to a matrix [3, 2]"}}) {
        Graph<double> g({.time = 5, .batch = 3});
        const auto x = g.add<Linear>("in", {.units = 2}, g.input("u", 2));
        const auto y = g.tokens("y", 4);
        const auto l = g.add<CrossEntropy>(
            "loss", {}, g.add<Softmax>("o", {.vocabulary = 4}, g.add<WrongShape>("odd", options, x)), y);
        const std::vector<double> values(2 * 5 * 3, 0.5);
        const std::vector<Token> targets(5 * 3, 1);
        const auto pass = [&] {
            g.forward(l, {g.sequence("u"), values.data(), 5, 3}, {y, TokenBlock{targets.data(), 5, 3}});
            g.backward(l);
        };
        CAPTURE(way, word);
        REQUIRE_THROWS_MATCHES(pass(), UsageError, says("node 'odd'", way, word));
    }
}
