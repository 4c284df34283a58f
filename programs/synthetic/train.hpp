// The training of one learner, with looks at how well it predicts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "../shared/interrupt.hpp"
#include "../shared/progress.hpp"
#include "far_worse.hpp"
#include "model_file.hpp"
#include "texts.hpp"

// What can be done about a network that has run away, or has learned its text by heart; `saturated`: the share of
// its units.
inline std::string advice(const Options& o, double saturated) {
    using isogloss::message;
    if (!o.sparse())
        return "The training text has been memorised, or the other leads to states that it does not: use a "
               "longer one, or fewer units";
    std::string columns = o.full_batches() ? o.columns > 0 ? "cut the text into several columns of several "
                                                             "lines each (--columns 0)"
                                                           : ""
                                           : "train on more columns (--columns)",
                bound = o.named_bound() > 0 ? "" : "bound V (--bound 4), unless V has to count";
    std::string both = columns + (columns.empty() || bound.empty() ? "" : ", or ") + bound;
    const auto share = message(std::lround(100 * saturated), " % of the units are saturated");
    const auto constants = message(
        "units that stay at a bound of their range receive no gradient and may be constants, set by the "
        "first symbols of a text",
        both.empty() ? "" : ": ", both);
    if (saturated < 0.05)
        return message("The training text has been memorised: use a longer one, or fewer units and edges. (",
                       share, "; ", constants, ")");
    return message("Of the possible causes, ", share, ": ", constants,
                   ". Or the text has few lines and has been memorised: use a longer one, or fewer units and "
                   "edges");
}

// The options that lower the rates of this training, and what else keeps numbers finite.
inline std::string lower_rates(const Options& o) {
    const bool gradient = o.metric == "gradient";
    std::string how = o.full_batches() ? "at a lower rate (--start-rate), on other columns (--columns)"
                      : gradient && o.sgd_rate > 0 ? "at lower rates (--sgd-rate)"
                      : gradient                   ? "at lower rates (--adam-rate)"
                      : o.sparse()                 ? "at lower rates (--natural-rate and --head-rate)"
                                   : "at lower rates (--natural-rate, --head-rate and --adam-rate)";
    return how + (o.sparse() && !(o.named_bound() > 0) ? ", or bound V (--bound 4)" : "");
}

// Warns if a model predicts another text far worse than its training text, or worse than before the training,
// or has no prediction.
inline void warn(const Options& o, const Foreseen& trained, const Foreseen& other, double before,
                 const char* when) {
    const bool far = far_worse(trained.bits, other.bits, other.success);
    if (!far && !worse_than_before(before, other.bits)) return;
    if (!std::isfinite(other.bits))
        std::fprintf(
            stderr,
            "synthetic: warning: %s another text has %g bits a symbol: the model has numbers that are "
            "not finite; train another one %s\n",
            when, other.bits, lower_rates(o).c_str());
    else if (far)
        std::fprintf(
            stderr,
            "synthetic: warning: %s another text has %.3g bits a symbol, the training text %.3g. %s\n", when,
            other.bits, trained.bits, advice(o, other.saturated).c_str());
    else
        std::fprintf(stderr,
                     "synthetic: warning: %s another text has %.3g bits a symbol, and had %.3g before the "
                     "training. %s\n",
                     when, other.bits, before, advice(o, other.saturated).c_str());
}

// The mean over the parts of a text; of success over those that have one, and not a number if none has.
inline Foreseen foresee(Learner& learner, const std::vector<tasks::Text>& parts) {
    Foreseen mean;
    double telling = 0;  // parts with a success
    for (const auto& part : parts) {
        const Foreseen seen = learner.foresee(part);
        mean.bits += seen.bits, mean.saturated += seen.saturated;
        if (!std::isnan(seen.success)) mean.success += seen.success, ++telling;
    }
    const auto n = static_cast<double>(parts.size());
    return {mean.bits / n, mean.success / telling, mean.saturated / n};
}

// Bits at the beginning and the end of a training; at the end not a number if it could not go on.
struct Ending {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double choice_before = none, training = none, choice = none, success = none;
    tasks::Index returns = 0;  // how often training went back to the best model
    bool sound = true;         // false: it ended because numbers were no longer finite
};

