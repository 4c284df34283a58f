"""Prints which branches of a coverage report (llvm-cov export) are never taken, template instances taken together."""
import collections
import json
import os
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
counts = collections.defaultdict(lambda: [0, 0])
for function in report["data"][0]["functions"]:
    for line, column, _, _, taken, passed, place, _, _ in function.get("branches", []):
        name = os.path.relpath(function["filenames"][place])
        if name.startswith(("include", "examples")):
            both = counts[name, line, column]
            both[0] += taken
            both[1] += passed
files = sorted({name for name, _, _ in counts})
wanted = {os.path.relpath(f["filename"]) for f in report["data"][0]["files"]}
print(f"{'branches':>9} {'never':>6}   file")
missed = []
for name in (name for name in files if name in wanted):
    mine = [(line, column, both) for (file, line, column), both in sorted(counts.items()) if file == name]
    never = [(line, column, way) for line, column, both in mine for way, n in zip(("true", "false"), both) if n == 0]
    print(f"{2 * len(mine):9} {len(never):6}   {name}")
    missed += [(name, *one) for one in never]
print()
for name, line, column, way in missed:
    with open(name) as source:
        text = source.read().splitlines()[line - 1].strip()
    print(f"{name}:{line}:{column}: never {way}: {text}")
