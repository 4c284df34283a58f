#!/usr/bin/env python3
"""The library, or a part of it, as one header.

    python3 tools/single_header.py > isogloss.hpp
    python3 tools/single_header.py isogloss/isogloss.hpp isogloss/hmm/hmm.hpp > mine.hpp

Without arguments: the core, isogloss/isogloss.hpp. The result still includes the library's dependencies (xtensor,
xtensor-blas, a BLAS). A program uses the single header or the folder, not both.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
OURS = re.compile(r"#include <(isogloss/[^>]+)>")
OTHERS = re.compile(r"#\s*include\s*([<\"][^>\"]+[>\"])")
# Declarations defined only by the compiled library.
COMPILED = re.compile(r"#ifdef ISOGLOSS_COMPILED\w*\n#include <isogloss/[^>]+>\n#endif\n")


def fail(message):
    sys.exit(f"single_header.py: {message}")


class Merger:
    def __init__(self):
        self.lines = []
        self.seen = {}  # header of the library -> whether its include is conditional
        self.system = set()  # external headers already included unconditionally

    def add(self, name, conditional=False):
        if name in self.seen:
            if self.seen[name] and not conditional:
                fail(f"{name} is included under a condition first and without one later; include it without one first")
            return
        self.seen[name] = conditional
        path = INCLUDE / name
        if not path.exists():
            fail(f"there is no header {name} in {INCLUDE}")
        depth = 0
        for line in COMPILED.sub("", path.read_text(encoding="utf-8")).splitlines():
            if line == "#pragma once":
                continue
            if re.match(r"#\s*if", line):
                depth += 1
            elif re.match(r"#\s*endif", line):
                depth -= 1
            ours, others = OURS.fullmatch(line), OTHERS.match(line)
            if ours:
                self.add(ours[1], conditional or depth > 0)
            elif others and not conditional and depth == 0:
                if others[1] not in self.system:
                    self.system.add(others[1])
                    self.lines.append(line)
            else:
                self.lines.append(line)


def version():
    text = (INCLUDE / "isogloss/config.hpp").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define ISOGLOSS_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def main(names):
    sys.stdout.reconfigure(encoding="utf-8")  # as the headers are, whatever the locale
    merger = Merger()
    for name in names or ["isogloss/isogloss.hpp"]:
        merger.add(name)
    left = next((line for line in merger.lines if re.match(r"#\s*include.*isogloss/", line)), None)
    if left:
        fail(f"cannot merge {left!r}; write #include <isogloss/…>, nothing else on the line")
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8").strip()
    head = [f"isogloss {version()}, {len(merger.seen)} headers in one, made by tools/single_header.py.", ""] + licence.splitlines()
    for line in head:
        print(f"// {line}".rstrip())
    print("#pragma once\n")
    blank = False
    for line in merger.lines:  # removed includes leave blank lines
        if line or not blank:
            print(line)
        blank = not line


if __name__ == "__main__":
    main(sys.argv[1:])
