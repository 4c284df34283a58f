#include <isogloss/counts/pair_block.hpp>
#include <map>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

using Row = std::vector<std::pair<Token, std::uint32_t>>;  // columns and counts, as they come

std::vector<Row> rows(const PairBlock& block, Index V, const LagCells& lag) {
    std::vector<Row> out(static_cast<std::size_t>(V));
    for (Index i = 0; i < V; ++i)
        for (std::uint32_t at = block.start(i); at < lag.rows[i].end; ++at)
            out[std::size_t(i)].push_back({lag.cells[at].column, lag.cells[at].count});
    return out;
}

std::vector<std::uint32_t> starts(const PairBlock& block, Index V) {
    std::vector<std::uint32_t> out;
    for (Index i = 0; i <= V; ++i) out.push_back(block.start(i));
    return out;
}

const std::vector<Token> six = {0, 1, 0, 2, 1, 0};

}  // namespace

TEST_CASE("The pairs of six tokens, lag by lag", "[counts][pair_block]") {
    const PairBlock block(six, 0, 6, 3, 2, -1);
    CHECK(starts(block, 3) == std::vector<std::uint32_t>{0, 3, 5, 6});  // three 0, two 1, one 2
    LagCells cells;  // one for both lags: nothing of the lag before is left in it
    for (int repeat = 0; repeat < 2; ++repeat) {
        block.count(1, cells);
        CHECK(rows(block, 3, cells) == std::vector<Row>{{{1, 2}}, {{0, 1}, {2, 1}}, {{0, 1}}});
        block.count(2, cells);
        CHECK(rows(block, 3, cells) == std::vector<Row>{{{0, 1}, {2, 1}}, {{0, 1}}, {{1, 1}}});
    }
}

TEST_CASE("The later words are those of the part, the earlier ones may lie before it",
          "[counts][pair_block]") {
    const PairBlock block(six, 3, 6, 3, 2, -1);
    CHECK(starts(block, 3) == std::vector<std::uint32_t>{0, 1, 2, 3});
    LagCells cells;
    block.count(1, cells);
    CHECK(rows(block, 3, cells) == std::vector<Row>{{{1, 1}}, {{2, 1}}, {{0, 1}}});
    block.count(2, cells);
    CHECK(rows(block, 3, cells) == std::vector<Row>{{{2, 1}}, {{0, 1}}, {{1, 1}}});

    const PairBlock none(six, 2, 2, 3, 2, -1);
    none.count(1, cells);
    CHECK(rows(none, 3, cells) == std::vector<Row>(3));
}

TEST_CASE("No pair reaches over a boundary, which is a later word all the same", "[counts][pair_block]") {
    const PairBlock block(six, 0, 6, 3, 2, 2);
    LagCells cells;
    block.count(1, cells);
    CHECK(rows(block, 3, cells) == std::vector<Row>{{{1, 2}}, {{0, 1}}, {{0, 1}}});
    block.count(2, cells);
    CHECK(rows(block, 3, cells) == std::vector<Row>{{{0, 1}}, {}, {{1, 1}}});
}

TEST_CASE("A text of one word has T - k pairs at lag k, in one cell", "[counts][pair_block]") {
    const std::vector<Token> same(50, 1);
    const PairBlock block(same, 0, 50, 3, 49, -1);
    LagCells cells;
    for (Index k = 1; k <= 49; ++k) {
        block.count(k, cells);
        CHECK(rows(block, 3, cells) == std::vector<Row>{{}, {{1, std::uint32_t(50 - k)}}, {}});
    }
}

TEST_CASE("A block takes the bytes that it says", "[counts][pair_block]") {
    constexpr Index V = 200, tokens = 3000, lags = 20;
    std::vector<Token> long_text;
    for (Index t = 0; t < tokens + lags; ++t) long_text.push_back(static_cast<Token>(t * t % V));
    for (const Token boundary : {-1, 3})
        for (const Index n : {1, 3}) {
            const Index said = PairBlock::bytes(tokens, V, lags, boundary, n);
            std::vector<LagCells> cells(static_cast<std::size_t>(n));
            const MostBytes bytes;
            const PairBlock block(long_text, lags, tokens + lags, V, lags, boundary);
            for (LagCells& c : cells) block.count(1, c);
            CHECK(bytes.most() <= said + 16 * (4 + 2 * n));  // malloc rounds each of its arrays up
            CHECK(bytes.most() > said - 8 * V);
        }
}
