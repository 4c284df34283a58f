/// @file loss/augmented.hpp  Cross-entropy plus a soft target read off the embedding table.
#pragma once

#include <isogloss/loss/output_head.hpp>
#include <optional>
#include <thread>

namespace isogloss {

/// Augmented loss.
///
///     l = Σ_t  a · -log softmax(o_t)[y_t]  +  c · KL(ỹ_t ‖ p̃_t)
///     ỹ_t = softmax(E e_{y_t} / τ),   p̃_t = softmax(o_t / τ)
///
/// with a = 1, c = α = γ τ, or, for the mixture of eq. (6.1), a = 1 - β, c = β τ² V.
///
/// Shapes    o [T, B, V] lazy logits;  y [T, B] tokens below V or not_predicted;  E [V, n], row e_i is word
/// i.
///           E is the head's own table where that is an embedding (TiedSoftmax); with a head of its own
///           matrix pass the embedding table as the third input
/// Options   alpha        weight of the soft term, ≥ 0
///           gamma        the same as α = γ τ, ≥ 0; default 0.65 where none of the three is set
///           beta         weight of the mixture (6.1), 0 to 1; at most one of alpha, gamma, beta is set
///           temperature  τ > 0, default 20
///           differentiate_target  default false: ỹ is a fixed target; true: the gradient also flows through
///                        ỹ into E
/// Gradient  ∂l/∂o = a (p - 1_y) + (c / τ) (p̃ - ỹ). Through the target, on s_i = <e_y, e_i>:
///           (c / τ) ỹ_i (log(ỹ_i / p̃_i) - KL), from there to e_i and e_y
/// Modulus   Φ(h_i) = a Var_p(w_i) + (c / τ²) Var_p̃(w_i); the target counts as fixed
/// Cost      the product E e_y is done once per distinct target of a block, rows being sorted by target
/// Errors    vocabularies differ; E has another number of rows; options out of range
/// Source    Inan, Khosravi, Socher 2017, eqs. (3.1)-(3.7), (6.1).  Departures: where the head has a bias it
/// is part
///           of o in both softmaxes; differentiate_target is ours.
template <class T> struct AugmentedLoss {
    struct Options {
        std::optional<double> alpha = {};
        std::optional<double> gamma = {};
        std::optional<double> beta = {};
        double temperature = 20;
        bool differentiate_target = false;
    };
    Options options;
    OutputHead<T> head;
    Loss<T> l;
    Weight<T> E;
    double hard = 1, soft = 0;  // a and c

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y) {
        const Weight<T> table = s.table(o);
        if (!s.is_looked_up(table))
            s.fail(text("the head's matrix '", s.name_of(table),
                        "' is no embedding table; pass the embedding table as the ",
                        "third input, add<AugmentedLoss>(name, options, logits, targets, E)"));
        return setup(s, o, y, table);
    }

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y, Weight<T> table) {
        weigh(s, o.vocabulary);
        if (table.rows != o.vocabulary)
            s.fail(text("the embedding table '", s.name_of(table), "' has ", table.rows,
                        " rows, expected one per word: ", o.vocabulary));
        E = table;
        const Index row = o.vocabulary * Index{sizeof(T)}, words = E.cols * Index{sizeof(T)};
        // For the threads of later passes too, whose number may be set after the model is built.
        row_count_ = std::clamp<Index>(std::max<Index>(threads(), std::thread::hardware_concurrency()), 1,
                                       std::max<Index>(1, s.budget() / row / 8));
        tied_ = s.table(o).id == E.id;
        head.setup(s, o, y,
                   {.arrays = options.differentiate_target ? 4 : 2,
                    .sorted = true,
                    .further = tied_,
                    .bytes_a_row = (options.differentiate_target + !tied_) * words +
                                   Index{sizeof(Index) + sizeof(Token) + 2 * sizeof(double) + sizeof(T)},
                    .bytes_a_position = Index{sizeof(double)},
                    .bytes = row_count_ * row});
        if (options.differentiate_target) head.also_writes(E);
        const Index rows = head.block_rows();
        own_words_ = tied_ ? nullptr : s.scratch(rows * E.cols);
        word_adjoints_ = s.scratch(options.differentiate_target ? rows * E.cols : 0);
        group_ = s.template scratch<Index>(rows);
        group_targets_ = s.template scratch<Token>(rows);
        target_sum_ = s.template scratch<double>(rows);
        target_entropy_ = s.template scratch<double>(rows);
        target_max_ = s.scratch(rows);
        surprise_ = s.template scratch<double>(s.capacity().time * s.capacity().batch);
        rows_ = s.scratch(row_count_ * o.vocabulary);
        return l = s.loss();
    }

    void forward(Forward<T>& p) {
        double* by_token = p.by_token(l);
        std::fill_n(by_token, p.rows(), 0.0);
        std::fill_n(surprise_, p.rows(), 0.0);
        const Index count = head.forward(
            p, l, [&](LogitBlock<T>& block) { rows(p, block); },
            [&](const LogitBlock<T>& block, T* left) { return words(p, block, left); });
        double total = 0, cross_entropy = 0;
        for (Index r = 0; r < p.rows(); ++r) {
            total += by_token[r];
            cross_entropy += surprise_[r];
        }
        p.set(l, total, count);
        p.set_cross_entropy(l, cross_entropy);
    }

    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        if constexpr (Backward<T, Quantity>::is_gradient)
            head.backward(
                p, l, [&](LogitBlock<T>& block) { rows(p, block); },
                [&](const LogitBlock<T>& block, T* left) { return words(p, block, left); });
        else
            head.modulus(p, 2, [&](LogitBlock<T>& block, int k) {
                const double scale = k == 0 ? 1 : 1 / options.temperature;
                for (Index r = 0; r < block.z.rows; ++r) {
                    T* z = block.z.row(r);
                    const double sum = kernel::exp_sum(block.z.cols, z, kernel::row_max(block.z.cols, z),
                                                       static_cast<T>(scale), z);
                    kernel::scale(block.z.cols, static_cast<T>(1 / sum), z);
                }
                return std::abs(p.seed(l)) * (k == 0 ? hard : soft * scale * scale);
            });
    }

