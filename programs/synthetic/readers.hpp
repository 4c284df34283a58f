// Parallel readers that cycle through a text. Each begins at its own place, from the start values, and reads
// on past the places where the others began: there it keeps its states or, occasionally, takes the start
// values again. So a network sees many beginnings, and sequences as long as the whole text; from columns that
// end where the next one begins it would learn how the first symbols are read, but nothing of its states
// beyond the length of a column.
#pragma once

#include <algorithm>
#include <isogloss/random.hpp>
#include <vector>

#include "columns.hpp"

class Readers {
public:
    // At most `wanted` readers; at each place a reader takes the start values with probability 1/lasting.
    Readers(const tasks::Text& text, tasks::Index wanted, tasks::Index lasting, std::uint64_t seed)
        : text_(text),
          places_(places(text, wanted, text.size() - 1)),
          circle_(text.whole ? text.size() : text.size() - 1),
          lasting_(lasting),
          random_(seed, isogloss::stream_of("readers")) {}

    tasks::Index count() const { return std::ssize(places_); }
    // Symbols until all readers are back where they began.
    tasks::Index circle() const { return circle_; }

    // Whether reader b takes the start values before its symbol of step t of training.
    bool begins(std::uint64_t t, tasks::Index b) const {
        const tasks::Index at = place(t, b);
        if (t == 0 || (at == 0 && !text_.whole)) return true;
        return std::binary_search(places_.begin(), places_.end(), at) &&
               random_.below(static_cast<tasks::Index>(t) * count() + b, lasting_) == 0;
    }
    // The number of steps from t, at most `most`, before some reader takes the start values.
    tasks::Index together(std::uint64_t t, tasks::Index most) const {
        for (tasks::Index n = 1; n < most; ++n)
            for (tasks::Index b = 0; b < count(); ++b)
                if (begins(t + static_cast<std::uint64_t>(n), b)) return n;
        return most;
    }
    // Steps t … t + steps - 1 of all readers, [steps, count]: input and target.
    void segment(std::uint64_t t, tasks::Index steps, tasks::Token* x, tasks::Token* y) const {
        for (tasks::Index k = 0; k < steps; ++k, ++t)
            for (tasks::Index b = 0; b < count(); ++b, ++x, ++y) {
                const auto at = static_cast<std::size_t>(place(t, b)), next = (at + 1) % text_.x.size();
                *x = text_.x[at];
                *y = text_.predicted[next] ? text_.x[next] : isogloss::not_predicted;
            }
    }

private:
    tasks::Index place(std::uint64_t t, tasks::Index b) const {
        const auto n = static_cast<std::uint64_t>(circle_);
        return static_cast<tasks::Index>(
            (t + static_cast<std::uint64_t>(places_[static_cast<std::size_t>(b)])) % n);
    }

    const tasks::Text& text_;
    std::vector<tasks::Index> places_;  // where readers begin
    tasks::Index circle_, lasting_;
    isogloss::Random random_;
};
