#include <cmath>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/random.hpp>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using distributed::ShardSum;
using distributed::ThreadGroup;

TEST_CASE("The tree over the shards is the one that is described", "[distributed][shard_sum]") {
    // The nodes that a range of shards adds up to, from left to right.
    const auto text = [](Index first, Index last, Index shards) {
        distributed::detail::ShardTree<std::string> tree(shards);
        for (Index s = first; s < last; ++s)
            tree.push({s, 0, std::to_string(s)},
                      [](std::string& a, const std::string& b) { a = "(" + a + "+" + b + ")"; });
        std::string all;
        for (const auto& node : tree.nodes()) all += (all.empty() ? "" : " ") + node.value;
        return all;
    };
    CHECK(text(0, 1, 1) == "0");
    CHECK(text(0, 2, 2) == "(0+1)");
    CHECK(text(0, 4, 4) == "((0+1)+(2+3))");
    CHECK(text(0, 5, 5) == "(((0+1)+(2+3))+4)");
    CHECK(text(0, 7, 7) == "(((0+1)+(2+3))+((4+5)+6))");
    CHECK(text(1, 4, 7) == "1 (2+3)");
    CHECK(text(4, 7, 7) == "((4+5)+6)");
}

TEMPLATE_TEST_CASE("Any number of ranks gives the bits of one, again and again", "[distributed][shard_sum]",
                   float, double) {
    using T = TestType;
    const Index shards = GENERATE(1, 4, 7, 12), n = GENERATE(0, 1, 5, 1000);
    const auto leaf = [&](Index s) {
        const Random random(3, 1, static_cast<std::uint64_t>(s));
        Array<T> v;
        for (Index i = 0; i < n; ++i)
            v.push_back(static_cast<T>(std::exp(20 * random.uniform(i)) * (i % 2 ? 1 : -1)));
        return v;
    };
    distributed::detail::ShardTree<Array<T>> tree(shards);
    const auto add = [](Array<T>& a, const Array<T>& b) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    };
    for (Index s = 0; s < shards; ++s) tree.push({s, 0, leaf(s)}, add);
    const Array<T> expected = tree.nodes()[0].value;
    Array<T> in_order = leaf(0);
    for (Index s = 1; s < shards; ++s) add(in_order, leaf(s));
    if (shards >= 7 && n == 1000) REQUIRE(in_order != expected);  // numbers for which the order matters

    for (Index size = 1; size <= std::min<Index>(shards, 5); ++size) {
        std::vector<std::vector<Array<T>>> found(static_cast<std::size_t>(size));
        ThreadGroup::run(size, [&](auto& ranks) {
            const auto mine = distributed::shards_of(ranks.rank(), size, shards);
            ShardSum<T> sum(shards);
            sum.take(mine.first, leaf(0));
            sum.clear();  // and nothing of it is left
            for (int again = 0; again < 2; ++again) {
                for (Index s = mine.first; s < mine.last; ++s) {
                    auto numbers = sum.array(n);
                    numbers = leaf(s);
                    sum.take(s, std::move(numbers));
                }
                found[static_cast<std::size_t>(ranks.rank())].push_back(sum.finish(ranks));
            }
        });
        for (const auto& sums : found)
            for (const auto& sum : sums) REQUIRE(sum == expected);
    }
}