private:
    void weigh(Setup<T>& s, Index vocabulary) {
        const double tau = options.temperature;
        if (!(tau > 0) || !std::isfinite(tau))
            s.fail(text("found temperature = ", tau, ", expected a finite number above 0"));
        if (options.alpha.has_value() + options.gamma.has_value() + options.beta.has_value() > 1)
            s.fail(
                "found more than one of alpha, gamma and beta; set one: alpha = gamma * temperature, beta "
                "mixes as in eq. (6.1)");
        const auto in_range = [&](const char* name, double v, double most) {
            if (!(v >= 0 && v <= most && std::isfinite(v)))
                s.fail(text("found ", name, " = ", v, ", expected a finite number of at least 0",
                            most == 1 ? " and at most 1" : ""));
            return v;
        };
        if (options.beta) {
            const double beta = in_range("beta", *options.beta, 1);
            hard = 1 - beta;
            soft = beta * tau * tau * static_cast<double>(vocabulary);
        } else if (options.alpha) {
            soft = in_range("alpha", *options.alpha, std::numeric_limits<double>::infinity());
        } else {
            soft = in_range("gamma", options.gamma.value_or(0.65), std::numeric_limits<double>::infinity()) *
                   tau;
        }
    }

    // The distinct words of a block and their product with the table, which the head computes with its own
    // where the tables are the same. Returns how many it has to.
    Index words(Pass<T>& p, const LogitBlock<T>& block, T* left) {
        groups_ = 0;
        for (Index r = 0; r < block.z.rows; ++r) {
            if (r == 0 || block.target[r] != block.target[r - 1]) group_targets_[groups_++] = block.target[r];
            group_[r] = groups_ - 1;
        }
        const auto table = p.values(E);
        words_ = tied_ ? left : own_words_;
        for (Index g = 0; g < groups_; ++g)
            std::copy_n(table.row(group_targets_[g]), E.cols, words_ + g * E.cols);
        if (tied_) return groups_;
        gemm<T>(T(1), {words_, groups_, E.cols}, t(table), T(0), {head.extra(1), groups_, block.z.cols});
        return 0;
    }

    // Soft targets of those words: e = exp((s - max) / τ), its sum and Σ ỹ log ỹ.
    void soft_targets(Index V) {
        T* e = head.extra(1);
        const T inverse = static_cast<T>(1 / options.temperature);
        kernel::parallel(groups_, 4, groups_, [&](Index first, Index last, Index) {
            for (Index g = first; g < last; ++g) {
                T* row = e + g * V;
                const T m = target_max_[g] = kernel::row_max(V, row);
                if (options.differentiate_target) std::copy_n(row, V, head.extra(2) + g * V);
                double cross = 0;
                target_sum_[g] = kernel::exp_sum_and_cross(V, row, m, inverse, cross);
                target_entropy_[g] = cross / target_sum_[g] - std::log(target_sum_[g]);
            }
        });
    }

    void rows(Pass<T>& p, LogitBlock<T>& block) {
        soft_targets(block.z.cols);
        if (options.differentiate_target && block.gradient) through_target(p, block, groups_);
        const double seed = p.seed(l), tau = options.temperature;
        double* by_token = p.by_token(l);
        const Index V = block.z.cols;
        kernel::parallel(block.z.rows, 4, row_count_, [&](Index first, Index last, Index piece) {
            T* soft_row = rows_ + piece * V;
            for (Index r = first; r < last; ++r) {
                T* z = block.z.row(r);
                const Token y = block.target[r];
                const Index g = group_[r];
                const T* e = head.extra(1) + g * V;
                const T m = kernel::row_max(V, z);
                const double of_target = double(z[y]) - double(m);
                const auto s = kernel::exp_two_temperatures(V, z, m, static_cast<T>(1 / tau), e, soft_row);
                const double divergence =
                    target_entropy_[g] - s.cross / target_sum_[g] + std::log(s.soft_sum);
                const double surprise = surprise_[block.position[r]] = std::log(s.sum) - of_target;
                by_token[block.position[r]] = hard * surprise + soft * divergence;
                if (!block.gradient) continue;
                const double c = seed * soft / tau;
                kernel::combine(V, static_cast<T>(seed * hard / s.sum), z, static_cast<T>(c / s.soft_sum),
                                soft_row, static_cast<T>(-c / target_sum_[g]), e);
                z[y] -= static_cast<T>(seed * hard);
            }
        });
    }

    // The derivative through ỹ: Γ_g = Σ over rows of word g of dl/ds, then E += Γᵀ U and e_g += Γ_g E. Runs
    // before the logits of the block are overwritten.
    void through_target(Pass<T>& p, const LogitBlock<T>& block, Index groups) {
        const Index V = block.z.cols;
        const double tau = options.temperature, scale = p.seed(l) * soft / tau;
        const T *e = head.extra(1), *s = head.extra(2);
        T* into = head.extra(3);
        std::fill_n(into, groups * V, T(0));
        for (Index r = 0; r < block.z.rows; ++r) {
            const Index g = group_[r];
            const T* z = block.z.row(r);
            const T m = kernel::row_max(V, z), inverse = static_cast<T>(1 / tau);
            const double soft_sum = kernel::exp_sum(V, z, m, inverse, static_cast<T*>(nullptr));
            const double cross = kernel::cross_sum(V, e + g * V, z, m, inverse);
            const double divergence = target_entropy_[g] - cross / target_sum_[g] + std::log(soft_sum);
            const double shift = std::log(target_sum_[g]) - std::log(soft_sum) + divergence;
            for (Index i = 0; i < V; ++i) {
                const double ratio =
                    (double(s[g * V + i]) - double(target_max_[g]) - double(z[i]) + double(m)) / tau - shift;
                into[g * V + i] += static_cast<T>(scale * double(e[g * V + i]) / target_sum_[g] * ratio);
            }
        }
        const auto [dE, beta] = head.begin(p, E.id);
        gemm<T>(T(1), t(MatrixRef<const T>(into, groups, V)), {words_, groups, E.cols}, beta, dE);
        gemm<T>(T(1), {into, groups, V}, p.values(E), T(0), {word_adjoints_, groups, E.cols});
        for (Index g = 0; g < groups; ++g)
            kernel::add(E.cols, word_adjoints_ + g * E.cols, dE.row(group_targets_[g]));
    }

    T *words_ = nullptr, *own_words_ = nullptr, *word_adjoints_ = nullptr, *rows_ = nullptr,
      *target_max_ = nullptr;
    Index *group_ = nullptr, groups_ = 0, row_count_ = 1;
    bool tied_ = false;  // E is the head's own table
    Token* group_targets_ = nullptr;
    double *target_sum_ = nullptr, *target_entropy_ = nullptr;
    double* surprise_ = nullptr;  // -log p(y_t) of every position [T, B]
};

}  // namespace isogloss
