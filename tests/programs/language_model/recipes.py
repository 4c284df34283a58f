"""What a recipe is made of: targets, places of dropout, starts, parts of a text, diagnostics, and when to stop."""
import json
import os
import random
import re

from program import Folder, floats, number, read, rows, run, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]
# What the model learns is wrong for sentences read backwards: validation is worse after each epoch than after the first.
BACKWARDS = ["--train", "long.txt", "--valid", "backwards.txt", "--loss", "ce", "--head", "free", "--units", 12, "--rate", 0.3,
             "--keep", 1]


def parameters(path):
    return {name: t for name, t in tensors(path)[0].items() if not name.startswith("state/")}


def options(path):
    return json.loads(tensors(path)[1]["language_model"])


def targets():
    """The target is differentiated unless it is held."""
    call = [*TEXTS, "--rate", 0.3]  # at 1 a held target runs away in the second epoch
    train("default", *call, "--epochs", 1)
    train("held", *call, "--epochs", 1, "--target", "held")
    assert options("default")["target"] == "differentiated" and parameters("default") != parameters("held")


def dropout():
    """One --keep for all is the three at that value, and each of the three alone makes a difference."""
    for scheme, places in [("tied", ["input", "state"]), ("gal", ["state", "output"]), ("recurrent", ["input", "state", "output"])]:
        def trained(*arguments):
            train("d", *TEXTS, "--epochs", 1, "--scheme", scheme, *arguments)
            return parameters("d")
        plain = trained("--keep", 1)
        each = [x for place in places for x in (f"--keep-{place}", 0.5)]
        assert trained("--keep", 0.5) == trained(*each) != plain, scheme
        for place in places:
            assert trained("--keep", 1, f"--keep-{place}", 0.5) != plain, (scheme, place)
        assert "--keep has no effect with that of every place" in train("d", *TEXTS, "--keep", 1, *each, "--scheme", scheme, status=1).stderr
    assert "--keep-output is 0.9" in train("d", *TEXTS, "--keep-output", 0.9, status=1).stderr
    assert "--keep-input is 0.9" in train("d", *TEXTS, "--keep-input", 0.9, "--scheme", "gal", status=1).stderr


def random_lengths():
    """A loss that is a sum over the steps needs no other rate for a short segment: half a segment, alone, moves the same."""
    write("short.txt", sentences(4))  # 35 predictions: 4 columns of 8 steps
    call = ["--train", "short.txt", "--valid", "valid.txt", "--bptt", 16, "--epochs", 1]
    train("usual", *call)
    train("random", *call, "--random-bptt", "--seed", 1)
    assert parameters("usual") == parameters("random")
    # The Riemannian updates divide by the tokens, which makes a mean of it; their rate is scaled.
    natural = ["--update", "ruop", "--head", "free", "--loss", "ce"]
    train("usual", *call, *natural)
    train("random", *call, *natural, "--random-bptt")
    assert parameters("usual") != parameters("random")


