"""Training: every kind of model, what is printed, what is written."""
import json
import math
import os

from program import Folder, floats, number, rows, run, sentences, tensors, train, write

MODELS = [
    ["--cell", "rnn", "--head", "free", "--loss", "ce", "--adversarial", 0.05],
    ["--cell", "lstm", "--head-bias", "--embedding", 6],
    ["--cell", "lstm", "--head", "free", "--loss", "al", "--alpha", 5],
    ["--cell", "gru", "--embedding", 6, "--loss", "al", "--target", "held"],
    ["--cell", "rhn", "--depth", 2, "--scheme", "recurrent", "--layers", 1, "--loss", "ce"],
    ["--cell", "lstm", "--scheme", "gal", "--keep-words", 0.9, "--loss", "mixture", "--beta", 0.001, "--adversarial", 0.05],
    ["--update", "adam", "--rate", 0.01, "--schedule", "plateau", "--random-bptt"],
    ["--schedule", "one-cycle", "--warm-up", 0.3, "--keep-weights", 0.5, "--units", "12,9,6", "--scheme",
     "recurrent", "--keep-between", 0.9, "--ar", 0.1, "--tar", 0.1],
    ["--cell", "rhn", "--depth", 2, "--layers", 1, "--keep-weights", 0.5],
    ["--cell", "gru", "--keep-weights", 0.5, "--loss", "ce", "--ar", 1],
    ["--cell", "qrnn", "--keep-weights", 0.5, "--scheme", "recurrent", "--units", "12,9,6", "--update", "muon", "--rate", 0.02],
    ["--cell", "qrnn", "--scheme", "gal", "--update", "ruop", "--rate", 0.003, "--embedding", 1],
    ["--update", "asgd", "--weight-decay", 1e-6, "--decay-from", 1, "--decay", 0.5],
    ["--update", "ruop", "--rate", 0.003, "--head", "free", "--loss", "ce"],
    ["--update", "rbpm", "--damping", 0.1, "--floor", 1e-4, "--head-rate", 0.02, "--head", "free", "--cell", "gru"],
    ["--cell", "glnn", "--edges", 5, "--loss", "al", "--update", "adam", "--rate", 0.01],
    ["--cell", "gnn", "--scheme", "gal", "--head", "free", "--update", "ruop", "--rate", 0.01],
    ["--cell", "glnn", "--update", "rbpm", "--rate", 0.003, "--loss", "al", "--head-bias"],
    ["--update", "ruop", "--rate", 0.003, "--embedding", 6],
    ["--cell", "leaky", "--scheme", "recurrent", "--edges", 8, "--bound", 0, "--embedding", 6, "--update", "muon", "--rate", 0.02],
    ["--cell", "lstm", "--update", "muon", "--rate", 0.02, "--table-rate", 0.02],
    ["--cell", "gru", "--freeze", "--update", "muon", "--rate", 0.02, "--start-from", "gru"],
    ["--cell", "lstm", "--rounds", 5, "--rank", 3, "--embedding", 6, "--update", "muon", "--rate", 0.02],
    ["--cell", "gru", "--rounds", 2, "--scheme", "gal", "--update", "rbpm", "--rate", 0.003, "--loss", "ce"],
    ["--level", "character", "--max-vocabulary", 20, "--unit-rows"],
]


