#include <cmath>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/distributed/tree_sum.hpp>
#include <isogloss/random.hpp>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using distributed::ThreadGroup;
using distributed::TreeNode;
using distributed::TreeSum;

TEST_CASE("The tree over the shards is the one that is described", "[distributed][tree_sum]") {
    const auto text = [](Index shards) {
        TreeSum<std::string> sum(shards);
        for (Index s = 0; s < shards; ++s)
            sum.push({s, 0}, std::to_string(s),
                     [](std::string& a, const std::string& b) { a = "(" + a + "+" + b + ")"; });
        REQUIRE(sum.pieces().size() == 1);
        return sum.pieces()[0].value;
    };
    REQUIRE(text(1) == "0");
    REQUIRE(text(2) == "(0+1)");
    REQUIRE(text(4) == "((0+1)+(2+3))");
    REQUIRE(text(5) == "(((0+1)+(2+3))+4)");
    REQUIRE(text(7) == "(((0+1)+(2+3))+((4+5)+6))");
    REQUIRE(distributed::subtrees({1, 4}, 7) == std::vector<TreeNode>{{1, 0}, {1, 1}});
    REQUIRE(distributed::subtrees({4, 7}, 7) == std::vector<TreeNode>{{1, 2}});
    REQUIRE(distributed::subtrees({0, 7}, 7) == std::vector<TreeNode>{{0, 3}});
}

TEMPLATE_TEST_CASE("Any number of ranks gives the bits of one", "[distributed][tree_sum]", float, double) {
    using T = TestType;
    const Index shards = GENERATE(1, 2, 4, 6, 7, 12), n = GENERATE(1, 5, 1000);
    const auto leaf = [&](Index s) {
        const Random random(3, 1, static_cast<std::uint64_t>(s));
        std::vector<T> v;
        for (Index i = 0; i < n; ++i)
            v.push_back(static_cast<T>(std::exp(20 * random.uniform(i)) * (i % 2 ? 1 : -1)));
        return v;
    };
    const auto add = [](std::vector<T>& a, const std::vector<T>& b) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    };
    TreeSum<std::vector<T>> one(shards);
    for (Index s = 0; s < shards; ++s) one.push({s, 0}, leaf(s), add);
    const std::vector<T> expected = one.pieces()[0].value;
    std::vector<T> in_order = leaf(0);
    for (Index s = 1; s < shards; ++s) add(in_order, leaf(s));
    if (shards >= 6 && n == 1000) REQUIRE(in_order != expected);  // numbers for which the order matters

    for (Index size = 1; size <= shards; ++size) {
        std::vector<std::vector<T>> found(static_cast<std::size_t>(size));
        ThreadGroup::run(size, [&](auto& ranks) {
            const auto mine = distributed::shards_of(ranks.rank(), size, shards);
            TreeSum<std::vector<T>> own(shards);
            for (Index s = mine.first; s < mine.last; ++s) own.push({s, 0}, leaf(s), add);
            std::vector<const T*> arrays;
            for (const auto& piece : own.pieces()) arrays.push_back(piece.value.data());
            auto& sum = found[static_cast<std::size_t>(ranks.rank())];
            sum.resize(static_cast<std::size_t>(n));
            distributed::ArrayTreeSum<T>().run(ranks, shards, std::span<const T* const>(arrays),
                                               std::span(sum));
        });
        for (const auto& sum : found) REQUIRE(sum == expected);
    }
}
