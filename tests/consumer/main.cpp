// What a program outside the project does with the library: a small tied language model takes one step.
#include <array>
#include <cmath>
#include <iostream>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;

int main() {
    constexpr ig::Index words = 5;
    constexpr std::array<ig::Token, 4> text = {0, 3, 1, 4}, next = {3, 1, 4, 2};
    ig::Graph<float> g({.time = 4, .batch = 1});
    const auto x = g.tokens("x", words), y = g.tokens("y", words);
    const auto table = g.weight("table", words, 6, ig::uniform(0.1));
    const auto h = g.add<ig::Lstm>("lstm", {.units = 6}, g.add<ig::Embedding>("embed", {}, x, table));
    const auto loss = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {}, h, table), y);
    const double nats = g.forward(loss, {x, text}, {y, next});
    g.backward(loss);
    std::cout << "perplexity before training: " << std::exp(nats / 4) << '\n';
    return std::abs(std::exp(nats / 4) - words) < 0.5 ? 0 : 1;
}
