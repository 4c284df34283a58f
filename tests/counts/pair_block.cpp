#include <isogloss/counts/pair_block.hpp>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::counts;

TEST_CASE("The pairs of six tokens, of a part of them and of sentences", "[counts][pair_block]") {
    const std::vector<Token> six = {0, 1, 0, 2, 1, 0};
    const PairBlock block(six, 0, 6, 3, 2, -1), part(six, 3, 6, 3, 2, -1), none(six, 2, 2, 3, 2, -1),
        sentences(six, 0, 6, 3, 2, 2);
    for (int repeat = 0; repeat < 2; ++repeat) {  // nothing of the lag before is left
        CHECK(block.count(1) == SparseCounts({0, 1, 3, 4}, {1, 0, 2, 0}, {2, 1, 1, 1}));
        CHECK(block.count(2) == SparseCounts({0, 2, 3, 4}, {0, 2, 0, 1}, {1, 1, 1, 1}));
    }
    // the earlier words may lie before the part
    CHECK(part.count(1) == SparseCounts({0, 1, 2, 3}, {1, 2, 0}, {1, 1, 1}));
    CHECK(part.count(2) == SparseCounts({0, 1, 2, 3}, {2, 0, 1}, {1, 1, 1}));
    CHECK(none.count(1).pairs() == 0);
    // a boundary is a later word all the same
    CHECK(sentences.count(1) == SparseCounts({0, 1, 2, 3}, {1, 0, 0}, {2, 1, 1}));
    CHECK(sentences.count(2) == SparseCounts({0, 1, 1, 2}, {0, 1}, {1, 1}));
}

TEST_CASE("A block takes the bytes that it says", "[counts][pair_block]") {
    constexpr Index V = 200, tokens = 3000, lags = 20;
    std::vector<Token> long_text;
    for (Index t = 0; t < tokens + lags; ++t) long_text.push_back(static_cast<Token>(t * t % V));
    for (const Token boundary : {-1, 3}) {
        const Index said = PairBlock::bytes(tokens, V, lags, boundary, 1);
        const MostBytes bytes;
        const PairBlock block(long_text, lags, tokens + lags, V, lags, boundary);
        const SparseCounts counts = block.count(1);
        const Index own = 8 * (V + 1) + 8 * counts.pairs();
        CHECK(bytes.most() <= said + own + 16 * 10);  // malloc rounds each of its arrays up
        CHECK(bytes.most() > said + own - 8 * V);
    }
}
