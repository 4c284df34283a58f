/// @file distributed/data_parallel.hpp  Training of one model by several ranks, each on some columns of a batch.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <isogloss/distributed/gradient_sum.hpp>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/text/batches.hpp>
#include <type_traits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Options of DataParallel.
struct DataParallelOptions {
    Index columns = 1;    ///< columns of a batch, over all ranks, 1 … 2³¹
    Index shards = 1;     ///< parts into which a batch is cut, from the number of ranks up to `columns`
    bool ordered = true;  ///< summation order independent of the number of ranks; else the fastest
    /// Gradients are sent as soon as they are complete, while the backward pass continues: for passes that run
    /// backward once and do not modify the gradients. The head's part of a tied table is then summed separately,
    /// so that bits differ from those without overlap, for any number of ranks. With `ordered` = false, or by a
    /// communicator that is not Asynchronous, such as ThreadGroup::Member, nothing is sent early, but the rest holds.
    bool overlap = false;
    Index pack = Index{1} << 14;  ///< parameters with fewer numbers are sent together, at the end; ≥ 0
};

/// Columns that a graph needs for the widest shard.
inline Index widest_shard(const DataParallelOptions& o) {
    return o.shards > 0 ? (o.columns + o.shards - 1) / o.shards : o.columns;
}

