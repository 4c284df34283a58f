/// @file text/batches.hpp  Batches from a token stream, cut into columns and segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/types.hpp>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

/// What is done with the predictions that do not fill B columns of equal length.
enum class Tail {
    drop,  ///< dropped: columns of ⌊n/B⌋ steps. Usual in training
    pad    ///< kept: columns of ⌈n/B⌉ steps, the last ones padded with target -1. For evaluation
};

/// How a token stream is cut.
struct BatchOptions {
    Index time = 0;              ///< steps of a segment, 1 … capacity.time; 0: capacity.time
    Tail tail = Tail::drop;      ///< what is done with the remaining predictions
    bool random_length = false;  ///< segments of random length, with `time` as the usual mean
    bool rotate = false;         ///< each column starts at its own random position and wraps around
    std::uint64_t seed = 1;      ///< of the random lengths and positions
    std::uint64_t epoch = 0;     ///< changes the random lengths and positions; below 2⁴⁰
    Index start = 0;             ///< index of the first batch to return, 0 … count()
    /// A token fed before the first one of the text, for example `<eos>`, so that the first token is
    /// predicted too; none: the first token is only an input.
    std::optional<Token> predict_first = {};
};

/// One segment of all columns. The blocks are valid until the next batch is requested.
struct Batch {
    TokenBlock input;     ///< x [T, B]
    TokenBlock target;    ///< y [T, B], -1 where nothing is predicted
    Index index = 0;      ///< k, the number of this batch in the whole pass
    bool first = false;   ///< k = 0: the columns start here; reset the state
    Index predicted = 0;  ///< number of targets that are not -1
};

/// The batches of one pass over a token stream s₀ … s_{N-1}, in order:
///
///     n = N-1 predictions: input s_j, target s_{j+1}
///     n = N   with predict_first: input s_{j-1}, target s_j
///     L = ⌊n/B⌋ (drop) or ⌈n/B⌉ (pad) steps per column
///     batch k, step t, column b: prediction j = b·L + (p_k + t + r_b) mod L,   p_k = sum of the lengths before
///     r_b = 0; with rotate uniform among 0 … L-1, a function of (seed, epoch, b) alone
///
/// All batches have `time` steps except the last, which has the remainder of L. So column b of batch k+1
/// continues column b of batch k: carry the state, and reset it where `first` is set. With `pad` each of the
/// n predictions is made exactly once; a padded position has target -1 and the last input of the text.
///
/// Random length   T_k = min(capacity.time, max(5, ⌊z⌋)),  z ~ N(m, 5²),
///                 m = time with probability 0.95, else time/2; truncated at the end of the columns.
///                 A function of (seed, epoch, k) alone. If an update divides by the tokens
///                 (Divisor::tokens), which gives a mean over the steps, its rate is scaled by T_k/time,
///                 T_k = batch.input.time; with Divisor::batch it is not.
/// Rotation        partial shuffling: in each pass every column starts at another position, so that segments are
///                 cut at other places and other parts of the text are aligned. Once per pass a column jumps
///                 from the end of its part to the beginning; each prediction keeps its input and its frequency.
/// Memory          two blocks of T·B tokens, allocated at the start; no allocation in the loop.
/// Resuming        `.start = k` gives batches k, k+1 … exactly as an uninterrupted pass does.
/// Errors          DataError: capacity or options out of range or too large for memory, too few tokens for B
///                 columns, a token outside the vocabulary.
/// Source          Merity, Keskar, Socher 2017, "Regularizing and optimizing LSTM language models", section
///                 4.1, for the random length. Departures: capacity.time bounds it; the generator is ours.
///                 Press 2019, "Partially shuffling the training data to improve language models", rotation.
///                 Departure: there the token after the jump is predicted from the one before it.
///
///     for (auto batch : corpus.batches({.time = 35, .batch = 20})) …     // one loop at a time per object
class Batches {
public:
    /// The batches of `tokens`, all below `vocabulary_size`. `source` names the stream in messages; `owner`
    /// keeps the tokens alive; without it they must outlive this object.
    Batches(std::span<const Token> tokens, Index vocabulary_size, Capacity capacity,
            BatchOptions options = {}, std::string source = "tokens", std::shared_ptr<const void> owner = {})
        : tokens_(tokens),
          types_(vocabulary_size),
          capacity_(capacity),
          options_(options),
          source_(std::move(source)),
          owner_(std::move(owner)) {
        if (options_.time == 0) options_.time = capacity_.time;
        check_options();
        const auto n = static_cast<Index>(tokens_.size());
        predictions_ = options_.predict_first ? n : n - 1;
        length_ = predictions_ / capacity_.batch;
        if (options_.tail == Tail::pad && predictions_ % capacity_.batch > 0) ++length_;
        if (length_ < 1)
            throw DataError(source_, ": ", n, " tokens are too few for ", capacity_.batch,
                            " columns; use a longer text, fewer columns or Tail::pad");
        for (Index at = 0; at < length_; ++count_) at += steps(count_, at);
        if (options_.start > count_)
            throw DataError(source_, ": found start = ", options_.start, " of ", count_,
                            " batches; is it the same text, capacity, seed and epoch as before?");
        const Index most = bytes_of<DataError>(
            source_, {std::min(capacity_.time, length_), capacity_.batch, 2}, sizeof(Token));
        within_memory<DataError>(source_, most, [&] {
            input_.resize(most / (2 * sizeof(Token)));
            target_.resize(input_.size());
        });
        if (!options_.rotate) return;
        within_memory<DataError>(source_, bytes_of<DataError>(source_, {capacity_.batch}, sizeof(Index)),
                                 [&] { places_.resize(static_cast<std::size_t>(capacity_.batch)); });
        const Random places(options_.seed, stream_of("rotation"), options_.epoch);
        for (Index b = 0; b < capacity_.batch; ++b)
            places_[static_cast<std::size_t>(b)] = places.below(b, length_);
    }

