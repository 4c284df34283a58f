#include <cmath>
#include <isogloss/evaluation/unigram.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {
// 0 the, 1 <eos>, 2 cat, 3 mat, 4 <unk>
text::Vocabulary small() {
    return text::Vocabulary::from_words({"the", "<eos>", "cat", "mat", "<unk>"}, {4, 2, 1, 1, 0});
}
}  // namespace

TEST_CASE("The unigram model has its closed form", "[metric][unigram]") {
    const auto v = small();  // counts 4 2 1 1 0, total 8
    const auto c = text::Corpus::from_tokens({0, 0, 1, 2}, 5);
    REQUIRE(unigram_cross_entropy(v, c, 0) ==
            Approx(-(2 * std::log(0.5) + std::log(0.25) + std::log(0.125)) / 4));
    REQUIRE(unigram_cross_entropy(v, c) ==
            Approx(-(2 * std::log(5.0 / 13) + std::log(3.0 / 13) + std::log(2.0 / 13)) / 4));
    REQUIRE(unigram_cross_entropy(text::Vocabulary::from_words(v.words()), c) == Approx(std::log(5.0)));
    const auto unseen = text::Corpus::from_tokens({4}, 5);
    REQUIRE(unigram_cross_entropy(v, unseen) == Approx(std::log(13.0)));
    REQUIRE_THROWS_MATCHES(unigram_cross_entropy(v, unseen, 0), DataError, says("'<unk>'"));
    REQUIRE_THROWS_AS(unigram_cross_entropy(v, c, -1), DataError);
    REQUIRE_THROWS_AS(unigram_cross_entropy(v, c, NAN), DataError);
    REQUIRE_THROWS_AS(unigram_cross_entropy(text::Vocabulary::from_words(v.words()), c, 0), DataError);
    REQUIRE_THROWS_AS(unigram_cross_entropy(v, text::Corpus::from_tokens({0}, 3)), DataError);
    std::istringstream text("the cat\n");
    const auto read = text::Corpus::read_stream(text, "memory", v);
    REQUIRE(unigram_cross_entropy(v, read) == Approx(std::log(13.0) - std::log(5.0 * 2 * 3) / 3));
    const auto other = text::Vocabulary::from_words({"cat", "<eos>", "the", "mat", "<unk>"}, v.counts());
    REQUIRE_THROWS_AS(unigram_cross_entropy(other, read), DataError);
}

TEST_CASE("The unigram model refuses foreign tokens of a file that was not verified", "[metric][unigram]") {
    TemporaryDirectory scratch;
    text::TokenFileWriter out(scratch / "x.tokens", small());
    out.add(std::vector<Token>{1, 2, 1'000'000});
    out.commit(0, 1);
    const auto c = text::Corpus::map(scratch / "x.tokens", small(), {.verify = false});
    REQUIRE_THROWS_AS(unigram_cross_entropy(small(), c), DataError);
}
