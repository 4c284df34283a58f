/// @file text/vocabulary_builder.hpp  Counting the types of texts, and choosing those to keep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/text/words.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <isogloss/word_index.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace text {

/// What a token stands for.
enum class Level {
    word,      ///< runs of bytes between ASCII white space
    character  ///< Unicode code points, spaces included
};

/// How a vocabulary is built.
struct VocabularyOptions {
    Level level = Level::word;   ///< words or characters
    std::int64_t min_count = 1;  ///< types that occur fewer times are dropped; ≥ 1 (1: none)
    Index max_size = 0;          ///< most types kept, `unk` and `eos` included; 0: no limit
    bool eos_per_line = true;    ///< each line end is a token
    std::string unk = "<unk>";   ///< type of everything dropped or never seen; "": none
    bool add_unk = true;         ///< include `unk` even if nothing is dropped and the text lacks it
    std::string eos = {};        ///< type of a line end; "": "<eos>" for words, "\n" for characters
    Index max_line_bytes = Index{1} << 24;  ///< longest line accepted, bytes ≥ 1 (16 MiB)
};

namespace detail {

/// The options with the default spelling of a line end filled in. Throws DataError, prefixed with
/// `where`, for spellings of `unk` and `eos` that are equal or that no text can contain.
inline VocabularyOptions with_spellings(VocabularyOptions options, const std::string& where) {
    if (options.eos.empty()) options.eos = options.level == Level::word ? "<eos>" : "\n";
    for (const std::string& name : {options.unk, options.eos})
        if (options.unk == options.eos || bad_byte(name) ||
            (options.level == Level::word && std::ranges::any_of(name, detail::is_space)))
            throw DataError(where, ": found ", in_quotes(options.unk), " for unknown words and ",
                            in_quotes(options.eos),
                            " for line ends, expected two different words of valid UTF-8");
    return options;
}

}  // namespace detail

/// Distinct words or characters, and how often each occurs.
struct CountedTypes {
    std::vector<std::string> words;
    std::vector<std::int64_t> counts;  ///< of the same length
};

/// Counts types over any number of texts and chooses those of the Vocabulary: what
/// Vocabulary::from_file does, for texts from other sources.
///
///     VocabularyBuilder builder({.min_count = 2});
///     builder.add(lines);                            // a LineReader, as often as there are texts
///     Vocabulary v(builder);
///
/// Types kept         `unk` and `eos` always; of the others those with min_count or more, and of these the
///                    most frequent, up to max_size in all, ties by first occurrence.
/// Origin of `unk`    the text, dropped types, or add_unk. Its first occurrence is that of the earliest type
///                    it replaces.
class VocabularyBuilder {
public:
    /// Throws DataError for options out of range or in conflict.
    explicit VocabularyBuilder(VocabularyOptions options = {})
        : options_(detail::with_spellings(std::move(options), "vocabulary options")) {
        require<DataError>("vocabulary options", "min_count", options_.min_count, 1);
        const Index specials = (options_.unk.empty() ? 0 : 1) + (options_.eos_per_line ? 1 : 0);
        if (options_.max_size != 0)
            require<DataError>("vocabulary options", "max_size", options_.max_size, specials + 1);
    }

    /// Counts every remaining line of `lines`. Throws DataError if there is none or one is invalid (see LineReader);
    /// those before it are counted.
    void add(file::LineReader& lines) {
        const auto take = [&](std::string_view word) {
            const Token t = index_.insert(word);
            if (t == std::ssize(counts_)) counts_.push_back(0);
            ++counts_[t];
        };
        const Index before = lines.line();
        for (std::string_view line; lines.next(line);) {
            if (options_.level == Level::word) for_each_word(line, take);
            else for_each_character(line, take);
            if (options_.eos_per_line) take(options_.eos);
        }
        if (lines.line() == before)
            throw DataError(lines.name(), ": the text is empty; expected at least one line");
        sources_ += (sources_.empty() ? "" : ", ") + lines.name();
    }

    /// The options, with the spelling of a line end filled in.
    const VocabularyOptions& options() const { return options_; }

    /// The types to keep of those counted so far, in the order of a Vocabulary. Throws DataError if
    /// there are none, if dropping types leaves only special ones, and if types are dropped but `unk` is "".
    CountedTypes types() const {
        if (counts_.empty())
            throw DataError("vocabulary of ", sources_.empty() ? "no text" : sources_,
                            ": there are no words");
        const Token unk = options_.unk.empty() ? -1 : index_.find(options_.unk);
        const Token eos = options_.eos_per_line ? index_.find(options_.eos) : -1;
        std::vector<Type> others;
        bool rare = false;
        for (Token t = 0; t < index_.size(); ++t) {
            if (t == unk || t == eos) continue;
            const Type type = this->type(t);
            if (type.count >= options_.min_count) others.push_back(type);
            else rare = true;
        }
        std::sort(others.begin(), others.end());

        const Index line_end = eos >= 0 ? 1 : 0;
        const auto room = [&](bool with_unk) {
            const Index limit = options_.max_size - line_end - (with_unk ? 1 : 0);
            return options_.max_size == 0 ? others.size()
                                          : std::min(others.size(), static_cast<std::size_t>(limit));
        };
        bool with_unk = unk >= 0 || (options_.add_unk && !options_.unk.empty());
        if (rare || room(with_unk) < others.size()) {
            if (options_.unk.empty())
                throw DataError("vocabulary of ", sources_,
                                ": types are left out, and the option unk names none ", "to stand for them");
            with_unk = true;
        }
        others.resize(room(with_unk));
        if (others.empty() && rare)
            throw DataError("vocabulary of ", sources_, ": no type occurs ", options_.min_count,
                            " times or more; lower min_count");
        return assemble(std::move(others), with_unk, unk, eos);
    }

private:
    // A type in its final order: descending count, then first occurrence.
    struct Type {
        std::int64_t count;
        Index first;
        Token token;  // -1 for an `unk` that the text does not spell
        bool operator<(const Type& other) const {
            return count != other.count ? count > other.count : first < other.first;
        }
    };
    Type type(Token t) const { return {counts_[t], t, t}; }

    CountedTypes assemble(std::vector<Type> kept, bool with_unk, Token unk, Token eos) const {
        if (eos >= 0) kept.push_back(type(eos));
        if (with_unk) {
            std::vector<bool> stays(counts_.size(), false);
            for (const Type& k : kept) stays[k.token] = true;
            Type rest{0, index_.size(), unk};
            for (auto t = static_cast<Token>(index_.size() - 1); t >= 0; --t)
                if (!stays[t]) rest = {rest.count + type(t).count, t, unk};
            kept.push_back(rest);
        }
        std::sort(kept.begin(), kept.end());
        CountedTypes all;
        for (const Type& k : kept) {
            all.words.push_back(k.token < 0 ? options_.unk : index_[k.token]);
            all.counts.push_back(k.count);
        }
        return all;
    }

    VocabularyOptions options_;
    WordIndex index_;  // types in order of first occurrence
    std::vector<std::int64_t> counts_;
    std::string sources_;
};

}}}  // namespace isogloss::text
