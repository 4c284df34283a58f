/// @file compare.cpp  Where the predictions of two models differ.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../shared/outputs.hpp"
#include "../shared/threads.hpp"
#include "comparison.hpp"
#include "likeliest.hpp"
#include "model_file.hpp"
#include "print.hpp"
#include "progress.hpp"
#include "texts.hpp"

namespace lm {

namespace {

using Distribution = std::span<const float>;

/// The k words nearest to each word by angle, excluding <unk> and line ends: [V, k].
std::vector<ig::Token> neighbour_lists(LoadedModel& it, const std::vector<bool>& wanted, ig::Index k) {
    const auto E = it.g->parameter("E").values();
    std::vector<float> unit(static_cast<std::size_t>(E.rows * E.cols));
    for (ig::Index v = 0; v < E.rows; ++v) {
        const double norm = std::sqrt(ig::kernel::sum_of_squares(E.cols, E.row(v)));
        for (ig::Index i = 0; i < E.cols; ++i)
            unit[std::size_t(v * E.cols + i)] = norm > 0 ? static_cast<float>(E.row(v)[i] / norm) : 0.0f;
    }
    std::vector<ig::Token> lists(static_cast<std::size_t>(E.rows * k), 0), order;
    std::vector<float> cosines(static_cast<std::size_t>(64 * E.rows));
    const ig::MatrixRef<const float> table(unit.data(), E.rows, E.cols);
    for (ig::Index first = 0; first < E.rows; first += 64) {
        const ig::Index some = std::min<ig::Index>(64, E.rows - first);
        ig::gemm<float>(1.f, {unit.data() + first * E.cols, some, E.cols}, t(table), 0.f,
                        {cosines.data(), some, E.rows});
        for (ig::Index r = 0; r < some; ++r) {
            if (!wanted[std::size_t(first + r)]) continue;
            const float* row = cosines.data() + r * E.rows;
            order.clear();
            for (ig::Token v = 0; v < E.rows; ++v)
                if (v != first + r && !(it.vocabulary.has_unk() && v == it.vocabulary.unk()) &&
                    !(it.vocabulary.has_eos() && v == it.vocabulary.eos()))
                    order.push_back(v);
            std::partial_sort(order.begin(), order.begin() + k, order.end(), [row](ig::Token a, ig::Token b) {
                return row[a] != row[b] ? row[a] > row[b] : a < b;
            });
            std::copy_n(order.begin(), k, lists.begin() + (first + r) * k);
        }
    }
    return lists;
}

std::vector<std::pair<ig::Token, float>> with_probabilities(Distribution p, ig::Index k) {
    std::vector<std::pair<ig::Token, float>> list;
    for (const ig::Token v : likeliest(p, k)) list.emplace_back(v, p[static_cast<std::size_t>(v)]);
    return list;
}

/// The options with their defaults for a vocabulary. Throws for one out of range.
CompareOptions settled(CompareOptions o, const ig::text::Vocabulary& vocabulary) {
    const ig::Index words = vocabulary.size() - vocabulary.has_unk() - vocabulary.has_eos();
    if (words < 2)
        throw ig::DataError(ig::message("compare: found ", words,
                                        " words in the vocabulary beside <unk> and line ends, expected at "
                                        "least 2: a word and a neighbour"));
    for (const auto& [name, value] :
         {std::pair("--neighbours", &o.neighbours), std::pair("--frequent", &o.frequent),
          std::pair("--likeliest", &o.likeliest)}) {
        if (!*value) *value = std::min<ig::Index>(10, words - 1);
        ig::require("compare", name, **value, 1, words - 1);
    }
    ig::require("compare", "--show", o.show, 0);
    ig::require("compare", "--context", o.context, 1);
    return o;
}

/// Runs both models over the text together.
class Comparer {
public:
    /// For settled options, which must outlive this, and two models of one vocabulary, in at most `columns` columns.
    Comparer(const CompareOptions& o, LoadedModel first, LoadedModel second, ig::Index columns)
        : o_(o), columns_(columns), models_{std::move(first), std::move(second)} {
        const auto& a = models_[0].vocabulary;
        const ig::Index V = a.size();
        for (ig::Token v = 0; v < V; ++v)
            if (!is_special(v)) frequent_.push_back(v);
        std::ranges::stable_sort(frequent_, std::ranges::greater(), [&](ig::Token v) { return a.count(v); });
        frequent_.resize(std::min(frequent_.size(), static_cast<std::size_t>(*o.frequent)));
        is_frequent_.resize(static_cast<std::size_t>(V));
        for (const ig::Token v : frequent_) is_frequent_[std::size_t(v)] = true;
        for (const auto& word : o.words) {
            const auto token = a.find(word);
            if (!token)
                throw ig::DataError(ig::message(ig::in_quotes(word), " is not among the ", grouped(V),
                                                " types of the models; check its spelling and case"));
            found_.words.emplace_back(*token, Mean{});
        }
    }

