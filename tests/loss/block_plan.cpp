#include <isogloss/loss/block_plan.hpp>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("Blocks take every row once, stay within the limit and are even", "[loss][block_plan]") {
    const Index grain = GENERATE(1, 4, 16), most = GENERATE(1, 15, 16, 137, 700),
                count = GENERATE(1, 350, 700, 5600);
    CAPTURE(grain, most, count);
    Index left = count, blocks = 0, least = count, largest = 0;
    for (; left > 0; ++blocks) {
        const Index rows = detail::next_rows(left, most, grain);
        REQUIRE((rows >= 1 && rows <= most && rows <= left));
        if (left > rows) least = std::min(least, rows);
        largest = std::max(largest, rows);
        left -= rows;
    }
    const Index needed = (count + most - 1) / most;
    REQUIRE(blocks <= needed + needed / 2 + 1);  // one more here and there, for whole lane groups
    REQUIRE(2 * least >= std::min(largest, count / blocks));  // none but the last is thin
}

TEST_CASE("A block has as many rows as the budget allows, beyond 64 within what is enough",
          "[loss][block_plan]") {
    const Index row = GENERATE(100, 50'000, 400'000), enough = GENERATE(Index{17} << 20, Index{40} << 20);
    const auto bytes = [row](Index rows) { return 1000 + rows * row; };
    Index before = 0;
    for (Index budget = 1; budget < Index{1} << 27; budget *= 4) {
        const Index rows = detail::most_rows(400, budget, enough, bytes);
        CAPTURE(row, enough, budget, rows);
        REQUIRE((rows >= before && rows <= 400));
        REQUIRE((rows == 1 || bytes(rows) <= budget));
        const auto pays = [&](Index r) { return r <= 64 || r * row <= enough; };
        REQUIRE((pays(rows) && (rows == 400 || bytes(rows + 1) > budget || !pays(rows + 1))));
        before = rows;
    }
}
