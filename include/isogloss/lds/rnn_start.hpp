/// @file lds/rnn_start.hpp  A recurrent language model that begins as a linear dynamical system.
#pragma once

#include <cmath>
#include <isogloss/graph/graph.hpp>
#include <isogloss/lds/text_filter.hpp>
#include <string>

namespace isogloss {

/// Names of the parameters that start_rnn writes, and the scale of the states.
struct RnnStart {
    std::string table = "E";                ///< embedding table [V, h]
    std::string input = "rnn.W";            ///< [h, h]
    std::string recurrent = "rnn.U";        ///< [h, h]
    std::string bias = "rnn.b";             ///< [1, h]; "": there is none
    std::string output = "softmax.W";       ///< [V, h]
    std::string output_bias = "softmax.b";  ///< [1, V]; "": there is none
    double rms = 0.1;  ///< root mean square of a unit at the start, > 0; tanh is linear near 0
    double gain = 1;   ///< of the output matrix, ≥ 0
    double power = 1;  ///< of the whitening in the output matrix, 0 … 1
};

/// Sets the parameters of Embedding → Rnn → Softmax so that the network begins as the filter of a system.
///
///     h_t = tanh(E[w_t] W + h_{t-1} U + b),   o_t = softmax.W h_t + softmax.b
///     E[i] = s k_i,  W = I,  U = Hᵀ,  b = 0          h_t ≈ s x̂_t, as long as tanh is near the identity
///     softmax.W[i] = gain (C A)_i μ_i^{-power/2} / s,   softmax.b[i] = log μ_i
///
/// softmax(log μ + z) = μ + (diag μ - μμᵀ) z + …, so that with gain and power 1 the network predicts to first
/// order what the system does, μ + W⁻¹CA x̂_t. That holds for small z alone. In a real text the system
/// multiplies the probability of a word that is sure to come by 1/μ_i, and so z would be 1/μ_i too: choose a
/// smaller gain, or less whitening, by the perplexity before training. First the states are turned into the
/// basis in which E[x̂x̂ᵀ] = I, so that `rms` holds for every unit: s = rms. Words with μ_i = 0 get the
/// smallest bias of the others.
///
/// Errors   UsageError: a parameter that is not there or has another shape; rms not above 0.
/// Source   Belanger, Kakade 2015, section 6.2, eqs. (18)-(19).  Departures: A in the output matrix, the
///          basis, tanh instead of the logistic function; the paper's C is power 0.
template <class T, class U> void start_rnn(Graph<T>& g, const Lds<U>& system, const SteadyState& steady,
                                           const SmallMatrix& xx_filtered, const RnnStart& names = {}) {
    const char* who = "start_rnn";
    require_consistent(system, who);
    const Index h = system.states(), V = system.vocabulary();
    if (!(names.rms > 0) || !std::isfinite(names.rms) || rows_of(xx_filtered) != h)
        throw UsageError(message(who, ": found rms ", names.rms, " and covariances of ", rows_of(xx_filtered),
                                 " states, expected above 0 and ", h));
    if (!(names.gain >= 0) || !std::isfinite(names.gain) || !(names.power >= 0 && names.power <= 1))
        throw UsageError(message(who, ": found gain ", names.gain, " and power ", names.power,
                                 ", expected 0 or more, and 0 … 1"));
    const SmallMatrix filtered = symmetrised(xx_filtered - steady.filtered);  // E[x̂x̂ᵀ]
    const SmallMatrix to = symmetric_power(filtered, -0.5, who, 1e-6),
                      from = symmetric_power(filtered, 0.5, who, 1e-6);

    const TextFilter<U> filter(system, steady);
    const auto table = times(filter.table(), SmallMatrix(names.rms * to));
    auto output = times(system.C, SmallMatrix(product(system.A, from) * (names.gain / names.rms)));
    const SmallMatrix recurrent = product(to, steady.H, from);
    auto input = identity(h), bias = zeros<double>(1, h), output_bias = zeros<double>(1, V);
    double least = 0;
    for (const double f : system.whitening.mu)
        if (f > 0) least = std::min(least, std::log(f));
    for (Index i = 0; i < V; ++i) {
        const double mu = system.whitening.mu[std::size_t(i)];
        const double scale = mu > 0 ? std::pow(mu, -0.5 * names.power) : 0;
        for (Index j = 0; j < h; ++j) output.data()[i * h + j] *= static_cast<U>(scale);
        output_bias.data()[i] = mu > 0 ? std::log(mu) : least;
    }

    struct Target {
        const std::string* name;
        Index rows, cols;
    };
    for (const Target& t :
         {Target{&names.table, V, h}, Target{&names.input, h, h}, Target{&names.recurrent, h, h},
          Target{&names.bias, 1, h}, Target{&names.output, V, h}, Target{&names.output_bias, 1, V}}) {
        if (t.name->empty() && t.rows == 1) continue;
        const auto& p = g.parameter(*t.name);
        if (p.rows != t.rows || p.cols != t.cols)
            throw UsageError(message(who, ": found the parameter '", *t.name, "' [", p.rows, ", ", p.cols,
                                     "], expected [", t.rows, ", ", t.cols, "] for ", V, " words and ", h,
                                     " states"));
    }
    const auto set = [&](const std::string& name, const auto& values) {
        if (name.empty()) return;
        T* to_data = g.parameter(name).value;
        for (std::size_t i = 0; i < values.size(); ++i) to_data[i] = static_cast<T>(values.data()[i]);
    };
    set(names.table, table);
    set(names.input, input);
    set(names.recurrent, transposed(recurrent));
    set(names.bias, bias);
    set(names.output, output);
    set(names.output_bias, output_bias);
}

}  // namespace isogloss
