// Counts for linear dynamical systems in files.
#include <isogloss/counts/files.hpp>
#include <isogloss/lds/moments.hpp>

#include "safetensors_bytes.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;

namespace {

text::Vocabulary words() {
    return text::Vocabulary::from_words({"a", "b", "c", "<unk>", "<eos>"}, {5, 4, 3, 2, 1});
}

std::string saved(const LagCounts& counts, const text::Vocabulary& vocabulary) {
    save_counts(fuzz::other_file(), counts, vocabulary);
    return fuzz::contents(fuzz::other_file());
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    LagCounts counts(5,
                     {.lags = static_cast<Index>(1 + dice.below(3)), .boundary = dice.chance(0.5) ? 4 : -1});
    std::vector<Token> tokens(dice.below(40));
    for (Token& t : tokens) t = static_cast<Token>(dice.below(5));
    counts.add(tokens);
    return saved(counts, words());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_safetensors(input, dice, [](StoredFile& file, Dice& more) {
        if (more.chance(0.2)) {
            change_text(file, "vocabulary",
                        [&](const std::string& t) { return mutate_lines(t, more, '\t'); });
        } else if (StoredTensor* columns = file.find("columns/1"), *values = file.find("values/1"),
                   *starts = file.find("starts/1");
                   columns && values && starts && more.chance(0.5)) {
            // A row loses its last pair, and everything after it moves.
            const std::size_t rows = starts->bytes.size() / 4,
                              row = 1 + more.below(rows - std::min<std::size_t>(rows, 1));
            std::vector<std::int32_t> at(rows + 1);
            std::memcpy(at.data(), starts->bytes.data(), 4 * rows);
            if (row >= rows || at[row] < 1 || at[row] <= at[row - 1]) return;
            const auto gone = 4 * static_cast<std::size_t>(at[row] - 1);
            if (gone + 4 > columns->bytes.size() || gone + 4 > values->bytes.size()) return;
            columns->bytes.erase(gone, 4), values->bytes.erase(gone, 4);
            columns->shape = {columns->bytes.size() / 4}, values->shape = {values->bytes.size() / 4};
            for (std::size_t i = row; i < rows; ++i) at[i] -= at[i] > 0;
            std::memcpy(starts->bytes.data(), at.data(), 4 * rows);
        } else if (StoredTensor* t = file.find(more.chance(0.5) ? "values/1" : "occurrences")) {
            change_element(*t, more);
        }
    });
}

bool fuzz::take(std::string_view input) {
    const auto it = load_counts(as_file(input));
    const auto bytes = saved(it.counts, it.vocabulary);
    const auto again = load_counts(other_file());
    FUZZ_REQUIRE(again.counts == it.counts && again.vocabulary == it.vocabulary);
    FUZZ_REQUIRE(saved(again.counts, again.vocabulary) == bytes);
    FUZZ_REQUIRE(it.counts.tokens() >= 0);
    accepted([&] {
        LagCounts twice = it.counts;
        twice.add(it.counts);
        FUZZ_REQUIRE(twice.tokens() == 2 * it.counts.tokens());
    });
    accepted([&] {
        const LagMoments<double> moments(it.counts);
        const Index V = it.counts.vocabulary();
        const std::vector<double> ones(static_cast<std::size_t>(V), 1.0);
        std::vector<double> y(ones.size());
        moments.require_pairs(1, "fuzz");
        moments.apply(1, MatrixRef<const double>(ones.data(), V, 1), MatrixRef<double>(y.data(), V, 1));
        for (const double x : y) FUZZ_REQUIRE(std::isfinite(x));
    });
    return true;
}
