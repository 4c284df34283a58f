/// @file closed_form/concatenated_softmax.hpp  Softmax over concatenated embeddings, with explicit gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/graph/parameters.hpp>
#include <isogloss/graph/setup.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/subnormals.hpp>
#include <span>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of ConcatenatedSoftmax.
struct ConcatenatedSoftmaxOptions {
    Index vocabulary = 0;            ///< V ≥ 1, rows of E
    Index width = 0;                 ///< H ≥ 1, columns of E
    Index words = 1;                 ///< M ≥ 1, words per example
    Index classes = 0;               ///< C ≥ 1
    Index batch = 1;                 ///< N ≥ 1, maximum number of examples per call
    Init init = uniform(0.1);        ///< start values of E and W
    std::uint64_t seed = 1;          ///< of the start values
    Index budget = Index{32} << 20;  ///< maximum bytes of blocks of logits, > 0
};

/// Softmax over the concatenated embeddings of M words: a log-linear model with an explicit gradient in place
/// of a backward pass through a graph.
///
///     φ_n = [E[v(n,1)] … E[v(n,M)]]  (M H numbers),   z_n = φ_n W,   p_n = softmax(z_n)
///     l   = -Σ_n ln p_n[y_n],   δ_n = p_n - 1_{y_n}
///     ∂l/∂W = Σ_n φ_nᵀ δ_n,   b_n = δ_n Wᵀ,   ∂l/∂E[v] = Σ_n Σ_{m: v(n,m) = v} b_n[m H … m H + H - 1]
///
/// A word at several positions of an example receives a contribution from each. Per batch: a gather, the product
/// for z, one for each of the two gradients, a scatter. No cost depends on V, and nothing is allocated.
///
///     ConcatenatedSoftmax<float> model({.vocabulary = V, .width = 8, .words = 4, .classes = V});
///     Adam adam(model.parameters(), {.rate = 0.01, .divisor = Divisor::tokens});
///     double nats = model.value_and_gradient(X, y);
///     adam.step();
///
/// Shapes   X [N, M] tokens below V;  y [N] classes below C, or not_predicted: not counted;
///          E [V, H];  W [M H, C], block m of a column belongs to word m
/// Options  see ConcatenatedSoftmaxOptions
/// Memory   of logits at most `budget` bytes (at least one row); the rest is proportional to N M H
/// Gradient sums over the examples, added to the existing gradients; in E only rows looked up are touched. That of
///          a frozen E or W (Parameters::trained) is not computed
/// Errors   UsageError: options or shapes out of range, X and y of different lengths, more than N examples.
///          DataError: a token or class out of range, with its position; nothing is changed.
///          NumericError: a loss that is not finite, with its example; value_and_gradient() then clears the
///          gradients, value() changes nothing.
/// Source   "Embedding derivative derivation"; corrections, matrix form: docs/closed_form/kronecker.md.
template <class T> class ConcatenatedSoftmax {
public:
    using Options = ConcatenatedSoftmaxOptions;

    explicit ConcatenatedSoftmax(Options options) : options_(std::move(options)) {
        const auto& o = options_;
        for (const auto& [name, value] : {std::pair{"vocabulary", o.vocabulary},
                                          {"width", o.width},
                                          {"words", o.words},
                                          {"classes", o.classes},
                                          {"batch", o.batch},
                                          {"budget", o.budget}})
            require("concatenated softmax", name, value, 1);
        store_.seed = o.seed;
        graph::add_weight(store_, "E", o.vocabulary, o.width, o.init);
        E().touched.reserve(o.vocabulary), E().hit.assign(o.vocabulary, 0);
        const char* who = "concatenated softmax";
        const Index n = elements_of(who, {o.words, o.width}, sizeof(T));
        graph::add_weight(store_, "W", n, o.classes, o.init);
        block_ = std::clamp<Index>(o.budget / (o.classes * Index{sizeof(T)}), 1, o.batch);
        logits_ = store_.arena.template take<T>({block_, o.classes}, who);
        phi_ = store_.arena.template take<T>({o.batch, n}, who);
        back_ = store_.arena.template take<T>({block_, n}, who);
        nats_ = store_.arena.template take<double>(block_, who);
        example_ = store_.arena.template take<Index>(o.batch, who);
    }
    ConcatenatedSoftmax(const ConcatenatedSoftmax&) = delete;
    ConcatenatedSoftmax& operator=(const ConcatenatedSoftmax&) = delete;

    Parameter<T>& E() { return store_.parameters[0]; }  ///< the table [V, H]
    Parameter<T>& W() { return store_.parameters[1]; }  ///< the weights of the classes [M H, C]
    /// E and W as a parameter group for updates. Every divisor except `none` is the number of examples
    /// counted by all calls of value_and_gradient() since the gradients were cleared, as by a step.
    Parameters<T> parameters() { return {store_, {&E(), &W()}}; }
    const Options& options() const { return options_; }

    /// l in nats, without gradients.
    double value(std::span<const Token> X, std::span<const Token> y) { return run(X, y, false); }

    /// l in nats; adds its gradient to those of E and W.
    double value_and_gradient(std::span<const Token> X, std::span<const Token> y) { return run(X, y, true); }

    /// p_n for every example of X, into out [N, C].
    void probabilities(std::span<const Token> X, MatrixRef<T> out) {
        const Index N = std::ssize(X) / options_.words;
        if (out.rows != N || out.cols != options_.classes || out.transposed || !out.is_valid())
            fail("found room for [", out.rows, ", ", out.cols, "] probabilities of ", N, " examples");
        check(X, N, {});
        const BlasOnOneThread blas;
        const SubnormalsAreZero flush;
        const Index n = options_.words * options_.width;
        for (Index i = 0; i < N; ++i) gather(E(), X, i, phi_ + i * n);
        gemm<T>(T(1), {phi_, N, n}, W().values(), T(0), out);
        for (Index i = 0; i < N; ++i) {
            if (std::isnan(kernel::softmax(out.cols, out.row(i)))) refuse_not_finite(i);
        }
    }

private:
    template <class... Parts> [[noreturn]] static void fail(Parts... why) {
        throw UsageError("concatenated softmax: ", why...);
    }
    [[noreturn]] static void refuse_not_finite(Index example) {
        throw NumericError("concatenated softmax: example ", example,
                           " has logits or a loss that is not finite; ",
                           "return to finite weights, lower the learning rate");
    }
    /// Refuses batches of the wrong shape or range; y may be omitted.
    void check(std::span<const Token> X, Index N, std::span<const Token> y) const {
        const Index M = options_.words;
        if (std::ssize(X) != N * M || N > options_.batch)
            fail("found ", X.size(), " words for ", N, " examples, expected ", M, " for each of at most ",
                 options_.batch);
        for (Index i = 0; i < N * M; ++i)
            if (const Token v = X[i]; v < 0 || v >= options_.vocabulary)
                throw DataError("concatenated softmax: found token ", v, " in example ", i / M, ", word ",
                                i % M);
        for (Index i = 0; i < std::ssize(y); ++i)
            if (const Token c = y[i]; c != not_predicted && (c < 0 || c >= options_.classes))
                throw DataError("concatenated softmax: found class ", c, " of example ", i);
    }

    void gather(const Parameter<T>& E, std::span<const Token> X, Index example, T* phi) const {
        const Index M = options_.words, H = options_.width;
        for (Index m = 0; m < M; ++m) std::copy_n(E.value + X[example * M + m] * H, H, phi + m * H);
    }

    double run(std::span<const Token> X, std::span<const Token> y, bool gradient) {
        Parameter<T>&E = this->E(), &W = this->W();
        const Index M = options_.words, H = options_.width, C = options_.classes, n = M * H;
        check(X, std::ssize(y), y);
        const bool of_E = gradient && E.trained, of_W = gradient && W.trained;
        const BlasOnOneThread blas;
        const SubnormalsAreZero flush;
        Index count = 0;
        for (Index i = 0; i < std::ssize(y); ++i) {
            if (y[i] == not_predicted) continue;
            gather(E, X, i, phi_ + count * n);
            example_[count++] = i;
        }
        const Provenance pass{static_cast<double>(count), static_cast<double>(count), 1};
        if (of_E) E.add_pass(pass);
        if (of_W) W.add_pass(pass);
        double total = 0;
        for (Index first = 0; first < count; first += block_) {
            const Index rows = std::min(block_, count - first);
            const MatrixRef<T> phi(phi_ + first * n, rows, n), z(logits_, rows, C), b(back_, rows, n);
            gemm<T>(T(1), phi, W.values(), T(0), z);
            parallel(rows, 4, rows, [&](Index begin, Index end, Index) {
                for (Index r = begin; r < end; ++r)  // turns z into δ if gradients are required
                    nats_[r] = kernel::cross_entropy(C, z.row(r), y[example_[first + r]], 1, gradient);
            });
            for (Index r = 0; r < rows; ++r) {
                if (!std::isfinite(nats_[r])) {
                    if (gradient) {  // that of earlier blocks has been added
                        E.clear_gradient();
                        W.clear_gradient();
                    }
                    refuse_not_finite(example_[first + r]);
                }
                total += nats_[r];
            }
            if (of_W) {
                const T keep = W.begin_product();
                gemm<T>(T(1), t(phi), z, keep, {W.gradient, n, C});
            }
            if (!of_E) continue;
            gemm<T>(T(1), z, t(W.values()), T(0), b);
            for (Index r = 0; r < rows; ++r)
                for (Index m = 0; m < M; ++m)
                    kernel::add(H, b.row(r) + m * H, E.gradient_row(X[example_[first + r] * M + m]));
        }
        return total;
    }

    Options options_;
    const std::shared_ptr<graph::Store<T>> shared_store_ = std::make_shared<graph::Store<T>>();
    graph::Store<T>& store_ = *shared_store_;  // groups of parameters keep it alive
    Index block_ = 1;                          // rows of logits at a time
    T* logits_ = nullptr;                      // [block, C]: z, then δ
    T* phi_ = nullptr;                         // [N, M H]
    T* back_ = nullptr;                        // [block, M H]: b
    double* nats_ = nullptr;                   // [block]
    Index* example_ = nullptr;                 // [N]: the example of each row
};

}}  // namespace isogloss
