// The final output of a call, for people and for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "../shared/json.hpp"
#include "columns.hpp"
#include "learner.hpp"
#include "options.hpp"
#include "texts.hpp"
#include "train.hpp"

// The results of a model.
struct Verdict {
    Foreseen trained, valid;
    std::optional<Foreseen> longer;  // on texts longer than those of training
    std::string sample;
    std::uint64_t rounds = 0;
    double seconds = 0;
    bool knows_training = true;    // false: a model of a given text, loaded without that text
    std::optional<Ending> ending;  // of its training in this call, if any
};

inline std::string drawn(Learner& learner, const Options& o, const Text& text) {
    std::string sample;
    for (const Token v : learner.sample(o.sample, o.seed)) sample += text.spelled(v);
    return sample;
}

inline void print(const Verdict& v, const Texts& texts) {
    if (v.longer)
        std::printf("longer_bits=%.5f longer_entropy_bits=%.5f longer_success=%.4f\n", v.longer->bits,
                    texts.longer_entropy, v.longer->success);
    if (!v.sample.empty()) std::printf("%s\n", v.sample.c_str());
    if (v.knows_training) std::printf("training_bits=%.5f ", v.trained.bits);
    if (!texts.own()) std::printf("source_bits=%.5f ", tasks::source_bits(texts.valid));
    std::printf("rounds=%lld seconds=%.1f saturated=%.4f", static_cast<long long>(v.rounds), v.seconds,
                v.valid.saturated);
    if (v.ending)
        std::printf(" start_choice_bits=%.5f end_training_bits=%.5f end_choice_bits=%.5f",
                    v.ending->choice_before, v.ending->training, v.ending->choice);
    if (v.ending && !texts.own()) std::printf(" end_success=%.4f", v.ending->success);
    if (v.ending) std::printf(" returns=%td", v.ending->returns);
    std::printf("\n");
    std::printf("validation_bits=%.5f ", v.valid.bits);
    if (texts.own()) std::printf("entropy_bits=unknown\n");
    else std::printf("entropy_bits=%.5f success=%.4f\n", texts.entropy, v.valid.success);
}

// The same, under the names of print().
inline program::Json as_json(const Verdict& v, const Options& o, const Texts& texts) {
    program::Json all = {{"network", o.network}, {"method", method(o, texts.train)}};
    if (!texts.own()) all["task"] = o.task;
    if (v.longer) {
        all["longer_bits"] = v.longer->bits;
        all["longer_entropy_bits"] = texts.longer_entropy;
        all["longer_success"] = v.longer->success;
    }
    if (!v.sample.empty()) all["sample"] = v.sample;
    if (v.knows_training) all["training_bits"] = v.trained.bits;
    all["rounds"] = v.rounds;
    all["seconds"] = v.seconds;
    all["saturated"] = v.valid.saturated;
    if (v.ending) {
        all["start_choice_bits"] = v.ending->choice_before;
        all["end_training_bits"] = v.ending->training;
        all["end_choice_bits"] = v.ending->choice;
        all["returns"] = v.ending->returns;
        if (!texts.own()) all["end_success"] = v.ending->success;
    }
    all["validation_bits"] = v.valid.bits;
    all["entropy_bits"] = texts.entropy;  // null if unknown
    if (!texts.own()) {
        all["source_bits"] = tasks::source_bits(texts.valid);
        all["success"] = v.valid.success;
    }
    return all;
}
