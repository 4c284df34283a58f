/// @file graph/parameters.hpp  Groups of parameters, chosen by name.
#pragma once

#include <isogloss/graph/store.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss {

/// Whether a name matches a pattern in which '*' stands for any run of characters.
inline bool matches(std::string_view pattern, std::string_view name) {
    std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// What an update divides the raw sums of per-token derivatives by.
enum class Divisor {
    none,    ///< the sums as they are
    batch,   ///< batch columns: summed over time, averaged over the batch
    tokens,  ///< predicted positions: averaged over both
};

/// A group of parameters of one graph, in the order of their making. What updates work on.
template <class T> class Parameters {
public:
    Parameters(graph::Store<T>& store, std::vector<Parameter<T>*> members)
        : store_(&store), members_(std::move(members)) {}

    auto begin() const { return members_.begin(); }
    auto end() const { return members_.end(); }
    std::size_t size() const { return members_.size(); }
    Parameter<T>& operator[](std::size_t i) const { return *members_[i]; }

    /// Numbers in all of them.
    Index elements() const {
        Index n = 0;
        for (const auto* p : members_) n += p->size();
        return n;
    }

    /// The number that belongs to a divisor, from the last backward pass.
    double divisor(Divisor d) const {
        switch (d) {
            case Divisor::batch:
                return static_cast<double>(std::max<Index>(store_->columns, 1));
            case Divisor::tokens:
                return static_cast<double>(std::max<Index>(store_->predicted, 1));
            default:
                return 1;
        }
    }

    /// Forgets all gradients of the group.
    void clear_gradients() const {
        for (auto* p : members_) p->clear_gradient();
    }

private:
    graph::Store<T>* store_;
    std::vector<Parameter<T>*> members_;
};

}  // namespace isogloss
