#!/usr/bin/env python3
"""Runs isogloss and its peers in turn and compares their times.

    compare.py BUILD [--torch [NAME=]PYTHON]... [--threads 1] [--rounds 5] [--rows REGEX] [--csv FILE] [--json FILE]
                     [--check] [--coretype NAME]

BUILD is the folder of the benchmark programs (build/release/benchmarks). PYTHON is an interpreter with PyTorch, for
instance that of a virtual environment; the distribution's is found automatically. Every peer is a process that lives for
the whole run; they alternate round by round, so that all run under the same conditions. A figure is the median over the
rounds; a ratio is the peer's time over ours: above 1 we are faster. A library counts at its best setting: of those in float
against our Precision::full, of all against our Precision::automatic, without and with sampled gradients. --csv writes
the numbers of docs/performance.md (benchmarks/results/tables.py), --json everything. --coretype is for
a processor that OpenBLAS is too old to know (ours then warns of Prescott kernels): the nearest one that it knows. See README.md.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from inputs import require_place, write_csv

HERE = os.path.dirname(os.path.abspath(__file__))
LOSSES = ("ce", "al", "al_held")
STEPS = [f"step/{loss}/{n}/10000/35/20" for loss in LOSSES for n in (200, 650, 1500)]
HEADS = [f"head/{loss}/200/{V}/{N}/1" for loss in LOSSES for V, N in ((10000, 700), (33278, 700), (200000, 128))]
LAYERS = [f"lstm/-/{n}/0/35/20" for n in (200, 650, 1500)]
PRODUCTS = [f"product/-/{n}/{V}/{T}/20" for n, V, T in ((200, 10000, 35), (650, 10000, 35), (200, 800, 1), (650, 2600, 1))]
ROWS = STEPS + HEADS + LAYERS + PRODUCTS
CHECKS = [f"{row}/{loss}/{sizes}" for row, sizes in (("step", "16/50/5/3"), ("head", "16/50/12/1")) for loss in LOSSES]


# They override OpenBLAS's choice of kernels and block sizes for the machine: unset for all sides.
OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class Peer:
    """A library at one setting: a process that reads the name of a row and prints seconds.

    On standard error it describes itself in lines that begin with "# ", and reports the first round of each row."""

    def __init__(self, library, setting, command, environment, kinds, bf16=False):
        self.library, self.setting, self.kinds, self.bf16 = library, setting, kinds, bf16
        self.name = f"{library}/{setting}"
        inherited = {k: v for k, v in os.environ.items() if k not in OVERRIDES}
        self.errors = tempfile.TemporaryFile("w+")  # an unread pipe would fill up
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env={**inherited, **environment})

    def told(self):
        self.errors.seek(0)
        return self.errors.read()

    def seconds(self, row):
        try:
            self.process.stdin.write(row + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # readline below finds no answer
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.name}: ended at row {row}\n{self.told()}")
        return float(answer)

    def close(self):
        """What it reported: about itself, and the first round of each row (loss, extra bytes)."""
        self.process.communicate()
        lines = self.told().splitlines()
        rounds = [line.split() for line in lines if line.count("/") == 5 and len(line.split()) == 3]
        return ([line[2:] for line in lines if line.startswith("# ")],
                {row: (float(loss), int(size)) for row, loss, size in rounds})


def first(*patterns):
    for pattern in patterns:
        for found in sorted(glob.glob(pattern)):
            return found
    return None


def torch_version(python):
    """Version of the interpreter's PyTorch, without anything after a plus sign; None if it has none."""
    try:
        asked = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    except OSError:
        return None
    return asked.stdout.strip().split("+")[0] if asked.returncode == 0 else None


