/// @file loss/softmax_loss.hpp  Base of softmax losses: a loss defines only its cost of a row.
#pragma once

#include <isogloss/loss/fused_softmax.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// One row of logits passed to a loss.
template <class T> struct LogitRow {
    T* z;              ///< [vocabulary]: logits on entry; if `gradient`, upstream · d l / d z on exit
    Index vocabulary;  ///< V
    Token target;      ///< 0 … V-1
    Index position;    ///< t·B + b
    double upstream;   ///< factor of the derivative: the weight of this loss in the requested one
    bool gradient;     ///< whether the derivative is wanted; if not, z is unspecified on exit
};

namespace detail {
/// What a loss with a fisher() publishes for the metric of its head.
struct HeadLoss {
    int logits = -1, loss = -1, targets = -1;  ///< their numbers in the graph
    std::vector<FisherTerm> terms = {};
    int soft_targets = -1;  ///< the table of which they are made, where the loss uses one beside its head's
};
}  // namespace detail

/// A node for any loss l = Σ_t l_t(o_t, y_t) over lazy logits. The loss defines the cost of a row:
///
///     template <class T> struct WeightedLoss : SoftmaxLoss<T, WeightedLoss> {  // l_t = -w log p_t(y_t)
///         struct Options { std::vector<double> weights; };
///         Options options;
///         double row(const LogitRow<T>& r) const {
///             const double w = options.weights[std::size_t(r.target)];
///             return w * kernel::cross_entropy(r.vocabulary, r.z, r.target, w * r.upstream, r.gradient);
///         }
///     };
///
/// row() returns the loss of the row and is called by several threads at once. Positions without a target
/// are skipped and count 0.
///
/// Options are checked in a `setup` of the loss that ends by calling this one. With
/// `std::array<FisherTerm, K> fisher() const` the loss also has a modulus; without it the node trains by
/// gradient, and a request for moduli is an error that names it. A loss that needs blocks rather than rows
/// replaces `rows`, see FusedSoftmax.
///
/// Shapes   o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted
/// Errors   vocabularies of o and y differ
template <class T, template <class> class Own> class SoftmaxLoss {
public:
    FusedSoftmax<T> head;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        l = head.setup(s, o, y);
        publish(s, o, y);
        return l;
    }

    /// Returns the loss, summed over the positions.
    double forward(Forward<T>& p) {
        double* by_token = p.by_token(l);
        std::fill_n(by_token, p.rows(), 0.0);
        const Index count = head.forward(p, [&](LogitBlock<T>& block) { own().rows(p, block); });
        double total = 0;
        for (Index r = 0; r < p.rows(); ++r) total += by_token[r];
        p.set(l, total, count);
        return total;
    }

    // `Self` is Own<T>: here clang 14 finds members of a template parameter, but not those of a base.
    template <class Quantity, class Self = Own<T>>
    void backward(Backward<T, Quantity>& p) requires(Backward<T, Quantity>::is_gradient ||
                                                     requires(const Self& loss) {
                                                         std::span<const FisherTerm>{loss.fisher()};
                                                     }) {
        if constexpr (Backward<T, Quantity>::is_gradient)
            head.backward(p, [&](LogitBlock<T>& block) { own().rows(p, block); });
        else head.modulus(p, own().fisher());
    }

    /// A block of rows: their losses go to p.by_token(l), their derivatives replace the logits.
    void rows(const Pass<T>& p, LogitBlock<T>& block) {
        static_assert(
            requires(const Own<T>& loss, const LogitRow<T>& r) { double(loss.row(r)); },
            "isogloss: a SoftmaxLoss needs `double row(const LogitRow<T>&) const`");
        parallel(block.z.rows, 4, block.z.rows, [&](Index first, Index last, Index) {
            for (Index r = first; r < last; ++r)
                p.by_token(l)[block.position[r]] =
                    std::as_const(own()).row({block.z.row(r), block.z.cols, block.target[r],
                                              block.position[r], p.upstream(l), block.gradient});
        });
    }

protected:
    /// Called at the end of a setup, when the weights of the terms are known.
    template <class Self = Own<T>>
    void publish(Setup<T>& s, Logits<T> o, Tokens y, Weight<T> soft_targets = {}) const {
        if constexpr (requires(const Self& loss) { std::span<const FisherTerm>{loss.fisher()}; }) {
            const auto terms = static_cast<const Self&>(*this).fisher();
            s.publish(detail::HeadLoss{o.id, l.id, y.id, {terms.begin(), terms.end()}, soft_targets.id});
        }
    }

private:
    Own<T>& own() { return static_cast<Own<T>&>(*this); }
};

}}  // namespace isogloss
