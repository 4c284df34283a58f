/// @file co_occurrences.hpp  The data of `fit`: the counts of a text, or the text itself.
#pragma once

#include <algorithm>
#include <isogloss/distributed/counts.hpp>
#include <isogloss/lds/text_pairs.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../shared/ranks.hpp"
#include "counting.hpp"

namespace lt {

/// Counts of `fit --train` or `--counts`, or with --matrix-free the tokens of --train.
class CoOccurrences {
public:
    /// At distances 1 … lags. With several ranks, each counts a part of a text and all hold the sum.
    CoOccurrences(const FitCommand& o, ig::Index lags, program::Ranks& ranks) {
        if (!o.counts.empty()) {
            for (const auto& [option, given] :
                 {std::pair("--train", !o.train.empty()), std::pair("--vocabulary", o.vocabulary.has_value()),
                  std::pair("--vocabulary-from", !o.vocabulary_from.empty()),
                  std::pair("--matrix-free", o.matrix_free)})
                if (given)
                    throw ig::UsageError(ig::message(
                        option, " has no effect with --counts, which are of a text; leave one out"));
            load(o.counts, o.sentences);
        } else if (o.train.empty()) {
            throw ig::DataError("fit: give --train, a text, or --counts, a file of `lds_text count`");
        } else {
            read(o, lags, ranks);
        }
    }
    CoOccurrences(const CoOccurrences&) = delete;  // the moments refer to it
    CoOccurrences& operator=(const CoOccurrences&) = delete;

    const ig::text::Vocabulary& vocabulary() const { return vocabulary_; }
    /// How often each word occurs.
    const ig::Array<std::int64_t>& occurrences() const {
        return counts_ ? counts_->occurrences() : text_->occurrences();
    }
    /// The token that ends a sentence, or -1.
    ig::Token boundary() const { return (counts_ ? counts_->options() : text_->options()).boundary; }
    lds::LagMoments<float> moments(lds::WhiteningOptions options) const {
        return counts_ ? lds::LagMoments<float>(*counts_, options) : lds::LagMoments<float>(*text_, options);
    }

    /// Throws UsageError unless pairs are counted at distances up to the horizon of EM.
    void require_horizon(ig::Index lags) const {
        if (counts_ && counts_->lags() < lags)
            throw ig::UsageError(ig::message(
                "fit: --em-lags is ", lags, ", but the counts have distances 1 to ", counts_->lags(),
                "; give --em-lags ", counts_->lags(), ", or count with --lags ", lags));
    }
    /// Throws UsageError unless pairs are counted at all distances of so many blocks of the Hankel operator.
    void require_blocks(ig::Index blocks) const {
        const ig::Index needed = 2 * blocks - 1;
        if (!counts_ || counts_->lags() >= needed) return;
        const ig::Index most = (counts_->lags() + 1) / 2;
        throw ig::UsageError(ig::message("fit: --ssid-lags is ", blocks, ", which needs distances 1 to ",
                                         needed, ", but the counts have 1 to ", counts_->lags(), "; ",
                                         most < 2 ? "" : ig::message("give --ssid-lags ", most, ", or "),
                                         "count with --lags ", needed));
    }
    /// A checksum of the counts at distances 1 … lags, or without counts of the text.
    std::string checksum(ig::Index lags) const {
        if (text_) return "text " + ig::file::hex16(corpus_->checksum());
        std::uint64_t h = 0;
        const auto add = [&h](auto numbers) {
            const auto bytes = std::as_bytes(std::span(numbers.data(), numbers.size()));
            h = ig::file::hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, h);
        };
        for (ig::Index k = 1; k <= std::min(lags, counts_->lags()); ++k) {
            const auto& pairs = counts_->lag(k);
            add(std::span(pairs.starts));
            add(pairs.columns);
            add(pairs.values.narrow);
            add(pairs.values.wide);
        }
        return "counts " + ig::file::hex16(h);
    }

private:
    void load(const std::string& path, bool sentences) {
        auto counted = counts::load_counts(path);
        if (sentences && counted.counts.options().boundary < 0)
            throw ig::DataError(ig::message("--sentences is given, but '", path,
                                            "' was counted across sentences; count with --sentences"));
        counts_ = std::move(counted.counts);
        vocabulary_ = std::move(counted.vocabulary);
    }

    void read(const FitCommand& o, ig::Index lags, program::Ranks& ranks) {
        if (o.vocabulary && !o.vocabulary_from.empty())
            throw ig::UsageError("--vocabulary has no effect with --vocabulary-from; leave one out");
        Stopwatch clock;
        const bool tokens =
            std::ranges::any_of(o.train, [](const auto& path) { return is_token_file(path); });
        if (!o.vocabulary_from.empty()) vocabulary_ = stored_vocabulary(o.vocabulary_from);
        else if (tokens)
            throw ig::DataError(ig::message("'", o.train.front(),
                                            o.train.size() > 1 ? "' or one of the others" : "'",
                                            " is a file of tokens, which holds no words; give the "
                                            "vocabulary it was made with by --vocabulary-from"));
        else vocabulary_ = read_vocabulary(o.train, o.vocabulary.value_or(10000), 1);
        corpus_ = corpus_of(o.train, vocabulary_);
        const double reading = clock.lap();
        const counts::CountOptions options{.lags = lags,
                                           .boundary = lt::boundary(o.sentences, vocabulary_),
                                           .vocabulary_checksum = vocabulary_.checksum()};
        if (o.matrix_free) {
            text_.emplace(corpus_->tokens(), vocabulary_.size(), options);
            say("matrix-free: %td tokens, %td types, %td lags; reading %.2f s, counting words %.2f s\n",
                corpus_->size(), vocabulary_.size(), lags, reading, clock.lap());
            return;
        }
        counts::LagCounts part(vocabulary_.size(), options);
        const auto [first, last] = part_of({0, corpus_->size()}, ranks.rank(), ranks.size());
        part.add(corpus_->tokens(), first, last);
        corpus_.reset();
        counts_.emplace(distributed::sum_of_ranks(std::move(part), ranks));
        say("counts: %td tokens, %td types, %td lags; reading %.2f s, counting %.2f s%s\n",
            static_cast<ig::Index>(counts_->tokens()), vocabulary_.size(), lags, reading, clock.lap(),
            ranks.size() > 1 ? ", each rank a part" : "");
    }

    ig::text::Vocabulary vocabulary_;
    std::optional<ig::text::Corpus> corpus_;   // what text_ reads
    std::optional<counts::LagCounts> counts_;  // either this or text_
    std::optional<lds::TextPairs> text_;
};

}  // namespace lt
