// expect: the node's setup\(\) does not accept these inputs
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/softmax.hpp>

int main() {
    isogloss::Graph<float> g({.time = 2, .batch = 2});
    auto E = g.weight("E", 10, 4, isogloss::uniform(0.1));
    g.add<isogloss::TiedSoftmax>("softmax", {}, E);
}
