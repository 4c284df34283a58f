#!/usr/bin/env python3
"""Trains the tied two-layer LSTM of a preset of language_model in PyTorch, on the CPU.

    train_torch.py fast --data FOLDER --log torch.csv [--setting eager|bf16|compiled|bf16-compiled] [--epochs 5] [--threads 1] [--seed 1] [--state torch.pt]

FOLDER holds ptb.train.txt, ptb.valid.txt and ptb.test.txt. The recipe is that of the preset for Penn Treebank (see
docs/programs/language_model_presets.md): table shared with the softmax, a bias in the head, masks that stay for a segment, by column, on the
word vectors and on each state; a state enters the recurrence and the layer above with one mask, in fast with two; gradients of the sum over steps,
mean over columns, clipped; small: augmented loss, rate 1, after 5 epochs times 0.9 in each; fast: cross-entropy, penalties
on activations, weight decay, rate by one cycle over 13 epochs. Start values, masks and with them figures are other numbers than ours from the same distributions.

The log has a row per epoch: run, epoch, rate, train_loss (nats a token, the soft term of an augmented loss included), valid_perplexity (text in as many columns as in training) and
cpu_seconds, processor time of this process alone, validation included. The last line of the output is the perplexity of both texts
in one column, of the epoch that was best on the validation text. `recipes.py figure --curve` draws logs.

With --state the training is saved to a file after each epoch, and the same call goes on from it: with the same masks, so that an interrupted
training ends as one that was not.
"""
import argparse
import contextlib
import copy
import math
import os
import sys
import time

import torch
import torch.nn.functional as F

import torch_loss

PRESETS = {
    "fast": {"units": 300, "keep": (0.85, 0.75, 0.9, 0.75), "loss": "ce", "epochs": 13, "init": 0.1, "clip": 5, "columns": 10,
             "ar": 2.0, "tar": 1.0, "weight_decay": 2e-4},
    "small": {"units": 200, "keep": 0.7, "loss": "al", "epochs": 40, "init": 0.1, "clip": 5, "columns": 20, "schedule": "decay",
              "decay_from": 5, "decay": 0.9},
    "medium": {"units": 650, "keep": 0.5, "loss": "al", "epochs": 40, "init": 0.05, "clip": 5, "columns": 20,
               "schedule": "decay", "decay_from": 10, "decay": 0.9},
}
# keep: one probability, or those of word vectors, recurrence, between the layers and before the head, each with a mask of its own.
STEPS = 35
SCHEDULE = {"schedule": "one-cycle", "rate": 1.0, "warm_up": 0.05, "finish": 0.0}  # what a recipe does not say
HEADER = "run,epoch,rate,train_loss,valid_perplexity,cpu_seconds"
SCRIPT = os.path.basename(sys.argv[0])


def rate_of(recipe, epochs, epoch, share):
    """The learning rate in an epoch, counted from 1, of whose batches this share is done."""
    m = SCHEDULE | recipe
    if m["schedule"] == "decay":
        return m["rate"] * m["decay"] ** max(0, epoch - m["decay_from"])
    s, w, last = (epoch - 1 + share) / epochs, m["warm_up"], m["finish"]
    if s < w:
        return m["rate"] * (0.1 + 0.9 * s / w)
    return m["rate"] * (last + (1 - last) * (1 + math.cos(math.pi * (s - w) / (1 - w))) / 2)


def columns(tokens, count):
    """[steps, count], of which the last token of the text is only a target."""
    n = (len(tokens) - 1) // count
    cut = lambda first: tokens[first:first + n * count].reshape(count, n).t().contiguous()
    return cut(0), cut(1)


