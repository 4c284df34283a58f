// The training of one learner, with looks at how well it predicts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "../shared/interrupt.hpp"
#include "far_worse.hpp"
#include "model_file.hpp"
#include "texts.hpp"

// Processor seconds of this process, independent of other load.
inline double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Warns if a model predicts another text far worse than its training text, or has no prediction.
inline void warn(const Foreseen& trained, const Foreseen& other, const char* when) {
    if (!far_worse(trained.bits, other.bits, other.success)) return;
    if (!std::isfinite(other.bits))
        std::fprintf(
            stderr,
            "synthetic: warning: %s another text has %g bits a symbol: the model has numbers that are "
            "not finite; train another one at lower rates\n",
            when, other.bits);
    else
        std::fprintf(
            stderr,
            "synthetic: warning: %s another text has %.3g bits a symbol, the training text %.3g; %.0f %% of "
            "the "
            "units are saturated. Units that stay at a bound of their range are constants, set by the first "
            "symbols of a text: train on more columns (--columns), or bound V (--bound 4). If few units are, "
            "or the text has few lines, it has been memorised: use a longer one, or fewer units "
            "and edges\n",
            when, other.bits, trained.bits, 100 * other.saturated);
}

// Trains for `seconds` more seconds and at most `rounds` more rounds (0: any number), and leaves the learner
// in its best state. Progress goes to `shown`; `record` takes rows of the learning curve. False if training
// ended because numbers were no longer finite.
template <class Record> bool train(Learner& learner, Progress& at, double seconds, tasks::Index rounds,
                                   const Texts& texts, std::FILE* shown, Record&& record) {
    Foreseen seen, chosen;
    const auto look = [&] {
        seen = learner.foresee(texts.train), chosen = learner.foresee(texts.choice);
        if (chosen.bits < at.bits) at.bits = chosen.bits, learner.keep();
        std::fprintf(shown,
                     "%8.1f s  %6lld rounds  training %.5f  choice %.5f  success %.4f  saturated %.2f  %s\n",
                     at.seconds, static_cast<long long>(at.rounds), seen.bits, chosen.bits, chosen.success,
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
    bool sound = true;
    try {
        look();
        double next = begin;
        for (double done = share(); done < 1 && !interrupt::wanted;) {
            learner.prepare(done);
            const double start = computed();
            learner.round();
            at.seconds += computed() - start;
            ++at.rounds;
            done = share();
            if (at.seconds < next && done < 1 && !interrupt::wanted) continue;
            const double before = computed();
            look();
            // about forty times, and for at most a fifth of the time
            next = at.seconds + std::max(4 * (computed() - before), (at.seconds - begin) / done / 40);
        }
        warn(seen, chosen, "at the end of training");
    } catch (const isogloss::NumericError& error) {
        sound = false;
        std::fprintf(
            stderr,
            "synthetic: warning: training ended after %lld rounds; the best state so far is kept. Begin "
            "again at lower rates (of ruop and rbpm --natural-rate and --head-rate, of gradient --adam-rate "
            "or --sgd-rate), or bound V (--bound 4). The cause: %s\n",
            static_cast<long long>(at.rounds), error.what());
    }
    learner.stop();
    return sound;
}
