/// @file metric/evaluate.hpp  The perplexity of a graph on a text, with training left as it was.
#pragma once

#include <isogloss/graph/graph.hpp>
#include <isogloss/metric/perplexity.hpp>
#include <isogloss/text/batches.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// While it lives a graph is in evaluation mode, from zero states. Its end, by an exception too, puts back
/// the mode and the carried states that it found, so that training goes on as if nothing had happened.
///
///     {
///         const Evaluation evaluation(g);
///         g.forward(…);
///     }
///
/// Where nodes that carry a state were added meanwhile, all states start from zero.
template <class T> class Evaluation {
public:
    explicit Evaluation(Graph<T>& g) : g_(g), training_(g.training()), states_(g.carried()) {
        g_.training(false);
        g_.reset();
    }
    ~Evaluation() {
        g_.training(training_);
        try {
            g_.carry(states_);
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

/// The perplexity of a text, within an Evaluation: from zero states, and with mode and states put back.
///
///     double value = evaluate(g, l, x, y, text.batches(g.capacity(), {.tail = Tail::pad})).value();
///
/// `l` is a loss that has a cross-entropy (CrossEntropy, AugmentedLoss): that is what counts, whatever else
/// is in its value. `x` and `y` are the tokens that batches are fed to, input and target. `go_on(done, all)`,
/// where given, is asked after each batch; where it says no, the rest is left out. Throws what Graph::forward
/// does, and UsageError for a loss without a cross-entropy.
template <class T, class GoOn>
Perplexity evaluate(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches, GoOn&& go_on) {
    const Evaluation<T> evaluation(g);
    Perplexity p;
    for (const auto& batch : batches) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        p.add(g.cross_entropy(l), g.predicted(l));
        if (!go_on(batch.index + 1, batches.count())) break;
    }
    return p;
}

template <class T>
Perplexity evaluate(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches) {  ///< see above
    return evaluate(g, l, x, y, std::move(batches), [](Index, Index) { return true; });
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
