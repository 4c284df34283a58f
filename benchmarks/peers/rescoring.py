#!/usr/bin/env python3
"""Hypotheses per second of isogloss and onnxruntime, with the same weights and one thread each.

    rescoring.py BUILD [--rounds 5] [--lists 2] [--shapes 2x650x10000,3x2048x500] [--weights plain,full,int8] [--csv FILE] [--json FILE]

Needs: pip install numpy onnx onnxruntime safetensors

BUILD is the folder of the benchmark programs (build/release/benchmarks). peer_rescoring makes a tied LSTM language model with random
weights, tools/export_onnx.py converts it to ONNX. Both score the same n-best lists of 50 texts of 20 tokens: `alike`, variants of one sentence
with one to three words changed, and `different`, which have nothing in common. onnxruntime scores them one by one and as one padded
batch; its graph selects the log probabilities of the targets, so that no table of all is returned. Scores must agree to 1e-4 per token,
in bf16 and int8 to 0.02. Packing, once for each kind of weights, is not timed. The sides alternate; time is processor time, a figure
the median over the rounds, a ratio the median of the rounds' ratios.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from inputs import ask, at_least, lacks_module, require_place, require_programs, write_csv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
try:
    import export_onnx
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as missing:
    lacks_module(missing)

TEXTS, LENGTH = 50, 20


def n_best(kind, vocabulary, lists):
    """Lists of texts, each preceded by the token 0."""
    draw = random.Random(1)

    def sentence():
        return [draw.randrange(1, vocabulary) for _ in range(LENGTH)]

    out = []
    for _ in range(lists):
        best = sentence()
        texts = []
        for _ in range(TEXTS):
            text = best[:] if kind == "alike" else sentence()
            if kind == "alike":
                for at in draw.sample(range(LENGTH), draw.randint(1, 3)):
                    text[at] = draw.randrange(1, vocabulary)
            texts.append([0] + text)
        out.append(texts)
    return out


class Onnx:
    """onnxruntime, with a graph that selects the log probabilities of given targets."""

    def __init__(self, path):
        model = export_onnx.export(path)
        graph = model.graph
        graph.input.append(helper.make_tensor_value_info("targets", TensorProto.INT64, ["T", "B", 1]))
        graph.node.append(helper.make_node("GatherElements", ["log_probabilities", "targets"], ["picked"], axis=-1))
        del graph.output[:]
        graph.output.append(helper.make_tensor_value_info("picked", TensorProto.FLOAT, ["T", "B", 1]))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.states = {one.name: one.shape[1] for one in self.session.get_inputs() if one.name not in ("tokens", "targets")}

    def score(self, texts):
        """Log probabilities of texts of equal length, [B, T + 1]."""
        texts = np.array(texts, np.int64).T
        states = {name: np.zeros((texts.shape[1], width), np.float32) for name, width in self.states.items()}
        (picked,) = self.session.run(["picked"], {"tokens": texts[:-1], "targets": texts[1:, :, None], **states})
        return picked[..., 0].sum(0, dtype=np.float64)

    def round(self, lists, one_by_one):
        begin = time.process_time()
        found = [self.score([text])[0] for texts in lists for text in texts] if one_by_one else [p for texts in lists for p in self.score(texts)]
        return time.process_time() - begin, found


def measure(build, shape, kind, rounds, count, weights):
    layers, units, vocabulary = map(int, shape.split("x"))
    lists = n_best(kind, vocabulary, count)
    count = len(lists) * TEXTS
    with tempfile.TemporaryDirectory() as folder:
        model, texts = os.path.join(folder, "m"), os.path.join(folder, "lists")
        with open(texts, "w") as file:
            file.write("\n\n".join("\n".join(" ".join(map(str, text)) for text in one) for one in lists))
        ours = subprocess.Popen([os.path.join(build, "peer_rescoring"), str(layers), str(units), str(vocabulary), model, texts],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        ask(ours, 1)  # "ready"
        theirs = Onnx(model)

        def score(weights):
            seconds, positions, *scores = ask(ours, 2 + count, weights + "\n")
            return float(seconds), int(positions), np.array(scores, float)

        reference = [theirs.round(lists, one)[1] for one in (True, False)]
        difference = {}
        for one in weights:
            _, positions, scores = score(one)
            difference[one] = np.max([np.abs(scores - other).max() for other in reference]) / LENGTH  # NaN stays
            most = 1e-4 if one in ("plain", "full") else 2e-2
            assert difference[one] < most, f"{one}: scores differ by {difference[one]} a token"
        times = []
        for _ in range(rounds):
            times.append([*(score(one)[0] for one in weights), theirs.round(lists, False)[0], theirs.round(lists, True)[0]])
            print(shape, kind, times[-1], file=sys.stderr, flush=True)
        ours.stdin.close()
        ours.wait()
    speed = [count / statistics.median(t) for t in zip(*times)]
    return [{"shape": shape, "lists": kind, "weights": one, "positions": positions, "tokens": count * LENGTH, "isogloss": speed[i],
             "onnxruntime batch": speed[-2], "onnxruntime one by one": speed[-1],
             "ratio to batch": statistics.median(t[-2] / t[i] for t in times),
             "ratio to one by one": statistics.median(t[-1] / t[i] for t in times), "difference": difference[one]}
            for i, one in enumerate(weights)]


def numbers(rows):
    """What --csv writes: ours over the batches of onnxruntime as on docs/inference.md, and hypotheses a second."""
    differences = []
    for r in rows:
        column = f"{' × '.join(f'{int(n):,}' for n in r['shape'].split('x'))}, {r['lists']}"
        weights = "plain" if r["weights"] == "plain" else f"packed, {r['weights']}"
        yield "ours ÷ onnxruntime", weights, column, f"{r['ratio to batch']:.2f}"
        yield "hypotheses a second", weights, column, f"{r['isogloss']:.1f}"
        if r["weights"] == "int8":
            differences.append(("ours ÷ onnxruntime", "largest difference of int8, nats a token", column, f"{r['difference']:.0e}".replace("e-0", "e-")))
    yield from differences


def shapes(text):
    if not re.fullmatch(r"([1-9][0-9]*x){2}[1-9][0-9]*(,([1-9][0-9]*x){2}[1-9][0-9]*)*", text):
        raise argparse.ArgumentTypeError(f"found '{text}', expected layers x units x vocabulary, such as 2x650x10000, with commas between")
    return text.split(",")


def kinds_of_weights(text):
    for one in text.split(","):
        if one not in ("plain", "full", "bf16", "int8"):
            raise argparse.ArgumentTypeError(f"found '{one}', expected some of plain, full, bf16 and int8, with commas between")
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=at_least(1), default=5)
    parser.add_argument("--lists", type=at_least(1), default=2, help="n-best lists of each kind")
    parser.add_argument("--shapes", type=shapes, default="2x650x10000,3x2048x500", help="layers x units x vocabulary, with commas between")
    parser.add_argument("--weights", type=kinds_of_weights, default="plain,full,int8", help="how isogloss holds them: plain, or packed as full, bf16 or int8")
    parser.add_argument("--csv", help="write the numbers of the page to this file, such as benchmarks/results/onnxruntime_cascade_lake.csv")
    parser.add_argument("--json", help="write all figures to this file")
    o = parser.parse_args()
    require_programs(os.path.join(o.build, "peer_rescoring"))
    require_place(o.csv)
    require_place(o.json)
    print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")
    print("| model | lists | read / tokens | weights | isogloss | onnxruntime, batch | ratio | one by one | ratio | difference a token |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for shape in o.shapes:
        for kind in ("alike", "different"):
            for r in measure(o.build, shape, kind, o.rounds, o.lists, o.weights):
                rows.append(r)
                print(f"| {shape} | {kind} | {r['positions']} / {r['tokens']} | {r['weights']} | {r['isogloss']:.1f} | "
                      f"{r['onnxruntime batch']:.1f} | {r['ratio to batch']:.2f} | {r['onnxruntime one by one']:.1f} | "
                      f"{r['ratio to one by one']:.2f} | {r['difference']:.1e} |", flush=True)
    if o.csv:
        write_csv(o.csv, numbers(rows), 1, f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")
    if o.json:
        with open(o.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
