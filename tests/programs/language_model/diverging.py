"""Trainings and grids of tune that come to numbers that are not finite: what is left, what is said, and the status."""
import json
import os
import re

from program import Folder, crc64, floats, number, poison, read, rows, run, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]


def finite(path):
    return all(x - x == 0 for name, tensor in tensors(path)[0].items() if tensor[0] == "F32" for x in floats(tensor))


def from_the_start():
    """No epoch is completed: status 3, a sentence on what to do, no model, and a FILE.train without a bad number."""
    for options in [["--rate", 1e38], ["--rate", 1e38, "--checkpoint-every", 1], ["--update", "adam", "--rate", 1e30],
                    ["--update", "ruop", "--head", "free", "--rate", 1e37],
                    ["--rate", 1e38, "--shards", 2]]:
        done = train("m", *TEXTS, "--overwrite", *options, status=3)
        assert re.search(r"\nThe training stops in epoch 1 of 2, after batch \d+: it has run away\. The cause:\n", done.stdout), (options, done)
        assert "Begin again with --overwrite\nand a lower --rate" in done.stdout and "'m' was not written" in done.stdout, done.stdout
        assert done.stderr == "", done
        assert not os.path.exists("m") and finite("m.train"), options
        assert run("train", "--model", "m", "--resume", status=3).stdout.count("it has run away") == 1, options
    train("m", *TEXTS, "--overwrite", "--epochs", 1)  # as it says


def start_values():
    """A model to start from that is not finite: which number, in which file, and nothing is written."""
    poison("start", "poisoned", "E", float("nan"))
    done = train("never", *TEXTS, "--start-from", "poisoned", status=1)
    assert done.stderr == "isogloss: the weight 'E' is nan at row 0, column 0; expected finite numbers in 'poisoned': start from another file\n", done.stderr
    assert not os.path.exists("never") and not os.path.exists("never.train")


def in_the_first_validation():
    """Its weights are finite, but its perplexity is not, or is above 1000 V: no best, no model, status 3, also where it was the last epoch."""
    away = [*TEXTS, "--head-bias", "--loss", "ce", "--clip", 0, "--log", "first.csv"]
    for rate, valid, epochs, says in [(1e6, "inf", 3, "expected a finite one"), (1e6, "inf", 1, "expected a finite one"),
                                      (100, r"[\d.]+(?:e\+\d+)?", 3, "above 1000 times the 14 types")]:
        done = train("first", *away, "--rate", rate, "--epochs", epochs, "--overwrite", status=3)
        assert re.search(rf"\nepoch 1  train \S+  valid {valid}  [\d,]+ tokens/s ", done.stdout) and "(best)" not in done.stdout, done.stdout
        assert f"\nThe training stops after epoch 1 of {epochs}: it has run away. The validation\nperplexity is " in done.stdout, done.stdout
        assert says in done.stdout and "with a lower --rate or with --clip." in done.stdout, done.stdout
        assert "No epoch gave a model to keep: 'first' was not written." in done.stdout and not os.path.exists("first"), done.stdout
        assert ("--resume --runaway 0" in done.stdout) == (valid != "inf"), done.stdout
        again = run("train", "--model", "first", "--resume", status=3).stdout
        assert says in again and "'first' was not written" in again and len(tensors("first.train")[0]) > 0, again
    assert 1000 * 14 < float(rows("first.csv")[-1]["valid_perplexity"]) < float("inf"), rows("first.csv")
    # It goes on only where it is told to, if its perplexity is finite.
    train("first", *away, "--rate", 100, status=3)
    assert "No epoch gave a model" in run("train", "--model", "first", "--resume", "--runaway", 0, "--epochs", 1, status=3).stdout
    out = run("train", "--model", "first", "--resume", "--runaway", 0, "--epochs", 2).stdout
    assert "(best)" in out and "The best model, of epoch 2, is in 'first'" in out, out
    train("first", *away, "--rate", 1e6, "--runaway", 0, "--overwrite", status=3)


def best_is_kept():
    """Resumed from a state with a weight that is not finite, a training ends as it does when it comes to one itself; the model stays."""
    train("kept", *TEXTS, "--epochs", 1, "--log", "kept.csv")
    before = read("kept")
    state = bytearray(read("kept.train"))
    length = int.from_bytes(state[:8], "little")
    header = json.loads(state[8:8 + length])
    first = 8 + length + header["lstm1.U"]["data_offsets"][0]
    state[first:first + 4] = bytes([0, 0, 128, 127])  # inf
    write("kept.train", rechecked(bytes(state)))
    out = run("train", "--model", "kept", "--resume", "--epochs", 3, status=3).stdout
    assert "the weight 'lstm1.U' is inf at row 0, column 0" in out, out
    assert "The best model, of epoch 1, is in 'kept'" in out and number(r"validation valid.txt\n +perplexity ([\d.]+)", out) > 1
    assert read("kept") == before and len(rows("kept.csv")) == 1


def rechecked(content):
    """A file with the checksum of what it now holds."""
    key = b'"isogloss.checksum":"'
    at = content.index(key) + len(key)
    blank = content[:at] + b"0" * 16 + content[at + 16:]
    return content[:at] + b"%016x" % crc64(blank) + content[at + 16:]


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
    assert "with weight 1" in tune("--cache-weight", 1, status=1).stderr
    assert "--cache-weight is 1, expected a number below 1 with --dynamic" in tune(*dynamic, *grid, status=1).stderr


with Folder():
    write("train.txt", sentences(200))
    write("valid.txt", sentences(40, seed=2))
    train("start", *TEXTS, "--head", "free", "--epochs", 1)
    from_the_start()
    start_values()
    in_the_first_validation()
    best_is_kept()
    tuned()
