/// @file complete.cpp  The most probable next words after the beginning of a line.
#include <iostream>
#include <string>

#include "print.hpp"
#include "report.hpp"
#include "sampling.hpp"
#include "scoring.hpp"

namespace lm {

namespace {

void print(const LoadedModel& it, const std::string& text, ig::Index words, ig::Index unknowns,
           std::span<const float> p, const CompleteOptions& o) {
    Json next = Json::array();
    if (!o.json)
        std::cout << text
                  << (unknowns > 0 ? ig::message("  (", unknowns, " of ", words, " <unk>)") : std::string())
                  << '\n';
    for (const ig::Token token : likeliest(p, o.k)) {
        const auto& word = it.vocabulary.word(token);
        const double probability = p[static_cast<std::size_t>(token)];
        if (o.json) next.push_back({{"word", word}, {"probability", probability}});
        else std::cout << "  " << fixed(probability, 4) << "  " << ig::shown(word) << '\n';
    }
    if (o.json) std::cout << dump({{"text", text}, {"unknowns", unknowns}, {"next", next}}) << '\n';
    std::cout.flush();
}

void complete(LoadedModel& it, const std::string& text, const CompleteOptions& o) {
    std::vector<ig::Token> begun = {it.vocabulary.eos()};
    const ig::Index unknowns = it.vocabulary.encode_prefix(text, begun);
    it.g->reset();
    std::vector<float> p(static_cast<std::size_t>(it.vocabulary.size()));
    it.g->head(it.model.o).probabilities(feed(it, begun), {p.data(), 1, it.vocabulary.size()});
    print(it, text, std::ssize(begun) - 1, unknowns, p, o);
}

}  // namespace

int complete(const CompleteOptions& o) {
    ig::require("complete", "--k", o.k, 1);
    auto it = load_model(o.model, 1);
    if (o.text != "-") {
        complete(it, o.text, o);
        return 0;
    }
    ig::Index lines = 0;
    // Not by a LineReader, which reads ahead: who sends one line may wait for its answer.
    for (std::string line; std::getline(std::cin, line); ++lines) {
        if (lines == 0 && line.starts_with(ig::byte_order_mark)) line.erase(0, ig::byte_order_mark.size());
        if (line.ends_with('\r')) line.pop_back();
        try {
            complete(it, line, o);
        } catch (const ig::DataError& error) {
            throw ig::DataError("standard input:", lines + 1, ": ", error.text());
        }
    }
    if (lines == 0) throw ig::DataError("standard input: the text is empty; expected at least one line");
    return 0;
}

}  // namespace lm
