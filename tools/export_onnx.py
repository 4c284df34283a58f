#!/usr/bin/env python3
"""A model of language_model as ONNX, with its states as inputs and outputs.

    python3 tools/export_onnx.py MODEL.safetensors MODEL.onnx       needs: pip install onnx safetensors

    inputs    tokens [T, B] int64, and for each recurrent layer its states [B, n]: lstm1.h, lstm1.c, gru1.h, rhn1.y ...
    outputs   log_probabilities [T, B, V] of the token after each, and the states after the last, lstm1.h.next ...

Initial states are zero; the output NAME.next of one run is the input NAME of the next. T and B are dynamic. There is no
dropout: predictions are those of `language_model evaluate`. The metadata hold the options of the model ("language_model") and
its vocabulary ("vocabulary", in the format of `lds_text count --vocabulary-to`), whose types are numbered from 0 in its order.
"""
import argparse
import json
import os
import sys

try:
    import numpy as np
    import onnx
    import safetensors
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    sys.exit(f"export_onnx.py: {sys.executable} has no module '{error.name}'; pip install onnx safetensors, or run it with a Python that has them")

OPSET = 17
LIMIT = 2**31 - 2**20  # maximum bytes of weights and vocabulary in a protocol buffers file, with room for the rest


class Refusal(Exception):
    """Why a model cannot be exported."""


OPENING = b'{"__metadata__":{"isogloss.checksum":"'  # how isogloss begins a header; 16 digits follow


def crc64(content):
    """CRC-64/XZ: the lanes of the content side by side, then one after another."""
    tables = np.zeros((8, 256), np.uint64)
    one = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        one = (one >> np.uint64(1)) ^ np.where(one & np.uint64(1), np.uint64(0xC96C5795D7870F42), np.uint64(0))
    tables[0] = one
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & np.uint64(255)] ^ (tables[k - 1] >> np.uint64(8))
    width = 4096  # words of 8 bytes in a lane
    lanes = len(content) // (8 * width)
    words = np.frombuffer(content, "<u8", lanes * width).reshape(lanes, width)
    # After the lanes, each bit of a state alone: what becomes of it in a lane of zeros.
    states = np.concatenate([np.zeros(lanes, np.uint64), np.uint64(1) << np.arange(64, dtype=np.uint64)])
    for j in range(width):
        states[:lanes] ^= words[:, j]
        new = tables[7][states & np.uint64(255)]
        for i in range(1, 8):
            new ^= tables[7 - i][states >> np.uint64(8 * i) & np.uint64(255)]
        states = new
    shifted, crc = states[lanes:].tolist(), 2**64 - 1
    for state in states[:lanes].tolist():
        for bit in range(64):
            if crc >> bit & 1:
                state ^= shifted[bit]
        crc = state
    byte = tables[0].tolist()
    for b in content[8 * width * lanes:]:
        crc = byte[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ 2**64 - 1


class File:
    """The tensors of a file as float, and its metadata."""

    KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}

    def __init__(self, path):
        self.path = path
        try:
            with open(path, "rb") as file:
                content = file.read()
            self.tensors = dict(safetensors.deserialize(content))
            with safetensors.safe_open(path, "np") as file:
                self.metadata = file.metadata() or {}
        except OSError as error:
            raise Refusal(f"{path}: {error.strerror or error}") from error
        except safetensors.SafetensorError as error:
            raise Refusal(f"{path}: not a safetensors file, or a damaged one ({error})") from error
        if "isogloss.checksum" in self.metadata:
            at = 8 + len(OPENING)
            found = f"{crc64(content[:at] + b'0' * 16 + content[at + 16:]):016x}"
            if content[8:at] != OPENING or found != self.metadata["isogloss.checksum"]:
                raise Refusal(f"{path}: the file is damaged: its checksum is {found}, but '{self.metadata['isogloss.checksum']}' was written; "
                              "restore it from a copy")

    def find(self, name, *shape):
        """The tensor as float; refuses one of another shape."""
        if name not in self.tensors:
            raise Refusal(f"{self.path}: holds no tensor '{name}', which a model of its options has; it is damaged")
        one = self.tensors[name]
        if tuple(one["shape"]) != shape:
            raise Refusal(f"{self.path}: tensor '{name}' is {list(one['shape'])}, expected {list(shape)}; it is damaged")
        if one["dtype"] not in self.KINDS:
            raise Refusal(f"{self.path}: tensor '{name}' is of type {one['dtype']}; expected one of {', '.join(self.KINDS)}")
        values = np.frombuffer(one["data"], self.KINDS[one["dtype"]]).reshape(shape)
        if one["dtype"] == "BF16":  # the upper half of a float
            return (values.astype(np.uint32) << 16).view(np.float32)
        if one["dtype"] == "I8":  # rows of integers, times the scale of each
            return values.astype(np.float32) * self.find(name + ".scale", shape[0])[:, None]
        return values.astype(np.float32)

    def text(self, name):
        return bytes(self.tensors[name]["data"]).decode()


