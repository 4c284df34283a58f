"""Records what NumPy computes for a small linear dynamical system by dense algebra, in float64.

    /usr/bin/python3 tests/reference/record_lds.py > tests/reference/lds_values.hpp

The states of a text are conditioned on its words in one joint Gaussian of all of them, without any recursion;
the steady state is iterated to its fixed point from the textbook's form, with dense inverses of V x V matrices.
"""
import numpy as np

V, h = 6, 2
tokens = [0, 3, 1, 1, 5, 2, 0, 4]
T = len(tokens)
mu = np.array([0.3, 0.25, 0.15, 0.12, 0.1, 0.08])
m = np.sqrt(mu)
A = np.array([[0.7, 0.3], [-0.2, 0.5]])
raw = np.array([[0.3, -0.2], [0.1, 0.25], [-0.35, 0.1], [0.2, 0.3], [-0.1, -0.3], [0.25, 0.05]])
C = raw - np.outer(m, m @ raw)
M = np.array([[1.2, 0.3], [0.3, 0.9]])

# a basis of the space orthogonal to m
basis = np.linalg.svd(np.eye(V) - np.outer(m, m))[0][:, : V - 1]
R = np.eye(V - 1) - basis.T @ C @ M @ C.T @ basis
D = basis.T @ C
y = np.array([basis.T @ (np.eye(V)[i] / np.sqrt(mu[i]) - m) for i in tokens])

# joint covariance of x_1 ... x_T with x_0 = 0
state = np.zeros((T, T, h, h))
P = np.zeros((h, h))
for t in range(T):
    P = A @ P @ A.T + np.eye(h)
    state[t, t] = P
    for s in range(t + 1, T):
        state[s, t] = np.linalg.matrix_power(A, s - t) @ P
        state[t, s] = state[s, t].T
Sx = state.transpose(0, 2, 1, 3).reshape(T * h, T * h)
big = np.kron(np.eye(T), D)
Sy = big @ Sx @ big.T + np.kron(np.eye(T), R)
Sxy = Sx @ big.T


def condition(n):
    """Mean and covariance of all states given the first n words."""
    k = n * (V - 1)
    gain = Sxy[:, :k] @ np.linalg.inv(Sy[:k, :k])
    return (gain @ y[:n].reshape(-1)).reshape(T, h), Sx - gain @ Sxy[:, :k].T


filtered = np.array([condition(t + 1)[0][t] for t in range(T)])
filtered_cov = np.array([condition(t + 1)[1][t * h : (t + 1) * h, t * h : (t + 1) * h] for t in range(T)])
smoothed, cov = condition(T)
smoothed_cov = np.array([cov[t * h : (t + 1) * h, t * h : (t + 1) * h] for t in range(T)])
xx = (smoothed.T @ smoothed + smoothed_cov.sum(0)) / T
xx_1 = sum(np.outer(smoothed[t + 1], smoothed[t]) + cov[(t + 1) * h : (t + 2) * h, t * h : (t + 1) * h]
           for t in range(T - 1)) / (T - 1)
yx = basis @ y.T @ smoothed / T
flat = y.reshape(-1)
log_likelihood = -0.5 * (len(flat) * np.log(2 * np.pi) + np.linalg.slogdet(Sy)[1] + flat @ np.linalg.solve(Sy, flat)) / T

# the steady state
Sg = np.eye(h)
for _ in range(5000):
    S = D @ Sg @ D.T + R
    K = Sg @ D.T @ np.linalg.inv(S)
    V00 = Sg - K @ D @ Sg
    Sg = A @ V00 @ A.T + np.eye(h)
J = V00 @ A.T @ np.linalg.inv(Sg)
VT = V00
for _ in range(5000):
    VT = V00 + J @ (VT - Sg) @ J.T


def write(name, values):
    line = f"inline constexpr double {name}[] = {{"
    items = [repr(float(v)) for v in np.asarray(values).reshape(-1)]
    for i, item in enumerate(items):
        item += "};" if i + 1 == len(items) else ","
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


print("// Written by: /usr/bin/python3 tests/reference/record_lds.py > tests/reference/lds_values.hpp\n// clang-format off")
print("#pragma once\n")
print("namespace reference::lds {")
print(f"inline constexpr int tokens[] = {{{', '.join(map(str, tokens))}}};")
for name in ["mu", "A", "C", "M", "filtered", "filtered_cov", "smoothed", "smoothed_cov", "xx", "xx_1", "yx",
             "log_likelihood"]:
    write(name, globals()[name])
write("predicted_steady", Sg)
write("filtered_steady", V00)
write("smoothed_steady", VT)
write("gain_steady", K @ basis.T)
write("J_steady", J)
write("H_steady", A - K @ D @ A)
write("log_det_S", np.linalg.slogdet(S)[1])
print("}  // namespace reference::lds")
