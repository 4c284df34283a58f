"""PyTorch's side of the comparison: reads names of rows, prints for each the seconds of one round.

    peer_torch.py THREADS SETTING        rows as compare.py names them

SETTING: eager; compiled, the loss with torch.compile; bf16, forward passes under autocast; bf16-compiled, both.
"""
import contextlib
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from torch_loss import loss_of

torch.set_num_threads(int(sys.argv[1]))
SETTING = sys.argv[2]
print(f"# PyTorch {torch.__version__}", file=sys.stderr, flush=True)


def numbers(shape, seed, scale=0.1):
    count = torch.Size(shape).numel()
    return (scale * torch.sin(torch.arange(count, dtype=torch.float64) + seed)).float().reshape(shape)


def words(count, vocabulary, step):
    return (torch.arange(count) * 7919 + step) % vocabulary


def precision():
    return torch.autocast("cpu", dtype=torch.bfloat16) if "bf16" in SETTING else contextlib.nullcontext()


if "compiled" in SETTING:
    loss_of = torch.compile(loss_of, dynamic=False)


def step(kind, n, V, T, B):
    E = numbers((V, n), 1).requires_grad_()
    lstm = torch.nn.LSTM(n, n, num_layers=2)
    with torch.no_grad():
        for layer in range(2):
            getattr(lstm, f"weight_ih_l{layer}").copy_(numbers((4 * n, n), 10 * (layer + 1)))
            getattr(lstm, f"weight_hh_l{layer}").copy_(numbers((4 * n, n), 10 * (layer + 1) + 1))
            getattr(lstm, f"bias_ih_l{layer}").zero_()
            getattr(lstm, f"bias_hh_l{layer}").zero_()
    parameters = [E, *lstm.parameters()]
    x, y = words(T * B, V, 1).reshape(T, B), words(T * B, V, 2)
    state = [torch.zeros(2, B, n), torch.zeros(2, B, n)]

    def round_():
        with precision():
            h, (a, b) = lstm(F.embedding(x, E), tuple(state))
            loss = loss_of(kind, h.reshape(T * B, n), E, y)
        loss.backward()
        state[0], state[1] = a.detach().float(), b.detach().float()
        with torch.no_grad():
            grads = [p.grad for p in parameters]
            norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads))) / B
            torch._foreach_add_(parameters, grads, alpha=-0.1 / B * min(1.0, 5.0 / float(norm)))
        for p in parameters:
            p.grad = None
        return float(loss.detach())

    return round_


def head(kind, n, V, N):
    E, h, y = numbers((V, n), 1).requires_grad_(), numbers((N, n), 3, 1.0).requires_grad_(), words(N, V, 2)

    def round_():
        with precision():
            loss = loss_of(kind, h, E, y)
        loss.backward()
        E.grad = h.grad = None
        return float(loss.detach())

    return round_


def lstm(n, T, B):
    layer, x = torch.nn.LSTM(n, n), numbers((T, B, n), 5).requires_grad_()
    ones = torch.ones(T, B, n)

    def round_():
        with precision():
            y = layer(x)[0]
        y.backward(ones.to(y.dtype))
        for p in [x, *layer.parameters()]:
            p.grad = None
        return 0.0

    return round_


name, round_ = None, None
for line in sys.stdin:
    if line.strip() != name:
        name = line.strip()
        kind, loss, *sizes = name.split("/")
        n, V, T, B = map(int, sizes)
        round_ = None
        round_ = head(loss, n, V, T * B) if kind == "head" else lstm(n, T, B) if kind == "lstm" else step(loss, n, V, T, B)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        value = round_()
        print(name, value, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), file=sys.stderr, flush=True)
        round_()
    seconds, begin = [], time.perf_counter()
    while not seconds or time.perf_counter() - begin < 0.3:
        start = time.perf_counter()
        round_()
        seconds.append(time.perf_counter() - start)
    print(statistics.median(seconds), flush=True)
