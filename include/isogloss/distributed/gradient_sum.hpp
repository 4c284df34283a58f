/// @file distributed/gradient_sum.hpp  The gradients of all shards, summed on every rank.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/distributed/tree_sum.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/update/gradients.hpp>
#include <memory>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::distributed {

/// Sums the gradients of a group of parameters over shards, in the order of TreeSum or in any.
///
///     sum.take();         // after the backward pass of each shard of this rank, in their order
///     sum.finish();       // collective: the gradients are those of all shards, on every rank
///
/// Parameters that are tables read by rows alone (the input of a model with a head of its own) send the rows that some
/// shard has touched, the others all they have.
///
/// Memory   the group's dense numbers once for every level of the tree over a rank's shards, and twice for sending and
///          receiving
template <class T, Communicator C> class GradientSum {
public:
    /// `ordered`: the same bits for any number of ranks; else in whatever order is fastest.
    GradientSum(Parameters<T> group, C& ranks, Index shards, bool ordered)
        : group_(std::move(group)),
          ranks_(ranks),
          shards_(shards),
          mine_(shards_of(ranks.rank(), ranks.size(), shards)),
          ordered_(ordered),
          tree_(shards) {
        for (Parameter<T>* p : group_) {
            if (p->lookups > 0 && p->uses == p->lookups) {
                tables_.push_back({p, Array<Touched>(mine_.last - mine_.first), {}});
            } else {
                dense_.push_back(p);
                numbers_ += p->size();
            }
        }
    }

    /// Takes the gradients of the next shard of this rank away from the parameters.
    void take() {
        auto buffer = unused();
        T* to = buffer->data();
        for (Parameter<T>* p : dense_) {
            if (p->condition == Parameter<T>::Condition::empty) std::fill_n(to, p->size(), T(0));
            else std::copy_n(p->dense_gradient().data, p->size(), to);
            to += p->size();
            p->clear_gradient();
        }
        if (ordered_ || tree_.pieces().empty()) {
            tree_.push({mine_.first + taken_, 0}, std::move(buffer),
                       [&](Buffer& a, Buffer& b) { add(*a, *b), free_.push_back(std::move(b)); });
        } else {
            add(*tree_.pieces()[0].value, *buffer);
            free_.push_back(std::move(buffer));
        }
        for (Table& table : tables_) take_rows(table, table.touched[taken_]);
        ++taken_;
    }

    /// Gives the parameters the sums of all shards.
    void finish() {
        Buffer sum = unused();
        reduce(tree_, *sum);
        const T* from = sum->data();
        for (Parameter<T>* p : dense_) {
            p->begin_product();
            std::copy_n(from, p->size(), p->gradient);
            from += p->size();
        }
        free_.push_back(std::move(sum));
        recycle(tree_);
        for (Table& table : tables_) finish_table(table);
        taken_ = 0;
    }
    /// Forgets what was taken since the last finish(), where a pass has failed.
    void clear() {
        recycle(tree_);
        taken_ = 0;
    }

private:
    using Buffer = std::unique_ptr<Array<T>>;
    struct Touched {
        std::vector<Index> rows;  // ascending
        std::vector<T> values;
    };
    struct Table {
        Parameter<T>* parameter;
        Array<Touched> touched;  // of each shard of this rank
        Array<Index> rows;       // touched by any shard, ascending
    };

    Buffer unused() {
        if (free_.empty()) return std::make_unique<Array<T>>(numbers_);
        Buffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
    }
    void recycle(TreeSum<Buffer>& tree) {
        for (auto& piece : tree.take()) free_.push_back(std::move(piece.value));
    }
    static void add(Array<T>& to, const Array<T>& from) {
        over_numbers(std::ssize(to), [&](Index first, Index last, Index) {
            for (Index i = first; i < last; ++i) to.data()[i] += from.data()[i];
        });
    }

    // The sum over all shards of what the pieces of a rank's shards hold.
    void reduce(const TreeSum<Buffer>& tree, Array<T>& sum) {
        const auto& pieces = tree.pieces();
        if (!ordered_) {
            sum = *pieces[0].value;
            ranks_.all_reduce(std::span<T>(sum));
            return;
        }
        std::vector<const T*> arrays;
        for (const auto& piece : pieces) arrays.push_back(piece.value->data());
        exchange_.run(ranks_, shards_, std::span<const T* const>(arrays), std::span<T>(sum));
    }

    void take_rows(Table& table, Touched& to) {
        Parameter<T>& p = *table.parameter;
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

    void finish_table(Table& table) {
        find_rows(table);
        Parameter<T>& p = *table.parameter;
        const Index numbers = std::ssize(table.rows) * p.cols;
        TreeSum<Buffer> tree(shards_);
        for (Index s = 0; s < taken_; ++s) {
            // Rows that a shard has not touched count as zeros, so that every sum has the same terms anywhere.
            auto buffer = std::make_unique<Array<T>>(numbers);
            const Touched& own = table.touched[s];
            auto place = table.rows.begin();
            for (std::size_t k = 0; k < own.rows.size(); ++k) {
                place = std::lower_bound(place, table.rows.end(), own.rows[k]);
                std::copy_n(own.values.data() + static_cast<Index>(k) * p.cols, p.cols,
                            buffer->data() + (place - table.rows.begin()) * p.cols);
            }
            const auto merge = [](Buffer& a, Buffer& b) { add(*a, *b); };
            if (ordered_ || tree.pieces().empty()) tree.push({mine_.first + s, 0}, std::move(buffer), merge);
            else add(*tree.pieces()[0].value, *buffer);
        }
        Array<T> sum(numbers);
        reduce(tree, sum);
        const T* from = sum.data();
        for (const Index i : table.rows) {
            std::copy_n(from, p.cols, p.gradient_row(i));
            from += p.cols;
        }
    }

    // The rows that some shard of some rank has touched.
    void find_rows(Table& table) {
        Array<Index> own;
        for (Index s = 0; s < taken_; ++s) {
            const auto& rows = table.touched[s].rows;
            own.insert(own.end(), rows.begin(), rows.end());
        }
        unite(own);
        const Array<Index> bytes(ranks_.size(), Index{sizeof(Index)});
        Array<Index> counts(ranks_.size());
        const Index count = std::ssize(own) * Index{sizeof(Index)};
        ranks_.all_gather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(counts)),
                          bytes);
        Index all = 0;
        for (const Index n : counts) all += n;
        table.rows.resize(all / Index{sizeof(Index)});
        ranks_.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(table.rows)),
                          counts);
        unite(table.rows);
    }
    static void unite(Array<Index>& rows) {
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }

    Parameters<T> group_;
    C& ranks_;
    Index shards_;
    ShardRange mine_;
    bool ordered_;
    std::vector<Parameter<T>*> dense_;
    std::vector<Table> tables_;
    Index numbers_ = 0, taken_ = 0;  // numbers of dense_; shards taken
    TreeSum<Buffer> tree_;
    std::vector<Buffer> free_;
    ArrayTreeSum<T> exchange_;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::distributed
