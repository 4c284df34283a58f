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

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The weights that a graph had when Graph::shared_weights() was called, and their memory. Copies are cheap, a
/// list of names, and may be made by several threads.
///
///     Graph<float> model({…});                       // built, and loaded or trained
///     const auto weights = model.shared_weights();
///     std::thread worker([weights] {
///         Graph<float> g({.time = 1, .batch = 8}, weights);  // built by the same lines: same names, same shapes
///         …
///     });
///
/// - A graph on shared weights has its own states and activations and is for evaluation only, as with
///   GraphOptions::gradients = false. Any number of them may run at the same time.
/// - Its seed is that of the graph whose weights these are. The edges of a network on a random graph follow from the
///   option `seed` of the node, which is not compared: give it the same.
/// - The weights are live: a step of the owner, or a checkpoint loaded into it, takes effect in the next pass of
///   every graph on them. While weights are written no other graph on them may run. While they are lent (Lease) to a
///   WeightDrop or DynamicUpdate of the owner, a checkpoint refuses to save those of any graph on them.
/// - The owner's memory lives until the last graph on its weights, and the last SharedWeights, is destroyed; the
///   owner itself may be destroyed earlier.
template <class T> class SharedWeights {
public:
    SharedWeights(std::shared_ptr<const graph::Arena> memory, std::uint64_t seed, const auto& parameters)
        : memory_(std::move(memory)), seed_(seed) {
        for (const Parameter<T>& p : parameters) {
            Parameter<T> known;
            known.name = p.name, known.rows = p.rows, known.cols = p.cols;
            known.value = p.value, known.unit_rows = p.unit_rows;
            known.packed = p.packed, known.packed_transpose = p.packed_transpose;
            known.loan = p.loan;
            weights_.push_back(std::move(known));
        }
    }

    /// Packs one of the weights, or its transpose, for multiplication from the left; left unpacked if this
    /// precision does not support it (PackedMatrix::serves). Throws NumericError if it is not finite.
    void pack(const std::string& name, bool transposed, Precision precision) {
        for (Parameter<T>& p : weights_) {
            auto& packed = transposed ? p.packed_transpose : p.packed;
            const MatrixRef<const T> values = p.values(), matrix = transposed ? t(values) : values;
            if (p.name != name || packed || !graph::PackedMatrix<T>::serves(precision, matrix.height()))
                continue;
            require_finite(p);
            if (!packed_) packed_ = std::make_shared<Packed>();
            const Index bytes = graph::PackedMatrix<T>::bytes(precision, matrix.height(), matrix.width());
            auto* const memory =
                packed_->memory.template take<std::byte>(bytes, message("packed weight '", name, "'"));
            auto& made = packed_->matrices.emplace_back();
            made.weight = &p - weights_.data(), made.transposed = transposed;
            made.matrix.pack(matrix, precision, memory);
            packed = &made.matrix;
        }
    }
    /// Packs the same matrices anew, where they lie, after the weights have changed: graphs built on these weights, none
    /// of which may run meanwhile, see the change in their next pass. Allocates nothing. Throws NumericError for a
    /// weight that is not finite; those before it are packed then.
    void repack() {
        if (!packed_) return;
        for (auto& made : packed_->matrices) {
            const Parameter<T>& p = weights_[static_cast<std::size_t>(made.weight)];
            require_finite(p);
            const MatrixRef<const T> values = p.values();
            made.matrix.repack(made.transposed ? t(values) : values);
        }
    }
    /// The same weights without packed matrices.
    SharedWeights unpacked() const {
        SharedWeights plain = *this;
        for (Parameter<T>& p : plain.weights_) p.packed = p.packed_transpose = nullptr;
        plain.packed_.reset();
        return plain;
    }
    /// Bytes of packed matrices, in addition to the weights themselves.
    std::size_t packed_bytes() const { return packed_ ? packed_->memory.size() : 0; }

    /// Seed of the graph whose weights these are.
    std::uint64_t seed() const { return seed_; }

    /// The weight of a given name and shape, without a gradient. Throws UsageError that lists the names.
    const Parameter<T>& at(const std::string& name, Index rows, Index cols) const {
        for (const auto& p : weights_)
            if (p.name == name && p.rows == rows && p.cols == cols) return p;
        throw UsageError("weight '", name, "' [", rows, ", ", cols, "] is not one of the shared weights ",
                         graph::names_of(weights_), "; build the graph as the one that shares them");
    }

private:
    struct PackedWeight {
        graph::PackedMatrix<T> matrix;
        Index weight = 0;
        bool transposed = false;
    };
    struct Packed {
        graph::Arena memory;
        std::deque<PackedWeight> matrices;
    };
    static void require_finite(const Parameter<T>& p) {
        if (const Index bad = kernel::first_non_finite(p.size(), p.value); bad != p.size())
            throw NumericError("packed_weights: the weight '", p.name, "' is ", p.value[bad], " at row ",
                               bad / p.cols, ", column ", bad % p.cols);
    }

    std::shared_ptr<const graph::Arena> memory_;
    std::shared_ptr<Packed> packed_;
    std::uint64_t seed_;
    std::vector<Parameter<T>> weights_;
};

}}  // namespace isogloss
