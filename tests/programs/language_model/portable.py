"""With --portable a model has the same bytes for any number of threads, and what is done with it the same numbers; a training
stays in the mode it was begun in."""
import random

from program import Folder, read, run, train, write

random.seed(1)
WORDS = [f"w{int(3000 * random.random() ** 3)}" for _ in range(6000)]


def text(words):
    return "".join(" ".join(words[i:i + 9]) + "\n" for i in range(0, len(words), 9))


def trained(model, threads, *options):
    train(model, "--train", "train.txt", "--valid", "valid.txt", "--units", 64, "--batch", 20, "--epochs", 1, "--threads", threads, *options)
    return read(model)


with Folder():
    write("train.txt", text(WORDS))
    write("valid.txt", text(WORDS[:600]))
    for options in [[], ["--loss", "ce", "--adversarial", 0.05, "--epsilon", 0.01, "--update", "adam", "--rate", 0.01]]:
        assert trained("one", 1, "--portable", *options) == trained("two", 2, "--portable", *options), options
    before = read("two.train")
    run("train", "--model", "two", "--resume", "--epochs", 2)  # the mode is stored
    trained("plain", 1)
    error = run("train", "--model", "plain", "--resume", "--portable", status=1).stderr
    assert "begun with other options: --portable (true given, false stored)" in error, error
    error = run("train", "--model", "b", "--train", "train.txt", "--valid", "valid.txt", "--portable", "--precision", "bf16", status=1).stderr
    assert "--precision is bf16, expected fp32 with --portable" in error, error
    for call in [["evaluate", "--text", "valid.txt", "--json"], ["score", "--text", "valid.txt"],
                 ["evaluate", "--text", "valid.txt", "--cache", "--dynamic", "sgd", "--json"]]:
        one, two = (run(call[0], "--model", "one", "--portable", "--threads", n, *call[1:]).stdout for n in (1, 2))
        assert one == two, (call, one, two)
    error = run("evaluate", "--model", "one", "--text", "valid.txt", "--portable", "--precision", "int8", status=1).stderr
    assert "--precision is int8, expected fp32 with --portable" in error, error
    assert run("sample", "--model", "one", "--portable").stdout == run("sample", "--model", "one", "--portable").stdout
