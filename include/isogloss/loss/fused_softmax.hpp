/// @file loss/fused_softmax.hpp  The machine under every softmax loss: logits block by block.
#pragma once

#include <algorithm>
#include <array>
#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <thread>

namespace isogloss {

/// Rows of logits on their way through a loss. Row r belongs to position `position[r]` (t·B + b), whose
/// target is `target[r]`.
template <class T> struct LogitBlock {
    MatrixRef<T> z;  ///< [rows, V]: logits on entry; where `gradient`, d l / d z on exit
    const Token* target = nullptr;
    const Index* position = nullptr;
    bool gradient = false;  ///< whether the derivative is wanted

    // With HeadNeeds::sorted: the distinct targets of the rows, in order.
    Index words = 0;               ///< how many there are
    const Token* word = nullptr;   ///< [words]
    const Index* group = nullptr;  ///< [rows]: target[r] is word[group[r]]

    // With HeadNeeds::word_logits: the products of the table with its own rows `word`, without the bias.
    MatrixRef<T> s = {};  ///< [words, V]: E e_{word[g]} on entry; where `word_gradient`, d l / d s on exit
    bool word_gradient = false;  ///< set by the loss: `s` holds a derivative
};

/// What a loss needs of its output head besides the logits.
struct HeadNeeds {
    Index arrays = 1;     ///< [rows, V] arrays of a block, the logits included; the others come from extra()
    bool sorted = false;  ///< rows come sorted by target, so that equal targets are neighbours
    bool word_logits = false;    ///< the first extra array holds the table's products with its own rows, one
                                 ///< for each distinct target of a block; needs `sorted`
    Index bytes_a_row = 0;       ///< what the loss itself takes for every row of a block
    Index bytes_a_position = 0;  ///< and for every position [T, B]
    Index bytes = 0;             ///< and once
};

/// Runs a loss over lazy logits: product, loss and both gradients for one block of rows after another, so
/// that logits never exist as a [T·B, V] array. For own losses as well as the library's.
///
/// All that a loss holds, its own arrays included, stays within the graph's budget, down to a block of one
/// row, and takes more than 18 MiB only for blocks of up to 64 rows or beside a table of twice the size.
/// Positions that are not predicted cost nothing.
///
/// In a training pass whose loss is asked for, the forward pass computes dl/dz while the logits are at
/// hand and goes on to both products, a part of the vocabulary at a time, so that a part of dl/dz and of the
/// table is read from memory once. The table's gradient is kept as staged (see Parameter), and so is
/// that of the hidden states in their adjoint, until backward commits them: three products in all. Where a
/// gradient already counts (several losses on one table or on the same hidden states, or no update since the
/// last backward) and in evaluation, backward computes the logits again.
template <class T> class FusedSoftmax {
public:
    void setup(Setup<T>& s, Logits<T> o, Tokens y, HeadNeeds needs = {}) {
        if (y.vocabulary != o.vocabulary)
            s.fail(message("the logits have a vocabulary of ", o.vocabulary, " but the targets '",
                           s.name_of(y), "' one of ", y.vocabulary, "; they must agree"));
        logits_ = o;
        targets_ = y;
        hidden_ = s.hidden(o);
        sorted_ = needs.sorted || needs.word_logits;
        word_logits_ = needs.word_logits;
        // For the threads of later passes too, whose number may be set after the model is built.
        most_pieces_ =
            std::clamp<Index>(std::max<Index>(threads(), std::thread::hardware_concurrency()), 1, 16);
        const Index capacity = s.capacity().time * s.capacity().batch, n = hidden_.width;
        const Index of_position =
                        needs.bytes_a_position + Index{sizeof(Index) + sizeof(Token) + sizeof(double)},
                    rest = needs.bytes + capacity * of_position + 2 * tile * n * Index{sizeof(T)} +
                           16 * Arena::overhead,
                    of_word = sorted_ ? Index{sizeof(Token) + sizeof(Index)} : 0;
        arrays_ = needs.arrays;
        const auto bytes = [&](Index rows) {
            return pool(rows) * Index{sizeof(T)} + rows * (needs.bytes_a_row + of_word) + rest;
        };
        block_rows_ =
            std::clamp<Index>(s.budget() / (arrays_ * o.vocabulary * Index{sizeof(T)}), 1, capacity);
        const Index enough = std::max({bytes(std::min(block_rows_, enough_rows)), enough_bytes,
                                       o.vocabulary * n * Index{sizeof(T)} / 2});
        while (block_rows_ > 1 && bytes(block_rows_) > std::min(s.budget(), enough)) --block_rows_;
        pool_ = s.scratch(pool(block_rows_));
        squares_ = s.scratch(2 * tile * n);
        order_ = s.template scratch<Index>(capacity);
        sorted_targets_ = s.template scratch<Token>(capacity);
        words_ = s.template scratch<Token>(sorted_ ? block_rows_ : 0);
        groups_ = s.template scratch<Index>(sorted_ ? block_rows_ : 0);
    }

    /// Most rows of one block.
    Index block_rows() const { return block_rows_; }
    /// Array number k ≥ 1 of the block at hand, [rows, V].
    T* extra(Index k) const { return pool_ + k * rows_ * logits_.vocabulary; }
    /// A further weight that the loss differentiates (besides the head's table and bias).
    void also_writes(Weight<T> w) { also_ = w.id; }

    /// Calls f(LogitBlock<T>&) for every block; f puts the loss of each row where it belongs and, where
    /// block.gradient is set, d l / d z times p.upstream(l) into block.z. Returns the number of predicted
    /// positions.
    template <class RowLoss> Index forward(Forward<T>& p, Loss<T> l, RowLoss&& f) {
        staged_ = false;
        arrange(p);
        const auto& head = p.head(logits_);
        const auto free = [&](int id) {
            return id < 0 || p.parameter(id).condition == Parameter<T>::Condition::empty;
        };
        stage_ = p.training() && p.upstream(l) != 0 && free(head.table) && free(head.bias) && free(also_);
        T* dh = stage_ ? p.stage_adjoint(hidden_) : nullptr;
        stage_ = dh != nullptr;
        run(p, dh, f);
        staged_ = stage_;
        return count_;
    }

    /// Adds what forward staged, or computes it now.
    template <class RowLoss> void backward(Backward<T, Gradient>& p, Loss<T> l, RowLoss&& f) {
        if (p.upstream(l) == 0 || count_ == 0) return;
        if (std::exchange(staged_, false) && p.commit(hidden_)) {
            if (commit_weights(p)) return;
            p.discard(hidden_);
        }
        stage_ = false;
        run(p, p.adjoint_data(hidden_), f);
    }

    /// Φ(h_i) += Σ_k c_k Var_{p_k}(w_i), the Fisher norm of a change of h_i through its effect on the
    /// predictions: f(block, k) turns logits into the probabilities of distribution k < `distributions`
    /// and returns c_k ≥ 0.
    template <class Distribution> void modulus(Backward<T, Modulus>& p, int distributions, Distribution&& f) {
        const auto& head = p.head(logits_);
        const auto E = p.parameter(head.table).values();
        const Index n = hidden_.width, V = logits_.vocabulary;
        T* phi = p.adjoint_data(hidden_);
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = std::min(tile, rows_at(first));
            for (int k = 0; k < distributions; ++k) {
                LogitBlock<T> block = at(p, first, rows);
                logits(p, block, false);
                const double c = f(block, k);
                const MatrixRef<T> mean(gathered(), rows, n), square(squares_ + tile * n, rows, n);
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
        if (std::find(written_.begin(), written_.begin() + written_count_, id) ==
            written_.begin() + written_count_) {
            written_[static_cast<std::size_t>(written_count_++)] = id;
            if (stage_) {
                w.condition = Parameter<T>::Condition::staged;
                w.staged_by = p.head(logits_).node;
                beta = 0;
            } else {
                beta = w.begin_product();
            }
        }
        return {{w.gradient, w.rows, w.cols}, beta};
    }

private:
    static constexpr Index tile = 64;  // rows of the table and of a block at a time, for a modulus
    // More rows than these, or more bytes, make a block hardly faster, unless the table is larger still.
    static constexpr Index enough_rows = 64, enough_bytes = Index{18} << 20;

    using Skinny = kernel::SkinnyGemm<T>;

    // The pool holds, for a block of so many rows: the arrays; the hidden states, where they do not lie
    // together, and the word vectors below them; for a few rows those packed, and dl/dh by each thread.
    Index grain() const { return word_logits_ ? std::max<Index>(1, Skinny::Micro::lanes / 2) : Skinny::Micro::lanes; }
    Index states(Index rows) const { return (word_logits_ ? 2 : 1) * rows; }
    bool few(Index states) const { return Skinny::Micro::wide && 1 < states && states <= Skinny::most_transposed; }
    // A block may have fewer word vectors than rows, and be of few rows for that.
    Index packed_size(Index rows) const {
        return Skinny::Micro::wide ? Skinny::size(std::min(states(rows), Skinny::most_transposed), hidden_.width) : 0;
    }
    Index pool(Index rows) const {
        const Index n = hidden_.width;
        return arrays_ * rows * logits_.vocabulary + states(rows) * n + packed_size(rows) +
               most_pieces_ * states(std::min(rows, Skinny::most(n))) * n;
    }
    T* gathered() const { return pool_ + arrays_ * rows_ * logits_.vocabulary; }
    T* packed() const { return gathered() + states(rows_) * hidden_.width; }
    T* partial() const { return packed() + packed_size(rows_); }

    // Which positions are predicted, and in which order.
    void arrange(Pass<T>& p) {
        const Token* y = p.data(targets_);
        count_ = 0;
        for (Index r = 0; r < p.rows(); ++r)
            if (y[r] >= 0) order_[count_++] = r;
        if (sorted_)
            std::sort(order_, order_ + count_,
                      [y](Index a, Index b) { return y[a] != y[b] ? y[a] < y[b] : a < b; });
        for (Index r = 0; r < count_; ++r) sorted_targets_[r] = y[order_[r]];
        in_place_ = !sorted_ && count_ == p.rows();
    }

    Index padded(Index rows) const { return (rows + grain() - 1) / grain() * grain(); }

    // Rows of the block at `first`: as many blocks as needed, as even as they can be, for a thin one costs a
    // pass over the whole table too; or one more, where that fills lane groups better.
    Index rows_at(Index first) const {
        constexpr Index pass = 24;  // rows that cost as much as passing over the table
        const Index left = count_ - first;
        Index best = 0, least = 0;
        for (const Index limit : {block_rows_, block_rows_ - block_rows_ % grain()}) {
            if (limit == 0) continue;
            const Index blocks = (left + limit - 1) / limit, even = (left + blocks - 1) / blocks,
                        rows = std::min({padded(even), limit, left}), whole = left / rows, rest = left % rows,
                        cost = whole * (padded(rows) + pass) + (rest > 0 ? padded(rest) + pass : 0);
            if (best == 0 || cost < least) best = rows, least = cost;
        }
        return best;
    }

    // A block without its logits; its hidden states, and below them its word vectors, are in `states_`.
    LogitBlock<T> at(Pass<T>& p, Index first, Index rows) {
        const Index n = hidden_.width, V = logits_.vocabulary;
        const T* h = p.data(hidden_);
        rows_ = rows;
        if (!in_place_)
            for (Index r = 0; r < rows; ++r) std::copy_n(h + order_[first + r] * n, n, gathered() + r * n);
        states_ = {in_place_ ? h + first * n : gathered(), rows, n};
        LogitBlock<T> block{
            .z = {pool_, rows, V}, .target = sorted_targets_ + first, .position = order_ + first};
        if (!sorted_) return block;
        block.word = words_, block.group = groups_;
        for (Index r = 0; r < rows; ++r) {
            if (r == 0 || block.target[r] != block.target[r - 1]) words_[block.words++] = block.target[r];
            groups_[r] = block.words - 1;
        }
        return block;
    }

    // Z = H Eᵀ + b and, where the loss wants it, S = U Eᵀ for the vectors U of the distinct targets, in the
    // rows below Z.
    void logits(Pass<T>& p, LogitBlock<T>& block, bool with_words) {
        const auto& head = p.head(logits_);
        const MatrixRef<const T> E = p.parameter(head.table).values();
        const Index n = hidden_.width, V = logits_.vocabulary;
        if (with_words) {
            block.s = {block.z.row(block.z.rows), block.words, V};
            for (Index g = 0; g < block.words; ++g)
                std::copy_n(E.row(block.word[g]), n, gathered() + (block.z.rows + g) * n);
            states_.rows += block.words;
        }
        const Index rows = states_.rows;
        const MatrixRef<const T> h = states_;
        const MatrixRef<T> z(block.z.data, rows, V);
        const T* b = head.bias >= 0 ? p.parameter(head.bias).value : nullptr;
        for (Index r = 0; b && r < rows; ++r)
            if (r < block.z.rows) std::copy_n(b, V, z.row(r));
            else std::fill_n(z.row(r), V, T(0));
        const T beta = b ? T(1) : T(0);
        if (!few(rows)) return gemm<T>(T(1), h, t(E), beta, z);
        Skinny::pack_left(h, packed());
        parallel(V, 16, V, [&](Index first, Index last, Index) {
            Skinny::product_transposed(packed(), E.rows_from(first, last - first), beta,
                                    z.columns(first, last - first));
        });
    }

    // The gradients of a block, from dl/dz and, below it, dl/ds: both go through the same two products.
    void gradients(Pass<T>& p, const LogitBlock<T>& block, T* dh) {
        const auto& head = p.head(logits_);
        const Index n = hidden_.width, V = logits_.vocabulary,
                    rows = block.z.rows + (block.word_gradient ? block.words : 0);
        const MatrixRef<const T> dl(block.z.data, rows, V), states(states_.data, rows, n);
        const auto [dE, beta] = begin(p, head.table);
        const MatrixRef<const T> E = p.parameter(head.table).values();
        Index pieces = 1;
        T* sums = gathered();
        if (rows > Skinny::most(n)) {
            gemm<T>(T(1), t(dl), states, beta, dE);
            gemm<T>(T(1), dl, E, T(0), {sums, rows, n});  // the states have served
        } else {
            constexpr Index part = 384;  // of dl/dz, that stays in the cache while both products read it
            pieces = piece_count(V, part, most_pieces_);
            sums = partial();
            parallel(
                V, part, most_pieces_, [&, dE = dE, beta = beta](Index first, Index last, Index piece) {
                    const MatrixRef<T> sum(sums + piece * rows * n, rows, n);
                    for (Index v = first, some; v < last; v += some) {
                        some = std::min(part, last - v);
                        const MatrixRef<const T> dz = dl.columns(v, some);
                        detail::multiply<T>(T(1), dz, E.rows_from(v, some), v == first ? T(0) : T(1), sum);
                        detail::gemm_serial<T>(T(1), t(dz), states, beta, dE.rows_from(v, some));
                    }
                });
        }
        for (Index r = 0; r < rows; ++r) {
            T* to = r < block.z.rows ? dh + block.position[r] * n : dE.row(block.word[r - block.z.rows]);
            for (Index piece = 0; piece < pieces; ++piece) kernel::add(n, sums + (piece * rows + r) * n, to);
        }
        if (head.bias < 0) return;
        const auto [db, bias_beta] = begin(p, head.bias);
        if (bias_beta == T(0)) std::fill_n(db.data, db.cols, T(0));
        kernel::add_column_sums(block.z.rows, db.cols, block.z.data, db.data);
    }

    // With dh the gradient is computed too and added to it, [T·B, n].
    template <class RowLoss> void run(Pass<T>& p, T* dh, RowLoss& f) {
        written_count_ = 0;
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = rows_at(first);
            LogitBlock<T> block = at(p, first, rows);
            block.gradient = dh != nullptr;
            logits(p, block, word_logits_);
            f(block);
            if (dh) gradients(p, block, dh);
        }
    }

    // Turns the staged gradients of the last forward run into ones that count.
    bool commit_weights(Pass<T>& p) {
        const auto mine = [&](int id) {
            const auto& w = p.parameter(id);
            return w.condition == Parameter<T>::Condition::staged && w.staged_by == p.head(logits_).node;
        };
        const auto written_end = written_.begin() + written_count_;
        if (!std::all_of(written_.begin(), written_end, mine)) return false;
        std::for_each(written_.begin(), written_end,
                      [&](int id) { p.parameter(id).condition = Parameter<T>::Condition::dense; });
        return true;
    }

    Logits<T> logits_;
    Tokens targets_;
    Seq<T> hidden_;
    MatrixRef<const T> states_;  // hidden states of the block at hand, and word vectors below them
    int also_ = -1;
    bool sorted_ = false, word_logits_ = false, in_place_ = false, stage_ = false, staged_ = false;
    Index arrays_ = 1, block_rows_ = 1, rows_ = 0, count_ = 0, most_pieces_ = 1;
    std::array<int, 3> written_{};
    Index written_count_ = 0;
    T *pool_ = nullptr, *squares_ = nullptr;
    Index* order_ = nullptr;
    Token *sorted_targets_ = nullptr, *words_ = nullptr;
    Index* groups_ = nullptr;
};

}  // namespace isogloss
