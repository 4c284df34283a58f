/// @file adaptation.hpp  Models that adapt to the text they predict: the cache and dynamic evaluation of the
/// command line.
#pragma once

#include <algorithm>
#include <isogloss/evaluation.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/riemannian/dynamic.hpp>
#include <limits>
#include <optional>
#include <string>

#include "measure.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "texts.hpp"

namespace lm {

/// Columns of the batches that gradient statistics are collected over, if the text is long enough: as many as
/// in the code published with the paper.
inline constexpr ig::Index statistics_columns = 100;

/// Throws UsageError if `option` is given, but not `what` that it requires (`needed`).
template <class Value>
void require_with(bool needed, const std::string& what, const std::string& option, const Value& value) {
    bool given;
    if constexpr (is_optional<Value>) given = value.has_value();
    else given = !value.empty();
    if (given && !needed) throw ig::UsageError(ig::message(option, " is given without ", what));
}

/// Whether a rule of --dynamic uses gradient statistics of a training text.
inline bool of_a_text(const std::string& rule) { return rule == "rms" || rule == "riemannian"; }

/// Throws UsageError if the options of dynamic evaluation, of `evaluate` or `tune`, are inconsistent.
template <class O> void require_dynamic(const O& o) {
    const bool dynamic = !o.dynamic.empty();
    require_with(dynamic, "--dynamic", "--dynamic-rate", o.dynamic_rate);
    require_with(dynamic, "--dynamic", "--dynamic-decay", o.dynamic_decay);
    require_with(dynamic, "--dynamic", "--dynamic-steps", o.dynamic_steps);
    require_with(of_a_text(o.dynamic), "--dynamic rms or riemannian", "--dynamic-text", o.dynamic_text);
    require_with(o.dynamic == "riemannian", "--dynamic riemannian", "--dynamic-table-rate",
                 o.dynamic_table_rate);
    if (of_a_text(o.dynamic) && o.dynamic_text.empty())
        throw ig::UsageError(
            ig::message("--dynamic ", o.dynamic,
                        " needs --dynamic-text, a training text for the statistics of its gradients"));
    if (const ig::Index steps = o.dynamic_steps.value_or(1); steps < 1 || steps > most_size)
        throw ig::UsageError(
            ig::message("--dynamic-steps is ", steps, ", expected at least 1 and at most ", most_size));
}

/// Throws UsageError if a number for the cache or for dynamic evaluation is out of range, before a file is read.
/// In `tune` those are lists.
template <class O> void require_adaptation(const O& o) {
    const auto each = []<class Given>(const Given& given, auto&& check) {
        if constexpr (is_optional<Given>) {
            if (given) check(*given);
        } else {
            std::for_each(given.begin(), given.end(), check);
        }
    };
    using Cache = ig::NeuralCacheOptions;
    each(o.cache_window, [](ig::Index n) { require_neural_cache(Cache{.window = n}); });
    each(o.cache_flatness, [](double x) { require_neural_cache(Cache{.flatness = x}); });
    each(o.cache_weight, [](double x) { require_neural_cache(Cache{.weight = x}); });
    const auto rate = [](const char* option) {
        return [option](double x) {
            ig::require("dynamic evaluation", option, x, 0, std::numeric_limits<float>::max());
        };
    };
    each(o.dynamic_rate, rate("--dynamic-rate"));
    each(o.dynamic_table_rate, rate("--dynamic-table-rate"));
    each(o.dynamic_decay, [](double x) { ig::require("dynamic evaluation", "--dynamic-decay", x, 0, 1); });
}

/// Steps of a segment of --dynamic by default, for which the default rates and decays of its rules are given.
inline constexpr ig::Index default_segment = 5;

/// Steps of a segment of --dynamic: as requested or by default, and no more than the text has.
inline ig::Index segment_of(const std::optional<ig::Index>& asked, const ig::text::Corpus& corpus) {
    return std::min(asked.value_or(default_segment), std::max<ig::Index>(1, corpus.size()));
}

/// The text of gradient statistics, in columns of segments.
struct StatisticsText {
    std::string path;
    ig::text::Corpus corpus;
    ig::Index columns;
};

/// That of --dynamic-text, if the rule uses one; `steps`: of a segment.
template <class O> std::optional<StatisticsText> statistics_of(const O& o, ig::Index steps,
                                                               const ig::text::Vocabulary& vocabulary) {
    if (!of_a_text(o.dynamic)) return std::nullopt;
    auto corpus = ig::text::Corpus::read(o.dynamic_text, vocabulary);
    const ig::Index columns = std::clamp<ig::Index>(corpus.size() / steps, 1, statistics_columns);
    return StatisticsText{o.dynamic_text, std::move(corpus), columns};
}

/// The update of a rule of --dynamic, with the defaults of that rule: for rms those of the published code,
/// for sgd and riemannian values that worked well on the Penn Treebank. For segments of another number of steps
/// rates and decay are in proportion to it, as in that code: the weights move by as much per token.
class Adaptation {
public:
    Adaptation(Graph& g, const std::string& rule, const std::optional<double>& table_rate = {})
        : rule_(rule) {
        const double length = static_cast<double>(g.capacity().time) / default_segment;
        ig::DynamicOptions options;
        if (rule == "sgd") options = {.rule = ig::DynamicRule::sgd, .rate = 0.5, .decay = 0.001};
        options.rate *= length;
        options.decay = std::min(1.0, options.decay * length);
        if (rule != "riemannian") {
            by_number_.emplace(g.parameters(), options);
            return;
        }
        options.rate = table_rate.value_or(options.rate);
        ig::RiemannianDynamicOptions of_units{.rest = options};
        of_units.rate *= length;
        by_unit_.emplace(g, g.parameters(), of_units);
    }

