/// @file loss/fused_softmax.hpp  Fused linear cross-entropy: head, softmax loss and both gradients by blocks.
#pragma once

#include <algorithm>
#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/loss/block_plan.hpp>
#include <isogloss/loss/packed_table.hpp>
#include <isogloss/loss/sparse_gradient.hpp>
#include <isogloss/loss/staged_gradient.hpp>
#include <span>
#include <utility>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A block of rows of logits passed to a loss. Row r belongs to position `position[r]` (t·B + b), whose
/// target is `target[r]`.
template <class T> struct LogitBlock {
    MatrixRef<T> z;  ///< [rows, V]: logits on entry; if `gradient`, d l / d z times upstream on exit
    const Token* target = nullptr;
    const Index* position = nullptr;
    bool gradient = false;  ///< whether the derivative is wanted

    // With HeadNeeds::word_logits: the distinct targets of the rows, in order,
    Index words = 0;               ///< how many there are
    const Token* word = nullptr;   ///< [words]
    const Index* group = nullptr;  ///< [rows]: target[r] is word[group[r]]

    // and the products of a table with its own rows `word`, without the bias.
    MatrixRef<T> s =
        {};  ///< [words, V]: E e_{word[g]} on entry; if `word_gradient`, d l / d s times upstream
    bool word_gradient = false;  ///< set by the loss: `s` holds a derivative (ignored for an untrained table)
};

/// A term c Var_p(w_i) of a loss's modulus, p = softmax(o / τ).
struct FisherTerm {
    double weight = 1;               ///< c ≥ 0
    double inverse_temperature = 1;  ///< 1/τ > 0
};

