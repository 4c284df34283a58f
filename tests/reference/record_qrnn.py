"""Records what NumPy computes for a quasi-recurrent layer, in float64, and its derivatives by complex steps.

    /usr/bin/python3 tests/reference/record_qrnn.py > tests/reference/qrnn_values.hpp

The loss is the sum of w * y; d_<name> = Im loss(<name> + i h) / h is exact to rounding and needs no formula.
"""
import numpy as np

T, B, m, n = 3, 2, 3, 4
random = np.random.RandomState(1611)


def draw(*shape, scale=1.0):
    """Short numbers, so that the record stays short: two decimals."""
    return np.round(scale * random.randn(*shape), 2)


p = {"x": draw(T, B, m), "W": draw(m, 3 * n, scale=0.7), "V": draw(m, 3 * n, scale=0.7), "b": draw(3 * n, scale=0.5)}
cells_before, x_before, w = draw(B, n, scale=0.8), draw(B, m), draw(T, B, n)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def layer(x, W, V, b):
    pairs = np.concatenate([x, np.concatenate([x_before[None], x[:-1]])], axis=2)
    z, f, o = np.split(pairs @ np.concatenate([W, V]) + b, 3, axis=2)
    c, cells = cells_before, []
    for t in range(T):
        c = sigmoid(f[t]) * c + (1 - sigmoid(f[t])) * np.tanh(z[t])
        cells.append(c)
    return sigmoid(o) * np.array(cells), c


def derivative(name):
    found = np.empty(p[name].shape)
    for i in np.ndindex(found.shape):
        one = p[name].astype(complex)
        one[i] += 1e-30j
        found[i] = (w * layer(**{**p, name: one})[0]).sum().imag / 1e-30
    return found


def write(name, values):
    line = f"inline constexpr double {name}[] = {{"
    values = np.asarray(values).reshape(-1)
    for i, v in enumerate(values):
        item = repr(v.item()).removesuffix(".0") + ("};" if i + 1 == len(values) else ",")
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


print("// Written by: /usr/bin/python3 tests/reference/record_qrnn.py > tests/reference/qrnn_values.hpp")
print("// clang-format off\n#pragma once\n\nnamespace reference::qrnn {")
y, last_cells = layer(**p)
for name, values in {**p, "cells_before": cells_before, "x_before": x_before, "w": w, "y": y, "last_cells": last_cells}.items():
    write(name, values)
for name in p:
    write("d_" + name, derivative(name))
print("}  // namespace reference::qrnn")
