"""Runs language_model and reads what it writes, with the standard library alone."""
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checksum import crc64  # noqa: E402
from grammar import grammar  # noqa: E402

if len(sys.argv) != 2 or not os.path.exists(sys.argv[1]):
    sys.exit(f"usage: {sys.argv[0]} PROGRAM, where PROGRAM is the language_model that was built")
PROGRAM = os.path.abspath(sys.argv[1])


class Folder:
    """A folder that is the current one for a while and then removed."""

    def __enter__(self):
        self.before = os.getcwd()
        self.path = tempfile.mkdtemp(prefix="isogloss_programs_")
        os.chdir(self.path)
        return self

    def __exit__(self, *_):
        os.chdir(self.before)
        shutil.rmtree(self.path)


def run(*arguments, status=0, text=None, environment=None):
    """The finished process; fails unless it ended with this status and, where that is an error and not a training that ran away (3), wrote to stderr."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300,
        env={**os.environ, **(environment or {})})
    call = " ".join(map(str, arguments))
    assert status in (0, 3) or done.stderr, f"{call}\nstatus {done.returncode} without a word on stderr\n{done.stdout}"
    assert done.returncode == status, f"{call}\nstatus {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
    return done


def guards_outputs(*arguments, inputs, outputs):
    """No output of the call is one of its inputs, another output or somebody else's file, or in a folder that is not there; and
    what it prints comes whole or is an error."""
    write("notes", "notes of my own\n")

    def refuses(options, says):
        before = {name: read(name) for name in os.listdir(".") if os.path.isfile(name)}
        error = run(*arguments, *options, status=1).stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)
        assert before == {name: read(name) for name in os.listdir(".") if os.path.isfile(name)}, options

    for option in outputs:
        for path in inputs:
            refuses([option, path], "reads; it was left unchanged")
        refuses([option, "notes"], f"{option} 'notes' already exists")
        refuses([option, "none/x"], "'none/', which does not exist")
    if len(outputs) > 1:
        refuses([x for option in outputs for x in (option, "same")], "writes")
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "standard output could not be written" in done.stderr, done


def train(model, *arguments, **keywords):
    """A training of a small model on one thread, from the beginning unless --resume is given; later arguments win."""
    anew = [] if "--resume" in arguments else ["--overwrite"]
    return run("train", *anew, "--model", model, "--units", 8, "--batch", 4, "--bptt", 10, "--epochs", 2, "--threads", 1,
               *arguments, **keywords)


def sentences(count, seed=1):
    """Lines of the small grammar."""
    return "".join(" ".join(word for word, _ in words) + "\n" for words in grammar(count, seed))


def write(path, content):
    with open(path, "wb") as file:
        file.write(content if isinstance(content, (bytes, bytearray)) else content.encode())
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tensors(path):
    """Name -> (type, shape, bytes) of a safetensors file, and its metadata."""
    content = read(path)
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__")
    data = content[8 + length:]
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}, metadata


def floats(tensor):
    assert tensor[0] == "F32", tensor[0]
    return struct.unpack(f"<{len(tensor[2]) // 4}f", tensor[2])


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def same_training(a, b):
    """Models of the same bytes, trainings equal in everything but the clock, logs of one run with the same numbers."""
    assert read(a) == read(b), f"the models {a} and {b} differ"
    left, right = tensors(a + ".train")[0], tensors(b + ".train")[0]
    assert left.keys() == right.keys()
    for name in left.keys() - {"state/run", "state/seconds", "state/cpu_seconds"}:
        assert left[name] == right[name], f"{name} differs"
    clock = {"run", "seconds", "tokens_per_second", "cpu_seconds"}
    logs = [[{key: value for key, value in row.items() if key not in clock} for row in rows(model + ".csv")] for model in (a, b)]
    assert logs[0] == logs[1], logs
    for model in (a, b):
        assert len({row["run"] for row in rows(model + ".csv")}) == 1, f"the log of {model} is of several runs"


def number(pattern, output):
    """The number in the first group of a pattern that the output must hold."""
    found = re.search(pattern, output)
    assert found, f"no {pattern!r} in\n{output}"
    return float(found.group(1).replace(",", ""))


def poison(source, target, name, value):
    """A copy of a model in which the first number of a tensor is this one, with a checksum that is right."""
    content = bytearray(read(source))
    (length,) = struct.unpack_from("<Q", content)
    struct.pack_into("<f", content, 8 + length + json.loads(content[8:8 + length])[name]["data_offsets"][0], value)
    digits = content.index(b'"isogloss.checksum":"') + len(b'"isogloss.checksum":"')
    content[digits:digits + 16] = b"0" * 16
    content[digits:digits + 16] = b"%016x" % crc64(content)
    write(target, content)


def craft(source, target, options):
    """A copy of a model in which other options stand, with a checksum that is right."""
    content = read(source)
    (length,) = struct.unpack_from("<Q", content)
    head, data = content[8:8 + length].rstrip(b" "), content[8 + length:]
    before = json.loads(head)["__metadata__"]["language_model"]
    old, new = (json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode() for text in (before, json.dumps(options)))
    assert head.count(old) == 1, head
    head = head.replace(old, new)
    head += b" " * (-(len(head) + 8) % 64)
    digits = head.index(b'"isogloss.checksum":"') + len(b'"isogloss.checksum":"')
    head = head[:digits] + b"0" * 16 + head[digits + 16:]
    whole = struct.pack("<Q", len(head)) + head + data
    write(target, whole.replace(head, head[:digits] + b"%016x" % crc64(whole) + head[digits + 16:], 1))
