/// @file loss/augmented.hpp  Cross-entropy plus a soft target computed from the embedding table.
#pragma once

#include <isogloss/elementary.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <numeric>
#include <optional>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Augmented loss: a wrong word close to the right one costs less. Cross-entropy plus a soft target, in which words with
/// vectors similar to that of the right word have a share.
///
///     l = Σ_t  a · -log softmax(o_t)[y_t]  +  c · KL(ỹ_t ‖ p̃_t)
///     ỹ_t = softmax(E e_{y_t} / τ),   p̃_t = softmax(o_t / τ)
///
/// with a = 1, c = α = γ τ, or, for the mixture of eq. (6.1), a = 1 - β, c = β τ² V.
///
/// Shapes    o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted;
///           E [V, n], row e_i is word i. E is the head's table where that is an embedding (TiedSoftmax);
///           for a head with a matrix of its own pass the embedding table as the third input
/// Options   alpha        weight of the soft term, ≥ 0
///           gamma        sets α = γ τ, ≥ 0; default 0.65 if none of the three is set
///           beta         weight of the mixture (6.1), 0 to 1; set at most one of alpha, gamma, beta
///           temperature  τ, 1e-30 to 1e30, default 20; c/τ is at most 1e30. Begin with γ = 0.65 and τ = 10: on the
///                        Penn Treebank 10 was better than the source's 20
///           differentiate_target  default true: the gradient flows through ỹ into E too; false: ỹ is held
///                        constant, which with a tied table can diverge, see docs/loss/augmented.md.
///                        If E is not trained, ỹ is constant in any case
///           adversarial  ε, at least 0 and below 1, default 0: lowers o_t[y_t] in training passes, in both softmaxes,
///                        as in CrossEntropy
/// Gradient  ∂l/∂o = a (p - 1_y) + (c / τ) (p̃ - ỹ). Through the target, with s_i = <e_y, e_i>:
///           ∂l/∂s_i = (c / τ) ỹ_i (log(ỹ_i / p̃_i) - KL), and hence
///           e_i += ∂l/∂s_i e_y,  e_y += Σ_i ∂l/∂s_i e_i
/// Modulus   Φ(h_i) = a Var_p(w_i) + (c / τ²) Var_p̃(w_i); the target is held fixed
/// Cost      rows are sorted by target, and each distinct target of a block adds one row to the head's
///           products, or to such products of E: to that of the logits and, with the gradient through ỹ, to
///           both of the gradient
/// Errors    vocabularies differ; E does not have V rows; options out of range
/// Source    Inan, Khosravi, Socher 2017, eqs. (3.1)-(3.7), (6.1), which do not say whether the
///           gradient flows through ỹ.
///           Departure: where the head has a bias it is part of o in both softmaxes.
template <class T> struct AugmentedLoss : SoftmaxLoss<T, AugmentedLoss> {
    using Base = SoftmaxLoss<T, AugmentedLoss>;
    using Base::head, Base::l;

    struct Options {
        std::optional<double> alpha = {};
        std::optional<double> gamma = {};
        std::optional<double> beta = {};
        double temperature = 20;
        bool differentiate_target = true;
        double adversarial = 0;
    };
    Options options;
    Weight<T> E;
    double hard = 1, soft = 0;  // a and c

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        const Weight<T> table = s.table(o);
        if (!s.is_looked_up(table))
            s.fail("the head's matrix '", s.name_of(table),
                   "' is no embedding table; pass that as third input");
        return setup(s, o, y, table);
    }

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y, Weight<T> table) {
        weigh(s, o.vocabulary);
        s.require("adversarial", options.adversarial, 0, Exclusive{1});
        head.adversarial = options.adversarial;
        E = table;
        const Index V = o.vocabulary;
        row_count_ = std::clamp<Index>(s.budget(s.table(o)) / (V * Index{sizeof(T)}) / 8, 1, most_rows);
        const bool through = options.differentiate_target && s.has_gradient(E);
        l = head.setup(s, o, y, {E, through}, [&](BlockMemory<T>& memory, Index rows) {
            memory.take(shift_, rows), memory.take(target_max_, rows);
            memory.take(target_sum_, rows), memory.take(target_entropy_, rows);
            if (through) memory.take(differences_, rows * V);
            memory.take(rows_, row_count_ * V);
            memory.take(surprise_, s.capacity().time * s.capacity().batch);
        });
        this->publish(s, o, y, through && !(E == s.table(o)) ? E : Weight<T>{});
        return l;
    }

    void forward(Forward<T>& p) {
        std::fill_n(surprise_, p.rows(), 0.0);
        Base::forward(p);
        p.set_cross_entropy(l, std::accumulate(surprise_, surprise_ + p.rows(), 0.0));
    }

    std::array<FisherTerm, 2> fisher() const {
        const double inverse = 1 / options.temperature;
        return {{{hard, 1}, {soft * inverse * inverse, inverse}}};
    }

    /// A block of rows, see SoftmaxLoss.
    void rows(Pass<T>& p, LogitBlock<T>& block) {
        if (block.word_gradient) differences(block);
        soft_targets(block);
        const double upstream = p.upstream(l), tau = options.temperature;
        double* by_token = p.by_token(l);
        const Index V = block.z.cols;
        parallel(block.z.rows, 4, row_count_, [&](Index first, Index last, Index piece) {
            T* soft_row = rows_ + piece * V;
            for (Index r = first; r < last; ++r) {
                T* z = block.z.row(r);
                const Token y = block.target[r];
                const Index g = block.group[r];
                const T* e = block.s.row(g);
                const T m = kernel::row_max(V, z);
                const double of_target = double(z[y]) - double(m);
                const auto s = kernel::exp_two_temperatures(V, z, m, static_cast<T>(1 / tau), e, soft_row);
                double divergence =
                    target_entropy_[g] - s.cross / target_sum_[g] + kernel::elementary::log(s.soft_sum);
                if (careful_ && divergence < 0.1)  // else its rounding is small beside it
                    if (const double sum = kernel::divergence(V, e, target_sum_[g], soft_row, s.soft_sum);
                        std::isfinite(sum))
                        divergence = sum;
                const double surprise = surprise_[block.position[r]] =
                    kernel::elementary::log(s.sum) - of_target;
                by_token[block.position[r]] = hard * surprise + soft * divergence;
                if (!block.gradient) continue;
                shift_[r] = (double(m) - double(target_max_[g])) / tau +
                            kernel::elementary::log(s.soft_sum / target_sum_[g]) - divergence;
                const double c = upstream * soft / tau;
                kernel::combine(V, static_cast<T>(upstream * hard / s.sum), z, static_cast<T>(c / s.soft_sum),
                                soft_row, static_cast<T>(-c / target_sum_[g]), e);
                z[y] -= static_cast<T>(upstream * hard);
            }
        });
        if (block.word_gradient) through_target(p, block);
    }