class Model:
    """The ONNX graph under construction."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs, self.bytes = [], [], [], [], 0

    def constant(self, name, values):
        values = np.ascontiguousarray(values)
        self.bytes += values.nbytes
        if self.bytes > LIMIT:
            raise Refusal("weights and vocabulary take more than 2 GiB, which a single file of ONNX cannot hold")
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def indices(self, name, *values):
        return self.constant(name, np.array(values, np.int64))

    def add(self, kind, inputs, outputs, **attributes):
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0] or outputs[-1], **attributes))
        return outputs[0]

    def state(self, name, width):
        """Adds an input [B, width] and an output for its value after the last step; returns the name of the latter."""
        for names, end in ((self.inputs, ""), (self.outputs, ".next")):
            names.append(helper.make_tensor_value_info(name + end, TensorProto.FLOAT, ["B", width]))
        return name + ".next"


def blocks(values, order):
    """The gates of [rows, k n], reordered and stacked: [1, k n, rows]."""
    parts = np.split(values, max(order) + 1, axis=1)
    return np.concatenate([parts[k] for k in order], axis=1).T[None]


def operator_cell(m, file, kind, name, x, width, units):
    """A layer that is an operator of ONNX: x [T, B, width] to [T, B, units]. Gate order in ONNX: LSTM i, o, f, c; GRU z, r, h."""
    if kind == "gru":
        W, U, b = (np.concatenate([file.find(f"{name}.{one}", rows, 2 * units), file.find(f"{name}.{one}q", rows, units)], 1)
                   for one, rows in (("W", width), ("U", units), ("b", 1)))
    else:
        k = {"lstm": 4, "rnn": 1}[kind]
        W, U, b = (file.find(f"{name}.{one}", rows, k * units) for one, rows in (("W", width), ("U", units), ("b", 1)))
    order = {"lstm": [0, 3, 1, 2], "gru": [0, 1, 2], "rnn": [0]}[kind]
    bias = blocks(b, order)[..., 0]
    inputs = [x, m.constant(f"{name}.W", blocks(W, order)), m.constant(f"{name}.U", blocks(U, order)),
              m.constant(f"{name}.b", np.concatenate([bias, np.zeros_like(bias)], 1)), ""]
    ends = []
    for state in ["h", "c"] if kind == "lstm" else ["h"]:
        after = m.state(f"{name}.{state}", units)
        inputs.append(m.add("Unsqueeze", [f"{name}.{state}", "first"], f"{name}.{state}.one"))
        ends.append((f"{name}.{state}.end", after))
    reset = {"linear_before_reset": 0} if kind == "gru" else {}  # r before the product, as in isogloss
    m.add(kind.upper(), inputs, [f"{name}.out"] + [end for end, _ in ends], hidden_size=units, **reset)
    for end, after in ends:
        m.add("Squeeze", [end, "first"], after)
    return m.add("Squeeze", [f"{name}.out", "second"], f"{name}.outputs")


def rhn(m, file, name, x, width, units, depth):
    """A recurrent highway layer, for which ONNX has no operator: the step is written out, and Scan runs over it."""
    projected = m.add("MatMul", [x, m.constant(f"{name}.W", file.find(f"{name}.W", width, 2 * units))], f"{name}.x")
    halves = m.indices(f"{name}.halves", units, units)
    one = m.constant(f"{name}.one", np.float32(1))
    here = lambda one: f"{name}.step.{one}"
    before, step = len(m.nodes), here("s0")
    for l in range(1, depth + 1):
        R = m.constant(f"{name}.R{l}", file.find(f"{name}.R{l}", units, 2 * units))
        b = m.constant(f"{name}.b{l}", file.find(f"{name}.b{l}", 1, 2 * units))
        z = m.add("Gemm", [step, R, b], here(f"z{l}"))
        if l == 1:
            z = m.add("Add", [z, here("x")], here("z"))
        m.add("Split", [z, halves], [here(f"a{l}"), here(f"c{l}")], axis=1)
        h, g = m.add("Tanh", [here(f"a{l}")], here(f"h{l}")), m.add("Sigmoid", [here(f"c{l}")], here(f"g{l}"))
        new = m.add("Mul", [h, g], here(f"new{l}"))
        kept = m.add("Mul", [step, m.add("Sub", [one, g], here(f"carry{l}"))], here(f"kept{l}"))
        step = m.add("Add", [new, kept], here(f"s{l}"))
    m.add("Identity", [step], here("y"))
    info = [helper.make_tensor_value_info(s, TensorProto.FLOAT, ["B", n])
            for s, n in ((here("s0"), units), (here("x"), 2 * units), (step, units), (here("y"), units))]
    body = helper.make_graph(m.nodes[before:], f"{name}.step", info[:2], info[2:])
    del m.nodes[before:]
    m.add("Scan", [f"{name}.y", projected], [m.state(f"{name}.y", units), f"{name}.outputs"], body=body, num_scan_inputs=1)
    return f"{name}.outputs"


def qrnn(m, file, name, x, width, units):
    """A quasi-recurrent layer: the products are those of the whole sequence, and Scan runs over c alone."""
    c_next, x_next = m.state(f"{name}.c", units), m.state(f"{name}.x", width)
    here = lambda one: f"{name}.step.{one}"
    both = m.add("Concat", [m.add("Unsqueeze", [f"{name}.x", "first"], f"{name}.x.one"), x], f"{name}.both", axis=0)
    past = m.add("Slice", [both, "first", m.indices(f"{name}.end", -1), "first"], f"{name}.past")
    m.add("Squeeze", [m.add("Slice", [both, f"{name}.end", m.indices(f"{name}.far", 2**62), "first"], f"{name}.last"), "first"], x_next)
    W, V = (m.constant(f"{name}.{one}", file.find(f"{name}.{one}", width, 3 * units)) for one in "WV")
    sums = m.add("Add", [m.add("MatMul", [x, W], f"{name}.xW"), m.add("MatMul", [past, V], f"{name}.xV")], f"{name}.sums")
    sums = m.add("Add", [sums, m.constant(f"{name}.b", file.find(f"{name}.b", 1, 3 * units)[0])], f"{name}.biased")
    m.add("Split", [sums, m.indices(f"{name}.thirds", units, units, units)], [f"{name}.{one}" for one in "uvw"], axis=2)
    z, f, o = (m.add(kind, [f"{name}.{one}"], f"{name}.{to}") for kind, one, to in (("Tanh", "u", "z"), ("Sigmoid", "v", "f"), ("Sigmoid", "w", "o")))
    new = m.add("Mul", [m.add("Sub", [m.constant(f"{name}.one", np.float32(1)), f], f"{name}.open"), z], f"{name}.new")
    before = len(m.nodes)
    m.add("Add", [m.add("Mul", [here("f"), here("c")], here("kept")), here("new")], here("next"))
    m.add("Identity", [here("next")], here("cell"))
    info = [helper.make_tensor_value_info(here(one), TensorProto.FLOAT, ["B", units]) for one in ("c", "f", "new", "next", "cell")]
    body = helper.make_graph(m.nodes[before:], f"{name}.step", info[:3], info[3:])
    del m.nodes[before:]
    m.add("Scan", [f"{name}.c", f, new], [c_next, f"{name}.cells"], body=body, num_scan_inputs=2)
    return m.add("Mul", [o, f"{name}.cells"], f"{name}.outputs")


def widths(o, path):
    """Widths of the layers from the bottom up; one number is that of all."""
    units = o["units"] if isinstance(o["units"], list) else [o["units"]]
    layers = o.get("layers") or len(units)
    if not 1 <= layers <= 1000:
        raise Refusal(f"{path}: its options have {layers} layers, expected 1 to 1000; it is damaged")
    units = units * layers if len(units) == 1 else units
    if len(units) != layers:
        raise Refusal(f"{path}: its options have {len(units)} widths for {layers} layers; it is damaged")
    return units


def export(path):
    """The file as an ONNX model."""
    file = File(path)
    if "language_model" not in file.metadata or "state/vocabulary" not in file.tensors:
        raise Refusal(f"{path}: this is not a model of language_model; use a file that `language_model train` wrote")
    o = json.loads(file.metadata["language_model"])
    if o["cell"] not in ("rnn", "lstm", "gru", "rhn", "qrnn"):
        raise Refusal(f"{path}: its cell is '{o['cell']}', expected rnn, lstm, gru, rhn or qrnn; it has no form in ONNX here")
    if o["cell"] in ("lstm", "gru") and o.get("rounds", 0) != 0:
        raise Refusal(f"{path}: its cells have {o['rounds']} rounds of a mogrifier, expected none; they have no form in ONNX here")
    if o["head"] not in ("tied", "free"):
        raise Refusal(f"{path}: its head is '{o['head']}', expected tied or free; it has no form in ONNX here")
    vocabulary = file.text("state/vocabulary")
    V, n = int(vocabulary.split("\ntypes\t")[1].split("\n")[0]), o["embedding"]

    m = Model()
    m.bytes = len(vocabulary.encode()) + len(file.metadata["language_model"].encode())
    m.inputs.append(helper.make_tensor_value_info("tokens", TensorProto.INT64, ["T", "B"]))
    m.outputs.append(helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, ["T", "B", V]))
    if o["cell"] != "rhn":
        m.indices("first", 0)
    if o["cell"] not in ("rhn", "qrnn"):
        m.indices("second", 1)
    h = m.add("Gather", [m.constant("E", file.find("E", V, n)), "tokens"], "embedded")
    for l, units in enumerate(widths(o, path), 1):
        name = f"{o['cell']}{l}"
        if o["cell"] == "rhn":
            h = rhn(m, file, name, h, n, units, o["depth"])
        elif o["cell"] == "qrnn":
            h = qrnn(m, file, name, h, n, units)
        else:
            h = operator_cell(m, file, o["cell"], name, h, n, units)
        n = units
    if o["head"] == "tied" and n != o["embedding"]:
        h = m.add("MatMul", [h, m.constant("softmax.P", file.find("softmax.P", n, o["embedding"]))], "projected_hidden")
    if o["head"] == "tied":
        table = m.add("Transpose", ["E"], "softmax.E", perm=[1, 0])
    else:
        table = m.constant("softmax.W", np.ascontiguousarray(file.find("softmax.W", V, n).T))
    h = m.add("MatMul", [h, table], "products")
    if o["head"] == "free" or o["head-bias"]:
        h = m.add("Add", [h, m.constant("softmax.b", file.find("softmax.b", 1, V)[0])], "logits")
    m.add("LogSoftmax", [h], "log_probabilities", axis=-1)

    model = helper.make_model(helper.make_graph(m.nodes, "language_model", m.inputs, m.outputs, m.weights),
                              opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="isogloss")
    helper.set_model_props(model, {"language_model": file.metadata["language_model"], "vocabulary": vocabulary})
    onnx.checker.check_model(model)
    return model


def save(model, path):
    """Writes the file completely or not at all; what is not a regular file, such as a pipe, is written directly."""
    if os.path.exists(path) and not os.path.isfile(path):
        onnx.save(model, path)
        return
    path = os.path.realpath(path)
    name, ending = os.path.splitext(path)  # the ending tells onnx the format
    part = f"{name}.part{os.getpid()}{ending}"
    try:
        onnx.save(model, part)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a file that `language_model train` or `convert` wrote")
    parser.add_argument("onnx", help="where the ONNX file goes")
    paths = parser.parse_args()
    try:
        if os.path.isdir(paths.model):
            raise Refusal(f"{paths.model}: is a folder, expected a file that `language_model train` or `convert` wrote")
        if os.path.exists(paths.onnx) and os.path.exists(paths.model) and os.path.samefile(paths.model, paths.onnx):
            raise Refusal(f"{paths.onnx}: is the model itself; give another name")
        try:
            model = export(paths.model)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # what its options or vocabulary lack
            raise Refusal(f"{paths.model}: found options or a vocabulary that cannot be read ({error!r}), expected those that `language_model "
                          "train` writes; it is damaged, restore it from a copy") from error
        save(model, paths.onnx)
    except Refusal as refusal:
        sys.exit(f"export_onnx.py: {refusal}")
    except OSError as error:
        sys.exit(f"export_onnx.py: {paths.onnx}: {error.strerror}")


if __name__ == "__main__":
    main()
