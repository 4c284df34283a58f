/// @file graph/shared_weights.hpp  The weights of one graph, for others to be built on.
#pragma once

#include <cstdint>
#include <deque>
#include <isogloss/graph/arena.hpp>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/graph/parameters.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION {

/// The weights that a graph has had when Graph::shared_weights() was called, and their memory. Copied freely, also by
/// several threads; what it costs is a list of names.
///
///     Graph<float> model({…});                       // built, and loaded or trained
///     const auto weights = model.shared_weights();
///     std::thread worker([weights] {
///         Graph<float> g({.time = 1, .batch = 8}, weights);  // built by the same lines: same names, same shapes
///         …
///     });
///
/// - A graph on shared weights has states and activations of its own and is for evaluation alone, as with
///   GraphOptions::gradients = false. Any number of them may run at the same time.
/// - Its seed is that of the graph whose weights these are: a network on a random graph has the same edges.
/// - The weights are those of the moment: a step of the owner, or a checkpoint that is loaded into it, shows in the
///   next pass of every graph on them. While weights are written no other graph on them may run.
/// - The memory of the owner stays until the last graph on its weights, and the last SharedWeights, is gone; the
///   owner itself may go before.
template <class T> class SharedWeights {
public:
    SharedWeights(std::shared_ptr<const Arena> memory, std::uint64_t seed, const auto& parameters)
        : memory_(std::move(memory)), seed_(seed) {
        for (const Parameter<T>& p : parameters) {
            Parameter<T> known;
            known.name = p.name, known.rows = p.rows, known.cols = p.cols;
            known.value = p.value, known.unit_rows = p.unit_rows;
            known.packed = p.packed, known.packed_transpose = p.packed_transpose;
            weights_.push_back(std::move(known));
        }
    }

    /// Packs one of the weights, or its transpose, for products from the left; a matrix that has no product of this precision
    /// (PackedMatrix::serves) is left as it is. Throws NumericError for one that is not finite.
    void pack(const std::string& name, bool transposed, Precision precision) {
        for (Parameter<T>& p : weights_) {
            auto& packed = transposed ? p.packed_transpose : p.packed;
            const MatrixRef<const T> values = p.values();
            if (p.name != name || packed ||
                !graph::PackedMatrix<T>::serves(precision, transposed ? p.cols : p.rows))
                continue;
            if (const Index bad = kernel::first_non_finite(p.size(), p.value); bad != p.size())
                throw NumericError("packed_weights: the weight '", name, "' is ", p.value[bad], " at row ",
                                   bad / p.cols, ", column ", bad % p.cols, "; expected finite numbers");
            if (!packed_) packed_ = std::make_shared<Packed>();
            packed_->matrices.emplace_back(transposed ? t(values) : values, precision, packed_->memory,
                                           message("packed weight '", name, "'"));
            packed = &packed_->matrices.back();
        }
    }
    /// The same weights without packed matrices.
    SharedWeights unpacked() const {
        SharedWeights plain = *this;
        for (Parameter<T>& p : plain.weights_) p.packed = p.packed_transpose = nullptr;
        plain.packed_.reset();
        return plain;
    }
    /// Bytes of packed matrices, beside the weights themselves.
    std::size_t packed_bytes() const { return packed_ ? packed_->memory.size() : 0; }

    /// Seed of the graph whose weights these are.
    std::uint64_t seed() const { return seed_; }
    /// Their names, in the order of their making.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& p : weights_) all.push_back(p.name);
        return all;
    }

    /// The one of a name and a shape, without a gradient. Throws UsageError that says which there are, or which
    /// shape it has.
    const Parameter<T>& at(const std::string& name, Index rows, Index cols) const {
        std::string known;
        for (const auto& p : weights_) {
            if (p.name == name) {
                if (p.rows == rows && p.cols == cols) return p;
                throw UsageError("weight '", name, "': found shape [", rows, ", ", cols, "], expected [",
                                 p.rows, ", ", p.cols,
                                 "], that of the shared weight; build the graph as the one that shares it");
            }
            known += (known.empty() ? "" : ", ") + p.name;
        }
        throw UsageError(
            "weight '", name,
            "': the shared weights have none of this name. There are: ", known.empty() ? "none" : known,
            ". Name nodes and weights as in the graph that shares them, and call shared_weights() ",
            "when that graph is complete");
    }

private:
    struct Packed {
        Arena memory;
        std::deque<graph::PackedMatrix<T>> matrices;
    };

    std::shared_ptr<const Arena> memory_;
    std::shared_ptr<Packed> packed_;
    std::uint64_t seed_;
    std::vector<Parameter<T>> weights_;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION
