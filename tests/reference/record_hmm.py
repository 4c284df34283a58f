"""Records what NumPy computes for a small hidden Markov model, in float64.

    /usr/bin/python3 tests/reference/record_hmm.py > tests/reference/hmm_values.hpp

Both recursions are those of the textbooks, in logarithms, without scaling: posteriors from log alpha + log beta, the
most probable path with back-pointers. One transition and one emission are 0, one symbol (-1) is missing.
"""
import numpy as np

N, A = 3, 4
x = [0, 2, 1, -1, 3, 3, 0, 1, 2, 2]
initial = np.array([0.5, 0.3, 0.2])
transition = np.array([[0.6, 0.4, 0.0], [0.15, 0.7, 0.15], [0.3, 0.2, 0.5]])
emission = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.0, 0.7], [0.25, 0.05, 0.6, 0.1]])

T = len(x)
with np.errstate(divide="ignore"):
    log_init, log_p = np.log(initial), np.log(transition)
    log_e = np.array([np.zeros(N) if s < 0 else np.log(emission[:, s]) for s in x])


def log_sum(v, axis):
    return np.logaddexp.reduce(v, axis=axis)


alpha, beta = np.zeros((T, N)), np.zeros((T, N))
alpha[0] = log_init + log_e[0]
for t in range(1, T):
    alpha[t] = log_sum(alpha[t - 1][:, None] + log_p, 0) + log_e[t]
for t in range(T - 2, -1, -1):
    beta[t] = log_sum(log_p + log_e[t + 1] + beta[t + 1], 1)
log_likelihood = log_sum(alpha[-1], 0)
posteriors = np.exp(alpha + beta - log_likelihood)

delta, back = log_init + log_e[0], []
for t in range(1, T):
    ways = delta[:, None] + log_p
    back.append(ways.argmax(0))
    delta = ways.max(0) + log_e[t]
path = [int(delta.argmax())]
for best in reversed(back):
    path.insert(0, int(best[path[0]]))


def write(name, values, scalar="double"):
    line = f"inline constexpr {scalar} {name}[] = {{"
    values = np.asarray(values).reshape(-1)
    for i, v in enumerate(values):
        item = repr(v.item()).removesuffix(".0") + ("};" if i + 1 == len(values) else ",")
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


print("// Written by: /usr/bin/python3 tests/reference/record_hmm.py > tests/reference/hmm_values.hpp")
print("// clang-format off\n#pragma once\n\n#include <isogloss/types.hpp>\n\nnamespace reference::hmm {")
write("x", x, "isogloss::Token")
write("initial", initial)
write("transition", transition)
write("emission", emission)
print(f"inline constexpr double log_likelihood = {float(log_likelihood)!r};")
write("posteriors", posteriors)
write("path", path, "isogloss::Index")
print(f"inline constexpr double log_probability = {float(delta.max())!r};")
print("}  // namespace reference::hmm")
