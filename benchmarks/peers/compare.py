#!/usr/bin/env python3
"""Runs isogloss and its peers in turn and prints how their times compare.

    compare.py BUILD [--threads 1] [--rounds 5] [--rows REGEX] [--json FILE] [--check]

BUILD is the folder of the benchmark programs (build/release/benchmarks). Every peer is a process that lives for the
whole run; they take turns round by round, so that all see the same machine. A figure is the median over the rounds;
a ratio is the peer's time over ours: above 1 we are faster. See README.md.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LOSSES = ("ce", "al", "al_held")
STEPS = [f"step/{loss}/{n}/10000/35/20" for loss in LOSSES for n in (200, 650, 1500)]
HEADS = [f"head/{loss}/200/{V}/{N}/1" for loss in LOSSES for V, N in ((10000, 700), (33278, 700), (200000, 128))]
LAYERS = [f"lstm/-/{n}/0/35/20" for n in (200, 650, 1500)]
CHECKS = [f"{row}/{loss}/{sizes}" for row, sizes in (("step", "16/50/5/3"), ("head", "16/50/12/1")) for loss in LOSSES]


class Peer:
    """A process that answers the name of a row with seconds, and tells of its first round on standard error."""

    def __init__(self, name, command, environment, kinds):
        self.name, self.kinds = name, kinds
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, **environment})

    def seconds(self, row):
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.name}: ended at row {row}\n{self.process.stderr.read()}")
        return float(answer)

    def close(self):
        """What it told of the first round of each row: (loss, extra bytes)."""
        _, told = self.process.communicate()
        lines = [line.split() for line in told.splitlines() if line.count("/") == 5]
        return {row: (float(loss), int(size)) for row, loss, size in lines}


def first(*patterns):
    for pattern in patterns:
        for found in sorted(glob.glob(pattern)):
            return found
    return None


def torch_python():
    for python in ("/usr/bin/python3", sys.executable):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


def peers(build, threads):
    common = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "BLIS_NUM_THREADS": str(threads)}
    yield Peer("isogloss", [os.path.join(build, "peer_isogloss"), str(threads)],
               {**common, "OMP_NUM_THREADS": str(threads)}, ("step", "head", "lstm"))
    python, jemalloc = torch_python(), first("/usr/lib/*/libjemalloc.so.2")
    if not python:
        print("no torch: apt-get install python3-torch")
    elif not jemalloc:
        print("no torch without jemalloc, which it needs to be at its best: apt-get install libjemalloc2")
    else:
        blas = {"torch-openblas": first("/usr/lib/*/openblas-openmp"), "torch-blis": first("/usr/lib/*/blis-openmp")}
        packages = {"torch-openblas": "libopenblas0-openmp", "torch-blis": "libblis4-openmp"}
        for name, folder in blas.items():
            if folder:
                yield Peer(name, [python, os.path.join(HERE, "peer_torch.py"), str(threads)],
                           {**common, "LD_LIBRARY_PATH": folder, "LD_PRELOAD": jemalloc, "ATEN_CPU_CAPABILITY": "avx512"},
                           ("step", "head", "lstm"))
            else:
                print(f"no {name}: apt-get install {packages[name]}")
    program = os.path.join(build, "peer_onednn")
    if os.path.exists(program):
        yield Peer("onednn", [program], common, ("lstm",))
    else:
        print("no oneDNN: apt-get install libdnnl-dev, and build again")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="")
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true", help="only whether all sides compute the same losses")
    options = parser.parse_args()
    rows = [r for r in (CHECKS if options.check else STEPS + HEADS + LAYERS) if re.search(options.rows, r)]
    if not os.path.exists(os.path.join(options.build, "peer_isogloss")):
        sys.exit(f"{options.build}: found no peer_isogloss, expected the folder of the benchmark programs; build them "
                 "with -DISOGLOSS_BENCHMARKS=ON")
    everyone = list(peers(options.build, options.threads))
    table = {}
    print(f"{'row':<28}" + "".join(f"{p.name:>20}" for p in everyone) + f"   ({options.threads} threads, ms and ratio to ours)")
    for row in rows:
        mine = [p for p in everyone if row.split("/")[0] in p.kinds]
        times = {p.name: [] for p in mine}
        for _ in range(options.rounds):
            for p in mine:
                times[p.name].append(p.seconds(row))
        medians = {name: statistics.median(t) for name, t in times.items()}
        ratios = {name: statistics.median(a / b for a, b in zip(t, times["isogloss"])) for name, t in times.items()}
        table[row] = {"seconds": medians, "ratio": ratios}
        print(f"{row:<28}" + "".join(f"{1e3 * medians[p.name]:>12.2f} {ratios[p.name]:>7.2f}" if p.name in medians else " " * 20
                                      for p in everyone), flush=True)
    told = {p.name: p.close() for p in everyone}
    failed = False
    for row in rows:
        losses = {name: t[row][0] for name, t in told.items() if row in t}
        ours = losses["isogloss"]
        apart = max(abs(v - ours) / max(1.0, abs(ours)) for v in losses.values())
        if row.startswith(("step", "head")) and apart > 1e-4:
            failed = True
            print(f"{row}: the losses differ: {losses}")
        if row.startswith("head"):
            sizes = {name: t[row][1] / 2**20 for name, t in told.items() if row in t}
            print(f"{row:<28} MiB beside table, states and gradients: " + ", ".join(f"{k} {v:.0f}" for k, v in sizes.items()))
            table[row]["MiB"] = sizes
    if options.check and not failed:
        print("all sides compute the same losses")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"threads": options.threads, "rounds": options.rounds, "rows": table}, file, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
