"""Prints which branches of some files are never taken, all programs and template instances taken together:
coverage.py REPORT... -- FILE...  A report is what llvm-cov export prints for a program."""
import collections
import json
import os
import sys

at = sys.argv.index("--")
wanted = {os.path.relpath(name) for name in sys.argv[at + 1:]}
counts = collections.defaultdict(lambda: [0, 0])
for report in sys.argv[1:at]:
    with open(report) as file:
        functions = json.load(file)["data"][0]["functions"]
    for function in functions:
        for line, column, _, _, taken, passed, place, _, _ in function.get("branches", []):
            name = os.path.relpath(function["filenames"][place])
            if name in wanted:
                both = counts[name, line, column]
                both[0] += taken
                both[1] += passed
print(f"{'branches':>9} {'never':>6}   file")
missed = []
for name in sorted({name for name, _, _ in counts}):
    mine = [(line, column, both) for (file, line, column), both in sorted(counts.items()) if file == name]
    never = [(line, column, way) for line, column, both in mine for way, n in zip(("true", "false"), both) if n == 0]
    print(f"{2 * len(mine):9} {len(never):6}   {name}")
    missed += [(name, *one) for one in never]
print()
for name, line, column, way in missed:
    with open(name) as source:
        text = source.read().splitlines()[line - 1].strip()
    print(f"{name}:{line}:{column}: never {way}: {text}")
