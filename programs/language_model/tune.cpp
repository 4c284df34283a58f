/// @file tune.cpp  The best cache, dynamic evaluation or temperature on a validation text.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../shared/threads.hpp"
#include "adaptation.hpp"
#include "commands.hpp"
#include "predictions.hpp"
#include "report.hpp"

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

// A perplexity for people and for programs: "inf" and null where it is not finite.
std::string in_words(double perplexity) { return std::isfinite(perplexity) ? fixed(perplexity, 2) : "inf"; }
Json in_json(double perplexity) { return std::isfinite(perplexity) ? Json(perplexity) : Json(); }

// The smallest of some perplexities, of which those that are not finite were explained by `error`. Throws NumericError if all are.
std::size_t best_of(const List& perplexities, const std::string& error) {
    const auto best = std::min_element(perplexities.begin(), perplexities.end());
    if (std::isfinite(*best)) return static_cast<std::size_t>(best - perplexities.begin());
    throw ig::NumericError("tune: no perplexity is finite with any of these options",
                           error.empty() ? "" : "; with the last, ", error);
}

// A part of a table: rows from a and columns from c, without row b and column d.
struct Part {
    std::size_t a, b, c, d;
};

// Fills a part of a table of `columns` columns with what pass(part) returns, row by row. Where that throws
// NumericError, because some cell has no finite value, each half is filled by itself, and such a cell keeps its
// value; `error` becomes the message.
template <class Pass>
void fill_part(List& table, std::size_t columns, const Part& part, std::string& error, Pass&& pass) {
    try {
        const List found = pass(part);
        auto next = found.begin();
        for (std::size_t i = part.a; i < part.b; ++i)
            for (std::size_t j = part.c; j < part.d; ++j) table[i * columns + j] = *next++;
    } catch (const ig::NumericError& e) {
        Part one = part, other = part;
        if (part.d - part.c > 1) one.d = other.c = (part.c + part.d) / 2;
        else one.b = other.a = (part.a + part.b) / 2;
        error = e.text();
        if (one.a == one.b) return;  // it was a single cell
        fill_part(table, columns, one, error, pass);
        fill_part(table, columns, other, error, pass);
    }
}

// Reports the best options and their perplexity.
void report_best(Report& report, const std::string& options, double perplexity) {
    report.line(ig::message("best        ", options, ": perplexity ", fixed(perplexity, 2)));
    report.values["best"] = {{"options", options}, {"perplexity", perplexity}};
}

// An option of which several values were tried, and the one of the best result.
struct Tried {
    std::string option;
    List values;
    double best;
    double most = std::numeric_limits<double>::infinity();  // the limit of its range, which begins at 0
    bool whole = false;                                     // its values are whole numbers
};

// Three decimal digits of a number, as a person would give it.
double rounded(double x) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << std::setprecision(3) << x;
    return std::stod(out.str());
}

// Values to try at and beyond the edge of those tried; none if the best is not at an edge, or that is the limit of
// the range.
List beyond(const Tried& it) {
    const auto [low, high] = std::ranges::minmax(it.values);
    if (low == high) return {};
    List next;
    if (it.best == high && high < it.most) {
        next = {high};
        for (const double factor : {1.5, 2., 3.})
            if (const double x = rounded(factor * high); x < it.most) next.push_back(x);
        if (next.size() == 1) next.push_back(rounded((high + it.most) / 2));
    } else if (it.best == low && low > (it.whole ? 1 : 0)) {
        next = {rounded(low / 4), rounded(low / 2), low};
    }
    if (it.whole) {
        for (double& x : next) x = std::max(1., std::round(x));
        next.erase(std::unique(next.begin(), next.end()), next.end());
    }
    return next;
}

Json number(double x, bool whole) { return whole ? Json(static_cast<ig::Index>(x)) : Json(x); }

