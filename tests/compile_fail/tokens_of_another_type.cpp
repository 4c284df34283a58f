// expect: tokens are fed as numbers of type Token, 32 bits
#include <isogloss/graph/graph.hpp>
#include <vector>

int main() {
    isogloss::Graph<float> g({.time = 2});
    const auto x = g.tokens("x", 3);
    const std::vector<long> words = {1, 2};
    g.forward(g.sequence("h"), {x, words});
}
