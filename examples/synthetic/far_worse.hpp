// When a text is foreseen so much worse than the one trained on that the two are no longer told alike.
#pragma once

// From the bits of the text trained on, and bits and success of another: more than one bit more; or, as bits may be few
// (a line of anbn tells one thing in two thousand symbols, an answer of xor costs 1 bit without any model), more than
// three times as many and 0.05 more, unless 99 % of what tells whether the task is solved are right there: a few answers
// of which a network is wrongly certain are neither. `success`: 0 where it is not known, or not a number. table.py
// counts by the same rule.
inline bool far_worse(double trained_bits, double bits, double success) {
    if (bits > trained_bits + 1) return true;
    return bits > 3 * trained_bits && bits > trained_bits + 0.05 && !(success >= 0.99);
}
