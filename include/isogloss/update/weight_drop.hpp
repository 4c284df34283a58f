/// @file update/weight_drop.hpp  Dropout on weights: entries of a matrix set to zero for one pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/random.hpp>
#include <isogloss/update/lease.hpp>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// Options of WeightDrop.
struct WeightDropOptions {
    double keep = 0.5;       ///< probability of keeping an entry, 2⁻³² … 1
    std::uint64_t seed = 1;  ///< of the masks; each parameter has its own stream, by name
};

/// Dropout on a group of weights, usually recurrent matrices: one mask for all steps and columns of a pass.
///
///     WeightDrop<float> drop(g.parameters("lstm*.U"), {.keep = 0.5});
///     {
///         const WeightDrop<float>::Dropped dropped(drop);  // Ũ = m ∘ U / keep,  m ~ Bernoulli(keep) by entry
///         g.forward(l, …);
///         g.backward(l);
///     }                                                    // U is back;  ∂l/∂U = m ∘ ∂l/∂Ũ / keep
///     sgd.step();
///
/// Works for any node, since the weights themselves change. Masks are a function of the seed, the name and the
/// number of passes, which a checkpoint stores: training resumes bit for bit, with any number of threads.
///
/// With distributed::DataParallel a Dropped surrounds gradients(), not the pass: within it each rank, and each of its
/// shards, would draw masks of its own.
///
/// The weights are lent meanwhile (Lease): updates and checkpoints refuse them; step and evaluate afterwards. With an
/// update by a metric only the gradient is masked, not the metric, which may move dropped entries.
///
/// Memory   one copy of the group's weights, and a byte per weight
/// Errors   UsageError: options out of range; an empty group; a weight with rows held at norm 1, or lent to another
/// Source   Wan et al. 2013, "Regularization of neural networks using DropConnect"; on recurrent matrices, one
///          mask per pass: Merity, Keskar, Socher 2018, "Regularizing and optimizing LSTM language models",
///          section 2
template <class T> class WeightDrop {
public:
    using Options = WeightDropOptions;

    /// Entries are dropped during its lifetime; the destructor restores the weights and masks the gradients.
    class [[nodiscard]] Dropped {
    public:
        /// Draws the masks. Throws UsageError if another one exists, or a gradient of the group counts.
        explicit Dropped(WeightDrop& drop) : drop_(drop) { drop.begin(); }
        ~Dropped() { drop_.end(); }
        Dropped(const Dropped&) = delete;
        Dropped& operator=(const Dropped&) = delete;

    private:
        WeightDrop& drop_;
    };

    /// For the trained parameters of the group. It stays in its place, which a Dropped refers to.
    WeightDrop(const Parameters<T>& group, WeightDropOptions options)
        : lease_(group.trained_for("weight drop", false), "weight drop"), options_(options) {
        require("weight drop", "keep", options.keep, 0x1p-32, 1);
        detail::allocate_per_parameter("weight drop", lease_.group(), 1,
                                       [&](const Parameter<T>& p) { kept_.emplace_back(p.size()); });
    }

    WeightDrop(const WeightDrop&) = delete;
    WeightDrop& operator=(const WeightDrop&) = delete;

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) { v.counter("step", step_); }

private:
    void begin() {
        lease_.group().require_no_gradients("weight drop");
        lease_.begin();
        ++step_;
        const auto scale = static_cast<T>(1 / options_.keep);
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            Parameter<T>& p = lease_.group()[k];
            const Random random(options_.seed, stream_of(p.name), step_);
            kernel::over_numbers(p.size(), [&](Index first, Index last, Index) {
                for (Index i = first; i < last; i += 4) {  // pieces begin at multiples of kernel::chunk
                    const auto u = random.uniforms(i / 4);
                    for (Index j = 0; j < std::min<Index>(4, last - i); ++j) {
                        kept_[k][i + j] = u[static_cast<std::size_t>(j)] < options_.keep;
                        p.value[i + j] = kept_[k][i + j] ? scale * p.value[i + j] : T(0);
                    }
                }
            });
        }
    }
    void end() {
        lease_.restore();
        const auto scale = static_cast<T>(1 / options_.keep);
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            Parameter<T>& p = lease_.group()[k];
            for_each_range(p, [&](const T* w, T* gradient, Index n, Index) {
                const std::uint8_t* kept = kept_[k].data() + (w - p.value);
                for (Index i = 0; i < n; ++i) gradient[i] = kept[i] ? scale * gradient[i] : T(0);
            });
        }
    }

    Lease<T> lease_;
    WeightDropOptions options_;
    std::vector<Array<std::uint8_t>> kept_;  // by entry: whether it is kept
    std::uint64_t step_ = 0;
};

}}  // namespace isogloss
