/// @file lds/rnn_start.hpp  Initialising a recurrent language model from a linear dynamical system.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/graph/graph.hpp>
#include <isogloss/kernel/activation.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace lds {

/// Names of the parameters that start_rnn writes, and the scale of the states.
struct RnnStart {
    std::string table = "E";                ///< embedding table [V, h]
    std::string input = "rnn.W";            ///< [h, h]; "": the cell has none, or it is not set
    std::string recurrent = "rnn.U";        ///< [h, h]; "": as for input
    std::string bias = "rnn.b";             ///< [1, h]; "": none
    std::string output = "softmax.W";       ///< [V, h]; the name of the table: the head is tied to it
    std::string output_bias = "softmax.b";  ///< [1, V]; "": none
    double rms = 0.1;  ///< root mean square of each unit at the start, > 0; tanh is linear near 0
    double gain = 1;   ///< scale of the output matrix, ≥ 0, with a tied head > 0
    /// Exponent of the whitening in the output matrix, 0 … 1. For a text take 0: with 1 the network starts as the
    /// system, which gives rare words logits of 1/μ and so a useless prediction.
    double power = 1;
    Activation activation = Activation::tanh;  ///< of the Rnn: tanh, identity or logistic
};

namespace detail {

// The parameters that start_rnn sets and their values, from its equations.
template <class T, class U>
std::vector<std::pair<std::string, TallMatrix<T>>> rnn_values(const Lds<U>& system, const SteadyState& steady,
                                                              const SmallMatrix& xx_filtered,
                                                              const RnnStart& o, const char* who) {
    const Index h = system.states(), V = system.vocabulary();
    const SmallMatrix filtered = symmetrised(xx_filtered - steady.filtered);  // E[x̂x̂ᵀ]
    const SmallMatrix whiten = symmetric_power(filtered, -0.5, who, 1e-6),
                      back = symmetric_power(filtered, 0.5, who, 1e-6), &A = system.A;
    const bool tied = o.output == o.table, logistic = o.activation == Activation::logistic;
    TallMatrix<U> output = times(system.C, SmallMatrix((tied ? back : product(A, back)) * (o.gain / o.rms)));
    SmallMatrix bias = zeros<double>(1, h), output_bias = zeros<double>(1, V), W = identity(h), H = steady.H;
    const Array<double>& mu = system.whitening.mu;
    if (tied) {
        const SmallMatrix D = product_t(transposed(steady.L), A), to_unit = product(D, whiten);
        const TallMatrix<U> words = times(system.C, to_unit);
        double cross = 0, square = 0;
        for (Index i = 0; i < V; ++i) {
            const double length = kernel::dot(h, words.data() + i * h, words.data() + i * h);
            cross += std::pow(mu[i], 0.5 * (1 - o.power)) * length,
                square += std::pow(mu[i], 1 - o.power) * length;
        }
        W = product(whiten, to_unit) * (o.rms * o.rms / o.gain * cross / square);
        H = A - product_t(product(A, steady.L), inner_products(system.C, system.C));
    }
    SmallMatrix recurrent = transposed(product(whiten, H, back));
    if (logistic) W *= 4, recurrent *= 4;
    double least = 0;
    for (const double f : mu)
        if (f > 0) least = std::min(least, std::log(f));
    for (Index i = 0; i < V; ++i) {
        U* const row = output.data() + i * h;
        const double scale = mu[i] > 0 ? std::pow(mu[i], -0.5 * o.power) : 0;
        kernel::scale(h, static_cast<U>(scale), row);
        output_bias(0, i) = mu[i] > 0 ? std::log(mu[i]) : least;
        if (logistic) output_bias(0, i) -= 0.5 * static_cast<double>(std::accumulate(row, row + h, U(0)));
    }
    for (Index k = 0; logistic && k < h * h; ++k) bias.data()[k % h] -= 0.5 * recurrent.data()[k];
    TallMatrix<T> table =
        tied ? TallMatrix<T>(output)
             : TallMatrix<T>(times(TextFilter<U>(system, steady).table(), SmallMatrix(o.rms * whiten)));
    std::vector<std::pair<std::string, TallMatrix<T>>> values{{o.table, std::move(table)},
                                                              {o.input, std::move(W)},
                                                              {o.recurrent, std::move(recurrent)},
                                                              {o.bias, std::move(bias)},
                                                              {tied ? "" : o.output, std::move(output)},
                                                              {o.output_bias, std::move(output_bias)}};
    std::erase_if(values, [](const auto& value) { return value.first.empty(); });
    return values;
}

}  // namespace detail

