"""Reads thousands of made-up safetensors files with isogloss and with the package safetensors, the format's own reader.

isogloss takes nothing that the package refuses; what both take they read alike; and what isogloss alone refuses it
refuses for one of the reasons in docs/io/safetensors.md, which STRICTER lists.

Usage: against_safetensors.py PROGRAM      PROGRAM is the built list_tensors
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

INSTALLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/python/bin/python")
try:
    import safetensors
except ImportError:
    if os.path.exists(INSTALLED) and not os.path.samefile(sys.prefix, os.path.dirname(os.path.dirname(INSTALLED))):
        os.execv(INSTALLED, [INSTALLED, "-B", *sys.argv])
    sys.exit("isogloss: there is no Python package safetensors, with which this test compares. No distribution has it: "
             "'.ci/install build full' installs it into build/python, as 'python3 -m venv build/python && "
             "build/python/bin/pip install safetensors' does in the root of the project")

SIZES = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
         "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
         "C64": 64, "F64": 64, "I64": 64, "U64": 64}
# What isogloss alone refuses: a name for each reason, and the message.
STRICTER = {
    "metadata that are null": r"null where none is allowed, at the key '__metadata__'",
    "the name of a tensor twice": r"the tensor .* appears twice",
    "a key of the metadata twice": r"the metadata .* appears twice",
    "more than 32 sizes": r"more than 32 sizes",
    "anything before the first brace": r"the header is not a JSON object",
    "another key in a tensor": r"appears twice or is unknown",
    "sizes that multiply beyond counting beside a 0": r"a countable number of bytes",
    "floats of 4, 6 and rare ones of 8 bits": r"unknown scalar type",
    "metadata of isogloss that no longer fit": r"its checksum is wrong",
}
COUNT = 6000
WILD = [-1, 0, 1, 7, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 1.5, 1e30, "3", None, True, [], {}]


def string(value, dice):
    """A JSON string, now and then one that is none, or spelled in another way."""
    if dice.random() < 0.01:
        return dice.choice([b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0041"', b'"a\\', b'"\x01"', b'"\\x41"',
                            b"'a'", b'"\\u0000"', b'"\x00"', b'"\xc3\xa9"', b'"\\/"', b'"\xf4\x90\x80\x80"', b'"\xc0\xaf"'])
    return json.dumps(value).encode()


def a_file(dice):
    """The bytes of a file: right as a rule, wrong in one or two respects else."""
    tensors, at = [], 0
    for i in range(dice.randrange(4)):
        dtype = dice.choice(list(SIZES))
        shape = [dice.choice([1, 2, 3, 4, 8, 0]) for _ in range(dice.randrange(4))]
        bits = SIZES[dtype]
        for n in shape:
            bits *= n
        size = (bits + 7) // 8
        tensors.append([f"t{i}", dtype, shape, [at, at + size]])
        at += size
    metadata = {"a": "b", "é": "c"} if dice.random() < 0.4 else None
    data = bytes(dice.randrange(256) for _ in range(at))

    faults = dice.choice([0, 0, 1, 1, 1, 2])
    extra, lead, trail, twice, special = b"", b"", b" " * dice.randrange(3), False, None
    sound = list(tensors)
    for _ in range(faults):
        t = sound.pop(dice.randrange(len(sound))) if sound else None
        fault = dice.randrange(19)
        if fault == 0 and t:  # overlap or hole
            k = dice.choice([-3, -1, 1, 2, 8])
            t[3] = [t[3][0] + k, t[3][1] + k]
        elif fault == 1 and t:
            t[3][dice.randrange(2)] = dice.choice(WILD)
        elif fault == 2 and t:
            t[3] = dice.choice([t[3][::-1], [], t[3][:1], t[3] + [0], None, "x", {}])
        elif fault == 3 and t and t[2]:
            t[2][dice.randrange(len(t[2]))] = dice.choice(WILD)
        elif fault == 4 and t:
            t[2] = dice.choice([[1] * 32, [1] * 33, [1] * 40, None, 3, [2**32, 2**32, 0], [0, 2**63], [2**62, 4], [2**64 - 1, 0], t[2] + [1]])
        elif fault == 5 and t:
            t[1] = dice.choice(["f32", "F128", "", "COMPLEX", None, 3, "F4", "F32", "F8_E4M3", "F6_E2M3"])
        elif fault == 6 and t:
            t[0] = dice.choice(["", "__metadata__", "t0", "\n", "é", "a" * 300, "😀"])
        elif fault == 7 and len(tensors) > 1:  # the bytes of two change places, in the header alone
            a, b = tensors[:2]
            a[3], b[3] = b[3], a[3]
        elif fault == 8:
            dice.shuffle(tensors)
        elif fault == 9 and t:
            tensors.append(list(t))
        elif fault == 10:
            metadata = dice.choice([None, {}, {"a": 1}, {"a": None}, {"a": {"b": "c"}}, [], "x", {"isogloss.format": "1"},
                                    {"isogloss.checksum": "0" * 16}])
            special = special or ("null" if dice.random() < 0.3 else None)
        elif fault == 11:
            twice = True
        elif fault == 12:
            data += bytes(dice.randrange(1, 5))
        elif fault == 13:
            data = data[:max(0, len(data) - dice.randrange(1, 9))]
        elif fault == 14:
            lead = dice.choice([b" ", b"\n", b"\xef\xbb\xbf", b"\0", b"["])
        elif fault == 15:
            trail = dice.choice([b"\0", b"x", b"\n", b"}", b"\t ", b" \0 "])
        elif fault == 16:
            extra = dice.choice([b',"more":1', b',"dtype":"F32"', b',"shape":[]', b',"":{}'])
        elif fault == 17 and t:
            t[2] = [1.0] + t[2] if dice.random() < 0.5 else [-0.0] + t[2]
        elif fault == 18:
            special = dice.choice(["cut", "length", "nothing", "array", "deep"])
    parts = []
    if metadata is not None:
        text = json.dumps(metadata).encode()
        if twice and text != b"{}" and text[:1] == b"{":
            text = text[:-1] + b"," + text[1:]
        parts.append(b'"__metadata__":' + (b"null" if special == "null" else text))
    for i, (name, dtype, shape, offsets) in enumerate(tensors):
        fields = [b'"dtype":' + (string(dtype, dice) if isinstance(dtype, str) else json.dumps(dtype).encode()),
                  b'"shape":' + json.dumps(shape).encode(), b'"data_offsets":' + json.dumps(offsets).encode()]
        dice.shuffle(fields)
        if special == "nothing" and i == 0:
            fields.pop()
        parts.append(string(name, dice) + b":{" + b",".join(fields) + (extra if i == 0 else b"") + b"}")
    if special == "array":
        parts.append(b'"list":[]')
    if special == "deep":
        parts.append(b'"deep":' + b"[" * 50 + b"]" * 50)
    header = lead + b"{" + b",".join(parts) + b"}" + trail
    length = len(header)
    if special == "length":
        length = dice.choice([0, length - 1, length + 1, length + len(data), length + len(data) + 1, 100_000_001, 2**63, 2**64 - 1])
    content = length.to_bytes(8, "little") + header + data
    return content[:dice.randrange(len(content))] if special == "cut" else content


def by_the_package(content):
    """None where it refuses; else its tensors, and the metadata as its own header shows them."""
    try:
        listed = safetensors.deserialize(content)
    except safetensors.SafetensorError:
        return None
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    return {name: (t["dtype"], list(t["shape"]), bytes(t["data"])) for name, t in listed}, header.get("__metadata__") or {}


def by_isogloss(line):
    """The same of a line that list_tensors printed; where it refused, the reason."""
    kind, *fields = line.split("\t")
    if kind == "refused":
        return fields[0]
    tensors, metadata = {}, {}
    for field in fields:
        what, name, rest = field.split(" ", 2)
        name = bytes.fromhex(name).decode()
        if what == "m":
            metadata[name] = bytes.fromhex(rest).decode()
        else:
            dtype, shape, data = re.fullmatch(r"(\S+) \[(.*)\] (.*)", rest).groups()
            tensors[name] = dtype, [int(n) for n in shape.split(", ") if n], bytes.fromhex(data)
    return tensors, metadata


def main(program):
    dice = random.Random(1)
    files = [a_file(dice) for _ in range(COUNT)]
    outcomes, stricter = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(i)) for i in range(COUNT)]
        for path, content in zip(paths, files):
            with open(path, "wb") as file:
                file.write(content)
        done = subprocess.run([program], input="\n".join(paths), capture_output=True, text=True, check=True, timeout=300)
    lines = done.stdout.splitlines()
    assert len(lines) == COUNT, (len(lines), done.stderr)
    for content, line in zip(files, lines):
        theirs, ours = by_the_package(content), by_isogloss(line)
        refused = isinstance(ours, str)
        outcomes["refused" if refused else "taken", "refused" if theirs is None else "taken"] += 1
        if theirs is None:
            assert refused, ("taken by isogloss, refused by the package", content)
        elif refused:
            reasons = [reason for reason, message in STRICTER.items() if re.search(message, ours)]
            again = re.search(r"tensor '(\w+)'.*expected to begin at", ours)  # the second of a name lies where the first does
            if again and content.count(f'"{again[1]}":'.encode()) > 1:
                reasons.append("the name of a tensor twice")
            assert reasons, ("refused by isogloss alone", ours, content)
            stricter[reasons[0]] += 1
        else:
            assert ours == theirs, ("read differently", ours, theirs)
    print(f"of {COUNT} files (isogloss, package):", dict(outcomes))
    print("refused by isogloss alone:", dict(stricter))
    assert outcomes["taken", "taken"] > COUNT / 5 and outcomes["refused", "refused"] > COUNT / 5, "the files show too little"
    assert stricter.keys() == STRICTER.keys(), ("never seen", STRICTER.keys() - stricter.keys())
    taken = {t[0] for line in lines if line.startswith("taken") for t in by_isogloss(line)[0].values()}
    rare = {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
    assert taken == SIZES.keys() - rare, (SIZES.keys() - rare) ^ taken


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
