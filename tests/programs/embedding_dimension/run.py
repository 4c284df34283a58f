"""The study on a small text: a row per model, width and epoch, the same when resumed, errors."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "language_model"))

from program import Folder, guards_outputs, read, rows, run, sentences, write  # noqa: E402

EITHER = ["--train", "train.txt", "--valid", "valid.txt", "--tokens", 4000, "--widths", "2,8", "--epochs", 4]
TIED, SKIP_GRAM = ["--batch", 4, "--bptt", 10], ["--window", 2, "--skip-gram-rate", 0.2]
SMALL = [*EITHER, *TIED, *SKIP_GRAM]


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
    write("empty.csv", "")  # counts as none
    run(*EITHER, *TIED, "--csv", "empty.csv", "--svg", "", "--models", "tied", "--epochs", 1, "--resume")
    assert len(rows("empty.csv")) == 2
    os.remove("embedding_dimension.svg")
    run("--plot-only")
    assert os.path.exists("embedding_dimension.svg")


def keeps_studies_apart():
    """--resume refuses rows that other texts or options made, and names what differs."""
    before = read("embedding_dimension.csv")

    def refused(*options, says):
        error = run(*SMALL, "--svg", "", "--resume", *options, status=1).stderr
        assert error.startswith("isogloss: --csv 'embedding_dimension.csv' has rows of another study") and error.count("\n") == 1, error
        assert all(s in error for s in [says, "Give --csv another name"]), error
        assert read("embedding_dimension.csv") == before

    write("other.txt", sentences(500, seed=3))
    refused("--train", "other.txt", says="--train is ")
    refused("--valid", "train.txt", says="--valid is ")
    for option, old, new in [("--tokens", 4000, 3000), ("--epochs", 4, 8), ("--seed", 1, 2), ("--max-vocabulary", 0, 9)]:
        refused(option, new, says=f"{option} is {old}, not {new}")
    for option, old, new in [("--rate", 1, 0.5), ("--batch", 4, 5), ("--bptt", 10, 5), ("--keep", 1, 0.5)]:
        refused(option, new, says=f"of tied, width 2, {option} is {old}, not {new}")
    for option, old, new in [("--window", 2, 3), ("--skip-gram-rate", 0.2, 0.1)]:
        refused(option, new, says=f"of skip-gram, width 2, {option} is {old}, not {new}")
    for model, own in ("tied", TIED), ("skip-gram", SKIP_GRAM):  # rows of the other have other options, of which this call says nothing
        run(*EITHER, *own, "--svg", "", "--resume", "--models", model)
    assert read("embedding_dimension.csv") == before
    run(*SMALL, "--svg", "", "--resume", "--threads", 2)


def draws():
    """Only the models that have rows; a table that is none is refused with its line."""
    lines = read("embedding_dimension.csv").decode().splitlines(True)
    write("some.csv", lines[0] + "".join(line for line in lines if line.startswith("skip-gram")))
    out = run("--plot-only", "--csv", "some.csv", "--svg", "some.svg").stdout
    svg = read("some.svg").decode()
    assert "tied" not in out + svg and "skip-gram" in out and "skip-gram" in svg, (out, svg)
    assert "found 8 rows, none of --models" in run("--plot-only", "--csv", "some.csv", "--models", "tied", status=1).stderr
    write("none.csv", lines[0])
    assert "found 0 rows" in run("--plot-only", "--csv", "none.csv", "--svg", "some.svg", status=1).stderr
    assert read("some.svg").decode() == svg
    row = lines[1].rstrip("\n")
    assert row.startswith("tied,14,2,1,")
    for bad in [row + ",1", row.replace("tied", "untied"), row.replace(",14,2,", ",14,-2,"), row.replace(",14,2,", ",14,2.5,"),
                row.replace(",14,2,1,", ",0,2,1,"), row.replace(",2,1,", ",2,0,"), "tied,14,2,1,nan,3,", "tied,14,2,1,3,-4,", "tied,14,2,1,3", ""]:
        write("bad.csv", lines[0] + row + "\n" + bad + "\n")
        assert "bad.csv:3: found " in run("--plot-only", "--csv", "bad.csv", status=1).stderr, bad


def prints_the_rule():
    for words, n in ((10000, 77), (1000, 58), (1e9, 172), (50000, 90)):
        out = run(words).stdout
        assert f"exact n = {n};" in out and f"H(N, {n}) = -" in out and f"H(N, {n - 1}) = +" in out, out
    assert "words = 0" in run(0, status=1).stderr
    assert "--tokens has no effect with --counts" in run("--counts", "none", "--tokens", 5, status=1).stderr
    assert "none" in run("--counts", "none", status=1).stderr
    assert "--tokens has no effect with N" in run(10000, "--tokens", 5, status=1).stderr


def without_effect():
    """Options that change nothing are refused before anything is written."""
    for with_it, says, options in [("--models skip-gram", "without the model tied", ["--keep 0.5", "--rate 0.5", "--batch 4", "--bptt 10"]),
                                   ("--models tied", "without the model skip-gram", ["--window 2", "--skip-gram-rate 0.1"]),
                                   ("--plot-only", "with --plot-only", ["--epochs 3", "--resume", "--threads 1", "--train train.txt", "--tokens 9"])]:
        for option in options:
            error = run(*with_it.split(), *option.split(), "--csv", "x.csv", status=1).stderr
            assert error.startswith(f"isogloss: {option.split()[0]} has no effect {says}") and error.endswith("; leave it out\n"), error
            assert error.count("\n") == 1 and not os.path.exists("x.csv"), error


def diverges():
    """A training that diverges is an error that names its rate, and leaves no rows."""
    for model, option, steps in ("tied", "--rate", TIED), ("skip-gram", "--skip-gram-rate", ["--window", 2]):
        error = run(*EITHER, *steps, "--models", model, option, 1e6, "--csv", f"{model}.csv", "--svg", "", status=1).stderr
        assert f"{model} of width 2 diverged in epoch 1; lower {option}\n" in error and not os.path.exists(f"{model}.csv"), error


def refuses():
    os.mkfifo("pipe")
    for pipe in (["--train", "pipe", "--valid", "valid.txt"], ["--train", "train.txt", "--valid", "pipe"]):
        assert "'pipe' is not a regular file, but its text is read twice" in run(*pipe, "--csv", "x.csv", status=1).stderr
    assert "found --tokens = -7, expected at least 0" in run("--tokens", -7, "--csv", "x.csv", status=1).stderr
    assert "none.txt" in run("--train", "none.txt", "--valid", "valid.txt", "--csv", "x.csv", status=1).stderr
    missing = run("--train", "train.txt", "--csv", "x.csv", environment={"ISOGLOSS_DATA": "nowhere"}, status=1).stderr
    assert "'nowhere/ptb/ptb.valid.txt' does not exist" in missing and "ISOGLOSS_DATA to the folder that holds ptb/, or give --train and --valid" in missing, missing
    guards_outputs(*SMALL, inputs=["train.txt", "valid.txt"], outputs=["--csv", "--svg"])
    run("--widths", "0", status=105)


with Folder():
    prints_the_rule()
    studies()
    keeps_studies_apart()
    draws()
    without_effect()
    diverges()
    refuses()