/// Sets the parameters of Embedding → Rnn → Softmax or TiedSoftmax so that the network initially acts as the filter of a
/// system.
///
///     h_t = tanh(E[w_t] W + h_{t-1} U + b),   o_t = softmax.W h_t + softmax.b
///     E[i] = s k_i,  W = I,  U = Hᵀ,  b = 0          h_t ≈ s x̂_t, as long as tanh is near the identity
///     softmax.W[i] = gain (C A)_i μ_i^{-power/2} / s,   softmax.b[i] = log μ_i
///
/// softmax(log μ + z) = μ + (diag μ - μμᵀ) z + …, so with gain and power 1 the network predicts to first order
/// what the system does, μ + W⁻¹CA x̂_t. This holds only for small z. In a real text the system multiplies the
/// probability of a word that is certain to follow by 1/μ_i, and so z would be 1/μ_i too: take power 0, and choose
/// the gain by the perplexity before training. The states are first transformed to the basis
/// in which E[x̂x̂ᵀ] = I, so that `rms` holds for every unit: s = rms. Words with μ_i = 0 get the smallest bias
/// of the other words.
///
/// With a tied head, units hold A x̂_t, so that the table serves as output matrix and W takes up the difference:
///
///     E[i] = gain C_i μ_i^{-power/2} / s,  W = c s² LᵀAᵀ / gain,  U = (A - A L G)ᵀ,  b = 0       h_t ≈ s A x̂_t
///
/// With power 1 this is exact as above and c = 1. With less, the vectors that reach the units have the right direction
/// but are too short for rare words, by μ_i^{(1-power)/2}; c makes their lengths right in the mean over the text.
///
/// Logistic units, s(z) ≈ ½ + z/4: W and U are four times as large, and b and softmax.b subtract what the ½ adds.
///
/// Gradients of the parameters set are cleared.
///
/// Errors   UsageError: a parameter that is missing, named twice or of another shape; a table with unit_rows, a graph on
///          shared weights; options out of range, relu; covariances or a steady state of another number of states.
///          NumericError: covariances that are not finite, or without an eigenvalue above 0 once those of the steady
///          state are subtracted; values that are not finite in the type of the graph, as with an rms of 1e300. Nothing
///          is written then.
/// Source   Belanger, Kakade 2015, section 6, eqs. (18)-(19).  Departures: A in the output matrix, the
///          basis, tanh unless told otherwise; the paper's C is power 0, its function the logistic one.
template <class T, class U> void start_rnn(Graph<T>& g, const Lds<U>& system, const SteadyState& steady,
                                           const SmallMatrix& xx_filtered, const RnnStart& names = {}) {
    const char* who = "start_rnn";
    detail::require_consistent(system, who);
    require(who, "rms", names.rms, Exclusive{0});
    if (names.output == names.table) require(who, "gain, of a tied head", names.gain, Exclusive{0});
    require(who, "gain", names.gain, 0);
    require(who, "power", names.power, 0, 1);
    if (names.activation == Activation::relu)
        throw UsageError(who, ": units of relu are not linear near 0; use tanh, identity or logistic");
    if (graph::Inspect::store(g).shared)
        throw UsageError(who, ": the graph is on shared weights; start the graph that owns them");
    graph::require_unlent(graph::Inspect::store(g).parameters, who);
    const Index h = system.states();
    detail::require_shape(steady.H, h, h, who, "a steady state");
    detail::require_shape(xx_filtered, h, h, who, "averages");
    const BlasOnOneThread blas;
    const auto values = detail::rnn_values<T>(system, steady, xx_filtered, names, who);
    for (const auto& [name, m] : values) {
        if (std::ranges::count(values, name, &std::pair<std::string, TallMatrix<T>>::first) > 1)
            throw UsageError(who, ": found two parameters named '", name, "', expected one of each name");
        const auto& p = g.parameter(name);
        if (p.rows != rows(m) || p.cols != cols(m) || p.unit_rows)
            throw UsageError(who, ": found the parameter '", name, "' [", p.rows, ", ", p.cols,
                             "], expected [", rows(m), ", ", cols(m), "] without unit_rows");
        require_finite(who, "'" + name + "', with this rms, gain and power", std::ssize(m), m.data());
    }
    for (const auto& [name, m] : values) {
        auto& p = g.parameter(name);
        std::copy_n(m.data(), m.size(), p.value);
        p.clear_gradient();
    }
}

}}}  // namespace isogloss::lds
