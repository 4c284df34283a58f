/// @file vocabulary_builder.hpp  Counting the types of texts, and choosing those that stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/text/lines.hpp>
#include <isogloss/text/vocabulary_core.hpp>
#include <isogloss/text/word_index.hpp>
#include <isogloss/types.hpp>
#include <istream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss {

/// Counts types over any number of texts, then makes the Vocabulary: what Vocabulary::from_file does, for
/// texts that come from elsewhere.
///
///     VocabularyBuilder builder({.min_count = 2});
///     builder.add(lines);                            // a LineReader, as often as there are texts
///     Vocabulary v = builder.build();
///
/// Which types stay   `unk` and `eos` always; of the others those with min_count or more, and of these the
///                    most frequent, up to max_size in all, ties by first occurrence.
/// Where `unk` comes  from the text, from a cut-off, or from add_unk. Its first occurrence is that of the
///                    earliest type it stands for.
class VocabularyBuilder {
public:
    /// Throws DataError for options out of range or in contradiction.
    explicit VocabularyBuilder(VocabularyOptions options = {}) : options_(std::move(options)) {
        const std::string where = "vocabulary options";
        vocabulary_.set_options(options_, where);
        if (options_.min_count < 1)
            throw DataError(message(where, ": min_count is ", options_.min_count, ", expected 1 or more"));
        const Index specials = (options_.unk.empty() ? 0 : 1) + (options_.eos_per_line ? 1 : 0);
        if (options_.max_size != 0 && options_.max_size <= specials)
            throw DataError(message(where, ": max_size is ", options_.max_size,
                                    ", expected 0 (no limit) or at least ", specials + 1, ", because ",
                                    specials, " types are special"));
    }

    /// Counts every line that `lines` has left. Throws DataError where that is none at all.
    void add(LineReader& lines) {
        const std::string& eos = vocabulary_.eos_name_;
        const auto take = [this](std::string_view word) { count(word); };
        const Index before = lines.line();
        for (std::string_view line; lines.next(line);) {
            if (options_.level == Level::word) for_each_word(line, take);
            else for_each_character(line, take);
            if (options_.eos_per_line) count(eos);
        }
        if (lines.line() == before)
            throw DataError(message(lines.name(), ": the text is empty; expected at least one line"));
        sources_ += (sources_.empty() ? "" : ", ") + lines.name();
    }

    /// The vocabulary of what was counted so far. Throws DataError where there is nothing, where a cut-off
    /// leaves no type but the special ones, and where types are cut off but `unk` is "".
    Vocabulary build() const {
        if (counts_.empty())
            throw DataError(message("vocabulary of ", sources_.empty() ? "no text" : sources_,
                                    ": there are no words in it; expected at least one"));
        const Token unk = options_.unk.empty() ? -1 : index_.find(options_.unk);
        const Token eos = options_.eos_per_line ? index_.find(vocabulary_.eos_name_) : -1;
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
                throw DataError(message("vocabulary of ", sources_,
                                        ": min_count or max_size cut off types, but there "
                                        "is no type to stand for them; name one in the option unk"));
            with_unk = true;
        }
        others.resize(room(with_unk));
        if (others.empty() && rare)
            throw DataError(message("vocabulary of ", sources_, ": no type occurs ", options_.min_count,
                                    " times or more; lower min_count"));
        return assemble(std::move(others), with_unk, unk, eos);
    }

private:
    // A type in its final order: falling count, then first occurrence.
    struct Type {
        std::int64_t count;
        Index first;
        Token token;  // -1 for an `unk` that the text does not spell
        bool operator<(const Type& other) const {
            return count != other.count ? count > other.count : first < other.first;
        }
    };
    Type type(Token t) const { return {counts_[static_cast<std::size_t>(t)], t, t}; }

    void count(std::string_view word) {
        const auto t = static_cast<std::size_t>(index_.insert(word));
        if (t == counts_.size()) counts_.push_back(0);
        ++counts_[t];
    }

    Vocabulary assemble(std::vector<Type> kept, bool with_unk, Token unk, Token eos) const {
        if (eos >= 0) kept.push_back(type(eos));
        if (with_unk) {
            std::vector<bool> stays(counts_.size(), false);
            for (const Type& k : kept) stays[static_cast<std::size_t>(k.token)] = true;
            Type all{0, index_.size(), unk};
            for (auto t = static_cast<Token>(index_.size() - 1); t >= 0; --t)
                if (!stays[static_cast<std::size_t>(t)]) all = {all.count + type(t).count, t, unk};
            kept.push_back(all);
        }
        std::sort(kept.begin(), kept.end());
        Vocabulary v = vocabulary_;
        for (const Type& k : kept)
            v.append(k.token < 0 ? options_.unk : index_.words()[static_cast<std::size_t>(k.token)], k.count,
                     "vocabulary");
        v.finish("vocabulary");
        return v;
    }

    VocabularyOptions options_;
    Vocabulary vocabulary_;  // without words: it carries the checked options
    WordIndex index_;        // types in order of first occurrence
    std::vector<std::int64_t> counts_;
    std::string sources_;
};

inline Vocabulary Vocabulary::from_files(const std::vector<std::string>& paths,
                                         const VocabularyOptions& options) {
    VocabularyBuilder builder(options);
    for (const std::string& path : paths) {
        LineReader lines(path, {.max_line_bytes = options.max_line_bytes});
        builder.add(lines);
    }
    return builder.build();
}

inline Vocabulary Vocabulary::from_file(const std::string& path, const VocabularyOptions& options) {
    return from_files({path}, options);
}

inline Vocabulary Vocabulary::from_stream(std::istream& in, const std::string& name,
                                          const VocabularyOptions& options) {
    VocabularyBuilder builder(options);
    LineReader lines(in, name, {.max_line_bytes = options.max_line_bytes});
    builder.add(lines);
    return builder.build();
}

}  // namespace isogloss