def starts():
    """--start-from takes parameters, vocabulary and kind of model; what does not fit is listed."""
    train("first", *TEXTS, "--units", 10, "--cell", "gru", "--keep", 0.9, "--loss", "ce", "--scheme", "recurrent", "--keep-weights", 0.9,
          "--rate", 0.3)  # 1 is at the edge of what diverges
    write("other.txt", sentences(80, seed=5).replace("wood", "hall"))
    call = ["--train", "other.txt", "--valid", "valid.txt", "--threads", 1, "--epochs", 1, "--batch", 3, "--bptt", 7]
    out = run("train", "--model", "second", "--start-from", "first", "--rate", 0, *call).stdout
    assert "vocabulary  14 types (words, of 'first')" in out and "parameters to start with: 'first'" in out, out
    assert re.search(r"other\.txt: 720 tokens, 80 of them line ends, [1-9]\d* <unk>", out), out  # hall is unknown
    assert parameters("second") == parameters("first")
    assert options("second")["cell"] == "gru" and options("second")["keep"] == options("second")["keep-weights"] == 0.9 and options("second")["batch"] == 3
    line = r"\nperplexity ([\d.]+)"
    assert number(line, run("evaluate", "--model", "second", "--text", "valid.txt").stdout) == \
        number(line, run("evaluate", "--model", "first", "--text", "valid.txt").stdout)
    # From the end of a training, not its best, with another loss, and on: the file to start from is not needed then.
    run("train", "--model", "third", "--start-from", "first.train", "--loss", "al", "--alpha", 2, "--keep", 0.5, *call)
    assert options("third")["loss"] == "al" and options("third")["gamma"] is None
    os.rename("first", "elsewhere")
    run("train", "--model", "second", "--resume", "--epochs", 2)
    run("train", "--model", "second", "--resume", "--start-from", "first", "--epochs", 2)
    assert "--start-from" in run("train", "--model", "second", "--resume", "--start-from", "third", status=1).stderr
    os.rename("elsewhere", "first")

    def refused(*arguments, says):
        before = sorted(os.listdir("."))
        error = run("train", "--model", "new", "--start-from", "first", *call, *arguments, status=1).stderr
        for part in says:
            assert part in error, (part, error)
        assert sorted(os.listdir(".")) == before

    refused("--units", 12, "--cell", "lstm", says=['--cell ("lstm" given, "gru" stored)', "--units (12 given, 10 stored)"])
    refused("--head", "free", says=['--head ("free" given, "tied" stored)'])
    refused("--head-bias", says=["--head-bias (true given, false stored)"])
    refused("--head-bias", "--head", "free", says=['--head ("free" given'])
    refused("--min-count", 2, says=["--min-count has no effect"])
    refused("--start-from", "train.txt", says=["train.txt"])
    for name in ["first", "./first", "first.train"]:
        refused("--model", "first", "--start-from", name, says=["is the file that --start-from reads"])


def vocabularies_and_parts():
    """A part of a text keeps the numbers of the whole; the same tokens and the same vocabulary as a file give the same."""
    words = ["the", "<eos>", "in", "cat", "dog", "king", "queen", "sees", "likes", "greets", "garden", "house", "wood", "extra", "<unk>"]
    write("words.vocabulary", "isogloss-vocabulary\t1\nlevel\tword\neos_per_line\ttrue\nunk\t<unk>\neos\t<eos>\n"
          + f"types\t{len(words)}\n" + "".join(f"{word}\t1\n" for word in words))
    lines = read("train.txt").decode().splitlines(keepends=True)
    write("half.txt", "".join(lines[300:]))
    fixed = ["--valid", "valid.txt", "--vocabulary", "words.vocabulary", "--epochs", 1]
    out = train("half", "--train", "half.txt", *fixed).stdout
    assert "vocabulary  15 types (words, of 'words.vocabulary')" in out, out
    checksum = re.search(r"train +half.txt: 2,700 tokens, 300 of them line ends, 0 <unk> .*checksum (\w+)", out).group(1)
    for part in ["50%:", "2700:5400", "2700:100%"]:
        out = train("part", "--train", "train.txt", *fixed, "--train-tokens", part).stdout
        assert f"train.txt, tokens 2700 to 5400 of 5400: 2,700 tokens, 300 of them line ends, 0 <unk> (0.0 %), checksum {checksum}" in out, out
        assert parameters("part") == parameters("half"), part
    out = train("part", "--train", "train.txt", "--valid", "valid.txt", "--train-tokens", ":90", "--epochs", 1).stdout
    assert "tokens 0 to 90 of 5400" in out and "vocabulary  14 types (words, min-count 1)" in out, out
    # On with the same part alone.
    run("train", "--model", "part", "--resume", "--epochs", 2)
    assert "--train-tokens" in run("train", "--model", "part", "--resume", "--train-tokens", ":91", status=1).stderr
    for part in ["50", "x:", "2:1", "5:5", ":5401", "0:101%", "-1:5", "1.5:9", ":5x", ":nan%", "0:0x10", ":%"]:
        error = train("no", *TEXTS, f"--train-tokens={part}", status=1).stderr
        assert f"--train-tokens is '{part}', expected A:B" in error and not os.path.exists("no"), (part, error)
    assert "expected more than the 4 columns of --batch" in train("no", *TEXTS, "--train-tokens", "0:2", status=1).stderr
    assert "of words, but --level is character" in train("no", "--train", "half.txt", *fixed, "--level", "character", status=1).stderr
    assert "--vocabulary has no effect with --start-from" in train("no", "--train", "half.txt", *fixed, "--start-from", "half", status=1).stderr
    assert "--max-vocabulary has no effect" in train("no", "--train", "half.txt", *fixed, "--max-vocabulary", 5, status=1).stderr
    assert "train.txt" in train("no", *TEXTS, "--vocabulary", "train.txt", status=1).stderr
    assert not os.path.exists("no") and not os.path.exists("no.train")


