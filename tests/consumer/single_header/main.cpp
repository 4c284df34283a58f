// A program over the single header, in two units: it prints the perplexity of a tied LSTM after some steps.
#include <cstdio>
#include <vector>

#include "isogloss.hpp"

double other_unit();

int main() {
    namespace ig = isogloss;
    ig::Graph<float> g({.time = 5, .batch = 2});
    auto x = g.tokens("x", 20), y = g.tokens("y", 20);
    auto E = g.weight("E", 20, 8, ig::uniform(0.1));
    auto h = g.add<ig::Lstm>("lstm", {.units = 8, .keep = 0.7},
                             g.add<ig::Embedding>("embed", {.keep = 0.7}, x, E));
    auto l =
        g.add<ig::AugmentedLoss>("loss", {.gamma = 0.65}, g.add<ig::TiedSoftmax>("softmax", {}, h, E), y);
    ig::Sgd<float> sgd(g.parameters(), {.rate = 1, .clip = 5});
    std::vector<ig::Token> text;
    for (ig::Token i = 0; i < 20; ++i) text.push_back(i * 7 % 20);
    double nats = 0;
    for (int step = 0; step < 50; ++step) {
        nats = g.forward(l, {x, {text.data(), 5, 2}}, {y, {text.data() + 10, 5, 2}});
        g.backward(l);
        sgd.step();
    }
    std::printf("%.9g %.9g\n", nats, other_unit());
}
