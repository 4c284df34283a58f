#!/usr/bin/env python3
"""Counting co-occurrences within a window: `lds_text count` and GloVe's `cooccur`, on the same text, one thread each.

    cooccur.py BUILD GLOVE [--tokens 10000000] [--window 7] [--memory 2] [--rounds 3] [--folder .] [--check] [--json FILE]

BUILD is a build folder (build/release) with programs/lds_text and benchmarks/zipf_text, which makes the text; GLOVE is the folder of
GloVe's programs vocab_count and cooccur. Both are given the vocabulary, read the text from a file in --folder and write their
counts to another; pairs do not cross line ends, the later word is the row, counts are not weighted by distance. Their results differ:
lds_text keeps the distances apart (one matrix each), cooccur adds them up (one matrix). Memory is in GiB for both.

The sides alternate; a figure is the median over the rounds, a ratio the median of the rounds' ratios (cooccur's time over ours).
--check compares every count, for small texts; it needs numpy.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from inputs import at_least, require_place, require_programs


def timed(command, **streams):
    """Processor time and elapsed time in seconds and peak memory in MiB of a program."""
    begin = time.monotonic()
    program = subprocess.Popen(list(map(str, command)), env={**os.environ, "OMP_NUM_THREADS": "1"}, **streams)
    _, status, use = os.wait4(program.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {status}")
    return {"cpu": use.ru_utime + use.ru_stime, "wall": time.monotonic() - begin, "peak": use.ru_maxrss / 1024}


def total(path, name):
    """Our counts: {(later word, earlier word): count}, summed over distances."""
    import numpy as np

    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()

    def array(key):
        at, end = header[key]["data_offsets"]
        return np.frombuffer(data[at:end], {"I32": "<i4", "U32": "<u4", "I64": "<i8", "U8": "u1"}[header[key]["dtype"]])

    sums = {}
    k = 1
    while f"starts/{k}" in header:
        rows = np.repeat(np.arange(len(name)), np.diff(array(f"starts/{k}")))
        for i, j, n in zip(rows, array(f"columns/{k}"), array(f"values/{k}")):
            sums[name[i], name[j]] = sums.get((name[i], name[j]), 0) + int(n)
        k += 1
    return {pair: n for pair, n in sums.items() if "<eos>" not in pair}


def check(ours, theirs, own_words, their_words):
    with open(own_words, encoding="utf-8") as f:
        lines = f.read().splitlines()
    name = [line.split("\t")[0] for line in lines[1 + next(i for i, line in enumerate(lines) if line.startswith("types\t")):]]
    with open(their_words, encoding="utf-8") as f:
        their_name = [line.split()[0] for line in f]
    triples = {}
    with open(theirs, "rb") as f:
        for i, j, n in struct.iter_unpack("<iid", f.read()):
            triples[their_name[j - 1], their_name[i - 1]] = round(n)  # cooccur puts the earlier word first
    found = total(ours, name)
    if found != triples:
        sys.exit(f"the counts differ: {len(found)} pairs and {len(triples)}, {sum(found.values())} and {sum(triples.values())} in all")
    print(f"the same {len(found)} counts, {sum(found.values())} in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("glove", type=pathlib.Path)
    parser.add_argument("--tokens", type=at_least(1), default=10_000_000)
    parser.add_argument("--window", type=at_least(1), default=7)
    parser.add_argument("--memory", type=at_least(1), default=2)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json")
    o = parser.parse_args()
    lds_text, zipf_text = o.build.resolve() / "programs/lds_text", o.build.resolve() / "benchmarks/zipf_text"
    vocab_count, cooccur = (o.glove.resolve() / name for name in ("vocab_count", "cooccur"))
    require_programs(lds_text, zipf_text, vocab_count, cooccur)
    require_place(o.json)
    json_path = o.json and os.path.abspath(o.json)
    rounds = []
    with tempfile.TemporaryDirectory(prefix="cooccur_", dir=os.path.abspath(o.folder)) as place:  # removed from elsewhere
        os.chdir(place)
        with open("text", "wb") as f:
            subprocess.run([zipf_text, str(o.tokens)], stdout=f, check=True)
        subprocess.run([lds_text, "count", "text", "--counts", "ours", "--lags", "1", "--vocabulary-to", "words", "--memory",
                        f"{o.memory}GiB"], stdout=subprocess.DEVNULL, check=True)
        with open("text", "rb") as text, open("vocab", "wb") as vocab:
            subprocess.run([vocab_count, "-min-count", "1", "-verbose", "0"], stdin=text, stdout=vocab, stderr=subprocess.DEVNULL, check=True)
        for i in range(o.rounds):
            ours = timed([lds_text, "count", "text", "--counts", "ours", "--vocabulary-from", "words", "--sentences", "--lags", o.window,
                          "--memory", f"{o.memory}GiB", "--threads", 1], stdout=subprocess.DEVNULL)
            with open("text", "rb") as text, open("theirs", "wb") as out:
                theirs = timed([cooccur, "-symmetric", 0, "-distance-weighting", 0, "-window-size", o.window, "-vocab-file", "vocab",
                                "-memory", o.memory, "-verbose", 0, "-overflow-file", "overflow"], stdin=text, stdout=out,
                               stderr=subprocess.DEVNULL)
            rounds.append({"lds_text": ours, "cooccur": theirs})
            print(f"round {i + 1}: lds_text {ours['cpu']:.1f} s, cooccur {theirs['cpu']:.1f} s of the processor", flush=True)
        sizes = {side: os.path.getsize(file) for side, file in (("lds_text", "ours"), ("cooccur", "theirs"))}
        if o.check:
            check("ours", "theirs", "words", "vocab")
        os.chdir("/")  # the folder will be removed
    for side in ("lds_text", "cooccur"):
        median = {key: statistics.median(r[side][key] for r in rounds) for key in ("cpu", "wall", "peak")}
        print(f"{side}: {1e9 * median['cpu'] / o.tokens:.0f} ns of the processor and {1e9 * median['wall'] / o.tokens:.0f} ns of time a token, "
              f"peak {median['peak']:.0f} MiB, file {sizes[side] / 2**20:.0f} MiB")
    for key in ("cpu", "wall"):
        print(f"cooccur / lds_text, {key}: {statistics.median(r['cooccur'][key] / r['lds_text'][key] for r in rounds):.2f}")
    if json_path:
        with open(json_path, "w", encoding="utf-8") as f:
            json.dump({"tokens": o.tokens, "window": o.window, "memory": o.memory, "rounds": rounds, "bytes": sizes}, f, indent=1)


if __name__ == "__main__":
    main()
