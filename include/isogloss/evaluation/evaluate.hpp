/// @file evaluation/evaluate.hpp  The perplexity of a graph on a text, without affecting training.
#pragma once

#include <isogloss/evaluation/perplexity.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/text/batches.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Sets a graph to evaluation mode and zero states for its lifetime. The destructor, also after an exception,
/// restores the previous mode and carried states, so that training continues as if nothing had happened.
///
///     {
///         const Evaluation evaluation(g);
///         g.forward(…);
///     }
///
/// If nodes that carry a state were added meanwhile, all states start from zero.
template <class T> class [[nodiscard]] Evaluation {
public:
    explicit Evaluation(Graph<T>& g) : g_(g), training_(g.training()), states_(g.states().saved()) {
        g_.training(false);
        g_.reset();
    }
    ~Evaluation() {
        g_.training(training_);
        try {
            g_.states().restore(states_);
        } catch (const UsageError&) {
            g_.reset();
        }
    }
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;

private:
    Graph<T>& g_;
    bool training_;
    Carried<T> states_;
};

namespace detail {

/// The passes of all evaluations: within an Evaluation, a forward pass of the loss over each batch, and then
/// each(batch), which returns whether to go on.
template <class T, class Each>
void for_each_pass(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches& batches, Each&& each) {
    const Evaluation<T> evaluation(g);
    for (const auto& batch : batches) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        if (!each(batch)) return;
    }
}

}  // namespace detail

/// The perplexity of a text, within an Evaluation: from zero states, and with mode and states restored.
///
///     double value = evaluate(g, l, x, y, text.batches(g.capacity(), {.tail = Tail::pad})).value();
///
/// `l` is a loss that has a cross-entropy (CrossEntropy, AugmentedLoss): only that is counted, whatever else
/// its value includes. `x` and `y` are the tokens to which batches are fed, input and target. `go_on(done,
/// all)`, if given, is called after each batch; if it returns false, the rest is skipped. Throws what
/// Graph::forward does, and UsageError for a loss without a cross-entropy.
template <class T, class GoOn = NoCallback>
Perplexity evaluate(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches, GoOn&& go_on = {}) {
    Perplexity p;
    detail::for_each_pass(g, l, x, y, batches, [&](const text::Batch& batch) {
        p.add(g.result(l).cross_entropy(), g.result(l).predicted());
        return go_on(batch.index + 1, batches.count());
    });
    return p;
}

}}  // namespace isogloss
