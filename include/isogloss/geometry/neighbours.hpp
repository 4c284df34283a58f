/// @file geometry/neighbours.hpp  The rows of a table nearest to a vector by angle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <isogloss/error.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A row of a table and how near it is.
struct Neighbour {
    Index row = 0;          ///< its index, from 0
    double similarity = 0;  ///< cosine of the angle to the query, -1 … 1
};

namespace detail {

/// The implementation of `nearest` for one scalar type; `skip` is a row to leave out, or -1.
template <class T> std::vector<Neighbour> nearest_rows(std::span<const T> table, Index rows, Index columns,
                                                       std::span<const T> query, Index k, Index skip) {
    if (rows < 0 || columns < 1 || k < 0 || std::ssize(table) / columns != rows ||
        std::ssize(table) % columns != 0 || std::ssize(query) != columns)
        throw DataError("nearest: found a table of ", table.size(), " numbers as [", rows, ", ", columns,
                        "], a query of ", query.size(), " numbers, k = ", k);
    const auto dot = [columns](const T* a, const T* b) { return kernel::plain::dot(columns, a, b); };
    const double query_square = dot(query.data(), query.data());
    require<NumericError>("nearest", "the square of the query's norm", query_square, Exclusive{0});
    std::vector<Neighbour> found;
    found.reserve(rows);
    for (Index r = 0; r < rows; ++r) {
        const T* const row = table.data() + r * columns;
        const double square = dot(row, row);
        require<NumericError>("nearest", message("the square of the norm of row ", r), square, 0);
        if (square == 0 || r == skip) continue;
        const double cosine = dot(row, query.data()) / (std::sqrt(square) * std::sqrt(query_square));
        found.push_back({r, std::clamp(cosine, -1.0, 1.0)});
    }
    const Index kept = std::min(k, std::ssize(found));
    std::partial_sort(found.begin(), found.begin() + kept, found.end(),
                      [](const Neighbour& a, const Neighbour& b) {
                          return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
                      });
    found.resize(kept);
    return found;
}

/// The scalar type of a table: a vector, an array or a span.
template <class Table> using Number = std::remove_cv_t<std::ranges::range_value_t<Table>>;

}  // namespace detail

/// The k rows of a table of floats or doubles nearest to a query by the angle between them, nearest first.
///
///     similarity(w, q) = w·q / (‖w‖ ‖q‖)
///
/// A zero row has no direction and is never among the neighbours, so fewer than k may be returned; a zero query
/// is an error. Zero means that the sum of squares is 0 in double. Sums are computed in double. Of equally near
/// rows the one with the lower index comes first.
///
/// Shapes   table [rows, columns], row-major, contiguous;  query [columns]
/// Errors   DataError: sizes that do not fit, k < 0. NumericError: a query or row whose norm is not finite, with the
///          row's index; a zero query.
template <std::ranges::contiguous_range Table>
std::vector<Neighbour> nearest(const Table& table, Index rows, Index columns,
                               std::span<const detail::Number<Table>> query, Index k) {
    return detail::nearest_rows<detail::Number<Table>>(table, rows, columns, query, k, -1);
}

/// The k rows nearest to row `row` of the same table, excluding itself. Throws DataError for a row outside.
template <std::ranges::contiguous_range Table>
std::vector<Neighbour> nearest(const Table& table, Index rows, Index columns, Index row, Index k) {
    const std::span<const detail::Number<Table>> all(table);
    if (columns < 1 || row < 0 || row >= rows || row >= std::ssize(all) / columns)
        throw DataError("nearest: found row ", row, " of a table of ", all.size(), " numbers as [", rows,
                        ", ", columns, "]");
    return detail::nearest_rows<detail::Number<Table>>(all, rows, columns,
                                                       all.subspan(row * columns, columns), k, row);
}

/// The k words nearest to a word by the angle of their vectors, excluding itself; word i has row i of the table.
/// Throws DataError for an unknown word.
///
///     nearest(vectors.words, vectors.values, vectors.dimension, "north", 10);
template <std::ranges::contiguous_range Table>
std::vector<Neighbour> nearest(const WordIndex& words, const Table& table, Index columns,
                               std::string_view word, Index k) {
    const Token row = words.find(word);
    if (row < 0)
        throw DataError("nearest: found ", in_quotes(word), ", expected one of the ", words.size(), " words");
    return nearest(table, words.size(), columns, row, k);
}

}}  // namespace isogloss
