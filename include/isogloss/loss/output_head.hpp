/// @file loss/output_head.hpp  The machine under every softmax loss: logits block by block.
#pragma once

#include <algorithm>
#include <array>
#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/softmax.hpp>

namespace isogloss {

/// Rows of logits on their way through a loss. Row r belongs to position `position[r]` (t·B + b), whose
/// target is `target[r]`.
template <class T> struct LogitBlock {
    MatrixRef<T> z;  ///< [rows, V]: logits on entry; where `gradient`, d l / d z on exit
    const Token* target = nullptr;
    const Index* position = nullptr;
    bool gradient = false;  ///< whether the derivative is wanted
};

/// Runs a loss over lazy logits: product, loss and both gradients for one block of rows after another, so
/// that logits never exist as a [T·B, V] array. For own losses as well as the library's.
///
/// A block takes `arrays` · V · sizeof(T) bytes a row within the graph's budget (at least one row);
/// besides, a few arrays of the size of the hidden states [T·B, n] are held. Positions that are not predicted
/// cost nothing.
///
/// In a training pass whose loss is asked for, the forward pass computes dl/dz while the logits are at
/// hand and goes on to both products, with the table's gradient kept as provisional (see Parameter) until
/// backward confirms it: three products in all. Where a gradient already counts (several losses on one
/// table, or no update since the last backward) and in evaluation, backward computes the logits again.
template <class T> class OutputHead {
public:
    /// `arrays`: how many [rows, V] arrays the loss needs, its logits included; the others come from
    /// extra(). `sorted`: rows come sorted by target, so that equal targets are neighbours.
    void setup(Setup<T>& s, Logits<T> o, Tokens y, Index arrays = 1, bool sorted = false) {
        if (y.vocabulary != o.vocabulary)
            s.fail(text("the logits have a vocabulary of ", o.vocabulary, " but the targets '", s.name_of(y),
                        "' one of ", y.vocabulary, "; they must agree"));
        logits_ = o;
        targets_ = y;
        hidden_ = s.hidden(o);
        sorted_ = sorted;
        const Index capacity = s.capacity().time * s.capacity().batch,
                    row = arrays * o.vocabulary * Index{sizeof(T)};
        block_rows_ = std::clamp<Index>(s.budget() / row, 1, capacity);
        blocks_ = s.scratch(arrays * block_rows_ * o.vocabulary);
        packed_ = s.scratch(capacity * hidden_.width);
        adjoint_ = s.scratch(capacity * hidden_.width);
        order_ = s.template scratch<Index>(capacity);
        sorted_targets_ = s.template scratch<Token>(capacity);
        squares_ = s.scratch((tile + 2 * block_rows_) * hidden_.width);
    }

    /// Most rows of one block.
    Index block_rows() const { return block_rows_; }
    /// Array number k ≥ 1 of a block, [block_rows, V].
    T* extra(Index k) const { return blocks_ + k * block_rows_ * logits_.vocabulary; }
    /// A further weight that the loss differentiates (besides the head's table and bias).
    void also_writes(Weight<T> w) { also_ = w.id; }

    /// Calls f(LogitBlock<T>&) for every block; f puts the loss of each row where it belongs and, where
    /// block.gradient is set, d l / d z times p.seed(l) into block.z. Returns the number of predicted
    /// positions.
    template <class RowLoss> Index forward(Forward<T>& p, Loss<T> l, RowLoss&& f) {
        prepared_ = false;
        arrange(p);
        const auto& head = p.head(logits_);
        const auto free = [&](int id) {
            return id < 0 || p.parameter(id).condition == Parameter<T>::Condition::empty;
        };
        prepare_ = p.training() && p.seed(l) != 0 && free(head.table) && free(head.bias) && free(also_);
        run(p, prepare_, f);
        prepared_ = prepare_;
        return count_;
    }

    /// Adds what forward prepared, or computes it now.
    template <class RowLoss> void backward(Backward<T, Gradient>& p, Loss<T> l, RowLoss&& f) {
        if (p.seed(l) == 0 || count_ == 0) return;
        if (prepared_ && confirm(p)) {
            prepared_ = false;
        } else {
            prepare_ = false;
            run(p, true, f);
        }
        T* dh = p.adjoint_data(hidden_);
        const Index n = hidden_.width;
        for (Index r = 0; r < count_; ++r) kernel::add(n, adjoint_ + r * n, dh + order_[r] * n);
    }

    /// Φ(h_i) += Σ_k c_k Var_{p_k}(w_i), the Fisher norm of a change of h_i through its effect on the
    /// predictions: f(block, k) turns logits into the probabilities of distribution k < `distributions`
    /// and returns c_k ≥ 0.
    template <class Distribution> void modulus(Backward<T, Modulus>& p, int distributions, Distribution&& f) {
        const auto& head = p.head(logits_);
        const auto E = p.parameter(head.table).values();
        const Index n = hidden_.width, V = logits_.vocabulary;
        T* phi = p.adjoint_data(hidden_);
        for (Index first = 0; first < count_; first += block_rows_) {
            for (int k = 0; k < distributions; ++k) {
                LogitBlock<T> block = logits(p, first);
                const Index rows = block.z.rows;
                const double c = f(block, k);
                const MatrixRef<T> mean(squares_ + tile * n, rows, n), square(mean.row(rows), rows, n);
                gemm<T>(T(1), block.z, E, T(0), mean);
                for (Index v = 0; v < V; v += tile) {  // squares of a few table rows at a time
                    const Index some = std::min(tile, V - v);
                    for (Index i = 0; i < some * n; ++i) squares_[i] = E.row(v)[i] * E.row(v)[i];
                    gemm<T>(T(1), block.z.columns(v, some), {squares_, some, n}, v == 0 ? T(0) : T(1),
                            square);
                }
                for (Index r = 0; r < rows; ++r)
                    for (Index i = 0; i < n; ++i)
                        phi[order_[first + r] * n + i] +=
                            static_cast<T>(c) *
                            std::max(T(0), square.row(r)[i] - mean.row(r)[i] * mean.row(r)[i]);
            }
        }
    }

    /// The gradient of a weight within a run, as (matrix, beta): beta is 0 the first time in a run when
    /// nothing counts in it yet, else 1.
    std::pair<MatrixRef<T>, T> begin(Pass<T>& p, int id) {
        auto& w = p.parameter(id);
        T beta = 1;
        if (std::find(begun_.begin(), begun_.begin() + begun_count_, id) == begun_.begin() + begun_count_) {
            begun_[static_cast<std::size_t>(begun_count_++)] = id;
            if (prepare_) {
                w.condition = Parameter<T>::Condition::provisional;
                w.written_by = p.head(logits_).node;
                beta = 0;
            } else {
                beta = w.begin_product();
            }
        }
        return {{w.gradient, w.rows, w.cols}, beta};
    }

private:
    static constexpr Index tile = 64;

    // Which positions are predicted, in which order, and their hidden states one after the other.
    void arrange(Pass<T>& p) {
        const Token* y = p.data(targets_);
        count_ = 0;
        for (Index r = 0; r < p.rows(); ++r)
            if (y[r] >= 0) order_[count_++] = r;
        if (sorted_)
            std::sort(order_, order_ + count_,
                      [y](Index a, Index b) { return y[a] != y[b] ? y[a] < y[b] : a < b; });
        for (Index r = 0; r < count_; ++r) sorted_targets_[r] = y[order_[r]];
        const T* h = p.data(hidden_);
        in_place_ = !sorted_ && count_ == p.rows();
        if (in_place_) return;
        const Index n = hidden_.width;
        for (Index r = 0; r < count_; ++r) std::copy_n(h + order_[r] * n, n, packed_ + r * n);
    }

    MatrixRef<const T> rows_of_hidden(Pass<T>& p, Index first, Index rows) const {
        const Index n = hidden_.width;
        return {(in_place_ ? p.data(hidden_) : packed_) + first * n, rows, n};
    }

    LogitBlock<T> logits(Pass<T>& p, Index first) {
        const auto& head = p.head(logits_);
        const Index rows = std::min(block_rows_, count_ - first), V = logits_.vocabulary;
        LogitBlock<T> block{{blocks_, rows, V}, sorted_targets_ + first, order_ + first, false};
        T beta = 0;
        if (head.bias >= 0) {
            const T* b = p.parameter(head.bias).value;
            for (Index r = 0; r < rows; ++r) std::copy_n(b, V, block.z.row(r));
            beta = 1;
        }
        gemm<T>(T(1), rows_of_hidden(p, first, rows), t(p.parameter(head.table).values()), beta, block.z);
        return block;
    }

    template <class RowLoss> void run(Pass<T>& p, bool gradient, RowLoss& f) {
        const auto& head = p.head(logits_);
        const Index n = hidden_.width;
        begun_count_ = 0;
        for (Index first = 0; first < count_; first += block_rows_) {
            LogitBlock<T> block = logits(p, first);
            block.gradient = gradient;
            f(block);
            if (!gradient) continue;
            const Index rows = block.z.rows;
            gemm<T>(T(1), block.z, p.parameter(head.table).values(), T(0), {adjoint_ + first * n, rows, n});
            const auto [dE, beta] = begin(p, head.table);
            gemm<T>(T(1), t(block.z), rows_of_hidden(p, first, rows), beta, dE);
            if (head.bias < 0) continue;
            const auto [db, bias_beta] = begin(p, head.bias);
            if (bias_beta == T(0)) std::fill_n(db.data, db.cols, T(0));
            kernel::add_column_sums(rows, db.cols, block.z.data, db.data);
        }
    }

    // Turns the provisional gradients of the last forward run into ones that count.
    bool confirm(Pass<T>& p) {
        const auto mine = [&](int id) {
            const auto& w = p.parameter(id);
            return w.condition == Parameter<T>::Condition::provisional &&
                   w.written_by == p.head(logits_).node;
        };
        const auto begun_end = begun_.begin() + begun_count_;
        if (!std::all_of(begun_.begin(), begun_end, mine)) return false;
        std::for_each(begun_.begin(), begun_end,
                      [&](int id) { p.parameter(id).condition = Parameter<T>::Condition::dense; });
        return true;
    }

    Logits<T> logits_;
    Tokens targets_;
    Seq<T> hidden_;
    int also_ = -1;
    bool sorted_ = false, in_place_ = false, prepare_ = false, prepared_ = false;
    Index block_rows_ = 1, count_ = 0;
    std::array<int, 3> begun_{};
    Index begun_count_ = 0;
    T *blocks_ = nullptr, *packed_ = nullptr, *adjoint_ = nullptr, *squares_ = nullptr;
    Index* order_ = nullptr;
    Token* sorted_targets_ = nullptr;
};

}  // namespace isogloss
