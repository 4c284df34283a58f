/// @file update/schedule.hpp  Learning-rate schedules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/elementary.hpp>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <numbers>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Constant, then decaying by a factor each epoch: η_e = rate · factor^max(0, e - constant), e = 1, 2, …
///
/// Source   Inan, Khosravi, Socher 2017, after Zaremba, Sutskever, Vinyals 2014.
struct ConstantThenDecay {
    double rate = 1;      ///< η of the first epochs
    Index constant = 5;   ///< epochs before it falls, ≥ 0
    double factor = 0.9;  ///< per epoch, in (0, 1]

    /// The rate of epoch e ≥ 1. Throws UsageError for e < 1 and for options out of range.
    double operator()(Index epoch) const {
        require("constant then decay", "rate", rate, 0);
        require("constant then decay", "constant", constant, 0);
        require("constant then decay", "factor", factor, Exclusive{0}, 1);
        require("constant then decay", "epoch", epoch, 1);
        return rate * kernel::elementary::power(factor, std::max<Index>(0, epoch - constant));
    }
};

/// One cycle over the whole training: a linear rise, then a fall along half a cosine. At share s of it,
///
///     η(s) = rate (start + (1 - start) s / w)                               s < w
///     η(s) = rate (finish + (1 - finish) (1 + cos(π (s - w) / (1 - w))) / 2)     s ≥ w
///
/// Source   Smith, Topin 2018, "Super-convergence"; the cosine: Loshchilov, Hutter 2017. Departure: no
///          momentum, so none that falls while the rate rises.
struct OneCycle {
    double rate = 1;       ///< the highest η, ≥ 0
    double warm_up = 0.1;  ///< w, the share of the training in which it rises, in [0, 1)
    double start = 0.1;    ///< η at the beginning, as a share of the highest, in [0, 1]
    double finish = 0;     ///< η at the end, as a share of the highest, in [0, 1]

    /// The rate at a share s of the training, in [0, 1]. Throws UsageError for s and for options out of range.
    double operator()(double s) const {
        require("one cycle", "rate", rate, 0);
        require("one cycle", "warm_up", warm_up, 0, Exclusive{1});
        require("one cycle", "start", start, 0, 1);
        require("one cycle", "finish", finish, 0, 1);
        require("one cycle", "share", s, 0, 1);
        if (s < warm_up) return rate * (start + (1 - start) * s / warm_up);
        const double fall = (1 + kernel::elementary::cosine_of_turns((s - warm_up) / (1 - warm_up) / 2)) / 2;
        return rate * (finish + (1 - finish) * fall);
    }
};

/// Options of DivideOnPlateau.
struct DivideOnPlateauOptions {
    double rate = 1;     ///< initial rate
    double divisor = 4;  ///< > 1
    Index patience = 0;  ///< validations without improvement that are tolerated
    double minimum = 0;  ///< the rate never falls below it; at most `rate`
};

/// Divides the rate when a validation value fails to improve on the best one.
class DivideOnPlateau {
public:
    using Options = DivideOnPlateauOptions;
    /// Throws UsageError for options out of range.
    explicit DivideOnPlateau(DivideOnPlateauOptions options) : options_(options), rate_(options.rate) {
        require("divide on plateau", "rate", options.rate, 0);
        require("divide on plateau", "divisor", options.divisor, Exclusive{1});
        require("divide on plateau", "patience", options.patience, 0);
        require("divide on plateau", "minimum", options.minimum, 0, options.rate);
    }

    /// Records a validation value (lower is better) and returns the rate to continue with.
    double observe(double validation) {
        require<NumericError>("divide on plateau", "the validation", validation,
                              std::numeric_limits<double>::lowest());
        if (validation < best_) {
            best_ = validation;
            waited_ = 0;
        } else if (static_cast<Index>(++waited_) > options_.patience) {
            rate_ = std::max(options_.minimum, rate_ / options_.divisor);
            waited_ = 0;
        }
        return rate_;
    }
    double rate() const { return rate_; }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) {
        v.number("rate", rate_);
        v.number("best", best_);
        v.counter("waited", waited_);
    }

private:
    DivideOnPlateauOptions options_;
    double rate_, best_ = std::numeric_limits<double>::infinity();
    std::uint64_t waited_ = 0;
};

}}  // namespace isogloss
