/// @file score.cpp  Log probabilities of lines.
#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "model_file.hpp"
#include "print.hpp"

namespace lm {

namespace {

/// A line and what the model thinks of it.
struct Line {
    std::string text;
    std::vector<ig::Token> tokens;  ///< line end included
    ig::Index unknowns = 0;
    double log_probability = 0;  ///< nats, the line end included
    double mean() const { return log_probability / static_cast<double>(tokens.size()); }
};

/// Scores lines that run side by side, each from a fresh state with a line end fed first. Those that end
/// early are padded with positions that are not predicted.
void score_group(LoadedModel& it, const std::vector<Line*>& lines) {
    const auto B = static_cast<ig::Index>(lines.size()), T = it.g->capacity().time;
    std::size_t longest = 0;
    for (const Line* line : lines) longest = std::max(longest, line->tokens.size());
    std::vector<ig::Token> input, target;
    it.g->reset();
    for (std::size_t from = 0; from < longest; from += static_cast<std::size_t>(T)) {
        const std::size_t to = std::min(longest, from + static_cast<std::size_t>(T));
        input.clear();
        target.clear();
        for (std::size_t t = from; t < to; ++t)
            for (const Line* line : lines) {
                const bool inside = t < line->tokens.size();
                input.push_back(t == 0 || !inside ? it.vocabulary.eos() : line->tokens[t - 1]);
                target.push_back(inside ? line->tokens[t] : ig::not_predicted);
            }
        const auto steps = static_cast<ig::Index>(to - from);
        it.g->forward(it.model.nll, {it.model.x, ig::TokenBlock{input.data(), steps, B}},
                      {it.model.y, ig::TokenBlock{target.data(), steps, B}});
        const auto nats = it.g->by_token(it.model.nll);  // [T, B]
        for (ig::Index t = 0; t < steps; ++t)
            for (ig::Index b = 0; b < B; ++b)
                lines[static_cast<std::size_t>(b)]->log_probability -=
                    nats(static_cast<std::size_t>(t), static_cast<std::size_t>(b));
    }
}

/// Lines of similar length run side by side, so that little is padded.
void score_all(LoadedModel& it, std::vector<Line>& lines) {
    std::vector<Line*> order;
    order.reserve(lines.size());
    for (Line& line : lines) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(),
                     [](const Line* a, const Line* b) { return a->tokens.size() < b->tokens.size(); });
    const auto B = static_cast<std::size_t>(it.g->capacity().batch);
    for (std::size_t i = 0; i < order.size(); i += B)
        score_group(it, {order.begin() + static_cast<std::ptrdiff_t>(i),
                         order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), i + B))});
}

/// Writes the lines, and before the first of them, to stderr, what the columns are.
void print(const std::vector<Line>& lines, bool& titled) {
    if (!std::exchange(titled, true))
        std::cerr
            << "columns: log probability (nats, base e, the line end included), the same per token, tokens "
               "(line end included), <unk> among them, line\n";
    for (const Line& line : lines)
        std::cout << fixed(line.log_probability, 4) << '\t' << fixed(line.mean(), 4) << '\t'
                  << line.tokens.size() << '\t' << line.unknowns << '\t' << line.text << '\n';
    std::cout.flush();
}

}  // namespace

int score(const ScoreOptions& o) {
    ig::threads(o.threads);
    auto it = load_model(o.model, o.batch);
    auto reader =
        o.text == "-" ? ig::file::LineReader(std::cin, "standard input") : ig::file::LineReader(o.text);
    // Without sorting, what was read is written a window at a time, so that any input will do.
    const std::size_t window =
        o.sort.empty() ? static_cast<std::size_t>(64 * o.batch) : std::numeric_limits<std::size_t>::max();
    std::vector<Line> lines;
    bool titled = false;
    for (std::string_view text; reader.next(text);) {
        Line& line = lines.emplace_back();
        line.text = text;
        line.unknowns = it.vocabulary.encode_checked(text, line.tokens, {reader.name(), reader.line()});
        if (lines.size() < window) continue;
        score_all(it, lines);
        print(lines, titled);
        lines.clear();
    }
    if (reader.line() == 0)
        throw ig::DataError(ig::message(reader.name(), ": the text is empty; expected at least one line"));
    score_all(it, lines);
    if (!o.sort.empty())
        std::stable_sort(lines.begin(), lines.end(),
                         [by_mean = o.sort == "mean"](const Line& a, const Line& b) {
                             return by_mean ? a.mean() > b.mean() : a.log_probability > b.log_probability;
                         });
    print(lines, titled);
    return 0;
}

}  // namespace lm
