// Whether a network has run away, or learned few lines by heart.
#pragma once

// From the bits of the training text, and bits and success of another: true if these are more than 1 bit
// higher; or, since bits can be few (a line of anbn has one random event in two thousand symbols, an answer
// of xor costs 1 bit without any model), more than `times` as many and 0.05 higher, unless success there is
// at least 99 %: a few confident wrong answers do not count. Bits that are not a number are far worse.
// `success`: 0 or not a number if unknown. table.py uses the same rule with 2 times.
inline bool far_worse(double trained_bits, double bits, double success, double times = 2) {
    if (!(bits <= trained_bits + 1)) return true;
    return bits > times * trained_bits && bits > trained_bits + 0.05 && !(success >= 0.99);
}

// The `times` at which a training goes back, which costs half its rates and is not done for a passing state.
inline constexpr double times_to_go_back = 3;

// Whether training has made the bits of another text worse: by more than 0.05, which a task that is not learned
// at all can cost. table.py uses the same rule.
inline bool worse_than_before(double bits_before, double bits) { return !(bits <= bits_before + 0.05); }
