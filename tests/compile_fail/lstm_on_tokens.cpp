// expect: the node's setup\(\) does not accept these inputs
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/lstm.hpp>

int main() {
    isogloss::Graph<float> g({.time = 2, .batch = 2});
    auto x = g.tokens("x", 10);
    g.add<isogloss::Lstm>("lstm", {.units = 4}, x);  // an Embedding is missing between
}
