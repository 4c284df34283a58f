// A text: its lines, a vocabulary of it, its tokens in memory and in a file, its batches.
#include <isogloss/text/corpus.hpp>
#include <sstream>

#include "fuzz.hpp"

using namespace isogloss;

std::string fuzz::fresh(Dice& dice) {
    static const char* words[] = {"the", "of", "a", "<unk>", "<eos>", "caf\xC3\xA9", "\\", "b\r"};
    std::string text = dice.chance(0.1) ? "\xEF\xBB\xBF" : "";
    for (std::size_t n = 1 + dice.below(30); n-- > 0;)
        text += std::string(dice.pick(words)) + (dice.chance(0.2) ? "\n" : " ");
    return text;
}

std::string fuzz::mutate(const std::string& input, Dice& dice) { return mutate_lines(input, dice); }

bool fuzz::take(std::string_view input) {
    const std::string path = as_file(input);
    // Options that differ from input to input, and not from run to run.
    Dice dice(static_cast<unsigned>(file::hash_bytes(input)));
    text::VocabularyOptions options{.level = dice.chance(0.5) ? text::Level::word : text::Level::character,
                                    .min_count = static_cast<std::int64_t>(1 + dice.below(3)),
                                    .max_size = dice.chance(0.5) ? 0 : static_cast<Index>(dice.below(6)),
                                    .eos_per_line = dice.chance(0.5),
                                    .add_unk = dice.chance(0.5)};
    if (dice.chance(0.1)) options.unk = "";
    if (dice.chance(0.2)) options.max_line_bytes = 40;
    const Capacity capacity{static_cast<Index>(1 + dice.below(4)), static_cast<Index>(1 + dice.below(3))};

    const auto v = text::Vocabulary::from_file(path, options);
    std::istringstream stream{std::string(input)};
    FUZZ_REQUIRE(text::Vocabulary::from_stream(stream, "stream", options) == v);
    FUZZ_REQUIRE(text::Vocabulary::from_text(v.to_text()) == v);

    const auto corpus = text::Corpus::read(path, v);
    FUZZ_REQUIRE(corpus.size() == v.total());
    const auto info = text::Corpus::encode(path, other_file(), v);
    const auto mapped = text::Corpus::map(other_file(), v);
    FUZZ_REQUIRE(info.checksum == corpus.checksum() && mapped.checksum() == corpus.checksum());
    FUZZ_REQUIRE(mapped.unknowns() == corpus.unknowns() && mapped.lines() == corpus.lines());
    FUZZ_REQUIRE(std::equal(corpus.tokens().begin(), corpus.tokens().end(), mapped.tokens().begin(),
                            mapped.tokens().end()));

    std::vector<Token> again(1, 0);
    const bool read = accepted([&] {  // a line end spelled in a text of characters cannot come back
        std::istringstream text(v.decode(corpus.tokens()));
        for (std::string line; std::getline(text, line);)
            v.encode(line, again);  // no mark of UTF-8 is skipped
    });
    if (v.level() == text::Level::word)
        FUZZ_REQUIRE(read && std::equal(again.begin() + 1, again.end(), corpus.tokens().begin(),
                                        corpus.tokens().end()));
    accepted([&] {
        Index predicted = 0;
        auto batches =
            mapped.batches(capacity, {.tail = dice.chance(0.5) ? text::Tail::pad : text::Tail::drop,
                                      .random_length = dice.chance(0.3)});
        for (const text::Batch& batch : batches) predicted += batch.predicted;
        FUZZ_REQUIRE(predicted == batches.predictions());
    });
    return true;
}
