/// @file loss/cross_entropy.hpp  The negative log-likelihood of the next token.
#pragma once

#include <array>
#include <isogloss/loss/softmax_loss.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// l = Σ -log softmax(o_t)[y_t], in nats, over all positions with a target.
///
/// Shapes    o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted
/// Options   adversarial  ε, at least 0 and below 1, default 0: in training passes every vector of a target is moved by
///                        ε times its length to where the loss is largest, by δ = -ε ‖e_y‖ h / ‖h‖, so that o_t[y_t]
///                        becomes <e_y, h> + b_y - ε ‖e_y‖ ‖h‖. The loss and its cross-entropy of these passes are of
///                        that; evaluation has no such term. Published: 0.005 from the start, 0.028 to fine-tune
/// Gradient  ∂l/∂o_t = softmax(o_t) - 1_{y_t}; through the lowered logit also, with g = p_y - 1,
///           h += g δ and e_y -= g ε ‖h‖ e_y / ‖e_y‖, see FusedSoftmax
/// Modulus   Φ(h_i) = Var_{p}(w_i): the Fisher norm of the effect of h_i on the prediction, without δ
/// Errors    vocabularies of o and y differ; option out of range
/// Source    Inan, Khosravi, Socher 2017, eqs. (2.3)-(2.4); δ: Wang, Gong, Liu 2019, "Improving neural language
///           modeling via adversarial training", and its code.
///           Departure: the code holds δ constant in the backward pass, which leaves the gradient of h as it is but
///           lacks that of e_y through ‖e_y‖; and it moves only targets whose vector has a positive product with h.
template <class T> struct CrossEntropy : SoftmaxLoss<T, CrossEntropy> {
    struct Options {
        double adversarial = 0;
    };
    Options options;

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        s.require("adversarial", options.adversarial, 0, Exclusive{1});
        this->head.adversarial = options.adversarial;
        return SoftmaxLoss<T, CrossEntropy>::setup(s, o, y);
    }
    void forward(Forward<T>& p) { p.set_cross_entropy(this->l, SoftmaxLoss<T, CrossEntropy>::forward(p)); }
    double row(const LogitRow<T>& r) const {
        return kernel::cross_entropy(r.vocabulary, r.z, r.target, r.upstream, r.gradient);
    }
    std::array<FisherTerm, 1> fisher() const { return {FisherTerm{}}; }
};

}}  // namespace isogloss
