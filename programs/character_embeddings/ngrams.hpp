/// @file ngrams.hpp  Interpolated n-gram models of characters: the baseline for the embedding model.
#pragma once

#include <cmath>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

namespace characters {

namespace ig = isogloss;

/// Counts of all contexts of up to `order` - 1 characters, with Witten-Bell smoothing:
///
///     p(c | x_1 … x_k) = (count(x c) + t(x) p(c | x_2 … x_k)) / (count(x) + t(x))
///
/// t(x) is how many different characters follow x; the recursion starts from the uniform distribution.
class Ngrams {
public:
    /// Whether n-grams up to this order over so many characters fit into keys of 64 bits.
    static bool countable(ig::Index order, ig::Index vocabulary) {
        double room = 1;
        for (ig::Index k = 0; k < order && room <= most; ++k) room *= double(vocabulary) + 1;
        return order >= 1 && room <= most;
    }

    Ngrams(std::span<const ig::Token> text, ig::Index order, ig::Index vocabulary)
        : order_(order), vocabulary_(static_cast<std::uint64_t>(vocabulary)) {
        if (!countable(order, vocabulary))
            throw ig::UsageError(ig::message("n-grams: order ", order, " over ", vocabulary,
                                             " characters is too large to count"));
        for (ig::Index at = 0; at < std::ssize(text); ++at)
            for (ig::Index k = 0; k < order && k <= at; ++k) {
                const std::uint64_t context = key(text, at, k);
                Context& c = contexts_[context];
                c.different += ++counts_[context * (vocabulary_ + 1) + next(text, at)] == 1;
                ++c.total;
            }
    }

    /// p(text[at] | the characters before it), from contexts of up to `order` - 1.
    double probability(std::span<const ig::Token> text, ig::Index at, ig::Index order) const {
        double p = 1 / static_cast<double>(vocabulary_);
        for (ig::Index k = 0; k < std::min(order, order_) && k <= at; ++k) {
            const std::uint64_t context = key(text, at, k);
            const auto found = contexts_.find(context);
            if (found == contexts_.end()) break;  // no longer one was seen either
            const auto pair = counts_.find(context * (vocabulary_ + 1) + next(text, at));
            const double n = pair == counts_.end() ? 0 : double(pair->second);
            const auto [total, different] = found->second;
            p = (n + double(different) * p) / double(total + different);
        }
        return p;
    }

    /// exp of the mean -ln p over text[first …].
    double perplexity(std::span<const ig::Token> text, ig::Index first, ig::Index order) const {
        double nats = 0;
        for (ig::Index at = first; at < std::ssize(text); ++at)
            nats -= std::log(probability(text, at, order));
        return std::exp(nats / static_cast<double>(std::ssize(text) - first));
    }

private:
    static constexpr double most = 1.8e19;
    struct Context {
        std::int64_t total = 0, different = 0;
    };
    static std::uint64_t next(std::span<const ig::Token> text, ig::Index at) {
        return static_cast<std::uint64_t>(text[static_cast<std::size_t>(at)]) + 1;
    }
    /// The k characters before `at` as digits, none of them 0, so that contexts of all lengths differ.
    std::uint64_t key(std::span<const ig::Token> text, ig::Index at, ig::Index k) const {
        std::uint64_t digits = 0;
        for (ig::Index i = at - k; i < at; ++i) digits = digits * (vocabulary_ + 1) + next(text, i);
        return digits;
    }

    ig::Index order_;
    std::uint64_t vocabulary_;
    std::unordered_map<std::uint64_t, Context> contexts_;
    std::unordered_map<std::uint64_t, std::int64_t> counts_;
};

}  // namespace characters
