"""Records what numpy computes for an LSTM and a GRU after three rounds of a mogrifier; derivatives are by complex steps.

    /usr/bin/python3 tests/reference/record_mogrifier.py > tests/reference/mogrifier_values.hpp

Shapes and gate orders are those of the library's docstrings: x [T, B, m], W [m, gates n], U [n, gates n], Q [n, m], R [m, n].
The loss is the sum of w * y. d_<name> is its derivative by <name>.
"""
import numpy as np

T, B, m, n, rank = 3, 2, 3, 4, 2
random = np.random.default_rng(1909)


def draw(*shape, scale=0.7):
    """Short numbers, so that the record stays short: two decimals."""
    return np.round(scale * random.standard_normal(shape), 2)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def rounds(p, x, h):
    """Eqs. (1) and (2) of Melis, Kocisky, Blunsom 2020, for rows."""
    for i in 1, 2, 3:
        name = ("Q" if i % 2 else "R") + str(i)
        source = h if i % 2 else x
        product = source @ p[name] if name in p else source @ p[name + "_left"] @ p[name + "_right"]
        if i % 2:
            x = 2 * sigmoid(product) * x
        else:
            h = 2 * sigmoid(product) * h
    return x, h


def lstm(p):
    h, c, ys = p["before"], p["cells_before"], []
    for x in p["x"]:
        x, h = rounds(p, x, h)
        i, f, g, o = np.split(x @ p["W"] + h @ p["U"] + p["b"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return np.stack(ys)


def gru(p):
    h, ys = p["before"], []
    for x in p["x"]:
        kept = h
        x, h = rounds(p, x, h)
        z, r = np.split(sigmoid(x @ p["W"] + h @ p["U"] + p["b"]), 2, axis=1)
        q = np.tanh(x @ p["Wq"] + (r * h) @ p["Uq"] + p["bq"])
        h = z * kept + (1 - z) * q
        ys.append(h)
    return np.stack(ys)


def derivative(cell, p, name):
    """By every entry of p[name]: Im f(v + i e) / e."""
    found = np.zeros(p[name].shape)
    for at in np.ndindex(found.shape):
        moved = {**p, name: p[name].astype(complex)}
        moved[name][at] += 1e-30j
        found[at] = (p["w"] * cell(moved)).sum().imag / 1e-30
    return found


def write(name, values):
    line = f"inline constexpr double {name}[] = {{"
    items = [repr(float(v)).removesuffix(".0") for v in values.reshape(-1)]
    for k, item in enumerate(items):
        item += "};" if k + 1 == len(items) else ","
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


def record(cell, gates, of_rank):
    p = {"x": draw(T, B, m, scale=1), "W": draw(m, gates * n), "U": draw(n, gates * n), "b": draw(1, gates * n),
         "before": draw(B, n), "w": draw(T, B, n, scale=1)}
    if cell is lstm:
        p["cells_before"] = draw(B, n)
    else:
        p.update(Wq=draw(m, n), Uq=draw(n, n), bq=draw(1, n))
    for name, rows, columns in ("Q1", n, m), ("R2", m, n), ("Q3", n, m):
        if of_rank:
            p.update({name + "_left": draw(rows, rank, scale=1), name + "_right": draw(rank, columns, scale=1)})
        else:
            p[name] = draw(rows, columns, scale=1)
    print(f"\nnamespace {cell.__name__} {{")
    for name, value in {**p, "y": cell(p)}.items():
        write(name, value)
    for name in p:
        if "before" not in name and name != "w":
            write("d_" + name, derivative(cell, p, name))
    print(f"}}  // namespace {cell.__name__}")


if __name__ == "__main__":
    print("// Written by: /usr/bin/python3 tests/reference/record_mogrifier.py > tests/reference/mogrifier_values.hpp "
          f"(NumPy {np.__version__})")
    print("// clang-format off")
    print("#pragma once\n\nnamespace reference::mogrifier {")
    record(lstm, 4, False)
    record(gru, 2, True)
    print("\n}  // namespace reference::mogrifier")
