// Token files of a fixed vocabulary, verified and trusted.
#include <cstring>
#include <isogloss/evaluation/unigram.hpp>
#include <isogloss/text/corpus.hpp>

#include "fuzz.hpp"

using namespace isogloss;

namespace {

const text::Vocabulary& vocabulary() {
    static const auto it = text::Vocabulary::from_words({"a", "b", "c", "<unk>", "<eos>"}, {5, 4, 3, 2, 1});
    return it;
}

void repair(text::detail::TokenFileHeader& h, std::string& tokens, fuzz::Dice& dice) {
    if (dice.chance(0.9)) h.tokens = tokens.size() / sizeof(Token);
    std::vector<Token> aligned(tokens.size() / sizeof(Token));
    if (!aligned.empty()) std::memcpy(aligned.data(), tokens.data(), aligned.size() * sizeof(Token));
    file::TokenHash hash;
    hash.add(aligned);
    if (dice.chance(0.95)) h.checksum = hash.value();
    if (dice.chance(0.95)) h.header_checksum = h.hash();
}

}  // namespace

std::string fuzz::fresh(Dice& dice) {
    text::TokenFileWriter out(other_file(), vocabulary());
    std::vector<Token> tokens(dice.below(40));
    for (Token& t : tokens) t = static_cast<Token>(dice.below(5));
    out.add(tokens);
    out.commit(1, 2);
    return contents(other_file());
}

std::string fuzz::mutate(const std::string& input, Dice& dice) {
    text::detail::TokenFileHeader h;
    if (input.size() < sizeof h || dice.chance(0.05)) return blind(input);
    std::memcpy(static_cast<void*>(&h), input.data(), sizeof h);
    std::string tokens = input.substr(sizeof h);
    if (dice.chance(0.2)) {
        auto bytes = blind(input.substr(0, sizeof h), sizeof h);
        bytes.resize(sizeof h);
        std::memcpy(static_cast<void*>(&h), bytes.data(), sizeof h);
    } else if (dice.chance(0.3)) {
        tokens = blind(tokens, tokens.size() + 16);
        if (dice.chance(0.8)) tokens.resize(tokens.size() / 4 * 4);
    } else if (!tokens.empty() && dice.chance(0.7)) {
        const Token values[] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, -1, 2147483647};
        const std::size_t at = 4 * dice.below(tokens.size() / 4);
        if (at + 4 <= tokens.size()) std::memcpy(tokens.data() + at, &dice.pick(values), 4);
    } else {
        std::uint64_t* const fields[] = {&h.vocabulary_size, &h.vocabulary_checksum, &h.tokens, &h.unknowns,
                                         &h.lines};
        *dice.pick(fields) = std::strtoull(number(dice).c_str(), nullptr, 10);
    }
    repair(h, tokens, dice);
    return std::string(reinterpret_cast<const char*>(&h), sizeof h) + tokens;
}

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    const bool verified = accepted([&] {
        const auto corpus = text::Corpus::map(path, vocabulary());
        for (const Token t : corpus.tokens()) FUZZ_REQUIRE(t >= 0 && t < vocabulary().size());
    });
    const bool trusted = accepted([&] {
        // The tokens may be anything here: whoever uses them looks at each.
        const auto corpus = text::Corpus::map(path, vocabulary(), {.verify = false});
        FUZZ_REQUIRE(corpus.size() * 4 + 128 == std::ssize(input));
        accepted([&] {
            Index predicted = 0;
            for (const text::Batch& batch : corpus.batches({.time = 3, .batch = 2}))
                predicted += batch.predicted;
            FUZZ_REQUIRE(predicted > 0 && predicted < corpus.size());
        });
        accepted([&] { unigram_cross_entropy(vocabulary(), corpus); });
    });
    FUZZ_REQUIRE(trusted || !verified);
    return verified;
}