def learns():
    """A model without dropout finds the grammar: far below the unigram model, near the entropy of the grammar."""
    out = train("m", "--train", "train.txt", "--valid", "valid.txt", "--test", "valid.txt", "--log", "log.csv",
                "--units", 32, "--keep", 1, "--epochs", 4, "--loss", "ce").stdout
    unigram = number(r"unigram +validation perplexity ([\d.]+)", out)
    valid = number(r"\nvalidation valid.txt\n +perplexity ([\d.]+)", out)
    entropy = (2 * math.log(4) + 2 * math.log(3)) / 9  # nats a token, line ends included
    assert math.exp(entropy) - 0.01 < valid < 1.15 * math.exp(entropy) < unigram / 3, (valid, math.exp(entropy), unigram)
    for line in ["train       train.txt: 5,400 tokens, 600 of them line ends, 0 <unk> (0.0 %), checksum ",
                 "validation  valid.txt: 900 tokens", "test        valid.txt: 900 tokens", "vocabulary  14 types (words, min-count 1)",
                 "exp of the mean -log p, logarithm to base e, over 900 tokens, 0 <unk> and 100 line ends among them",
                 "in 4 columns, a line end fed first, state carried; corpus ", "\ntest valid.txt\n"]:
        assert line in out, (line, out)

    log = rows("log.csv")
    assert [row["epoch"] for row in log] == ["1", "2", "3", "4"]
    assert [row["rate"] for row in log] == ["1"] * 4
    assert all(row["valid_tokens"] == "900" and row["train_tokens"] == "5396" for row in log), log
    assert abs(min(float(row["valid_perplexity"]) for row in log) - valid) < 0.006

    # A second training is added to the log under a name of its own.
    train("m2", "--train", "train.txt", "--valid", "valid.txt", "--log", "log.csv", "--epochs", 1)
    log = rows("log.csv")
    assert [row["epoch"] for row in log] == ["1", "2", "3", "4", "1"] and log[4]["run"] != log[3]["run"]


def every_kind():
    train("gru", "--train", "train.txt", "--valid", "valid.txt", "--cell", "gru", "--rate", 0.3)
    for options in MODELS:
        out = train("m", "--train", "train.txt", "--valid", "valid.txt", "--rate", 0.3, "--keep", 0.9, *options).stdout
        # A model that stands still has the perplexity of its 14 words, one that knows their frequencies 9.3.
        assert number(r"\nvalidation valid.txt\n +perplexity ([\d.]+)", out) < 10, (options, out)
        assert os.path.exists("m") and os.path.exists("m.train")
        parameters = {name for name in tensors("m")[0] if not name.startswith("state/")}
        assert "E" in parameters and ("softmax.W" in parameters) == ("free" in options), (options, parameters)
        assert ("softmax.b" in parameters) == ("free" in options or "--head-bias" in options), (options, parameters)
        run("evaluate", "--model", "m", "--text", "valid.txt")
    E = tensors("m")[0]["E"]  # of the last kind: rows of norm 1
    values = floats(E)
    for i in range(E[1][0]):
        assert abs(sum(x * x for x in values[8 * i:8 * i + 8]) - 1) < 1e-5, i


def shuffled():
    """Partial shuffling trains on the same tokens in another order: another model, of as many tokens, that is as good."""
    texts = ["--train", "train.txt", "--valid", "valid.txt", "--units", 16, "--keep", 1, "--loss", "ce", "--epochs", 2]
    train("still", *texts, "--log", "still.csv")
    out = train("turned", *texts, "--log", "turned.csv", "--shuffle", "partial").stdout
    assert ", partially shuffled\n" in out, out
    still, turned = rows("still.csv"), rows("turned.csv")
    assert [row["train_tokens"] for row in turned] == ["5396"] * 2
    for a, b in zip(still, turned, strict=True):
        a, b = float(a["train_perplexity"]), float(b["train_perplexity"])
        assert a != b and abs(a / b - 1) < 0.2, (a, b)
    train("other", *texts, "--shuffle", "partial", "--seed", 2)
    assert tensors("other")[0]["E"] != tensors("turned")[0]["E"]


