/// @file distributed/data_parallel.hpp  Training of one model by several ranks, each on some columns of a batch.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <isogloss/distributed/gradient_sum.hpp>
#include <isogloss/distributed/shard_sum.hpp>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/random.hpp>
#include <isogloss/text/batches.hpp>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace distributed {

/// Options of DataParallel.
struct DataParallelOptions {
    Index columns = 1;  ///< columns of a batch, over all ranks, 1 … 2³¹
    Index shards = 1;   ///< parts into which a batch is cut, from the number of ranks up to `columns`
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
/// - Bit-identical for 1, 2, 4 … ranks with the same shards. Ranks need not divide the shards.
/// - An update divides by the columns or predicted positions of the whole batch.
/// - States are carried for every column in this object; the graph itself has zero states between calls. A batch
///   with `first` set starts from zero.
/// - Weights may be frozen (Parameters::trained) and trained again between batches, the same ones on every rank: a frozen
///   one has no gradient and none is sent. One that is frozen when this object is made, or outside the group, stays out
///   of it and must remain frozen while there are several shards.
/// - With one shard, everything is bit-identical to training without this class.
/// - Metrics of Riemannian updates are summed if the updates are passed to gradients().
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
        std::string name;
        Index width;
        T* carried;             // by the graph, into its next pass
        std::vector<T> values;  // of all columns of the batch, [columns, width]
    };

public:
    DataParallel(Graph<T>& g, Parameters<T> group, C& ranks, DataParallelOptions options)
        : g_(g), ranks_(ranks), options_(options), group_(group.trained()), sum_(group_, options.shards) {
        require("data parallel", "columns", options.columns, 1, Index{1} << 31);
        require("data parallel", "shards", options.shards, Index{ranks.size()},
                std::min(options.columns, most_shards));
        require("data parallel", "columns of the graph", g.capacity().batch, widest_shard(options));
        // What all ranks must share: masks and samples are functions of seed, step and columns, and what is sent has the
        // sizes of the weights and of the options.
        std::string weights = message(std::bit_cast<std::uint64_t>(g_.options().epsilon));
        for (const Parameter<T>* p : group)
            weights += message(' ', p->name, " [", p->rows, ", ", p->cols, p->trained ? "]" : "], frozen");
        require_same("data parallel", ranks_,
                     std::array{"seed", "training step", "precision", "columns", "shards",
                                "checksum of epsilon and the weights' names, shapes and which are trained"},
                     std::array{static_cast<Index>(g_.options().seed), static_cast<Index>(g_.training_step()),
                                static_cast<Index>(g_.options().precision), options_.columns, options_.shards,
                                static_cast<Index>(stream_of(weights))});
        if (options_.shards > 1)
            for (const std::string& name : g.states().names()) {
                auto state = g.states().at(name);
                const Index width = static_cast<Index>(state.shape(1));
                states_.push_back(
                    {name, width, state.data(), std::vector<T>(count(options.columns * width))});
            }
        for (Parameter<T>* p : group) broadcast(ranks, std::span(p->value, count(p->size())));
    }

    /// Runs `pass(part)`, a forward and a backward pass, for the parts of this rank; the parameters then have the
    /// gradients of the whole batch. Its return value, nothing or a std::array of doubles, is summed over parts.
    /// `metrics`: updates that will step and have metrics that are sums over positions (Riemannian::sums).
    template <class Pass, class... Metrics>
    auto gradients(const text::Batch& batch, Pass&& pass, Metrics&... metrics) {
        if (options_.shards > 1) group_.require_no_gradients("data parallel");
        const Array<Index> sizes = {(options_.shards > 1 ? metrics.sums() : 0)...};  // 0: not in this step
        const Index size = std::accumulate(sizes.begin(), sizes.end(), Index{0});
        ShardSum<T> metric_sum(options_.shards);
        // f(update, its part of the sums of all metrics)
        const auto each_metric = [&]([[maybe_unused]] std::span<T> sums, auto&& f) {
            [[maybe_unused]] std::size_t k = 0;
            ((f(metrics, sums.first(count(sizes[k]))), sums = sums.subspan(count(sizes[k++]))), ...);
        };
        const auto counted = [&](const text::Batch& part) {
            if (options_.shards > 1)
                group_.summed_over(part.input.batch, 0);  // unless the pass runs backward
            return pass(part);
        };
        try {
            return over_parts(
                batch, counted,
                [&](Index shard) {
                    sum_.take(shard);
                    for (const Parameter<T>* p : g_.parameters())
                        if (p->counts())  // of this rank's shards alone: the ranks would part
                            throw UsageError("data parallel: found a gradient of '", p->name,
                                             "', which is not in the group; freeze it, or make this with it");
                    if (size == 0) return;
                    auto sums = metric_sum.array(size);
                    each_metric(sums, [](auto& update, std::span<T> part) {
                        if (!part.empty()) update.take_sums(part);
                    });
                    metric_sum.take(shard, std::move(sums));
                },
                [&] {
                    const auto begin = std::chrono::steady_clock::now();
                    sum_.finish(ranks_);
                    waited_ +=
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                    if (size == 0) return;
                    each_metric(metric_sum.finish(ranks_), [](auto& update, std::span<T> part) {
                        if (!part.empty()) update.give_sums(std::span<const T>(part));
                    });
                });
        } catch (...) {
            g_.parameters().clear_gradients();
            sum_.clear();
            throw;
        }
    }

    /// Runs `pass(part)` for the parts of this rank and sums its return values over all parts: for passes without
    /// gradients.
    template <class Pass> auto each(const text::Batch& batch, Pass&& pass) {
        return over_parts(
            batch, pass, [](Index) {}, [] {});
    }

    /// Sums an array of doubles over the ranks, in rank order: the same result on each.
    template <std::size_t n> std::array<double, n> sum(const std::array<double, n>& own) const {
        std::array<double, n> total{};
        for (const auto& part : gathered(ranks_, own))
            for (std::size_t i = 0; i < n; ++i) total[i] += part[i];
        return total;
    }

    /// Seconds that gradients() has spent in sums of gradients: in communication and waiting for other ranks.
    double waited() const { return waited_; }

    Graph<T>& graph() const { return g_; }

    /// Gathers the states of all columns on every rank: call before visit() writes them.
    void gather_states() {
        for (State& s : states_) {
            std::vector<T> own;
            std::vector<Index> bytes;
            for (Index r = 0; r < ranks_.size(); ++r) {
                const auto range = shards_of(r, ranks_.size(), options_.shards);
                const Index first = first_column(range.first) * s.width,
                            last = first_column(range.last) * s.width;
                bytes.push_back((last - first) * Index{sizeof(T)});
                if (r == ranks_.rank()) own.assign(s.values.begin() + first, s.values.begin() + last);
            }
            ranks_.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(s.values)),
                              bytes);
        }
    }
    /// Passes its state to a visitor (see io/checkpoint.hpp): what every column carries. A run can be resumed from
    /// it with any number of ranks.
    template <class Visitor> void visit(Visitor& v) {
        for (State& s : states_) v.array(s.name, s.values.data(), options_.columns, s.width);
    }

    /// While it exists, the columns start from zero states and the graph is in evaluation mode; its destructor
    /// restores the previous states and mode.
    class [[nodiscard]] Evaluation {
    public:
        explicit Evaluation(DataParallel& parallel)
            : parallel_(parallel), graph_(parallel.g_), before_(parallel.states_) {
            parallel.clear_states();
        }
        ~Evaluation() { parallel_.restore(before_); }
        Evaluation(const Evaluation&) = delete;
        Evaluation& operator=(const Evaluation&) = delete;

    private:
        DataParallel& parallel_;
        isogloss::Evaluation<T> graph_;
        std::vector<State> before_;
    };

