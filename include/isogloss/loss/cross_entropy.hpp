/// @file loss/cross_entropy.hpp  The negative log-likelihood of the next token.
#pragma once

#include <isogloss/loss/fused_softmax.hpp>

namespace isogloss {

/// l = Σ -log softmax(o_t)[y_t], in nats, over all positions with a target.
///
/// Shapes    o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted
/// Gradient  ∂l/∂o_t = softmax(o_t) - 1_{y_t}
/// Modulus   Φ(h_i) = Var_{p}(w_i): the Fisher norm of the effect of h_i on the prediction
/// Errors    vocabularies of o and y differ
/// Source    Inan, Khosravi, Socher 2017, eqs. (2.3)-(2.4).
template <class T> struct CrossEntropy {
    struct Options {};
    Options options;
    FusedSoftmax<T> head;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        head.setup(s, o, y);
        return l = s.loss();
    }

    void forward(Forward<T>& p) {
        double* by_token = p.by_token(l);
        std::fill_n(by_token, p.rows(), 0.0);
        const Index count = head.forward(p, l, [&](LogitBlock<T>& block) { rows(p, block); });
        double total = 0;
        for (Index r = 0; r < p.rows(); ++r) total += by_token[r];
        p.set(l, total, count);
        p.set_cross_entropy(l, total);
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if constexpr (Backward<T, Quantity>::is_gradient)
            head.backward(p, l, [&](LogitBlock<T>& block) { rows(p, block); });
        else
            head.modulus(p, 1, [&](LogitBlock<T>& block, int) {
                for (Index r = 0; r < block.z.rows; ++r) {
                    T* z = block.z.row(r);
                    kernel::scale(
                        block.z.cols,
                        static_cast<T>(
                            1 / kernel::exp_sum(block.z.cols, z, kernel::row_max(block.z.cols, z), T(1), z)),
                        z);
                }
                return std::abs(p.upstream(l));
            });
    }

private:
    void rows(const Pass<T>& p, LogitBlock<T>& block) const {
        const double seed = p.upstream(l);
        double* by_token = p.by_token(l);
        const Index V = block.z.cols;
        parallel(block.z.rows, 4, block.z.rows, [&](Index first, Index last, Index) {
            for (Index r = first; r < last; ++r) {
                T* z = block.z.row(r);
                const Token y = block.target[r];
                const T m = kernel::row_max(V, z);
                const double of_target = double(z[y]) - double(m);
                const double sum = kernel::exp_sum(V, z, m, T(1), block.gradient ? z : nullptr);
                by_token[block.position[r]] = std::log(sum) - of_target;
                if (!block.gradient) continue;
                kernel::scale(V, static_cast<T>(seed / sum), z);
                z[y] -= static_cast<T>(seed);
            }
        });
    }
};

}  // namespace isogloss
