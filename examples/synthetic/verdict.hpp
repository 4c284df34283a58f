// The final output of a call, for people and for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "../shared/json.hpp"
#include "learner.hpp"
#include "options.hpp"
#include "texts.hpp"

// The results of a model.
struct Verdict {
    Foreseen trained, valid;
    std::optional<Foreseen> longer;  // on texts longer than those of training
    std::string sample;
    std::uint64_t rounds = 0;
    double seconds = 0;
    bool knows_training = true;  // false: a model of a given text, loaded without that text
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
    std::printf("rounds=%lld seconds=%.1f saturated=%.4f\n", static_cast<long long>(v.rounds), v.seconds,
                v.valid.saturated);
    std::printf("validation_bits=%.5f ", v.valid.bits);
    if (texts.own()) std::printf("entropy_bits=unknown\n");
    else std::printf("entropy_bits=%.5f success=%.4f\n", texts.entropy, v.valid.success);
}

// The same, under the names of print(), without unknown values.
inline program::Json as_json(const Verdict& v, const Options& o, const Texts& texts) {
    program::Json all = {{"network", o.network}, {"method", o.method()}};
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
    all["validation_bits"] = v.valid.bits;
    if (!texts.own()) {
        all["source_bits"] = tasks::source_bits(texts.valid);
        all["entropy_bits"] = texts.entropy;
        all["success"] = v.valid.success;
    }
    return all;
}
