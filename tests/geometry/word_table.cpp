#include <isogloss/geometry/word_table.hpp>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("WordTable holds unit vectors and finds words", "[metric][word_table]") {
    const std::vector<std::string> words = {"a", "Zero", "B", "b", "a"};
    const std::vector<float> values = {3, 4, 0, 0, 0, 2, 1, 0, -1, 0};
    const WordTable table(words, 2, values);
    REQUIRE(table.size() == 3);  // no direction for "Zero"; the second "a" does not count
    REQUIRE(table.dimension() == 2);
    REQUIRE(table.find("Zero") == -1);
    REQUIRE(table.find("A") == -1);
    REQUIRE(table.cosine(table.find("a"), table.find("B")) == Approx(0.8));
    REQUIRE(table.cosine(table.find("a"), table.find("b")) == Approx(0.6));
    REQUIRE(table.row(table.find("a"))[0] == Approx(0.6f));
    REQUIRE(table.word(table.find("b")) == "b");

    REQUIRE(table.cosine(0, 0) == 1);  // though the row, 0.6f and 0.8f, is longer

    const WordTable one_case(words, 2, values, {.fold_case = true});
    REQUIRE(one_case.size() == 2);
    REQUIRE(one_case.find("b") == one_case.find("B"));  // the first in the table
    REQUIRE(one_case.cosine(one_case.find("A"), one_case.find("b")) == Approx(0.8));
    REQUIRE(WordTable(words, 2, values, {.restrict_to = 2}).find("b") == -1);
    REQUIRE(WordTable(words, 2, values, {.restrict_to = 9}).size() == 3);
}

TEST_CASE("WordTable refuses sizes and numbers that make no sense", "[metric][word_table][errors]") {
    const std::vector<std::string> words = {"a", "b"};
    std::vector<float> values = {1, 2, 3, 4};
    REQUIRE_THROWS_MATCHES(WordTable(words, 3, values), DataError, says("2 words, dimension 3, 4 values"));
    REQUIRE_THROWS_MATCHES(WordTable({}, 1, {}), DataError, says("0 words"));
    REQUIRE_THROWS_MATCHES(WordTable(words, 2, values, {.restrict_to = -1}), DataError,
                           says("restrict_to = -1"));
    const WordTable table(words, 2, values);
    REQUIRE_THROWS_MATCHES(table.cosine(0, table.find("c")), UsageError,
                           says("word table: found index = -1, expected 0 to 1"));
    REQUIRE_THROWS_MATCHES(table.row(2), UsageError, says("found index = 2"));
    values[2] = std::numeric_limits<float>::infinity();
    REQUIRE_THROWS_MATCHES(WordTable(words, 2, values), NumericError, says("inf in the norm of 'b'"));
}
