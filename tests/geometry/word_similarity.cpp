#include <cmath>
#include <isogloss/geometry/word_similarity.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {

const std::vector<std::string> words = {"north", "northeast", "east", "south", "nowhere"};
const std::vector<float> values = {0, 1, 1, 1, 1, 0, 0, -2, 0, 0};

}  // namespace

TEST_CASE("word_similarity correlates cosines with scores and counts what is unknown",
          "[metric][word_similarity]") {
    const WordTable table(words, 2, values);
    // Cosines 0.707, 0, -1: in the order of the scores.
    std::vector<ScoredPair> pairs = {{"north", "northeast", 9},
                                     {"north", "east", 5},
                                     {"north", "south", 1},
                                     {"north", "nowhere", 3},
                                     {"up", "nowhere", 3}};
    auto result = word_similarity(table, pairs);
    REQUIRE(result.pairs == 5);
    REQUIRE(result.found == 3);
    REQUIRE(result.unknown == 2);
    REQUIRE(result.spearman == Approx(1));
    const std::vector<ScoredPair> twice = {{"Up", "north", 1}, {"up", "NORTH", 1}};
    REQUIRE(word_similarity(table, twice).unknown == 3);
    REQUIRE(word_similarity(WordTable(words, 2, values, {.fold_case = true}), twice).unknown == 1);
    pairs[0].score = 0;
    REQUIRE(word_similarity(table, pairs).spearman == Approx(-0.5));
    // What has no correlation is NaN, not an error: a small table may know nothing of a set.
    REQUIRE(std::isnan(word_similarity(table, std::span(pairs).first(1)).spearman));
    REQUIRE(std::isnan(word_similarity(table, std::span(pairs).last(1)).spearman));
    for (auto& pair : pairs) pair.score = 2;
    REQUIRE(std::isnan(word_similarity(table, pairs).spearman));
    // Cosines are equal whatever float makes of the rows: in one dimension all are 1, as are those of equal rows.
    const std::vector<std::string> names = {"a", "d", "e"};
    const std::vector<ScoredPair> scored = {{"a", "e", 1}, {"a", "d", 2}},
                                  themselves = {{"a", "a", 1}, {"d", "d", 2}, {"e", "e", 3}};
    const WordTable line(names, 1, std::vector<float>{3, 41, 11});
    REQUIRE(std::isnan(word_similarity(line, scored).spearman));
    const WordTable space(names, 3, std::vector<float>{3, 41, 11, 7, -2, 5, 0.1f, 9, -31});
    REQUIRE(std::isnan(word_similarity(space, themselves).spearman));
}

TEST_CASE("Word-similarity sets are read, or refused with their line", "[metric][word_similarity][errors]") {
    const TemporaryDirectory folder;
    const auto path = folder / "set.txt";
    const auto write = [&](const std::string& content) { put(path, content); };
    write("sun\tsunlight\t50.0\n\nold new  1.58\r\nlast pair -2e-1");
    const auto pairs = read_scored_pairs(path);
    REQUIRE(pairs.size() == 3);
    REQUIRE(pairs[1].first == "old");
    REQUIRE(pairs[1].second == "new");
    REQUIRE(pairs[1].score == 1.58);
    REQUIRE(pairs[2].score == -0.2);
    for (const char* bad : {"a b", "a b c", "a b 1x", "a b 1 2", "a b inf"}) {
        write(std::string("a b 1\n") + bad + "\n");
        REQUIRE_THROWS_MATCHES(read_scored_pairs(path), DataError,
                               says("set.txt:2", bad, "two words and a number"));
    }
    for (const char* beyond : {"a b 1e999", "a b -1e999", "a b 1e-999"}) {  // no double holds it
        write(beyond);
        REQUIRE_THROWS_MATCHES(read_scored_pairs(path), DataError, says("set.txt:1", beyond, "double"));
    }
    write("a \x1b[31m" + std::string(100'000, 'x'));
    try {
        read_scored_pairs(path);
        FAIL("a line of 100 kB is no pair");
    } catch (const DataError& error) {
        const std::string message = error.what();
        CHECK(message.size() < 400);
        CHECK(message.find('\x1b') == std::string::npos);
        CHECK(message.find("\\x1B[31m") != std::string::npos);
    }
    write("\n");
    REQUIRE_THROWS_MATCHES(read_scored_pairs(path), DataError, says("no pairs"));
    REQUIRE_THROWS_MATCHES(read_scored_pairs(folder / "none"), FileError, says("none"));
}