def diagnostics():
    """The log says what a step was like; so does the line below each epoch."""
    def row(*arguments):
        if os.path.exists("d.csv"):
            os.remove("d.csv")
        out = train("d", *TEXTS, "--epochs", 1, "--log", "d.csv", "--verbose", *arguments).stdout
        (only,) = rows("d.csv")
        values = {key: float(value) for key, value in only.items() if key not in ("run", "largest_row_word") and value}
        return {**values, "word": only["largest_row_word"], "out": out}

    al = row()
    assert 0 < al["soft_term"] < 1 and 0 < al["gradient_norm"] < al["largest_gradient_norm"], al
    assert abs(al["tau_log_v"] - 52.7811) < 1e-4, al  # 20 ln 14
    E = tensors("d.train")[0]["E"]
    squares = [sum(x * x for x in floats(E)[8 * i:8 * i + 8]) for i in range(E[1][0])]
    assert abs(max(squares) - al["largest_row"]) < 1e-4 and al["word"] in ("the", "<eos>"), (squares, al)
    line = re.search(r"\n +rate 1  gradient ([\d.]+), at most ([\d.]+), (\d+) % clipped  longest vector \|e\|\^2 ([\d.]+) '(\S+)', "
                     r"tau ln V 52.8  soft term ([\d.]+) nats a token\n", al["out"])
    assert line and abs(float(line.group(1)) - al["gradient_norm"]) < 0.006 and line.group(5) == al["word"], al["out"]
    ce = row("--loss", "ce")
    assert ce["soft_term"] == 0 and "tau_log_v" not in ce and "soft term" not in ce["out"] and "tau ln V" not in ce["out"], ce
    # Clipping leaves the norms of a training that does not move as they are, and is counted.
    still = ["--rate", 0, "--keep", 1, "--init", 1]
    free, always = row(*still, "--clip", 0), row(*still, "--clip", 1e-6)
    some = row(*still, "--clip", free["gradient_norm"])
    assert free["clipped_share"] == 0 and always["clipped_share"] == 1 and 0 < some["clipped_share"] < 1, (free, always, some)
    assert free["gradient_norm"] == always["gradient_norm"] == some["gradient_norm"]
    # For a model that stands still the soft term is proportional to its weight.
    one, two = row(*still, "--alpha", 1), row(*still, "--alpha", 2)
    assert abs(two["soft_term"] / one["soft_term"] - 2) < 1e-4, (one, two)
    for update in ["adam", "asgd", "ruop"]:
        assert row("--update", update, "--rate", 0.001, "--loss", "ce", "--head", "free")["gradient_norm"] > 0, update


