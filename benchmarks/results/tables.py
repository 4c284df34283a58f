"""Tables of the pages against the CSV files beside this script: python3 tables.py [--write]

Each file holds the numbers of the tables of one page, one a line. --write makes the files from the pages, which is how
they began; without it, each number of a file has to stand on its page and each of a page in its file.
"""
import csv
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COLUMNS = ["table", "row", "column", "value", "processor", "versions", "command"]
PEERS = ["AMD Zen 4, one core of a virtual machine", "PyTorch 2.15.0, PyTorch 1.13.0, oneDNN 3.13.2, OpenBLAS 0.3.21, g++ 12",
         "python3 benchmarks/peers/compare.py build/release/benchmarks --threads 1 --torch build/peers/bin/python --rounds 5"]
STEP = ["AMD Zen 4, one core of a virtual machine", "OpenBLAS 0.3.21, g++ 12",
        "build/release/benchmarks/step --threads=1 --benchmark_filter='(ce|al)/width'"]
# file: page, start of the header of each table, what was run for it
FILES = {
    "peers_zen4.csv": ("docs/performance.md", {"| | PyTorch, float": PEERS, "| one LSTM layer": PEERS}),
    "step_zen4.csv": ("docs/performance.md", {"| efficiency |": STEP}),
}


def read_page(page, tables):
    lines, out = (ROOT / page).read_text(encoding="utf-8").splitlines(), []
    for start, run in tables.items():
        at = [k for k, line in enumerate(lines) if line.startswith(start)]
        if len(at) != 1:
            sys.exit(f"{page}: found {len(at)} tables that begin with '{start}', expected 1")
        header = [c.strip() for c in lines[at[0]].split("|")[1:-1]]
        group = ""
        for line in lines[at[0] + 2:]:
            if not line.startswith("|"):
                break
            row = [c.strip() for c in line.split("|")[1:-1]]
            if "," in row[0]:  # the rows below it name only what differs
                group = row[0]
            name = row[0] if row[0] == group or not group else f"{group}: {row[0]}"
            out += [[start.strip("| "), name, c, v, *run] for c, v in zip(header[1:], row[1:])
                    if re.fullmatch(r"[0-9.]+", v)]
    return out


def main():
    for name, (page, tables) in FILES.items():
        found = read_page(page, tables)
        if "--write" in sys.argv:
            with open(HERE / name, "w", encoding="utf-8", newline="") as f:
                csv.writer(f, lineterminator="\n").writerows([COLUMNS, *found])
        with open(HERE / name, encoding="utf-8", newline="") as f:
            stored = list(csv.reader(f))[1:]
        differ = [row for row in found if row not in stored] + [row for row in stored if row not in found]
        if differ:
            sys.exit(f"{page} and benchmarks/results/{name} differ: {differ[0]}; correct the page, or the file by --write")


main()
