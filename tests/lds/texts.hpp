/// @file texts.hpp  Texts with known dynamics, and small systems, for the tests of lds/.
#pragma once

#include <isogloss/lds.hpp>
#include <isogloss/random.hpp>
#include <vector>

#include "reference/lds_values.hpp"
#include "tolerance.hpp"

namespace texts {

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;

/// Three hidden states; the eigenvalues beside 1 are those of the text's dynamics.
inline SmallMatrix transition() { return {{0.90, 0.08, 0.02}, {0.05, 0.80, 0.15}, {0.10, 0.05, 0.85}}; }

/// A text of a hidden Markov model: row s of transition() leads on, each state prefers V/3 words of its own.
inline std::vector<Token> markov(Index tokens, Index V, std::uint64_t seed = 1) {
    const Random random(seed, 7);
    const SmallMatrix P = transition();
    std::vector<Token> out;
    std::size_t state = 0;
    for (Index t = 0; t < tokens; ++t) {
        double u = random.uniform(3 * t);
        std::size_t next = 0;
        while (next < 2 && u > P(state, next)) u -= P(state, next++);
        state = next;
        const bool own = random.uniform(3 * t + 1) < 0.7;
        const Index third = V / 3;
        const Index word = own ? static_cast<Index>(state) * third + random.below(3 * t + 2, third)
                               : random.below(3 * t + 2, V);
        out.push_back(static_cast<Token>(word));
    }
    return out;
}

/// rows × cols numbers as a tensor.
template <class T> Tensor<T, 2> tensor(const double* values, Index rows, Index cols) {
    auto m = zeros<T>(rows, cols);
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<T>(values[i]);
    return m;
}

/// The system of record_lds.py: V = 6, h = 2.
template <class T> Lds<T> recorded() {
    namespace r = reference::lds;
    Lds<T> s;
    s.A = tensor<double>(r::A, 2, 2);
    s.C = tensor<T>(r::C, 6, 2);
    s.M = tensor<double>(r::M, 2, 2);
    s.whitening = Whitening::of_frequencies({std::begin(r::mu), std::end(r::mu)}, 1);
    return s;
}

/// Its text.
inline std::vector<Token> recorded_text() {
    return {std::begin(reference::lds::tokens), std::end(reference::lds::tokens)};
}

/// Largest difference of two matrices of one shape, relative to the largest entry of the second.
template <class A, class B> double difference(const A& a, const B& b) {
    if (a.shape() != b.shape()) return 1e300;
    double most = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        most = worse(most, std::abs(double(a.data()[i]) - double(b.data()[i])));
        size = std::max(size, std::abs(double(b.data()[i])));
    }
    return most / size;
}

}  // namespace texts
