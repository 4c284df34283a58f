/// @file loss/fused_softmax.hpp  Fused linear cross-entropy: head, softmax loss and both gradients by blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/node.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/loss/block_plan.hpp>
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

    // With TargetWords: rows are sorted by target, and the distinct targets of the block are numbered in this order.
    MatrixRef<T> s = {};           ///< [words, V]: E e_y of every distinct target y, without a bias; if
                                   ///< `word_gradient`, d l / d s times upstream on exit
    const Index* group = nullptr;  ///< [rows]: the number of the row's target
    bool word_gradient = false;    ///< whether the derivative is wanted
};

/// The table E [V, m] of a loss that also uses the products of E with its own rows of the targets.
template <class T> struct TargetWords {
    Weight<T> table = {};         ///< empty: the loss uses none
    bool differentiated = false;  ///< whether the loss differentiates them, if the table is trained
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
/// row. Apart from what does not depend on the rows of a block it exceeds 17 MiB, in bfloat16 34, only for blocks of
/// up to 64 rows or for large tables. Positions that are not predicted cost nothing.
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
/// With `adversarial` = ε above 0 the logit of the target is lowered in training passes: with the row e_y of the table
/// and the hidden state h, the loss sees
///
///     z_y = <e_y, h> + b_y - ε ‖e_y‖ ‖h‖
///
/// and the gradient is that of this expression: dl/dz_y (-ε ‖e_y‖ h / ‖h‖) is added to dl/dh, and
/// dl/dz_y (-ε ‖h‖ e_y / ‖e_y‖) to dl/de_y. Both are 0 where e_y or h is; neither is sampled. Moduli lack the term.
///
/// A loss that treats one row at a time is written with SoftmaxLoss.
template <class T> class FusedSoftmax {
public:
    double adversarial = 0;  ///< ε, at least 0; to be set before setup

    /// Returns the loss. `own` takes the loss's own arrays for blocks of up to so many rows, see BlockMemory.
    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y, TargetWords<T> words = {},
                  const std::function<void(BlockMemory<T>&, Index rows)>& own = {}) {
        if (y.vocabulary != o.vocabulary)
            s.fail("the logits have a vocabulary of ", o.vocabulary, ", the targets one of ", y.vocabulary);
        if (words.table.id >= 0) s.require_shape(words.table, o.vocabulary, words.table.cols);
        logits_ = o, targets_ = y, hidden_ = s.hidden(o);
        states_.table = s.table(o), words_.table = words.table;
        has_words_ = words.table.id >= 0;
        apart_ = has_words_ && !(words.table == states_.table);
        differentiated_ = has_words_ && words.differentiated;
        if (apart_ && differentiated_) s.uses(words.table);
        plan(s, own);
        return loss_ = s.loss();
    }

    /// Calls f(LogitBlock<T>&) for every block; f stores the loss of each row in its place and, if
    /// block.gradient is set, d l / d z times p.upstream(l) in block.z. Returns the number of predicted
    /// positions.
    template <class RowLoss> Index forward(Forward<T>& p, RowLoss&& f) {
        arrange(p);
        const auto& head = p.head(logits_);
        states_.bias = head.bias;
        run(p,
            staged_.stage(p, p.training() && p.upstream(loss_) != 0, head.node, hidden_,
                          {head.table, head.bias, apart_ && differentiated_ ? words_.table : Weight<T>{}}),
            f);
        return count_;
    }

    /// Commits the gradient staged by forward, or computes it now.
    template <class RowLoss> void backward(Backward<T, Gradient>& p, RowLoss&& f) {
        if (p.upstream(loss_) == 0 || count_ == 0 || staged_.commit(p)) return;
        run(p, p.adjoint_data(hidden_), f);
    }

    /// Φ(h_i) += |upstream| Σ_k c_k Var_{p_k}(w_i), the Fisher norm of a change of h_i through its effect on
    /// the predictions.
    void modulus(Backward<T, Modulus>& p, std::span<const FisherTerm> terms) {
        const Index n = hidden_.width, V = logits_.vocabulary;
        T* phi = p.adjoint_data(hidden_);
        start(p, nullptr);
        const MatrixRef<const T> E = p.parameter(states_.table).values();
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = std::min(tile, next(count_ - first));
            for (const FisherTerm& term : terms) {
                const LogitBlock<T> block = at(first, rows);
                each_table(false, [&](Sets sets) { multiply(p, sets); });
                for (Index r = 0; r < rows; ++r)
                    kernel::softmax(V, block.z.row(r), static_cast<T>(term.inverse_temperature));
                const MatrixRef<T> mean(states_.memory, rows, n), square(squares_ + tile * n, rows, n);
                gemm<T>(T(1), block.z, E, T(0), mean);
                for (Index v = 0; v < V; v += tile) {  // squares of a few table rows at a time
                    const Index some = std::min(tile, V - v);
                    for (Index i = 0; i < some * n; ++i) squares_[i] = E.row(v)[i] * E.row(v)[i];
                    gemm<T>(T(1), block.z.columns(v, some), {squares_, some, n}, v == 0 ? T(0) : T(1),
                            square);
                }
                const T c = static_cast<T>(std::abs(p.upstream(loss_)) * term.weight);
                for (Index r = 0; r < rows; ++r)
                    for (Index i = 0; i < n; ++i)
                        phi[block.position[r] * n + i] +=
                            c * std::max(T(0), square.row(r)[i] - mean.row(r)[i] * mean.row(r)[i]);
            }
        }
    }