private:
    static std::size_t count(Index n) { return static_cast<std::size_t>(n); }
    Index first_column(Index shard) const { return options_.columns * shard / options_.shards; }
    void clear_states() {
        for (State& s : states_) std::fill(s.values.begin(), s.values.end(), T(0));
    }
    // Into the same memory, to which a checkpoint may refer.
    void restore(const std::vector<State>& before) {
        for (std::size_t i = 0; i < states_.size(); ++i)
            std::copy(before[i].values.begin(), before[i].values.end(), states_[i].values.begin());
    }

    // Columns [first, first + n) of a block.
    static TokenBlock cut(const TokenBlock& block, Index first, Index n, std::vector<Token>& tokens) {
        tokens.resize(count(block.time * n));
        for (Index t = 0; t < block.time; ++t)
            std::copy_n(block.data + t * block.batch + first, n, tokens.data() + t * n);
        return {tokens.data(), block.time, n};
    }

    // Runs `pass` for the parts of this rank, `taken(shard)` after each, and `end()` after all; returns the sum of what
    // the passes return, an array of doubles, over all parts.
    template <class Pass, class Taken, class End>
    auto over_parts(const text::Batch& batch, Pass&& pass, Taken&& taken, End&& end) {
        using Result = std::invoke_result_t<Pass&, const text::Batch&>;
        require("data parallel", "columns of a batch", batch.input.batch, options_.columns, options_.columns);
        if (options_.shards == 1) {
            if (batch.first) g_.reset();
            return pass(batch);
        }
        const auto mine = shards_of(ranks_.rank(), ranks_.size(), options_.shards);
        const std::uint64_t step = g_.training_step();
        const std::vector<State> before = states_;
        const auto leave = [&] {
            g_.shard(0, 0);
            g_.reset();
        };
        ShardSum<double> results(options_.shards);
        try {
            if (batch.first) clear_states();
            for (Index shard = mine.first; shard < mine.last; ++shard) {
                const Index first = first_column(shard), columns = first_column(shard + 1) - first;
                text::Batch part = batch;
                part.input = cut(batch.input, first, columns, input_);
                part.target = cut(batch.target, first, columns, target_);
                part.predicted =
                    columns * part.target.time - std::count(target_.begin(), target_.end(), not_predicted);
                g_.training_step(step);
                g_.shard(first, options_.columns);
                for (State& s : states_)
                    std::copy_n(s.values.data() + first * s.width, columns * s.width, s.carried);
                if constexpr (std::is_void_v<Result>) {
                    pass(part);
                } else {
                    const Result numbers = pass(part);
                    results.take(shard, {numbers.begin(), numbers.end()});
                }
                for (State& s : states_)
                    std::copy_n(s.carried, columns * s.width, s.values.data() + first * s.width);
                taken(shard);
            }
            end();
        } catch (...) {
            leave();
            g_.training_step(step);
            restore(before);
            throw;
        }
        leave();
        if constexpr (!std::is_void_v<Result>) {
            Result total;
            std::ranges::copy(results.finish(ranks_), total.begin());
            return total;
        }
    }

    Graph<T>& g_;
    C& ranks_;
    DataParallelOptions options_;
    Parameters<T> group_;
    GradientSum<T> sum_;
    std::vector<State> states_;  // if there is more than one shard
    std::vector<Token> input_, target_;
    double waited_ = 0;
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
