"""A benchmark says what it ran on, warns of what in the environment makes OpenBLAS another's, and leaves out rows of
products in bfloat16 on a processor that emulates them, unless it is asked for them.

Usage: context.py PROGRAM      PROGRAM is the built benchmark cells
"""
import json
import os
import re
import subprocess
import sys

NAMES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def run(**changes):
    environment = {k: v for k, v in os.environ.items() if k not in NAMES}
    command = [sys.argv[1], "--benchmark_filter=^rnn_forward/width:200/", "--benchmark_format=json"]
    ended = subprocess.run(command, env={**environment, **changes}, capture_output=True, text=True, check=True)
    report = json.loads(ended.stdout)
    assert len(report["benchmarks"]) == 1, report
    return report["context"], ended.stderr


context, errors = run()
assert "warning" not in context and "environment" not in errors, (context, errors)
for name in ("processor", "hardware_threads", "threads", "blas", "blas_kernels", "lanes", "bf16", "precision_automatic"):
    assert context.get(name), f"{name} is not in {context}"
assert int(context["hardware_threads"]) >= 1 and context["precision_automatic"] in ("full", "bf16"), context

# The system's own reading of the same instruction, where it gives one.
with open("/proc/cpuinfo") as file:
    system = dict(re.findall(r"^(vendor_id|cpu family|model|model name)\s*: (.*)$", file.read().split("\n\n")[0], re.M))
if "vendor_id" in system:
    expected = f"{system['vendor_id']} family {system['cpu family']} model {system['model']}, {system['model name']}"
    assert context["processor"].split() == expected.split(), (context["processor"], expected)

for changes in ({"OPENBLAS_CORETYPE": "Haswell"}, {"OPENBLAS_L2_SIZE": "512"},
                {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "512"}):
    context, errors = run(**changes)
    found = " and ".join(f"{k}={v}" for k, v in changes.items())
    assert f"found {found} in the environment" in context.get("warning", ""), (changes, context)
    assert "unset" in context["warning"] and context["warning"] in errors, (context, errors)
# Kernels for SSE3, as OpenBLAS takes them for a processor that is newer than it.
if int(run()[0]["lanes"]) > 4:
    context, errors = run(OPENBLAS_CORETYPE="Prescott")
    assert "Prescott kernels" in context["warning"] and "OPENBLAS_CORETYPE=Prescott" in context["warning"], context


def rows(*options):
    ended = subprocess.run([sys.argv[1], "--benchmark_list_tests=true", *options], capture_output=True, text=True, check=True)
    return [name.split("/min_time")[0] for name in ended.stdout.split()], ended.stderr


for wrong in "abc", "0", "2x", "", "1025":
    ended = subprocess.run([sys.argv[1], f"--threads={wrong}"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and f"found --threads={wrong}, expected a whole number of 1 to 1024" in ended.stderr, ended
emulated = context["bf16"] == "plain"
names, errors = rows()
cells = [name for name in names if "/bf16" not in name and "_forward" not in name]
assert "lstm/width:200" in cells and "lstm_forward/width:200" in names, names
assert ("--bf16 runs them" in errors) == emulated, (context["bf16"], errors)
found = {name for name in names if name.endswith("/bf16")}
assert found == (set() if emulated else {f"{c}/bf16" for c in cells}), names
names, errors = rows("--bf16")
assert {f"{c}/bf16" for c in cells} <= set(names) and "left out" not in errors, (names, errors)
