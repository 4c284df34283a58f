/// @file graph/states.hpp  The states that a graph carries from one pass to the next: cleared, copied, saved.
#pragma once

#include <algorithm>
#include <isogloss/array.hpp>
#include <isogloss/error.hpp>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/graph/store.hpp>
#include <isogloss/tensor.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A copy of the states that a graph carries from one pass to the next.
template <class T> struct Carried {
    std::vector<std::vector<T>> values;
    bool operator==(const Carried&) const = default;
};

namespace graph {

/// The states that a graph carries into the next pass, see Graph::states. Columns are 0 to capacity().batch - 1.
template <class T> class States {
public:
    explicit States(Store<T>& store) : store_(store) {}

    /// Clears all of them: the next pass starts from zero.
    void reset() {
        for_each([&](auto& s) { std::fill_n(s.carried, size(s), T(0)); });
    }
    /// Clears those of one column.
    void reset(Index column) {
        require_column("reset", column);
        for_each([&](auto& s) { std::fill_n(s.carried + column * s.width, s.width, T(0)); });
    }
    /// Column b, of the first ones, continues from what column from[b] carried before: as for search hypotheses with a
    /// common beginning, from = {2, 2, 0} makes two of the third and one of the first.
    void copy(std::span<const Index> from) {
        if (std::ssize(from) > store_.capacity.batch)
            throw UsageError("copy: found ", from.size(), " columns, expected at most ",
                             store_.capacity.batch);
        for (const Index column : from) require_column("copy", column);
        std::vector<T> before;
        for_each([&](auto& s) {
            before.assign(s.carried, s.carried + size(s));
            T* to = s.carried;
            for (const Index column : from) to = std::copy_n(before.data() + column * s.width, s.width, to);
        });
    }

    /// The names of the carried sequences, such as "lstm1.h" and "lstm1.c", in the order of Carried::values.
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for_each([&](auto& s) { out.push_back(s.name); });
        return out;
    }
    /// What one of them carries into the next pass: a read-write view [capacity().batch, width].
    auto at(std::string_view name) {
        for (auto& s : store_.seqs)
            if (s.carried && s.name == name)
                return MatrixView<T>(s.carried, store_.capacity.batch, s.width, &s.name);
        throw UsageError("state: no carried sequence is named '", name, "'. There are: ", names_of(names()));
    }

    /// A copy of all of them; restore() takes it back.
    Carried<T> saved() const {
        Carried<T> c;
        for_each([&](auto& s) { c.values.emplace_back(s.carried, s.carried + size(s)); });
        return c;
    }
    /// Throws UsageError for states of other layers or of another capacity.
    void restore(const Carried<T>& states) {
        std::size_t i = 0;
        bool fits = true;
        for_each([&](auto& s) {
            fits = fits && i < states.values.size() && std::ssize(states.values[i]) == size(s);
            ++i;
        });
        if (!fits || i != states.values.size())
            throw UsageError("restore: the states are those of other layers or of another capacity");
        i = 0;
        for_each([&](auto& s) { std::ranges::copy(states.values[i++], s.carried); });
    }

private:
    template <class F> void for_each(F&& f) const {
        for (auto& s : store_.seqs)
            if (s.carried) f(s);
    }
    Index size(const SeqRecord<T>& s) const { return store_.capacity.batch * s.width; }
    void require_column(std::string_view who, Index column) const {
        require(who, "column", column, 0, store_.capacity.batch - 1);
    }

    Store<T>& store_;
};

}  // namespace graph
}}  // namespace isogloss