class Model(torch.nn.Module):
    def __init__(self, vocabulary, units, keep, init):
        super().__init__()
        self.keep = keep
        draw = lambda *shape: torch.nn.Parameter(torch.empty(*shape).uniform_(-init, init))
        zero = lambda n: torch.nn.Parameter(torch.zeros(n))
        self.E, self.b = draw(vocabulary, units), zero(vocabulary)
        self.layers = torch.nn.ModuleList(torch.nn.ParameterDict({"W": draw(units, 4 * units), "U": draw(units, 4 * units), "b": zero(4 * units)})
                                          for _ in range(2))

    def begin(self, count):
        return [(torch.zeros(count, self.E.shape[1]), torch.zeros(count, self.E.shape[1])) for _ in self.layers]

    def mask(self, count, keep):
        """One mask for all steps, or None."""
        if not self.training or keep == 1:
            return None
        return torch.bernoulli(torch.full((count, self.E.shape[1]), keep)) / keep

    def forward(self, x, states):
        """What the head reads, [steps, columns, units], and the states to go on with."""
        masked = lambda value, m: value if m is None else value * m
        count, separate = x.shape[1], isinstance(self.keep, tuple)
        on_words, on_states, *above = self.keep if separate else [self.keep] * 4
        h = masked(F.embedding(x, self.E), self.mask(count, on_words))
        last = []
        for layer, (state, cell), keep in zip(self.layers, states, above):
            m = self.mask(count, on_states)
            z = h @ layer["W"] + layer["b"]
            all_states = []
            for step in z.unbind(0):
                i, f, g, o = (step + masked(state, m) @ layer["U"]).chunk(4, 1)
                cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
                state = torch.sigmoid(o) * torch.tanh(cell)
                all_states.append(state)
            h = masked(torch.stack(all_states), self.mask(count, keep) if separate else m)
            last.append((state.detach(), cell.detach()))
        return h, last


def penalty(recipe, h, before):
    """Of the activations h that the head reads, a sum over steps and columns; before: the last of the segment before."""
    moved = h - torch.cat([before[None], h[:-1]])
    return (recipe["ar"] * h.square().sum() + recipe["tar"] * moved.square().sum()) / h.shape[2]


def perplexity(model, tokens, count):
    x, y = columns(tokens, count)
    states, total = model.begin(count), 0.0
    model.eval()
    with torch.no_grad():
        for t in range(0, len(x), STEPS):
            h, states = model(x[t:t + STEPS], states)
            total += float(torch_loss.loss_of("ce", h.flatten(0, 1), model.E, y[t:t + STEPS].flatten(), model.b))
    model.train()
    return math.exp(total / y.numel())


def texts(folder, parts=("train", "valid", "test")):
    """Vocabulary and tokens of the texts, the first of which has all words; <eos> after each line."""
    words, numbers = {}, []
    for part in parts:
        path = os.path.join(folder, f"ptb.{part}.txt")
        try:
            with open(path, encoding="utf-8") as f:
                text = [word for line in f for word in [*line.split(), "<eos>"]]
        except UnicodeDecodeError as error:
            sys.exit(f"{SCRIPT}: found '{path}' not to be UTF-8 ({error.reason} at byte {error.start}), expected the texts of Penn Treebank")
        except OSError as error:
            sys.exit(f"{SCRIPT}: found no '{path}' ({error.strerror}), expected the texts of Penn Treebank. Give --data their folder")
        if len(text) < 1000:
            sys.exit(f"{SCRIPT}: found {len(text)} tokens in '{path}', expected at least 1000: columns and segments are cut from it")
        unknown = [word for word in text if word not in words] if numbers else []
        if unknown:
            sys.exit(f"{SCRIPT}: found '{unknown[0]}' in '{path}', expected words of the training text alone. Replace others by <unk>")
        numbers.append(torch.tensor([words.setdefault(word, len(words)) for word in text]))
    return words, numbers


def read_state(o):
    """The training that --state holds, if any; it must be that of the command line."""
    if not o.state or not os.path.exists(o.state):
        return None
    try:
        state = torch.load(o.state, weights_only=True)
        made, wanted = state["options"], options_of(o)
    except Exception as error:  # whatever unpickling meets
        sys.exit(f"{SCRIPT}: '{o.state}' is not a training of this script ({type(error).__name__}). Give --state another name")
    if made != wanted:
        sys.exit(f"{SCRIPT}: found the training of {made} in '{o.state}', expected that of {wanted}. Give the same options, or --state another name")
    if os.path.exists(o.log):
        with open(o.log, encoding="utf-8", errors="replace") as log:
            found = log.read().splitlines()
        if found != state["rows"][:len(found)]:  # a row may be missing, where the training ended before it was written
            sys.exit(f"{SCRIPT}: found something else in '{o.log}', expected the log of the training in '{o.state}'. Give --log another name")
    return state


def stopped_in_first_epoch(o):
    """Whether --log holds the header alone, of a training with --state that was stopped before it wrote one."""
    if not o.state or not os.path.exists(o.log):
        return False
    with open(o.log, encoding="utf-8", errors="replace") as log:
        return log.read() in ("", HEADER + "\n")


def options_of(o):
    return f"{o.preset} --epochs {o.epochs} --setting {o.setting} --threads {o.threads} --seed {o.seed}"


