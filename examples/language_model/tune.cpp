/// @file tune.cpp  The best cache, dynamic evaluation, temperature or mixture on a validation text.
#include <iostream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "mixing.hpp"

namespace lm {

namespace {

using List = std::vector<double>;

List list_or(const List& given, List otherwise) { return given.empty() ? std::move(otherwise) : given; }

// A table: a row for each of `a`, a column for each of `b`.
template <class Value>
void print_table(const std::string& corner, const List& a, const List& b, Value&& value) {
    const auto cell = [](const std::string& s, std::size_t width) {
        std::cout << std::string(width > s.size() ? width - s.size() : 1, ' ') << s;
    };
    cell(corner, 16);
    for (const double x : b) cell(exact(x), 9);
    std::cout << '\n';
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::vector<std::string> row;  // computed before it is printed: value() may report progress
        for (std::size_t j = 0; j < b.size(); ++j) row.push_back(value(i, j));
        cell(exact(a[i]), 16);
        for (const auto& text : row) cell(text, 9);
        std::cout << std::endl;
    }
}

// Reports the best options and their perplexity.
void report_best(Report& report, const std::string& options, double perplexity) {
    report.line(ig::message("best        ", options, ": perplexity ", fixed(perplexity, 2)));
    report.values["best"] = {{"options", options}, {"perplexity", perplexity}};
}

void tune_cache(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, Report& report) {
    const List flatness = list_or(o.cache_flatness, {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1}),
               weight = list_or(o.cache_weight, {0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4});
    const ig::Index window = window_of(o.cache_window, corpus);
    Progress progress("cache", !o.json);
    const auto trials = evaluate_neural_cache(*it.g, it.model.nll, it.g->hidden(it.model.o), it.model.x,
                                              it.model.y, in_order(corpus, it.vocabulary, it.options.bptt),
                                              window, flatness, weight, [&](ig::Index done, ig::Index all) {
                                                  progress.update(done, all, [] { return std::string(); });
                                                  return true;
                                              });
    progress.clear();
    report.line(ig::message(
        "cache       window ", grouped(window),
        ", one column in order, a line end fed first; perplexities by flatness (rows) and weight"));
    if (!o.json)
        print_table("flatness", flatness, weight, [&](std::size_t i, std::size_t j) {
            return fixed(trials.all()[i * weight.size() + j].perplexity.value(), 2);
        });
    for (const auto& trial : trials.all())
        report.values["trials"].push_back({{"window", window},
                                           {"flatness", trial.flatness},
                                           {"weight", trial.weight},
                                           {"perplexity", trial.perplexity.value()}});
    const auto& best = trials.best();
    report_best(report,
                ig::message("--cache --cache-window ", window, " --cache-flatness ", exact(best.flatness),
                            " --cache-weight ", exact(best.weight)),
                best.perplexity.value());
}

void tune_dynamic(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, Report& report) {
    Adaptation update(*it.g, o.dynamic, o.dynamic_table_rate);
    const double rate = update.rate();
    const List rates = list_or(o.dynamic_rate, {rate / 4, rate / 2, rate, 2 * rate}),
               decays = list_or(o.dynamic_decay, {update.decay()});
    const ig::Index steps = o.dynamic_steps.value_or(5);
    if (of_a_text(o.dynamic)) report.line(collect(it, o.dynamic_text, steps, update, !o.json));
    report.line(ig::message("dynamic     ", o.dynamic, ", segments of ", counted(steps, "step"),
                            ", one column in order, a line end fed first; perplexities by rate (rows) and "
                            "decay"));
    double best = 0;
    std::string setting;
    const auto run = [&](std::size_t i, std::size_t j) {
        auto batches = in_order(corpus, it.vocabulary, steps);
        const ig::Index count = batches.count();
        Progress progress("dynamic", !o.json);
        update.rate(rates[i]);
        update.decay(decays[j]);
        const double p =
            evaluate_dynamically(*it.g, it.model.nll, it.model.x, it.model.y, std::move(batches), update,
                                 [&](const ig::text::Batch& batch) {
                                     progress.update(batch.index + 1, count, [] { return std::string(); });
                                     return true;
                                 })
                .value();
        if (setting.empty() || p < best) {
            best = p;
            setting = ig::message("--dynamic-rate ", exact(rates[i]), " --dynamic-decay ", exact(decays[j]));
        }
        report.values["trials"].push_back(
            {{"rate", rates[i]}, {"decay", decays[j]}, {"steps", steps}, {"perplexity", p}});
        return fixed(p, 2);
    };
    if (o.json) {
        for (std::size_t i = 0; i < rates.size(); ++i)
            for (std::size_t j = 0; j < decays.size(); ++j) run(i, j);
    } else {
        print_table("rate", rates, decays, run);
    }
    report_best(report, ig::message("--dynamic ", o.dynamic, " ", setting, " --dynamic-steps ", steps), best);
}

// Tunes the temperature of the softmax, then the mixture weights under it, or one of the two.
void tune_mixture(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, Report& report) {
    Progress progress("pass", !o.json);
    const auto go_on = [&](ig::Index done, ig::Index all) {
        progress.update(done, all, [] { return std::string(); });
        return true;
    };
    std::string setting;
    Tempered own;
    if (o.softmax_temperature) {
        report.line(ig::message("softmax     by Newton's method, in ", counted(o.columns, "column"),
                                ", a line end fed first"));
        own = tune_temperature(
            it, corpus, o.columns,
            [&](double temperature, double nats) {
                progress.clear();
                report.line(ig::message("            temperature ", fixed(temperature, 4), ": perplexity ",
                                        fixed(std::exp(nats), 2)));
                report.values["trials"].push_back(
                    {{"softmax_temperature", temperature}, {"perplexity", std::exp(nats)}});
            },
            go_on);
        setting = "--softmax-temperature " + exact(own.temperature);
    } else {
        own.nats = token_nats(it, corpus, o.columns, 1, go_on);
    }
    const Mixture mixture = mixture_of(o, it, std::move(own.nats), corpus, go_on);
    progress.clear();
    std::vector<double> weights = {1};
    if (is_mixed(o)) {
        weights = mixture.best_weights();
        report_mixture(report, mixture, weights);
        for (const auto& path : o.mix_with) setting += (setting.empty() ? "" : " ") + ("--mix-with " + path);
        for (const auto& path : o.mix_probabilities)
            setting += (setting.empty() ? "" : " ") + ("--mix-probabilities " + path);
        setting += " --mix-weight";
        for (std::size_t k = 1; k < weights.size(); ++k) setting += " " + exact(weights[k]);
    }
    report_best(report, ig::message(setting, " --columns ", o.columns), mixture.perplexity(weights).value());
}

}  // namespace

