// Prints the instruction set for which this build is, and the loss of a small model after some steps: main [portable].
#include <cstdio>
#include <isogloss/isogloss.hpp>
#include <vector>

namespace ig = isogloss;

int main(int arguments, char**) {
    if (arguments > 1) ig::portable(true);
    constexpr ig::Index words = 40, units = 20;
    std::vector<ig::Token> text;
    for (int i = 0; i < 31; ++i) text.push_back(i * i % 37);
    ig::Graph<float> g({.time = 30, .batch = 1});
    const auto x = g.tokens("x", words), y = g.tokens("y", words);
    const auto table = g.weight("table", words, units, ig::uniform(0.5));
    const auto h = g.add<ig::Lstm>("lstm", {.units = units}, g.add<ig::Embedding>("embed", {}, x, table));
    const auto loss = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {}, h, table), y);
    ig::Sgd sgd(g.parameters(), {.rate = 0.1, .clip = 5});
    const ig::TokenBlock input{text.data(), 30, 1}, target{text.data() + 1, 30, 1};
    double nats = 0;
    for (int step = 0; step < 5; ++step) {
        nats = g.forward(loss, {x, input}, {y, target});
        g.backward(loss);
        sgd.step();
    }
    std::printf("%s %.17g\n", ig::configuration(), nats);
}