/// Fused linear cross-entropy, also called cut cross-entropy, for any softmax loss: product with the table,
/// loss and both gradient products, one block of rows at a time. The logits never exist as a [T·B, V] array.
///
/// All memory of a loss, its own arrays included, stays within the graph's budget, down to a block of one
/// row. Apart from a packed table, kept samples and what the loss itself needs whatever the block, it exceeds 18 MiB
/// only for blocks of up to 64 rows or where the table is at least twice as large.
/// Positions that are not predicted cost nothing.
///
/// In a training pass in which the loss is requested, forward computes dl/dz while the logits are available,
/// then both products, part of the vocabulary at a time, so that each part of dl/dz and of the table is read
/// from memory once: three products in all. The result is staged until backward commits it (StagedGradient).
/// Where a gradient already counts (the second of two softmax losses on one table or on the same hidden states, or
/// no update since the last backward) and in evaluation, backward recomputes the logits.
///
/// The product for a table's gradient is skipped if the table is not trained.
///
/// With GraphOptions::epsilon above 0 a training pass computes the gradient from a subset of the entries of
/// dl/dz: those of at least ε |upstream| and a sample of the others, see kernel::sample. The estimate is
/// unbiased, and sampling adds to a row of dl/dz a variance below ε Σ_v |dl/dz_v| |upstream|. The loss stays
/// exact. Blocks for which sampling would not pay, such as those of a flat prediction, use all entries.
///
/// A loss that treats one row at a time is written with SoftmaxLoss.
template <class T> class FusedSoftmax {
public:
    /// With HeadNeeds::word_logits `words` is the table [V, m] of those products, by default the head's; with
    /// HeadNeeds::word_gradient another one counts as also_writes().
    void setup(Setup<T>& s, Logits<T> o, Tokens y, HeadNeeds needs = {}, Weight<T> words = {}) {
        if (y.vocabulary != o.vocabulary)
            s.fail("the logits have a vocabulary of ", o.vocabulary, " but the targets '", s.name_of(y),
                   "' one of ", y.vocabulary, "; they must agree");
        if (needs.arrays < 1 + needs.word_logits)
            s.fail("found arrays = ", needs.arrays, ", expected at least ", 1 + needs.word_logits,
                   ": the logits",
                   needs.word_logits ? ", and with word_logits the products of the words" : "");
        logits_ = o;
        targets_ = y;
        hidden_ = s.hidden(o);
        words_.wanted = needs.word_logits;
        words_.table = words.id < 0 ? s.table(o) : words;
        words_.apart = words_.wanted && !(words_.table == s.table(o));
        words_.differentiated = words_.wanted && needs.word_gradient;
        if (words_.apart && words.rows != o.vocabulary)
            s.fail("the table '", s.name_of(words), "' has ", words.rows,
                   " rows, expected one per word: ", o.vocabulary);
        if (words_.apart && words_.differentiated) also_writes(s, words);
        const Index capacity = s.capacity().time * s.capacity().batch, n = hidden_.width;
        const Index budget = words_.apart ? s.budget(s.table(o), words) : s.budget(s.table(o));
        const double epsilon = s.epsilon();
        const Index waiting = epsilon > 0 ? SparseGradient<T>::waiting(capacity, epsilon, budget) : 0;
        if (words_.apart) {  // they take no part in the head's products
            needs.word_logits = false;
            needs.bytes_a_row += words.cols * Index{sizeof(T)} + Index{sizeof(Token) + sizeof(Index)};
        }
        if (epsilon > 0) {
            const Index copies =
                words_.differentiated ? 2 : 1;  // rows of dl/dz and dl/ds for a row of a block
            needs.bytes_a_row += copies * SparseGradient<T>::bytes_a_row(o.vocabulary, epsilon);
            needs.bytes_a_position += copies * SparseGradient<T>::bytes_a_position;
            needs.bytes += copies * SparseGradient<T>::bytes(o.vocabulary, waiting);
        }
        // Packs both tables if there is memory and it pays, else the one for which there is, the head's first.
        const auto plan = [&](Index packed) {
            HeadNeeds all = needs;
            all.bytes += packed;
            plan_ = {all, o.vocabulary, n, capacity, budget};
            return packed == 0 ||
                   PackedTable<T>::pays(s.precision(), plan_.rows(), plan_.states_of(plan_.rows()), capacity);
        };
        Index packed =
                  s.is_packed(s.table(o)) ? 0 : PackedTable<T>::bytes(s.precision(), o.vocabulary, n, budget),
              packed_words = words_.apart ? PackedTable<T>::bytes(s.precision(), o.vocabulary, words.cols,
                                                                  budget - packed / 5 * 8)
                                          : 0;
        if (!plan(packed + packed_words) && !plan(packed + (packed_words = 0))) plan(packed = 0);
        memory_.pool = s.scratch(plan_.size(plan_.rows()));
        table_.setup(s, packed);
        words_.packed.setup(s, packed_words);
        words_.vectors = s.scratch(words_.apart ? plan_.rows() * words.cols : 0);
        memory_.squares = s.scratch(2 * plan_.tile * n);
        memory_.order = s.template scratch<Index>(capacity);
        memory_.targets = s.template scratch<Token>(capacity);
        if (epsilon > 0) {
            sparse_.setup(s, plan_.rows(), capacity, o.vocabulary, epsilon, waiting);
            if (words_.differentiated)
                words_.sparse.setup(s, plan_.rows(), capacity, o.vocabulary, epsilon, waiting);
        }
        memory_.words = s.template scratch<Token>(words_.wanted ? plan_.rows() : 0);
        memory_.groups = s.template scratch<Index>(words_.wanted ? plan_.rows() : 0);
    }

    /// Maximum number of rows of a block.
    Index block_rows() const { return plan_.rows(); }
    /// Array number k ≥ 1 of the current block, [rows, V].
    T* extra(Index k) const { return memory_.pool + plan_.array(k, block_.rows); }
    /// Declares in setup a further weight that the loss differentiates (besides the head's table and bias); it may
    /// be one.
    void also_writes(Setup<T>& s, Weight<T> w) {
        if (also_.id >= 0 && !(also_ == w))
            s.fail("declares the weights '", s.name_of(also_), "' and '", s.name_of(w),
                   "' besides those of its head, expected one at most");
        also_ = w;
        s.uses(w);
    }
    /// The gradient of a weight, for use in f, as (matrix, beta): the caller adds to beta times the matrix,
    /// beta 0 or 1. Its data are null if the weight is not trained (Pass::is_trained) or absent.
    std::pair<MatrixRef<T>, T> weight_gradient(Pass<T>& p, Weight<T> w) {
        return w.id >= 0 && p.is_trained(w) ? staged_.weight(p, w) : std::pair<MatrixRef<T>, T>{};
    }

    /// Calls f(LogitBlock<T>&) for every block; f stores the loss of each row in its place and, if
    /// block.gradient is set, d l / d z times p.upstream(l) in block.z. Returns the number of predicted
    /// positions.
    template <class RowLoss> Index forward(Forward<T>& p, Loss<T> l, RowLoss&& f) {
        arrange(p);
        loss_ = l;
        const auto& head = p.head(logits_);
        run(p,
            staged_.stage(p, p.training() && p.upstream(l) != 0, head.node, hidden_,
                          {head.table, head.bias, also_}),
            f);
        return count_;
    }

    /// Commits the gradient staged by forward, or computes it now.
    template <class RowLoss> void backward(Backward<T, Gradient>& p, Loss<T> l, RowLoss&& f) {
        if (p.upstream(l) == 0 || count_ == 0 || staged_.commit(p)) return;
        run(p, p.adjoint_data(hidden_), f);
    }

    /// Φ(h_i) += |upstream| Σ_k c_k Var_{p_k}(w_i), the Fisher norm of a change of h_i through its effect on
    /// the predictions.
    void modulus(Backward<T, Modulus>& p, Loss<T> l, std::span<const FisherTerm> terms) {
        const auto E = p.parameter(p.head(logits_).table).values();
        const Index n = hidden_.width, V = logits_.vocabulary;
        T* phi = p.adjoint_data(hidden_);
        table_.pack(E, p.precision(), count_);
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = std::min(plan_.tile, plan_.next(count_ - first));
            for (const FisherTerm& term : terms) {
                LogitBlock<T> block = at(p, first, rows);
                compute_logits(p, block, false);
                for (Index r = 0; r < rows; ++r)
                    kernel::softmax(V, block.z.row(r), static_cast<T>(term.inverse_temperature));
                const MatrixRef<T> mean(states(), rows, n), square(memory_.squares + plan_.tile * n, rows, n);
                gemm<T>(T(1), block.z, E, T(0), mean);
                for (Index v = 0; v < V; v += plan_.tile) {  // squares of a few table rows at a time
                    const Index some = std::min(plan_.tile, V - v);
                    for (Index i = 0; i < some * n; ++i) memory_.squares[i] = E.row(v)[i] * E.row(v)[i];
                    gemm<T>(T(1), block.z.columns(v, some), {memory_.squares, some, n}, v == 0 ? T(0) : T(1),
                            square);
                }
                const T c = static_cast<T>(std::abs(p.upstream(l)) * term.weight);
                for (Index r = 0; r < rows; ++r)
                    for (Index i = 0; i < n; ++i)
                        phi[block.position[r] * n + i] +=
                            c * std::max(T(0), square.row(r)[i] - mean.row(r)[i] * mean.row(r)[i]);
            }
        }
    }

