"""Taggers of lds_text with and without the words themselves: trains those missing from a table of results, and prints it.

    python3 tables.py build/release/programs/lds_text --system m.lds --results tags.csv --corpora ewt conll --seeds 1 2 3
    python3 tables.py build/release/programs/lds_text --system m.lds --ssid s.lds --word2vec w.txt --results tags.csv --page taggers.md
    python3 tables.py --results tags.csv --page taggers.md --check

One row per corpus, features and seed, written when its tagger is trained, so that an interrupted table can be resumed. Without a program nothing
is trained. FILE.inputs beside the results has the checksums of the systems, vectors and corpora and the epochs, and a table is resumed only with
the same; what --note says of them is kept there too, for the page. p is from McNemar's test of correctly tagged words (ewt), or approximate randomisation of F1 (conll), with the same seed: taggers that
see words are compared with the words alone, the others with the smoothed states alone.
"""
import argparse
import contextlib
import csv
import fcntl
import hashlib
import io
import json
import os
import signal
import statistics
import subprocess
import sys

FIELDS = ["corpus", "features", "seed", "dev", "test", "against", "p"]
CORPORA = {
    "ewt": ("conllu", "ud-english-ewt/en_ewt-ud-train.conllu", "ud-english-ewt/en_ewt-ud-dev.conllu",
            "ud-english-ewt/en_ewt-ud-test.conllu"),
    "conll": ("conll", "conll-2003/eng.train", "conll-2003/eng.testa", "conll-2003/eng.testb"),
}
TITLES = {"ewt": "UD English EWT, universal tags: accuracy, %", "conll": "CoNLL-2003, entities: F1, %"}
LEXICAL = ["--features", "lexical"]
# Features of a tagger by name: the file they come from, its options, and the features that it is compared with.
VARIANTS = {
    "words": ("", LEXICAL, ""),
    "words, smoother": ("system", [*LEXICAL, "--states", "smoother"], "words"),
    "words, filter": ("system", [*LEXICAL, "--states", "filter"], "words"),
    "words, types": ("system", [*LEXICAL, "--states", "types", "--window", 1], "words"),
    "words, SSID smoother": ("ssid", [*LEXICAL, "--states", "smoother"], "words"),
    "words, word2vec": ("word2vec", [*LEXICAL, "--window", 1], "words"),
    "smoother": ("system", ["--states", "smoother"], ""),
    "filter": ("system", ["--states", "filter"], "smoother"),
    "types": ("system", ["--states", "types"], "smoother"),
    "SSID smoother": ("ssid", ["--states", "smoother"], "smoother"),
    "word2vec": ("word2vec", [], "smoother"),
}


