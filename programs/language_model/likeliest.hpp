/// @file likeliest.hpp  The most probable entries of a distribution.
#pragma once

#include <algorithm>
#include <isogloss/evaluation/top_k.hpp>
#include <span>
#include <vector>

namespace lm {

namespace ig = isogloss;

/// The indices of the k largest entries of p (or of all), the largest first; of equal ones the lower index.
inline std::vector<ig::Token> likeliest(std::span<const float> p, ig::Index k) {
    std::vector<ig::Token> indices;
    for (const ig::Candidate& c : ig::top_k(std::ssize(p), p.data(), std::min(k, std::ssize(p))))
        indices.push_back(c.word);
    return indices;
}

/// Sets all entries to 0 except the k most probable (0: all) and, of those, the fewest, taken in order of
/// probability, that make up the share `mass` of their sum, 0 < mass ≤ 1.
///
/// Source   top-k: Fan, Lewis, Dauphin 2018, "Hierarchical neural story generation"; top-p, the nucleus: Holtzman, Buys,
///          Du, Forbes, Choi 2020, "The curious case of neural text degeneration".
inline void keep_likeliest(std::span<float> p, ig::Index k, double mass) {
    if (k == 0 && mass == 1) return;
    const auto order = likeliest(p, k > 0 ? k : std::ssize(p));
    std::vector<float> kept;
    double sum = 0, reached = 0;
    for (const ig::Token v : order) sum += p[static_cast<std::size_t>(v)];
    for (const ig::Token v : order) {
        if (!kept.empty() && reached >= mass * sum && mass < 1) break;
        kept.push_back(p[static_cast<std::size_t>(v)]);
        reached += kept.back();
    }
    std::ranges::fill(p, 0.f);
    for (std::size_t i = 0; i < kept.size(); ++i) p[static_cast<std::size_t>(order[i])] = kept[i];
}

}  // namespace lm