private:
    using Skinny = kernel::SkinnyGemm<T>;

    T* states() const { return memory_.pool + plan_.states(block_.rows); }

    // Which positions are predicted, and in which order.
    void arrange(Pass<T>& p) {
        const Token* y = p.data(targets_);
        Index* order = memory_.order;
        count_ = 0;
        for (Index r = 0; r < p.rows(); ++r)
            if (y[r] >= 0) order[count_++] = r;
        if (words_.wanted)
            std::sort(order, order + count_,
                      [y](Index a, Index b) { return y[a] != y[b] ? y[a] < y[b] : a < b; });
        for (Index r = 0; r < count_; ++r) memory_.targets[r] = y[order[r]];
        in_place_ = !words_.wanted && count_ == p.rows();
    }

    // Runs all blocks. With dh [T·B, n] the gradient is also computed and added to it.
    template <class RowLoss> void run(Pass<T>& p, T* dh, RowLoss& f) {
        if (count_ > 0) {
            table_.pack(p.parameter(p.head(logits_).table).values(), p.precision(), count_);
            if (words_.apart) words_.packed.pack(p.parameter(words_.table).values(), p.precision(), count_);
        }
        sparse_.clear(), words_.sparse.clear();
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = plan_.next(count_ - first);
            LogitBlock<T> block = at(p, first, rows);
            block.gradient = dh != nullptr;
            compute_logits(p, block, words_.wanted && !words_.apart);
            if (words_.apart) compute_word_logits(p, block);
            f(block);
            if (dh) gradients(p, block, dh);
            if (sparse_.full() || words_.sparse.full()) sparse_gradients(p, dh);
        }
        sparse_gradients(p, dh);
    }

    // A block without its logits; its hidden states, and below them its words of the same table, are in `block_.states`.
    LogitBlock<T> at(Pass<T>& p, Index first, Index rows) {
        const Index n = hidden_.width;
        const T* h = p.data(hidden_);
        block_.rows = rows;
        if (!in_place_)
            for (Index r = 0; r < rows; ++r)
                std::copy_n(h + memory_.order[first + r] * n, n, states() + r * n);
        block_.states = {in_place_ ? h + first * n : states(), rows, n};
        LogitBlock<T> block{.z = {memory_.pool, rows, logits_.vocabulary},
                            .target = memory_.targets + first,
                            .position = memory_.order + first};
        if (!words_.wanted) return block;
        block.word = memory_.words, block.group = memory_.groups;
        for (Index r = 0; r < rows; ++r) {
            if (r == 0 || block.target[r] != block.target[r - 1])
                memory_.words[block.words++] = block.target[r];
            memory_.groups[r] = block.words - 1;
        }
        return block;
    }

    // Z = H Eᵀ + b and, with words of the same table, S = U Eᵀ for the vectors U of the distinct targets, in the rows
    // below Z.
    void compute_logits(Pass<T>& p, LogitBlock<T>& block, bool with_words) {
        const auto& head = p.head(logits_);
        const MatrixRef<const T> E = p.parameter(head.table).values();
        const Index n = hidden_.width, V = logits_.vocabulary, rows = block.z.rows;
        if (with_words) {
            block.s = {block.z.row(rows), block.words, V};
            for (Index g = 0; g < block.words; ++g)
                std::copy_n(E.row(block.word[g]), n, states() + (rows + g) * n);
            block_.states.rows += block.words;
        }
        const T* const bias = head.bias.id >= 0 ? p.parameter(head.bias).value : nullptr;
        const MatrixRef<T> Z(block.z.data, block_.states.rows, V);
        if (table_.is_packed()) return table_.logits(block_.states, bias, Z, Z.rows - rows);
        graph::logits<T>(block_.states, E, bias, Z, memory_.pool + plan_.packed(rows), Z.rows - rows,
                         p.precision(), p.parameter(head.table).packed_transpose);
    }

    // S = U Eᵀ for words of a table of their own, likewise below Z.
    void compute_word_logits(Pass<T>& p, LogitBlock<T>& block) {
        const MatrixRef<const T> E = p.parameter(words_.table).values();
        const MatrixRef<T> U(words_.vectors, block.words, E.cols);
        for (Index g = 0; g < block.words; ++g) std::copy_n(E.row(block.word[g]), E.cols, U.row(g));
        block.s = {block.z.row(block.z.rows), block.words, block.z.cols};
        if (words_.packed.is_packed()) words_.packed.logits(U, nullptr, block.s, 0);
        else product<T>(p.precision(), U, t(E), T(0), block.s);
    }

    // The gradients of a block, from all entries of dl/dz and dl/ds or from a sample that waits for other blocks.
    void gradients(Pass<T>& p, const LogitBlock<T>& block, T* dh) {
        if (block.word_gradient && !words_.differentiated)
            throw UsageError("node '", p.name(),
                             "': found the gradient of a block's words, expected none without "
                             "HeadNeeds::word_gradient in setup");
        const bool words = block.word_gradient && p.is_trained(words_.table), below = words && !words_.apart;
        if (!sample(p, block, below)) dense_gradients(p, block, below, dh);
        if (words && words_.apart && !sample_words(p, block)) dense_word_gradients(p, block);
    }

    // From dl/dz and, below it, dl/ds if wanted: both go through the same two products.
    void dense_gradients(Pass<T>& p, const LogitBlock<T>& block, bool with_words, T* dh) {
        const auto& head = p.head(logits_);
        const Index n = hidden_.width, V = logits_.vocabulary,
                    rows = block.z.rows + (with_words ? block.words : 0);
        const MatrixRef<const T> dl(block.z.data, rows, V), h(block_.states.data, rows, n);
        const auto [dE, beta] = weight_gradient(p, head.table);
        const MatrixRef<const T> E = p.parameter(head.table).values();
        Index pieces = 1;
        T* sums = states();
        if (rows > Skinny::most(n) || p.precision() == Precision::bf16) {
            if (dE.data) product<T>(p.precision(), t(dl), h, beta, dE);
            product<T>(p.precision(), dl, E, T(0), {sums, rows, n});  // the states are no longer needed
        } else {
            constexpr Index part = 384;  // columns of dl/dz that stay in cache while both products read them
            pieces = piece_count(V, part, plan_.threads_at_most());
            sums = memory_.pool + plan_.partial(block_.rows);
            // threads() may be set to less meanwhile: a piece that is not run adds nothing.
            if (pieces > 1) std::fill_n(sums, pieces * rows * n, T(0));
            parallel(V, part, pieces, [&, dE = dE, beta = beta](Index first, Index last, Index piece) {
                const MatrixRef<T> sum(sums + piece * rows * n, rows, n);
                for (Index v = first, some; v < last; v += some) {
                    some = std::min(part, last - v);
                    const MatrixRef<const T> dz = dl.columns(v, some);
                    detail::multiply<T>(T(1), dz, E.rows_from(v, some), v == first ? T(0) : T(1), sum);
                    if (dE.data) detail::gemm_serial<T>(T(1), t(dz), h, beta, dE.rows_from(v, some));
                }
            });
        }
        for (Index r = 0; r < rows; ++r) {
            T* to = r < block.z.rows ? dh + block.position[r] * n : dE.row(block.word[r - block.z.rows]);
            for (Index piece = 0; piece < pieces; ++piece) kernel::add(n, sums + (piece * rows + r) * n, to);
        }
        const auto [db, bias_beta] = weight_gradient(p, head.bias);
        if (!db.data) return;
        if (bias_beta == T(0)) std::fill_n(db.data, db.cols, T(0));
        kernel::add_column_sums(block.z.rows, db.cols, block.z.data, db.data);
    }

    // From dl/ds of words of a table of their own: dE += (dl/ds)ᵀ U, and the row of each word += (dl/ds) E.
    void dense_word_gradients(Pass<T>& p, const LogitBlock<T>& block) {
        const MatrixRef<const T> E = p.parameter(words_.table).values();
        const MatrixRef<T> U(words_.vectors, block.words, E.cols);
        const auto [dE, beta] = weight_gradient(p, words_.table);
        product<T>(p.precision(), t(block.s), U, beta, dE);
        product<T>(p.precision(), block.s, E, T(0), U);  // the vectors are no longer needed
        for (Index g = 0; g < block.words; ++g) kernel::add(E.cols, U.row(g), dE.row(block.word[g]));
    }

    static constexpr Index first_draw = Index{1} << 48;  // random numbers that no loss uses itself

    // Samples a block's dl/dz and, if wanted, dl/ds, from which its gradients are computed later; false where the
    // dense products are at least as fast.
    bool sample(Pass<T>& p, const LogitBlock<T>& block, bool with_words) {
        if (!(p.epsilon() > 0)) return false;
        const auto random = p.random();
        double expected = sparse_.draw(block.z, p.upstream(loss_), [&](Index r) {
            return random.uniform(first_draw + p.row_in_batch(block.position[r]));
        });
        if (with_words) expected += draw_words(p, block);
        if (!sampling_pays(p, expected, block.z.rows + (with_words ? block.words : 0))) return false;
        sparse_.keep(block.z.rows, [&](Index r) { return block.position[r]; });
        if (with_words) keep_words(block);
        return true;
    }
    // The same for dl/ds alone.
    bool sample_words(Pass<T>& p, const LogitBlock<T>& block) {
        if (!(p.epsilon() > 0) || !sampling_pays(p, draw_words(p, block), block.words)) return false;
        keep_words(block);
        return true;
    }

    // A word in several blocks has a row in each: it uses the random number of its first position here.
    double draw_words(Pass<T>& p, const LogitBlock<T>& block) {
        const auto random = p.random();
        return words_.sparse.draw(block.s, p.upstream(loss_), [&](Index r) {
            const auto at = std::lower_bound(block.group, block.group + block.z.rows, r) - block.group;
            return random.uniform(first_draw + p.rows_in_batch() + p.row_in_batch(block.position[at]));
        });
    }
    void keep_words(const LogitBlock<T>& block) {
        words_.sparse.keep(block.words, [&](Index r) { return block.word[r]; });
    }
    // The share of entries up to which sampling pays was measured (docs/performance.md).
    bool sampling_pays(const Pass<T>& p, double expected, Index rows) const {
        const double share = p.precision() == Precision::bf16 ? 1. / 32 : 1. / 8,
                     V = double(logits_.vocabulary);
        return expected < std::min(share * V, V / 2 - kernel::sample_lanes) * double(rows);
    }

    // The gradients of all blocks sampled since the last call.
    void sparse_gradients(Pass<T>& p, T* dh) {
        const Index V = logits_.vocabulary, n = hidden_.width;
        if (!sparse_.empty()) {
            const auto& head = p.head(logits_);
            const MatrixRef<const T> E = p.parameter(head.table).values();
            const auto [dE, beta] = weight_gradient(p, head.table);
            const auto [db, bias_beta] = weight_gradient(p, head.bias);
            if (dE.data || db.data)
                sparse_.table_gradient(V, {p.data(hidden_), p.rows(), n}, dE, beta, db.data, bias_beta,
                                       memory_.pool);
            sparse_.add_state_gradient(E, [&](Index position) { return dh + position * n; });
        }
        if (!words_.sparse.empty()) {
            const MatrixRef<const T> E = p.parameter(words_.table).values();
            const auto [dE, beta] = weight_gradient(p, words_.table);
            words_.sparse.table_gradient(V, E, dE, beta, nullptr, T(1), memory_.pool);
            words_.sparse.add_state_gradient(E, [dE = dE](Index word) { return dE.row(word); });
        }
        sparse_.clear(), words_.sparse.clear();
    }

    Logits<T> logits_;
    Loss<T> loss_;  // of the pass
    Tokens targets_;
    Seq<T> hidden_;
    Weight<T> also_;  // see also_writes()
    BlockPlan<T> plan_;
    PackedTable<T> table_;
    StagedGradient<T> staged_;
    SparseGradient<T> sparse_;  // from dl/dz
    struct {
        bool wanted = false, differentiated = false;  // see HeadNeeds
        bool apart = false;                           // of a table other than the head's
        Weight<T> table;
        PackedTable<T> packed;     // apart
        SparseGradient<T> sparse;  // from dl/ds
        T* vectors = nullptr;      // apart: [rows, m], of the words of the current block
    } words_;
    struct {
        T *pool = nullptr, *squares = nullptr;  // see BlockPlan; [2, tile, n] for a modulus
        Index* order = nullptr;                 // [T, B]: predicted positions
        Token* targets = nullptr;               // [T, B]: and their targets
        Token* words = nullptr;                 // of the current block, see LogitBlock
        Index* groups = nullptr;                // see words
    } memory_;
    Index count_ = 0;        // of the pass: predicted positions,
    bool in_place_ = false;  // and whether those are all, in the order of the hidden states
    struct {
        Index rows = 0;
        MatrixRef<const T> states;  // hidden states, and below them words of the same table
    } block_;                       // current
};

}}  // namespace isogloss