def presets():
    """A preset is the paper's table; what stands on the command line wins over it; corpora lie under ISOGLOSS_DATA."""
    os.makedirs("data/wikitext-2")
    for part in ["train", "valid", "test"]:
        write(f"data/wikitext-2/{part}.txt", sentences(60))
    small = ["train", "--model", "p", "--preset", "small", "--corpus", "wikitext-2", "--units", 9, "--batch", 2, "--epochs", 1]
    run(*small, environment={"ISOGLOSS_DATA": "data"})
    options = tensors("p")[1]["language_model"]
    for expected in ['"units":9', '"embedding":9', '"keep":0.8', '"gamma":1.25', '"clip":5.0', '"decay-from":5', '"init":0.1',
                     '"batch":2', '"bptt":35', '"head":"tied"', '"loss":"al"']:
        assert expected in options, (expected, options)
    for expected in ['"epochs":1,', '"patience":10,', '"target":"differentiated"', '"epsilon":0.00390625']:
        assert expected in tensors("p.train")[1]["language_model"], expected
    os.makedirs("texts/ptb")
    for part in ["train", "valid", "test"]:
        write(f"texts/ptb/ptb.{part}.txt", sentences(60))
    fast = ["--preset", "fast", "--units", 6, "--embedding", 6, "--epochs", 1, "--batch", 2]
    run("train", "--model", "f", "--corpus", "ptb", *fast, environment={"ISOGLOSS_DATA": "texts"})
    options = tensors("f")[1]["language_model"]
    for expected in ['"keep":0.75', '"keep-input":0.85', '"keep-between":0.9', '"scheme":"recurrent"', '"loss":"ce"', '"ar":2.0', '"tar":1.0',
                     '"weight-decay":0.0002', '"schedule":"one-cycle"']:
        assert expected in options, (expected, options)
    wide = ["--preset", "wide", "--units", "12,6", "--epochs", 1, "--batch", 2]
    run("train", "--model", "v", "--corpus", "wikitext-2", *wide, environment={"ISOGLOSS_DATA": "data"})
    options = tensors("v")[1]["language_model"]
    for expected in ['"units":[12,6]', '"layers":2', '"embedding":6', '"keep-weights":1.0', '"keep-state":0.65', '"keep-input":0.6', '"tar":1.0',
                     '"update":"sgd"', '"schedule":"one-cycle"', '"weight-decay":0.00015', '"clip":5.0', '"bptt":35']:
        assert expected in options, (expected, options)
    # One width for all is stored as one number, however it was said.
    train("even", "--train", "train.txt", "--valid", "valid.txt", "--units", "8,8,8", "--epochs", 1)
    assert '"units":8' in tensors("even")[1]["language_model"] and '"layers":3' in tensors("even")[1]["language_model"]
    # The weights of a loss in a model to start from are not those of the preset.
    for number, loss in enumerate([["--alpha", 5], ["--loss", "mixture", "--beta", 0.5]]):
        train(f"begun{number}", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1, "--head-bias", "--adversarial", 0.1, *loss)
        assert '"adversarial":0.1' in tensors(f"begun{number}")[1]["language_model"]
        train("on", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1, "--start-from", f"begun{number}", "--preset", "small")
        assert '"alpha":null' in tensors("on")[1]["language_model"] and '"beta":null' in tensors("on")[1]["language_model"]
        assert '"adversarial":0.0' in tensors("on")[1]["language_model"] and '"gamma":0.65' in tensors("on")[1]["language_model"] and '"loss":"al"' in tensors("on")[1]["language_model"]
    missing = run("train", "--model", "q", "--preset", "small", status=1, environment={"ISOGLOSS_DATA": "data"}).stderr
    assert "data/ptb/ptb.train.txt' does not exist" in missing and "ISOGLOSS_DATA" in missing, missing
    # The rate of a preset is for sgd, and its masks for its scheme.
    run(*small, "--update", "adam", "--overwrite", environment={"ISOGLOSS_DATA": "data"})
    assert '"rate":0.001' in tensors("p")[1]["language_model"]
    run("train", "--model", "f", "--corpus", "ptb", *fast, "--scheme", "gal", "--overwrite", environment={"ISOGLOSS_DATA": "texts"})
    assert '"scheme":"gal"' in tensors("f")[1]["language_model"] and '"keep-input":null' in tensors("f")[1]["language_model"]


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    learns()
    every_kind()
    shuffled()
    presets()
