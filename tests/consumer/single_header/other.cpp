#include "isogloss.hpp"

double other_unit() {
    namespace ig = isogloss;
    ig::Graph<double> g({.time = 1, .batch = 1});
    auto h = g.input("h", 2);
    auto y = g.tokens("y", 3);
    auto l = g.add<ig::CrossEntropy>(
        "loss", {}, g.add<ig::Softmax>("softmax", {.vocabulary = 3, .init = ig::constant(0)}, h), y);
    const double states[] = {1, 2};
    const ig::Token target = 1;
    return g.forward(l, {h, states, 1, 1}, {y, {&target, 1, 1}});
}
