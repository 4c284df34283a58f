/// @file evaluate.cpp  Perplexity of a text.
#include <iostream>
#include <optional>

#include "adaptation.hpp"
#include "commands.hpp"

namespace lm {

namespace {

// With a cache, dynamic evaluation, or both, in one column.
int evaluate_adaptively(const EvaluateOptions& o, LoadedModel& it, const ig::text::Corpus& corpus) {
    Graph& g = *it.g;
    const Model& m = it.model;
    const ig::NeuralCacheOptions defaults, cache{.window = window_of(o.cache_window, corpus),
                                                 .flatness = o.cache_flatness.value_or(defaults.flatness),
                                                 .weight = o.cache_weight.value_or(defaults.weight)};
    require_neural_cache(cache);
    const std::vector<double> flatness = {cache.flatness},
                              weights = {0, cache.weight};  // without it, and with it
    const auto h = g.hidden(m.o);
    if (o.cache)
        std::cout << "cache       window " << grouped(cache.window) << ", flatness " << exact(cache.flatness)
                  << ", weight " << exact(cache.weight) << ": every word joins it after it was predicted"
                  << std::endl;
    const ig::Index steps = o.dynamic.empty() ? it.options.bptt : o.dynamic_steps.value_or(5);
    auto batches = in_order(corpus, it.vocabulary, steps);
    Progress progress("evaluation");
    const auto go_on = [&](ig::Index done, ig::Index all) {
        progress.update(done, all, [] { return std::string(); });
        return true;
    };
    std::optional<ig::NeuralCacheTrials<float>> trials;
    ig::Perplexity p;
    if (o.dynamic.empty()) {
        trials = evaluate_neural_cache(g, m.nll, h, m.x, m.y, std::move(batches), cache.window, flatness,
                                       weights, go_on);
    } else {
        auto dynamic = dynamic_defaults(o.dynamic);
        dynamic.rate = o.dynamic_rate.value_or(dynamic.rate);
        dynamic.decay = o.dynamic_decay.value_or(dynamic.decay);
        if (o.cache) trials.emplace(h.width, cache.window, flatness, weights);
        ig::DynamicUpdate<float> update(g.parameters(), dynamic);
        std::cout << describe(dynamic, steps) << std::endl;
        if (o.dynamic == "rms") std::cout << collect(it, o.dynamic_text, steps, update) << std::endl;
        p = evaluate_dynamically(g, m.nll, m.x, m.y, batches, update, [&](const ig::text::Batch& batch) {
            if (trials) trials->add(g, m.nll, h, batch.target);
            return go_on(batch.index + 1, batches.count());
        });
    }
    progress.clear();
    if (trials) p = trials->all().back().perplexity;
    count_characters(p, it.vocabulary);
    std::cout << describe(p, corpus, it.vocabulary, 1);
    if (trials)
        std::cout << "\n    with the cache; without it perplexity "
                  << fixed(trials->all().front().perplexity.value(), 2);
    std::cout << std::endl;
    return 0;
}

}  // namespace

int evaluate(const EvaluateOptions& o) {
    ig::threads(o.threads);
    require_with(o.cache, "--cache", "--cache-window", o.cache_window);
    require_with(o.cache, "--cache", "--cache-flatness", o.cache_flatness);
    require_with(o.cache, "--cache", "--cache-weight", o.cache_weight);
    require_dynamic(o);
    const bool adaptive = o.cache || !o.dynamic.empty();
    if (adaptive && o.columns != 1)
        throw ig::UsageError(
            ig::message("--columns is ", o.columns, ", expected 1 with ", o.cache ? "--cache" : "--dynamic",
                        ": what a word adapts the model to is the text right before the next"));
    auto it = adaptive ? load_adaptable(o) : load_model(o.model, o.columns);
    const auto corpus = ig::text::Corpus::read(o.text, it.vocabulary);
    std::cout << "text        " << describe(corpus, o.text) << "\nunigram     perplexity "
              << fixed(unigram_perplexity(it.vocabulary, corpus), 2) << ", for comparison" << std::endl;
    if (adaptive) return evaluate_adaptively(o, it, corpus);
    Progress progress("evaluation");
    const auto p = measure(*it.g, it.model, corpus, it.vocabulary, o.columns, it.g->capacity().time,
                           [&](ig::Index done, ig::Index all) {
                               progress.update(done, all, [] { return std::string(); });
                               return true;
                           });
    progress.clear();
    std::cout << describe(*p, corpus, it.vocabulary, o.columns) << std::endl;
    return 0;
}

}  // namespace lm