private:
    using Skinny = kernel::SkinnyGemm<T>;
    using Packed = graph::PackedMatrix<T>;

    // Rows of a block: the products of a table with rows of another matrix, the hidden states or the vectors of the
    // targets. Where both sets have one table they are one product, with the memory of the states.
    struct RowSet {
        Weight<T> table = {}, bias = {};
        detail::SparseGradient<T> sparse = {};
        T *memory = nullptr, *left = nullptr;  // for the vectors [rows, n], and these packed
        T* sums = nullptr;                     // [pieces, rows, n]: parts of the gradient of the vectors
        std::byte* packed_memory = nullptr;
        Index packed_bytes = 0;
        Packed packed = {};

        // Of a pass: row r is the product of row index[r] of `source`; its gradient is added to that row of `adjoint`.
        MatrixRef<const T> source = {};
        T* adjoint = nullptr;
        const Packed* ready = nullptr;  // the table packed, or null
        Index first_draw = 0;           // the row's random number is that of the position, counted from here

        // Of a block.
        MatrixRef<T> z = {};
        MatrixRef<const T> vectors = {};
        const Index *index = nullptr, *position = nullptr;
    };
    using Sets = std::span<RowSet* const>;

    // Calls f with the sets of each table; with those of words if wanted.
    template <class F> void each_table(bool with_words, F&& f) {
        RowSet* const both[] = {&states_, &words_};
        if (with_words && !apart_) return f(Sets(both));
        f(Sets(both).first(1));
        if (with_words) f(Sets(both).last(1));
    }

    // --- setup ------------------------------------------------------------------------------------------

    // Chooses the size of blocks and what is packed, and takes all memory.
    void plan(Setup<T>& s, const std::function<void(BlockMemory<T>&, Index)>& own) {
        const Index capacity = s.capacity().time * s.capacity().batch, n = hidden_.width,
                    V = logits_.vocabulary, row = V * Index{sizeof(T)},
                    budget = s.budget(states_.table, apart_ ? words_.table : Weight<T>{});
        const Index sums = std::min(height(capacity), Skinny::most(n)) * n;
        pieces_ = std::min(most_pieces, budget / 8 / (sums * Index{sizeof(T)}));
        const auto list = [&](BlockMemory<T>& memory, Index rows) {
            memory.template count<double>(capacity);  // the loss by position
            memory.take(order_, capacity), memory.take(target_, capacity);
            if (adversarial > 0) memory.take(by_target_, capacity);
            memory.take(squares_, 2 * tile * n);
            memory.take(block_, (has_words_ ? 2 : 1) * rows * V);
            memory.take(states_.memory, height(rows) * n);
            memory.take(states_.sums, pieces_ * sums);
            if (Skinny::Micro::wide && !portable())
                memory.take(states_.left,
                            Skinny::size(std::min(height(rows), Skinny::most_transposed(n)), n));
            if (apart_) memory.take(words_.memory, rows * words_.table.cols);
            if (has_words_)
                for (Index** array : {&word_, &word_position_, &group_}) memory.take(*array, rows);
            memory.take(states_.packed_memory, states_.packed_bytes);
            memory.take(words_.packed_memory, words_.packed_bytes);
            if (s.epsilon() > 0) states_.sparse.take(memory, rows, capacity, V, s.epsilon(), budget);
            if (s.epsilon() > 0 && differentiated_)
                words_.sparse.take(memory, rows, capacity, V, s.epsilon(), budget);
            if (own) own(memory, rows);
        };
        const auto bytes = [&](Index rows) {
            BlockMemory<T> memory;
            list(memory, rows);
            return memory.bytes();
        };
        const bool bf16 = s.precision() == Precision::bf16;
        const auto choose = [&](Index for_states, Index for_words) {
            states_.packed_bytes = for_states, words_.packed_bytes = for_words;
            rows_ = detail::most_rows(std::clamp<Index>(budget / row, 1, capacity), budget,
                                      detail::enough(bf16, row * n), bytes);
            return for_states + for_words == 0 || packing_pays(bf16, capacity);
        };
        // Packs both tables if there is memory and it pays, else the one for which there is, the head's first.
        const auto fitting = [&](Weight<T> table, Index most) {
            const Index needed = Packed::bytes(Precision::full, table.cols, V);
            return needed <= most / 8 * 5 ? needed : 0;
        };
        const Index for_states = s.is_packed(states_.table) ? 0 : fitting(states_.table, budget),
                    for_words = apart_ ? fitting(words_.table, budget - for_states / 5 * 8) : 0;
        if (!choose(for_states, for_words) && !choose(for_states, 0)) choose(0, 0);
        BlockMemory<T> memory(&s);
        list(memory, rows_);
    }

    // Whether a table packed once per pass pays: with AVX2 for blocks of few rows, for which BLAS would pack it again and
    // again. Measured: positions from which packing takes less time than it saves, rows from which a block is no
    // thinner for the memory taken, and rows of products beyond which BLAS is as fast. In bfloat16 blocks as large as
    // the memory allows, each of which packs the table, take 0.9 of the time.
    bool packing_pays(bool bf16, Index capacity) const {
        if (bf16 || portable())
            return false;  // how much memory it takes, and so the size of blocks, depends on the lanes
        return sizeof(kernel::Lanes<T>) == 32 && capacity >= worth_packing && rows_ >= 32 &&
               height(rows_) <= 384;
    }

    // Most rows of the product with the head's table for a block of so many rows.
    Index height(Index rows) const { return (has_words_ && !apart_ ? 2 : 1) * rows; }
    // With fewer words than rows, a block may fill a lane group where twice the rows would not.
    Index next(Index left) const {
        const Index lanes = portable() ? 16 : Skinny::Micro::lanes;
        return detail::next_rows(left, rows_, height(1) == 1 ? lanes : std::max<Index>(1, lanes / 2));
    }

    // --- blocks -----------------------------------------------------------------------------------------

    // Which positions are predicted, and in which order.
    void arrange(Pass<T>& p) {
        const Token* y = p.data(targets_);
        count_ = 0;
        for (Index r = 0; r < p.rows(); ++r)
            if (y[r] >= 0) order_[count_++] = r;
        if (has_words_)
            std::sort(order_, order_ + count_,
                      [y](Index a, Index b) { return y[a] != y[b] ? y[a] < y[b] : a < b; });
        for (Index r = 0; r < count_; ++r) target_[r] = y[order_[r]];
        in_place_ = !has_words_ && count_ == p.rows();
    }

    // Runs all blocks. With dh [T·B, n] the gradient is also computed and added to it.
    template <class RowLoss> void run(Pass<T>& p, T* dh, RowLoss& f) {
        start(p, dh);
        const bool word_gradient = dh && differentiated_ && p.is_trained(words_.table),
                   lowered = adversarial > 0 && p.training();
        for (Index first = 0, rows; first < count_; first += rows) {
            rows = next(count_ - first);
            LogitBlock<T> block = at(first, rows);
            block.gradient = dh != nullptr, block.word_gradient = word_gradient;
            each_table(has_words_, [&](Sets sets) { multiply(p, sets); });
            if (lowered) lower_targets(p, block);
            f(block);
            for (Index r = 0; lowered && dh && r < rows; ++r)
                by_target_[first + r] = block.z.row(r)[block.target[r]];
            if (dh)
                each_table(word_gradient, [&](Sets sets) {
                    if (!sample(p, sets)) add_gradients(p, sets);
                });
            if (states_.sparse.full() || words_.sparse.full()) add_sampled_gradients(p);
        }
        add_sampled_gradients(p);
        if (lowered && dh) add_adversarial_gradients(p);
    }

    void start(Pass<T>& p, T* dh) {
        states_.source = {p.data(hidden_), p.rows(), hidden_.width};
        states_.adjoint = dh, states_.first_draw = first_draw;
        if (has_words_) {
            const auto& table = p.parameter(words_.table);
            words_.source = table.values(), words_.adjoint = table.gradient;
            words_.first_draw = first_draw + p.rows_in_batch();
        }
        each_table(apart_, [&](Sets sets) {
            RowSet& set = *sets.front();
            const auto& table = p.parameter(set.table);
            set.ready = table.packed_transpose;
            if (!set.packed_memory || count_ < worth_packing) return;
            set.packed.pack(t(MatrixRef<const T>(table.values())), Precision::full, set.packed_memory);
            set.ready = &set.packed;
        });
        states_.sparse.clear(), words_.sparse.clear();
    }

    // A block without its logits.
    LogitBlock<T> at(Index first, Index rows) {
        states_.z = {block_, rows, logits_.vocabulary};
        states_.index = states_.position = order_ + first;
        LogitBlock<T> block{
            .z = states_.z, .target = target_ + first, .position = order_ + first, .group = group_};
        if (!has_words_) return block;
        Index words = 0;
        for (Index r = 0; r < rows; ++r) {
            if (r == 0 || block.target[r] != block.target[r - 1]) {
                word_position_[words] = block.position[r];  // the first of the word here
                word_[words++] = block.target[r];
            }
            group_[r] = words - 1;
        }
        words_.z = block.s = {states_.z.row(rows), words, logits_.vocabulary};
        words_.index = word_, words_.position = word_position_;
        return block;
    }

    // Z = X Eᵀ + b for the vectors X of all sets, one below the other; b in the rows of the first.
    void multiply(Pass<T>& p, Sets sets) {
        RowSet& set = *sets.front();
        const auto& table = p.parameter(set.table);
        Index rows = 0;
        for (const RowSet* part : sets)
            for (Index r = 0; r < part->z.rows; ++r, ++rows)
                if (!in_place_)
                    std::copy_n(part->source.row(part->index[r]), table.cols, set.memory + rows * table.cols);
        set.vectors = {in_place_ ? set.source.row(set.index[0]) : set.memory, rows, table.cols};
        graph::logits<T>(
            set.vectors, table.values(), set.bias.id >= 0 ? p.parameter(set.bias).value : nullptr,
            {set.z.data, rows, set.z.cols}, set.left, rows - set.z.rows, p.precision(), set.ready);
    }

    // z_y -= ε ‖e_y‖ ‖h‖ in every row.
    void lower_targets(Pass<T>& p, const LogitBlock<T>& block) {
        const MatrixRef<const T> E = p.parameter(states_.table).values();
        parallel(block.z.rows, 64, block.z.rows, [&](Index first, Index last, Index) {
            for (Index r = first; r < last; ++r)
                block.z.row(r)[block.target[r]] -=
                    static_cast<T>(adversarial * std::sqrt(squares(E.row(block.target[r])) *
                                                           squares(states_.source.row(block.position[r]))));
        });
    }
    double squares(const T* vector) const { return kernel::sum_of_squares(hidden_.width, vector); }

    // --- gradients --------------------------------------------------------------------------------------

    // The gradient of a weight as (matrix, beta): to add to beta times the matrix. Its data are null if the weight is
    // not trained or there is none.
    std::pair<MatrixRef<T>, T> weight_gradient(Pass<T>& p, Weight<T> w) {
        return w.id >= 0 && p.is_trained(w) ? staged_.weight(p, w) : std::pair<MatrixRef<T>, T>{};
    }

    // From all entries of dl/dz of the sets, one below the other: dE += (dl/dz)ᵀ X, and to the rows of X (dl/dz) E.
    void add_gradients(Pass<T>& p, Sets sets) {
        RowSet& set = *sets.front();
        const MatrixRef<const T> E = p.parameter(set.table).values();
        const Index n = E.cols, V = E.rows;
        Index rows = 0, pieces = 1;
        for (const RowSet* part : sets) rows += part->z.rows;
        const MatrixRef<const T> dl(set.z.data, rows, V), X(set.vectors.data, rows, n);
        const auto [dE, beta] = weight_gradient(p, set.table);
        T* sums = set.memory;
        if (rows > Skinny::most(n) || p.precision() == Precision::bf16 || !set.sums) {
            if (dE.data) product<T>(p.precision(), t(dl), X, beta, dE);
            product<T>(p.precision(), dl, E, T(0), {sums, rows, n});  // the vectors are no longer needed
        } else {
            constexpr Index part = 384;  // columns of dl/dz that stay in cache while both products read them
            pieces = std::max<Index>(1, std::min(V / part, pieces_));
            sums = set.sums;
            parallel_pieces(V, part, pieces, [&, dE = dE, beta = beta](Index first, Index last, Index piece) {
                const MatrixRef<T> sum(sums + piece * rows * n, rows, n);
                for (Index v = first, some; v < last; v += some) {
                    some = std::min(part, last - v);
                    const MatrixRef<const T> dz = dl.columns(v, some);
                    detail::multiply<T>(T(1), dz, E.rows_from(v, some), v == first ? T(0) : T(1), sum);
                    if (dE.data) detail::gemm_serial<T>(T(1), t(dz), X, beta, dE.rows_from(v, some));
                }
            });
        }
        Index row = 0;
        for (const RowSet* part : sets)
            for (Index r = 0; r < part->z.rows; ++r, ++row)
                for (Index piece = 0; piece < pieces; ++piece)
                    kernel::add(n, sums + (piece * rows + row) * n, part->adjoint + part->index[r] * n);
        const auto [db, bias_beta] = weight_gradient(p, set.bias);
        if (!db.data) return;
        if (bias_beta == T(0)) std::fill_n(db.data, V, T(0));
        kernel::add_column_sums(set.z.rows, V, set.z.data, db.data);
    }

    // Samples dl/dz of the sets, from which the gradients are computed later; false where the products of all entries
    // are at least as fast. A word in several blocks has a row in each.
    bool sample(Pass<T>& p, Sets sets) {
        if (!(p.epsilon() > 0)) return false;
        const auto random = p.random();
        double expected = 0, rows = 0;
        for (RowSet* set : sets) {
            expected += set->sparse.draw(set->z, p.upstream(loss_), [&](Index r) {
                return random.uniform(set->first_draw + p.row_in_batch(set->position[r]));
            });
            rows += double(set->z.rows);
        }
        // The share of entries up to which sampling pays was measured (docs/loss/sampled_gradients.md).
        const double share = p.precision() == Precision::bf16 ? 1. / 32 : 1. / 8,
                     V = double(logits_.vocabulary);
        if (!(expected < std::min(share * V, V / 2 - kernel::sample_lanes) * rows)) return false;
        for (RowSet* set : sets) set->sparse.keep(set->z.rows, set->index);
        return true;
    }

    // The gradients of all blocks sampled since the last call.
    void add_sampled_gradients(Pass<T>& p) {
        for (RowSet* set : {&states_, &words_}) {
            if (set->sparse.empty()) continue;
            const MatrixRef<const T> E = p.parameter(set->table).values();
            const auto [dE, beta] = weight_gradient(p, set->table);
            const auto [db, bias_beta] = weight_gradient(p, set->bias);
            if (dE.data || db.data)
                set->sparse.table_gradient(E.rows, set->source, dE, beta, db.data, bias_beta, block_);
            set->sparse.add_state_gradient(E, set->adjoint);
            set->sparse.clear();
        }
    }

    // Through ε ‖e_y‖ ‖h‖, for all positions in their order, after the products have written the gradient of the table.
    void add_adversarial_gradients(Pass<T>& p) {
        const Index n = hidden_.width;
        const MatrixRef<const T> E = p.parameter(states_.table).values();
        const MatrixRef<T> dE = weight_gradient(p, states_.table).first;
        for (Index r = 0; r < count_; ++r) {
            const Index y = target_[r], row = order_[r];
            const T *e = E.row(y), *h = states_.source.row(row);
            const double of_e = squares(e), of_h = squares(h), slope = -adversarial * double(by_target_[r]);
            if (!(of_e > 0 && of_h > 0)) continue;
            const T to_h = static_cast<T>(slope * std::sqrt(of_e / of_h)),
                    to_e = static_cast<T>(slope * std::sqrt(of_h / of_e));
            for (Index i = 0; i < n; ++i) states_.adjoint[row * n + i] += to_h * h[i];
            if (!dE.data) continue;
            for (Index i = 0; i < n; ++i) dE.row(y)[i] += to_e * e[i];
        }
    }

    static constexpr Index tile = 64;            // rows of the table and of a block at a time, for a modulus
    static constexpr Index most_pieces = 16;     // into which threads divide the sum over the vocabulary
    static constexpr Index worth_packing = 128;  // positions
    static constexpr Index first_draw = Index{1} << 48;  // random numbers that no loss uses itself

    Logits<T> logits_;
    Loss<T> loss_;
    Tokens targets_;
    Seq<T> hidden_;
    bool has_words_ = false, apart_ = false,
         differentiated_ = false;  // apart: of another table than the head's
    Index rows_ = 1, pieces_ = 0;  // of a block, and of its sums; at most
    RowSet states_, words_;
    detail::StagedGradient<T> staged_;

    T *block_ = nullptr, *squares_ = nullptr;  // [rows, V], and [words, V] below; [2, tile, n] for a modulus
    Index* order_ = nullptr;                   // [T, B]: predicted positions,
    Token* target_ = nullptr;                  // and their targets,
    T* by_target_ = nullptr;                   // and dl/dz of these, where they are lowered
    Index *word_ = nullptr, *word_position_ = nullptr, *group_ = nullptr;  // [rows], of the current block
    Index count_ = 0;        // of the pass: predicted positions,
    bool in_place_ = false;  // and whether those are all, in the order of the hidden states
};

}}  // namespace isogloss
