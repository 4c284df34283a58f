// Passes of small models, and steps of updates.
#include <isogloss/isogloss.hpp>
#include <vector>

#include "count.hpp"

namespace ig = isogloss;
using ig::Index, ig::Token;

namespace {

// Passes of a tied model of one layer; what is to follow them is called with its graph and a pass.
template <template <class> class LossNode, class Then>
void model(const char* forward, const char* backward, double epsilon, Then&& then) {
    constexpr Index time = 3, batch = 4, words = 150, units = 20;
    ig::Graph<float> g({.time = time, .batch = batch, .epsilon = epsilon});
    const auto x = g.tokens("x", words), y = g.tokens("y", words);
    const auto E = g.weight("E", words, units, ig::normal(0.1));
    auto h = g.add<ig::Embedding>("embed", {.keep = 0.8}, x, E);
    h = g.add<ig::Lstm>("lstm", {.units = units}, h);
    const auto l = g.add<LossNode>("loss", {}, g.add<ig::TiedSoftmax>("out", {.bias = true}, h, E), y);
    std::vector<Token> tokens;
    const ig::Random random(7, 1);
    for (Index i = 0; i < 2 * time * batch; ++i)
        tokens.push_back(static_cast<Token>(double(words) * random.uniform(i)));
    const auto run = [&] {
        g.forward(l, {x, {tokens.data(), time, batch}}, {y, {tokens.data() + time * batch, time, batch}});
    };
    const auto differentiate = [&] { g.backward(l); };
    count(forward, run);
    count(backward, differentiate, run);
    then(g, [&] { run(), differentiate(); });
}

}  // namespace

void count_models() {
    const auto nothing = [](auto&, auto&&) {};
    model<ig::CrossEntropy>("cross_entropy_forward", "cross_entropy_backward", 0, [](auto& g, auto&& pass) {
        ig::Sgd<float> sgd(g.parameters(), {.rate = 0.1, .clip = 5});
        count(
            "sgd", [&] { sgd.step(); }, pass);
        ig::Adam<float> adam(g.parameters(), {.rate = 0.001});
        count(
            "adam", [&] { adam.step(); }, pass);
    });
    model<ig::AugmentedLoss>("augmented_forward", "augmented_backward", 0, nothing);
    model<ig::CrossEntropy>("sampled_forward", "sampled_backward", 0.02, nothing);
}
