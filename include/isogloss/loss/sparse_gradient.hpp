/// @file loss/sparse_gradient.hpp  Unbiased gradient of a softmax head from a few entries of dl/dz.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/kernel/sparse_rows.hpp>
#include <isogloss/loss/block_plan.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace detail {

/// Entries of dl/dz [rows, V] kept by kernel::sample, an unbiased estimate of dl/dz, and both gradient products
/// computed from them: dl/dh row by row, dl/dE word by word. A row costs 4 n operations per kept entry in place
/// of 4 n V.
///
/// Entries are sampled and kept block by block; the products are computed when there is no room for another
/// block, and at the end, so that the table and its gradient pass through memory once for many blocks. A row of
/// dl/dz is identified by the index of its state, a position or a word.
///
/// The random numbers depend only on the seed, the step, the loss's name and the position; which blocks are sampled,
/// and the rows of words, on the blocks too, whose size follows from the model and the budget. So the sample is the
/// same in a resumed training, on a machine with another number of cores and for any threads().
template <class T> class SparseGradient {
public:
    /// Takes memory for blocks of `rows` rows, `positions` rows in all: at most 4 / ε entries of a row, enough for
    /// Σ |dl/dz| up to 4, where cross-entropy has at most 2; and besides a block's those of all positions, within a
    /// sixteenth of the budget.
    void take(BlockMemory<T>& memory, Index rows, Index positions, Index vocabulary, double epsilon,
              Index budget) {
        epsilon_ = epsilon;
        room_ = static_cast<Index>(std::min(double(vocabulary), std::ceil(4 / epsilon))) +
                2 * kernel::sample_lanes;
        block_ = rows * room_;
        entries_ =
            block_ + static_cast<Index>(std::min(double(positions) * (1 / epsilon + 2 * kernel::sample_lanes),
                                                 double(budget / 16 / Index{sizeof(T) + sizeof(Token)})));
        sorted_ = rows * vocabulary / 2;
        memory.take(column_, entries_), memory.take(value_, entries_);
        memory.take(begin_, positions + 1), memory.take(used_, positions), memory.take(state_, positions);
        memory.take(kept_, rows), memory.take(expected_, rows);
        memory.take(end_, vocabulary + 1);
    }

    /// Discards the kept entries.
    void clear() { rows_ = 0; }
    bool empty() const { return rows_ == 0; }  ///< whether nothing is kept
    /// Whether another block might not fit, here or in the memory where table_gradient() sorts.
    bool full() const { return kept() + block_ > std::min(entries_, sorted_); }

    /// Samples entries of a block, with u(r) in (0, 1) the random number of row r and ε |upstream| the threshold.
    /// Returns their expected number, which depends on dl/dz alone; infinity where a row may have more than there
    /// is room for.
    template <class Draw> double draw(MatrixRef<const T> dl, double upstream, Draw&& u) {
        constexpr double none = std::numeric_limits<double>::infinity();
        const T threshold = static_cast<T>(epsilon_ * std::abs(upstream));
        if (!(threshold > 0)) return none;
        parallel(dl.rows, 4, dl.rows, [&](Index first, Index last, Index) {
            for (Index r = first; r < last; ++r) {
                const Index at = kept() + r * room_;
                const auto s =
                    kernel::sample(dl.cols, dl.row(r), threshold, u(r), room_, column_ + at, value_ + at);
                kept_[r] = s.kept, expected_[r] = s.expected;
            }
        });
        double expected = 0;
        for (Index r = 0; r < dl.rows; ++r) {
            if (expected_[r] > double(room_ - 2 * kernel::sample_lanes)) return none;
            expected += expected_[r];
        }
        return expected;
    }

    /// Keeps the last sample, with state[r] the index of the state of row r < rows. Rows of one state are
    /// consecutive.
    void keep(Index rows, const Index* state) {
        const Index first = kept();
        begin_[0] = 0;
        for (Index r = 0, to = first; r < rows; ++r) {
            const Index from = first + r * room_;
            std::copy(column_ + from, column_ + from + kept_[r], column_ + to);
            std::copy(value_ + from, value_ + from + kept_[r], value_ + to);
            state_[rows_] = static_cast<Token>(state[r]);
            begin_[++rows_] = to += kept_[r];
        }
    }

    /// dE = beta dE + Σ (dl/dz)ᵀ h over all kept rows, whose states h are rows of `states`, beta 0 or 1, and db
    /// likewise; either may be null. `words` is V. The entries, sorted by word, go to `memory`, that of a block
    /// of dl/dz.
    void table_gradient(Index words, MatrixRef<const T> states, MatrixRef<T> dE, T beta, T* db, T db_beta,
                        T* memory) {
        const Index n = states.cols;
        T* const value = memory;
        auto* const state = reinterpret_cast<Token*>(memory + kept());
        std::fill_n(end_, words, Index{0});
        for (Index k = 0; k < kept(); ++k) ++end_[column_[k]];
        for (Index v = 0, begin = 0; v < words; ++v) begin += std::exchange(end_[v], begin);
        for (Index r = 0; r < rows_; ++r)
            for (Index k = begin_[r]; k < begin_[r + 1]; ++k) {
                const Index place = end_[column_[k]]++;
                value[place] = value_[k], state[place] = state_[r];
            }
        parallel(words, 64, words, [&](Index first, Index last, Index) {
            for (Index v = first; v < last; ++v) {
                const Index begin = v > 0 ? end_[v - 1] : 0;
                if (dE.data && beta == T(0)) std::fill_n(dE.row(v), n, T(0));
                if (dE.data && end_[v] > begin)  // rows to which nothing is added need not be read
                    kernel::add_weighted_rows(n, end_[v] - begin, state + begin, value + begin, states.data,
                                              states.stride, dE.row(v));
                if (!db) continue;
                T sum = db_beta == T(0) ? T(0) : db[v];
                for (Index k = begin; k < end_[v]; ++k) sum += value[k];
                db[v] = sum;
            }
        });
    }

    /// (dl/dz)_r E is added to row i [n] of dh for every kept row r, whose state has index i.
    void add_state_gradient(MatrixRef<const T> E, T* dh) {
        // As many rows of the table at a time as fit in the L2 cache: each is used by many rows of dl/dz.
        const Index block =
            std::max<Index>(64, (Index{1} << 19) / Index{sizeof(T)} / std::max<Index>(1, E.cols));
        parallel(rows_, 4, rows_, [&](Index first, Index last, Index) {
            const auto again = [&](Index r) { return r > 0 && r < rows_ && state_[r] == state_[r - 1]; };
            while (first < last && again(first)) ++first;  // each state is written by one thread
            while (last > first && again(last)) ++last;
            std::copy(begin_ + first, begin_ + last, used_ + first);
            for (Index word = block; word < E.rows + block; word += block)
                for (Index r = first; r < last; ++r) {
                    const Index begin = used_[r];
                    Index k = begin;
                    while (k < begin_[r + 1] && column_[k] < word) ++k;
                    used_[r] = k;
                    if (k > begin)
                        kernel::add_weighted_rows(E.cols, k - begin, column_ + begin, value_ + begin, E.data,
                                                  E.stride, dh + state_[r] * E.cols);
                }
        });
    }

private:
    Index kept() const { return rows_ > 0 ? begin_[rows_] : 0; }

    double epsilon_ = 0;
    Index room_ = 0, block_ = 0;                // maximum entries of a row and a block
    Index entries_ = 0, sorted_ = 0;            // entries that fit, here and where they are sorted
    Index rows_ = 0;                            // kept rows
    Token* column_ = nullptr;                   // [entries]: words of the kept entries, ascending in a row
    T* value_ = nullptr;                        // and their values
    Index *begin_ = nullptr, *used_ = nullptr;  // [positions + 1]: where a row begins; [positions]
    Token* state_ = nullptr;                    // [positions]
    Index* kept_ = nullptr;                     // [rows of a block]: of the last sample
    double* expected_ = nullptr;
    Index* end_ = nullptr;  // [V + 1]: where the entries of a word end
};

}}}  // namespace isogloss::detail
