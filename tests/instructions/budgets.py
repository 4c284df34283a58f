"""Instructions of the cases of kernels.cpp and models.cpp against those of budgets.csv: more than 2 % above is a failure.
Times on a shared machine do not show as little.

Usage: budgets.py VALGRIND PROGRAM PROFILE COMPILER [--record]
    PROGRAM is the one of both files, COMPILER the name and version of its compiler, PROFILE a file that is written.
    --record writes budgets.csv anew, after an intended change.
Status 77: not compared, as the compiler is another than the recorded one or the processor lacks AVX2.
"""
import csv
import pathlib
import re
import shlex
import subprocess
import sys

valgrind, program, profile, compiler = sys.argv[1:5]
budgets = pathlib.Path(__file__).with_name("budgets.csv")
record = sys.argv[5:] == ["--record"]
with open(budgets) as file:
    (_, recorded), *rows = csv.reader(file)
expected = {name: int(instructions) for name, instructions in rows}
if compiler != recorded and not record:
    sys.exit(print(f"not compared: found the compiler {compiler}, expected {recorded}") or 77)
if not {"avx2", "fma"} <= set(pathlib.Path("/proc/cpuinfo").read_text().split()):
    sys.exit(print("not compared: found a processor without AVX2 and FMA") or 77)

subprocess.run([valgrind, "--quiet", "--tool=callgrind", "--combine-dumps=yes", f"--callgrind-out-file={profile}", program],
               check=True)
found = {name: int(instructions) for name, instructions in
         re.findall(r"^desc: Trigger: Client Request: (\S+)$.*?^summary: (\d+)$", pathlib.Path(profile).read_text(),
                    re.M | re.S)}
assert found

if record:
    with open(budgets, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("case", compiler), *found.items()])
    sys.exit()
failed = False
for name in expected | found:
    instructions, budget = found.get(name, 0), expected.get(name, 0)
    if not 0.98 * budget <= instructions <= 1.02 * budget or 0 in (instructions, budget):
        fewer = 0 < instructions < budget
        failed |= not fewer
        print(f"{name}: found {instructions} instructions, expected {budget}" +
              (f" ({instructions / budget - 1:+.1%})" if budget else "") + (", which may be recorded" if fewer else ""))
if failed:
    sys.exit(f"If that is intended: {shlex.join(['python3', *sys.argv, '--record'])}")
print(f"{len(found)} cases")
