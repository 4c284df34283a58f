/// @file update/weight_drop.hpp  Dropout on weights: entries of a matrix that are zero for one pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/random.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/update/gradients.hpp>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// Options of WeightDrop.
struct WeightDropOptions {
    double keep = 0.5;       ///< probability that an entry stays, in (0, 1]
    std::uint64_t seed = 1;  ///< of the masks; each parameter has a stream of its own, by its name
};

/// Dropout on a group of weights, on recurrent matrices as a rule: one mask for all steps and all columns of a pass.
///
///     WeightDrop<float> drop(g.parameters("lstm*.U"), {.keep = 0.5});
///     {
///         const WeightDrop<float>::Dropped dropped(drop);  // Ũ = m ∘ U / keep,  m ~ Bernoulli(keep) by entry
///         g.forward(l, …);
///         g.backward(l);
///     }                                                    // U is back;  ∂l/∂U = m ∘ ∂l/∂Ũ / keep
///     sgd.step();
///
/// Works for any node, for the weights themselves change. Masks are a function of the seed, the name and the number of
/// passes, which a checkpoint keeps: a training goes on bit by bit, for any number of threads.
///
/// What is written to the group while entries are left out is lost: step, load and evaluate after it. An update by a
/// metric masks the gradient alone, not the metric, which may move what was left out.
///
/// Memory   the group's numbers once, and a byte for each
/// Errors   UsageError: options out of range; an empty group; a weight with rows of norm 1, which would not have it
/// Source   Wan et al. 2013, "Regularization of neural networks using DropConnect"; on recurrent matrices, one mask
///          a pass: Merity, Keskar, Socher 2018, "Regularizing and optimizing LSTM language models", section 2
template <class T> class WeightDrop {
public:
    using Options = WeightDropOptions;

    /// While it lives entries are left out; weights and gradients are put right where it ends, by an exception too.
    class Dropped {
    public:
        /// Draws the entries. Throws UsageError where another one lives, or a gradient of the group counts.
        explicit Dropped(WeightDrop& of) : of_(of) { of.begin(); }
        ~Dropped() { of_.end(); }
        Dropped(const Dropped&) = delete;
        Dropped& operator=(const Dropped&) = delete;

    private:
        WeightDrop& of_;
    };

    /// For those of the group that are trained.
    WeightDrop(const Parameters<T>& group, WeightDropOptions options)
        : group_(group.trained()), options_(options) {
        require("weight drop", "keep", options.keep, Exclusive{0}, 1);
        if (group_.size() == 0)
            throw UsageError("weight drop: the group of parameters is empty, or none of it is trained");
        for (const Parameter<T>* p : group_) p->require_gradient("weight drop");
        for (const Parameter<T>* p : group_)
            if (p->unit_rows)
                throw UsageError("weight drop: the rows of '", p->name,
                                 "' are kept at norm 1, which they would not have with entries left out; ",
                                 "leave it out of the group");
        within_memory("weight drop", bytes_of("weight drop", {group_.elements()}, sizeof(T) + 1), [&] {
            for (const Parameter<T>* p : group_) {
                whole_.emplace_back(static_cast<std::size_t>(p->size()));
                kept_.emplace_back(static_cast<std::size_t>(p->size()));
            }
        });
    }

    /// Shows its state to a visitor (see io/checkpoint.hpp).
    template <class Visitor> void visit(Visitor& v) { v.counter("step", step_); }

private:
    void begin() {
        if (dropped_) throw UsageError("weight drop: entries are left out already; end that pass first");
        group_.require_no_gradients("weight drop");
        dropped_ = true;
        ++step_;
        const auto scale = static_cast<T>(1 / options_.keep);
        each([&](Parameter<T>& p, T* whole, std::uint8_t* kept) {
            const Random random(options_.seed, stream_of(p.name), step_);
            over_numbers(p.size(), [&](Index first, Index last, Index) {
                for (Index i = first; i < last; i += 4) {  // pieces begin at multiples of kernel::chunk
                    const auto u = random.uniforms(i / 4);
                    for (Index j = 0; j < std::min<Index>(4, last - i); ++j) {
                        whole[i + j] = p.value[i + j];
                        kept[i + j] = u[static_cast<std::size_t>(j)] < options_.keep;
                        p.value[i + j] = kept[i + j] ? scale * p.value[i + j] : T(0);
                    }
                }
            });
        });
    }
    void end() {
        const auto scale = static_cast<T>(1 / options_.keep);
        each([&](Parameter<T>& p, const T* whole, const std::uint8_t* kept) {
            std::copy_n(whole, p.size(), p.value);
            for_each_range(p, [&](const T* w, T* gradient, Index n, Index) {
                const std::uint8_t* of = kept + (w - p.value);
                for (Index i = 0; i < n; ++i) gradient[i] = of[i] ? scale * gradient[i] : T(0);
            });
        });
        dropped_ = false;
    }
    template <class F> void each(F&& f) {
        for (std::size_t k = 0; k < whole_.size(); ++k) f(group_[k], whole_[k].data(), kept_[k].data());
    }

    Parameters<T> group_;
    WeightDropOptions options_;
    std::vector<std::vector<T>> whole_;
    std::vector<std::vector<std::uint8_t>> kept_;
    std::uint64_t step_ = 0;
    bool dropped_ = false;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
