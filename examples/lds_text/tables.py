"""Taggers of lds_text with and without the words themselves: trains those missing from a table of results, and prints it.

    python3 tables.py build/release/examples/lds_text --system m.lds --results tags.csv --corpora ewt conll --seeds 1 2 3
    python3 tables.py build/release/examples/lds_text --system m.lds --ssid s.lds --word2vec w.txt --results tags.csv --page taggers.md
    python3 tables.py --results tags.csv --page taggers.md --check

One row per corpus, features and seed, written when its tagger is trained, so that an interrupted table can be resumed. Without a program nothing
is trained. p is from McNemar's test of correctly tagged words (ewt), or approximate randomisation of F1 (conll), with the same seed: taggers that
see words are compared with the words alone, the others with the smoothed states alone.
"""
import argparse
import csv
import json
import os
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


class Results:
    """A file with one row per tagger."""

    def __init__(self, path):
        self.path, self.rows = path, []
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
            if self.rows and list(self.rows[0]) != FIELDS:
                sys.exit(f"tables.py: '{path}' is not a table of this program; it was left unchanged. Give --results another name")

    def has(self, corpus, name, seed):
        return any((r["corpus"], r["features"], r["seed"]) == (corpus, name, str(seed)) for r in self.rows)

    def keep(self, row):
        self.rows.append({key: str(value) for key, value in row.items()})
        with open(self.path + ".new", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(self.path + ".new", self.path)


def train(o, corpus, name, seed):
    source, options, other = VARIANTS[name]
    form, *files = CORPORA[corpus]

    def tags(of):
        return os.path.join(o.results + ".tags", f"{corpus}.{of.replace(', ', '+').replace(' ', '_')}.{seed}")

    call = [o.program, "tag", "--format", form, "--epochs", o.epochs, "--seed", seed, "--threads", 1, "--predictions", tags(name), "--overwrite",
            "--json", *options]
    if source:
        call += ["--vectors" if source == "word2vec" else "--model", getattr(o, source)]
    for option, file in zip(("--train", "--dev", "--test"), files):
        call += [option, os.path.join(o.data, file)]
    if other and os.path.exists(tags(other)):
        call += ["--against", tags(other)]
    else:
        other = ""
    done = subprocess.run([str(a) for a in call], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"tables.py: {' '.join(map(str, call))}\n{done.stderr}")
    found = json.loads(done.stdout)
    beside = found.get("against", {})
    return {"corpus": corpus, "features": name, "seed": seed, "dev": f"{100 * found['dev']:.2f}", "test": f"{100 * found['test']:.2f}",
            "against": other, "p": f"{beside.get('p_F1', beside['p']):.2g}" if beside else ""}


def table(rows, corpus):
    """Markdown: test results by seed and their mean, p by seed, the mean of dev results."""
    lines = [f"| {TITLES[corpus]} | test, by seed | mean | against | p, by seed | dev, mean |", "|---|---|---|---|---|---|"]
    for name in VARIANTS:
        of = sorted((r for r in rows if (r["corpus"], r["features"]) == (corpus, name)), key=lambda r: int(r["seed"]))
        if not of:
            continue
        means = [f"{statistics.mean(float(r[part]) for r in of):.2f}" for part in ("test", "dev")]
        lines.append(f"| {name} | {', '.join(r['test'] for r in of)} | {means[0]} | {of[0]['against'] or '–'} | "
                     f"{', '.join(r['p'] for r in of if r['p']) or '–'} | {means[1]} |")
    return "\n".join(lines) + "\n"


# What --page writes.
PAGE = """# Taggers with and without the words themselves

Made by `examples/lds_text/tables.py` from its results file. The epoch is chosen on the dev part; columns of p are tests with the same seed,
McNemar's of words tagged right (EWT) or approximate randomisation of F1 (CoNLL-2003), against the features that are named.
Words: a [linear-chain model](../lds.md#with-the-words-themselves) of words, affixes, shapes and neighbours; the others a single vector for
each word, or vectors as further features.

{tables}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="lds_text, as it was built; without it nothing is trained")
    parser.add_argument("--system", help="file of `lds_text fit`")
    parser.add_argument("--ssid", help="file of `lds_text fit --iterations 0`: subspace identification alone")
    parser.add_argument("--word2vec", help="word vectors to compare with")
    parser.add_argument("--results", required=True, help="CSV file, read and added to; FILE.tags beside it has the tags")
    parser.add_argument("--data", default=os.environ.get("ISOGLOSS_DATA", "../shared/data"), help="folder of the corpora")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--features", nargs="+", default=list(VARIANTS), choices=list(VARIANTS), metavar="NAME",
                        help="of: " + "; ".join(VARIANTS) + ". By default all for which there are files")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--page", help="file for the tables as a page; otherwise they are printed")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the page is not what would be written")
    o = parser.parse_args()
    if o.check and not o.page:
        parser.error("--check needs --page")
    if not o.program and not os.path.exists(o.results):
        sys.exit(f"tables.py: there is no results file '{o.results}'; name one by --results, or a program that makes it")
    results = Results(o.results)
    if o.program and not o.check:
        os.makedirs(o.results + ".tags", exist_ok=True)
        for seed in o.seeds:  # seed by seed: a table stopped early is complete over fewer seeds
            for corpus in o.corpora:
                for name in VARIANTS:
                    source = VARIANTS[name][0]
                    if name in o.features and (not source or getattr(o, source)) and not results.has(corpus, name, seed):
                        results.keep(train(o, corpus, name, seed))
    tables = "\n".join(table(results.rows, corpus) for corpus in CORPORA if any(r["corpus"] == corpus for r in results.rows))
    if not o.page:
        print(tables)
        return
    made = PAGE.format(tables=tables)
    if not o.check:
        with open(o.page, "w", encoding="utf-8") as file:
            file.write(made)
        return
    with open(o.page, encoding="utf-8") as file:
        if file.read() != made:
            sys.exit(f"tables.py: '{o.page}' is not made from '{o.results}'. Run it without --check")


main()
