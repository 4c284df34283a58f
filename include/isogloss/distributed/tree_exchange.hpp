/// @file distributed/tree_exchange.hpp  A sum of arrays over all shards that proceeds while a rank works.
#pragma once

#include <algorithm>
#include <isogloss/distributed/tree_sum.hpp>
#include <span>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// The sum of ArrayTreeSum, in the same order and with the same bits, by messages in transit while a rank does
/// other work. Arrays are sent from where they lie, and the sum is received in its final place.
///
///     exchange.start(ranks, tag, shards, own, sum);
///     while (!exchange.advance(ranks)) …               // now and then: adds what has come, and sends the sum of it
///     exchange.finish(ranks);                          // or waits
template <class T> class TreeExchange {
public:
    /// `own`: the arrays of this rank's subtrees(), which are summed in place; `sum`: the destination, which may
    /// be one of them. None may be moved or touched until the sum is complete. Uses tags `tag` and `tag` + 1.
    /// Every rank starts the same sums.
    template <Asynchronous C>
    void start(C& ranks, int tag, Index shards, std::span<T* const> own, std::span<T> sum) {
        const Index size = ranks.size(), rank = ranks.rank();
        shards_ = shards, size_ = size, rank_ = rank, tag_ = tag, sum_ = sum;
        own_.assign(own.begin(), own.end());
        nodes_.clear();
        Index arrays = 0;
        for (Index r = 0; r < size; ++r) {
            nodes_.push_back(subtrees(shards_of(r, size, shards), shards));
            if (r != rank) arrays += std::ssize(nodes_.back());
        }
        received_.resize(static_cast<std::size_t>(arrays * part(rank)));
        out_.clear(), in_.clear();
        Index at = 0;
        for (Index r = 0; r < size; ++r) {
            if (r == rank) continue;
            for (const T* array : own_) out_.push_back({r, bytes(array + first(r), part(r))});
            for (std::size_t k = 0; k < nodes_[static_cast<std::size_t>(r)].size(); ++k, at += part(rank))
                in_.push_back({r, writable(received_.data() + at, part(rank))});
        }
        number_ = ranks.start(tag_, out_, in_);
        phase_ = Phase::parts;
    }

    /// Whether the sum is complete; advances it as far as possible without waiting.
    template <Asynchronous C> bool advance(C& ranks) {
        if (phase_ == Phase::parts && ranks.done(number_)) share(ranks);
        if (phase_ == Phase::whole && ranks.done(number_)) phase_ = Phase::idle;
        return phase_ == Phase::idle;
    }
    /// Waits for the sum.
    template <Asynchronous C> void finish(C& ranks) {
        if (phase_ == Phase::parts) ranks.finish(number_), share(ranks);
        if (phase_ == Phase::whole) ranks.finish(number_), phase_ = Phase::idle;
    }

private:
    enum class Phase { idle, parts, whole };

    Index first(Index r) const { return std::ssize(sum_) * r / size_; }
    Index part(Index r) const { return first(r + 1) - first(r); }
    static std::span<const std::byte> bytes(const T* from, Index n) {
        return std::as_bytes(std::span(from, static_cast<std::size_t>(n)));
    }
    static std::span<std::byte> writable(T* to, Index n) {
        return std::as_writable_bytes(std::span(to, static_cast<std::size_t>(n)));
    }

    // Sums this rank's part of the array, and begins to send it to all others.
    template <class C> void share(C& ranks) {
        TreeSum<T*> tree(shards_);
        Index at = 0;
        for (Index r = 0; r < size_; ++r)
            for (std::size_t k = 0; k < nodes_[static_cast<std::size_t>(r)].size(); ++k) {
                T* const array = r == rank_ ? own_[k] + first(rank_) : received_.data() + at;
                if (r != rank_) at += part(rank_);
                tree.push(nodes_[static_cast<std::size_t>(r)][k], array,
                          [&](T* a, const T* b) { add_numbers(part(rank_), a, b); });
            }
        T* const to = sum_.data() + first(rank_);
        if (const T* from = tree.pieces()[0].value; from != to) std::copy_n(from, part(rank_), to);
        out_.clear(), in_.clear();
        for (Index r = 0; r < size_; ++r) {
            if (r == rank_) continue;
            out_.push_back({r, bytes(to, part(rank_))});
            in_.push_back({r, writable(sum_.data() + first(r), part(r))});
        }
        number_ = ranks.start(tag_ + 1, out_, in_);
        phase_ = Phase::whole;
    }

    Phase phase_ = Phase::idle;
    Index shards_ = 0, size_ = 1, rank_ = 0, number_ = 0;
    int tag_ = 0;
    std::span<T> sum_;
    std::vector<T*> own_;
    std::vector<T> received_;
    std::vector<std::vector<TreeNode>> nodes_;  // of each rank
    std::vector<Outgoing> out_;
    std::vector<Incoming> in_;
};

}}}  // namespace isogloss::distributed