private:
    void weigh(Setup<T>& s, Index vocabulary) {
        const double tau = options.temperature;
        s.require("temperature", tau, 1e-30, 1e30);
        if (options.alpha.has_value() + options.gamma.has_value() + options.beta.has_value() > 1)
            s.fail("found more than one of alpha, gamma and beta");
        if (options.beta) {
            const double beta = *options.beta;
            s.require("beta", beta, 0, 1);
            hard = 1 - beta;
            soft = beta * tau * tau * static_cast<double>(vocabulary);
        } else if (options.alpha) {
            soft = *options.alpha;
            s.require("alpha", soft, 0);
        } else {
            const double gamma = options.gamma.value_or(0.65);
            s.require("gamma", gamma, 0);
            soft = gamma * tau;
        }
        s.require("the weight of the soft term / temperature", soft / tau, 0, 1e30);
        // As a difference of logarithms the divergence has an error of some roundings of T.
        careful_ = soft * double(std::numeric_limits<T>::epsilon()) > 1e-5;
    }

    // For each word, n s - Σ z over its n rows, before the logits are overwritten: all that the derivative
    // through the target needs of them. Parallel over columns, since one word may have most of the rows.
    void differences(const LogitBlock<T>& block) {
        const Index V = block.z.cols;
        parallel(V, 256, V, [&](Index first, Index last, Index) {
            for (Index g = 0, r = 0, end; g < block.s.rows; ++g, r = end) {
                for (end = r; end < block.z.rows && block.group[end] == g;) ++end;
                kernel::sum_of_differences(first, last, end - r, block.s.row(g), block.z.row(r), V,
                                           differences_ + g * V);
            }
        });
    }

    // Soft targets of the words: e = exp((s - max) / τ) in place of s, its sum and Σ ỹ log ỹ.
    void soft_targets(const LogitBlock<T>& block) {
        const Index V = block.z.cols;
        const T inverse = static_cast<T>(1 / options.temperature);
        parallel(block.s.rows, 4, block.s.rows, [&](Index first, Index last, Index) {
            for (Index g = first; g < last; ++g) {
                T* row = block.s.row(g);
                const T m = target_max_[g] = kernel::row_max(V, row);
                double cross = 0;
                target_sum_[g] = kernel::exp_sum_and_cross(V, row, m, inverse, cross);
                target_entropy_[g] = cross / target_sum_[g] - kernel::elementary::log(target_sum_[g]);
            }
        });
    }

    // The derivative through ỹ. For a word of n rows, with D = n s - Σ z,
    //     dl/ds = (c / τ) ỹ Σ_r (log(ỹ / p̃_r) - KL_r) = (c / τ) ỹ (D / τ + Σ_r shift_r),
    // which overwrites e; the head then adds (dl/ds)ᵀ U to the gradient of E and (dl/ds)_g E to that of e_g.
    void through_target(Pass<T>& p, LogitBlock<T>& block) {
        const Index V = block.z.cols;
        const double tau = options.temperature, scale = p.upstream(l) * soft / tau;
        for (Index g = 0; g < block.s.rows; ++g) target_entropy_[g] = 0;  // reused for Σ shift
        for (Index r = 0; r < block.z.rows; ++r) target_entropy_[block.group[r]] += shift_[r];
        parallel(block.s.rows, 4, block.s.rows, [&](Index first, Index last, Index) {
            for (Index g = first; g < last; ++g)
                kernel::through_softmax(V, static_cast<T>(scale / target_sum_[g]), block.s.row(g),
                                        static_cast<T>(1 / tau), differences_ + g * V,
                                        static_cast<T>(target_entropy_[g]));
        });
    }

    // Threads that share the rows of a block; each has a row of its own, of rows_ [row_count_, V].
    static constexpr Index most_rows = 16;
    Index row_count_ = 1;
    T *rows_ = nullptr, *target_max_ = nullptr;
    T* differences_ = nullptr;  // [words, V]
    bool careful_ = false;  // the weight is so large that the rounding of a difference would show in the loss
    double *target_sum_ = nullptr, *target_entropy_ = nullptr, *shift_ = nullptr;
    double* surprise_ = nullptr;  // -log p(y_t) of every position [T, B]
};

}}  // namespace isogloss
