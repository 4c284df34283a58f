/// @file evaluation/evaluate_dynamically.hpp  The perplexity of a graph whose weights adapt to the text.
#pragma once

#include <algorithm>
#include <isogloss/evaluation/evaluate.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// What evaluate_dynamically() requires of an update: DynamicUpdate, or one of your own.
template <class U>
concept DynamicStep = requires(U& update) {
    update.step();     // moves the weights against their gradients
    update.restore();  // restores the original weights, and does not throw
};

namespace detail {

/// Reserves the gradients of a graph for an evaluation during its lifetime: throws UsageError if one counts at
/// the beginning, and leaves none at the end.
template <class T> class BorrowedGradients {
public:
    BorrowedGradients(const char* who, Graph<T>& g) : all_(g.parameters()) { all_.require_no_gradients(who); }
    ~BorrowedGradients() { clear(); }
    BorrowedGradients(const BorrowedGradients&) = delete;
    BorrowedGradients& operator=(const BorrowedGradients&) = delete;

    /// Clears also those of weights that no update moves.
    void clear() const { all_.clear_gradients(); }

private:
    Parameters<T> all_;
};

}  // namespace detail

/// The perplexity of a text under dynamic evaluation: each batch is predicted and counted, and then the weights
/// move by its gradient. Without dropout, from zero states, within an Evaluation; at the end, also after an
/// exception, weights, mode and states are restored, and no gradient counts.
///
///     DynamicUpdate update(g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.1, .decay = 0.001});
///     evaluate_dynamically(g, l, x, y, text.batches({.time = 5, .batch = 1}, {.predict_first = eos}), update);
///
/// The gradient is that of `l`; its cross-entropy is counted, see evaluate(). One batch is one segment, with as
/// many steps as in `batches`. `go_on(batch)` is called after the batch is counted, while the graph holds its
/// values, and before the weights move; if it returns false, the rest is skipped. Throws what Graph::forward
/// and the update do, and UsageError if a gradient already counts.
/// Source   Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models".
template <class T, DynamicStep Update, class GoOn = NoCallback>
Perplexity evaluate_dynamically(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches,
                                Update& update, GoOn&& go_on = {}) {
    struct Restore {
        Update& update;
        ~Restore() { update.restore(); }
    };
    const detail::BorrowedGradients<T> gradients("evaluate_dynamically", g);
    const Restore restore{update};
    Perplexity p;
    detail::for_each_pass(g, l, x, y, batches, [&](const text::Batch& batch) {
        p.add(g.result(l).cross_entropy(), g.result(l).predicted());
        if (!go_on(batch)) return false;
        g.backward(l);
        update.step();
        gradients.clear();
        return true;
    });
    return p;
}

/// Collects the gradient statistics of a trained model by which DynamicRule::rms divides: forward and backward
/// over the batches of a training text without dropout, and update.collect() after each. The mean square of a
/// gradient depends on the number of steps and columns of a batch; the paper's code uses 100 columns of as many
/// steps as a segment. Mode, states, gradients, `go_on` and errors as in evaluate_dynamically(); the weights do
/// not move.
template <class T, class Update, class GoOn = NoCallback>
void collect_mean_squares(Graph<T>& g, Loss<T> l, Tokens x, Tokens y, text::Batches batches, Update& update,
                          GoOn&& go_on = {}) {
    const detail::BorrowedGradients<T> gradients("collect_mean_squares", g);
    detail::for_each_pass(g, l, x, y, batches, [&](const text::Batch& batch) {
        g.backward(l);
        update.collect();
        gradients.clear();
        return go_on(batch);
    });
}

}}  // namespace isogloss