int tune(const TuneOptions& o) {
    ig::threads(o.threads);
    const bool dynamic = !o.dynamic.empty(), mixed = o.softmax_temperature || is_mixed(o);
    const bool cache = o.cache_window || !o.cache_flatness.empty() || !o.cache_weight.empty();
    if (dynamic && cache)
        throw ig::UsageError(
            ig::message("--dynamic is tuned without the cache; leave out ",
                        o.cache_window ? "--cache-window" : "--cache-flatness and --cache-weight"));
    require_dynamic(o);
    require_not_adaptive(o, cache, o.softmax_temperature);
    if (!mixed && o.columns != 1)
        throw ig::UsageError(
            ig::message("--columns is ", o.columns, ", expected 1 with ", dynamic ? "--dynamic" : "the cache",
                        ": what a word adapts the model to is the text right before the next"));
    auto it = mixed ? load_model(o.model, o.columns) : load_adaptable(o);
    const auto corpus = read_text(o.text, it.vocabulary);
    Report report(o.json);
    report.line("text        " + describe(corpus, o.text));
    report.values["text"] = counts_of(corpus);
    report.values["trials"] = Json::array();
    if (mixed) tune_mixture(o, it, corpus, report);
    else if (dynamic) tune_dynamic(o, it, corpus, report);
    else tune_cache(o, it, corpus, report);
    report.finish();
    return 0;
}

}  // namespace lm
