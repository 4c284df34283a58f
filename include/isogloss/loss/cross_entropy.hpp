/// @file loss/cross_entropy.hpp  The negative log-likelihood of the next token.
#pragma once

#include <array>
#include <isogloss/loss/softmax_loss.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// l = Σ -log softmax(o_t)[y_t], in nats, over all positions with a target.
///
/// Shapes    o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted
/// Gradient  ∂l/∂o_t = softmax(o_t) - 1_{y_t}
/// Modulus   Φ(h_i) = Var_{p}(w_i): the Fisher norm of the effect of h_i on the prediction
/// Errors    vocabularies of o and y differ
/// Source    Inan, Khosravi, Socher 2017, eqs. (2.3)-(2.4).
template <class T> struct CrossEntropy : SoftmaxLoss<T, CrossEntropy> {
    struct Options {};
    Options options;

    void forward(Forward<T>& p) { p.set_cross_entropy(this->l, SoftmaxLoss<T, CrossEntropy>::forward(p)); }
    double row(const LogitRow<T>& r) const {
        return kernel::cross_entropy(r.vocabulary, r.z, r.target, r.upstream, r.gradient);
    }
    std::array<FisherTerm, 1> fisher() const { return {FisherTerm{}}; }
};

}}  // namespace isogloss
