/// @file node/embedding.hpp  Tokens to vectors.
#pragma once

#include <isogloss/graph/node.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

namespace detail {
/// What an Embedding publishes for the metrics: y = m ∘ k ∘ E[x], and the factors of the last pass.
template <class T> struct LookupRecord {
    Tokens tokens;                  ///< x
    Weight<T> table;                ///< E
    Seq<T> y;                       ///< its output
    Mask mask;                      ///< m; inactive: all ones
    const T* word_scale = nullptr;  ///< k [T, B]; null: all ones
};
}  // namespace detail

/// Embedding lookup, with variational dropout on the vectors and on whole words.
///
///     y_t = m ∘ k(x_t) E[x_t]
///
/// Shapes   x [T, B] tokens;  E [V, n];  y [T, B, n]
/// Options  keep        probability of keeping an entry of the vectors, 2⁻³² to 1, default 1: one mask m [B, n]
///                      per training pass, the same at all steps
///          keep_words  probability of keeping a word, 2⁻³² to 1, default 1: k is 0 or 1/keep_words, the same for
///                      all occurrences of a word in a batch column during a pass
/// Gradient touches only the rows of E that were looked up; exact also where E is shared with a head. None for
///          a table that is not trained (WeightOptions)
/// Errors   E does not have one row per token of the vocabulary.
/// Source   m: m_0 of Inan, Khosravi, Socher 2017, section 5; k: the word-type mask of Gal 2015, as used by
///          Zilly et al. 2016.
template <class T> struct Embedding {
    struct Options {
        double keep = 1;
        double keep_words = 1;
    };
    Options options;
    Tokens x;
    Weight<T> table;
    Seq<T> y;
    Mask mask;
    T* word_scale = nullptr;  // [T, B]

    Seq<T> setup(Setup<T>& s, Tokens tokens, Weight<T> E) {
        s.require_shape(E, tokens.vocabulary, E.cols);
        s.require("keep_words", options.keep_words, 0x1p-32, 1);
        x = tokens;
        table = E;
        s.read(x);
        s.lookup(E);
        y = s.sequence("y", E.cols);
        mask = s.mask("mask", E.cols, options.keep);
        if (options.keep_words < 1 && s.gradients())
            word_scale = s.scratch({s.capacity().time, s.capacity().batch});
        s.publish(detail::LookupRecord<T>{x, table, y, mask, word_scale});
        return y;
    }

    void forward(Forward<T>& p) {
        const Index n = y.width, rows = p.rows(), batch = p.batch();
        const Token* tokens = p.data(x);
        const auto E = p.values(table);
        T* out = p.data(y);
        for (Index r = 0; r < rows; ++r) std::copy_n(E.row(tokens[r]), n, out + r * n);
        if (const T* m = p.data(mask)) kernel::multiply_rows(rows, batch, n, out, m, out);
        if (!word_scale) return;
        const Random random = p.random();
        const Index first = p.row_in_batch(0);
        for (Index r = 0; r < rows; ++r) {
            const Index place = (first + r % batch) * table.rows + tokens[r];
            const bool kept = !p.training() || random.uniform(place) < options.keep_words;
            word_scale[r] = p.training() ? (kept ? static_cast<T>(1 / options.keep_words) : T(0)) : T(1);
            kernel::scale(n, word_scale[r], out + r * n);
        }
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        // Tokens are not differentiable: there is no modulus to propagate.
        if constexpr (Backward<T, Quantity>::is_gradient) {
            if (!p.is_trained(table)) return;
            const Index n = y.width, rows = p.rows(), batch = p.batch();
            const Token* tokens = p.data(x);
            const T *dy = p.adjoint_data(y), *m = p.data(mask);
            for (Index r = 0; r < rows; ++r) {
                T* row = p.gradient_row(table, tokens[r]);
                const T* mr = m ? m + r % batch * n : nullptr;
                const T k = word_scale ? word_scale[r] : T(1);
                for (Index j = 0; j < n; ++j) row[j] += k * (mr ? mr[j] : T(1)) * dy[r * n + j];
            }
        }
    }
};

}}  // namespace isogloss
