/// @file loss/distillation.hpp  Cross-entropy plus the divergence from the softened predictions of a teacher.
#pragma once

#include <array>
#include <isogloss/elementary.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <numeric>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// A student learns the targets and the predictions of a teacher, another head of the same graph.
///
///     l = Σ_t  (1 - λ) · -log softmax(o_t)[y_t]  +  λ τ² KL(q̃_t ‖ p̃_t),   q̃_t = softmax(o'_t / τ),  p̃_t = softmax(o_t / τ)
///
/// The factor τ² keeps the size of the gradient of the second term where τ changes. The teacher is a constant: no gradient
/// flows into it. Its weights are loaded and frozen, and its nodes have no dropout:
///
///     auto l = g.add<Distillation>("loss", {.share = 0.5, .temperature = 2}, student, y, teacher);
///     io::Checkpoint().model(…).load(…);  g.parameters("teacher*").trained(false);
///
/// Shapes    o, o' [T, B, V] lazy logits of student and teacher;  y [T, B] tokens below V or not_predicted
/// Options   share        λ, weight of the teacher, 0 to 1, default 0.5
///           temperature  τ, 1e-3 to 1e3, default 2
/// Gradient  ∂l/∂o = (1 - λ) (p - 1_y) + λ τ (p̃ - q̃)
/// Modulus   Φ(h_i) = (1 - λ) Var_p(w_i) + λ Var_p̃(w_i)
/// Cost      one product more with the teacher's table, and the teacher's forward pass
/// Errors    vocabularies differ; options out of range
/// Source    Hinton, Vinyals, Dean 2015, "Distilling the knowledge in a neural network".
template <class T> struct Distillation : SoftmaxLoss<T, Distillation> {
    using Base = SoftmaxLoss<T, Distillation>;
    using Base::head, Base::l;

    struct Options {
        double share = 0.5;
        double temperature = 2;
    };
    Options options;
    Logits<T> teacher;

    Loss<T> setup(Setup<T>& s, Logits<T> o, Tokens y, Logits<T> of_teacher) {
        s.require("share", options.share, 0, 1);
        s.require("temperature", options.temperature, 1e-3, 1e3);
        if (of_teacher.vocabulary != o.vocabulary)
            s.fail("the student has a vocabulary of ", o.vocabulary, ", the teacher one of ",
                   of_teacher.vocabulary);
        teacher = of_teacher;
        hidden_ = s.hidden(teacher);
        const Index V = o.vocabulary;
        row_count_ = std::clamp<Index>(s.budget(s.table(o)) / (V * Index{sizeof(T)}) / 8, 1, most_rows);
        l = head.setup(s, o, y, {}, [&](BlockMemory<T>& memory, Index rows) {
            memory.take(states_, rows * hidden_.width), memory.take(logits_, rows * V);
            memory.take(rows_, row_count_ * V);
            memory.take(surprise_, s.capacity().time * s.capacity().batch);
        });
        this->publish(s, o, y);
        return l;
    }

    void forward(Forward<T>& p) {
        std::fill_n(surprise_, p.rows(), 0.0);
        Base::forward(p);
        p.set_cross_entropy(l, std::accumulate(surprise_, surprise_ + p.rows(), 0.0));
    }

    std::array<FisherTerm, 2> fisher() const {
        return {{{1 - options.share, 1}, {options.share, 1 / options.temperature}}};
    }

    /// A block of rows, see SoftmaxLoss.
    void rows(Pass<T>& p, LogitBlock<T>& block) {
        const Index V = block.z.cols, n = hidden_.width;
        const auto& record = p.head(teacher);
        for (Index r = 0; r < block.z.rows; ++r)
            std::copy_n(p.data(hidden_) + block.position[r] * n, n, states_ + r * n);
        graph::logits<T>({states_, block.z.rows, n}, p.parameter(record.table).values(),
                         record.bias.id >= 0 ? p.parameter(record.bias).value : nullptr,
                         {logits_, block.z.rows, V}, nullptr, 0, p.precision());
        const double tau = options.temperature, upstream = p.upstream(l), hard = 1 - options.share,
                     c = options.share * tau;
        const T inverse = static_cast<T>(1 / tau);
        double* by_token = p.by_token(l);
        parallel(block.z.rows, 4, row_count_, [&](Index first, Index last, Index piece) {
            T* soft = rows_ + piece * V;
            for (Index r = first; r < last; ++r) {
                T *z = block.z.row(r), *e = logits_ + r * V;
                const Token y = block.target[r];
                const T m = kernel::row_max(V, z);
                const double of_target = double(z[y]) - double(m);
                double cross = 0;
                const double sum = kernel::exp_sum_and_cross(V, e, kernel::row_max(V, e), inverse, cross);
                const auto s = kernel::exp_two_temperatures(V, z, m, inverse, e, soft);
                const double surprise = surprise_[block.position[r]] =
                                 kernel::elementary::log(s.sum) - of_target,
                             divergence = (cross - s.cross) / sum + kernel::elementary::log(s.soft_sum / sum);
                by_token[block.position[r]] = hard * surprise + c * tau * divergence;
                if (!block.gradient) continue;
                kernel::combine(V, static_cast<T>(upstream * hard / s.sum), z,
                                static_cast<T>(upstream * c / s.soft_sum), soft,
                                static_cast<T>(-upstream * c / sum), e);
                z[y] -= static_cast<T>(upstream * hard);
            }
        });
    }

private:
    // Threads that share the rows of a block; each has a row of its own, of rows_ [row_count_, V].
    static constexpr Index most_rows = 16;
    Seq<T> hidden_;  // of the teacher
    Index row_count_ = 1;
    T *states_ = nullptr, *logits_ = nullptr, *rows_ = nullptr;
    double* surprise_ = nullptr;  // -log p(y_t) of every position [T, B]
};

}}  // namespace isogloss
