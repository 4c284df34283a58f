// Written by: /usr/bin/python3 tests/reference/record_hmm.py > tests/reference/hmm_values.hpp
// clang-format off
#pragma once

#include <isogloss/types.hpp>

namespace reference::hmm {
inline constexpr isogloss::Token x[] = {0, 2, 1, -1, 3, 3, 0, 1, 2, 2};
inline constexpr double initial[] = {0.5, 0.3, 0.2};
inline constexpr double transition[] = {0.6, 0.4, 0, 0.15, 0.7, 0.15, 0.3, 0.2, 0.5};
inline constexpr double emission[] = {0.4, 0.3, 0.2, 0.1, 0.1, 0.2, 0, 0.7, 0.25, 0.05, 0.6, 0.1};
inline constexpr double log_likelihood = -13.050374105757117;
inline constexpr double posteriors[] = {0.6321480287406809, 0.06414879259134545, 0.3037031786679735,
    0.7348720834110395, 0, 0.2651279165889579, 0.6522691365806199, 0.31570753242854654, 0.03202333099083221,
    0.36389702769076787, 0.6055509537403932, 0.030552018568837176, 0.06336834772913605, 0.923861218188019,
    0.012770434082842765, 0.059153741481523296, 0.8986049271126916, 0.04224133140578264, 0.3636840803934043,
    0.42670093612232285, 0.20961498348427143, 0.2628452864831345, 0.5733915948787645, 0.16376311863810122,
    0.33041964088589243, 0, 0.6695803591141075, 0.4420163674049111, 0, 0.5579836325950895};
inline constexpr isogloss::Index path[] = {0, 0, 0, 1, 1, 1, 1, 1, 2, 2};
inline constexpr double log_probability = -16.02478169063862;
}  // namespace reference::hmm
