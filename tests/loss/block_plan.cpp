#include <isogloss/loss/block_plan.hpp>

#include "catch.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Blocks take every row once, stay within the limit and are even", "[loss][block_plan]",
                   float, double) {
    using T = TestType;
    const bool words = GENERATE(false, true);
    const Index V = GENERATE(5, 1000, 40000), n = GENERATE(3, 200), capacity = GENERATE(1, 700, 5600);
    const BlockPlan<T> plan({.arrays = words ? 3 : 1, .word_logits = words}, V, n, capacity, Index{4} << 20);
    CAPTURE(words, V, n, capacity, plan.rows());
    REQUIRE((plan.rows() >= 1 && plan.rows() <= capacity));
    for (const Index count : {Index{1}, capacity / 2, capacity}) {
        Index left = count, blocks = 0, least = count, most = 0;
        for (; left > 0; ++blocks) {
            const Index rows = plan.next(left);
            REQUIRE((rows >= 1 && rows <= plan.rows() && rows <= left));
            if (left > rows) least = std::min(least, rows);
            most = std::max(most, rows);
            left -= rows;
        }
        const Index needed = (count + plan.rows() - 1) / plan.rows();
        REQUIRE(blocks <= needed + needed / 2 + 1);  // one more here and there, for whole lane groups
        REQUIRE(2 * least >=
                std::min(most, count / std::max<Index>(blocks, 1)));  // none but the last is thin
    }
}

TEMPLATE_TEST_CASE("What a plan takes stays within the budget down to one row", "[loss][block_plan]", float,
                   double) {
    using T = TestType;
    const Index V = GENERATE(50, 3000), n = GENERATE(4, 64), arrays = GENERATE(1, 4);
    for (const Index budget : {Index{1}, Index{1} << 16, Index{1} << 20, Index{1} << 25}) {
        const HeadNeeds needs{.arrays = arrays, .bytes_a_row = 100, .bytes_a_position = 8, .bytes = 1000};
        const BlockPlan<T> plan(needs, V, n, 400, budget);
        CAPTURE(V, n, arrays, budget, plan.rows());
        const Index taken = plan.size(plan.rows()) * Index{sizeof(T)} + 100 * plan.rows() + 8 * 400 + 1000;
        REQUIRE((plan.rows() == 1 || taken <= budget));
    }
    // more memory, no fewer rows; and no more than there are positions
    Index before = 0;
    for (Index budget = 1; budget < Index{1} << 26; budget *= 4) {
        const Index rows = BlockPlan<T>({.arrays = arrays}, V, n, 400, budget).rows();
        REQUIRE((rows >= before && rows <= 400));
        before = rows;
    }
    // and beyond 64 rows no more than 18 MiB, all of which is used
    const BlockPlan<T> plan({.arrays = arrays}, V, n, 400, Index{1} << 26);
    const auto mebibytes = [&](Index rows) { return double(plan.size(rows)) * sizeof(T) / (1 << 20); };
    CAPTURE(V, n, arrays, plan.rows(), mebibytes(plan.rows()));
    if (plan.rows() < 400) {
        REQUIRE((plan.rows() > 64 && mebibytes(plan.rows()) <= 18 && mebibytes(plan.rows() + 1) > 17.8));
    }
}

TEMPLATE_TEST_CASE("The parts of the pool follow one another", "[loss][block_plan]", float, double) {
    using T = TestType;
    const bool words = GENERATE(false, true);
    const Index V = 30, n = 7, R = GENERATE(1, 9, 64), S = words ? 2 * R : R;
    const BlockPlan<T> plan({.arrays = 3, .word_logits = words}, V, n, 64, Index{1} << 25);
    CAPTURE(words, R);
    REQUIRE(plan.array(0, R) == 0);
    REQUIRE(plan.array(2, R) == 2 * R * V);
    REQUIRE(plan.states(R) == 3 * R * V);
    REQUIRE(plan.packed(R) == plan.states(R) + S * n);
    REQUIRE(plan.partial(R) >= plan.packed(R));
    using Skinny = kernel::SkinnyGemm<T>;
    if (Skinny::Micro::wide)
        REQUIRE(plan.partial(R) >= plan.packed(R) + std::min(S, Skinny::most_transposed(n)) * n);
    REQUIRE(plan.size(R) >= plan.partial(R) + plan.threads_at_most() * S * n);
}