// Says of which options the best value is the largest or the smallest that was tried, and what to try.
void report_edges(Report& report, const std::vector<Tried>& options) {
    std::string which, what;
    report.values["edge"] = Json::array();
    for (const auto& it : options) {
        const List next = beyond(it);
        if (next.empty()) continue;
        which += ig::message(which.empty() ? "the " : " and the ",
                             it.best == next.front() ? "largest " : "smallest ", it.option);
        what += ig::message(' ', it.option);
        Json to_try = Json::array();
        for (const double x : next) {
            what += it.whole ? ig::message(' ', static_cast<ig::Index>(x)) : ig::message(' ', exact(x));
            to_try.push_back(number(x, it.whole));
        }
        report.values["edge"].push_back(
            {{"option", it.option}, {"value", number(it.best, it.whole)}, {"try", to_try}});
    }
    if (!which.empty())
        report.line(ig::message("edge        the best has ", which,
                                " of those tried, and a better one may lie beyond; try", what));
}

// The grid of a cache of one window: as requested or by default.
struct CacheGrid {
    List flatness, weight;
    ig::Index window;

    CacheGrid(const TuneOptions& o, ig::Index steps)
        : flatness(list_or(o.cache_flatness, {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1})),
          weight(list_or(o.cache_weight, {0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4})),
          // The text to be evaluated later may be longer than this one, and fill more of the window.
          window(steps) {}

    static std::vector<ig::Index> windows(const TuneOptions& o) {
        if (!o.cache_window.empty()) return o.cache_window;
        return {ig::NeuralCacheOptions().window};
    }

    std::string options(std::size_t cell) const {
        return ig::message("--cache --cache-window ", window, " --cache-flatness ", exact(flatness_of(cell)),
                           " --cache-weight ", exact(weight_of(cell)));
    }
    double flatness_of(std::size_t cell) const { return flatness[cell / weight.size()]; }
    double weight_of(std::size_t cell) const { return weight[cell % weight.size()]; }
    std::vector<Tried> tried(std::size_t best) const {
        std::vector<Tried> all = {{"--cache-weight", weight, weight_of(best), 1}};
        if (weight_of(best) > 0)  // without the cache any flatness is as good
            all.insert(all.begin(), {"--cache-flatness", flatness, flatness_of(best)});
        return all;
    }
};

// The perplexities of all caches of a grid, also reported; `error` explains those that are not finite.
List try_caches(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, const CacheGrid& grid,
                std::string& error, Report& report) {
    const List &flatness = grid.flatness, &weight = grid.weight;
    const std::size_t columns = weight.size();
    List table(flatness.size() * columns, std::numeric_limits<double>::infinity());
    const auto some = [](const List& of, std::size_t first, std::size_t last) {
        return List(of.begin() + static_cast<std::ptrdiff_t>(first),
                    of.begin() + static_cast<std::ptrdiff_t>(last));
    };
    fill_part(table, columns, {0, flatness.size(), 0, columns}, error, [&](const Part& part) {
        Progress progress("cache", !o.json);
        const auto trials = evaluate_neural_cache(
            *it.g, it.model.nll, it.g->head(it.model.o).hidden(), it.model.x, it.model.y,
            in_order(corpus, it.vocabulary, it.g->capacity().time), window_of(grid.window, corpus),
            some(flatness, part.a, part.b), some(weight, part.c, part.d), [&](ig::Index done, ig::Index all) {
                progress.update(done, all, [] { return std::string(); });
                return true;
            });
        List found;
        for (const auto& trial : trials.all()) found.push_back(trial.perplexity.value());
        return found;
    });
    report.line(ig::message(
        "cache       window ", grouped(grid.window),
        ", one column in order, a line end fed first; perplexities by flatness (rows) and weight"));
    if (!o.json)
        print_table("flatness", flatness, weight,
                    [&](std::size_t i, std::size_t j) { return in_words(table[i * columns + j]); });
    for (std::size_t k = 0; k < table.size(); ++k)
        report.values["trials"].push_back({{"window", grid.window},
                                           {"flatness", grid.flatness_of(k)},
                                           {"weight", grid.weight_of(k)},
                                           {"perplexity", in_json(table[k])}});
    return table;
}

