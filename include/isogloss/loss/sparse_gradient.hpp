/// @file loss/sparse_gradient.hpp  The gradient of a softmax head from a few entries of dl/dz, without bias.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/graph/pass.hpp>
#include <isogloss/graph/setup.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/kernel/sparse_rows.hpp>
#include <isogloss/threads.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// Entries of dl/dz [rows, V] kept by kernel::sample, whose mean over the draws is dl/dz, and both products of the
/// gradient from them: dl/dh row by row, dl/dE word by word, so that each row of dl/dE is written once. An entry
/// costs 4 n operations in place of 4 n V / kept a row.
///
/// Which entries are drawn depends on the seed, the step, the loss's name, the position and, for the rows of words, the
/// block alone: a resumed training and any number of threads have the same.
template <class T> class SparseGradient {
public:
    /// Most entries of a row: what Σ |dl/dz| up to 4 yields; cross-entropy has 2 at most.
    static Index room(Index vocabulary, double epsilon) {
        return static_cast<Index>(std::min(double(vocabulary), std::ceil(4 / epsilon))) +
               2 * kernel::sample_lanes;
    }
    static Index bytes_a_row(Index vocabulary, double epsilon) {  ///< of a block, for BlockPlan
        return room(vocabulary, epsilon) * Index{sizeof(T) + sizeof(Token)} +
               Index{2 * sizeof(Index) + sizeof(double)};
    }
    static Index bytes(Index vocabulary) { return (vocabulary + 1) * Index{sizeof(Index)}; }  ///< and once

    /// Takes memory for blocks of so many rows.
    void setup(Setup<T>& s, Index rows, Index vocabulary, double epsilon) {
        room_ = room(vocabulary, epsilon);
        epsilon_ = epsilon;
        column_ = s.template scratch<Token>({rows, room_});
        value_ = s.scratch({rows, room_});
        kept_ = s.template scratch<Index>(rows);
        used_ = s.template scratch<Index>(rows);
        expected_ = s.template scratch<double>(rows);
        end_ = s.template scratch<Index>(vocabulary + 1);
    }

    /// Draws the entries, u(r) in (0, 1) being the random number of row r and ε |upstream| the threshold. False where
    /// the dense products are at least as fast, which is known from dl/dz alone: `share` of all entries, or more,
    /// are to be expected.
    template <class Draw> bool select(MatrixRef<const T> dl, double upstream, double share, Draw&& u) {
        const T threshold = static_cast<T>(epsilon_ * std::abs(upstream));
        if (!(threshold > 0)) return false;
        parallel(dl.rows, 4, dl.rows, [&](Index first, Index last, Index) {
            for (Index r = first; r < last; ++r) {
                const auto s =
                    kernel::sample(dl.cols, dl.row(r), threshold, u(r), room_, columns(r), values(r));
                kept_[r] = s.kept, expected_[r] = s.expected;
            }
        });
        double expected = 0;
        for (Index r = 0; r < dl.rows; ++r) {
            if (expected_[r] > double(room_ - 2 * kernel::sample_lanes)) return false;
            expected += expected_[r];
        }
        const double most = std::min(share * double(dl.cols), double(dl.cols) / 2 - kernel::sample_lanes);
        return expected < most * double(dl.rows);
    }

    /// dE = beta dE + (dl/dz)ᵀ h for the hidden states h [rows, n], beta 0 or 1, and, unless it is null, db likewise
    /// from the first `biased` rows. The entries, sorted by word, go to `memory`, [rows, V], which may be that of
    /// dl/dz.
    void table_gradient(MatrixRef<const T> h, MatrixRef<T> dE, T beta, T* db, T db_beta, Index biased,
                        T* memory) {
        const Index n = h.cols;
        Index total = 0;
        for (Index r = 0; r < h.rows; ++r) total += kept_[r];
        T* const value = memory;
        auto* const row = reinterpret_cast<Token*>(memory + total);
        parallel(dE.rows, 64, dE.rows, [&](Index first, Index last, Index) {
            const auto of_row = [&](Index r, Index word) {  // entries before a word
                return std::lower_bound(columns(r), columns(r) + kept_[r], static_cast<Token>(word)) -
                       columns(r);
            };
            std::fill(end_ + first, end_ + last, Index{0});
            Index begin = 0;
            for (Index r = 0; r < h.rows; ++r) {
                const Index from = of_row(r, first), to = of_row(r, last);
                begin += from;
                for (Index k = from; k < to; ++k) ++end_[columns(r)[k]];
            }
            Index at = begin;
            for (Index v = first; v < last; ++v) at += std::exchange(end_[v], at);
            for (Index r = 0; r < h.rows; ++r)
                for (Index k = of_row(r, first), to = of_row(r, last); k < to; ++k) {
                    const Index place = end_[columns(r)[k]]++;
                    value[place] = values(r)[k], row[place] = static_cast<Token>(r);
                }
            for (Index v = first; v < last; begin = end_[v++]) {
                if (beta == T(0)) std::fill_n(dE.row(v), n, T(0));
                kernel::add_weighted_rows(n, end_[v] - begin, row + begin, value + begin, h.data, h.stride,
                                          dE.row(v));
                if (!db) continue;
                T sum = db_beta == T(0) ? T(0) : db[v];
                for (Index k = begin; k < end_[v] && row[k] < biased; ++k) sum += value[k];
                db[v] = sum;
            }
        });
    }

    /// to(r) [n] += (dl/dz)_r E for rows [first, last); the rows to(r) are distinct.
    template <class To> void add_state_gradient(MatrixRef<const T> E, Index first, Index last, To&& to) {
        // As many rows of the table at a time as stay in the second cache: each is wanted by many rows of dl/dz.
        const Index block =
            std::max<Index>(64, (Index{1} << 19) / Index{sizeof(T)} / std::max<Index>(1, E.cols));
        parallel(last - first, 4, last - first, [&](Index from, Index past, Index) {
            std::fill(used_ + first + from, used_ + first + past, Index{0});
            for (Index word = block; word < E.rows + block; word += block)
                for (Index r = first + from; r < first + past; ++r) {
                    const Index begin = used_[r];
                    Index k = begin;
                    while (k < kept_[r] && columns(r)[k] < word) ++k;
                    used_[r] = k;
                    if (k > begin)
                        kernel::add_weighted_rows(E.cols, k - begin, columns(r) + begin, values(r) + begin,
                                                  E.data, E.stride, to(r));
                }
        });
    }

private:
    Token* columns(Index r) const { return column_ + r * room_; }
    T* values(Index r) const { return value_ + r * room_; }

    double epsilon_ = 0;
    Index room_ = 0;
    Token* column_ = nullptr;  // [rows, room]: words of the kept entries, ascending
    T* value_ = nullptr;       // and their values
    Index* kept_ = nullptr;    // [rows]
    Index* used_ = nullptr;    // [rows]: of them, by add_state_gradient
    double* expected_ = nullptr;
    Index* end_ = nullptr;  // [V + 1]: where the entries of a word end
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
