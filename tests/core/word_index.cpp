#include <isogloss/word_index.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("Words are numbered as they come and found again", "[word_index]") {
    WordIndex index;
    REQUIRE(index.find("the") == -1);
    REQUIRE(index.insert("the") == 0);
    REQUIRE(index.insert("") == 1);
    REQUIRE(index.insert("quick") == 2);
    REQUIRE(index.insert("the") == 0);
    REQUIRE(index.find("quick") == 2);
    REQUIRE(index.find("") == 1);
    REQUIRE(index.find("quic") == -1);
    REQUIRE(index.size() == 3);
    REQUIRE(index.words()[2] == "quick");
}

TEST_CASE("The index agrees with a map of the standard library", "[word_index]") {
    WordIndex index;
    std::unordered_map<std::string, Token> map;
    for (int i = 0; i < 60'000; ++i) {
        const std::string word = std::to_string(i * 7919LL % 20'011) + (i % 3 ? "x" : "");
        const auto expected = map.try_emplace(word, static_cast<Token>(map.size())).first->second;
        REQUIRE(index.insert(word) == expected);
    }
    REQUIRE(index.size() == static_cast<Index>(map.size()));
    std::size_t wrong = 0;
    for (const auto& [word, number] : map) {
        wrong += index.find(word) != number || index.words()[static_cast<std::size_t>(number)] != word;
        wrong += index.find(word + "?") != -1;
    }
    REQUIRE(wrong == 0);
}

TEST_CASE("A list of words is numbered in its order, each word once", "[word_index]") {
    const WordIndex list{"one", "", "two"};
    REQUIRE(list.words() == std::vector<std::string>{"one", "", "two"});
    REQUIRE((list.find("one") == 0 && list.find("") == 1 && list.find("two") == 2 && list[2] == "two"));
    REQUIRE(WordIndex(list.words()).words() == list.words());
    REQUIRE_THROWS_MATCHES((WordIndex{"a", "b", "a"}), DataError, says("'a' appears twice", "0 and 2"));
    WordIndex roomy{"first"};
    roomy.reserve(1000);
    const std::string* const at = roomy.words().data();
    for (int i = 0; i < 999; ++i) roomy.insert(std::to_string(i));
    REQUIRE(roomy.words().data() == at);  // nothing had to move
    REQUIRE((roomy.find("first") == 0 && roomy.find("998") == 999 && roomy.size() == 1000));
}
