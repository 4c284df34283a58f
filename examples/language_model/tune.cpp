/// @file tune.cpp  The best cache, or the best dynamic evaluation, on a validation text.
#include <iostream>
#include <string>
#include <vector>

#include "adaptation.hpp"
#include "commands.hpp"

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
        std::vector<std::string> row;  // before anything of it is printed: a value may report its progress
        for (std::size_t j = 0; j < b.size(); ++j) row.push_back(value(i, j));
        cell(exact(a[i]), 16);
        for (const auto& text : row) cell(text, 9);
        std::cout << std::endl;
    }
}

void tune_cache(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus) {
    const List flatness = list_or(o.cache_flatness, {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1}),
               weight = list_or(o.cache_weight, {0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4});
    const ig::Index window = window_of(o.cache_window, corpus);
    Progress progress("cache");
    const auto trials = evaluate_neural_cache(*it.g, it.model.nll, it.g->hidden(it.model.o), it.model.x,
                                              it.model.y, in_order(corpus, it.vocabulary, it.options.bptt),
                                              window, flatness, weight, [&](ig::Index done, ig::Index all) {
                                                  progress.update(done, all, [] { return std::string(); });
                                                  return true;
                                              });
    progress.clear();
    std::cout << "cache       window " << grouped(window)
              << ", one column in order, a line end fed first; perplexities by flatness (rows) and weight"
              << std::endl;
    print_table("flatness", flatness, weight, [&](std::size_t i, std::size_t j) {
        return fixed(trials.all()[i * weight.size() + j].perplexity.value(), 2);
    });
    const auto& best = trials.best();
    std::cout << "best        --cache --cache-window " << window << " --cache-flatness "
              << exact(best.flatness) << " --cache-weight " << exact(best.weight) << ": perplexity "
              << fixed(best.perplexity.value(), 2) << std::endl;
}

void tune_dynamic(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus) {
    auto options = dynamic_defaults(o.dynamic);
    const List rates = list_or(o.dynamic_rate,
                               {options.rate / 4, options.rate / 2, options.rate, 2 * options.rate}),
               decays = list_or(o.dynamic_decay, {options.decay});
    const ig::Index steps = o.dynamic_steps.value_or(5);
    ig::DynamicUpdate<float> update(it.g->parameters(), options);
    if (o.dynamic == "rms") std::cout << collect(it, o.dynamic_text, steps, update) << std::endl;
    std::cout << "dynamic     " << o.dynamic << ", segments of " << counted(steps, "step")
              << ", one column in order, a line end fed first; perplexities by rate (rows) and decay"
              << std::endl;
    double best = 0;
    std::string setting;
    print_table("rate", rates, decays, [&](std::size_t i, std::size_t j) {
        auto batches = in_order(corpus, it.vocabulary, steps);
        const ig::Index count = batches.count();
        Progress progress("dynamic");
        update.rate(rates[i]);
        update.decay(decays[j]);
        const auto p =
            evaluate_dynamically(*it.g, it.model.nll, it.model.x, it.model.y, std::move(batches), update,
                                 [&](const ig::text::Batch& batch) {
                                     progress.update(batch.index + 1, count, [] { return std::string(); });
                                     return true;
                                 });
        progress.clear();
        if (setting.empty() || p.value() < best) {
            best = p.value();
            setting = ig::message("--dynamic-rate ", exact(rates[i]), " --dynamic-decay ", exact(decays[j]));
        }
        return fixed(p.value(), 2);
    });
    std::cout << "best        --dynamic " << o.dynamic << " " << setting << " --dynamic-steps " << steps
              << ": perplexity " << fixed(best, 2) << std::endl;
}

}  // namespace

int tune(const TuneOptions& o) {
    ig::threads(o.threads);
    const bool dynamic = !o.dynamic.empty();
    for (const auto* list : {&o.cache_flatness, &o.cache_weight})
        if (dynamic && !list->empty())
            throw ig::UsageError(
                "--dynamic is tuned without the cache; leave out --cache-flatness and --cache-weight");
    if (dynamic && o.cache_window)
        throw ig::UsageError("--dynamic is tuned without the cache; leave out --cache-window");
    require_dynamic(o);
    auto it = load_adaptable(o);
    const auto corpus = ig::text::Corpus::read(o.text, it.vocabulary);
    std::cout << "text        " << describe(corpus, o.text) << std::endl;
    if (dynamic) tune_dynamic(o, it, corpus);
    else tune_cache(o, it, corpus);
    return 0;
}

}  // namespace lm
