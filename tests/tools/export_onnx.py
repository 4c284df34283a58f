"""tools/export_onnx.py: onnxruntime predicts a text as the program does, with states that are carried by hand.

    export_onnx.py PROGRAM      needs onnx, onnxruntime and safetensors
"""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs" / "language_model"))
from program import Folder, craft, read, run, sentences, tensors, train, write  # noqa: E402

MODELS = {  # the simple one at a low rate: trained at 1 it is chaotic, and 1e-7 at one step are 1e-2 some hundred steps on
    "tied": [],
    "of other widths": ["--units", "9,7,6", "--embedding", 5, "--head-bias"],
    "free": ["--head", "free", "--embedding", 5, "--loss", "ce"],
    "simple": ["--cell", "rnn", "--level", "character", "--rate", 0.1],
    "gated": ["--cell", "gru", "--head-bias"],
    "quasi-recurrent": ["--cell", "qrnn", "--units", "9,6", "--embedding", 5],
    "highway": ["--cell", "rhn", "--depth", 3, "--layers", 2, "--scheme", "recurrent"],
}


def export(model, to, status=0):
    done = subprocess.run([sys.executable, "-B", ROOT / "tools" / "export_onnx.py", model, to], capture_output=True, text=True)
    assert done.returncode == status and (done.stderr == "") == (status == 0), done
    return done.stderr


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def predict(model, tokens, cuts):
    """[N, V], of one column that is read in pieces; states go from each to the next."""
    names = [one.name for one in model.get_inputs()[1:]]
    states = {one.name: np.zeros((1, one.shape[1]), np.float32) for one in model.get_inputs()[1:]}
    assert [one.name for one in model.get_outputs()[1:]] == [name + ".next" for name in names]
    rows = []
    for piece in np.split(tokens, cuts):
        out, *after = model.run(None, {"tokens": piece[:, None], **states})
        rows.append(out[:, 0])
        states = dict(zip(names, after))
    return np.concatenate(rows), states


def the_same():
    """Log-probabilities of all tokens of a text, and of a batch of lines."""
    model = session("m.onnx")
    lines = [line.split("\t") for line in model.get_modelmeta().custom_metadata_map["vocabulary"].split("\n")]
    words, eos = [line[0] for line in lines[6:-1]], lines[4][1]
    run("compare", "--model", "m", "--against", "m", "--text", "test.txt", "--columns", 1, "--neighbours", 1, "--frequent", 1,
        "--likeliest", 1, "--csv", "ours.csv")
    with open("ours.csv", newline="") as file:
        ours = [(row["target"], float(row["log_p_first"])) for row in csv.DictReader(file)]
    targets = np.array([words.index(word) for word, _ in ours])
    tokens = np.concatenate([[words.index(eos)], targets[:-1]])
    log_p, states = predict(model, tokens, [1, 2, 9, 40, 200])
    assert log_p.shape == (len(ours), len(words)) and len(ours) > 300
    assert np.abs(np.exp(log_p).sum(1) - 1).max() < 1e-5
    theirs = log_p[np.arange(len(ours)), targets]
    difference = np.abs(theirs - [p for _, p in ours]).max()
    assert difference < 1e-5, difference
    again, _ = predict(model, tokens, [])
    assert np.abs(again - log_p).max() < 1e-5
    # B columns are B texts
    two = model.run(None, {"tokens": np.stack([tokens[:7], tokens[7:14]], 1),
                           **{name: np.zeros((2, state.shape[1]), np.float32) for name, state in states.items()}})
    assert np.abs(two[0][:, 0] - log_p[:7]).max() < 1e-5
    return difference


def refusals():
    assert "No such file" in export("none", "x", 1)
    write("x.txt", "no tensors at all, but long enough")
    assert "not a safetensors file" in export("x.txt", "x", 1)
    assert "give another name" in export("m", "m", 1)
    assert "none/x" in export("m", "none/x", 1)
    options = json.loads(tensors("m")[1]["language_model"])
    for other, says in [({"cell": "mgu"}, "its cell is 'mgu'"), ({"layers": 7}, "holds no tensor"), ({"units": [8, 8, 8]}, "its options have 3 widths for 2 layers"),
                        ({"head": "deep"}, "its head is 'deep'"), ({"cell": "gru", "rounds": 5}, "its cells have 5 rounds")]:
        craft("m", "wrong", {**options, **other})
        error = export("wrong", "x", 1)
        assert says in error and error.count("\n") == 1, error
    for other, says in [({"layers": 10**9}, "1000000000 layers, expected 1 to 1000"), ({"layers": "x"}, "it is damaged")]:
        craft("m", "wrong", {**options, **other})
        assert says in export("wrong", "x", 1), says
    craft("m", "wrong", {name: value for name, value in options.items() if name != "cell"})
    assert "KeyError('cell')" in export("wrong", "x", 1)
    content = bytearray(read("m"))
    content[-5] ^= 1  # a bit of a weight
    write("flipped", content)
    assert "the file is damaged: its checksum is" in export("flipped", "x", 1) and not os.path.exists("x")
    assert "is a folder" in export(".", "x", 1)
    before = read("m")
    export("m", "m.onnx")
    assert read("m") == before


with Folder():
    write("train.txt", sentences(300))
    write("valid.txt", sentences(40, seed=2))
    write("test.txt", sentences(60, seed=3))
    for name, options in MODELS.items():
        train("m", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1, "--init", 0.5, *options)
        export("m", "m.onnx")
        print(f"{name}: largest difference {the_same():.1e}")
    refusals()
