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
        const auto p = g.head(o).log_probabilities();
        return {p.begin(), p.end()};
    }
};

}  // namespace

TEST_CASE("A model of five inputs runs to its logits and to a sequence as to its loss", "[graph][feeds]") {
    Net net;
    auto& g = net.g;
    g.forward(net.l, net.feed(0), net.feed(1), net.feed(2), net.feed(3), net.feed(4), net.feed(5));
    const auto expected = net.said();
    const auto states = g.states().saved();
    const auto h = net.hidden();
    const std::vector<Feed<double>> list = {net.feed(4), net.feed(2), net.feed(0), net.feed(1), net.feed(3)};

    const auto same = [&](auto&& forward) {
        g.reset();
        forward();
        CHECK(g.states().saved() == states);
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

TEST_CASE("An array of xtensor is an input, with its shape checked", "[graph][feeds][xtensor]") {
    Graph<double> g({.time = 3, .batch = 2});
    auto x = g.input("x", 4);
    auto w = g.tokens("w", 5);
    auto h = g.add<Concatenate>("both", {}, g.add<Linear>("map", {.units = 2}, x),
                                g.add<Embedding>("embed", {}, w, g.weight("E", 5, 2, uniform(1))));
    const Tensor<double, 3> values = xt::reshape_view(xt::arange<double>(24), {3, 2, 4}) / 7;
    const Tensor<Token, 2> words = {{0, 1}, {2, 3}, {4, 0}};
    const auto hidden = [&](const Feed<double>& a, const Feed<double>& b) {
        g.forward(h, a, b);
        return Tensor<double, 2>(g.value(h));
    };
    const auto expected = hidden({x, values.data(), 3, 2}, {w, {words.data(), 3, 2}});
    CHECK((hidden({x, values}, {w, words}) == expected));
    const Tensor<double, 4> several = xt::stack(xt::xtuple(0 * values, values));
    const Tensor<Token, 3> texts = xt::stack(xt::xtuple(0 * words, words));
    CHECK(
        (hidden({x, xt::view(several, 1)}, {w, xt::view(texts, 1)}) == expected));  // which begin further on
    CHECK((hidden({x, xt::view(values, xt::range(0, 1))}, {w, xt::view(words, xt::range(0, 1))}) ==
           xt::view(expected, xt::range(0, 2))));

    const auto refused = [&](const auto& to, const auto& array) {
        CHECK_THROWS_AS((Feed<double>{to, array}), UsageError);
    };
    refused(x, Tensor<double, 3>(xt::view(values, xt::all(), xt::all(), xt::range(0, 3))));
    refused(x, Tensor<double, 2>(xt::view(values, 0)));
    refused(x, several);
    refused(w, Tensor<Token, 1>{1, 2});
    refused(w, texts);
    refused(x, xt::view(values, xt::all(), xt::range(0, 1)));
    const xt::xtensor<double, 3, xt::layout_type::column_major> turned = values;
    refused(x, turned);
}
