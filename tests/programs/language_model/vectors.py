"""train --vectors and --freeze: a table that starts from a file, and one that stays."""
import os

from program import Folder, floats, read, run, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]
VECTORS = {"king": [1.5, -2, 0.25, 3, 0.5, 1], "queen": [1, 2, 3, 4, 5, 6], "the": [-0.125, 0, 0.5, 0, 0, 1], "zebra": [9] * 6}
FROZEN = ["--vectors", "v.txt", "--freeze", "--head", "free", "--loss", "ce"]


def text(vectors):
    return "".join(word + " " + " ".join(map(str, row)) + "\n" for word, row in vectors.items())


def table(model):
    """Word -> row of E, in the order of the vocabulary."""
    stored = tensors(model)[0]
    lines = stored["state/vocabulary"][2].decode().splitlines()
    words = [line.split("\t")[0] for line in lines[-stored["E"][1][0]:]]
    values, width = floats(stored["E"]), stored["E"][1][1]
    return {word: list(values[i * width:(i + 1) * width]) for i, word in enumerate(words)}


def starts_from_the_file():
    """At a rate of 0 the table is what it started as: the file's rows, and for other words those of a training without it."""
    for name, content in [("v.txt", text(VECTORS)), ("word2vec.txt", "4 6\n" + text(VECTORS))]:
        write(name, content)
        out = train("start", *TEXTS, "--vectors", name, "--rate", 0, "--epochs", 1).stdout
        # 600 lines of 9 tokens: 1800 "the", and the kings and queens of the grammar.
        royal = sum(read("train.txt").split().count(word) for word in [b"king", b"queen"])
        share = 100 * (1200 + 600 + royal) / 5400
        assert f"vectors     '{name}' has 3 of the 14 types, {share:.1f} % of the text; 11 start at random" in out, (share, out)
        E = table("start")
        assert {word: E[word] for word in ["king", "queen", "the"]} == {word: VECTORS[word] for word in ["king", "queen", "the"]}, E
        train("random", *TEXTS, "--embedding", 6, "--rate", 0, "--epochs", 1)
        random = table("random")
        assert all(E[word] == random[word] for word in E if word not in VECTORS) and len(E) == 14
    train("moved", *TEXTS, "--vectors", "v.txt")
    assert all(table("moved")[word] != VECTORS[word] for word in ["king", "queen", "the"])
    train("unit", *TEXTS, "--vectors", "v.txt", "--rate", 0, "--epochs", 1, "--unit-rows")
    norm = sum(x * x for x in VECTORS["king"]) ** 0.5
    assert all(abs(x - y / norm) < 1e-6 for x, y in zip(table("unit")["king"], VECTORS["king"]))
    # A preset says nothing against the file's width.
    out = train("preset", *TEXTS, "--vectors", "v.txt", "--preset", "small", "--units", 8, "--epochs", 1).stdout
    assert "vectors     'v.txt' has 3" in out and len(table("preset")["king"]) == 6


def stays():
    """Frozen, the table is the same to the bit after any training, and all else is trained."""
    train("start", *TEXTS, *FROZEN, "--rate", 0, "--epochs", 1)
    start, before = tensors("start")[0], table("start")
    for options in [[], ["--update", "adam", "--rate", 0.01], ["--update", "asgd", "--weight-decay", 0.01], ["--shards", 2],
                    ["--update", "ruop", "--rate", 0.003, "--damping", 0.1], ["--loss", "al"], ["--keep-weights", 0.7, "--tar", 1]]:
        out = train("m", *TEXTS, *FROZEN, *options).stdout
        assert "the word vectors stay as they start" in out, out
        found = tensors("m")[0]
        assert found["E"] == start["E"], options
        moved = [name for name in start if not name.startswith("state/") and name != "E" and found[name] != start[name]]
        assert len(moved) == sum(not name.startswith("state/") for name in start) - 1, (options, moved)
    assert before["king"] == VECTORS["king"]
    # So does one that is tied to the head, which then learns no more than its bias.
    for options in [["--loss", "al"], ["--loss", "ce", "--epsilon", 0.01], ["--loss", "al", "--update", "adam", "--rate", 0.01]]:
        train("m", *TEXTS, "--vectors", "v.txt", "--freeze", "--head-bias", *options)
        found = table("m")
        assert all(found[word] == VECTORS[word] for word in VECTORS if word in found), options
    # From a model: its table stays.
    train("free", *TEXTS, "--head", "free", "--loss", "ce")
    train("tuned", *TEXTS, "--start-from", "free", "--freeze")
    assert tensors("tuned")[0]["E"] == tensors("free")[0]["E"] and tensors("tuned")[0]["softmax.W"] != tensors("free")[0]["softmax.W"]


def resumed():
    """What is resumed stays frozen, needs the file no more, and ends with the bytes of a training in one piece."""
    train("once", *TEXTS, *FROZEN, "--epochs", 4)
    train("twice", *TEXTS, *FROZEN, "--epochs", 2)
    os.rename("v.txt", "gone.txt")
    out = run("train", "--model", "twice", "--resume", "--epochs", 4).stdout
    assert "the word vectors stay as they start" in out and read("once") == read("twice")
    error = run("train", "--model", "twice", "--resume", "--vectors", "gone.txt", status=1).stderr
    assert '--vectors ("gone.txt" given, "v.txt" stored)' in error, error
    os.rename("gone.txt", "v.txt")


def wrong():
    def refuses(*options, says):
        before = sorted(os.listdir("."))
        error = run("train", "--model", "new", *TEXTS, "--units", 8, *options, status=1).stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)
        assert sorted(set(os.listdir(".")) - {"new.lock"}) == before, os.listdir(".")

    write("none.txt", text({"zebra": [1, 2], "lion": [3, 4]}))
    write("broken.txt", "king 1 2 3\nqueen 1 2\n")
    refuses("--vectors", "v.txt", "--embedding", 8, says="its vectors have 6 numbers, but the table has the width 8; give --embedding 6")
    refuses("--vectors", "none.txt", says="none of the 14 types of the vocabulary is among its 2 words, the first of which is 'zebra'")
    refuses("--vectors", "broken.txt", says="broken.txt: line 2")
    refuses("--vectors", "absent.txt", says="absent.txt")
    refuses("--freeze", "--head", "free", says="--freeze is given without --vectors, --start or --start-from")
    refuses("--vectors", "v.txt", "--start-from", "free", says="--vectors has no effect with --start-from")
    refuses(*FROZEN, "--update", "ruop", "--table-rate", 0.1, says="--table-rate has no effect with --freeze")
    refuses(*FROZEN, "--loss", "al", "--target", "held", says="--target has no effect with --freeze")
    refuses("--vectors", "v.txt", "--log", "v.txt", says="--vectors reads; it was left unchanged")


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    starts_from_the_file()
    stays()
    resumed()
    wrong()
