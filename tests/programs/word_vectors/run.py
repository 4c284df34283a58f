"""evaluate against the same figures computed here, from files of word vectors and a model of the layout of a training."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "language_model"))

import math  # noqa: E402
import subprocess  # noqa: E402

from program import Folder, guards_outputs, read, rows, run, sentences, write  # noqa: E402

WORDS = "man woman king queen cat Dog zero".split()
VECTORS = [[1, 0, 0.1], [0, 1, 0], [1, 0.1, 1], [0, 1.2, 1.3], [-1, -1, 0.2], [-1, -0.5, 0.1], [0, 0, 0]]
PAIRS = [("king", "queen", 7), ("man", "woman", 8.5), ("cat", "Dog", 9), ("man", "cat", 1), ("king", "zero", 5), ("cat", "cow", 6)]


def spearman(x, y):
    def ranks(v):
        return [sum(b < a for b in v) + (sum(b == a for b in v) + 1) / 2 for a in v]

    r, s, m = ranks(x), ranks(y), (len(x) + 1) / 2
    both = sum((a - m) * (b - m) for a, b in zip(r, s))
    return both / math.sqrt(sum((a - m) ** 2 for a in r) * sum((b - m) ** 2 for b in s))


def expected():
    table = dict(zip(WORDS, VECTORS))

    def cosine(a, b):
        return sum(p * q for p, q in zip(a, b)) / math.sqrt(sum(p * p for p in a) * sum(q * q for q in b))

    found = [(cosine(table[a], table[b]), s) for a, b, s in PAIRS if any(table.get(a, [])) and any(table.get(b, []))]
    return len(found), spearman(*zip(*found))


def evaluates():
    os.mkdir("sets")
    write("sets/EN-SMALL.txt", "".join(f"{a}\t{b}\t{s}\n" for a, b, s in PAIRS))
    write("sets/questions-words.txt", ": family\nman woman king queen\nwoman man queen king\nman woman boy girl\n"
                                      ": gram1-none\ncat Dog cow calf\n")
    write("v.txt", "".join(w + " " + " ".join(map(str, v)) + "\n" for w, v in zip(WORDS, VECTORS)))
    run("evaluate", "--vectors", "v.txt", "--sets", "sets", "--csv", "out.csv")
    results = {(r["kind"], r["set"]): r for r in rows("out.csv")}
    found, rho = expected()
    similarity = results["similarity", "EN-SMALL"]
    assert (int(similarity["size"]), int(similarity["known"])) == (6, found), similarity
    assert abs(float(similarity["result"]) - rho) < 1e-5, (similarity, rho)
    for name, size, known, accuracy in [("family", 3, 2, 1), ("gram1-none", 1, 0, 0), ("semantic", 3, 2, 1), ("all", 4, 2, 1)]:
        r = results["analogies", name]
        assert (int(r["size"]), int(r["known"]), float(r["result"])) == (size, known, accuracy), r
    by_variable = run("evaluate", "--vectors", "v.txt", environment={"ISOGLOSS_DATA": "missing"}, status=1).stderr
    assert "missing/word-similarity" in by_variable, by_variable
    named = run("evaluate", "--vectors", "v.txt", "--similarity", "sets/EN-SMALL.txt", "--fold-case").stdout
    assert "analogies" not in named and "capitals as small letters" in named, named


def quotes():
    """A name with a comma or quotes is one field of the table."""
    write("a,b.txt", "king queen 9\ncat Dog 8\n")
    write("sections.txt", ': s,t\nman woman king queen\n: say"so"\nman woman queen king\n')
    run("evaluate", "--vectors", "v.txt", "--similarity", "a,b.txt", "--analogies", "sections.txt", "--csv", "quoted.csv")
    assert [r["set"] for r in rows("quoted.csv")] == ["a,b", "s,t", 'say"so"', "all"], read("quoted.csv")
    assert all(None not in r for r in rows("quoted.csv"))


def model():
    """The table of a trained model gives what its exported vectors give."""
    language_model = os.environ["LANGUAGE_MODEL"]
    write("text.txt", sentences(60))
    for arguments in [["train", "--train", "text.txt", "--valid", "text.txt", "--units", "6", "--epochs", "1", "--batch", "4",
                       "--bptt", "5", "--threads", "1"], ["neighbours", "--export", "exported.txt"]]:
        subprocess.run([language_model, *arguments, "--model", "m"], check=True, capture_output=True)
    write("garden.txt", "king queen 9\ncat dog 8\ncat garden 1\nking wood 2\nzebra dog 4\n")
    from_model = run("evaluate", "--model", "m", "--similarity", "garden.txt").stdout
    assert from_model == run("evaluate", "--vectors", "exported.txt", "--similarity", "garden.txt").stdout
    assert "14 words of dimension 6" in from_model and "80.0%" in from_model, from_model
    wrong = run("evaluate", "--model", "m", "--table", "W", "--similarity", "garden.txt", status=1).stderr
    assert "no table 'W' with a vocabulary; matrices there: E lstm1.W" in wrong, wrong
    rows_differ = run("evaluate", "--model", "m", "--table", "lstm1.U", "--similarity", "garden.txt", status=1).stderr
    assert "'lstm1.U' has 6 rows for 14 words" in rows_differ, rows_differ


def refuses():
    assert "either --vectors" in run("evaluate", "--sets", "sets", status=1).stderr
    assert "none.txt" in run("evaluate", "--vectors", "none.txt", "--sets", "sets", status=1).stderr
    write("bad.txt", "a b 1\na b\n")
    assert "bad.txt:2" in run("evaluate", "--vectors", "v.txt", "--similarity", "bad.txt", status=1).stderr
    for options in "--vectors v.txt --table E", "--similarity sets/EN-SMALL.txt --sets sets", "--analogies sets/questions-words.txt --sets sets":
        with_it, _, option, _ = options.split()
        error = run("evaluate", *options.split(), status=1).stderr
        assert error.startswith(f"isogloss: evaluate: {option} has no effect with {with_it}, ") and error.endswith("; leave it out\n"), error
    before = read("v.txt")
    guards_outputs("evaluate", "--vectors", "v.txt", "--sets", "sets", inputs=["v.txt", "sets/EN-SMALL.txt"], outputs=["--csv"])
    assert read("v.txt") == before
    os.mkdir("empty")
    assert "holds neither" in run("evaluate", "--vectors", "v.txt", "--sets", "empty", status=1).stderr


with Folder():
    evaluates()
    quotes()
    model()
    refuses()
