/// @file evaluate.cpp  Perplexity of a text.
#include <iostream>
#include <optional>
#include <utility>

#include "../shared/threads.hpp"
#include "adaptation.hpp"
#include "commands.hpp"
#include "keystrokes.hpp"
#include "predictions.hpp"
#include "report.hpp"

namespace lm {

namespace {

// The `go_on` function of a pass that shows a progress bar and always continues.
auto shown_by(Progress& progress) {
    return [&progress](ig::Index done, ig::Index all) {
        progress.update(done, all, [] { return std::string(); });
        return true;
    };
}

// Counts the words of a pass over one column.
void add(Keystrokes& keystrokes, LoadedModel& it, const ig::text::Batch& batch) {
    const ig::Index V = it.vocabulary.size();
    std::vector<float> z(static_cast<std::size_t>(V));
    for (ig::Index t = 0; t < batch.target.time; ++t)
        if (const ig::Token y = batch.target.data[t]; y != ig::not_predicted) {
            it.g->head(it.model.o).logits(t, {z.data(), 1, V});
            keystrokes.add(z, y);
        }
}

// Evaluates in one column and segments of as many steps as the graph, with a cache, dynamic evaluation, suggestions, or
// several of these.
ig::Perplexity evaluate_in_order(const EvaluateOptions& o, LoadedModel& it, const ig::text::Corpus& corpus,
                                 const std::optional<StatisticsText>& statistics, Report& report,
                                 std::optional<double>& without, std::optional<Keystrokes>& keystrokes) {
    Graph& g = *it.g;
    const Model& m = it.model;
    const ig::NeuralCacheOptions defaults, cache{.window = window_of(o.cache_window, corpus),
                                                 .flatness = o.cache_flatness.value_or(defaults.flatness),
                                                 .weight = o.cache_weight.value_or(defaults.weight)};
    const std::vector<double> flatness = {cache.flatness},
                              weights = {0, cache.weight};  // without and with the cache
    const auto h = g.head(m.o).hidden();
    if (o.cache) {
        report.line(ig::message("cache       window ", grouped(cache.window), ", flatness ",
                                exact(cache.flatness), ", weight ", exact(cache.weight),
                                ": every word joins it after it was predicted"));
        report.values["cache"] = {
            {"window", cache.window}, {"flatness", cache.flatness}, {"weight", cache.weight}};
    }
    const ig::Index steps = g.capacity().time;
    auto batches = in_order(corpus, it.vocabulary, steps);
    Progress progress("evaluation", !o.json);
    const auto go_on = shown_by(progress);
    std::optional<ig::NeuralCacheTrials<float>> trials;
    ig::Perplexity p;
    if (o.dynamic.empty() && keystrokes) {
        const ig::Evaluation<float> evaluation(g);
        for (const auto& batch : batches) {
            g.forward(m.nll, {m.x, batch.input}, {m.y, batch.target});
            p.add(g.result(m.nll).cross_entropy(), g.result(m.nll).predicted());
            add(*keystrokes, it, batch);
            go_on(batch.index + 1, batches.count());
        }
    } else if (o.dynamic.empty()) {
        trials = evaluate_neural_cache(g, m.nll, h, m.x, m.y, std::move(batches), cache.window, flatness,
                                       weights, go_on);
    } else {
        if (o.cache) trials.emplace(h.width, cache.window, flatness, weights);
        Adaptation update(g, o.dynamic, o.dynamic_table_rate);
        if (o.dynamic_rate) update.rate(*o.dynamic_rate);
        if (o.dynamic_decay) update.decay(*o.dynamic_decay);
        report.line(update.description(steps));
        report.values["dynamic"] = {
            {"rule", o.dynamic}, {"rate", update.rate()}, {"decay", update.decay()}, {"steps", steps}};
        if (statistics) report.line(collect(it, *statistics, steps, update, !o.json));
        p = evaluate_dynamically(g, m.nll, m.x, m.y, batches, update, [&](const ig::text::Batch& batch) {
            if (trials) trials->add(g, m.nll, h, batch.target);
            if (keystrokes) add(*keystrokes, it, batch);
            return go_on(batch.index + 1, batches.count());
        });
    }
    if (!trials) return p;
    without = trials->all().front().perplexity.value();
    return trials->all().back().perplexity;
}

// Evaluates with a softmax temperature.
ig::Perplexity evaluate_tempered(const EvaluateOptions& o, LoadedModel& it, const ig::text::Corpus& corpus,
                                 ig::Index columns, Report& report) {
    Progress progress("evaluation", !o.json);
    const auto nats = token_nats(it, corpus, columns, *o.softmax_temperature, shown_by(progress));
    progress.clear();
    report.line("softmax     temperature " + exact(*o.softmax_temperature));
    report.values["softmax_temperature"] = *o.softmax_temperature;
    ig::Perplexity p;
    for (const double one : nats) p.add(one, 1);
    return p;
}

}  // namespace

int evaluate(const EvaluateOptions& o) {
    program::use_threads("evaluate", o.threads);
    require_with(o.cache, "--cache", "--cache-window", o.cache_window);
    require_with(o.cache, "--cache", "--cache-flatness", o.cache_flatness);
    require_with(o.cache, "--cache", "--cache-weight", o.cache_weight);
    require_dynamic(o);
    require_adaptation(o);
    require_columns(o.columns);
    require_not_adaptive(o.softmax_temperature.has_value(), o.cache, !o.dynamic.empty());
    if (o.softmax_temperature)
        ig::require("evaluate", "--softmax-temperature", *o.softmax_temperature, 0.01, 100);
    const bool dynamic = !o.dynamic.empty(), suggests = o.suggest != 0,
               in_order = o.cache || dynamic || suggests;
    ig::require("evaluate", "--suggest", o.suggest, 0, most_size);
    if (suggests && (o.cache || o.softmax_temperature || o.text == "-"))
        throw ig::UsageError(
            ig::message("--suggest is given with ",
                        o.cache                 ? "--cache"
                        : o.softmax_temperature ? "--softmax-temperature"
                                                : "--text -",
                        ", expected a text in a file, --cache and --softmax-temperature left out"));
    const char* by = o.cache ? "--cache" : dynamic ? "--dynamic" : "--suggest";
    if (in_order && o.columns != 1)
        throw ig::UsageError(ig::message("--columns is ", o.columns, ", expected 1 with ", by,
                                         ": the text is read in its order"));
    if (in_order && o.precision != "fp32")
        throw ig::UsageError(ig::message("--precision is ", o.precision, ", expected fp32 with ", by,
                                         ", which work on the weights and states in float"));
    const auto packed = o.precision == "fp32" ? std::nullopt : std::optional(precision_of(o.precision));
    auto file = read_model(o.model);
    const auto corpus = read_text(o.text, file.vocabulary);
    const Extent size = extent_of(corpus.size(), o.columns,
                                  dynamic ? segment_of(o.dynamic_steps, corpus) : file.options.bptt);
    const auto statistics = statistics_of(o, size.steps, file.vocabulary);
    auto it = build_model(std::move(file), {statistics ? statistics->columns : size.columns, size.steps},
                          packed, dynamic);
    const double unigram = unigram_perplexity(it.vocabulary, corpus);
    Report report(o.json);
    report.line("text        " + describe(corpus, o.text));
    report.line("unigram     perplexity " + fixed(unigram, 2) + ", for comparison");
    report.values["text"] = counts_of(corpus);
    report.values["unigram_perplexity"] = unigram;
    if (packed) {
        report.line("products    in " + o.precision);
        report.values["precision"] = o.precision;
    }

    ig::Perplexity p;
    std::optional<double> without;  // the cache
    std::optional<Keystrokes> keystrokes;
    if (suggests) {
        if (it.vocabulary.level() == ig::text::Level::character)
            throw ig::UsageError(ig::message("--suggest is ", o.suggest, ", but '", o.model,
                                             "' is of characters, expected a model of words"));
        keystrokes.emplace(it.vocabulary, o.suggest).add_unknowns(o.text);
    }
    if (in_order) {
        p = evaluate_in_order(o, it, corpus, statistics, report, without, keystrokes);
        count_characters(p, it.vocabulary);
    } else if (o.softmax_temperature) {
        p = evaluate_tempered(o, it, corpus, size.columns, report);
        count_characters(p, it.vocabulary);
    } else {
        Progress progress("evaluation", !o.json);
        p = *measure(*it.g, it.model, corpus, it.vocabulary, size.columns, size.steps, shown_by(progress));
    }
    report.line(describe(p, corpus, it.vocabulary, size.columns));
    if (without) report.line("    with the cache; without it perplexity " + fixed(*without, 2));
    add_perplexity(report.values, p);
    if (without) report.values["perplexity_without_cache"] = *without;
    if (keystrokes) {
        const double saved =
            1 - double(keystrokes->typed()) / double(std::max<ig::Index>(1, keystrokes->all()));
        report.line(ig::message("keystrokes  ", grouped(keystrokes->typed()), " in place of ",
                                grouped(keystrokes->all()), " letters and spaces with ",
                                counted(o.suggest, "word"), " suggested: ", fixed(100 * saved, 1),
                                " % saved"));
        report.values["keystrokes"] = {{"suggested", o.suggest},
                                       {"typed", keystrokes->typed()},
                                       {"letters_and_spaces", keystrokes->all()}};
    }
    report.values["columns"] = size.columns;
    report.values["vocabulary_checksum"] = ig::file::hex16(it.vocabulary.checksum());
    report.finish();
    return 0;
}

}  // namespace lm
