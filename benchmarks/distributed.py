#!/usr/bin/env python3
"""Two ranks of one thread against one process of two threads: `language_model train` on one machine.

    distributed.py PROGRAM [--units 200 650] [--ranks 2] [--rounds 3] [--words 21000] [--mpirun mpirun] [--json FILE]

PROGRAM is language_model, built with MPI. The text is generated: 10,000 types by Zipf's law. The settings alternate round by
round, so that all run under the same conditions; a figure is the median over the rounds of the tokens per second of one epoch
in the training log, and the ratio is to the process with as many threads as there are ranks.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from inputs import at_least, require_place, require_programs  # noqa: E402

TYPES = 10000


def environment(folder):
    """One BLAS thread per rank, each rank on its own core. Ranks that yield while they wait (mpi_yield_when_idle) or that
    migrate between cores lose a fifth of a small step on a shared machine."""
    names = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "OMP_NUM_THREADS": "1", "TMPDIR": folder, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_hwloc_base_binding_policy": "core"}


def write_text(path, words, seed):
    """Every type once, so that the vocabulary is complete, and the rest drawn with probability ~ 1 / rank."""
    draw = random.Random(seed)
    names = [f"w{i}" for i in range(TYPES - 1)]  # and the end of a line
    drawn = draw.choices(names, [1 / (i + 1) for i in range(TYPES - 1)], k=max(0, words - len(names)))
    text = names + drawn
    draw.shuffle(text)
    with open(path, "w") as f:
        for i in range(0, len(text), 20):
            f.write(" ".join(text[i:i + 20]) + "\n")


def tokens_per_second(setting, program, units, texts, folder, mpirun):
    ranks, threads, shards = setting
    log = os.path.join(folder, "log.csv")
    if os.path.exists(log):
        os.remove(log)
    start = [mpirun, "-n", str(ranks)] if ranks > 1 else []
    command = start + [program, "train", "--train", texts[0], "--valid", texts[1], "--loss", "ce", "--units", str(units),
                       "--epochs", "1", "--threads", str(threads), "--shards", str(shards), "--log", log, "--overwrite",
                       "--model", os.path.join(folder, "model.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(folder))
    if done.returncode != 0:
        sys.exit(f"distributed.py: {' '.join(command)} ended with status {done.returncode}:\n{done.stderr}")
    with open(log) as f:
        return float(list(csv.DictReader(f))[-1]["tokens_per_second"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--units", type=at_least(1), nargs="+", default=[200, 650])
    parser.add_argument("--ranks", type=at_least(1), default=2)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--words", type=at_least(TYPES), default=21000, help="of the text, at least 10,000; a batch is 700")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--json")
    o = parser.parse_args()
    require_programs(shutil.which(o.program) or o.program)
    if o.ranks > 1 and not shutil.which(o.mpirun):
        sys.exit(f"distributed.py: found no '{o.mpirun}', expected the launcher of MPI. Install openmpi-bin, or name it by --mpirun")
    require_place(o.json)
    n = o.ranks
    settings = {f"{n} threads": (1, n, 1), f"{n} ranks, {n} shards": (n, 1, n), f"{n} ranks, {2 * n} shards": (n, 1, 2 * n)}
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        texts = [os.path.join(folder, name) for name in ("train.txt", "valid.txt")]
        write_text(texts[0], o.words, seed=1)
        with open(texts[1], "w") as f:
            f.write("w0 w1 w2 w3\n" * 50)
        for units in o.units:
            speeds = {name: [] for name in settings}
            for _ in range(o.rounds):
                for name, setting in settings.items():
                    speeds[name].append(tokens_per_second(setting, o.program, units, texts, folder, o.mpirun))
            medians = {name: statistics.median(of) for name, of in speeds.items()}
            reference = medians[f"{n} threads"]
            for name, median in medians.items():
                print(f"2 x {units:<5} {name:20} {median:9.0f} tokens/s  ratio {median / reference:.3f}", flush=True)
            results[units] = {"speeds": speeds, "ratios": {k: v / reference for k, v in medians.items()}}
    if o.json:
        with open(o.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
