/// @file graph/feed.hpp  What a pass is given.
#pragma once

#include <isogloss/graph/handles.hpp>
#include <iterator>
#include <span>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// One input of a pass: `{x, batch.input}` for tokens, `{u, data, time, batch}` for a sequence.
template <class T> struct Feed {
    Feed() = default;
    Feed(Tokens to, TokenBlock from) : tokens(to), block(from) {}
    Feed(Tokens to, std::span<const Token> column)
        : tokens(to), block{column.data(), std::ssize(column), 1} {}
    Feed(Seq<T> to, const T* data, Index time, Index batch)
        : seq(to), values(data), block{nullptr, time, batch} {}

    Tokens tokens;
    Seq<T> seq;
    const T* values = nullptr;
    TokenBlock block;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
