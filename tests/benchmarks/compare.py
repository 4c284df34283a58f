"""benchmarks/peers/compare.py over made-up peers: each library counts at its best, no side is told to be another processor.

Usage: compare.py SCRIPT
"""
import contextlib
import csv
import importlib.util
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(sys.argv[1]))  # as for a script that is run
spec = importlib.util.spec_from_file_location("script", sys.argv[1])
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

# Answers with given seconds, and tells a loss and what it sees of the environment.
PEER = """
import os, sys
seen = [n + "=" + os.environ[n] for n in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "KEPT", "GIVEN") if n in os.environ]
print("# sees " + " ".join(seen), file=sys.stderr)
for row in sys.stdin:
    print(row.strip(), sys.argv[2], 0, file=sys.stderr, flush=True)
    print(sys.argv[1], flush=True)
"""


def compare(*sides, coretype=None):
    """Exit status, what is printed, the report and the numbers, where each side is (library, setting, seconds, loss, bf16)."""
    script.peers = lambda build, threads, torches, coretype: [
        script.Peer(library, setting, [sys.executable, "-c", PEER, str(seconds), str(loss)],
                    {"GIVEN": "1", **({"OPENBLAS_CORETYPE": coretype} if coretype else {})}, ("head",), bf16)
        for library, setting, seconds, loss, bf16 in sides]
    with tempfile.TemporaryDirectory() as build, contextlib.redirect_stdout(io.StringIO()) as printed:
        open(os.path.join(build, "peer_isogloss"), "w").close()
        report, numbers = os.path.join(build, "report.json"), os.path.join(build, "numbers.csv")
        sys.argv = ["compare.py", build, "--rows", "^head/ce/200/10000", "--rounds", "3", "--json", report, "--csv", numbers]
        sys.argv += ["--coretype", coretype] if coretype else []
        try:
            script.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        lines = []
        if os.path.exists(numbers):
            with open(numbers, encoding="utf-8", newline="") as file:
                lines = list(csv.DictReader(file))
        with open(report) as file:
            return status, printed.getvalue(), json.load(file), lines


os.environ.update(OPENBLAS_CORETYPE="Haswell", OPENBLAS_L2_SIZE="512", KEPT="2")
ours = [("isogloss", "full", 2.0, 100, False), ("isogloss", "automatic", 1.0, 100.5, True),
        ("isogloss", "sampled", 0.5, 100.5, True)]
peers = [("peer", "eager", 8.0, 100, False), ("peer", "compiled", 6.0, 100, False), ("peer", "bf16", 5.0, 100.5, True)]
status, printed, report, _ = compare(*ours, *peers, ("other", "f32", 3.0, 100, False))
assert status == 0, printed
for side, lines in report["about"].items():
    assert lines == ["sees KEPT=2 GIVEN=1"], (side, lines)
assert "OPENBLAS_CORETYPE=Haswell and OPENBLAS_L2_SIZE=512" in printed, printed
(row,) = report["rows"].values()
assert row["best"]["peer"] == {"float": {"setting": "compiled", "seconds": 6, "ratio": 3},
                               "any": {"setting": "bf16", "seconds": 5, "ratio": 5},
                               "sampled": {"setting": "bf16", "seconds": 5, "ratio": 10}}, row
assert row["best"]["other"]["float"]["ratio"] == 1.5 and row["best"]["other"]["any"]["ratio"] == 3, row

# Unless it is asked for, for a processor that OpenBLAS does not know.
_, _, report, _ = compare(*ours, coretype="SkylakeX")
for side, lines in report["about"].items():
    assert lines == ["sees OPENBLAS_CORETYPE=SkylakeX KEPT=2 GIVEN=1"], (side, lines)

# A loss that is another function's, and one that no comparison finds large or small.
for loss in (100.5, float("nan")):
    status, printed, _, lines = compare(*ours, ("peer", "eager", 8.0, loss, False))
    assert status == 1 and "the losses differ" in printed and "peer/eager" in printed and not lines, (status, printed)

# Its numbers for the page: our milliseconds, the newest version of a library, and an older one in a table of its own.
_, _, _, lines = compare(*ours, ("torch-2.9.1", "eager", 8.0, 100, False), ("torch-2.15.0", "eager", 6.0, 100, False))
found = [(line["table"], line["row"], line["column"], line["value"]) for line in lines]
assert ("step or head | size", "head, cross-entropy | 10,000 words", "ours, bf16: ms", "1000.0") in found, found
assert ("step or head | size", "head, cross-entropy | 10,000 words", "PyTorch, float", "3.00") in found, found
assert ("step or head | size, torch-2.9.1", "head, cross-entropy | 10,000 words", "PyTorch, ours sampled", "16.00") in found, found
assert all(line["versions"] == "PyTorch 2.15.0, PyTorch 2.9.1" and line["processor"] and line["date"] and "--csv" in line["command"] for line in lines)
