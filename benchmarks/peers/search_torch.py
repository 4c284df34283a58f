#!/usr/bin/env python3
"""Trains many LSTM language models side by side in PyTorch on one GPU, to choose a recipe.

    search_torch.py search.json --data FOLDER --results search.csv [--groups NAME ...]
    search_torch.py --check

FOLDER holds ptb.train.txt and ptb.valid.txt; no test text is read. search.json is a list of groups, {"name", "units", "columns", "epochs",
"steps" (35), "loss": "ce" or "al", "head": "tied" (the default) or "free", "models": [...]}; a model is {"name", ...} with options of the
same names and meanings as those of language_model, `_` for `-` (OPTIONS below); `keep` gives the four others where they are not given. What
a group gives is the default of its models. The recipe is that of the presets small and medium (docs/programs/language_model_presets.md).

Each product of the models of a group is one batched matrix product, and a step of a group is one CUDA graph; groups run on
streams of their own. Parameters and sums are in float, factors of products in bfloat16. Results are lines group,model,epoch,valid: the
perplexity of the validation text in as many columns as in training; search.options.csv has the options of each model. Atomic additions
make two runs differ in rounding.

--check compares steps and perplexities with those of models written out, by automatic differentiation in float on the CPU; with
TRITON_INTERPRET=1 the kernels too.
"""
import argparse
import csv
import json
import math
import os
import sys
import time

import torch

import search_ensemble
import train_torch
from search_ensemble import GROUP, OPTIONS, Ensemble

SCRIPT = os.path.basename(sys.argv[0])


def write(path, groups, done):
    """Results of the epochs done, and the options of the models, in files that appear whole."""
    lines, options = [], []
    for group, epochs in zip(groups, done):
        curve = group.curve[:epochs].cpu().tolist()
        for k, m in enumerate(group.given):
            lines += [[group.name, m["name"], e + 1, f"{values[k]:.2f}"] for e, values in enumerate(curve)]
            options.append([group.name, m["name"], " ".join(f"{key}={m[key]}" for key in OPTIONS if key in m)])
    for name, header, rows in ((path, "group,model,epoch,valid", lines), (path.removesuffix(".csv") + ".options.csv", "group,model,options", options)):
        with open(name + ".part", "w", newline="") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(header.split(","))
            out.writerows(rows)
        os.replace(name + ".part", name)