def write_state(path, state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def at_least_1(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number of at least 1")
    return int(text)


def seed(text):
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number from 0 to 2^63 - 1")
    return int(text)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--data", required=True, help="folder of the texts")
    parser.add_argument("--log", required=True, help="a CSV file that does not exist, unless --state goes on with its training")
    parser.add_argument("--setting", choices=["eager", "compiled", "bf16", "bf16-compiled"], default="eager",
                        help="compiled: the loss by torch.compile; bf16: forward passes under autocast (eager)")
    parser.add_argument("--threads", type=at_least_1, default=1)
    parser.add_argument("--seed", type=seed, default=1)
    parser.add_argument("--epochs", type=at_least_1, help="and with it the length of the cycle of the rate (that of the preset)")
    parser.add_argument("--state", help="file of the training, written after each epoch; if it exists, the training goes on from it")
    o = parser.parse_args()
    recipe = PRESETS[o.preset]
    o.epochs = o.epochs or recipe["epochs"]
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    words, (train, valid, test) = texts(o.data)
    model = Model(len(words), recipe["units"], recipe["keep"], recipe["init"])
    loss_of = torch.compile(torch_loss.loss_of) if "compiled" in o.setting else torch_loss.loss_of
    precision = lambda: torch.autocast("cpu", dtype=torch.bfloat16) if "bf16" in o.setting else contextlib.nullcontext()
    parameters = list(model.parameters())
    count = recipe["columns"]
    decay, penalised = recipe.get("weight_decay", 0.0), "ar" in recipe
    x, y = columns(train, count)
    done, best, kept, rows = 0, math.inf, None, [HEADER]
    if state := read_state(o):
        done, best, kept, rows = (state[name] for name in ("done", "best", "kept", "rows"))
        model.load_state_dict(state["model"])
        torch.set_rng_state(state["random"])
    try:
        log = open(o.log, "w" if state or stopped_in_first_epoch(o) else "x")
    except OSError as error:
        sys.exit(f"{SCRIPT}: '{o.log}' cannot be begun ({error.strerror}). Give --log the name of a file that does not exist")
    print(f"PyTorch {torch.__version__}, {o.setting}, {o.threads} threads, {len(words)} words, {sum(p.numel() for p in parameters)} parameters", flush=True)
    with log:
        print(*rows, sep="\n", file=log, flush=True)
        for epoch in range(done + 1, o.epochs + 1):
            began, states, total = time.process_time(), model.begin(count), 0.0
            last = torch.zeros(count, recipe["units"])
            for t in range(0, len(x), STEPS):
                rate = rate_of(recipe, o.epochs, epoch, t / len(x))
                with precision():
                    h, states = model(x[t:t + STEPS], states)
                    loss = loss_of(recipe["loss"], h.flatten(0, 1), model.E, y[t:t + STEPS].flatten(), model.b)
                states = [(a.float(), b.float()) for a, b in states]
                total += float(loss.detach())
                if penalised:
                    loss, last = loss + penalty(recipe, h.float(), last), h[-1].detach().float()
                loss.backward()
                with torch.no_grad():
                    gradients = [p.grad for p in parameters]
                    if decay > 0:
                        torch._foreach_add_(gradients, parameters, alpha=decay * count)
                    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))) / count
                    if not math.isfinite(norm):
                        sys.exit(f"{SCRIPT}: found a gradient of norm {norm} in epoch {epoch}; the training has diverged")
                    torch._foreach_add_(parameters, gradients, alpha=-rate / count * min(1.0, recipe["clip"] / max(norm, 1e-30)))
                for p in parameters:
                    p.grad = None
            found = perplexity(model, valid, count)
            if found < best:
                best, kept = found, copy.deepcopy(model.state_dict())
            used = time.process_time() - began
            rows.append(f"{o.seed},{epoch},{rate},{total / y.numel()},{found},{used}")
            if o.state:
                write_state(o.state, {"options": options_of(o), "done": epoch, "best": best, "kept": kept, "rows": rows,
                                      "model": model.state_dict(), "random": torch.get_rng_state()})
            print(rows[-1], file=log, flush=True)
            print(f"epoch {epoch}: rate {rate:.4f}, validation {found:.2f}, {used:.1f} s of the processor", flush=True)
    model.load_state_dict(kept)
    print(f"validation={perplexity(model, valid, 1):.4f} test={perplexity(model, test, 1):.4f}")


if __name__ == "__main__":
    main()
