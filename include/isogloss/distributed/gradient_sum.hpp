/// @file distributed/gradient_sum.hpp  The gradients of all shards, summed on every rank.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/graph/parameters.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

namespace detail {

/// The gradient of a table that is only read by rows: the rows touched by some shard, summed over all shards.
template <class T> class RowSum {
public:
    RowSum(Parameter<T>* table, Index shards) : table_(table), sum_(shards) {}

    /// Takes the gradient of a shard from the table.
    void take(Index shard) {
        Parameter<T>& p = *table_;
        Touched& touched = shards_.emplace_back();
        touched.shard = shard;
        for (Index i = 0; p.counts() && i < p.rows; ++i)
            if (p.condition == Parameter<T>::Condition::dense || p.hit[i]) {
                touched.rows.push_back(i);
                touched.values.insert(touched.values.end(), p.gradient + i * p.cols,
                                      p.gradient + (i + 1) * p.cols);
            }
        p.clear_gradient();
    }
    /// Sets the gradient to the sum. Collective.
    template <Communicator C> void finish(C& ranks) {
        Parameter<T>& p = *table_;
        const Array<Index> rows = touched_rows(ranks);
        for (const Touched& touched : shards_) {
            // Rows that a shard has not touched count as zeros, so that sums have the same terms on every rank.
            Array<T> terms = sum_.array(std::ssize(rows) * p.cols);
            std::fill(terms.begin(), terms.end(), T(0));
            auto place = rows.begin();
            auto values = touched.values.begin();
            for (const Index row : touched.rows) {
                place = std::lower_bound(place, rows.end(), row);
                std::copy_n(values, p.cols, terms.begin() + (place - rows.begin()) * p.cols);
                values += p.cols;
            }
            sum_.take(touched.shard, std::move(terms));
        }
        shards_.clear();
        const T* sum = sum_.finish(ranks).data();
        for (const Index row : rows) {
            T* const gradient = p.gradient_row(row);
            for (Index c = 0; c < p.cols; ++c) gradient[c] += *sum++;
        }
    }
    void clear() { shards_.clear(); }

private:
    struct Touched {
        Index shard = 0;
        Array<Index> rows;  // ascending
        Array<T> values;
    };

    // The rows touched by some shard of some rank, ascending.
    template <class C> Array<Index> touched_rows(C& ranks) const {
        Array<Index> own, all;
        for (const Touched& touched : shards_)
            own.insert(own.end(), touched.rows.begin(), touched.rows.end());
        unite(own);
        Index bytes = 0;
        const auto counts = gathered(ranks, std::ssize(own) * Index{sizeof(Index)});
        for (const Index n : counts) bytes += n;
        all.resize(bytes / Index{sizeof(Index)});
        ranks.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), counts);
        unite(all);
        return all;
    }
    static void unite(Array<Index>& rows) {
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }

    Parameter<T>* table_;
    std::vector<Touched> shards_;  // of this rank
    ShardSum<T> sum_;
};

}  // namespace detail

/// Sums the gradients of a group of parameters over shards, see ShardSum.
///
///     sum.take(shard);      // after the backward pass of each shard of this rank, in their order
///     sum.finish(ranks);    // collective: the gradients are those of all shards, on every rank
///
/// For tables that are only read by rows (the input of a model with a separate head) the rows touched by some
/// shard are sent, for all other parameters the whole gradient. A member that is frozen (Parameters::trained) while the
/// gradients are summed, on every rank, has none afterwards.
///
/// Memory   that of a ShardSum of the group's dense numbers
template <class T> class GradientSum {
public:
    GradientSum(Parameters<T> group, Index shards)
        : group_(std::move(group)), sum_(shards), provenance_(shards) {
        for (Parameter<T>* p : group_)
            if (p->lookups > 0 && p->uses() == p->lookups) tables_.emplace_back(p, shards);
            else dense_.push_back(p);
    }

    /// Takes the gradients of the next shard of this rank from the parameters.
    void take(Index shard) {
        Array<double> all;
        for (const Parameter<T>* p : group_) {
            const auto& [columns, predicted, passes, last_pass] = p->provenance;
            all.insert(all.end(), {columns, predicted, passes, last_pass});
        }
        provenance_.take(shard, std::move(all));
        for (auto& table : tables_) table.take(shard);
        Index size = 0;
        for (const Parameter<T>* p : dense_) size += p->trained ? p->size() : 0;
        Array<T> numbers = sum_.array(size);
        T* next = numbers.data();
        for (Parameter<T>* p : dense_) {
            if (!p->trained) continue;
            if (p->counts()) std::copy_n(p->dense_gradient().data, p->size(), next);
            else std::fill_n(next, p->size(), T(0));
            next += p->size();
            p->clear_gradient();
        }
        sum_.take(shard, std::move(numbers));
    }

    /// Sets the gradients to the sums over all shards, and their provenance likewise.
    template <Communicator C> void finish(C& ranks) {
        const T* next = sum_.finish(ranks).data();
        for (Parameter<T>* p : dense_) {
            if (!p->trained) continue;
            p->begin_product();
            std::copy_n(next, p->size(), p->gradient);
            next += p->size();
        }
        for (auto& table : tables_) table.finish(ranks);
        const double* four = provenance_.finish(ranks).data();
        for (Parameter<T>* p : group_) {
            p->provenance = {four[0], four[1], four[2], four[3]};
            four += 4;
        }
    }
    /// Forgets what was taken since the last finish(), after a failed pass.
    void clear() {
        sum_.clear(), provenance_.clear();
        for (auto& table : tables_) table.clear();
    }

private:
    Parameters<T> group_;
    std::vector<Parameter<T>*> dense_;
    std::vector<detail::RowSum<T>> tables_;
    ShardSum<T> sum_;              // of the dense gradients, one after another
    ShardSum<double> provenance_;  // the four numbers of each member, whole ones
};

}}}  // namespace isogloss::distributed
