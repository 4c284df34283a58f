"""Grids of tune that come to numbers that are not finite: what is left and what is said."""
import json
import re

from program import Folder, run, sentences, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]


def tuned():
    """A rate that diverges is a cell of the grid, and the others are tried; only where all diverge is there an error."""
    def tune(*options, status=0):
        return run("tune", "--model", "start", "--text", "valid.txt", "--threads", 1, *options, status=status)

    dynamic = ["--dynamic", "sgd", "--dynamic-decay", 0.001]
    out = tune(*dynamic, "--dynamic-rate", 0.1, 0.5, "1e38", 0.2).stdout
    assert re.search(r"\n +1e\+38 +inf\n +0\.2 +[\d.]+\nbest        --dynamic sgd --dynamic-rate 0\.[125]", out), out
    found = json.loads(tune(*dynamic, "--dynamic-rate", 0.1, 0.5, "1e38", 0.2, "--json").stdout)
    values = [trial["perplexity"] for trial in found["trials"]]
    assert values[2] is None and found["best"]["perplexity"] == min(values[:2] + values[3:]), found
    (alone,) = json.loads(tune(*dynamic, "--dynamic-rate", 0.2, "--json").stdout)["trials"]
    assert alone["perplexity"] == values[3], "the weights are restored after a rate that diverges"
    error = tune(*dynamic, "--dynamic-rate", "1e38", "1e37", status=1).stderr
    assert error.startswith("isogloss: tune: no perplexity is finite with any of these options; with the last,") and error.count("\n") == 1

    grid = ["--cache-window", 50, "--cache-flatness", 0, 0.5, "--cache-weight", 0.1, 1, 0.2]
    found = json.loads(tune(*grid, "--json").stdout)
    values = [trial["perplexity"] for trial in found["trials"]]
    assert values[1] is values[4] is None and None not in values[:1] + values[2:4] + values[5:], found
    whole = json.loads(tune(*grid[:5], "--cache-weight", 0.1, 0.2, "--json").stdout)
    assert [trial["perplexity"] for trial in whole["trials"]] == values[:1] + values[2:4] + values[5:] and whole["best"] == found["best"]
    assert " inf " in tune(*grid).stdout
    assert tune("--cache-flatness", 0.1, "1e300", "--cache-weight", 0, 0.1).stdout.count(" inf") >= 1
    assert "with weight 1 the word" in tune("--cache-weight", 1, status=1).stderr


with Folder():
    write("train.txt", sentences(200))
    write("valid.txt", sentences(40, seed=2))
    train("start", *TEXTS, "--head", "free", "--epochs", 1)
    tuned()