def replace(path, text):
    """Writes a file as a whole: whoever reads it finds the old or the new one."""
    with open(path + ".new", "w", newline="", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


@contextlib.contextmanager
def alone(path):
    """While a file is read, changed and replaced: other calls that do so wait. The lock is on its folder."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


class Results:
    """A file with one row per tagger, to which several calls may add at once."""

    def __init__(self, path):
        self.path, self.rows = path, self.read(path)

    @staticmethod
    def read(path):
        if not os.path.exists(path):
            return []
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            reader = csv.DictReader(file)
            if (reader.fieldnames or FIELDS) != FIELDS:
                sys.exit(f"tables.py: '{path}' is not a table of this program; it was left unchanged. Give --results another name")
            rows = list(reader)
        for number, row in enumerate(rows, 2):
            try:
                fine = None not in row and row["corpus"] in CORPORA and int(row["seed"]) >= 0 and float(row["dev"]) + float(row["test"]) >= 0
            except (TypeError, ValueError):
                fine = False
            if not fine:
                sys.exit(f"tables.py: found '{','.join(str(v) for v in row.values())}' in line {number} of '{path}', expected {','.join(FIELDS)} of a "
                         "tagger. Correct or remove the line")
        return rows

    @staticmethod
    def key(row):
        return row["corpus"], row["features"], str(row["seed"])

    def has(self, corpus, name, seed):
        """Whether there is a row, compared with the features that it should be compared with."""
        return any(self.key(r) == (corpus, name, str(seed)) and r["against"] == VARIANTS[name][2] for r in self.rows)

    def keep(self, row):
        row = {key: str(value) for key, value in row.items()}
        with alone(self.path):
            self.rows = self.read(self.path)
            at = next((i for i, r in enumerate(self.rows) if self.key(r) == self.key(row)), len(self.rows))
            self.rows[at:at + 1] = [row]
            text = io.StringIO()
            writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
            replace(self.path, text.getvalue())


def digest(paths):
    """Checksum of files; none if one is missing, which the program will report."""
    whole = hashlib.sha256()
    for path in paths:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
        whole.update(b"\0")
    return whole.hexdigest()


class Inputs:
    """FILE.inputs beside the results: the epochs, checksums of what the taggers of the table were trained on, and a note on it for the page."""

    def __init__(self, o):
        self.results, self.path, self.given = o.results, o.results + ".inputs", {}
        self.known = self.read()

    def read(self):
        if not os.path.exists(self.path):
            return {}
        try:
            with open(self.path, encoding="utf-8") as file:
                return dict(json.load(file))
        except (ValueError, TypeError):
            sys.exit(f"tables.py: '{self.path}' is not a list of the inputs of a table; it was left unchanged. Give --results another name")

    def require(self, o):
        """Ends the program unless the table was made with what this call has."""
        self.given = {"epochs": o.epochs}
        self.given.update((corpus, digest(os.path.join(o.data, file) for file in CORPORA[corpus][1:])) for corpus in o.corpora)
        self.given.update((source, digest([getattr(o, source)])) for source in ("system", "ssid", "word2vec") if getattr(o, source))
        self.require_same(self.given)

    def require_same(self, given):
        for name, value in given.items():
            if value is not None and self.known.get(name, value) != value:  # of a missing file the program says so
                what = f"--epochs {self.known[name]}, not {value}" if name == "epochs" else f"another {name}"
                sys.exit(f"tables.py: '{self.results}' was made with {what}. Give what it was made with, or --results another name")

    def keep(self, rows):
        """Notes the inputs of these rows. Those of a table without such a file are taken to be the ones that are given."""
        used = {name for r in rows for name in ("epochs", r["corpus"], VARIANTS.get(r["features"], [""])[0])}
        new = {name: value for name, value in self.given.items() if value is not None and name in used}
        self.add(new)

    def add(self, new):
        if not new.items() <= self.known.items():
            with alone(self.path):
                self.known = self.read()
                self.require_same({name: value for name, value in new.items() if name != "note"})  # another call may have come first
                self.known.update(new)
                replace(self.path, json.dumps(self.known, indent=1, ensure_ascii=False) + "\n")


def tags_of(o, corpus, name, seed):
    """The file for the tags of a tagger."""
    return os.path.join(o.results + ".tags", f"{corpus}.{name.replace(', ', '+').replace(' ', '_')}.{seed}")


def make(o, results, inputs, corpus, name, seed):
    """Trains a tagger, after the one that it is compared with where that one's tags are missing, and keeps the row."""
    other = VARIANTS[name][2]
    if other and not os.path.exists(tags_of(o, corpus, other, seed)):
        source = VARIANTS[other][0]
        if source and not getattr(o, source):
            sys.exit(f"tables.py: '{name}' is compared with '{other}', seed {seed}, whose tags '{tags_of(o, corpus, other, seed)}' are missing; "
                     f"give --{source}, which makes them")
        make(o, results, inputs, corpus, other, seed)
    row = train(o, corpus, name, seed)
    inputs.keep([*results.rows, row])  # first: ends the program where another call has made a table of other inputs meanwhile
    results.keep(row)


def train(o, corpus, name, seed):
    source, options, other = VARIANTS[name]
    form, *files = CORPORA[corpus]
    call = [o.program, "tag", "--format", form, "--epochs", o.epochs, "--seed", seed, "--threads", 1, "--predictions",
            tags_of(o, corpus, name, seed), "--overwrite", "--json", *options]
    if source:
        call += ["--vectors" if source == "word2vec" else "--model", getattr(o, source)]
    for option, file in zip(("--train", "--dev", "--test"), files):
        call += [option, os.path.join(o.data, file)]
    if other:
        call += ["--against", tags_of(o, corpus, other, seed)]
    try:
        done = subprocess.run([str(a) for a in call], capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(f"tables.py: '{o.program}' cannot be run ({error.strerror}), expected the program lds_text. Build it: cmake --build --preset release --target lds_text")
    if done.returncode:
        sys.exit(f"tables.py: {' '.join(map(str, call))}\n{done.stderr}")
    found = json.loads(done.stdout)
    beside = found.get("against", {})
    return {"corpus": corpus, "features": name, "seed": seed, "dev": f"{100 * found['dev']:.2f}", "test": f"{100 * found['test']:.2f}",
            "against": other, "p": f"{beside.get('p_F1', beside['p']):.2g}" if beside else ""}


def table(rows, corpus):
    """Markdown: the means over the seeds of test and dev results, p by seed."""
    lines = [f"| {TITLES[corpus]} | test | against | p, by seed | dev |", "|---|---|---|---|---|"]
    for name in VARIANTS:
        of = sorted((r for r in rows if (r["corpus"], r["features"]) == (corpus, name)), key=lambda r: int(r["seed"]))
        if not of:
            continue
        means = [f"{statistics.mean(float(r[part]) for r in of):.2f}" for part in ("test", "dev")]
        lines.append(f"| {name} | {means[0]} | {max(r['against'] for r in of) or '–'} | "
                     f"{', '.join(r['p'] or '–' for r in of) if any(r['p'] for r in of) else '–'} | {means[1]} |")
    return "\n".join(lines) + "\n"


# What --page writes.
PAGE = """# Taggers with and without the words themselves

**Question.** Do the states of a linear dynamical system help a tagger that sees the words, and one that does not?

**Answer.** With the words its vectors add at most 0.2 points on EWT and 0.3 on CoNLL-2003, where word2vec adds 0.1 and 0.6.
Without the words the smoothed states are the best features on both.

Made from `programs/lds_text/results/taggers.csv`, which has every seed (`taggers.csv.inputs`: checksums of what it was made
from), by

```sh
python3 programs/lds_text/tables.py build/release/programs/lds_text --system m.lds --ssid s.lds --word2vec w.txt \\
    --results programs/lds_text/results/taggers.csv --corpora ewt conll --seeds 1 2 3 --page docs/lab/taggers.md
```

Numbers are means over the seeds. *words* is a linear-chain model of words, affixes, shapes and neighbours, to which the other
rows of that name add vectors; the rest have a single vector for each word. {windowed}
have those of the two neighbours as well (`--window 1`). The epoch is chosen on the dev part. p is of the same seed, against
the features that are named: McNemar's test of words tagged right (EWT), approximate randomisation of F1 (CoNLL-2003).
{note}
{tables}"""


def page(note, tables):
    windowed = " and ".join(f'"{name}"' for name, (_, options, _) in VARIANTS.items() if "--window" in options)
    return PAGE.format(windowed=windowed, note=f"{note}\n" if note else "", tables=tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="lds_text, as it was built; without it nothing is trained")
    parser.add_argument("--system", help="file of `lds_text fit`")
    parser.add_argument("--ssid", help="file of `lds_text fit --iterations 0`: subspace identification alone")
    parser.add_argument("--word2vec", help="word vectors to compare with")
    parser.add_argument("--results", required=True, help="CSV file, read and added to; FILE.tags beside it has the tags")
    parser.add_argument("--data", default=os.environ.get("ISOGLOSS_DATA", "../shared/data"), help="folder of the corpora")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--features", nargs="+", choices=list(VARIANTS), metavar="NAME",
                        help="of: " + "; ".join(VARIANTS) + ". By default all for which there are files")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--note", help="text for the page, kept beside the results: how systems and vectors were made")
    parser.add_argument("--page", help="file for the tables as a page; otherwise they are printed")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the page is not what would be written")
    o = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and with it the current tagger
    if o.check and not o.page:
        parser.error("--check needs --page")
    if not o.program and not os.path.exists(o.results):
        sys.exit(f"tables.py: there is no results file '{o.results}'; name one by --results, or a program that makes it")
    results = Results(o.results)
    old = None  # the page as it is
    if o.page and os.path.exists(o.page):
        with open(o.page, encoding="utf-8", errors="replace") as file:
            old = file.read()
        if old and not old.startswith(PAGE.splitlines()[0] + "\n"):
            sys.exit(f"tables.py: --page '{o.page}' is not a page of this program; it was left unchanged. Give --page another name")
    if o.check and old is None:
        sys.exit(f"tables.py: there is no page '{o.page}' to check. Make it without --check")
    inputs = Inputs(o)
    if o.program and not o.check:
        inputs.require(o)
        inputs.keep(results.rows)
    if o.note is not None and not o.check:
        inputs.add({"note": o.note})
    if o.program and not o.check:
        os.makedirs(o.results + ".tags", exist_ok=True)
        for seed in o.seeds:  # seed by seed: a table stopped early is complete over fewer seeds
            for corpus in o.corpora:
                for name in VARIANTS:
                    source = VARIANTS[name][0]
                    if name not in (o.features or VARIANTS) or results.has(corpus, name, seed):
                        continue
                    if not source or getattr(o, source):
                        make(o, results, inputs, corpus, name, seed)
                    elif o.features:
                        sys.exit(f"tables.py: --features '{name}' is made from a file that is not given. Give --{source}, or leave the name out")
    tables = "\n".join(table(results.rows, corpus) for corpus in CORPORA if any(r["corpus"] == corpus for r in results.rows))
    if not o.page:
        print(tables)
        return
    made = page(inputs.known.get("note", ""), tables)
    if not o.check:
        replace(o.page, made)
    elif old != made:
        sys.exit(f"tables.py: '{o.page}' is not made from '{o.results}'. Run it without --check")


signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, such as head, ends it without a message
try:
    main()
    sys.stdout.flush()
except KeyboardInterrupt:
    print("tables.py: stopped; the same call continues", file=sys.stderr)
    sys.exit(130)
except (OSError, UnicodeError) as problem:  # of a file, or of a full disk
    sys.exit(f"tables.py: {problem}")
