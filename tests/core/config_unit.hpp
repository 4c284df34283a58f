/// @file config_unit.hpp  What two units of one program do that are compiled for different machines.
#pragma once

#include <isogloss/config.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/update/sgd.hpp>
#include <vector>

/// Nothing but plain numbers passes between the units.
struct UnitResult {
    const char* configuration;
    const void* kernel;          // address of a function whose name says nothing of the machine
    std::vector<double> losses;  // of some steps of training
};

namespace {  // each unit has its own

[[maybe_unused]] UnitResult train_in_this_unit() {
    namespace ig = isogloss;
    ig::Graph<float> g({.time = 6, .batch = 5});
    const auto x = g.tokens("x", 40), y = g.tokens("y", 40);
    const auto E = g.weight("E", 40, 21, ig::uniform(0.5));
    const auto h = g.add<ig::Lstm>("lstm", {.units = 21}, g.add<ig::Embedding>("embed", {}, x, E));
    const auto l = g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {}, h, E), y);
    ig::Sgd<float> sgd(g.parameters(), {.rate = 0.5});
    std::vector<ig::Token> tokens;
    for (ig::Index i = 0; i < 35; ++i)
        tokens.push_back(static_cast<ig::Token>(ig::Random(1, 1).below(i, 40)));
    UnitResult r{ig::configuration(), reinterpret_cast<const void*>(&ig::kernel::scale<float>), {}};
    for (int step = 0; step < 5; ++step) {
        r.losses.push_back(g.forward(l, {x, {tokens.data(), 6, 5}}, {y, {tokens.data() + 5, 6, 5}}));
        g.backward(l);
        sgd.step();
    }
    return r;
}

}  // namespace

/// config_portable.cpp, which is compiled for any machine of this kind.
UnitResult train_in_portable_unit();
