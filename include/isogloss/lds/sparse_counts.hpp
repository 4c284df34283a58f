/// @file lds/sparse_counts.hpp  Counts of pairs of words, of which most are 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/array.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds {

/// Counts of pairs [V, V] in compressed rows, 8 bytes for each pair that occurs: row i has the counts
/// values[at] in the columns columns[at], which ascend, at = starts[i] … starts[i + 1] - 1.
struct SparseCounts {
    Array<std::int32_t> starts{0};  ///< [V + 1]
    Array<std::int32_t> columns;    ///< [pairs]
    Array<std::uint32_t> values;    ///< [pairs]

    Index rows() const { return std::ssize(starts) - 1; }  ///< V
    Index pairs() const { return std::ssize(columns); }    ///< different pairs
    /// The count in row i, column j.
    std::uint32_t operator()(Index i, Index j) const {
        const auto first = columns.begin() + starts[i], last = columns.begin() + starts[i + 1];
        const auto at = std::lower_bound(first, last, j);
        return at != last && *at == j ? values[at - columns.begin()] : 0;
    }
    /// Whether the three arrays are such a matrix.
    bool is_valid() const {
        if (starts.empty() || starts.front() != 0 || starts.back() != pairs() ||
            columns.size() != values.size())
            return false;
        for (Index i = 0; i < rows(); ++i) {
            if (starts[i + 1] < starts[i] || starts[i + 1] > pairs()) return false;
            for (Index at = starts[i], least = 0; at < starts[i + 1]; least = columns[at++] + 1)
                if (columns[at] < least || columns[at] >= rows()) return false;
        }
        return true;
    }
    friend bool operator==(const SparseCounts&, const SparseCounts&) = default;
    /// The sum of two of equally many rows.
    friend SparseCounts operator+(const SparseCounts& a, const SparseCounts& b) {
        SparseCounts sum;
        sum.starts.reserve(a.starts.size());
        sum.columns.reserve(a.pairs() + b.pairs());
        sum.values.reserve(a.pairs() + b.pairs());
        for (Index i = 0; i < a.rows(); ++i) {
            Index p = a.starts[i], q = b.starts[i];
            while (p < a.starts[i + 1] || q < b.starts[i + 1]) {
                const bool of_a =
                    p < a.starts[i + 1] && (q == b.starts[i + 1] || a.columns[p] <= b.columns[q]);
                const bool of_b = q < b.starts[i + 1] && (!of_a || a.columns[p] == b.columns[q]);
                sum.columns.push_back(of_a ? a.columns[p] : b.columns[q]);
                sum.values.push_back((of_a ? a.values[p++] : 0) + (of_b ? b.values[q++] : 0));
            }
            sum.starts.push_back(static_cast<std::int32_t>(sum.pairs()));
        }
        return sum;
    }
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::lds
