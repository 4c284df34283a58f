/// @file score.cpp  Log probabilities of lines.
#include <algorithm>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "../shared/threads.hpp"
#include "commands.hpp"
#include "print.hpp"
#include "report.hpp"
#include "scoring.hpp"

namespace lm {

namespace {

/// Writes the lines as objects.
void print_json(const std::vector<Line>& lines) {
    for (const Line& line : lines)
        std::cout << dump({{"text", line.text},
                           {"log_probability", line.log_probability},
                           {"mean", line.mean()},
                           {"tokens", line.tokens.size()},
                           {"unknowns", line.unknowns}})
                  << '\n';
    std::cout.flush();
}

/// Writes the lines; before the first one, the column titles go to stderr.
void print(const std::vector<Line>& lines, bool json, bool& titled) {
    if (json) return print_json(lines);
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
    program::use_threads("score", o.threads);
    ig::require("score", "--batch", o.batch, 1, most_size);
    auto file = read_model(o.model);
    const auto vocabulary = file.vocabulary;
    auto reader =
        o.text == "-" ? ig::file::LineReader(std::cin, "standard input") : ig::file::LineReader(o.text);
    // Without sorting, lines are scored and written a window at a time, so that input of any length will do.
    const std::size_t window =
        o.sort.empty() ? static_cast<std::size_t>(64 * o.batch) : std::numeric_limits<std::size_t>::max();
    std::vector<Line> lines;
    std::optional<LoadedModel> it;  // built for no more columns than there are lines
    const auto score_lines = [&] {
        if (!it) {
            const Extent size{std::clamp<ig::Index>(std::ssize(lines), 1, o.batch), file.options.bptt};
            it = build_model(std::move(file), size, precision_of(o.precision));
        }
        score_all(*it, lines);
    };
    bool titled = false;
    for (std::string_view text; reader.next(text);) {
        Line& line = lines.emplace_back();
        line.text = text;
        line.unknowns = vocabulary.encode_checked(text, line.tokens, reader);
        if (lines.size() < window) continue;
        score_lines();
        print(lines, o.json, titled);
        lines.clear();
    }
    if (reader.line() == 0)
        throw ig::DataError(ig::message(reader.name(), ": the text is empty; expected at least one line"));
    score_lines();
    if (!o.sort.empty())
        std::stable_sort(lines.begin(), lines.end(),
                         [by_mean = o.sort == "mean"](const Line& a, const Line& b) {
                             return by_mean ? a.mean() > b.mean() : a.log_probability > b.log_probability;
                         });
    print(lines, o.json, titled);
    return 0;
}

}  // namespace lm