    /// Compares the predictions of a text, which must outlive the result.
    const Comparison& run(const ig::text::Corpus& corpus) {
        const auto& vocabulary = models_[0].vocabulary;
        found_.vocabulary = &vocabulary;
        found_.text = corpus.tokens();
        std::vector<bool> wanted(static_cast<std::size_t>(vocabulary.size()));
        for (const ig::Token v : found_.text) wanted[std::size_t(v)] = true;
        for (std::size_t k = 0; k < 2; ++k) lists_[k] = neighbour_lists(models_[k], wanted, *o_.neighbours);

        const ig::Index T = std::min(models_[0].g->capacity().time, models_[1].g->capacity().time),
                        V = vocabulary.size();
        auto batches =
            corpus.batches({T, columns_}, {.tail = ig::text::Tail::pad, .predict_first = vocabulary.eos()});
        std::array<std::vector<float>, 2> p;
        for (auto& block : p) block.resize(static_cast<std::size_t>(64 * V));
        Progress progress("comparison");
        for (const auto& batch : batches) {
            for (auto& it : models_) {
                if (batch.first) it.g->reset();
                it.g->forward(it.model.nll, {it.model.x, batch.input}, {it.model.y, batch.target});
            }
            for (ig::Index first = 0; first < batch.target.size(); first += 64) {
                const ig::Index some = std::min<ig::Index>(64, batch.target.size() - first);
                for (std::size_t k = 0; k < 2; ++k)
                    models_[k].g->head(models_[k].model.o).probabilities(first, {p[k].data(), some, V});
                for (ig::Index r = 0; r < some; ++r) {
                    if (batch.target.data[first + r] == ig::not_predicted) continue;
                    const ig::Index t = (first + r) / columns_, b = (first + r) % columns_;
                    const auto row = [&](std::size_t k) {
                        return Distribution(p[k]).subspan(static_cast<std::size_t>(r * V),
                                                          static_cast<std::size_t>(V));
                    };
                    // Not the logarithm of a float probability, which may have underflowed to 0.
                    const auto log_p = [&](std::size_t k) {
                        return -models_[k]
                                    .g->result(models_[k].model.nll)
                                    .by_token()(std::size_t(t), std::size_t(b));
                    };
                    position(b * batches.length() + batch.index * T + t, row(0), row(1), log_p(0), log_p(1));
                }
            }
            progress.update(batch.index + 1, batches.count(), [] { return std::string(); });
        }
        progress.clear();
        std::sort(found_.positions.begin(), found_.positions.end(),
                  [](const ComparedPosition& a, const ComparedPosition& b) { return a.at < b.at; });
        return found_;
    }

private:
    bool is_unk(ig::Token v) const {
        return models_[0].vocabulary.has_unk() && v == models_[0].vocabulary.unk();
    }
    bool is_special(ig::Token v) const {
        return is_unk(v) || (models_[0].vocabulary.has_eos() && v == models_[0].vocabulary.eos());
    }