def runaway():
    """A training that has run away says so and stops with status 3; the best model stays; it goes on only when told to."""
    call = [*BACKWARDS, "--epochs", 3, "--log", "log.csv"]
    out = train("away", *call, status=3).stdout
    assert re.search(r"stops after epoch (\d) of 3: it has run away", out) and "more than 2 times the best" in out, out
    assert "--resume --runaway 0" in out and "The best model, of epoch 1, is in 'away'" in out, out
    epochs = len(rows("log.csv"))
    assert epochs == 2, rows("log.csv")
    best, state = read("away"), tensors("away.train")[0]
    again = run("train", "--model", "away", "--resume", status=3).stdout
    assert "it has run away" in again and (read("away"), len(rows("log.csv"))) == (best, 2) and tensors("away.train")[0] == state
    run("train", "--model", "away", "--resume", "--runaway", 0)
    train("whole", *BACKWARDS, "--epochs", 3, "--runaway", 0)
    assert parameters("away.train") == parameters("whole.train") and parameters("away") == parameters("whole")
    # In the last epoch as in any other.
    out = train("last", *BACKWARDS, "--epochs", 2, status=3).stdout
    assert "stops after epoch 2 of 2: it has run away" in out and "The best model, of epoch 1, is in 'last'" in out, out
    held = train("held", *BACKWARDS, "--head", "tied", "--loss", "al", "--target", "held", "--temperature", 0.5, "--epochs", 4, "--runaway",
                 1.0001, status=3).stdout
    assert "it has run away" in held and "--target differentiated" in held, held
    assert "--runaway is 1" in train("no", *TEXTS, "--runaway", 1, status=1).stderr


def patience():
    """Epochs without a new best end a training with status 0; another patience goes on, to the bits of one that had it."""
    os.remove("log.csv")
    call = [*BACKWARDS, "--runaway", 0, "--log", "log.csv"]
    out = train("patient", *call, "--epochs", 6, "--patience", 2).stdout
    assert "stops after epoch 3 of 6: 2 epochs without a new best" in out and len(rows("log.csv")) == 3, out
    before = tensors("patient.train")[0]
    out = run("train", "--model", "patient", "--resume").stdout
    assert "2 epochs without a new best" in out and len(rows("log.csv")) == 3, out
    assert tensors("patient.train")[0] == before
    out = run("train", "--model", "patient", "--resume", "--patience", 3).stdout
    assert "stops after epoch 4 of 6: 3 epochs" in out, out
    run("train", "--model", "patient", "--resume", "--patience", 0)
    train("whole", *BACKWARDS, "--runaway", 0, "--epochs", 6)
    assert parameters("patient.train") == parameters("whole.train")
    assert "--patience is -1" in train("no", *TEXTS, "--patience", -1, status=1).stderr


def sampling():
    """--epsilon changes what is learned, and a resumed training keeps it and its draws."""
    draw = random.Random(1)  # of enough types for a sample to be the cheaper way
    for name, lines in [("many.txt", 300), ("few.txt", 50)]:
        write(name, "".join(" ".join(f"w{int(400 * draw.random() ** 3)}" for _ in range(10)) + "\n" for _ in range(lines)))
    call = ["--train", "many.txt", "--valid", "few.txt", "--epsilon"]

    def learnt(epsilon):
        out = train("s", *call, epsilon, "--epochs", 1).stdout
        assert (f"entries below {epsilon} sampled" in out) == (epsilon > 0), out
        return parameters("s")
    exact = learnt(0)
    assert learnt(0.1) != exact and options("s")["epsilon"] == 0.1
    run("train", "--model", "s", "--resume", "--epochs", 2)
    train("whole", *call, 0.1, "--epochs", 2)
    assert read("s") == read("whole")


with Folder():
    write("train.txt", sentences(600))
    write("long.txt", sentences(2500))
    write("valid.txt", sentences(100, seed=2))
    write("backwards.txt", "".join(" ".join(line.split()[::-1]) + "\n" for line in sentences(100, seed=2).splitlines()))
    targets()
    dropout()
    random_lengths()
    starts()
    vocabularies_and_parts()
    diagnostics()
    runaway()
    patience()
    sampling()
