/// @file word_index.hpp  A table from words to numbers with lookup without allocation.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <isogloss/error.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Numbers words 0, 1, 2 … in order of insertion, and finds them again. Open addressing, at most half
/// full: a lookup is one hash, about one slot and one comparison, and allocates nothing.
class WordIndex {
public:
    /// An empty table.
    WordIndex() = default;
    /// Numbers words in the order given. Throws DataError for a duplicate.
    WordIndex(const std::vector<std::string>& words) {
        reserve(std::ssize(words));
        for (const std::string& word : words) {
            const Index i = size();
            if (const Token t = insert(word); t != i)
                throw DataError("the word ", in_quotes(word), " appears twice, as numbers ", t, " and ", i);
        }
    }
    /// The same.
    WordIndex(std::initializer_list<std::string> words) : WordIndex(std::vector<std::string>(words)) {}

    /// The number of `word`, or -1.
    Token find(std::string_view word) const {
        if (slots_.empty()) return -1;
        const std::uint64_t h = file::hash_bytes(word);
        return slots_[slot_of(word, h)].token;
    }

    /// The number of `word`, which is appended if it is new. Throws DataError past 2³¹-1 words.
    Token insert(std::string_view word) {
        if (2 * words_.size() >= slots_.size()) grow();
        const std::uint64_t h = file::hash_bytes(word);
        Slot& slot = slots_[slot_of(word, h)];
        if (slot.token < 0) {
            if (words_.size() >= 0x7fffffffu)
                throw DataError("more than 2147483647 different words; a token has 31 bits");
            words_.emplace_back(word);
            slot = {static_cast<std::uint32_t>(h >> 32), static_cast<Token>(words_.size() - 1)};
        }
        return slot.token;
    }

    /// Reserves space for `words` words in all.
    void reserve(Index words) {
        words_.reserve(words);
        while (std::ssize(slots_) < 2 * words) grow();
    }

    /// Word number `i`, 0 ≤ i < size().
    const std::string& operator[](Index i) const { return words_[i]; }
    /// Number of words.
    Index size() const { return static_cast<Index>(words_.size()); }
    /// All words in the order of their numbers.
    const std::vector<std::string>& words() const { return words_; }

private:
    struct Slot {
        std::uint32_t tag = 0;  // upper half of the hash: by itself distinguishes most unequal words
        Token token = -1;
    };

    // The slot that holds `word`, or the free one where it would be inserted.
    std::size_t slot_of(std::string_view word, std::uint64_t h) const {
        const std::size_t mask = slots_.size() - 1;
        const auto tag = static_cast<std::uint32_t>(h >> 32);
        for (std::size_t i = h & mask;; i = (i + 1) & mask) {
            const Slot& slot = slots_[i];
            if (slot.token < 0 || (slot.tag == tag && words_[slot.token] == word)) return i;
        }
    }

    void grow() {
        slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), Slot{});
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const std::uint64_t h = file::hash_bytes(words_[i]);
            slots_[slot_of(words_[i], h)] = {static_cast<std::uint32_t>(h >> 32), static_cast<Token>(i)};
        }
    }

    std::vector<std::string> words_;
    std::vector<Slot> slots_;
};

}}  // namespace isogloss
