"""The map in docs/architecture.md is that of the tree: python3 architecture.py ROOT

- the headers in its block `map` are those of include/isogloss/;
- a room includes only rooms on lower floors of its block `floors`. Doors, headers in front of a room (io.hpp) or of
  several (isogloss.hpp, compiled.hpp), stand above all of them.

Prints one line for each that does not, and ends with status 1.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
include = root / "include" / "isogloss"
page = (root / "docs" / "architecture.md").read_text()
doors = {"isogloss.hpp", "io.hpp", "lds.hpp", "mpi.hpp", "check.hpp", "compiled.hpp", "compiled_lds.hpp"}


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
faults += [f"docs/architecture.md: {name} is not in the map" for name in sorted(set(headers) - listed - doors)]


def room(header):
    return header.split("/")[0].removesuffix(".hpp")


floor = {name: int(line.split()[0]) for line in block("floors") for name in line.split()[1:]}
for name, text in sorted(headers.items()):
    if name in doors:
        continue
    if room(name) not in floor:
        faults.append(f"docs/architecture.md: room {room(name)} is on no floor")
        continue
    for other in re.findall(r"#include <isogloss/([^>]+)>", text):
        if room(other) == room(name) and other not in doors:
            continue
        if other in doors or floor.get(room(other), -1) >= floor[room(name)]:
            faults.append(f"include/isogloss/{name}: includes {other}, which is not below it")

print("\n".join(faults) or f"{len(headers)} headers, as the map says")
sys.exit(bool(faults))
