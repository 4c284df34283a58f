/// @file counts/sparse_counts.hpp  Sparse counts of pairs of words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isogloss/array.hpp>
#include <limits>
#include <memory>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace counts {

namespace detail {

/// An array of counts, 4 bytes each, or 8 if one of them needs it: one of the two members is empty.
struct CountView {
    ArrayView<const std::uint32_t> narrow;  ///< [pairs], up to 2³² - 1
    ArrayView<const std::int64_t> wide;     ///< [pairs], 0 … 2⁶³ - 1

    std::size_t size() const { return narrow.size() + wide.size(); }  ///< number of counts
    std::int64_t operator[](Index at) const {                         ///< count number `at`
        return wide.empty() ? std::int64_t{narrow[at]} : wide[at];
    }
};

}  // namespace detail

/// Counts of pairs [V, V] in compressed rows, 8 bytes per pair that occurs: row i has the counts values[at] in
/// the ascending columns columns[at], at = starts[i] … starts[i + 1] - 1.
///
/// Columns and counts are shared between copies and never change; they may lie in a mapped file. A matrix
/// with a count above 2³² - 1 takes 12 bytes per pair.
struct SparseCounts {
    Array<std::int64_t> starts{0};          ///< [V + 1]
    ArrayView<const std::int32_t> columns;  ///< [pairs]
    detail::CountView values;               ///< [pairs]
    std::shared_ptr<const void> owner;      ///< of the memory of columns and values

    SparseCounts() = default;
    /// Counts of 4 bytes; takes ownership.
    SparseCounts(Array<std::int64_t> starts_, Array<std::int32_t> columns_, Array<std::uint32_t> values_)
        : SparseCounts(std::move(starts_), std::move(columns_), std::move(values_), {}) {}
    /// Counts in external memory, kept alive by `owner_`.
    SparseCounts(Array<std::int64_t> starts_, ArrayView<const std::int32_t> columns_,
                 detail::CountView values_, std::shared_ptr<const void> owner_)
        : starts(std::move(starts_)), columns(columns_), values(values_), owner(std::move(owner_)) {}
    /// Takes ownership of counts of 8 bytes if `wide_` is not empty, else of 4.
    SparseCounts(Array<std::int64_t> starts_, Array<std::int32_t> columns_, Array<std::uint32_t> narrow_,
                 Array<std::int64_t> wide_)
        : starts(std::move(starts_)) {
        const auto held =
            std::make_shared<const Held>(Held{std::move(columns_), std::move(narrow_), std::move(wide_)});
        columns = ArrayView<const std::int32_t>(std::span(held->columns));
        values = {std::span(held->narrow), std::span(held->wide)};
        owner = held;
    }

    Index rows() const { return std::ssize(starts) - 1; }  ///< V
    Index pairs() const { return std::ssize(columns); }    ///< number of distinct pairs
    /// The count in row i, column j.
    std::int64_t operator()(Index i, Index j) const {
        const auto first = columns.begin() + starts[i], last = columns.begin() + starts[i + 1];
        const auto at = std::lower_bound(first, last, j);
        return at != last && *at == j ? values[at - columns.begin()] : 0;
    }
    /// Whether the three arrays form a matrix of counts in which no row sums to more than the word occurs, so that no sum of
    /// counts exceeds the number of tokens.
    bool is_valid(const Array<std::int64_t>& occurrences) const {
        if (starts.size() != occurrences.size() + 1 || starts.front() != 0 || starts.back() != pairs() ||
            columns.size() != values.size() || (!values.narrow.empty() && !values.wide.empty()))
            return false;
        for (Index i = 0; i < rows(); ++i) {
            if (starts[i + 1] < starts[i] || starts[i + 1] > pairs()) return false;
            std::int64_t left = occurrences[i];
            for (Index at = starts[i], least = 0; at < starts[i + 1]; least = columns[at++] + Index{1}) {
                if (columns[at] < least || columns[at] >= rows() || values[at] < 0 || values[at] > left)
                    return false;
                left -= values[at];
            }
        }
        return true;
    }
    /// Equal in every count, whatever the number of bytes.
    friend bool operator==(const SparseCounts& a, const SparseCounts& b) {
        if (a.starts != b.starts ||
            !std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end()))
            return false;
        for (Index at = 0; at < a.pairs(); ++at)
            if (a.values[at] != b.values[at]) return false;
        return true;
    }
    /// The sum of two matrices with as many rows; the sum of all counts must be at most 2⁶³ - 1. Its pairs are counted
    /// before it is made, so that it takes no more memory than they need.
    friend SparseCounts operator+(const SparseCounts& a, const SparseCounts& b) {
        Array<std::int64_t> ends{0}, wide;
        ends.reserve(a.starts.size());
        std::int64_t pairs = 0, largest = 0;
        for (Index i = 0; i < a.rows(); ++i) {
            add_row(a, b, i, [&](std::int32_t, std::int64_t n) { ++pairs, largest = std::max(largest, n); });
            ends.push_back(pairs);
        }
        const bool is_wide = largest > std::numeric_limits<std::uint32_t>::max();
        Array<std::int32_t> found;
        Array<std::uint32_t> narrow;
        found.reserve(pairs);
        if (is_wide) wide.reserve(pairs);
        else narrow.reserve(pairs);
        for (Index i = 0; i < a.rows(); ++i)
            add_row(a, b, i, [&](std::int32_t column, std::int64_t n) {
                found.push_back(column);
                if (is_wide) wide.push_back(n);
                else narrow.push_back(static_cast<std::uint32_t>(n));
            });
        return {std::move(ends), std::move(found), std::move(narrow), std::move(wide)};
    }

private:
    // Calls use(column, count) for the pairs in row i of a + b.
    template <class Use>
    static void add_row(const SparseCounts& a, const SparseCounts& b, Index i, Use&& use) {
        const Index a_end = a.starts[i + 1], b_end = b.starts[i + 1];
        for (Index p = a.starts[i], q = b.starts[i]; p < a_end || q < b_end;) {
            const bool in_a = p < a_end && (q == b_end || a.columns[p] <= b.columns[q]);
            const bool in_b = q < b_end && (!in_a || a.columns[p] == b.columns[q]);
            const std::int32_t column = in_a ? a.columns[p] : b.columns[q];
            use(column, (in_a ? a.values[p++] : 0) + (in_b ? b.values[q++] : 0));
        }
    }
    struct Held {
        Array<std::int32_t> columns;
        Array<std::uint32_t> narrow;
        Array<std::int64_t> wide;
    };
};

}}}  // namespace isogloss::counts
