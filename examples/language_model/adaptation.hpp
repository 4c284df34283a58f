/// @file adaptation.hpp  Models that adapt to the text they predict: the cache and dynamic evaluation of the
/// command line.
#pragma once

#include <algorithm>
#include <isogloss/isogloss.hpp>
#include <optional>
#include <string>

#include "measure.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "texts.hpp"

namespace lm {

/// Columns of the batches that gradient statistics are collected over, where the text is long enough: as many as
/// in the code published with the paper.
inline constexpr ig::Index statistics_columns = 100;

/// Throws UsageError where an option is given that `needed` is not given for.
template <class Value>
void require_with(bool needed, const std::string& what, const std::string& option, const Value& value) {
    bool given;
    if constexpr (is_optional<Value>) given = value.has_value();
    else given = !value.empty();
    if (given && !needed) throw ig::UsageError(ig::message(option, " is given without ", what));
}

/// Whether options of dynamic evaluation fit together, as those of `evaluate` and of `tune`.
template <class O> void require_dynamic(const O& o) {
    const bool dynamic = !o.dynamic.empty();
    require_with(dynamic, "--dynamic", "--dynamic-rate", o.dynamic_rate);
    require_with(dynamic, "--dynamic", "--dynamic-decay", o.dynamic_decay);
    require_with(dynamic, "--dynamic", "--dynamic-steps", o.dynamic_steps);
    require_with(o.dynamic == "rms", "--dynamic rms", "--dynamic-text", o.dynamic_text);
    if (o.dynamic == "rms" && o.dynamic_text.empty())
        throw ig::UsageError(
            "--dynamic rms needs --dynamic-text, a training text for the statistics of its gradients");
    if (const ig::Index steps = o.dynamic_steps.value_or(1); steps < 1 || steps > most_size)
        throw ig::UsageError(
            ig::message("--dynamic-steps is ", steps, ", expected at least 1 and at most ", most_size));
}

/// A model that these options can adapt.
template <class O> LoadedModel load_adaptable(const O& o) {
    return load_model(o.model, o.dynamic == "rms" ? statistics_columns : 1, o.dynamic_steps.value_or(5));
}

/// The defaults of a rule: for rms those of the published code, for sgd what did well on the Penn Treebank.
inline ig::DynamicOptions dynamic_defaults(const std::string& rule) {
    if (rule == "sgd") return {.rule = ig::DynamicRule::sgd, .rate = 0.5, .decay = 0.001};
    return {};
}

/// A text in one column, every token predicted once, a line end being fed first; `time` steps at once.
inline ig::text::Batches in_order(const ig::text::Corpus& corpus, const ig::text::Vocabulary& vocabulary,
                                  ig::Index time, ig::Index columns = 1) {
    return corpus.batches({time, columns}, {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()});
}

/// How many steps a cache remembers: what was asked for, or the default, and no more than the text has.
inline ig::Index window_of(const std::optional<ig::Index>& asked, const ig::text::Corpus& corpus) {
    return std::min(asked.value_or(ig::NeuralCacheOptions().window), std::max<ig::Index>(1, corpus.size()));
}

/// Collects the gradient statistics of rms over a text, and returns what to say of it. `shown`: whether a bar is.
inline std::string collect(LoadedModel& it, const std::string& path, ig::Index steps,
                           ig::DynamicUpdate<float>& update, bool shown) {
    const auto corpus = ig::text::Corpus::read(path, it.vocabulary);
    const ig::Index columns = std::clamp<ig::Index>(corpus.size() / steps, 1, statistics_columns);
    auto batches = in_order(corpus, it.vocabulary, steps, columns);
    const ig::Index count = batches.count();
    Progress progress("statistics", shown);
    collect_mean_squares(*it.g, it.model.nll, it.model.x, it.model.y, std::move(batches), update,
                         [&](const ig::text::Batch& batch) {
                             progress.update(batch.index + 1, count, [] { return std::string(); });
                             return true;
                         });
    progress.clear();
    return ig::message("statistics  of the gradients of ", grouped(count), " batches of ",
                       counted(columns, "column"), " by ", counted(steps, "step"), "; ",
                       describe(corpus, path));
}

/// What is printed of a dynamic evaluation.
inline std::string describe(const ig::DynamicOptions& o, ig::Index steps) {
    const bool rms = o.rule == ig::DynamicRule::rms;
    return ig::message("dynamic     ", rms ? "rms" : "sgd", ", rate ", exact(o.rate), ", decay ",
                       exact(o.decay), rms ? ", epsilon " + exact(o.epsilon) : "", ", segments of ",
                       counted(steps, "step"),
                       ": each is counted before the weights move by its gradient, a mean over its tokens");
}

}  // namespace lm
