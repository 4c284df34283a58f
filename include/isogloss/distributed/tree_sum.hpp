/// @file distributed/tree_sum.hpp  Sums in an order that does not depend on the number of ranks.
#pragma once

#include <isogloss/distributed/communicator.hpp>
#include <isogloss/error.hpp>
#include <isogloss/subnormals.hpp>
#include <isogloss/types.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// A node of the tree over S shards: node k of level j covers the existing shards in [k 2ʲ, (k+1) 2ʲ).
struct TreeNode {
    Index number = 0;
    int level = 0;  ///< 0: a shard
    bool operator==(const TreeNode&) const = default;
};

/// The shards [first, last) of a rank: contiguous; the numbers of shards differ by at most 1 between ranks.
struct ShardRange {
    Index first = 0, last = 0;
};
inline ShardRange shards_of(Index rank, Index ranks, Index shards) {  ///< see above
    return {shards * rank / ranks, shards * (rank + 1) / ranks};
}

/// Throws UsageError, naming `who`, unless 1 ≤ shards ≤ most, and for fewer shards than ranks.
inline void require_shards(std::string_view who, Index shards, Index ranks, Index most = Index{1} << 20) {
    require(who, "shards", shards, 1, most);
    if (shards < ranks)
        throw UsageError(who, ": found ", ranks, " ranks for ", shards,
                         " shards, expected at most one rank per shard; raise shards, or start fewer ranks");
}

/// Sums values, given in shard order, by the binary tree in which node k of level j+1 is the sum of nodes 2k and
/// 2k+1 of level j. Floating-point sums depend on their order: here, summing some nodes first and the others
/// elsewhere gives the same bits as summing all in one place.
template <class Value> class TreeSum {
public:
    struct Piece {
        TreeNode node;
        Value value;
    };
    explicit TreeSum(Index shards) : shards_(shards) {}

    /// Appends the next node; add(a, b) is a ← a + b and the last use of b.
    template <class Add> void push(TreeNode node, Value value, Add&& add) {
        pieces_.push_back({node, std::move(value)});
        for (;;) {
            auto& [at, top] = pieces_.back();
            if (at.number % 2 == 1) {
                if (pieces_.size() < 2) return;
                auto& left = pieces_[pieces_.size() - 2];
                if (left.node != TreeNode{at.number - 1, at.level}) return;
                add(left.value, top);
                pieces_.pop_back();
            } else if ((at.number + 1) << at.level < shards_ ||
                       (at.number == 0 && Index{1} << at.level >= shards_)) {
                return;  // the right half is still to come, or this is the root
            }
            auto& up = pieces_.back().node;
            up = {up.number / 2, up.level + 1};
        }
    }

    /// The same if sums are to be `ordered`; otherwise adds the value to the first node, whichever that is.
    template <class Add> void push(TreeNode node, Value value, bool ordered, Add&& add) {
        if (ordered || pieces_.empty()) push(node, std::move(value), add);
        else add(pieces_[0].value, value);
    }

    /// The remaining nodes: the root once all shards are in; for a range of shards its largest subtrees.
    const std::vector<Piece>& pieces() const { return pieces_; }
    /// Moves them out.
    std::vector<Piece> take() { return std::exchange(pieces_, {}); }

private:
    Index shards_;
    std::vector<Piece> pieces_;
};

/// The largest subtrees that make up a range of shards, from left to right.
inline std::vector<TreeNode> subtrees(ShardRange range, Index shards) {
    struct Nothing {};
    TreeSum<Nothing> sum(shards);
    for (Index s = range.first; s < range.last; ++s) sum.push({s, 0}, {}, [](auto&, auto&) {});
    std::vector<TreeNode> nodes;
    for (const auto& piece : sum.pieces()) nodes.push_back(piece.node);
    return nodes;
}

/// a ← a + b, bit-identical on any thread and within any pass.
template <class T> void add_numbers(Index n, T* a, const T* b) {
    const SubnormalsAreZero flush;
    for (Index i = 0; i < n; ++i) a[i] += b[i];
}

/// Sums of arrays over all shards, on every rank. The ranks share the work: each sums one part of the array, for
/// which it receives the subtrees of all others. A rank sends (size - 1) / size of its subtrees, one or a few
/// arrays, and as much of the sum.
template <class T> class ArrayTreeSum {
public:
    /// `own`: the arrays of this rank's subtrees(), `sum`: the destination, which may be one of them; each has
    /// sum.size() numbers.
    template <Communicator C>
    void run(C& ranks, Index shards, std::span<const T* const> own, std::span<T> sum) {
        const Index size = ranks.size(), rank = ranks.rank(), n = std::ssize(sum);
        if (size == 1) {
            if (own[0] != sum.data()) std::copy_n(own[0], n, sum.data());
            return;
        }
        const auto first = [&](Index r) { return n * r / size; };
        const auto count = [&](Index r) { return first(r + 1) - first(r); };
        std::vector<Index> sent, received, gathered;
        std::vector<std::vector<TreeNode>> nodes;
        send_.clear();
        for (Index r = 0; r < size; ++r) {
            for (const T* array : own) send_.insert(send_.end(), array + first(r), array + first(r + 1));
            nodes.push_back(subtrees(shards_of(r, size, shards), shards));
            sent.push_back(std::ssize(own) * count(r) * Index{sizeof(T)});
            received.push_back(std::ssize(nodes.back()) * count(rank) * Index{sizeof(T)});
            gathered.push_back(count(r) * Index{sizeof(T)});
        }
        Index all = 0;
        for (const Index bytes : received) all += bytes;
        received_.resize(static_cast<std::size_t>(all) / sizeof(T));
        ranks.all_to_all(std::as_bytes(std::span(send_)), sent, std::as_writable_bytes(std::span(received_)),
                         received);

        TreeSum<T*> tree(shards);
        T* at = received_.data();
        for (const auto& of_rank : nodes)
            for (const TreeNode node : of_rank) {
                tree.push(node, at, [&](T* a, const T* b) { add_numbers(count(rank), a, b); });
                at += count(rank);
            }
        const std::span<const T> part(tree.pieces()[0].value, static_cast<std::size_t>(count(rank)));
        ranks.all_gather(std::as_bytes(part), std::as_writable_bytes(sum), gathered);
    }

    /// The same if the sum is to be `ordered`; otherwise in the fastest order, of one array from each rank.
    template <Communicator C>
    void run(C& ranks, Index shards, bool ordered, std::span<const T* const> own, std::span<T> sum) {
        if (ordered) return run(ranks, shards, own, sum);
        if (own[0] != sum.data()) std::copy_n(own[0], sum.size(), sum.data());
        ranks.all_reduce(sum);
    }

private:
    std::vector<T> send_, received_;
};

}}}  // namespace isogloss::distributed
