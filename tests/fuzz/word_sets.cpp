// Sets of scored pairs and of analogies.
#include <cmath>
#include <isogloss/geometry/analogies.hpp>
#include <isogloss/geometry/word_similarity.hpp>

#include "fuzz.hpp"

using namespace isogloss;

std::string fuzz::fresh(Dice& dice) {
    return dice.chance(0.5) ? "king queen 8.5\nking man 3\n\nwoman queen 7e-1\n"
                            : ": royal\nking queen man woman\nman woman king queen\n: none\nking x y z\n";
}

std::string fuzz::mutate(const std::string& input, Dice& dice) { return mutate_lines(input, dice); }

bool fuzz::take(std::string_view input) {
    static const WordTable table = [] {
        std::vector<float> values(4 * 3);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((7 * i) % 5) - 1.7f;
        const std::vector<std::string> words{"king", "queen", "man", "woman"};
        return WordTable(words, 3, values);
    }();
    const std::string path = as_file(input);
    const bool pairs = accepted([&] {
        const auto set = read_scored_pairs(path);
        for (const ScoredPair& pair : set) FUZZ_REQUIRE(std::isfinite(pair.score));
        const auto result = word_similarity(table, set);
        FUZZ_REQUIRE(result.found <= result.pairs);
        FUZZ_REQUIRE(std::isnan(result.spearman) || std::abs(result.spearman) < 1 + 1e-9);
    });
    const bool questions = accepted([&] {
        const auto set = read_analogies(path);
        for (const auto& score : analogies(table, set))
            FUZZ_REQUIRE(score.correct <= score.asked && score.asked <= score.questions);
    });
    return pairs || questions;
}
