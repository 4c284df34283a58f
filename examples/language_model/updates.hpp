/// @file updates.hpp  The update rules under one name.
#pragma once

#include <isogloss/update/adam.hpp>
#include <isogloss/update/sgd.hpp>
#include <string>
#include <variant>

#include "model.hpp"

namespace lm {

/// One of Sgd, AveragedSgd and Adam.
class Update {
public:
    Update(Graph& g, const Options& o) : rule_(make(g, o)) {}

    /// Moves the parameters, at a rate.
    void step(double rate) {
        std::visit([rate](auto& u) { u.rate(rate), u.step(); }, rule_);
    }
    /// Takes note of a validation loss.
    void observe(double nats) {
        if (auto* u = std::get_if<ig::AveragedSgd<float>>(&rule_)) u->observe(nats);
    }
    /// Exchanges parameters and averages, where there are any; call it again afterwards.
    void swap() {
        if (auto* u = std::get_if<ig::AveragedSgd<float>>(&rule_)) u->swap();
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) {
        std::visit([&v](auto& u) { u.visit(v); }, rule_);
    }

private:
    using Rule = std::variant<ig::Sgd<float>, ig::AveragedSgd<float>, ig::Adam<float>>;

    static Rule make(Graph& g, const Options& o) {
        const ig::SgdOptions sgd{.rate = *o.rate, .clip = o.clip, .weight_decay = o.weight_decay};
        if (o.update == "asgd") return ig::AveragedSgd<float>(g.parameters(), {.sgd = sgd});
        if (o.update == "adam")
            return ig::Adam<float>(g.parameters(),
                                   {.rate = *o.rate, .clip = o.clip, .weight_decay = o.weight_decay});
        return ig::Sgd<float>(g.parameters(), sgd);
    }

    Rule rule_;
};

/// The learning rate over the epochs.
class Schedule {
public:
    explicit Schedule(const Options& o)
        : decay_{.rate = *o.rate, .constant = o.decay_from, .factor = *o.decay},
          on_plateau_(o.schedule == "plateau"),
          plateau_({.rate = *o.rate, .divisor = on_plateau_ ? 1 / *o.decay : 2}) {}

    double rate(ig::Index epoch) const { return on_plateau_ ? plateau_.rate() : decay_(epoch); }
    /// Takes note of a validation loss.
    void observe(double nats) {
        if (on_plateau_) plateau_.observe(nats);
    }
    /// For the checkpoint.
    template <class Visitor> void visit(Visitor& v) { plateau_.visit(v); }

private:
    ig::ConstantThenDecay decay_;
    bool on_plateau_;
    ig::DivideOnPlateau plateau_;
};

}  // namespace lm
