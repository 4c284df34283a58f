#include <isogloss/geometry/analogies.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {

// Royal and female as axes.
const std::vector<std::string> words = {"man", "woman", "king", "queen", "apple"};
const std::vector<float> values = {1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, -1, -1};

}  // namespace

TEST_CASE("Analogies are answered by the offset, a, b and c left out", "[metric][analogies]") {
    const WordTable table(words, 3, values);
    const std::vector<AnalogySection> sections = {
        {"family",
         {{"man", "woman", "king", "queen"},
          {"man", "king", "woman", "queen"},
          {"king", "queen", "man", "woman"},
          {"man", "woman", "king", "apple"}}},
        {"none", {{"man", "woman", "prince", "princess"}}},
        {"itself", {{"man", "woman", "man", "woman"}}}};  // the answer is one of the question: never right
    const auto scores = analogies(table, sections);
    REQUIRE(scores.size() == 3);
    REQUIRE(scores[0].name == "family");
    REQUIRE(scores[0].questions == 4);
    REQUIRE(scores[0].asked == 4);
    REQUIRE(scores[0].correct == 3);
    REQUIRE(scores[0].accuracy() == 0.75);
    REQUIRE(scores[1].questions == 1);
    REQUIRE(scores[1].asked == 0);
    REQUIRE(scores[1].accuracy() == 0);
    REQUIRE(scores[2].correct == 0);
    const auto all = sum_of("all", scores);
    REQUIRE(all.questions == 6);
    REQUIRE(all.asked == 5);
    REQUIRE(all.correct == 3);
}

TEST_CASE("The words of a question are no answers, near as they may be", "[metric][analogies]") {
    // Each time b - a + c is nearest to one of the three: to c, to b, to a.
    struct Case {
        std::vector<float> a, b, c, d;
    };
    const std::vector<Case> cases = {{{1, 0, 0}, {1, 0.3f, 0}, {0, 0, 1}, {0, 1.5f, 1}},
                                     {{1, 0, 0}, {0, 0, 1}, {1, 0.3f, 0}, {0, 1.5f, 1}},
                                     {{1, 0, 0}, {1, 0.5f, 0}, {1, -0.5f, 0}, {1, 0, 1}}};
    for (const auto& [a, b, c, d] : cases) {
        std::vector<float> table;
        for (const auto& row : {a, b, c, d}) table.insert(table.end(), row.begin(), row.end());
        table.insert(table.end(), {-1, -1, -1});  // so that d is not merely what is left
        const std::vector<std::string> names = {"a", "b", "c", "d", "other"};
        const std::vector<AnalogySection> sections = {{"one", {{"a", "b", "c", "d"}}}};
        REQUIRE(analogies(WordTable(names, 3, table), sections)[0].correct == 1);
    }
}

TEST_CASE("Sets of analogies are read, or refused with their line", "[metric][analogies][errors]") {
    const TemporaryDirectory folder;
    const auto path = folder / "set.txt";
    const auto write = [&](const std::string& content) { put(path, content); };
    write(": one\na b c d\n\n: empty\n: two\r\ne f g h\ni j k l");
    const auto sections = read_analogies(path);
    REQUIRE(sections.size() == 3);
    REQUIRE(sections[0].questions == std::vector<Analogy>{{"a", "b", "c", "d"}});
    REQUIRE(sections[1].questions.empty());
    REQUIRE(sections[2].name == "two");
    REQUIRE(sections[2].questions[1][3] == "l");
    write(": one\na b c\n");
    REQUIRE_THROWS_MATCHES(read_analogies(path), DataError, says("set.txt:2", "'a b c'", "four words"));
    write("a b c d\n");
    REQUIRE_THROWS_MATCHES(read_analogies(path), DataError, says("set.txt:1", "before the first question"));
    write(": one two\n");
    REQUIRE_THROWS_MATCHES(read_analogies(path), DataError, says("one name"));
    write(": one\n");
    REQUIRE_THROWS_MATCHES(read_analogies(path), DataError, says("no questions"));
    write(": one\na \x1b[31m" + std::string(100'000, 'x'));
    try {
        read_analogies(path);
        FAIL("two words are no question");
    } catch (const DataError& error) {
        const std::string message = error.what();
        CHECK(message.size() < 400);
        CHECK(message.find('\x1b') == std::string::npos);
    }
}

TEST_CASE("A table of the question's words alone has no answer", "[metric][analogies]") {
    const WordTable table({words.data(), 3}, 3, {values.data(), 9});
    for (const Analogy& q : {Analogy{"man", "woman", "king", "man"}, {"woman", "king", "man", "king"}}) {
        const auto scores = analogies(table, std::vector<AnalogySection>{{"itself", {q}}});
        CHECK(scores[0].asked == 1);
        CHECK(scores[0].correct == 0);
    }
}
