// Checkpoints into a small model with an update, which then runs forward and backward and steps.
#include <cmath>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/isogloss.hpp>

#include "safetensors_bytes.hpp"

using namespace isogloss;

namespace {

struct Small {
    Graph<float> g{{.time = 3, .batch = 2, .seed = 1}};
    Tokens x = g.tokens("x", 5), y = g.tokens("y", 5);
    Weight<float> E = g.weight("E", 5, 3, uniform(0.5));
    Logits<float> o = g.add<TiedSoftmax>(
        "softmax", {}, g.add<Lstm>("lstm", {.units = 3, .keep = 0.5}, g.add<Embedding>("embed", {}, x, E)),
        E);
    Loss<float> l = g.add<CrossEntropy>("loss", {}, o, y);
    AveragedSgd<float> update{g.parameters(), {.sgd = {.rate = 0.1}}};
    std::uint64_t epoch = 3;
    double best = 4.5;
    bool done = false;
    std::vector<double> losses{3, 2};
    std::string words = "the\nof\n";
    io::Checkpoint checkpoint;
    Small() {
        checkpoint.model(g).state("update", update).counter("epoch", epoch).number("best", best);
        checkpoint.flag("done", done).list("losses", losses).text("words", words);
    }
    void pass() {
        static const Token words_in[] = {0, 1, 2, 3, 4, 0}, next[] = {1, 2, -1, 4, 0, 1};
        g.forward(l, {x, {words_in, 3, 2}}, {y, {next, 3, 2}});
        g.backward(l);
        update.step();
    }
};

// The parts of the model that a file could have changed, as bytes of a checkpoint.
std::string state(const Small& small) {
    small.checkpoint.save(fuzz::other_file());
    return fuzz::contents(fuzz::other_file());
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    Small small;
    for (std::size_t n = dice.below(3); n-- > 0;) small.pass();
    return state(small);
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_safetensors(input, dice, [](StoredFile& file, Dice& more) {
        if (more.chance(0.1)) file.metadata["note"] = blind("x");
        else if (more.chance(0.2))
            change_text(file, "state/words", [](const std::string& t) { return blind(t); });
        else if (StoredTensor* t = file.find("state/losses"); t && more.chance(0.2)) {
            t->shape = {more.below(5)};
            t->bytes.resize(8 * t->shape[0]);
        } else if (!file.tensors.empty()) change_element(more.pick(file.tensors), more);
    });
}

bool fuzz::take(std::string_view input) {
    Small small;
    static const std::string before = state(small);
    const auto file = io::Safetensors::open(as_file(input));
    const bool all = accepted([&] { small.checkpoint.load(file); });
    if (!all) FUZZ_REQUIRE(state(small) == before);  // whole or not at all
    else FUZZ_REQUIRE(small.losses.size() == file.at("state/losses").bytes.size() / 8);
    Small other;  // in the first the averages may be in the place of the weights
    io::Checkpoint parameters;
    parameters.model(other.g);
    FUZZ_REQUIRE(!all || accepted([&] { parameters.load(file, io::Restore::parameters); }));
    // Whatever numbers stand in it: a pass ends, in a result or in a sentence.
    for (int i = 0; i < 2; ++i)
        accepted([&] {
            small.pass();
            for (auto& p : graph::Inspect::store(small.g).parameters)
                for (Index k = 0; k < p.rows * p.cols; ++k) FUZZ_REQUIRE(!std::isnan(p.value[k]) || all);
        });
    return all;
}
