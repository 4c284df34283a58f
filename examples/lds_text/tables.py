"""Taggers of lds_text with and without the words themselves: trains what a table of results lacks, and prints it.

    python3 tables.py PROGRAM --system m.lds --results tags.csv --corpora ewt conll --seeds 1 2 3
    python3 tables.py PROGRAM --system m.lds --word2vec w.txt --results tags.csv

A row per corpus, features and seed, written when its tagger is done: an interrupted table goes on where it was. p is McNemar's test of the
words tagged right (ewt), or approximate randomisation of F1 (conll), against the words alone with the same seed.
"""
import argparse
import csv
import json
import os
import subprocess
import sys

FIELDS = ["corpus", "features", "seed", "dev", "test", "p_against_words"]
CORPORA = {
    "ewt": ("conllu", "ud-english-ewt/en_ewt-ud-train.conllu", "ud-english-ewt/en_ewt-ud-dev.conllu",
            "ud-english-ewt/en_ewt-ud-test.conllu"),
    "conll": ("conll", "conll-2003/eng.train", "conll-2003/eng.testa", "conll-2003/eng.testb"),
}


def variants(o):
    """Name and options of each tagger; the words alone come first, as the others are compared with them."""
    lexical = ["--features", "lexical"]
    rows = [("words", lexical)]
    if o.system:
        rows += [("words, smoother", [*lexical, "--model", o.system, "--states", "smoother"]),
                 ("words, types", [*lexical, "--model", o.system, "--states", "types", "--window", 1]),
                 ("smoother", ["--model", o.system, "--states", "smoother"])]
    if o.word2vec:
        rows += [("words, word2vec", [*lexical, "--vectors", o.word2vec, "--window", 1]), ("word2vec", ["--vectors", o.word2vec])]
    return rows


def train(o, corpus, name, options, seed):
    form, *files = CORPORA[corpus]
    tags = os.path.join(o.folder, f"{corpus}.{name.replace(', ', '+')}.{seed}")
    words = os.path.join(o.folder, f"{corpus}.words.{seed}")
    call = [o.program, "tag", "--format", form, "--epochs", o.epochs, "--seed", seed, "--threads", 1, "--predictions", tags, "--overwrite",
            "--json", *options]
    for option, file in zip(("--train", "--dev", "--test"), files):
        call += [option, os.path.join(o.data, file)]
    if name != "words":
        call += ["--against", words]
    done = subprocess.run([str(a) for a in call], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, call))}\n{done.stderr}")
    found = json.loads(done.stdout)
    beside = found.get("against", {})
    return {"corpus": corpus, "features": name, "seed": seed, "dev": f"{100 * found['dev']:.2f}", "test": f"{100 * found['test']:.2f}",
            "p_against_words": f"{beside.get('p_F1', beside['p']):.2g}" if beside else ""}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="lds_text, as it was built")
    parser.add_argument("--system", help="file of `lds_text fit`")
    parser.add_argument("--word2vec", help="word vectors to compare with")
    parser.add_argument("--results", required=True, help="CSV file, read and added to; FILE.tags beside it has the tags")
    parser.add_argument("--data", default=os.environ.get("ISOGLOSS_DATA", "../shared/data"), help="folder of the corpora")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=8)
    o = parser.parse_args()
    o.folder = o.results + ".tags"
    os.makedirs(o.folder, exist_ok=True)
    rows = []
    if os.path.exists(o.results):
        with open(o.results, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if rows and list(rows[0]) != FIELDS:
            sys.exit(f"{o.results} is no table of this program; it is left as it is")
    known = {(r["corpus"], r["features"], r["seed"]) for r in rows}
    for corpus in o.corpora:
        for seed in o.seeds:
            for name, options in variants(o):
                if (corpus, name, str(seed)) in known:
                    continue
                rows.append({key: str(value) for key, value in train(o, corpus, name, options, seed).items()})
                with open(o.results + ".new", "w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)
                os.replace(o.results + ".new", o.results)
    for corpus in o.corpora:
        print(f"\n| {corpus} | test, by seed | p, by seed | dev, mean |\n|---|---|---|---|")
        for name, _ in variants(o):
            of = [r for r in rows if (r["corpus"], r["features"]) == (corpus, name)]
            if of:
                mean = sum(float(r["dev"]) for r in of) / len(of)
                print(f"| {name} | {', '.join(r['test'] for r in of)} | {', '.join(r['p_against_words'] for r in of)} | {mean:.2f} |")


main()
