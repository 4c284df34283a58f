/// @file lexical_features.hpp  Lexical features of a tagger: spelling, affixes and shapes of words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../shared/tagged_text.hpp"

namespace lt {

namespace ig = isogloss;

/// Indices of binary features: those of position i are list[first[i]] … list[first[i + 1] - 1].
struct FeatureLists {
    std::vector<std::int32_t> list;
    std::vector<std::size_t> first{0};
};

/// The shape of a word: X upper case, x lower case, 0 digit, runs collapsed; other bytes are kept.
inline std::string shape(std::string_view word) {
    std::string out;
    for (const char c : word) {
        const char s = c >= 'A' && c <= 'Z'   ? 'X'
                       : c >= 'a' && c <= 'z' ? 'x'
                       : c >= '0' && c <= '9' ? '0'
                                              : c;
        if (out.empty() || out.back() != s) out += s;
    }
    return out;
}

/// Binary features of a word in its sentence, after Ratnaparkhi (1996) and Turian, Ratinov, Bengio (2010):
/// the words as spelled, up to two on either side, and their pairs with the middle word; the word in lower
/// case with 0 for every digit; its first and last one to four bytes; its shape and those of its neighbours;
/// and whether it contains a digit, a hyphen or an inner capital.
///
/// Only features that occur at least `min_count` times in the training text are used.
class LexicalFeatures {
public:
    LexicalFeatures(const tagged::Text& train, ig::Index min_count) {
        std::unordered_map<std::string, ig::Index> seen;
        each(train, [&](std::size_t, const std::string& feature) { ++seen[feature]; });
        each(train, [&](std::size_t, const std::string& feature) {  // numbers by first occurrence
            if (seen[feature] >= min_count)
                numbers_.emplace(feature, static_cast<std::int32_t>(numbers_.size()));
        });
    }

    ig::Index size() const { return std::ssize(numbers_); }  ///< features

    /// The features of every word of a text.
    FeatureLists operator()(const tagged::Text& text) const {
        FeatureLists out;
        out.first.assign(text.words.size() + 1, 0);
        each(text, [&](std::size_t i, const std::string& feature) {
            if (const auto at = numbers_.find(feature); at != numbers_.end()) out.list.push_back(at->second);
            out.first[i + 1] = out.list.size();
        });
        return out;
    }

private:
    static std::string folded(const std::string& word) {
        std::string out = tagged::lower(word);
        for (char& c : out)
            if (c >= '0' && c <= '9') c = '0';
        return out;
    }

    // Calls f(position, feature) for all features of all words, the positions in order.
    template <class F> static void each(const tagged::Text& text, F&& f) {
        for (std::size_t s = 0; s + 1 < text.starts.size(); ++s) {
            const auto begin = text.starts[s], end = text.starts[s + 1];
            const auto word = [&](std::size_t i, int d) {
                const auto at = static_cast<std::ptrdiff_t>(i) + d;
                return at < static_cast<std::ptrdiff_t>(begin) || at >= static_cast<std::ptrdiff_t>(end)
                           ? std::string("<s>")
                           : text.words[static_cast<std::size_t>(at)];
            };
            for (std::size_t i = begin; i < end; ++i) {
                const std::string here = word(i, 0), low = folded(here);
                const auto put = [&](const char* name, const std::string& value) { f(i, name + value); };
                put("all", "");
                put("w-2 ", word(i, -2));
                put("w-1 ", word(i, -1));
                put("w0 ", here);
                put("w+1 ", word(i, 1));
                put("w+2 ", word(i, 2));
                put("low ", low);
                put("w-1,0 ", folded(word(i, -1)) + ' ' + low);
                put("w0,+1 ", low + ' ' + folded(word(i, 1)));
                for (std::size_t n = 1; n <= std::min<std::size_t>(4, low.size()); ++n) {
                    put("pre ", low.substr(0, n));
                    put("suf ", low.substr(low.size() - n));
                }
                put("s-1 ", shape(word(i, -1)));
                put("s0 ", shape(here));
                put("s+1 ", shape(word(i, 1)));
                put("s-1,0,+1 ", shape(word(i, -1)) + ' ' + shape(here) + ' ' + shape(word(i, 1)));
                if (here.find_first_of("0123456789") != std::string::npos) put("digit", "");
                if (here.find('-') != std::string::npos) put("hyphen", "");
                if (here.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1) != std::string::npos)
                    put("inner", "");
            }
        }
    }

    std::unordered_map<std::string, std::int32_t> numbers_;
};

}  // namespace lt
