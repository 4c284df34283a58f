/// @file updates.hpp  The update rules behind one interface.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/update/adam.hpp>
#include <isogloss/update/muon.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/sgd.hpp>
#include <isogloss/update/weight_drop.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "model.hpp"

namespace lm {

/// Statistics of a step.
struct Step {
    double norm =
        0;  ///< norm of the gradient before clipping; with a metric, of the direction in that metric
    bool clipped = false;  ///< whether it was clipped
};

// Adds a prefix to the names of one update of several, for a checkpoint.
template <class Visitor> struct Part {
    Visitor& to;
    std::string prefix;
    void number(const std::string& name, double& value) { to.number(prefix + name, value); }
    void counter(const std::string& name, std::uint64_t& value) { to.counter(prefix + name, value); }
    void array(const std::string& name, float* data, ig::Index rows, ig::Index cols) {
        to.array(prefix + name, data, rows, cols);
    }
};

/// Riemannian for the cells and the head, a tied table with it, and Adam for word vectors that are not the head's, unless
/// they are frozen. The rates of head and vectors fall with that of the cells.
class Natural {
public:
    Natural(Graph& g, const Options& o)
        : first_rate_(*o.rate),
          head_rate_(o.head_rate ? *o.head_rate : 10 * first_rate_),
          table_rate_(o.table_rate),
          clip_(o.clip),
          cells_(g, o.cell + "*", metric(o, first_rate_)),
          head_(g,
                o.head == "free"                               ? "softmax.*"
                : o.head_bias || o.units.back() != o.embedding ? "E, softmax.*"
                                                               : "E",
                metric(o, head_rate_)) {
        if (!o.freeze && o.head == "free")
            table_.emplace(
                g.parameters("E"),
                ig::AdamOptions{.rate = o.table_rate, .clip = o.clip, .weight_decay = o.weight_decay});
    }

    bool wants_modulus() const { return cells_.wants_modulus(); }
    ig::Riemannian<float>& cells() { return cells_; }
    ig::Riemannian<float>& head() { return head_; }
    void rate(double r) {
        const double share = first_rate_ > 0 ? r / first_rate_ : 1;
        cells_.rate(r), head_.rate(share * head_rate_);
        if (table_) table_->rate(share * table_rate_);
    }
    /// The three are clipped separately; the norm is that of cells and head.
    Step step() {
        const double cells = cells_.step(), head = head_.step(), table = table_ ? table_->step() : 0;
        return {std::hypot(cells, head), clip_ > 0 && std::max({cells, head, table}) > clip_};
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        Part<Visitor> cells{v, "cells/"}, head{v, "head/"}, table{v, "table/"};
        cells_.visit(cells), head_.visit(head);
        if (table_) table_->visit(table);
    }

private:
    static ig::RiemannianOptions metric(const Options& o, double rate) {
        return {.modulus = o.update == "rbpm" ? ig::UnitModulus::rbpm : ig::UnitModulus::ruop,
                .rate = rate,
                .damping = o.damping,
                .floor = o.floor,
                .clip = o.clip};
    }

    double first_rate_, head_rate_, table_rate_, clip_;
    ig::Riemannian<float> cells_, head_;
    std::optional<ig::Adam<float>> table_;
};

/// Muon for the matrices of the cells (of lstm, qrnn and rhn gate by gate) and Adam for all else: word vectors, head, biases, and
/// the matrices of a mogrifier, which have other blocks.
class Orthogonal {
public:
    Orthogonal(Graph& g, const Options& o)
        : first_rate_(*o.rate),
          rest_rate_(o.table_rate),
          matrices_(g.parameters(names(g)), {.rate = *o.rate,
                                             .clip = o.clip,
                                             .weight_decay = o.weight_decay,
                                             .gates = o.cell == "lstm"   ? 4
                                                      : o.cell == "qrnn" ? 3
                                                      : o.cell == "rhn"  ? 2
                                                                         : 1}),
          rest_(g.parameters(names(g, "!")),
                {.rate = o.table_rate, .clip = o.clip, .weight_decay = o.weight_decay}) {}

    void rate(double r) {
        matrices_.rate(r);
        rest_.rate(first_rate_ > 0 ? r / first_rate_ * rest_rate_ : rest_rate_);
    }
    /// The two are clipped separately; the norm is that of both.
    double step() { return std::hypot(matrices_.step(), rest_.step()); }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        Part<Visitor> matrices{v, "matrices/"}, rest{v, "rest/"};
        matrices_.visit(matrices), rest_.visit(rest);
    }

private:
    // A matrix of a mogrifier: lstm1.Q1, gru2.R2_left.
    static bool of_rounds(const std::string& name) {
        return !name.starts_with("rhn") &&
               (name.find(".Q") != std::string::npos || name.find(".R") != std::string::npos);
    }
    // The matrices, as a pattern; or, with "!" before each name, all others.
    static std::string names(Graph& g, const std::string& before = "") {
        std::string pattern;
        for (const auto* p : g.parameters())
            if (p->rows > 1 && p->name != "E" && !p->name.starts_with("softmax.") && !of_rounds(p->name))
                pattern += (pattern.empty() ? before : ", " + before) + p->name;
        return pattern;
    }

