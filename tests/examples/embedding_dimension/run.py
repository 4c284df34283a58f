"""The study on a small text: a row per model, width and epoch, the same when resumed, errors."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "language_model"))

from program import Folder, guards_outputs, read, rows, run, sentences, write  # noqa: E402

SMALL = ["--train", "train.txt", "--valid", "valid.txt", "--tokens", 4000, "--widths", "2,8", "--epochs", 4, "--batch", 4,
         "--bptt", 10, "--window", 2, "--skip-gram-rate", 0.2]


def studies():
    write("train.txt", sentences(500))
    write("valid.txt", sentences(50, seed=2))
    out = run(*SMALL).stdout
    assert "4000 tokens, 14 words; the rule: n = 22 (22.0)" in out, out
    table = rows("embedding_dimension.csv")
    assert [(r["model"], r["width"], r["epoch"]) for r in table] == [
        (m, w, str(e)) for m in ("tied", "skip-gram") for w in ("2", "8") for e in (1, 2, 3, 4)], table
    last = {(r["model"], r["width"]): float(r["valid_perplexity"]) for r in table if r["epoch"] == "4"}
    assert 1 < last["tied", "8"] < last["tied", "2"] < 12, last
    assert 1 < last["skip-gram", "8"] < last["skip-gram", "2"] < 12, last
    assert read("embedding_dimension.svg").decode().rstrip().endswith("</svg>")
    before = read("embedding_dimension.csv")
    write("embedding_dimension.csv", b"".join(before.splitlines(True)[:10]))
    run(*SMALL, "--resume")
    assert read("embedding_dimension.csv") == before
    os.remove("embedding_dimension.svg")
    run("--plot-only")
    assert os.path.exists("embedding_dimension.svg")


def prints_the_rule():
    for words, n in ((10000, 77), (1000, 58), (1e9, 172), (50000, 90)):
        out = run(words).stdout
        assert f"exact n = {n};" in out and f"H(N, {n}) = -" in out and f"H(N, {n - 1}) = +" in out, out
    assert "words = 0" in run(0, status=1).stderr


def refuses():
    assert "none.txt" in run("--train", "none.txt", "--csv", "x.csv", status=1).stderr
    guards_outputs(*SMALL, inputs=["train.txt", "valid.txt"], outputs=["--csv", "--svg"])
    run("--widths", "0", status=105)


with Folder():
    prints_the_rule()
    studies()
    refuses()
