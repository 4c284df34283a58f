"""Records losses whose logit of the target is lowered by epsilon |e_y| |h|, and their gradients, in float64: numpy, derivatives
by complex steps. Inputs are those of values.hpp.

    /usr/bin/python3 tests/reference/record_adversarial.py > tests/reference/adversarial_values.hpp
"""
import pathlib
import re

import numpy as np

text = pathlib.Path(__file__).with_name("values.hpp").read_text().split("namespace head {")[1].split("}  // namespace head")[0]
given = {name: np.array(values.split(","), float) for name, values in re.findall(r"(\w+)\[\] = \{([^}]*)\}", text)}
T, B, n, V = 3, 2, 4, 7
epsilon, temperature, alpha = 0.3, 2.5, 1.75
x, y = given["x"].astype(int), given["y"].astype(int)


def log_sum(z):
    return np.log(np.exp(z).sum())


def losses(v, tied, augmented):
    table = v["E"].reshape(V, n) if tied else v["W"].reshape(V, n)
    E, found = v["E"].reshape(V, n), []
    for r in range(T * B):
        if y[r] < 0:
            found.append(0)
            continue
        h = E[x[r]] + v["h"].reshape(T * B, n)[r]
        z = table @ h + v["b"]
        z[y[r]] -= epsilon * np.sqrt((h**2).sum() * (table[y[r]]**2).sum())
        loss = log_sum(z) - z[y[r]]
        if augmented:
            s = E @ E[y[r]] / temperature
            log_target, log_p = s - log_sum(s), z / temperature - log_sum(z / temperature)
            loss += alpha * (np.exp(log_target) * (log_target - log_p)).sum()
        found.append(loss)
    return np.array(found)


def write(name, values):
    line = f"inline constexpr double {name}[] = {{"
    for i, value in enumerate(values):
        item = repr(float(value)).removesuffix(".0") + ("};" if i + 1 == len(values) else ",")
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


print("// Written by: /usr/bin/python3 tests/reference/record_adversarial.py > tests/reference/adversarial_values.hpp")
print("// clang-format off\n#pragma once\n\nnamespace reference {")
print(f"inline constexpr double adversarial = {epsilon};")
for name, tied, augmented in [("adversarial_tied", True, False), ("adversarial_free", False, True)]:
    values = {k: given[k].astype(complex) for k in "hEWb"}
    print(f"\nnamespace {name} {{")
    write("by_token", losses(values, tied, augmented).real)
    for key in "hEb" if tied else "hEWb":
        gradient = []
        for i in range(values[key].size):
            values[key][i] += 1e-100j
            gradient.append(losses(values, tied, augmented).sum().imag / 1e-100)
            values[key][i] = values[key][i].real
        write("d_" + key, gradient)
    print(f"}}  // namespace {name}")
print("}  // namespace reference")
