/// @file distributed/row_sum.hpp  The gradient of a table of which shards touch some rows, summed on every rank.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/distributed/tree_sum.hpp>
#include <isogloss/graph/parameters.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Sums the rows of a parameter's gradient over shards, in the order of TreeSum or in any: a part of GradientSum.
/// Only the rows touched by some shard are sent.
template <class T> class RowSum {
public:
    /// For a parameter, on a rank with `shards` shards.
    RowSum(Parameter<T>* parameter, Index shards) : parameter_(parameter), touched_(shards), terms_(shards) {}

    /// Takes the gradient of this rank's shard number `taken` from the parameter.
    void take(Index taken) {
        Parameter<T>& p = *parameter_;
        Touched& to = touched_[taken];
        to.rows.clear(), to.values.clear();
        if (p.condition == Parameter<T>::Condition::rows)
            for (const Index i : p.touched) to.rows.push_back(i);
        if (p.condition == Parameter<T>::Condition::dense)
            for (Index i = 0; i < p.rows; ++i) to.rows.push_back(i);
        std::sort(to.rows.begin(), to.rows.end());
        for (const Index i : to.rows)
            to.values.insert(to.values.end(), p.gradient + i * p.cols, p.gradient + (i + 1) * p.cols);
        p.clear_gradient();
    }

    /// Adds the sums of all shards to the parameter's gradient. `reduce(arrays, sum)` sums the arrays of this
    /// rank's subtrees over all ranks. Collective.
    template <Communicator C, class Reduce>
    void finish(C& ranks, ShardRange mine, Index taken, Index shards, bool ordered, Reduce&& reduce) {
        find_rows(ranks, taken);
        Parameter<T>& p = *parameter_;
        const Index numbers = std::ssize(rows_) * p.cols;
        TreeSum<T*> tree(shards);
        const auto add = [&](T* a, const T* b) { add_numbers(numbers, a, b); };
        for (Index s = 0; s < taken; ++s) {
            // Rows that a shard has not touched count as zeros, so that sums have the same terms on every rank.
            const Touched& own = touched_[s];
            Array<T>& terms = terms_[s];
            terms.assign(numbers, T(0));
            auto place = rows_.begin();
            for (std::size_t k = 0; k < own.rows.size(); ++k) {
                place = std::lower_bound(place, rows_.end(), own.rows[k]);
                std::copy_n(own.values.data() + static_cast<Index>(k) * p.cols, p.cols,
                            terms.data() + (place - rows_.begin()) * p.cols);
            }
            tree.push({mine.first + s, 0}, terms.data(), ordered, add);
        }
        sum_.resize(numbers);
        std::vector<const T*> own;
        for (const auto& piece : tree.pieces()) own.push_back(piece.value);
        reduce(own, std::span<T>(sum_));
        const T* from = sum_.data();
        for (const Index i : rows_) {
            add_numbers(p.cols, p.gradient_row(i), from);
            from += p.cols;
        }
    }

private:
    struct Touched {
        std::vector<Index> rows;  // ascending
        std::vector<T> values;
    };

    // The rows touched by some shard of some rank.
    template <class C> void find_rows(C& ranks, Index taken) {
        Array<Index> own;
        for (Index s = 0; s < taken; ++s) {
            const auto& rows = touched_[s].rows;
            own.insert(own.end(), rows.begin(), rows.end());
        }
        unite(own);
        const auto counts = gathered(ranks, std::ssize(own) * Index{sizeof(Index)});
        Index all = 0;
        for (const Index n : counts) all += n;
        rows_.resize(all / Index{sizeof(Index)});
        ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(rows_)), counts);
        unite(rows_);
    }
    static void unite(Array<Index>& rows) {
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }

    Parameter<T>* parameter_;
    Array<Touched> touched_;  // of each shard of this rank
    Array<Index> rows_;       // touched by any shard, ascending
    Array<Array<T>> terms_;   // the rows of each shard of this rank, and in the end sums of several
    Array<T> sum_;
};

}}}  // namespace isogloss::distributed
