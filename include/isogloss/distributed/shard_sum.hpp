/// @file distributed/shard_sum.hpp  Arrays that every shard has, summed on every rank.
#pragma once

#include <isogloss/distributed/tree_sum.hpp>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Sums arrays over shards, in the order of TreeSum or in any order.
///
///     ShardSum<float> sum(ranks, shards, ordered);
///     sum.take(shard, numbers);           // each of this rank's, in their order
///     const auto total = sum.finish();    // collective: the sum over all, on every rank
template <class T, Communicator C> class ShardSum {
public:
    ShardSum(C& ranks, Index shards, bool ordered)
        : ranks_(ranks), shards_(shards), ordered_(ordered), tree_(shards) {}

    /// All arrays have the same size.
    void take(Index shard, std::vector<T> numbers) {
        tree_.push({shard, 0}, std::move(numbers), ordered_, [](std::vector<T>& a, const std::vector<T>& b) {
            add_numbers(std::ssize(a), a.data(), b.data());
        });
    }
    std::vector<T> finish() {
        const auto pieces = tree_.take();
        std::vector<const T*> own;
        for (const auto& piece : pieces) own.push_back(piece.value.data());
        std::vector<T> sum(pieces[0].value.size());
        ArrayTreeSum<T>().run(ranks_, shards_, ordered_, std::span<const T* const>(own), std::span<T>(sum));
        return sum;
    }

private:
    C& ranks_;
    Index shards_;
    bool ordered_;
    TreeSum<std::vector<T>> tree_;
};

/// Sums of the metrics of some updates over all shards, for their next steps (Riemannian::sums).
template <class T, Communicator C, class... Updates> class ShardMetrics {
public:
    ShardMetrics(C& ranks, Index shards, bool ordered, Updates&... updates)
        : updates_(updates...), wanted_{updates.sums()...} {
        for (std::size_t k = 0; k < sizeof...(updates); ++k) sums_.emplace_back(ranks, shards, ordered);
    }
    /// Call after the passes of a shard of this rank.
    void take(Index shard) {
        each([&](auto& update, std::size_t size, auto& sum) {
            std::vector<T> numbers(size);
            update.take_sums(std::span<T>(numbers));
            sum.take(shard, std::move(numbers));
        });
    }
    /// Collective.
    void give() {
        each([](auto& update, std::size_t, auto& sum) {
            const std::vector<T> total = sum.finish();
            update.give_sums(std::span<const T>(total));
        });
    }

private:
    // f(update, number of values it needs, their sum), for each update that needs some.
    template <class F> void each(F&& f) {
        std::size_t k = 0;
        const auto one = [&](auto& update) {
            if (wanted_[k] > 0) f(update, static_cast<std::size_t>(wanted_[k]), sums_[k]);
            ++k;
        };
        std::apply([&](auto&... update) { (one(update), ...); }, updates_);
    }
    std::tuple<Updates&...> updates_;
    std::vector<Index> wanted_;
    std::vector<ShardSum<T, C>> sums_;
};

}}}  // namespace isogloss::distributed