    double rate() const { return by_unit_ ? by_unit_->rate() : by_number_->rate(); }
    double decay() const { return by_unit_ ? by_unit_->decay() : by_number_->decay(); }
    void rate(double r) { by_unit_ ? by_unit_->rate(r) : by_number_->rate(r); }
    void decay(double l) { by_unit_ ? by_unit_->decay(l) : by_number_->decay(l); }

    // The interface that collect_mean_squares() and evaluate_dynamically() require.
    void collect() { by_unit_ ? by_unit_->collect() : by_number_->collect(); }
    void step() { by_unit_ ? by_unit_->step() : by_number_->step(); }
    void restore() noexcept { by_unit_ ? by_unit_->restore() : by_number_->restore(); }

    /// The line that is printed about it and its segments of `steps` steps.
    std::string description(ig::Index steps) {
        std::string further;
        if (by_unit_)
            further = ig::message(", of tables by rms ", exact(by_unit_->rest().rate()), ", damping ",
                                  exact(ig::RiemannianDynamicOptions().damping));
        if (rule_ != "sgd") further += ", epsilon " + exact(ig::DynamicOptions().epsilon);
        return ig::message(
            "dynamic     ", rule_, ", rate ", exact(rate()), ", decay ", exact(decay()), further,
            ", segments of ", counted(steps, "step"),
            ": each is counted before the weights move by its gradient, a mean over its tokens");
    }

private:
    std::string rule_;
    std::optional<ig::DynamicUpdate<float>> by_number_;
    std::optional<ig::RiemannianDynamic<float>> by_unit_;
};

/// A text in order, every token predicted once, with a line end fed first; `time` steps at once.
inline ig::text::Batches in_order(const ig::text::Corpus& corpus, const ig::text::Vocabulary& vocabulary,
                                  ig::Index time, ig::Index columns = 1) {
    return corpus.batches({time, columns}, {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()});
}

/// How many steps a cache remembers: as requested or by default, and no more than the text has.
inline ig::Index window_of(const std::optional<ig::Index>& asked, const ig::text::Corpus& corpus) {
    return std::min(asked.value_or(ig::NeuralCacheOptions().window), std::max<ig::Index>(1, corpus.size()));
}

/// Collects the gradient statistics of a rule over a text; returns a line to print. `shown`: show progress.
inline std::string collect(LoadedModel& it, const StatisticsText& text, ig::Index steps, Adaptation& update,
                           bool shown) {
    auto batches = in_order(text.corpus, it.vocabulary, steps, text.columns);
    const ig::Index count = batches.count();
    Progress progress("statistics", shown);
    collect_mean_squares(*it.g, it.model.nll, it.model.x, it.model.y, std::move(batches), update,
                         [&](const ig::text::Batch& batch) {
                             progress.update(batch.index + 1, count, [] { return std::string(); });
                             return true;
                         });
    progress.clear();
    return ig::message("statistics  of the gradients of ", grouped(count), " batches of ",
                       counted(text.columns, "column"), " by ", counted(steps, "step"), "; ",
                       describe(text.corpus, text.path));
}

}  // namespace lm
