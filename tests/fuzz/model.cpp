// Models of the program language_model: options as JSON in the metadata, from which the model is built.
#include "../../programs/language_model/model_file.hpp"
#include "safetensors_bytes.hpp"

using namespace isogloss;

namespace {

const text::Vocabulary& words() {
    static const auto it = text::Vocabulary::from_words({"a", "b", "c", "<unk>", "<eos>"}, {5, 4, 3, 2, 1});
    return it;
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    lm::Options o;
    const char *cells[] = {"rnn", "lstm", "gru", "rhn", "qrnn"}, *schemes[] = {"tied", "gal", "recurrent"},
               *losses[] = {"ce", "al", "mixture"};
    o.cell = dice.pick(cells);
    o.scheme = dice.pick(schemes);
    o.loss = dice.pick(losses);
    o.head = dice.chance(0.5) ? "tied" : "free";
    o.layers = static_cast<Index>(1 + dice.below(2));
    o.units = {static_cast<Index>(1 + dice.below(4))};
    if (dice.chance(0.3)) o.units.resize(static_cast<std::size_t>(*o.layers), 3);
    o.embedding = static_cast<Index>(1 + dice.below(4));
    o.depth = static_cast<Index>(1 + dice.below(2));
    o.bptt = static_cast<Index>(1 + dice.below(4));
    o.unit_rows = dice.chance(0.2);
    o.beta = 0.5;
    lm::settle(o, false);
    lm::Graph g({.time = o.bptt, .batch = 2});
    lm::build(g, o, words().size());
    std::string vocabulary = words().to_text();
    io::Checkpoint()
        .model(g)
        .text("vocabulary", vocabulary)
        .save(other_file(), lm::metadata(lm::to_json(o, false)));
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_safetensors(input, dice, [](StoredFile& file, Dice& more) {
        if (more.chance(0.2)) {
            change_text(file, "state/vocabulary",
                        [&](const std::string& t) { return mutate_lines(t, more, '\t'); });
            return;
        }
        auto& stored = file.metadata[lm::metadata_key];
        auto options = nlohmann::json::parse(stored, nullptr, false);
        if (!options.is_object() || options.empty() || more.chance(0.05)) {
            stored = blind(stored, stored.size() + 16);
            return;
        }
        auto& value = *std::next(options.begin(), static_cast<std::ptrdiff_t>(more.below(options.size())));
        static const char* choices[] = {"rnn",  "lstm",      "gru",  "rhn", "qrnn", "tied",
                                        "gal",  "recurrent", "free", "ce",  "al",   "mixture",
                                        "word", "character", "",     "x",   "sgd",  "adam"};
        if (value.is_string() && more.chance(0.9)) value = more.pick(choices);
        else if (value.is_boolean() && more.chance(0.9)) value = more.chance(0.5);
        else if (more.chance(0.3)) value = more.below(5);
        else if (const auto other = nlohmann::json::parse(number(more), nullptr, false);
                 !other.is_discarded())
            value = other;
        else value = nullptr;
        stored = options.dump();
    });
}

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    auto it = lm::load_model(path, 2);
    accepted([&] {  // weights may be anything, so the pass may end in a sentence
        const Token in[] = {0, 1, 2, 3}, out[] = {1, 2, -1, 0};
        const Index T = std::min<Index>(2, it.options.bptt);
        it.g->forward(it.model.nll, {it.model.x, {in, T, 2}}, {it.model.y, {out, T, 2}});
        FUZZ_REQUIRE(std::isfinite(it.g->result(it.model.nll).nats()));
    });
    return true;
}