void tune_cache(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, Report& report) {
    std::vector<CacheGrid> grids;
    List all, windows;
    std::string error;
    for (const ig::Index window : CacheGrid::windows(o)) {
        grids.emplace_back(o, window);
        windows.push_back(static_cast<double>(window));
        const List table = try_caches(o, it, corpus, grids.back(), error, report);
        all.insert(all.end(), table.begin(), table.end());
    }
    const std::size_t best = best_of(all, error), cells = all.size() / grids.size(), cell = best % cells;
    const CacheGrid& grid = grids[best / cells];
    report_best(report, grid.options(cell), all[best]);
    std::vector<Tried> tried = grid.tried(cell);
    if (grid.weight_of(cell) > 0) {  // windows of the whole text are one
        const auto text = static_cast<double>(std::max<ig::Index>(1, corpus.size()));
        for (double& window : windows) window = std::min(window, text);
        tried.insert(tried.begin(), {.option = "--cache-window",
                                     .values = windows,
                                     .best = windows[best / cells],
                                     .most = text,
                                     .whole = true});
    }
    report_edges(report, tried);
}

// `cached`: with a cache too, whose grid is computed in each pass; a rate and decay count by its best.
void tune_dynamic(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus,
                  const std::optional<StatisticsText>& statistics, bool cached, Report& report) {
    Adaptation update(*it.g, o.dynamic, o.dynamic_table_rate);
    const double rate = update.rate();
    const List rates = list_or(o.dynamic_rate, {rate / 4, rate / 2, rate, 2 * rate}),
               decays = list_or(o.dynamic_decay, {update.decay()});
    const ig::Index steps = it.g->capacity().time;
    if (statistics) report.line(collect(it, *statistics, steps, update, !o.json));
    std::optional<CacheGrid> grid;
    if (cached) grid.emplace(o, CacheGrid::windows(o).front());
    const auto h = it.g->head(it.model.o).hidden();
    report.line(ig::message("dynamic     ", o.dynamic, ", segments of ", counted(steps, "step"),
                            ", one column in order, a line end fed first; perplexities",
                            grid ? ig::message(" with the best cache of window ", grouped(grid->window)) : "",
                            " by rate (rows) and decay"));
    List table;
    std::vector<std::size_t> caches;  // the best for each of the table
    std::string error;
    const auto run = [&](std::size_t i, std::size_t j) {
        auto batches = in_order(corpus, it.vocabulary, steps);
        const ig::Index count = batches.count();
        Progress progress("dynamic", !o.json);
        update.rate(rates[i]);
        update.decay(decays[j]);
        double p = std::numeric_limits<double>::infinity();
        std::size_t cell = 0;
        std::optional<ig::NeuralCacheTrials<float>> trials;
        if (grid) trials.emplace(h.width, window_of(grid->window, corpus), grid->flatness, grid->weight);
        try {
            p = evaluate_dynamically(*it.g, it.model.nll, it.model.x, it.model.y, std::move(batches), update,
                                     [&](const ig::text::Batch& batch) {
                                         if (trials) trials->add(*it.g, it.model.nll, h, batch.target);
                                         progress.update(batch.index + 1, count,
                                                         [] { return std::string(); });
                                         return true;
                                     })
                    .value();
            if (trials) {
                p = trials->best().perplexity.value();
                cell = static_cast<std::size_t>(&trials->best() - trials->all().data());
            }
        } catch (const ig::NumericError& e) {  // a rate that is too large: the next may not be
            error = e.text();
        }
        table.push_back(p);
        caches.push_back(cell);
        report.values["trials"].push_back(
            {{"rate", rates[i]}, {"decay", decays[j]}, {"steps", steps}, {"perplexity", in_json(p)}});
        if (grid && std::isfinite(p)) {
            report.values["trials"].back()["flatness"] = grid->flatness_of(cell);
            report.values["trials"].back()["weight"] = grid->weight_of(cell);
        }
        return in_words(p);
    };
    if (o.json) {
        for (std::size_t i = 0; i < rates.size(); ++i)
            for (std::size_t j = 0; j < decays.size(); ++j) run(i, j);
    } else {
        print_table("rate", rates, decays, run);
    }
    const std::size_t best = best_of(table, error);
    std::string options =
        ig::message("--dynamic ", o.dynamic, " --dynamic-rate ", exact(rates[best / decays.size()]),
                    " --dynamic-decay ", exact(decays[best % decays.size()]), " --dynamic-steps ", steps);
    if (o.dynamic_table_rate) options += " --dynamic-table-rate " + exact(*o.dynamic_table_rate);
    if (statistics) options += " --dynamic-text " + shell_word(o.dynamic_text);
    std::vector<Tried> tried = {{"--dynamic-rate", rates, rates[best / decays.size()]},
                                {"--dynamic-decay", decays, decays[best % decays.size()], 1}};
    if (grid) {
        options = grid->options(caches[best]) + " " + options;
        for (Tried& option : grid->tried(caches[best])) tried.push_back(std::move(option));
    }
    report_best(report, options, table[best]);
    report_edges(report, tried);
}

