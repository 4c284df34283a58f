/// @file distributed/gradient_sum.hpp  The gradients of all shards, summed on every rank.
#pragma once

#include <algorithm>
#include <chrono>
#include <isogloss/array.hpp>
#include <isogloss/distributed/background.hpp>
#include <isogloss/distributed/row_sum.hpp>
#include <isogloss/distributed/tree_exchange.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/update/gradients.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Options of GradientSum.
struct GradientSumOptions {
    Index shards = 1;
    bool ordered = true;  ///< bit-identical for any number of ranks; else summed in the fastest order
    bool overlap =
        false;  ///< gradients are sent as soon as they are complete: left() is called in backward passes
    Index pack = Index{1} << 14;  ///< parameters with fewer numbers are sent together, at the end; ≥ 0
};

/// Sums the gradients of a group of parameters over shards, in the order of TreeSum or in any.
///
///     sum.left(node);     // with `overlap`: the backward pass of a shard has left that node
///     sum.take();         // after the backward pass of each shard of this rank, in their order
///     sum.finish();       // collective: the gradients are those of all shards, on every rank
///
/// For tables that are only read by rows (the input of a model with a separate head) the rows touched by some
/// shard are sent, for all other parameters the whole gradient. With `overlap` a table read by rows and by a head
/// (a tied one) is sent in two parts: the head's part as soon as the head is left, and the rows at the end.
///
/// With `overlap`, an Asynchronous communicator and its concurrent(), a separate thread advances the messages
/// while this one computes; without concurrent() they advance at each left().
///
/// A member that is frozen (Parameters::trained) while the gradients are summed, on every rank, has none afterwards.
///
/// Memory   the group's dense numbers once per level of the tree over a rank's shards except the lowest, and once
///          for receiving
template <class T, Communicator C> class GradientSum {
public:
    GradientSum(Parameters<T> group, C& ranks, GradientSumOptions options)
        : group_(std::move(group)),
          ranks_(ranks),
          options_(options),
          mine_(shards_of(ranks.rank(), ranks.size(), options.shards)) {
        require("gradient sum", "pack", options.pack, 0);
        clear_counts();
        Block packed(options.shards);
        for (Parameter<T>* p : group_) {
            const bool looked_up = p->lookups > 0, by_rows = looked_up && p->uses() == p->lookups;
            if (by_rows) {
                add_table(p);
            } else if (p->size() < options.pack) {
                packed.members.push_back(p);
                packed.numbers += p->size();
            } else {
                Block& b = blocks_.emplace_back(options.shards);
                b.members.push_back(p);
                b.numbers = p->size();
                b.tied = options.overlap && looked_up;
                b.complete_at = b.tied ? p->first_product : p->first_node;
                if (b.complete_at == Parameter<T>::unused) b.complete_at = -1;
                if (b.tied) add_table(p);
            }
        }
        std::stable_sort(blocks_.begin(), blocks_.end(),
                         [](const Block& a, const Block& b) { return a.complete_at > b.complete_at; });
        if (!packed.members.empty()) blocks_.push_back(std::move(packed));
        if constexpr (Asynchronous<C>)
            if (asynchronous() && options.overlap && ranks.concurrent())
                background_ = std::make_unique<Background>([this] { return advance(); });
    }
    GradientSum(const GradientSum&) = delete;
    GradientSum& operator=(const GradientSum&) = delete;

    /// With `overlap`: takes the gradients that are complete once a backward pass has left `node` and later nodes.
    void left(int node) {
        if (!options_.overlap) return;
        for (Block& b : blocks_)
            if (!b.taken && b.complete_at >= node) take(b);
        if (background_ || !last_shard()) return;
        advance();
    }

    /// Takes the gradients of the next shard of this rank from the parameters. Throws UsageError if a gradient
    /// that left() has taken was added to afterwards.
    void take() {
        using Condition = typename Parameter<T>::Condition;
        for (Block& b : blocks_) {
            if (!b.taken) take(b);
            for (const Parameter<T>* p : b.members)
                if (p->condition == Condition::dense || (p->condition == Condition::rows && !b.tied)) {
                    group_.clear_gradients();  // as after any failed pass
                    throw UsageError(
                        "gradient sum: the gradient of '", p->name,
                        "' was added to after the backward pass had left its nodes; with `overlap` ",
                        "run backward once per pass, and change gradients only afterwards");
                }
            b.taken = false;
        }
        note_counts();
        for (auto& table : tables_) table.take(taken_);
        for (std::size_t k = 0; k < counts_.size(); ++k) counts_[k] += std::exchange(shard_counts_[k], {});
        ++taken_;
    }

    /// Sets the gradients to the sums over all shards, and the columns and predicted positions of each parameter likewise.
    void finish() {
        const auto begin = std::chrono::steady_clock::now();
        pause();
        for (Block& b : blocks_) start(b);
        pause();
        for (Block& b : blocks_) wait(b);
        for (Block& b : blocks_) give(b);
        for (auto& table : tables_)
            table.finish(ranks_, mine_, taken_, options_.shards, options_.ordered,
                         [&](const auto& own, std::span<T> sum) { reduce(own, sum); });
        give_counts();
        taken_ = 0;
        finishing_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    /// Discards what was taken since the last finish(), after a failed pass. Data already being sent to other
    /// ranks cannot be recalled: unless those ranks are ended too, later sums are wrong.
    void clear() {
        if (background_) background_->pause();
        for (Block& b : blocks_) recycle(b), b.taken = false;
        clear_counts();
        taken_ = 0;
    }
    /// Seconds spent in finish() so far: waiting for other ranks, and communication not overlapped by a pass.
    double finishing() const { return finishing_; }

private:
    using Buffer = std::unique_ptr<Array<T>>;
    // The dense gradient of one or several shards: in a buffer, or where the pass has left it.
    struct Term {
        T* numbers = nullptr;
        Buffer memory;
    };
    // Parameters whose dense gradients are sent together.
    struct Block {
        explicit Block(Index shards) : tree(shards) {}
        std::vector<Parameter<T>*> members;
        Index numbers = 0;
        int complete_at = -1;  // the node after which a backward pass adds nothing; -1: its end
        bool tied = false;     // all except the rows
        bool taken = false;    // of the current shard
        bool started = false, done = false;
        TreeSum<Term> tree;
        std::vector<Buffer> free;
        TreeExchange<T> exchange;
        Term sum;
    };

    // Stops the messages of the background thread, and throws what it has thrown.
    void pause() {
        if (!background_) return;
        if (const auto error = background_->pause()) std::rethrow_exception(error);
    }
    bool last_shard() const { return taken_ == mine_.last - mine_.first - 1; }
    bool asynchronous() const { return Asynchronous<C> && options_.ordered && ranks_.size() > 1; }
    void add_table(Parameter<T>* p) { tables_.emplace_back(p, mine_.last - mine_.first); }

    static Term buffer(Block& b) {
        if (b.free.empty()) b.free.push_back(std::make_unique<Array<T>>(b.numbers));
        Buffer memory = std::move(b.free.back());
        b.free.pop_back();
        T* const numbers = memory->data();
        return {numbers, std::move(memory)};
    }
    static void recycle(Block& b, Term& term) {
        if (term.memory) b.free.push_back(std::move(term.memory));
        term.numbers = nullptr;
    }
    static void recycle(Block& b) {
        for (auto& piece : b.tree.take()) recycle(b, piece.value);
        recycle(b, b.sum);
        b.started = b.done = false;
    }
    static void add(Index n, T* to, const T* from) {
        kernel::over_numbers(
            n, [&](Index first, Index last, Index) { add_numbers(last - first, to + first, from + first); });
    }

    // Notes what the gradients of this shard are summed over, before they are cleared with that. Where they have been, the
    // earlier note holds, unless Parameters::summed_over has set other numbers since.
    void note_counts() {
        for (std::size_t k = 0; k < counts_.size(); ++k)
            if (const auto& p = group_[k].provenance; p.columns > 0 || p.predicted > 0) shard_counts_[k] = p;
    }
    void give_counts() {
        std::vector<double> numbers;  // whole ones, whose sums are exact in any order
        for (const auto& [columns, predicted, passes, last_pass] : counts_)
            numbers.insert(numbers.end(), {columns, predicted, passes, last_pass});
        if (ranks_.size() > 1) ranks_.all_reduce(std::span<double>(numbers));
        auto next = numbers.begin();
        for (Parameter<T>* p : group_) {
            p->provenance = {next[0], next[1], next[2], next[3]};
            next += 4;
        }
        clear_counts();
    }
    void clear_counts() {
        counts_.assign(group_.size(), {});
        shard_counts_ = counts_;
    }

    // Whether there is nothing to sum: all members are frozen.
    static bool is_idle(const Block& b) {
        return std::none_of(b.members.begin(), b.members.end(), [](const auto* p) { return p->trained; });
    }

    // The last shard's gradient stays in place, unless that memory is needed.
    void take(Block& b) {
        b.taken = true;
        if (is_idle(b)) return;
        note_counts();
        Term term;
        if (b.members.size() == 1 && !b.tied && last_shard()) {
            term.numbers = b.members[0]->dense_gradient().data;
            b.members[0]->clear_gradient();
        } else {
            term = buffer(b);
            T* to = term.numbers;
            for (Parameter<T>* p : b.members) {
                using Condition = typename Parameter<T>::Condition;
                if (p->condition == Condition::empty || p->condition == Condition::staged)
                    std::fill_n(to, p->size(), T(0));
                else std::copy_n(p->dense_gradient().data, p->size(), to);
                to += p->size();
                p->clear_gradient();
            }
        }
        b.tree.push({mine_.first + taken_, 0}, std::move(term), options_.ordered,
                    [&](Term& a, Term& c) { add(b.numbers, a.numbers, c.numbers), recycle(b, c); });
        if (options_.overlap && last_shard()) start(b);
    }

    // Begins to send a block once all shards of this rank are in.
    void start(Block& b) {
        if (b.started || is_idle(b)) return;
        const bool in_place = b.members.size() == 1 && !b.tied;
        b.sum = in_place ? Term{b.members[0]->gradient, {}} : buffer(b);
        if constexpr (Asynchronous<C>)
            if (asynchronous()) {
                std::vector<T*> own;
                for (const auto& piece : b.tree.pieces()) own.push_back(piece.value.numbers);
                const auto alone = background_ ? background_->alone() : std::unique_lock<std::mutex>();
                b.exchange.start(ranks_, 2 * static_cast<int>(&b - blocks_.data()), options_.shards,
                                 std::span<T* const>(own), whole(b));
                b.started = true;
                if (background_) background_->go_on();
                return;
            }
        b.started = true;
    }
    static std::span<T> whole(const Block& b) { return {b.sum.numbers, static_cast<std::size_t>(b.numbers)}; }
    // Does what is possible without waiting; returns whether work remains. Needs the background lock, if any.
    bool advance() {
        bool left = false;
        if constexpr (Asynchronous<C>)
            for (Block& b : blocks_)
                if (asynchronous() && b.started && !b.done) {
                    b.done = b.exchange.advance(ranks_);
                    left = left || !b.done;
                }
        return left;
    }
    void wait(Block& b) {
        if (is_idle(b)) return;
        if constexpr (Asynchronous<C>)
            if (asynchronous()) {
                if (!b.done) b.exchange.finish(ranks_);
                return;
            }
        std::vector<const T*> own;
        for (const auto& piece : b.tree.pieces()) own.push_back(piece.value.numbers);
        reduce(own, whole(b));
    }
    // The sum over all shards, given the sums of this rank's; every rank waits for all.
    void reduce(const std::vector<const T*>& own, std::span<T> sum) {
        exchange_.run(ranks_, options_.shards, options_.ordered, std::span<const T* const>(own), sum);
    }
    void give(Block& b) {
        if (is_idle(b)) return recycle(b);
        const T* from = b.sum.numbers;
        for (Parameter<T>* p : b.members) {
            if (p->trained) {                               // else it stays empty: no update would clear it
                const bool rows = p->begin_product() != 0;  // never: take() has ensured it
                if (!rows && from != p->gradient) std::copy_n(from, p->size(), p->gradient);
            }
            from += p->size();
        }
        recycle(b);
    }

    Parameters<T> group_;
    C& ranks_;
    GradientSumOptions options_;
    ShardRange mine_;
    std::vector<Block> blocks_;  // in the order in which backward passes complete them
    std::vector<RowSum<T>> tables_;
    Index taken_ = 0;                                // number of shards
    std::vector<Provenance> counts_, shard_counts_;  // of the group: in the shards taken, in the present one
    double finishing_ = 0;
    ArrayTreeSum<T> exchange_;
    std::unique_ptr<Background> background_;  // last, so that it is destroyed before what it uses
};

}}}  // namespace isogloss::distributed
