/// @file update/lease.hpp  Weights lent for a while to an object that changes them and gives them back.
#pragma once

#include <algorithm>
#include <isogloss/update/gradients.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The weights of a group, lent for a while to an owner, such as a WeightDrop. While they are lent no update steps them
/// and no checkpoint loads them alone, and unless the changed values may stay, nobody saves, packs or borrows them.
///
/// Memory   one copy of the group's weights
template <class T> class Lease {
public:
    /// Nothing is lent yet. `owner`, a literal, begins and names it in messages. With `may_stay` the destructor leaves
    /// the values as they are, else it restores them.
    Lease(Parameters<T> group, std::string_view owner, bool may_stay = false)
        : group_(std::move(group)), loan_{owner, may_stay}, before_(group_.size()) {
        detail::allocate_per_parameter(owner, group_, sizeof(T),
                                       [&](const Parameter<T>& p) { kept_.emplace_back(p.size()); });
    }
    ~Lease() {
        if (loan_.may_stay) keep();
        else restore();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;

    const Parameters<T>& group() const { return group_; }
    bool lent() const { return lent_; }
    /// The numbers of parameter k: while it is lent those to be restored, before that the owner's.
    std::vector<T>& kept(std::size_t k) { return kept_[k]; }
    const std::vector<T>& kept(std::size_t k) const { return kept_[k]; }  ///< as above

    /// Keeps a copy of the weights and lends them. Throws UsageError where they are lent already, except that values
    /// which may stay are lent on until these are restored.
    void begin() {
        graph::require_unlent(group_, loan_.owner, loan_.may_stay);
        for (std::size_t k = 0; k < kept_.size(); ++k)
            std::copy_n(group_[k].value, group_[k].size(), kept_[k].begin());
        mark(true);
    }
    /// Exchanges the weights with kept() and lends them, or gives them back. Throws UsageError where others have them.
    void exchange() {
        graph::require_unlent(group_, loan_.owner, !lent_);
        for (std::size_t k = 0; k < kept_.size(); ++k)
            std::swap_ranges(kept_[k].begin(), kept_[k].end(), group_[k].value);
        mark(!lent_);
    }
    /// Gives them back as they were, bit for bit; without effect if they are not lent.
    void restore() noexcept {
        for (std::size_t k = 0; k < kept_.size() && lent_; ++k)
            std::copy(kept_[k].begin(), kept_[k].end(), group_[k].value);
        mark(false);
    }
    /// Gives them back as they are.
    void keep() noexcept { mark(false); }
    /// Whether they are lent, without a change of values: after a load from a file.
    void mark(bool lent) noexcept {
        for (std::size_t k = 0; k < group_.size() && lent != lent_; ++k)
            if (lent) before_[k] = std::exchange(*group_[k].loan, loan_);
            else *group_[k].loan = before_[k];
        lent_ = lent;
    }

private:
    Parameters<T> group_;
    graph::Loan loan_;
    std::vector<graph::Loan> before_;  // of whom it is borrowed
    std::vector<std::vector<T>> kept_;
    bool lent_ = false;
};

}}  // namespace isogloss
