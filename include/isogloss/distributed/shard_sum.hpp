/// @file distributed/shard_sum.hpp  Sums in an order that does not depend on the number of ranks.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/distributed/communicator.hpp>
#include <isogloss/error.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// The shards [first, last) of a rank: contiguous; the numbers of shards differ by at most 1 between ranks.
struct ShardRange {
    Index first = 0, last = 0;
};
/// Those of one of `ranks` ranks.
inline ShardRange shards_of(Index rank, Index ranks, Index shards) {
    return {shards * rank / ranks, shards * (rank + 1) / ranks};
}

/// The most shards that there may be; the fewest are as many as ranks.
inline constexpr Index most_shards = Index{1} << 20;

namespace detail {

/// A binary tree over S shards, in which node k of level j + 1 is the sum of nodes 2k and 2k + 1 of level j, and a
/// node of level 0 is a shard. Floating-point sums depend on their order: here, summing some nodes first and the
/// others elsewhere gives the same bits as summing all in one place.
template <class Value> class ShardTree {
public:
    /// Node `number` of a level covers the existing shards in [number 2ˡ, (number + 1) 2ˡ).
    struct Node {
        Index number = 0;
        int level = 0;
        Value value{};
    };
    explicit ShardTree(Index shards) : shards_(shards) {}

    /// Appends the next node, from left to right; add(a, b) is a ← a + b and the last use of b.
    template <class Add> void push(Node node, Add&& add) {
        nodes_.push_back(std::move(node));
        for (;;) {
            Node& top = nodes_.back();
            if (top.number % 2 == 1) {
                if (nodes_.size() < 2) return;
                Node& left = nodes_[nodes_.size() - 2];
                if (left.number != top.number - 1 || left.level != top.level) return;
                add(left.value, top.value);
                nodes_.pop_back();
            } else if ((top.number + 1) << top.level < shards_ ||
                       (top.number == 0 && Index{1} << top.level >= shards_)) {
                return;  // the right half is still to come, or this is the root
            }
            nodes_.back().number /= 2;
            ++nodes_.back().level;
        }
    }
    /// The root once all shards are in; for a range of shards its largest subtrees, from left to right.
    std::vector<Node>& nodes() { return nodes_; }

private:
    Index shards_;
    std::vector<Node> nodes_;
};

}  // namespace detail

/// Sums of arrays over shards, on every rank, added in the order of a fixed binary tree over the shards: any number
/// of ranks gives the same bits.
///
///     ShardSum<float> sum(shards);
///     sum.take(shard, numbers);                  // of each shard of this rank, in their order
///     const auto& total = sum.finish(ranks);     // collective: the sum over all shards, until the next take()
///
/// The ranks share the work: each sums one part of the array, for which it receives the subtrees of all others. A
/// rank sends (size - 1) / size of its subtrees, one or a few arrays, and as much of the sum.
///
/// Memory   an array for each level of the tree over a rank's shards, and one for receiving
template <class T> class ShardSum {
public:
    explicit ShardSum(Index shards) : shards_(shards), tree_(shards) {}

    /// An array for numbers of the next shard, whose memory may be that of an earlier one.
    Array<T> array(Index n) {
        Array<T> memory;
        if (!free_.empty()) memory = std::move(free_.back()), free_.pop_back();
        memory.resize(n);
        return memory;
    }
    /// Adds the numbers of a shard. Those of all shards have the same size.
    void take(Index shard, Array<T> numbers) {
        tree_.push({shard, 0, std::move(numbers)}, [this](Array<T>& a, Array<T>& b) {
            add(std::ssize(a), a.data(), b.data());
            free_.push_back(std::move(b));
        });
    }
    /// The sum over all shards, on every rank; its memory serves later shards. Collective.
    template <Communicator C> Array<T>& finish(C& ranks) {
        if (ranks.size() > 1) exchange(ranks);
        clear();
        return free_.back();
    }
    /// Forgets what was taken since the last finish().
    void clear() {
        auto& nodes = tree_.nodes();
        while (!nodes.empty()) free_.push_back(std::move(nodes.back().value)), nodes.pop_back();
    }

private:
    // a ← a + b, bit-identical on any thread and within any pass.
    static void add(Index n, T* a, const T* b) {
        const SubnormalsAreZero flush;
        constexpr Index worth_sharing = Index{1} << 16;
        parallel(n, 1024, n < worth_sharing ? 1 : 64, [&](Index first, Index last, Index) {
            for (Index i = first; i < last; ++i) a[i] += b[i];
        });
    }

    // The sum over all shards in the place of this rank's first array.
    template <class C> void exchange(C& ranks) {
        auto& own = tree_.nodes();
        const Index size = ranks.size(), rank = ranks.rank(), n = std::ssize(own[0].value);
        const auto first = [&](Index r) { return n * r / size; };
        const auto count = [&](Index r) { return first(r + 1) - first(r); };
        constexpr Index bytes = sizeof(T);
        std::vector<Index> sent, received, gathered;
        detail::ShardTree<T*> tree(shards_);
        std::vector<typename detail::ShardTree<T*>::Node> nodes;
        send_.clear();
        for (Index r = 0; r < size; ++r) {
            for (const auto& node : own)
                if (own.size() > 1)  // else it is sent from where it is
                    send_.insert(send_.end(), node.value.begin() + first(r),
                                 node.value.begin() + first(r + 1));
            detail::ShardTree<T*> of_rank(shards_);
            const auto range = shards_of(r, size, shards_);
            for (Index s = range.first; s < range.last; ++s) of_rank.push({s, 0}, [](T*, T*) {});
            const auto& theirs = of_rank.nodes();
            nodes.insert(nodes.end(), theirs.begin(), theirs.end());
            sent.push_back(std::ssize(own) * count(r) * bytes);
            received.push_back(std::ssize(theirs) * count(rank) * bytes);
            gathered.push_back(count(r) * bytes);
        }
        received_.resize(std::ssize(nodes) * count(rank));
        ranks.all_to_all(std::as_bytes(std::span(own.size() > 1 ? send_ : own[0].value)), sent,
                         std::as_writable_bytes(std::span(received_)), received);
        T* next = received_.data();
        for (auto node : nodes) {
            node.value = std::exchange(next, next + count(rank));
            tree.push(node, [&](T* a, T* b) { add(count(rank), a, b); });
        }
        const std::span<const T> part(tree.nodes()[0].value, static_cast<std::size_t>(count(rank)));
        ranks.all_gather(std::as_bytes(part), std::as_writable_bytes(std::span(own[0].value)), gathered);
    }

    Index shards_;
    detail::ShardTree<Array<T>> tree_;
    std::vector<Array<T>> free_;
    Array<T> send_, received_;
};

}}}  // namespace isogloss::distributed
