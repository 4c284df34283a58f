"""Records what PyTorch computes for the recurrent cells and the losses, forward and backward, in float64.

    /usr/bin/python3 tests/reference/record.py > tests/reference/values.hpp

Shapes and gate orders are those of the library's docstrings: x [T, B, m], W [m, gates n], U [n, gates n],
one bias; sequences [T, B, n]. Of every cell the loss is the sum of w * y. d_<name> is its derivative by <name>.
"""
import torch
import torch.nn.functional as F

T, B, m, n, V = 3, 2, 3, 4, 7
torch.set_default_dtype(torch.float64)
random = torch.Generator().manual_seed(1611)


def draw(*shape, scale=1.0):
    """Short numbers, so that the record stays short: two decimals."""
    return (torch.round(scale * torch.randn(*shape, generator=random) * 100) / 100).requires_grad_()


def literal(v):
    return repr(int(v) if isinstance(v, int) else float(v)).removesuffix(".0")


def write(name, values, scalar="double"):
    line = f"inline constexpr {scalar} {name}[] = {{"
    for i, v in enumerate(values):
        item = literal(v) + ("};" if i + 1 == len(values) else ",")
        if len(line) + 1 + len(item) > 110:
            print(line)
            line = "   "
        line += ("" if line.endswith("{") else " ") + item
    print(line)


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


def record(name, inputs, outputs, loss, after=lambda: None):
    """Inputs, outputs, and the gradient of the loss by every input that can have one."""
    loss.backward()
    after()
    print(f"\nnamespace {name} {{")
    for key, value in {**inputs, **outputs}.items():
        write(key, flat(value))
    for key, value in inputs.items():
        if value.requires_grad:
            write("d_" + key, flat(value.grad))
    print(f"}}  // namespace {name}")


def cell_inputs(gates):
    return {
        "x": draw(T, B, m),
        "W": draw(m, gates * n, scale=0.7),
        "U": draw(n, gates * n, scale=0.7),
        "b": draw(gates * n, scale=0.5),
        "before": draw(B, n, scale=0.8).detach(),
        "w": draw(T, B, n).detach(),
    }


def run(layer, p, *states):
    """A layer of torch.nn with these weights, transposed, and one bias in place of two."""
    given = {"weight_ih_l0": p["W"].T, "weight_hh_l0": p["U"].T, "bias_ih_l0": p["b"],
             "bias_hh_l0": torch.zeros_like(p["b"])}
    with torch.no_grad():
        for name, value in given.items():
            getattr(layer, name).copy_(value)
    return layer(p["x"], *states)


def collect(layer, p):
    """Gives the gradients of the layer's weights back to ours."""
    p["W"].grad, p["U"].grad, p["b"].grad = layer.weight_ih_l0.grad.T, layer.weight_hh_l0.grad.T, layer.bias_ih_l0.grad


def rnn():
    p, layer = cell_inputs(1), torch.nn.RNN(m, n)
    y, _ = run(layer, p, p["before"][None])
    record("rnn", p, {"y": y}, (p["w"] * y).sum(), lambda: collect(layer, p))


def lstm():
    p, layer = cell_inputs(4), torch.nn.LSTM(m, n)
    p["cells_before"] = draw(B, n, scale=0.8).detach()
    y, (_, c) = run(layer, p, (p["before"][None], p["cells_before"][None]))
    record("lstm", p, {"y": y, "last_cells": c}, (p["w"] * y).sum(), lambda: collect(layer, p))


def gru():
    """torch.nn.GRU multiplies by r after the product; this is the form of Cho et al. 2014, with gates z, r."""
    p = cell_inputs(2)
    p["Wq"], p["Uq"], p["bq"] = draw(m, n, scale=0.7), draw(n, n, scale=0.7), draw(n, scale=0.5)
    h, ys = p["before"], []
    for x in p["x"]:
        z, r = torch.sigmoid(x @ p["W"] + h @ p["U"] + p["b"]).chunk(2, dim=1)
        q = torch.tanh(x @ p["Wq"] + (r * h) @ p["Uq"] + p["bq"])
        h = z * h + (1 - z) * q
        ys.append(h)
    y = torch.stack(ys)
    record("gru", p, {"y": y}, (p["w"] * y).sum())


