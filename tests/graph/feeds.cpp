// Passes with several inputs: to a loss, to logits, to a sequence, by position and as a list.
#include <isogloss/isogloss.hpp>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

constexpr Index T0 = 4, B = 2, V = 5;

/// Words with four more things known of each: five inputs, and tags as targets.
struct Net {
    Graph<double> g{{.time = T0, .batch = B, .seed = 3}};
    std::vector<Tokens> x;
    Tokens y;
    Seq<double> h;
    Logits<double> o;
    Loss<double> l;
    std::vector<std::vector<Token>> data;

    Net() {
        std::vector<Seq<double>> e;
        for (const std::string name : {"word", "case", "tag", "end", "letter"}) {
            x.push_back(g.tokens(name, V));
            e.push_back(g.add<Embedding>(name + ".e", {}, x.back(), g.weight(name + ".E", V, 2, uniform(1))));
        }
        y = g.tokens("target", V);
        h = g.add<Lstm>("lstm", {.units = 3}, g.add<Concatenate>("e", {}, e[0], e[1], e[2], e[3], e[4]));
        o = g.add<Softmax>("softmax", {.vocabulary = V}, h);
        l = g.add<CrossEntropy>("loss", {}, o, y);
        const Random random(5, 1);
        for (Index k = 0; k < 6; ++k) {
            auto& block = data.emplace_back();
            for (Index i = 0; i < T0 * B; ++i)
                block.push_back(static_cast<Token>(random.below(k * T0 * B + i, V)));
        }
        g.training(false);
    }
    /// Input k, or the targets, from step `first` on.
    Feed<double> feed(std::size_t k, Index first = 0, Index time = T0) const {
        return {k < 5 ? x[k] : y, TokenBlock{data[k].data() + first * B, time, B}};
    }
    std::vector<double> hidden() {
        const auto values = g.value(h);
        return {values.begin(), values.end()};
    }
    std::vector<double> said() {
        const auto p = g.log_probabilities(o);
        return {p.begin(), p.end()};
    }
};

}  // namespace

TEST_CASE("A model of five inputs runs to its logits and to a sequence as to its loss", "[graph][feeds]") {
    Net net;
    auto& g = net.g;
    g.forward(net.l, net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4), net.feed(5));
    const auto expected = net.said();
    const auto states = g.carried();
    const auto h = net.hidden();
    const std::vector<Feed<double>> list = {net.feed(4), net.feed(2), net.feed(0), net.feed(1), net.feed(3)};

    const auto same = [&](auto&& forward) {
        g.reset();
        forward();
        CHECK(g.carried() == states);
    };
    same([&] {
        g.forward(net.o, net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4));
        CHECK(net.said() == expected);
    });
    same([&] {
        g.forward(net.o, list);
        CHECK(net.said() == expected);
    });
    same([&] {
        g.forward(net.h, net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4));
        CHECK(net.hidden() == h);
    });
    same([&] {
        g.forward(net.h, list);
        CHECK(net.hidden() == h);
    });
    same([&] {  // in two halves, the second of which goes on
        for (const Index first : {Index{0}, T0 / 2}) {
            std::vector<Feed<double>> half;
            for (std::size_t k = 0; k < 5; ++k) half.push_back(net.feed(k, first, T0 / 2));
            g.forward(net.o, half);
        }
        const auto last = net.said();
        for (std::size_t i = 0; i < last.size(); ++i)
            CHECK(last[i] == Approx(expected[expected.size() / 2 + i]).epsilon(1e-12));
    });
}

TEMPLATE_TEST_CASE("Inputs are asked for, and refused, on the way to logits as on that to a loss",
                   "[graph][feeds]", Logits<double>, Seq<double>, Loss<double>) {
    Net net;
    auto& g = net.g;
    const auto to = [&] {
        if constexpr (std::is_same_v<TestType, Logits<double>>) return net.o;
        else if constexpr (std::is_same_v<TestType, Seq<double>>) return net.h;
        else return net.l;
    }();
    const auto refuses = [&](std::vector<Feed<double>> feeds, const std::string& says) {
        CHECK_THROWS_WITH(g.forward(to, std::span<const Feed<double>>(feeds)), Catch::Contains(says));
    };
    refuses({net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(5)}, "'letter'");
    refuses({net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4), net.feed(3)},
            "input 'end' is given twice");
    refuses({net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4, 0, 2)},
            "input 'letter' has 2 steps and 2 columns, another input has 4 and 2");
    net.data[4][3] = V;
    refuses({net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4)},
            "input 'letter' holds token 5 at step 1, column 1");
    const auto idle = g.tokens("idle", V);
    refuses({net.feed(0), Feed<double>(idle, TokenBlock{net.data[0].data(), T0, B})},
            "input 'idle' is given but no node of the graph reads it");
}
