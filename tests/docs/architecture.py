"""The map in docs/architecture.md is that of the tree: python3 architecture.py ROOT

- the headers in its block `map` are those of include/isogloss/;
- a module includes only modules of lower layers of its block `layers`. Umbrella headers, of one module (io.hpp) or of
  several (isogloss.hpp, compiled.hpp), are above all of them.

Prints one line for each that does not, and ends with status 1.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
include = root / "include" / "isogloss"
page = (root / "docs" / "architecture.md").read_text()
umbrellas = {"isogloss.hpp", "evaluation.hpp", "text.hpp", "io.hpp", "lds.hpp", "mpi.hpp", "check.hpp", "compiled.hpp", "compiled_lds.hpp"}


def block(name):
    return re.search(rf"```{name}\n(.*?)```", page, re.S)[1].splitlines()


faults = []

listed = set()
folders = []  # of the line before, by depth
for line in block("map"):
    depth = (len(line) - len(line.lstrip())) // 2
    if folder := re.match(r" *(\w+)/ ", line):
        folders = folders[:depth] + [folder[1]]
    else:
        folders = folders[:depth]
        # names come first: what stands behind them is a description
        for name in re.match(r" *((?:\w+\.hpp *)*)", line)[1].split():
            listed.add("/".join(folders + [name]))
headers = {str(p.relative_to(include)): p.read_text() for p in include.rglob("*.hpp")}
faults += [f"docs/architecture.md: no header {name}" for name in sorted(listed - set(headers))]
faults += [f"docs/architecture.md: {name} is not in the map" for name in sorted(set(headers) - listed - umbrellas)]


def module(header):
    return header.split("/")[0].removesuffix(".hpp")


layer = {name: int(line.split()[0]) for line in block("layers") for name in line.split()[1:]}
for name, text in sorted(headers.items()):
    if name in umbrellas:
        continue
    if module(name) not in layer:
        faults.append(f"docs/architecture.md: module {module(name)} is in no layer")
        continue
    for other in re.findall(r"#include <isogloss/([^>]+)>", text):
        if module(other) == module(name) and other not in umbrellas:
            continue
        if other in umbrellas or layer.get(module(other), -1) >= layer[module(name)]:
            faults.append(f"include/isogloss/{name}: includes {other}, which is not below it")

print("\n".join(faults) or f"{len(headers)} headers, as the map says")
sys.exit(bool(faults))