def rhn():
    p = cell_inputs(2)
    p["R1"], p["b1"] = p.pop("U"), p.pop("b")
    p["R2"], p["b2"] = draw(n, 2 * n, scale=0.7), draw(2 * n, scale=0.5)
    s, ys = p["before"], []
    for x in p["x"]:
        for layer in "12":
            a = s @ p["R" + layer] + p["b" + layer]
            h, t = (a + x @ p["W"] if layer == "1" else a).chunk(2, dim=1)
            s = torch.tanh(h) * torch.sigmoid(t) + s * (1 - torch.sigmoid(t))
        ys.append(s)
    y = torch.stack(ys)
    record("rhn", p, {"y": y}, (p["w"] * y).sum())


def nonlinearity():
    """Functions of every unit."""
    x, w = draw(T, B, n, scale=1.5), draw(T, B, n).detach()
    print("\nnamespace nonlinearity {")
    write("x", flat(x))
    write("w", flat(w))
    for name, function in {"tanh": torch.tanh, "logistic": torch.sigmoid, "relu": torch.relu}.items():
        y = function(x)
        write(name, flat(y))
        write("d_" + name, flat(torch.autograd.grad((w * y).sum(), x)[0]))
    print("}  // namespace nonlinearity")


def losses():
    """Hidden states E[x] + h under a tied or a free head; cross-entropy, or the augmented loss."""
    x = torch.tensor([[0, 3], [3, 6], [5, 1]])
    y = torch.tensor([[4, 2], [-1, 4], [0, 4]])
    draws = {"h": draw(T, B, n), "E": draw(V, n, scale=0.7), "W": draw(V, n, scale=0.7), "b": draw(V, scale=0.5)}
    print("\nnamespace head {")
    write("x", x.reshape(-1).tolist(), "isogloss::Token")
    write("y", y.reshape(-1).tolist(), "isogloss::Token")
    for key, value in draws.items():
        write(key, flat(value))
    temperature, alpha = 2.5, 1.75
    print(f"inline constexpr double temperature = {temperature}, alpha = {alpha};\n}}  // namespace head")

    def compute(name, tied, augmented, differentiated):
        h, E, W, b = (draws[k].detach().clone().requires_grad_() for k in "hEWb")
        z = (E[x] + h) @ E.T + b if tied else (E[x] + h) @ W.T + b
        by_token = F.cross_entropy(z.reshape(-1, V), y.reshape(-1), reduction="none", ignore_index=-1).reshape(T, B)
        if augmented:
            s = E[y.clamp(min=0)] @ E.T / temperature
            target = torch.softmax(s if differentiated else s.detach(), dim=2)
            divergence = F.kl_div(torch.log_softmax(z / temperature, dim=2), target, reduction="none").sum(2)
            by_token = by_token + alpha * torch.where(y < 0, torch.zeros_like(divergence), divergence)
        loss = by_token.sum()
        loss.backward()
        print(f"\nnamespace {name} {{")
        write("by_token", flat(by_token))
        for key, value in {"h": h, "E": E, "W": W, "b": b}.items():
            if value.grad is not None:
                write("d_" + key, flat(value.grad))
        print(f"}}  // namespace {name}")

    compute("cross_entropy_tied", True, False, False)
    compute("cross_entropy_free", False, False, False)
    compute("augmented_tied", True, True, False)
    compute("augmented_free", False, True, False)
    compute("augmented_tied_differentiated", True, True, True)
    compute("augmented_free_differentiated", False, True, True)


if __name__ == "__main__":
    print("// Written by: /usr/bin/python3 tests/reference/record.py > tests/reference/values.hpp "
          f"(PyTorch {torch.__version__})")
    print("// clang-format off")
    print("#pragma once\n\n#include <isogloss/types.hpp>\n\nnamespace reference {")
    rnn()
    lstm()
    gru()
    rhn()
    losses()
    nonlinearity()
    print("\n}  // namespace reference")
