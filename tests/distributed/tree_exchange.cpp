#include <isogloss/distributed/background.hpp>
#include <isogloss/distributed/gradient_sum.hpp>
#include <isogloss/distributed/tree_exchange.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/random.hpp>
#include <stdexcept>

#include "catch.hpp"
#include "mailbox.hpp"

using namespace isogloss;
using distributed::Alone;
using distributed::ArrayTreeSum;
using distributed::Background;
using distributed::GradientSum;
using distributed::ThreadGroup;
using distributed::TreeExchange;

namespace {

// Array of a shard, with numbers of all sizes.
template <class T> std::vector<T> array_of(Index shard, Index n) {
    const Random random(2, 3, static_cast<std::uint64_t>(shard));
    std::vector<T> v;
    for (Index i = 0; i < n; ++i)
        v.push_back(
            static_cast<T>(std::ldexp(random.uniform(2 * i) - 0.5, int(random.below(2 * i + 1, 30)))));
    return v;
}

// The arrays of the largest subtrees of a rank's shards.
template <class T>
std::vector<std::vector<T>> subtree_sums(distributed::ShardRange mine, Index shards, Index n) {
    distributed::TreeSum<std::vector<T>> tree(shards);
    for (Index s = mine.first; s < mine.last; ++s)
        tree.push({s, 0}, array_of<T>(s, n), [](auto& a, const auto& b) {
            distributed::add_numbers(std::ssize(a), a.data(), b.data());
        });
    std::vector<std::vector<T>> arrays;
    for (const auto& piece : tree.pieces()) arrays.push_back(piece.value);
    return arrays;
}

}  // namespace

TEMPLATE_TEST_CASE("Messages add up to the bits of the tree over all shards", "[distributed][tree_exchange]",
                   float, double) {
    const Index shards = GENERATE(4, 5, 8), n = GENERATE(1, 3, 100);
    const bool polled = GENERATE(false, true);
    const std::vector<TestType> expected = subtree_sums<TestType>({0, shards}, shards, n)[0];
    for (const Index size : {2, 3, 4}) {
        mailbox::Post post;
        std::vector<std::vector<TestType>> found(static_cast<std::size_t>(2 * size));
        ThreadGroup::run(size, [&](auto& member) {
            mailbox::Ranks ranks(member, post, false);
            const auto mine = distributed::shards_of(ranks.rank(), size, shards);
            // Two at a time; the sum of the second is written over the last of its arrays.
            auto one = subtree_sums<TestType>(mine, shards, n), two = one;
            std::vector<TestType> sum(static_cast<std::size_t>(n));
            std::vector<TestType*> own, other;
            for (auto& a : one) own.push_back(a.data());
            for (auto& a : two) other.push_back(a.data());
            TreeExchange<TestType> first, second;
            first.start(ranks, 0, shards, std::span<TestType* const>(own), std::span(sum));
            second.start(ranks, 2, shards, std::span<TestType* const>(other), std::span(two.back()));
            if (polled)
                for (bool left = true; left;) {
                    const bool a = first.advance(ranks), b = second.advance(ranks);
                    left = !a || !b;
                }
            second.finish(ranks);
            first.finish(ranks);
            found[static_cast<std::size_t>(2 * ranks.rank())] = sum;
            found[static_cast<std::size_t>(2 * ranks.rank() + 1)] = two.back();
        });
        for (const auto& f : found) REQUIRE(f == expected);
    }
}

TEMPLATE_TEST_CASE("Gradients that travel early are those that travel at the end",
                   "[distributed][tree_exchange]", float, double) {
    const bool concurrent = GENERATE(false, true);
    const Index shards = 6, n = 40, pack = GENERATE(0, 30);
    // Parameters that nodes 1 and 0 complete, and one that no node uses.
    const auto run = [&](auto& ranks, bool overlap) {
        Graph<TestType> g{GraphOptions{}};
        for (const char* name : {"A", "B", "C"}) g.weight(name, 1, n / (name[0] - 'A' + 1), constant(0));
        g.parameter("A").used_by(1), g.parameter("B").used_by(0);
        GradientSum<TestType, std::remove_reference_t<decltype(ranks)>> sum(
            g.parameters(), ranks, {.shards = shards, .overlap = overlap, .pack = pack});
        const auto mine = distributed::shards_of(ranks.rank(), ranks.size(), shards);
        std::vector<TestType> found;
        for (int batch = 0; batch < 3; ++batch) {
            for (Index s = mine.first; s < mine.last; ++s) {
                for (const int node : {1, 0}) {
                    auto& p = g.parameter(node == 1 ? "A" : "B");
                    const auto a = array_of<TestType>(s + 10 * batch, p.size());
                    std::copy(a.begin(), a.end(), p.dense_gradient().data);
                    sum.left(node);
                }
                sum.take();
            }
            sum.finish();
            for (auto* p : g.parameters()) {
                found.insert(found.end(), p->gradient, p->gradient + p->size());
                p->clear_gradient();
            }
        }
        return found;
    };
    Alone alone;
    const auto expected = run(alone, false);
    REQUIRE(run(alone, true) == expected);
    for (const Index size : {2, 3, 4}) {
        mailbox::Post post;
        std::vector<std::vector<TestType>> found(static_cast<std::size_t>(size));
        ThreadGroup::run(size, [&](auto& member) {
            mailbox::Ranks ranks(member, post, concurrent);
            found[static_cast<std::size_t>(ranks.rank())] = run(ranks, true);
        });
        for (const auto& f : found) REQUIRE(f == expected);
    }
}

TEST_CASE("A thread in the background works until there is nothing to do, or it is told to pause",
          "[distributed][tree_exchange]") {
    int left = 3;
    Background background(
        [&] {
            if (left < 0) throw std::runtime_error("too far");
            return --left > 0;
        },
        std::chrono::microseconds(1));
    const auto remaining = [&] {
        const auto alone = background.alone();
        return left;
    };
    CHECK(remaining() == 3);
    const auto go_on = [&] {
        const auto alone = background.alone();
        background.go_on();
    };
    go_on();
    while (remaining() > 0) std::this_thread::yield();
    CHECK(!background.pause());
    CHECK(remaining() == 0);
    go_on();
    while (remaining() == 0) std::this_thread::yield();
    go_on();  // and now it throws
    std::exception_ptr error;
    while (!(error = background.pause())) go_on();
    CHECK_THROWS_WITH(std::rethrow_exception(error), "too far");
    CHECK(!background.pause());
}
