#include <isogloss/counts/sparse_counts.hpp>
#include <isogloss/random.hpp>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

// A [V, V] of which the part `filled` is not 0.
SparseCounts random_counts(Index V, double filled, std::uint32_t stream) {
    const Random random(5, stream);
    Array<std::int64_t> starts{0};
    Array<std::int32_t> columns;
    Array<std::uint32_t> values;
    for (Index i = 0; i < V; ++i) {
        for (Index j = 0; j < V; ++j)
            if (random.uniform(2 * (i * V + j)) < filled) {
                columns.push_back(static_cast<std::int32_t>(j));
                values.push_back(static_cast<std::uint32_t>(1 + random.below(2 * (i * V + j) + 1, 9)));
            }
        starts.push_back(std::ssize(columns));
    }
    return {std::move(starts), std::move(columns), std::move(values)};
}

}  // namespace

TEST_CASE("A sum of sparse counts is the sum of every element", "[counts][sparse_counts]") {
    for (const double filled : {0.0, 0.1, 0.6, 1.0}) {
        const SparseCounts a = random_counts(17, filled, 1), b = random_counts(17, 0.3, 2), sum = a + b;
        REQUIRE(sum.is_valid(Array<std::int64_t>(17, std::int64_t{1} << 40)));
        REQUIRE(sum.rows() == 17);
        bool right = true;
        Index pairs = 0;
        for (Index i = 0; i < 17; ++i)
            for (Index j = 0; j < 17; ++j) {
                right = right && sum(i, j) == a(i, j) + b(i, j);
                pairs += sum(i, j) > 0;
            }
        CHECK(right);
        CHECK(sum.pairs() == pairs);
        CHECK(sum == b + a);
        CHECK_FALSE(sum == a);
    }
}

TEST_CASE("Counts beyond 32 bits are summed, looked up and compared", "[counts][sparse_counts]") {
    constexpr std::int64_t most = 4294967295, half = std::int64_t{1} << 62;
    const SparseCounts a{{0, 2, 2, 3}, {0, 2, 1}, {5, 4294967295, 7}};
    const SparseCounts b{{0, 1, 2, 2}, {2, 0}, {1, 2}}, small{{0, 1, 2, 2}, {1, 0}, {1, 2}};
    const SparseCounts narrow = a + small, wide = a + b;
    CHECK(narrow.values.wide.empty());
    CHECK(wide.values.narrow.empty());
    REQUIRE(wide.is_valid({most + 6, 2, 7}));
    CHECK(wide(0, 2) == most + 1);
    CHECK(wide(0, 0) == 5);
    CHECK(wide(1, 0) == 2);
    CHECK(wide(2, 1) == 7);
    CHECK_FALSE(wide == a);
    const SparseCounts copy{{0, 2, 3, 4}, {0, 2, 0, 1}, {}, {5, most + 1, 2, 7}};
    CHECK(copy == wide);
    const SparseCounts large{{0, 0, 0, 1}, {1}, {}, {half}};
    CHECK((large + b)(2, 1) == half);
    CHECK((large + b)(0, 2) == 1);
    CHECK(large.is_valid({0, 0, half}));
    CHECK_FALSE(large.is_valid({0, 0, half - 1}));
    const SparseCounts row{{0, 2, 2}, {0, 1}, {2, 2}};  // each count fits, their sum must
    CHECK(row.is_valid({4, 0}));
    CHECK_FALSE(row.is_valid({3, 9}));
    CHECK_FALSE((SparseCounts{{0, 1}, {0}, {}, {-1}}.is_valid({9})));
    const SparseCounts of_small{{0, 1}, {0}, {}, {3}}, of_narrow{{0, 1}, {0}, {3}};
    CHECK(of_small == of_narrow);
}

TEST_CASE("A sum takes 8 bytes a pair, however many pairs its parts share", "[counts][sparse_counts]") {
    constexpr Index V = 200;
    for (const double filled : {0.5, 1.0}) {
        const SparseCounts a = random_counts(V, 0.5, 1), b = random_counts(V, filled, 1);  // all of a is in b
        const MostBytes bytes;
        const SparseCounts sum = a + b;
        const auto most = bytes.most();  // before the checks allocate
        CHECK(sum.pairs() == b.pairs());
        CHECK(most >= 8 * sum.pairs());
        CHECK(most <= 8 * (sum.pairs() + V + 1) + 3 * 4096);  // malloc may round each array up to pages
    }
}

TEST_CASE("Arrays that are no matrix of counts are known as such", "[counts][sparse_counts]") {
    const Array<std::int64_t> n(3, std::int64_t{99});
    const SparseCounts good{{0, 2, 2, 3}, {0, 2, 1}, {5, 6, 7}};
    CHECK(good.is_valid(n));
    CHECK(good(0, 2) == 6);
    CHECK(good(0, 1) == 0);
    CHECK(SparseCounts{}.rows() == 0);
    const SparseCounts bad[] = {
        {{}, {}, {}},                          // no start at all,
        {{0, 2, 3}, {0, 2, 1}, {5, 6, 7}},     // or one too few
        {{1, 2, 2, 3}, {0, 2, 1}, {5, 6, 7}},  // rows that begin after 0,
        {{0, 2, 1, 3}, {0, 2, 1}, {5, 6, 7}},  // fall,
        {{0, 4, 2, 3}, {0, 2, 1}, {5, 6, 7}},  // reach beyond the end,
        {{0, 2, 2, 2}, {0, 2, 1}, {5, 6, 7}},  // or end before it
        {{0, 2, 2, 3}, {0, 2, 1}, {5, 6}},     // fewer counts than columns
        {{0, 2, 2, 3}, {2, 0, 1}, {5, 6, 7}},  // columns that fall,
        {{0, 2, 2, 3}, {2, 2, 1}, {5, 6, 7}},  // stand twice,
        {{0, 2, 2, 3}, {0, 3, 1}, {5, 6, 7}},  // or lie outside
        {{0, 2, 2, 3}, {0, -1, 1}, {5, 6, 7}},
    };
    for (const SparseCounts& m : bad) CHECK_FALSE(m.is_valid(n));
}
