#!/usr/bin/env python3
"""How big the house is: code lines, public names, members of Graph, the share that refuses, what one include brings.

    python3 tools/house.py            of this checkout
    python3 tools/house.py --names    lists the public names, namespace by namespace, and the members of Graph
    python3 tools/house.py --refusing lists the guards and, by header, the lines that refuse
    python3 tools/house.py --root DIR of another checkout

Code: lines that hold more than a comment. Public names: different names of functions, classes and enums in namespaces
other than detail, plain, kernel and graph, by Universal ctags (Debian: universal-ctags). Members of Graph: different names
of its public functions. Refusing: the lines of statements with a `throw` (not of one that passes an exception on) and the
`if` before it, of the functions whose names begin with require, refuse, fail or throw, and of statements that call one.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys

INTERNAL = {"detail", "plain", "kernel", "graph"}
CLOSURES = ["isogloss.hpp", "lds.hpp", "io.hpp", "node/lstm.hpp", "update/sgd.hpp"]
GUARD = r"(?:require|refuse|fail|throw)(?:_\w+)?"
GUARD_CALL = re.compile(rf"\b(?:throw\s+[^;\s]|{GUARD}\s*(?:<[^;(]*>)?\()")
GUARD_HEAD = re.compile(rf"[\w>&*\]]\s+({GUARD})\s*\(")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def blank(match):
    """Comments become nothing and literals X; the line ends stay. The apostrophe in 1'000 is no literal."""
    text = match[0]
    if text[0] == "/":
        return "\n" * text.count("\n") or " "
    return "X" + "\n" * text.count("\n")


def code(path):
    """The header's text without comments and contents of literals."""
    return TOKEN.sub(blank, re.sub(r"(?<=\d)'(?=\d)", "", path.read_text(encoding="utf-8")))


def code_lines(text):
    return sum(1 for line in text.splitlines() if line.strip())


def statements(text):
    """(statement, begin, end, what ends it): cut at ; { } outside of parentheses."""
    depth, begin = 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c in "{}" or c == ";" and depth == 0:
            yield text[begin:i], begin, i, c
            begin = i + 1


def body_end(text, brace):
    depth = 0
    for i in range(brace, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    return len(text)


def refusing(text):
    """The numbers of the lines that refuse, and the names of the guards defined here."""
    spans, guards = [], []
    for statement, begin, end, last in statements(text):
        begin += len(statement) - len(statement.lstrip())
        head = GUARD_HEAD.search(statement)
        if last == "{" and head and "=" not in statement[:head.start()]:
            spans.append((begin, body_end(text, end)))
            guards.append(head[1])
        elif GUARD_CALL.search(statement):
            spans.append((begin, end))
    lines = text.splitlines()
    found = {n for a, b in spans for n in range(text.count("\n", 0, a), text.count("\n", 0, b) + 1)}
    return {n for n in found if lines[n].strip()}, guards


def closure(include, name):
    """The headers of the library that a header brings, itself among them."""
    seen, unread = set(), [f"isogloss/{name}"]
    while unread:
        header = unread.pop()
        if header not in seen:
            seen.add(header)
            text = (include / header).read_text(encoding="utf-8")
            text = re.sub(r"#ifdef ISOGLOSS_COMPILED\w*\n.*?#endif", "", text, flags=re.S)
            unread += re.findall(r"#include <(isogloss/[^>]+)>", text)
    return seen


def names(headers):
    """Namespace -> public names; the members of Graph."""
    if not shutil.which("ctags") or "Universal" not in subprocess.run(["ctags", "--version"], capture_output=True, text=True).stdout:
        sys.exit("house.py: found no Universal ctags, which counts the names; apt-get install universal-ctags")
    found = subprocess.run(["ctags", "-x", "--languages=C++", "--langmap=C++:.hpp", "--kinds-C++=cfgsp", "--fields=+a",
        "--_xformat=%N|%s|%p|%a", *map(str, headers)], capture_output=True, text=True, check=True).stdout  # fmt: skip
    public, members = collections.defaultdict(set), set()
    for line in found.splitlines():
        name, scope, kind, access = line.split("|")
        parts = [part for part in scope.split("::") if part != "ISOGLOSS_CONFIGURATION"]
        if kind == "namespace" and parts[0] == "isogloss" and not INTERNAL.intersection(parts):
            public["::".join(parts)].add(name)
        elif parts == ["isogloss", "Graph"] and access == "public" and not name.startswith(("operator", "~", "Graph")):
            members.add(name)
    return public, members


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list the public names")
    parser.add_argument("--refusing", action="store_true", help="list the guards and the lines that refuse")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    include = options.root / "include"
    headers = sorted(include.rglob("*.hpp"))
    texts = {str(path.relative_to(include)): code(path) for path in headers}
    size = {name: code_lines(text) for name, text in texts.items()}
    rooms = collections.Counter()
    for name, lines in size.items():
        rooms[name.split("/")[1] if name.count("/") > 1 else "(ground floor)"] += lines
    total = sum(size.values())
    print(f"Code lines {total:,} in {len(headers)} headers: " + ", ".join(f"{room} {n:,}" for room, n in rooms.most_common()))
    public, members = names(headers)
    by_size = sorted(public, key=lambda space: -len(public[space]))
    print(f"Public names {sum(map(len, public.values()))}: " + ", ".join(f"{s.removeprefix('isogloss::')} {len(public[s])}" for s in by_size))
    print(f"Members of Graph {len(members)}")
    refused = {name: refusing(text) for name, text in texts.items()}
    lines = sum(len(found) for found, _ in refused.values())
    guards = sorted(guard for _, found in refused.values() for guard in found)
    print(f"Refusing {lines:,} lines, {100 * lines / total:.1f} %, {len(guards)} guards among them")
    print("Closures: " + ", ".join(f"{name} {sum(size[h] for h in closure(include, name)):,}" for name in CLOSURES))
    if options.names:
        for space in by_size:
            print(f"\n{space}: {' '.join(sorted(public[space]))}")
        print(f"\nGraph: {' '.join(sorted(members))}")
    if options.refusing:
        print(f"\n{' '.join(guards)}\n")
        for name in sorted(refused, key=lambda h: -len(refused[h][0])):
            print(f"{len(refused[name][0]):5} of {size[name]:4}  {name}")


if __name__ == "__main__":
    main()
