// expect: all handles must come from a graph of the same scalar type
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/lstm.hpp>

int main() {
    isogloss::Graph<float> g({.time = 2, .batch = 2});
    isogloss::Graph<double> of_double({.time = 2, .batch = 2});
    g.add<isogloss::Lstm>("lstm", {.units = 4}, of_double.input("x", 3));
}