void tune_softmax(const TuneOptions& o, LoadedModel& it, const ig::text::Corpus& corpus, ig::Index columns,
                  Report& report) {
    Progress progress("pass", !o.json);
    report.line(ig::message("softmax     by Newton's method, in ", counted(columns, "column"),
                            ", a line end fed first"));
    const Tempered best = tune_temperature(
        it, corpus, columns,
        [&](double temperature, double nats) {
            progress.clear();
            report.line(ig::message("            temperature ", fixed(temperature, 4), ": perplexity ",
                                    fixed(std::exp(nats), 2)));
            report.values["trials"].push_back(
                {{"softmax_temperature", temperature}, {"perplexity", std::exp(nats)}});
        },
        [&](ig::Index done, ig::Index all) {
            progress.update(done, all, [] { return std::string(); });
            return true;
        });
    progress.clear();
    report_best(report,
                ig::message("--softmax-temperature ", exact(best.temperature), " --columns ", o.columns),
                std::exp(best.nats));
}

}  // namespace

int tune(const TuneOptions& o) {
    program::use_threads("tune", o.threads);
    const bool dynamic = !o.dynamic.empty(), tempered = o.softmax_temperature;
    const bool cache = !(o.cache_window.empty() && o.cache_flatness.empty() && o.cache_weight.empty());
    require_dynamic(o);
    require_adaptation(o);
    require_columns(o.columns);
    require_not_adaptive(tempered, cache, dynamic);
    if (!tempered && o.columns != 1)
        throw ig::UsageError(
            ig::message("--columns is ", o.columns, ", expected 1 with ", dynamic ? "--dynamic" : "the cache",
                        ": what a word adapts the model to is the text right before the next"));
    if (dynamic && std::ranges::count(o.cache_weight, 1.))
        throw ig::UsageError(
            "--cache-weight is 1, expected a number below 1 with --dynamic: a word that the window does not ",
            "hold would have probability 0, and no rate a finite perplexity");
    if (dynamic && o.cache_window.size() > 1)
        throw ig::UsageError("--cache-window has ", o.cache_window.size(),
                             " values, expected one with --dynamic, whose passes take long");
    for (const double flatness : o.cache_flatness)  // alone it would be one cell without a perplexity
        if (dynamic && flatness > std::numeric_limits<float>::max())
            throw ig::UsageError("--cache-flatness is ", flatness, ", expected at most ",
                                 std::numeric_limits<float>::max(),
                                 " with --dynamic: above it no rate would have a finite perplexity");
    auto file = read_model(o.model);
    const auto corpus = read_text(o.text, file.vocabulary);
    const Extent size = extent_of(corpus.size(), o.columns,
                                  dynamic ? segment_of(o.dynamic_steps, corpus) : file.options.bptt);
    const auto statistics = statistics_of(o, size.steps, file.vocabulary);
    auto it = build_model(std::move(file), {statistics ? statistics->columns : size.columns, size.steps}, {},
                          dynamic);
    Report report(o.json);
    report.line("text        " + describe(corpus, o.text));
    report.values["text"] = counts_of(corpus);
    report.values["trials"] = Json::array();
    if (tempered) tune_softmax(o, it, corpus, size.columns, report);
    else if (dynamic) tune_dynamic(o, it, corpus, statistics, cache, report);
    else tune_cache(o, it, corpus, report);
    report.finish();
    return 0;
}

}  // namespace lm