    void position(ig::Index at, Distribution a, Distribution b, double la, double lb) {
        const ig::Token target = found_.text[std::size_t(at)];
        const auto y = static_cast<std::size_t>(target);
        const auto sum = [](Distribution p, std::span<const ig::Token> words) {
            double total = 0;
            for (const ig::Token v : words) total += double(p[std::size_t(v)]);
            return total;
        };
        found_.log_p.add(la, lb);
        found_.target.add(double(a[y]), double(b[y]));
        ComparedPosition row{at, {la, lb, 0, 0, 0, 0, 0, 0}};
        if (models_[0].vocabulary.has_unk()) {
            const auto u = static_cast<std::size_t>(models_[0].vocabulary.unk());
            row.values[2] = double(a[u]);
            row.values[3] = double(b[u]);
            if (!is_unk(target)) found_.unknown.add(row.values[2], row.values[3]);
        }
        if (!is_special(target)) {
            for (std::size_t k = 0; k < 2; ++k) {
                const auto n = static_cast<std::size_t>(*o_.neighbours);
                const auto list = std::span(lists_[k]).subspan(y * n, n);
                found_.neighbours[k].add(sum(a, list), sum(b, list));
                if (k == 1) row.values[4] = sum(a, list), row.values[5] = sum(b, list);
            }
            if (lb > la)
                show(found_.gains, {lb - la, at, {}}, a, b, [](double x, double than) { return x > than; });
            if (lb < la)
                show(found_.losses, {lb - la, at, {}}, a, b, [](double x, double than) { return x < than; });
        }
        row.values[6] = sum(a, frequent_);
        row.values[7] = sum(b, frequent_);
        if (!is_frequent_[y]) found_.frequent.add(row.values[6], row.values[7]);
        for (auto& [token, mean] : found_.words)
            if (token != target) mean.add(double(a[std::size_t(token)]), double(b[std::size_t(token)]));
        if (!o_.csv.empty()) found_.positions.push_back(row);
    }

    /// Keeps the `show` positions that differ most, in order; at most one for each word.
    template <class Better>
    void show(std::vector<Shown>& list, Shown s, Distribution a, Distribution b, Better better) const {
        const auto same = std::find_if(list.begin(), list.end(), [&](const Shown& x) {
            return found_.text[std::size_t(x.at)] == found_.text[std::size_t(s.at)];
        });
        if (same != list.end()) {
            if (!better(s.gain, same->gain)) return;
            list.erase(same);
        }
        const auto place =
            std::find_if(list.begin(), list.end(), [&](const Shown& x) { return better(s.gain, x.gain); });
        if (place - list.begin() >= o_.show) return;
        s.likeliest = {with_probabilities(a, *o_.likeliest), with_probabilities(b, *o_.likeliest)};
        list.insert(place, std::move(s));
        if (std::ssize(list) > o_.show) list.pop_back();
    }

    const CompareOptions& o_;
    ig::Index columns_;
    std::array<LoadedModel, 2> models_;
    std::array<std::vector<ig::Token>, 2> lists_;
    std::vector<ig::Token> frequent_;
    std::vector<bool> is_frequent_;
    Comparison found_;
};

}  // namespace

int compare(const CompareOptions& given) {
    files::Outputs()
        .read("--model", given.model)
        .read("--against", given.against)
        .read("--text", given.text == "-" ? "" : given.text)
        .write("--csv", given.csv, files::table("table of `language_model compare`", comparison_header))
        .check();
    program::use_threads("compare", given.threads);
    auto first = read_model(given.model), second = read_model(given.against);
    require_same_vocabulary("compare", first.vocabulary, second.vocabulary);
    const CompareOptions o = settled(given, first.vocabulary);
    const auto corpus = read_text(o.text, first.vocabulary);
    const ig::Index steps = std::min(first.options.bptt, second.options.bptt);
    const Extent size = extent_of(corpus.size(), o.columns, steps);
    Comparer comparer(o, build_model(std::move(first), size), build_model(std::move(second), size),
                      size.columns);
    std::cout << "text        " << describe(corpus, o.text) << std::endl;
    const Comparison& found = comparer.run(corpus);
    print(o, found);
    if (!o.csv.empty()) write(o.csv, found);
    return 0;
}

}  // namespace lm
