/// @file metric/evaluate_dynamically.hpp  The perplexity of a graph whose weights follow the text.
#pragma once

#include <isogloss/metric/evaluate.hpp>
#include <utility>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// What evaluate_dynamically() asks of an update: DynamicUpdate, or one of your own.
template <class U>
concept DynamicStep = requires(U& update) {
    update.step();     // moves the weights against their gradients
    update.restore();  // puts back the weights that it found, and does not throw
};

namespace detail {

/// While it lives the gradients of a graph belong to an evaluation: none counts at the beginning, or it throws
/// UsageError, and none at the end.
template <class T> class BorrowedGradients {
public:
    BorrowedGradients(const char* who, Graph<T>& g) : all_(g.parameters()) { all_.require_no_gradients(who); }
    ~BorrowedGradients() { clear(); }
    BorrowedGradients(const BorrowedGradients&) = delete;
    BorrowedGradients& operator=(const BorrowedGradients&) = delete;

    /// Also those of weights that no update moves.
    void clear() const { all_.clear_gradients(); }

private:
    Parameters<T> all_;
};

}  // namespace detail

/// The perplexity of a text under dynamic evaluation: each batch is predicted and counted, then the weights
/// move by its gradient, then comes the next. Without dropout, from zero states, within an Evaluation; at the end, by
/// an exception too, weights, mode and states are those that it found, and no gradient counts.
///
///     DynamicUpdate update(g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0.001});
///     evaluate_dynamically(g, l, x, y, text.batches({.time = 5, .batch = 1}, {.predict_first = eos}), update);
///
/// The gradient is that of `l`; what is counted is its cross-entropy, see evaluate(). One batch is one segment,
/// of the steps that `batches` says. `go_on(batch)` is asked after the batch was counted, while the graph holds its
/// values, and before the weights move; where it says no, the rest is left out. Throws what Graph::forward and the
/// update do, and UsageError where a gradient already counts.
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models".
template <class T, DynamicStep Update, class GoOn>
Perplexity evaluate_dynamically(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches,
                                Update& update, GoOn&& go_on) {
    struct Restore {
        Update& update;
        ~Restore() { update.restore(); }
    };
    const detail::BorrowedGradients<T> gradients("evaluate_dynamically", g);
    const Restore restore{update};
    const Evaluation<T> evaluation(g);
    Perplexity p;
    for (const auto& batch : batches) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        p.add(g.cross_entropy(l), g.predicted(l));
        if (!go_on(batch)) break;
        g.backward(l);
        update.step();
        gradients.clear();
    }
    return p;
}

template <class T, DynamicStep Update> Perplexity evaluate_dynamically(Graph<T>& g, Loss<T> l, Tokens x,
                                                                       Tokens y, text::Batches batches,
                                                                       Update& update) {  ///< see above
    return evaluate_dynamically(g, l, x, y, std::move(batches), update,
                                [](const text::Batch&) { return true; });
}

/// The gradient statistics of a trained model that DynamicRule::rms divides by: forward and backward over the batches
/// of a training text without dropout, and update.collect() after each. The mean square of a gradient depends on how
/// many steps and columns a batch has; the paper's code takes 100 columns of as many steps as a segment. Mode, states,
/// gradients, `go_on` and errors as evaluate_dynamically(); the weights do not move.
template <class T, class Update, class GoOn> void collect_mean_squares(Graph<T>& g, Loss<T> l, Tokens x,
                                                                       Tokens y, text::Batches batches,
                                                                       Update& update, GoOn&& go_on) {
    const detail::BorrowedGradients<T> gradients("collect_mean_squares", g);
    const Evaluation<T> evaluation(g);
    for (const auto& batch : batches) {
        g.forward(l, {x, batch.input}, {y, batch.target});
        g.backward(l);
        update.collect();
        gradients.clear();
        if (!go_on(batch)) break;
    }
}

template <class T, class Update> void collect_mean_squares(Graph<T>& g, Loss<T> l, Tokens x, Tokens y,
                                                           text::Batches batches,
                                                           Update& update) {  ///< see above
    collect_mean_squares(g, l, x, y, std::move(batches), update, [](const text::Batch&) { return true; });
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
