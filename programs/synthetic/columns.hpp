// A text cut into parallel columns, each read from the start values: a network that saw only one beginning
// would never learn how any other text begins.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "options.hpp"
#include "tasks.hpp"

// The number of columns of the first n symbols of a text: as many as requested, by default 16, or fewer so
// that each has at least two symbols. By default full batches have no more than a third of the lines of the
// source: a column of one line does not show what follows a line end, and a network trained on such columns
// alone runs away on a text. (Readers of minibatches read on into the next column.)
inline tasks::Index wanted_columns(const Options& o, const tasks::Text& text, tasks::Index n) {
    tasks::Index wanted = o.columns > 0 ? o.columns : 16;
    if (o.columns == 0 && o.full_batches() && !text.begins.empty())
        wanted = std::min<tasks::Index>(
            wanted, (std::lower_bound(text.begins.begin(), text.begins.end(), n) - text.begins.begin()) / 3);
    return std::clamp<tasks::Index>(wanted, 1, std::max<tasks::Index>(1, (text.size() - 1) / 2));
}
inline tasks::Index wanted_columns(const Options& o, const tasks::Text& text) {
    return wanted_columns(o, text, text.size() - 1);
}

// At most `wanted` evenly spaced places in the first n symbols: where the source begins a line, or anywhere
// in a text without such places.
inline std::vector<tasks::Index> places(const tasks::Text& text, tasks::Index wanted, tasks::Index n) {
    std::vector<tasks::Index> first;
    const auto& begins = text.begins;
    for (tasks::Index b = 0; b < wanted; ++b) {
        tasks::Index from = n / wanted * b + n % wanted * b / wanted;
        if (!begins.empty()) {
            const auto next = std::lower_bound(begins.begin(), begins.end(), from);
            from = next == begins.end() ? n : *next;
        }
        if (from < n && (first.empty() || from > first.back())) first.push_back(from);
    }
    return first;
}

// The training method, in words.
inline std::string method(const Options& o, const tasks::Text& text) {
    return o.method(std::ssize(places(text, wanted_columns(o, text), text.size() - 1)));
}

class Columns {
public:
    // The first n + 1 symbols of a text in at most `wanted` columns, n ≥ 1.
    Columns(const tasks::Text& text, tasks::Index wanted, tasks::Index n)
        : x_(text.x.begin(), text.x.begin() + n) {
        for (tasks::Index t = 1; t <= n; ++t) {
            const auto at = static_cast<std::size_t>(t);
            y_.push_back(text.predicted[at] ? text.x[at] : isogloss::not_predicted);
        }
        first_ = places(text, wanted, n);
        first_.push_back(n);
        for (tasks::Index b = 0; b < count(); ++b) length_ = std::max(length_, size(b));
    }
    Columns(const tasks::Text& text, tasks::Index wanted) : Columns(text, wanted, text.size() - 1) {}

    tasks::Index count() const { return std::ssize(first_) - 1; }
    tasks::Index length() const { return length_; }  // of the longest one

    // Steps from … from + steps - 1 of all columns, [steps, count]: input and target; no target beyond the
    // end of a column.
    void segment(tasks::Index from, tasks::Index steps, tasks::Token* x, tasks::Token* y) const {
        for (tasks::Index t = from; t < from + steps; ++t)
            for (tasks::Index b = 0; b < count(); ++b, ++x, ++y) {
                const auto at = static_cast<std::size_t>(first_[static_cast<std::size_t>(b)] + t);
                const bool within = t < size(b);
                *x = within ? x_[at] : 0;
                *y = within ? y_[at] : isogloss::not_predicted;
            }
    }

private:
    tasks::Index size(tasks::Index b) const {
        const auto at = static_cast<std::size_t>(b);
        return first_[at + 1] - first_[at];
    }

    std::vector<tasks::Token> x_, y_;
    std::vector<tasks::Index> first_;  // start of each column, and the end
    tasks::Index length_ = 0;
};