// Trains for `seconds` more seconds and at most `rounds` more rounds (0: any number), and leaves the learner
// in its best state. Progress goes to `shown`; `record` takes rows of the learning curve.
template <class Record> Ending train(Learner& learner, const Options& o, Progress& at, double seconds,
                                     tasks::Index rounds, const Texts& texts, std::FILE* shown,
                                     Record&& record) {
    Ending ending;
    Foreseen seen, chosen;
    // A network may stray on the training text alone, read as a whole, if it is trained on parts of it.
    const auto training_strays = [&] {
        return far_worse(chosen.bits, seen.bits, seen.success, times_to_go_back);
    };
    const auto look = [&] {
        seen = learner.foresee(texts.train), chosen = foresee(learner, texts.choice);
        if (chosen.bits < at.bits && !(at.bits < Progress().bits && training_strays()))
            at.bits = chosen.bits, learner.keep();
        char success[32] = "-";  // nothing counts as one
        if (!std::isnan(chosen.success)) std::snprintf(success, sizeof success, "%.4f", chosen.success);
        std::fprintf(shown,
                     "%8.1f s  %6lld rounds  training %.5f  choice %.5f  success %s  saturated %.2f  %s\n",
                     at.seconds, static_cast<long long>(at.rounds), seen.bits, chosen.bits, success,
                     chosen.saturated, learner.state().c_str());
        std::fflush(shown);
        record(seen, chosen);
    };
    const double begin = at.seconds;
    const std::uint64_t first = at.rounds;
    // The share that is done, of the seconds or the rounds: of what ends first.
    const auto share = [&] {
        const double of_time = seconds > 0 ? (at.seconds - begin) / seconds : 1;
        return rounds > 0
                   ? std::max(of_time, static_cast<double>(at.rounds - first) / static_cast<double>(rounds))
                   : of_time;
    };
    try {
        look();
        ending.choice_before = chosen.bits;
        double next = begin;
        int strays = 0;        // looks in a row
        double saturated = 0;  // when it last went back
        for (double done = share(); done < 1 && !interrupt::wanted;) {
            learner.prepare(done);
            const program::CpuTime training;
            learner.round();
            at.seconds += training.seconds();
            ++at.rounds;
            done = share();
            if (at.seconds < next && done < 1 && !interrupt::wanted) continue;
            const program::CpuTime looking;
            look();
            // One text far worse than the other, or this one than at the best moment or before the training.
            // Some trainings pass through such states; those that stay in them rarely leave again.
            const bool strayed = far_worse(std::min(seen.bits, at.bits), chosen.bits, chosen.success,
                                           times_to_go_back) ||
                                 worse_than_before(ending.choice_before, chosen.bits) || training_strays(),
                       last = done >= 1 || interrupt::wanted;
            strays = strayed ? strays + 1 : 0;
            std::string how;
            if (strayed && (strays == 4 || last)) how = learner.go_back();
            if (!how.empty()) {
                ++ending.returns, strays = 0, saturated = chosen.saturated;
                std::fprintf(shown, "Another text is far worse: back to the best moment, %s\n", how.c_str());
                if (last) look();
            }
            // about forty times, and for at most a fifth of the time
            next = at.seconds + std::max(4 * looking.seconds(), (at.seconds - begin) / done / 40);
        }
        ending.training = seen.bits, ending.choice = chosen.bits, ending.success = chosen.success;
        if (ending.returns > 0)
            std::fprintf(stderr,
                         "synthetic: warning: training went back to its best moment %td time%s, as a text "
                         "was predicted "
                         "far worse than the other, or than before. %s\n",
                         ending.returns, ending.returns == 1 ? "" : "s", advice(o, saturated).c_str());
        warn(o, seen, chosen, ending.choice_before, "at the end of training");
    } catch (const isogloss::NumericError& error) {
        ending.sound = false;
        std::fprintf(
            stderr,
            "synthetic: warning: training ended after %lld rounds; the best state so far is kept. Begin "
            "again %s. The cause: %s\n",
            static_cast<long long>(at.rounds), lower_rates(o).c_str(), error.what());
    }
    learner.stop();
    return ending;
}