def train(groups, results):
    """All epochs of all groups, which take turns in pieces of an epoch; the work of each is ordered by its stream."""
    pieces, began, written = 16, time.time(), time.time()
    done, pending = [0] * len(groups), [0] * len(groups)
    while any(d < g.epochs for d, g in zip(done, groups)):
        finished = []
        for k, g in enumerate(groups):
            if done[k] == g.epochs:
                continue
            with torch.cuda.stream(g.stream):
                for _ in range(g.segments * pending[k] // pieces, g.segments * (pending[k] + 1) // pieces):
                    g.train_once()
                pending[k] += 1
                if pending[k] == pieces:
                    pending[k] = 0
                    for _ in range(len(g.valid[0])):
                        g.evaluate_once()
                    done[k] += 1
                    g.record(done[k])
                    finished.append((g, done[k]))
        if finished and torch.cuda.is_available():
            torch.cuda.synchronize()
        for g, epoch in finished:
            values = g.curve[epoch - 1].tolist()
            best = min(range(g.K), key=lambda j: values[j])
            print(f"{time.time() - began:6.0f} s  {g.name}, epoch {epoch}: best {values[best]:.2f}, {g.models[best]['name']}", flush=True)
        if finished and time.time() - written > 20:
            write(results, groups, done)
            written = time.time()
    write(results, groups, done)


def read(path, wanted):
    """The groups of a file, those wanted if any are."""
    try:
        with open(path) as f:
            groups = json.load(f)
        names = [g["name"] for g in groups]
        for g in groups:
            known = [m["name"] for m in g["models"]]
            if not known or len({*known}) < len(known) or names.count(g["name"]) > 1:
                sys.exit(f"{SCRIPT}: found group '{g['name']}' of '{path}' with the models {', '.join(known) or '(none)'}, expected groups and, in "
                         "each, models of different names: results are told apart by them")
            for key in ("units", "columns", "epochs", "loss"):
                if key not in g:
                    sys.exit(f"{SCRIPT}: found no '{key}' in group '{g['name']}' of '{path}', expected it. Add it")
            for key in ("columns", "epochs"):
                if not isinstance(g[key], int) or g[key] < 1:
                    sys.exit(f"{SCRIPT}: found {key} {g[key]!r} in group '{g['name']}' of '{path}', expected a whole number of at least 1")
            for m in g["models"]:
                for key, values in (("loss", ("ce", "al")), ("head", ("tied", "free")), ("schedule", ("one-cycle", "decay")),
                                    ("scheme", ("tied", "recurrent"))):
                    if (found := m.get(key, g.get(key, values[0]))) not in values:
                        sys.exit(f"{SCRIPT}: found {key} {found!r} in group '{g['name']}' of '{path}', expected one of {', '.join(values)}")
                unknown = {*g, *m} - GROUP - {*OPTIONS}
                if unknown:
                    sys.exit(f"{SCRIPT}: found the option '{min(unknown)}' in group '{g['name']}' of '{path}', expected one of {', '.join(OPTIONS)}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{SCRIPT}: found no groups in '{path}' ({error!r}), expected a list as the first lines of the script describe it")
    missing = {*(wanted or [])} - {*names}
    if missing:
        sys.exit(f"{SCRIPT}: found no group '{min(missing)}' in '{path}', expected one of {', '.join(names)}")
    return [g for g in groups if not wanted or g["name"] in wanted]


def forward(p, widths, x, states):
    """What the head reads, [steps, columns, units], and the last states, of a model with parameters p written out for differentiation."""
    h, last = p["E"][x], []
    for l, (state, cell) in enumerate(states):
        outputs = []
        for z in (h @ p[f"W{l}"] + p[f"b{l}"]).unbind(0):
            i, f, g, o = (z + state @ p[f"U{l}"]).split(widths[l], 1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(cell)
            outputs.append(state)
        h = torch.stack(outputs)
        last.append((state.detach(), cell.detach()))
    return h, last


def check():
    """Largest differences from automatic differentiation after an epoch without masks, in float, for each loss and head, and of perplexities."""
    search_ensemble.HALF = torch.float32
    torch.manual_seed(1)
    V, B, T, failed = 50, 3, 5, False
    tokens = torch.randint(0, V, (203,))
    begin = lambda widths: [(torch.zeros(B, n), torch.zeros(B, n)) for n in widths]
    models = [{"name": "a", "keep": 1.0}, {"name": "b", "keep": 1.0, "gamma": 3.0, "temperature": 2.0, "clip": 0.05, "seed": 3}]
    penalised = [{"name": "c", "keep": 1.0, "ar": 2.0, "tar": 1.0, "weight_decay": 0.01}]
    for loss, head, units, described in (("ce", "tied", 8, models), ("al", "tied", 8, models), ("ce", "free", 8, models), ("al", "free", 8, models),
                                         ("ce", "tied", [12, 10, 8], penalised)):
        ours = Ensemble({"name": loss, "units": units, "columns": B, "steps": T, "epochs": 2, "loss": loss, "head": head, "init": 0.5,
                         "models": described}, V, (tokens, tokens), torch.device("cpu"))
        ours.compile(False)
        for _ in range(ours.segments):
            ours.train_once()
        for _ in range(len(ours.valid[0])):
            ours.evaluate_once()
        ours.record(1)
        x, y = train_torch.columns(tokens, B)
        for k, m in enumerate(ours.models):
            p = {name: value[k].clone().requires_grad_() for name, value in ours.start.items()}
            logits = lambda h: h.flatten(0, 1) @ (p["H"] if head == "free" else p["E"].t()) + p["b"]
            states, before = begin(ours.widths), torch.zeros(B, ours.N)
            for s in range(ours.segments):
                h, states = forward(p, ours.widths, x[s * T:(s + 1) * T], states)
                target, o = y[s * T:(s + 1) * T].flatten(), logits(h)
                total = torch.nn.functional.cross_entropy(o, target, reduction="sum")
                if loss == "al":
                    log_q, log_p = (torch.log_softmax(z / m["temperature"], 1) for z in (p["E"][target] @ p["E"].t(), o))
                    total = total + m["gamma"] * m["temperature"] * (log_q.exp() * (log_q - log_p)).sum()
                changes = torch.diff(h, dim=0, prepend=before.unsqueeze(0))
                total = total + (m["ar"] * h.square().sum() + m["tar"] * changes.square().sum()) / ours.N
                before = h[-1].detach()
                gradients = torch.autograd.grad(total / B, list(p.values()))
                with torch.no_grad():
                    gradients = [g + m["weight_decay"] * value for g, value in zip(gradients, p.values())]
                    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
                    for value, g in zip(p.values(), gradients):
                        value -= train_torch.rate_of(m, 2, 1, (s + 0.5) / ours.segments) * min(1, m["clip"] / norm) * g
            found = max(float((ours.p[name][k] - value).detach().abs().max()) for name, value in p.items())
            states, nats = begin(ours.widths), 0.0
            with torch.no_grad():
                for s in range(ours.segments):
                    h, states = forward(p, ours.widths, x[s * T:(s + 1) * T], states)
                    nats += float(torch.nn.functional.cross_entropy(logits(h), y[s * T:(s + 1) * T].flatten(), reduction="sum"))
            ratio = abs(float(ours.curve[0, k]) / math.exp(nats / y.numel()) - 1)
            print(f"{loss}, {head} head, {len(ours.widths)} layers, model {m['name']}: after {ours.segments} steps parameters differ by at most {found:.1e}, "
                  f"perplexity by {ratio:.1e}")
            failed |= not (found < 1e-5 and ratio < 1e-5)  # NaN is no agreement
    return int(failed)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("search", nargs="?", help="a JSON file of groups")
    parser.add_argument("--data", help="folder of the texts")
    parser.add_argument("--results", help="a CSV file")
    parser.add_argument("--groups", nargs="+", help="of the file (all)")
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    if o.check:
        return check()
    if not (o.search and o.data and o.results):
        parser.error("give a JSON file of groups, --data and --results, or --check")
    described = read(o.search, o.groups)
    if os.path.exists(o.results) and os.path.getsize(o.results):
        sys.exit(f"{SCRIPT}: found --results '{o.results}', expected no such file: it is written anew from the first epochs on. Give --results "
                 "another name, or move the file away")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    words, texts = train_torch.texts(o.data, ("train", "valid"))
    groups = [Ensemble(g, len(words), texts, device) for g in described]
    torch.manual_seed(1)
    for g in groups:
        g.compile(gpu)
    where = torch.cuda.get_device_name() if gpu else "no GPU"
    print(f"{where}, PyTorch {torch.__version__}: {sum(g.K for g in groups)} models", flush=True)
    train(groups, o.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