def torch_peers(name, python, threads, environment):
    """PyTorch at its settings: before version 2 with each BLAS of the distribution, from then on with its own libraries."""
    jemalloc, version = first("/usr/lib/*/libjemalloc.so.2"), torch_version(python)
    if not version:
        sys.exit(f"--torch {python}: found no PyTorch, expected an interpreter that imports torch; in a virtual "
                 "environment: pip install torch")
    if not jemalloc:
        print("no torch without jemalloc, which it needs to be at its best: apt-get install libjemalloc2")
        return
    # Large temporaries reuse memory, which is not returned to the system in between.
    environment = {**environment, "LD_PRELOAD": jemalloc, "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}
    name = name or f"torch-{version}"
    command = lambda setting: [python, os.path.join(HERE, "peer_torch.py"), str(threads), setting]
    kinds = ("step", "head", "lstm")
    if int(version.split(".")[0]) >= 2:
        compiled = {**environment, "TORCHINDUCTOR_COMPILE_THREADS": "1"}  # no helper processes
        yield Peer(name, "eager", command("eager"), environment, kinds)
        yield Peer(name, "compiled", command("compiled"), compiled, ("step", "head"))
        yield Peer(name, "bf16", command("bf16"), environment, kinds, bf16=True)
        yield Peer(name, "bf16-compiled", command("bf16-compiled"), compiled, ("step", "head"), bf16=True)
        return
    with open("/proc/cpuinfo") as f:  # PyTorch 1 takes AVX2 by itself, and what it is told without asking the processor
        avx512 = {"ATEN_CPU_CAPABILITY": "avx512"} if " avx512f" in f.read() else {}
    for blas, package in (("openblas", "libopenblas0-openmp"), ("blis", "libblis4-openmp")):
        if folder := first(f"/usr/lib/*/{blas}-openmp"):
            yield Peer(name, blas, command("eager"),
                       {**environment, "LD_LIBRARY_PATH": folder, **avx512}, kinds)
        else:
            print(f"no {name} with {blas}: apt-get install {package}")


def peers(build, threads, torches, coretype=None):
    environment = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "BLIS", "MKL")}
    if coretype:
        environment["OPENBLAS_CORETYPE"] = coretype
    for setting in ("full", "automatic", "sampled"):
        yield Peer("isogloss", setting, [os.path.join(build, "peer_isogloss"), str(threads), setting], environment,
                   ("step", "head") if setting == "sampled" else ("step", "head", "lstm", "product"), bf16=setting != "full")
    given = [torch.rpartition("=")[::2] for torch in torches]
    for name, python in given:
        yield from torch_peers(name, python, threads, environment)
    others = [python for python in ("/usr/bin/python3", sys.executable) if python not in [python for _, python in given]]
    if distribution := next(filter(torch_version, others), None):
        yield from torch_peers("", distribution, threads, environment)
    else:
        print("no torch of the distribution: apt-get install python3-torch")
    for program in ("peer_onednn", "peer_onednn_root"):
        path = os.path.join(build, program)
        if os.path.exists(path):
            version = subprocess.run([path, "f32"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr
            name = version.strip().removeprefix("# ").replace(" ", "-").lower()
            yield Peer(name, "f32", [path, "f32"], environment, ("lstm", "product"))
            yield Peer(name, "bf16", [path, "bf16"], environment, ("lstm", "product"), bf16=True)
        elif program == "peer_onednn":
            print("no oneDNN: apt-get install libdnnl-dev, and build again")


def best_of(library, everyone, times):
    """A library's fastest setting: in float against Precision::full, of all against Precision::automatic and sampled."""
    best = {}
    for column, ours, settings in (
            ("float", "isogloss/full", [p for p in everyone if p.library == library and not p.bf16]),
            ("any", "isogloss/automatic", [p for p in everyone if p.library == library]),
            ("sampled", "isogloss/sampled", [p for p in everyone if p.library == library])):
        taken = {p.setting: statistics.median(times[p.name]) for p in settings if p.name in times}
        if taken and ours in times:
            setting = min(taken, key=taken.get)
            theirs = times[f"{library}/{setting}"]
            best[column] = {"setting": setting, "seconds": taken[setting],
                            "ratio": statistics.median(a / b for a, b in zip(theirs, times[ours]))}
    return best


def kind_and_version(library):
    """("PyTorch", [2, 15, 0]) of torch-2.15.0; other names are their own kind."""
    kind, _, version = library.partition("-")
    return {"torch": "PyTorch", "onednn": "oneDNN"}.get(kind, library), [int(part) for part in re.findall("[0-9]+", version)]


def numbers(table):
    """What --csv writes: our milliseconds and, of each library, its ratios; of other than the newest version in tables of their own."""
    newest = {}
    for library in sorted({library for of in table.values() for library in of["best"]}, key=kind_and_version):
        newest[kind_and_version(library)[0]] = library
    losses = {"ce": "cross-entropy", "al": "augmented loss", "al_held": "augmented loss, target held"}
    for row, of in table.items():
        kind, loss, n, V, T, B = row.split("/")
        title = {"lstm": "one LSTM layer", "product": "one product"}.get(kind, "step or head | size")
        label = (f"[{int(T) * int(B)}, {n}] · [{n}, {V}]" if kind == "product" else f"width {n}" if kind == "lstm" else
                 f"{kind}, {losses[loss]} | " + (f"{int(V):,} words" if kind == "head" else f"width {n}"))
        for setting, name in ("full", "float"), ("automatic", "bf16"), ("sampled", "sampled"):
            if (seconds := of["seconds"].get(f"isogloss/{setting}")) is not None:
                yield title, label, f"ours, {name}: ms", f"{1e3 * seconds:.1f}"
        for library, best in of["best"].items():
            name = kind_and_version(library)[0]
            for column, says in ("float", "float"), ("any", "bf16 allowed"), ("sampled", "ours sampled"):
                if column in best:
                    yield title if newest[name] == library else f"{title}, {library}", label, f"{name}, {says}", f"{best[column]['ratio']:.2f}"


def versions(libraries, about):
    """Those of the libraries, the newest first, and of what isogloss was built with."""
    of_ours = dict(line.split(": ", 1) for line in about if ": " in line)
    named = sorted((*kind_and_version(library), library) for library in libraries)
    return ", ".join([" ".join([kind, ".".join(map(str, version))]) for kind, version, _ in reversed(named)] +
                     [of_ours[name] for name in ("blas", "compiler") if name in of_ours])


def keep_to(threads):
    """Confines this process, and with it all sides, to as many processors as there are threads, of different cores if possible.

    oneDNN through SYCL takes every processor it sees, whatever its settings say.
    """
    def shared(processor):
        try:
            with open(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list") as siblings:
                return int(re.split("[,-]", siblings.read())[0]) != processor
        except OSError:
            return False
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0), key=lambda p: (shared(p), p))[:threads])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--torch", action="append", default=[], metavar="[NAME=]PYTHON",
                        help="an interpreter that has PyTorch, beside the distribution's; may be repeated")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="")
    parser.add_argument("--csv", help="write the numbers of the page to this file, such as benchmarks/results/peers_zen4.csv")
    parser.add_argument("--json", help="write all that was measured to this file")
    parser.add_argument("--coretype", metavar="NAME",
                        help="OPENBLAS_CORETYPE of all sides, for a processor that OpenBLAS does not know")
    parser.add_argument("--check", action="store_true", help="only whether all sides compute the same losses")
    options = parser.parse_args()
    require_place(options.csv)
    require_place(options.json)
    try:
        wanted = re.compile(options.rows)
    except re.error as error:
        sys.exit(f"found --rows {options.rows}, which is not a regular expression ({error}), expected one such as 'step/ce'")
    rows = [r for r in (CHECKS if options.check else ROWS) if wanted.search(r)]
    if not rows:
        sys.exit(f"--rows {options.rows}: found no row that it matches, expected some of: {', '.join(CHECKS if options.check else ROWS)}")
    if min(options.threads, options.rounds) < 1:
        sys.exit(f"found --threads {options.threads} and --rounds {options.rounds}, expected at least 1 each")
    if not os.path.exists(os.path.join(options.build, "peer_isogloss")):
        sys.exit(f"{options.build}: found no peer_isogloss, expected the folder of the benchmark programs; build them "
                 "with -DISOGLOSS_BENCHMARKS=ON")
    if found := [f"{name}={os.environ[name]}" for name in OVERRIDES if os.environ.get(name)]:
        print(f"found {' and '.join(found)} in the environment: unset for all sides")
    keep_to(options.threads)
    everyone = list(peers(options.build, options.threads, options.torch, options.coretype))
    libraries = list(dict.fromkeys(p.library for p in everyone if p.library != "isogloss"))
    columns = [(library, "float") for library in libraries]
    columns += [(library, column) for column in ("any", "sampled") for library in libraries
                if any(p.library == library and p.bf16 and (column == "any" or "head" in p.kinds) for p in everyone)]
    table = {}
    print(f"{options.threads} threads; ms, for peers their ratio to isogloss/full (float) or isogloss/automatic (any) or "
          "isogloss/sampled, and the setting that was fastest")
    print(f"{'row':<24}{'isogloss/full':>14}{'automatic':>11}{'sampled':>9}" + "".join(f"{f'{name} {column}':>28}" for name, column in columns))
    for row in rows:
        mine = [p for p in everyone if row.split("/")[0] in p.kinds]
        times = {p.name: [] for p in mine}
        for _ in range(options.rounds):
            for p in mine:
                times[p.name].append(p.seconds(row))
        medians = {name: statistics.median(t) for name, t in times.items()}
        best = {library: best_of(library, everyone, times) for library in libraries}
        table[row] = {"seconds": medians, "best": best, "rounds": times}
        cells = [best[library].get(column) for library, column in columns]
        print(f"{row:<24}{1e3 * medians['isogloss/full']:>14.2f}{1e3 * medians['isogloss/automatic']:>11.2f}" +
              f"{1e3 * medians.get('isogloss/sampled', float('nan')):>9.2f}" +
              "".join(f"{1e3 * c['seconds']:>9.2f}{c['ratio']:>6.2f} {c['setting']:<12}" if c else " " * 28 for c in cells),
              flush=True)
    about, told = {}, {}
    for p in everyone:
        about[p.name], told[p.name] = p.close()
        if p.library != "isogloss" or p.setting == "full":
            print(f"{p.name}: " + "; ".join(about[p.name]))
        else:  # on the same processor; each has chosen for itself what automatic is
            print(f"{p.name}: " + "; ".join(line for line in about[p.name] if line.startswith("precision_automatic")))
    failed = False
    for row in rows:
        losses = {p: told[p.name][row][0] for p in everyone if row in told[p.name]}
        ours = told["isogloss/full"][row][0]
        # bfloat16 has 8 significant bits; sums over the vocabulary are in float.
        apart = {p.name: loss for p, loss in losses.items()
                 if not abs(loss - ours) <= (1e-2 if p.bf16 else 1e-4) * max(1.0, abs(ours))}
        if row.startswith(("step", "head")) and apart:
            failed = True
            print(f"{row}: the losses differ: isogloss/full {ours}, " + ", ".join(f"{k} {v}" for k, v in apart.items()))
        if row.startswith("head"):
            # Compiled settings would include the memory of the compiler itself.
            sizes = {p.name: told[p.name][row][1] / 2**20 for p in losses if "compiled" not in p.setting}
            print(f"{row:<28} MiB beside table, states and gradients: " + ", ".join(f"{k} {v:.0f}" for k, v in sizes.items()))
            table[row]["MiB"] = sizes
    if options.check and not failed:
        print("all sides compute the same losses")
    if options.csv and not failed:
        write_csv(options.csv, numbers(table), options.threads, versions(libraries, about["isogloss/full"]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"threads": options.threads, "rounds": options.rounds, "about": about, "rows": table}, file, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