/// Gradients of batches whose columns are distributed over the ranks of a Communicator. A batch is cut into shards
/// of adjacent columns; each rank runs its own in order, and the gradients of all are summed on every rank.
///
///     const DataParallelOptions cut{.columns = 20, .shards = 4};
///     Graph<float> g({.time = 35, .batch = widest_shard(cut)});          // the same model on every rank
///     …
///     DataParallel parallel(g, g.parameters(), ranks, cut);              // start values of rank 0, everywhere
///     for (const auto& batch : corpus.batches({35, cut.columns})) {      // whole batches
///         parallel.gradients(batch, [&](const text::Batch& part) {
///             g.forward(l, {x, part.input}, {y, part.target});
///             g.backward(l);
///         });
///         sgd.step();                                                    // the same step on every rank
///     }
///
/// - Masks and samples depend on the columns of the whole batch: the sum is the gradient of that batch up to
///   rounding, whatever the number of shards.
/// - `ordered`: bit-identical for 1, 2, 4 … ranks with the same shards. Ranks need not divide the shards.
/// - An update divides by the columns or predicted positions of the whole batch.
/// - States are carried for every column in this object; the graph itself has zero states between calls. A batch
///   with `first` set starts from zero.
/// - Weights may be frozen (Parameters::trained) and trained again between batches, the same ones on every rank: a frozen
///   one has no gradient and none is sent. One that is frozen when this object is made, or outside the group, stays out
///   of it and must remain frozen while there are several shards.
/// - With one shard, everything is bit-identical to training without this class.
/// - Metrics of Riemannian updates are summed if the updates are passed to gradients(), except for those of
///   networks on sparse graphs.
///
/// Collective, to be called by every rank in the same order: the constructor, gradients(), each(), sum(),
/// gather_states(), and evaluate(). Local: all others, visit() among them.
///
/// Throws UsageError for options out of range, a graph with fewer columns than its widest shard, graphs or options that
/// differ between ranks (seed, training step, precision, names and shapes of weights), a batch with another number of
/// columns, a gradient of a weight outside the group. An exception from a pass is rethrown
/// with the gradients cleared and, with several shards, states and training step as before the batch: this rank can
/// run it again, but the others wait for it, and the program must end them.
template <class T, Communicator C> class DataParallel {
    struct State {
        graph::SeqRecord<T>* seq;
        std::vector<T> values;  // [columns, width]
        std::vector<T> next;  // the same after a batch, of this rank's columns, until all its shards have run
    };

public:
    DataParallel(Graph<T>& g, Parameters<T> group, C& ranks, DataParallelOptions options)
        : g_(g),
          ranks_(ranks),
          options_(checked(options, ranks.size())),
          mine_(shards_of(ranks.rank(), ranks.size(), options.shards)),
          group_(group.trained()),
          sum_(group_, ranks,
               {.shards = options.shards,
                .ordered = options.ordered,
                .overlap = options.overlap,
                .pack = options.pack}) {
        if (g.capacity().batch < widest_shard(options))
            throw UsageError("data parallel: found a graph of ", g.capacity().batch,
                             " columns, expected at least ", widest_shard(options), ", the widest of ",
                             options.shards, " shards of ", options.columns, " columns");
        require_equal_ranks(group);
        if (options_.shards > 1)
            for (auto& s : graph::Inspect::store(g).seqs)
                if (s.carried) {
                    const std::vector<T> zeros(count(options.columns * s.width));
                    states_.push_back({&s, zeros, zeros});
                }
        for (Parameter<T>* p : group)
            broadcast(ranks, std::span(p->value, static_cast<std::size_t>(p->size())));
    }

    /// Runs `pass(part)`, a forward and a backward pass, for the parts of this rank; the parameters then have the
    /// gradients of the whole batch. Its return value, nothing or a std::array of doubles, is summed over parts.
    /// `metrics`: updates that will step and have metrics that are sums over positions (Riemannian::sums).
    template <class Pass, class... Metrics>
    auto gradients(const text::Batch& batch, Pass&& pass, Metrics&... metrics) {
        require_columns(batch);
        if (options_.shards > 1) group_.require_no_gradients("data parallel");
        try {
            if (options_.shards == 1) return whole(batch, pass);
            ShardMetrics<T, C, Metrics...> sums(ranks_, options_.shards, options_.ordered, metrics...);
            return over_parts(batch, pass, &sums);
        } catch (...) {
            group_.clear_gradients();
            throw;
        }
    }

    /// Runs `pass(part)` for the parts of this rank and sums its return values over all parts: for passes without
    /// gradients.
    template <class Pass> auto each(const text::Batch& batch, Pass&& pass) {
        require_columns(batch);
        if (options_.shards == 1) return whole(batch, pass);
        return over_parts(batch, pass, static_cast<ShardMetrics<T, C>*>(nullptr));
    }

    /// Sums an array of doubles over the ranks, in rank order: the same result on each.
    template <std::size_t n> std::array<double, n> sum(const std::array<double, n>& own) const {
        std::array<double, n> total{};
        for (const auto& part : gathered(ranks_, own))
            for (std::size_t i = 0; i < n; ++i) total[i] += part[i];
        return total;
    }

    /// Seconds that gradients() has spent waiting for other ranks and in communication not overlapped by a pass.
    double waited() const { return sum_.finishing(); }

    C& ranks() const { return ranks_; }
    Graph<T>& graph() const { return g_; }
    const DataParallelOptions& options() const { return options_; }

    /// Gathers the states of all columns on every rank: call before visit() writes them.
    void gather_states() {
        for (State& s : states_) {
            const auto own = std::span<const T>(s.values).subspan(
                count(first_column(mine_.first) * s.seq->width),
                count((first_column(mine_.last) - first_column(mine_.first)) * s.seq->width));
            const std::vector<T> part(own.begin(), own.end());
            ranks_.all_gather(std::as_bytes(std::span(part)), std::as_writable_bytes(std::span(s.values)),
                              bytes_of_ranks([&](ShardRange of) {
                                  return (first_column(of.last) - first_column(of.first)) * s.seq->width *
                                         Index{sizeof(T)};
                              }));
        }
    }
    /// Passes its state to a visitor (see io/checkpoint.hpp): what every column carries. A run can be resumed from
    /// it with any number of ranks.
    template <class Visitor> void visit(Visitor& v) {
        for (State& s : states_) v.array(s.seq->name, s.values.data(), options_.columns, s.seq->width);
    }

    /// While it exists, the columns start from zero states and the graph is in evaluation mode; its destructor
    /// restores the previous states and mode.
    class [[nodiscard]] Evaluation {
    public:
        explicit Evaluation(DataParallel& of) : of_(of), graph_(of.g_), states_(of.states_) {
            for (State& s : of_.states_) std::fill(s.values.begin(), s.values.end(), T(0));
        }
        ~Evaluation() {  // into the same memory, to which a checkpoint may refer
            for (std::size_t i = 0; i < states_.size(); ++i)
                std::copy(states_[i].values.begin(), states_[i].values.end(), of_.states_[i].values.begin());
        }
        Evaluation(const Evaluation&) = delete;
        Evaluation& operator=(const Evaluation&) = delete;

    private:
        DataParallel& of_;
        isogloss::Evaluation<T> graph_;
        std::vector<State> states_;
    };

private:
    // The graph during a batch; the destructor restores its condition between batches, and the training step if the
    // batch has failed.
    struct Within {
        DataParallel& of;
        std::uint64_t step = of.g_.training_step();
        bool failed = true;
        ~Within() {
            if (failed) of.g_.training_step(step);
            graph::Inspect::store(of.g_).left = nullptr;
            of.g_.shard(0, 0);
            of.g_.reset();
            of.sum_.clear();
        }
    };
    static std::size_t count(Index n) { return static_cast<std::size_t>(n); }
    static DataParallelOptions checked(DataParallelOptions o, Index ranks) {
        require("data parallel", "columns", o.columns, 1, Index{1} << 31);
        require_shards("data parallel", o.shards, ranks, o.columns);
        return o;
    }
    // What all ranks must share: masks and samples are functions of seed, step and columns, and what is sent has the
    // sizes of the weights and of the options.
    void require_equal_ranks(const Parameters<T>& group) const {
        const auto& o = options_;
        const auto bits = [](auto x) { return static_cast<std::uint64_t>(x); };
        static constexpr const char* names[] = {
            "seed",   "training step", "precision", "epsilon", "columns",
            "shards", "pack",          "ordered",   "overlap", "the number of weights"};
        constexpr std::size_t epsilon = 3;
        const std::array own = {g_.options().seed,
                                g_.training_step(),
                                bits(g_.options().precision),
                                std::bit_cast<std::uint64_t>(g_.options().epsilon),
                                bits(o.columns),
                                bits(o.shards),
                                bits(o.pack),
                                bits(o.ordered),
                                bits(o.overlap),
                                bits(group.size())};
        static_assert(std::size(names) == own.size());
        const auto shown = [](std::size_t i, std::uint64_t value) {
            return i == epsilon ? message(std::bit_cast<double>(value)) : message(value);
        };
        const auto all = gathered(ranks_, own);
        for (std::size_t r = 1; r < all.size(); ++r)
            for (std::size_t i = 0; i < own.size(); ++i)
                if (all[r][i] != all[0][i])
                    throw UsageError("data parallel: found ", names[i], " = ", shown(i, all[r][i]),
                                     " on rank ", r, " and ", shown(i, all[0][i]),
                                     " on rank 0, expected the same on every rank; build the same graph with "
                                     "the same options, and set training_step() to that of rank 0");
        for (const Parameter<T>* p : group) {
            const auto weights =
                gathered(ranks_, std::array{Index{stream_of(p->name)}, p->rows, p->cols, Index{p->trained}});
            for (std::size_t r = 1; r < weights.size(); ++r)
                if (weights[r] != weights[0])
                    throw UsageError("data parallel: found another weight on rank ", r,
                                     " than on rank 0 in the place of '", p->name, "' [", p->rows, ", ",
                                     p->cols, "]", p->trained ? "" : ", frozen",
                                     ", expected the same on every rank: names, shapes and frozen weights, "
                                     "in the same order");
        }
    }
    Index first_column(Index shard) const { return options_.columns * shard / options_.shards; }

    // bytes(shards) of every rank, in the form all_gather takes.
    template <class F> std::vector<Index> bytes_of_ranks(F&& bytes) const {
        std::vector<Index> of_ranks;
        for (Index r = 0; r < ranks_.size(); ++r)
            of_ranks.push_back(bytes(shards_of(r, ranks_.size(), options_.shards)));
        return of_ranks;
    }

    // The graph's carried states from those of some columns, or zero at the beginning of a text.
    void carry_in(Index first, Index columns, bool zero) {
        for (State& s : states_)
            if (zero) std::fill_n(s.seq->carried, columns * s.seq->width, T(0));
            else std::copy_n(s.values.data() + first * s.seq->width, columns * s.seq->width, s.seq->carried);
    }
    // The states after a shard, kept until all shards have run.
    void carry_out(Index first, Index columns) {
        for (State& s : states_)
            std::copy_n(s.seq->carried, columns * s.seq->width, s.next.data() + first * s.seq->width);
    }
    // Into the same memory, to which a checkpoint may refer.
    void keep_states(bool zero) {
        for (State& s : states_) {
            if (zero) std::fill(s.values.begin(), s.values.end(), T(0));
            const Index first = first_column(mine_.first) * s.seq->width,
                        last = first_column(mine_.last) * s.seq->width;
            std::copy(s.next.begin() + first, s.next.begin() + last, s.values.begin() + first);
        }
    }

    // Columns [first, first + n) of a block.
    static TokenBlock cut(const TokenBlock& block, Index first, Index n, std::vector<Token>& to) {
        to.resize(count(block.time * n));
        for (Index t = 0; t < block.time; ++t)
            std::copy_n(block.data + t * block.batch + first, n, to.data() + t * n);
        return {to.data(), block.time, n};
    }

    void require_columns(const text::Batch& batch) const {
        if (batch.input.batch != options_.columns)
            throw UsageError("data parallel: found a batch of ", batch.input.batch, " columns, expected all ",
                             options_.columns);
    }

    template <class Pass> auto whole(const text::Batch& batch, Pass&& pass) {
        if (batch.first) g_.reset();
        return pass(batch);
    }

    template <class Pass, class M> auto over_parts(const text::Batch& batch, Pass&& pass, M* gradients) {
        using Result = std::invoke_result_t<Pass&, const text::Batch&>;
        using Numbers = std::conditional_t<std::is_void_v<Result>, std::array<double, 1>, Result>;
        std::vector<Numbers> own;
        {
            Within within{*this};
            if (gradients && options_.overlap)
                graph::Inspect::store(g_).left = [this](int node) { sum_.left(node); };
            for (Index shard = mine_.first; shard < mine_.last; ++shard) {
                const Index first = first_column(shard), columns = first_column(shard + 1) - first;
                text::Batch part = batch;
                part.input = cut(batch.input, first, columns, input_);
                part.target = cut(batch.target, first, columns, target_);
                part.predicted =
                    columns * part.target.time - std::count(target_.begin(), target_.end(), not_predicted);
                g_.training_step(within.step);
                g_.shard(first, options_.columns);
                carry_in(first, columns, batch.first);
                if (gradients) group_.summed_over(columns, 0);  // unless the pass runs backward
                Numbers numbers{};
                if constexpr (std::is_void_v<Result>) pass(part);
                else numbers = pass(part);
                carry_out(first, columns);
                if (gradients) {
                    sum_.take();
                    require_none_left();
                    gradients->take(shard);
                }
                own.push_back(numbers);
            }
            if (gradients) sum_.finish();
            keep_states(batch.first);
            within.failed = false;
        }
        if (gradients) gradients->give();
        if constexpr (!std::is_void_v<Result>) return over_shards(own);
    }

    // A gradient that is not sent would be that of this rank's shards, and the ranks would part.
    void require_none_left() {
        for (const auto& p : graph::Inspect::store(g_).parameters)
            if (p.counts()) {
                g_.parameters().clear_gradients();
                throw UsageError(
                    "data parallel: the weight '", p.name,
                    "' has a gradient, of this rank's shards alone, but is not in the group; freeze ",
                    "it by Parameters::trained(false), or make the DataParallel with it");
            }
    }

    // The sum of a record of doubles over all shards, in tree order.
    template <class Record> Record over_shards(const std::vector<Record>& own) {
        static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(double) == 0);
        constexpr std::size_t n = sizeof(Record) / sizeof(double);
        using Flat = std::array<double, n>;
        std::vector<Record> all(count(options_.shards));
        ranks_.all_gather(
            std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)),
            bytes_of_ranks([](ShardRange of) { return (of.last - of.first) * Index{sizeof(Record)}; }));
        TreeSum<Flat> tree(options_.shards);
        for (Index s = 0; s < options_.shards; ++s)
            tree.push({s, 0}, std::bit_cast<Flat>(all[count(s)]), [](Flat& a, const Flat& b) {
                for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
            });
        return std::bit_cast<Record>(tree.pieces()[0].value);
    }

    Graph<T>& g_;
    C& ranks_;
    DataParallelOptions options_;
    ShardRange mine_;
    Parameters<T> group_;
    GradientSum<T, C> sum_;
    std::vector<State> states_;  // if there is more than one shard
    std::vector<Token> input_, target_;
};

/// The perplexity of a text whose columns are distributed over the ranks, as evaluate() of a graph: the same on
/// every rank, for any number of ranks. `batches` has all columns. `go_on(done, all)`, if given, is called by each
/// rank after each batch; if any rank returns false, all ranks stop. Collective.
template <class T, Communicator C, class GoOn = NoCallback>
Perplexity evaluate(DataParallel<T, C>& parallel, Loss<T> l, Tokens x, Tokens y, text::Batches batches,
                    GoOn&& go_on = {}) {
    const typename DataParallel<T, C>::Evaluation evaluation(parallel);
    auto& g = parallel.graph();
    Perplexity p;
    for (const auto& batch : batches) {
        const auto [nats, tokens] = parallel.each(batch, [&](const text::Batch& part) {
            g.forward(l, {x, part.input}, {y, part.target});
            return std::array{g.result(l).cross_entropy(), static_cast<double>(g.result(l).predicted())};
        });
        p.add(nats, static_cast<Index>(tokens));
        if (parallel.sum(std::array{go_on(batch.index + 1, batches.count()) ? 0. : 1.})[0] > 0) break;
    }
    return p;
}

}}}  // namespace isogloss::distributed
