/// @file graph/head.hpp  What a head computes for the rows asked for: logits and probabilities.
#pragma once

#include <array>
#include <cmath>
#include <isogloss/error.hpp>
#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/runner.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/tensor.hpp>
#include <limits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// The head behind logits o, after a forward pass that reached it. Only here do logits and probabilities exist as an
/// array: request only the rows needed. Each function is for all positions of the pass, [T·B, V], or for positions
/// [first, first + out.rows) counted over time and batch, into out [rows, V].
///
/// Throws UsageError if the last pass did not reach it, for rows beyond those of the pass and for a temperature that is
/// not above 0; NumericError for logits that are not finite, or that are not when divided by the temperature.
template <class T> class Head {
public:
    Head(Store<T>& store, const Runner<T>& runner, const LogitsRecord<T>& head)
        : store_(store), runner_(runner), head_(head) {}

    /// The sequence from which the logits are computed.
    Seq<T> hidden() const { return head_.hidden; }

    /// softmax(o / temperature)
    void probabilities(Index first, MatrixRef<T> out, double temperature = 1) const {
        rows("probabilities", first, out, temperature,
             [&](T* z) { return kernel::softmax(out.cols, z, static_cast<T>(1 / temperature)); });
    }
    Tensor<T, 2> probabilities(double temperature = 1) const {  ///< see above
        return all([&](MatrixRef<T> p) { probabilities(0, p, temperature); });
    }
    /// log softmax(o / temperature), in nats: also for words whose probability underflows T.
    void log_probabilities(Index first, MatrixRef<T> out, double temperature = 1) const {
        rows("log_probabilities", first, out, temperature,
             [&](T* z) { return kernel::log_softmax(out.cols, z, static_cast<T>(1 / temperature)); });
    }
    Tensor<T, 2> log_probabilities(double temperature = 1) const {  ///< see above
        return all([&](MatrixRef<T> p) { log_probabilities(0, p, temperature); });
    }
    /// The logits themselves.
    void logits(Index first, MatrixRef<T> out) const {
        rows("logits", first, out, 1, [&](const T* z) {
            return kernel::first_non_finite(out.cols, z) < out.cols ? std::numeric_limits<double>::quiet_NaN()
                                                                    : 0.0;
        });
    }
    Tensor<T, 2> logits() const {  ///< see above
        return all([&](MatrixRef<T> z) { logits(0, z); });
    }

private:
    // Computes rows of logits and applies `finish` to each, which returns NaN for a row that is not finite.
    template <class Finish>
    void rows(std::string_view who, Index first, MatrixRef<T> out, double temperature, Finish&& finish) const;
    template <class Fill> Tensor<T, 2> all(Fill&& fill) const {
        const Index rows = store_.rows(), V = head_.vocabulary;
        auto found = within_memory(head_.name, bytes_of(head_.name, {rows, V}, sizeof(T)), [&] {
            return Tensor<T, 2>(std::array{static_cast<std::size_t>(rows), static_cast<std::size_t>(V)});
        });
        fill(MatrixRef<T>{found.data(), rows, V});
        return found;
    }

    Store<T>& store_;
    const Runner<T>& runner_;
    const LogitsRecord<T>& head_;
};

template <class T> template <class Finish> void Head<T>::rows(std::string_view who, Index first,
                                                              MatrixRef<T> out, double temperature,
                                                              Finish&& finish) const {
    runner_.require_reached(who, head_.node);
    require(who, "temperature", temperature, Exclusive{0});
    if (first < 0 || !out.is_valid() || first > store_.rows() - out.rows || out.cols != head_.vocabulary ||
        out.transposed)
        throw UsageError(who, ": found rows ", first, " on into [", out.rows, ", ", out.cols,
                         "], expected memory for rows within 0 to ", store_.rows(), " of ", head_.vocabulary);
    const BlasOnOneThread blas;
    const SubnormalsAreZero flush;
    const auto table = store_[head_.table].values();
    graph::logits<T>({store_.value(head_.hidden.id) + first * table.cols, out.rows, table.cols}, table,
                     head_.bias.id >= 0 ? store_[head_.bias].value : nullptr, out, nullptr, 0,
                     Precision::full, store_[head_.table].packed_transpose);
    for (Index r = 0; r < out.rows; ++r)
        if (std::isnan(finish(out.row(r))))
            throw NumericError(who, ": logits of '", head_.name, "' are not finite at row ", first + r, ". ",
                               runner_.blame().not_finite_before("Shrink weights or raise the temperature."));
}

}}}  // namespace isogloss::graph
