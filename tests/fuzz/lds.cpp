// Linear dynamical systems in files, then a filter over a few words.
#include <cmath>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>

#include "safetensors_bytes.hpp"

using namespace isogloss;
using namespace isogloss::lds;

std::string fuzz::fresh(Dice& dice) {
    const Index V = 5, h = static_cast<Index>(1 + dice.below(3));
    LdsFile<float> it;
    it.vocabulary = text::Vocabulary::from_words({"a", "b", "c", "<unk>", "<eos>"}, {5, 4, 3, 2, 1});
    it.system.A = identity(h) * 0.5;
    it.system.M = identity(h) * 0.1;
    it.xx = it.xx_filtered = identity(h);
    it.system.C = zeros<float>(V, h);
    for (Index i = 0; i < V * h; ++i)
        it.system.C.data()[i] = static_cast<float>(dice.below(10)) * 0.05f - 0.2f;
    it.system.whitening = Whitening::of_frequencies({0.3, 0.25, 0.2, 0.15, 0.1}, 15);
    it.singular_values.assign(dice.below(3), 0.5);
    it.log_likelihoods.assign(dice.below(3), -3);
    it.notes = {{"states", "2"}};
    save_lds(other_file(), it);
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    return mutate_safetensors(input, dice, [](StoredFile& file, Dice& more) {
        if (more.chance(0.2))
            change_text(file, "vocabulary",
                        [&](const std::string& t) { return mutate_lines(t, more, '\t'); });
        else if (StoredTensor* list = file.find("log_likelihoods"); list && more.chance(0.3)) {
            list->shape = {more.below(4)};
            list->bytes.resize(8 * list->shape[0]);
        } else if (StoredTensor* t = file.find(more.chance(0.5) ? "A" : "C")) {
            t->bytes.replace(0, 1, 1,
                             static_cast<char>(more.below(256)));  // the least of the bits of one number
        }
    });
}

bool fuzz::take(std::string_view input) {
    const auto it = load_lds<float>(as_file(input));
    save_lds(other_file(), it);
    const auto bytes = contents(other_file());
    save_lds(other_file(), load_lds<float>(other_file()));
    FUZZ_REQUIRE(contents(other_file()) == bytes);
    accepted([&] {
        const TextFilter<float> filter(it.system, steady_state(it.system));
        const std::vector<Token> tokens(4, 0);
        const auto states = filter.smooth(tokens);
        FUZZ_REQUIRE(rows(states) == 4);
    });
    return true;
}
