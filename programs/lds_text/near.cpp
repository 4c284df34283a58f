/// @file near.cpp  The nearest neighbours of words, and of single tokens in their context.
#include <algorithm>
#include <iostream>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/utf8.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../shared/json.hpp"
#include "../shared/threads.hpp"
#include "common.hpp"
#include "sentence_vectors.hpp"

namespace lt {

namespace {

using Vectors = lds::TallMatrix<float>;

/// Rows by their cosine with row `of`, the nearest first, without row `of`. Rows have norm 1, or 0 if empty.
std::vector<std::pair<double, ig::Index>> by_cosine(const Vectors& v, ig::Index of) {
    const ig::Index n = lds::cols(v);
    std::vector<std::pair<double, ig::Index>> out;
    for (ig::Index i = 0; i < lds::rows(v); ++i) {
        if (i == of) continue;
        double sum = 0;
        for (ig::Index j = 0; j < n; ++j) sum += double(v.data()[i * n + j]) * double(v.data()[of * n + j]);
        out.emplace_back(sum, i);
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return out;
}

/// A word, or a token in its context, and its neighbours: as a JSON object or as lines.
class Group {
public:
    Group(bool json, const std::string& word, const std::string& title) : json_(json) {
        if (json) all_["word"] = word;
        else say("%s\n", ig::shown(title).c_str());
        if (json) all_["near"] = program::Json::array();
    }
    /// The place in the text.
    void context(const std::string& line) {
        if (json_) all_["context"] = line;
    }
    void add(double cosine, const char* what, const std::string& text) {
        if (json_) all_["near"].push_back({{what, text}, {"cosine", cosine}});
        else say("  %.3f  %s\n", cosine, ig::shown(text).c_str());
    }
    /// Prints the object.
    void finish() {
        if (json_) std::cout << program::dump(all_) << std::endl;
    }

private:
    bool json_;
    program::Json all_;
};

void of_types(const NearCommand& o, const lds::LdsFile<float>& it, ig::Token word) {
    const auto v = lds::type_embedding(it.system, it.xx);
    const auto known = frequent(it.vocabulary, o.min_count);
    Group group(o.json, it.vocabulary.word(word), it.vocabulary.word(word) + ", as a word");
    ig::Index shown = 0;
    for (const auto& [cosine, i] : by_cosine(v, word)) {
        if (!known[std::size_t(i)]) continue;
        group.add(cosine, "word", it.vocabulary.word(static_cast<ig::Token>(i)));
        if (++shown == o.count) break;
    }
    group.finish();
    if (shown == 0 && !o.json)
        say("  no other word occurs %g times; give a smaller --min-count\n", o.min_count);
}

/// The words around a token within its line, the token itself in brackets.
std::string context(const ig::text::Vocabulary& v, std::span<const ig::Token> text, ig::Index at) {
    const auto ends = [&](ig::Index i) { return v.has_eos() && text[std::size_t(i)] == v.eos(); };
    ig::Index first = at, last = at;
    while (first > 0 && at - first < 5 && !ends(first - 1)) --first;
    while (last + 1 < std::ssize(text) && last - at < 4 && !ends(last + 1)) ++last;
    std::string line;
    for (ig::Index i = first; i <= last; ++i) {
        const std::string& word = v.word(text[std::size_t(i)]);
        line += (i == first ? "" : " ") + (i == at ? "[" + word + "]" : word);
    }
    return line;
}

void of_tokens(const NearCommand& o, const lds::LdsFile<float>& it, const Sentences& text, const Vectors& v,
               ig::Token word) {
    const std::span<const ig::Token> tokens = text.tokens();
    ig::Index found = 0;
    for (ig::Index t = 0; t < std::ssize(tokens) && found < o.occurrences; ++t) {
        if (tokens[std::size_t(t)] != word) continue;
        ++found;
        const std::string here = context(it.vocabulary, tokens, t);
        Group group(o.json, it.vocabulary.word(word), here);
        group.context(here);
        std::set<ig::Token> said;  // the nearest token of each word
        for (const auto& [cosine, i] : by_cosine(v, t)) {
            const ig::Token other = tokens[std::size_t(i)];
            if ((it.vocabulary.has_eos() && other == it.vocabulary.eos()) || !said.insert(other).second)
                continue;
            group.add(cosine, "context", context(it.vocabulary, tokens, i));
            if (std::ssize(said) == o.count) break;
        }
        group.finish();
    }
    if (found > 0 || o.json) return;
    std::string joined;  // the names of the texts
    for (const std::string& path : o.text) joined += (joined.empty() ? "" : "', '") + path;
    say("%s does not occur in '%s'\n", ig::in_quotes(it.vocabulary.word(word)).c_str(), joined.c_str());
}

}  // namespace

int near(const NearCommand& o) {
    program::use_threads("near", o.threads);
    ig::require("near", "--count", o.count, 1);
    ig::require("near", "--occurrences", o.occurrences, 1);
    ig::require("near", "--min-count", o.min_count, 0);
    const ig::BlasOnOneThread blas;
    const auto it = lds::load_lds<float>(o.model);
    std::vector<ig::Token> words;
    for (const std::string& word : o.words) {
        const auto at = it.vocabulary.find(word);
        if (!at)
            throw ig::DataError(ig::message("near: ", ig::in_quotes(word), " is not a word of '", o.model,
                                            "'; spell it as its text does"));
        words.push_back(*at);
    }
    if (o.text.empty()) {
        for (const ig::Token word : words) of_types(o, it, word);
        return 0;
    }
    const Sentences text(o.text, it.vocabulary);
    const Vectors v = sentence_vectors(token_embedding(it, "smoother"), text, before_sentence(it));
    for (const ig::Token word : words) of_tokens(o, it, text, v, word);
    return 0;
}

}  // namespace lt