    /// Batches in the whole pass, from index 0, whatever `start`.
    Index count() const { return count_; }
    /// Steps per column, L.
    Index length() const { return length_; }
    /// Predictions in the whole pass: all n with `pad`, B·⌊n/B⌋ with `drop`.
    Index predictions() const { return std::min(predictions_, length_ * capacity_.batch); }

    /// Iterates over the batches. Refers to the object it comes from, which must not be moved.
    class Iterator {
    public:
        using value_type = Batch;
        using difference_type = Index;

        Iterator() = default;
        const Batch& operator*() const { return range_->batch_; }
        const Batch* operator->() const { return &range_->batch_; }
        Iterator& operator++() {
            range_->advance();
            return *this;
        }
        void operator++(int) { range_->advance(); }
        bool operator==(std::default_sentinel_t) const { return range_->at_ >= range_->length_; }

    private:
        friend class Batches;
        explicit Iterator(Batches& range) : range_(&range) {}
        Batches* range_ = nullptr;
    };

    /// Starts or restarts the pass, at batch `start`.
    Iterator begin() {
        at_ = 0;
        for (Index k = 0; k < options_.start; ++k) at_ += steps(k, at_);
        batch_.index = options_.start;
        fill();
        return Iterator(*this);
    }
    /// End of the pass.
    std::default_sentinel_t end() const { return {}; }

private:
    void check_options() const {
        require<DataError>(source_, "capacity.time", capacity_.time, 1);
        require<DataError>(source_, "capacity.batch", capacity_.batch, 1);
        require<DataError>(source_, "vocabulary_size", types_, 1);
        require<DataError>(source_, "time", options_.time, 1, capacity_.time);
        require<DataError>(source_, "start", options_.start, 0);
        require<DataError>(source_, "epoch", options_.epoch, 0, Exclusive{0x1p40});
        if (options_.predict_first)
            require<DataError>(source_, "predict_first", Index{*options_.predict_first}, 0, types_ - 1);
    }

    // T_k for a batch that starts at step `at` of the columns.
    Index steps(Index k, Index at) const {
        Index wanted = options_.time;
        if (options_.random_length) {
            const bool half =
                Random(options_.seed, stream_of("bptt half"), options_.epoch).uniform(k) >= 0.95;
            const double mean = static_cast<double>(options_.time) * (half ? 0.5 : 1.0);
            const double z =
                mean + 5 * Random(options_.seed, stream_of("bptt length"), options_.epoch).normal(k);
            wanted = z < static_cast<double>(capacity_.time)
                         ? std::min(capacity_.time, static_cast<Index>(std::max(5.0, z)))
                         : capacity_.time;
        }
        return std::min(wanted, length_ - at);
    }

    void advance() {
        at_ += batch_.input.time;
        ++batch_.index;
        fill();
    }

    // Writes the batch that starts at step at_ of the columns.
    void fill() {
        if (at_ >= length_) return;
        const Index T = steps(batch_.index, at_), B = capacity_.batch;
        // The targets of all predictions in order; the input of each is the token before its target.
        const auto& before_first = options_.predict_first;
        const Token* const targets = tokens_.data() + (before_first ? 0 : 1);
        batch_.predicted = 0;
        for (Index b = 0; b < B; ++b) {
            Index from = at_ + (options_.rotate ? places_[static_cast<std::size_t>(b)] : 0);
            if (from >= length_) from -= length_;
            for (Index t = 0; t < T; ++t) {
                const Index step = from + t < length_ ? from + t : from + t - length_;
                const Index j = b * length_ + step;
                const bool made = j < predictions_;
                const Index near = made ? j : predictions_ - 1;
                const Index to = t * B + b;
                input_[to] = near == 0 && before_first ? *before_first : checked(targets[near - 1]);
                target_[to] = made ? checked(targets[j]) : not_predicted;
                batch_.predicted += made ? 1 : 0;
            }
        }
        batch_.input = {input_.data(), T, B};
        batch_.target = {target_.data(), T, B};
        batch_.first = batch_.index == 0;
    }

    // A file mapped without verifying may hold anything; the cost of one comparison per token is negligible.
    const Token& checked(const Token& token) const {
        if (token >= 0 && token < types_) return token;
        throw DataError(source_, ": token ", &token - tokens_.data(), " is ", token, ", of ", types_,
                        " types");
    }

    std::span<const Token> tokens_;
    Index types_;
    Capacity capacity_;
    BatchOptions options_;
    std::string source_;
    std::shared_ptr<const void> owner_;
    Index predictions_ = 0, length_ = 0, count_ = 0;  // n, L
    std::vector<Index> places_;                       // r_b, with rotate
    std::vector<Token> input_, target_;
    Index at_ = 0;  // p_k
    Batch batch_;
};

}}}  // namespace isogloss::text
