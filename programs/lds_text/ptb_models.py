"""Perplexity of the Penn Treebank by hidden Markov models, a Kneser-Ney 5-gram, linear dynamical systems and an LSTM.

    python3 ptb_models.py ngram --data DIR --results results/ptb_models.csv
    PYTHONPATH=FOLDER_OF_THE_MODULE python3 ptb_models.py hmm --data DIR --states 500 --steps 40 --prior 0.01 --results results/ptb_hmm.csv
    python3 ptb_models.py table --results results/ptb_models.csv [--page PAGE]

DIR has ptb.train.txt, ptb.valid.txt and ptb.test.txt. Both read every line with <eos> by itself, from its beginning; the vocabulary is
that of the training text, which has every word of the others. `hmm` needs the Python module of this library, and writes a row per step of
Baum-Welch; `table` prints the rows of a file of models, and with --page is status 1 if the page does not contain them.
"""
import argparse
import collections
import csv
import math
import os
import sys
import time


def read(data, part):
    with open(os.path.join(data, f"ptb.{part}.txt"), encoding="utf-8") as file:
        return [line.split() + ["<eos>"] for line in file]


class KneserNey:
    """Interpolated, with three discounts per order (Chen, Goodman 1999). A context reaches back to the <s> before its line."""

    def __init__(self, lines, order):
        self.order = order
        counts = [collections.defaultdict(collections.Counter) for _ in range(order)]  # by length of the context
        for line in lines:
            for context, word in self.places(line):  # the longest n-grams, and shorter ones that begin a line, by how often they occur
                counts[len(context)][context][word] += 1
        for n in range(order - 2, -1, -1):  # the others by how many words precede them
            for context, followers in counts[n + 1].items():
                for word in followers:
                    counts[n][context[1:]][word] += 1
        self.levels = []
        for level in counts:
            of = collections.Counter(c for followers in level.values() for c in followers.values() if c < 5)
            y = of[1] / (of[1] + 2 * of[2])
            discount = [0, *(k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3))]
            self.levels.append({context: (sum(f.values()), sum(discount[min(c, 3)] for c in f.values()), f, discount)
                                for context, f in level.items()})
        self.words = len(self.levels[0][()][2])

    def places(self, line):
        words = ("<s>", *line)
        return ((words[max(0, t - self.order + 1):t], words[t]) for t in range(1, len(words)))

    def __call__(self, context, word):
        p = 1 / self.words
        for n in range(len(context) + 1):
            found = self.levels[n].get(context[len(context) - n:])
            if found is None:
                break
            total, kept, followers, discount = found
            c = followers.get(word, 0)
            p = ((c - discount[min(c, 3)]) if c else 0) / total + kept / total * p
        return p

    def perplexity(self, lines):
        nats = [-math.log(self(*place)) for line in lines for place in self.places(line)]
        return math.exp(sum(nats) / len(nats))


def ngram(o):
    model = KneserNey(read(o.data, "train"), 5)
    with open(o.results, "a", encoding="utf-8") as file:
        print("Kneser-Ney 5-gram", *(f"{model.perplexity(read(o.data, part)):.1f}" for part in ("valid", "test")), "`ptb_models.py ngram`", sep=",", file=file)


def hmm(o):
    import isogloss
    texts = {part: read(o.data, part) for part in ("train", "valid", "test")}
    number = {}
    for line in texts["train"]:
        for word in line:
            number.setdefault(word, len(number))
    texts = {part: [[number[w] for w in line] for line in lines] for part, lines in texts.items()}
    tokens = {part: sum(map(len, lines)) for part, lines in texts.items()}
    model = isogloss.Hmm(o.states, len(number), o.prior, o.seed)

    def perplexity(part):
        return f"{math.exp(-sum(map(model.log_likelihood, texts[part])) / tokens[part]):.2f}"

    with open(o.results, "a", encoding="utf-8", buffering=1) as file:
        seconds = 0.0
        for step in range(1, o.steps + 1):
            begun = time.process_time()
            before = math.exp(-model.step(texts["train"]) / tokens["train"])
            seconds += time.process_time() - begun
            now = step % o.every == 0 or step == o.steps
            print(o.states, o.prior, o.seed, step, f"{before:.2f}", *(perplexity(part) if now else "" for part in ("valid", "test")), f"{seconds:.0f}",
                  sep=",", file=file)


def table(o):
    with open(o.results, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    lines = ["| " + " | ".join(row) + " |\n" for row in rows]
    made = lines[0] + "|" + "---|" * len(rows[0]) + "\n" + "".join(lines[1:])
    if not o.page:
        print(made, end="")
        return
    with open(o.page, encoding="utf-8") as file:
        if made not in file.read():
            sys.exit(f"ptb_models.py: found no such table in '{o.page}', expected there what follows. Put it in the place of the old one\n{made}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ngram", "hmm", "table"])
    parser.add_argument("--results", required=True, help="CSV file; rows are appended by ngram and hmm")
    parser.add_argument("--data", help="folder of the texts")
    parser.add_argument("--states", type=int, default=500)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between two evaluations")
    parser.add_argument("--prior", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", help="a page that is compared with the table")
    o = parser.parse_args()
    {"ngram": ngram, "hmm": hmm, "table": table}[o.what](o)


if __name__ == "__main__":
    main()