    double first_rate_, rest_rate_;
    ig::Muon<float> matrices_;
    ig::Adam<float> rest_;
};

/// One of Sgd, AveragedSgd, Adam, Orthogonal and Natural.
class Update {
public:
    Update(Graph& g, const Options& o)
        : rule_(std::in_place_type<ig::Sgd<float>>, g.parameters(), sgd(o)), clip_(o.clip) {
        if (o.update == "asgd")
            rule_.emplace<ig::AveragedSgd<float>>(g.parameters(), ig::AveragedSgdOptions{.sgd = sgd(o)});
        else if (o.update == "adam")
            rule_.emplace<ig::Adam<float>>(
                g.parameters(),
                ig::AdamOptions{.rate = *o.rate, .clip = o.clip, .weight_decay = o.weight_decay});
        else if (o.update == "muon") rule_.emplace<Orthogonal>(g, o);
        else if (o.update != "sgd") rule_.emplace<Natural>(g, o);
        if (o.two_tailed) tails_.emplace(g.parameters());
    }

    /// Whether the next step needs the modulus of the loss in addition to its gradient.
    bool wants_modulus() const {
        const auto* u = std::get_if<Natural>(&rule_);
        return u && u->wants_modulus();
    }
    /// The Natural rule, or null.
    Natural* natural() { return std::get_if<Natural>(&rule_); }
    /// Updates the parameters with a learning rate.
    Step step(double rate) {
        const Step taken = std::visit(
            [&](auto& u) {
                u.rate(rate);
                if constexpr (std::is_same_v<decltype(u.step()), Step>) {
                    return u.step();
                } else {
                    const double norm = u.step();
                    return Step{norm, clip_ > 0 && norm > clip_};
                }
            },
            rule_);
        if (tails_) tails_->add();
        return taken;
    }
    /// Whether the loss is divided by its tokens, giving a mean over the steps; otherwise by the columns.
    bool takes_means() const { return std::holds_alternative<Natural>(rule_); }
    /// The averages of --two-tailed, or null.
    ig::TwoTailedAverage<float>* tails() { return tails_ ? &*tails_ : nullptr; }
    /// Records a validation loss.
    void observe(double nats) {
        if (auto* u = std::get_if<ig::AveragedSgd<float>>(&rule_)) u->observe(nats);
    }
    /// Exchanges parameters and their averages, if any; a second call undoes it.
    void swap() {
        if (auto* u = std::get_if<ig::AveragedSgd<float>>(&rule_)) u->swap();
        if (tails_) tails_->swap();
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        std::visit([&v](auto& u) { u.visit(v); }, rule_);
        if (tails_) tails_->visit(v);
    }

private:
    using Rule = std::variant<ig::Sgd<float>, ig::AveragedSgd<float>, ig::Adam<float>, Orthogonal, Natural>;

    static ig::SgdOptions sgd(const Options& o) {
        return {.rate = *o.rate, .clip = o.clip, .weight_decay = o.weight_decay};
    }

    Rule rule_;
    std::optional<ig::TwoTailedAverage<float>> tails_;
    double clip_;
};

/// The learning rate over the epochs.
class Schedule {
public:
    explicit Schedule(const Options& o)
        : kind_(o.schedule),
          epochs_(static_cast<double>(o.epochs)),
          decay_{.rate = *o.rate, .constant = o.decay_from, .factor = *o.decay},
          plateau_({.rate = *o.rate, .divisor = kind_ == "plateau" ? 1 / *o.decay : 2}),
          cycle_{.rate = *o.rate, .warm_up = o.warm_up} {}

    /// `done`: the completed share of the epoch, in [0, 1].
    double rate(ig::Index epoch, double done) const {
        if (kind_ == "plateau") return plateau_.rate();
        if (kind_ == "one-cycle")
            return cycle_(std::min(1., (static_cast<double>(epoch - 1) + done) / epochs_));
        return decay_(epoch);
    }
    /// Records a validation loss.
    void observe(double nats) {
        if (kind_ == "plateau") plateau_.observe(nats);
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) { plateau_.visit(v); }

private:
    std::string kind_;
    double epochs_;
    ig::ConstantThenDecay decay_;
    ig::DivideOnPlateau plateau_;
    ig::OneCycle cycle_;
};

}  // namespace lm
