/// @file distributed/gradient_sum.hpp  The gradients of all shards, summed on every rank.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/graph/parameters.hpp>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Sums the gradients of a group of parameters over shards, see ShardSum.
///
///     sum.take(shard);      // after the backward pass of each shard of this rank, in their order
///     sum.finish(ranks);    // collective: the gradients are those of all shards, on every rank
///
/// Whole gradients are sent, of tables that are looked up too. A member that is frozen (Parameters::trained) while the
/// gradients are summed, on every rank, has none afterwards.
///
/// Memory   that of a ShardSum of the group's numbers
template <class T> class GradientSum {
public:
    GradientSum(Parameters<T> group, Index shards)
        : group_(std::move(group)), sum_(shards), provenance_(shards) {}

    /// Takes the gradients of the next shard of this rank from the parameters.
    void take(Index shard) {
        Array<double> all;
        for (const Parameter<T>* p : group_) {
            const auto& [columns, predicted, passes, last_pass] = p->provenance;
            all.insert(all.end(), {columns, predicted, passes, last_pass});
        }
        provenance_.take(shard, std::move(all));
        Index size = 0;
        for (const Parameter<T>* p : group_) size += p->trained ? p->size() : 0;
        Array<T> numbers = sum_.array(size);
        T* next = numbers.data();
        for (Parameter<T>* p : group_) {
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
        for (Parameter<T>* p : group_) {
            if (!p->trained) continue;
            p->begin_product();
            std::copy_n(next, p->size(), p->gradient);
            next += p->size();
        }
        const double* four = provenance_.finish(ranks).data();
        for (Parameter<T>* p : group_) {
            p->provenance = {four[0], four[1], four[2], four[3]};
            four += 4;
        }
    }
    /// Forgets what was taken since the last finish(), after a failed pass.
    void clear() { sum_.clear(), provenance_.clear(); }

private:
    Parameters<T> group_;
    ShardSum<T> sum_;              // of the gradients, one after another
    ShardSum<double> provenance_;  // the four numbers of each member, whole ones
};

}}}  // namespace isogloss::distributed
