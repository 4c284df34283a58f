"""train --start: networks that begin as a linear dynamical system. LDS_TEXT in the environment names that program."""
import os
import shlex
import subprocess

from program import Folder, floats, number, read, run, sentences, tensors, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt", "--batch", 4, "--bptt", 10, "--threads", 1]


def lds_text(*arguments):
    done = subprocess.run([os.environ["LDS_TEXT"], *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def parameters(model):
    return {name: t for name, t in tensors(model)[0].items() if not name.startswith("state/")}


def begins_as_two_calls_do():
    """In one call as by `lds_text start` and --start-from, for every cell: what the system does not set is as it is drawn."""
    for cell in ["rnn", "lstm", "gru", "rhn", "qrnn"]:
        said = lds_text("start", "--model", "system", "--cell", cell, "--out", "begun")
        how = [*TEXTS, "--rate", 0.1, "--epochs", 1]
        out = run("train", "--model", "one", *how, "--start", "system", "--cell", cell, "--overwrite").stdout
        assert "parameters to start with: 'system'" in out and f"1 x 4 {cell}, free head, loss ce" in out, out
        program, *printed = shlex.split(said.split(": ", 1)[1])
        assert program == "language_model" and ("--rate" in printed) == (cell == "rnn"), said
        run(*printed, *how, "--model", "two", "--overwrite")
        one, two = parameters("one"), parameters("two")
        assert one.keys() == two.keys() and one["E"] == two["E"] and one["softmax.W"] == two["softmax.W"], cell
        assert all(one[name] == two[name] for name in one), cell


def knows_the_text():
    """At a rate of 0 an rnn is the system: below the perplexity of the words' frequencies. A random one is not."""
    found = {}
    for name, start in [("system", ["--start", "system"]), ("random", ["--units", 4, "--layers", 1, "--head", "free", "--loss", "ce"])]:
        out = run("train", "--model", name + ".net", *TEXTS, "--cell", "rnn", "--rate", 0, "--epochs", 1, *start).stdout
        found[name] = number(r"perplexity ([0-9.]+) \(", out)
        unigram = number(r"unigram +validation perplexity ([0-9.]+)", out)
    assert found["system"] < 0.9 * unigram < unigram < found["random"], (found, unigram)
    # the states enter as they are
    assert floats(parameters("system.net")["rnn1.W"]) == tuple(float(i == j) for i in range(4) for j in range(4))


def rate_of(*options):
    out = run("train", "--model", "rate", *TEXTS, "--epochs", 1, "--overwrite", *options).stdout
    return number(r"training +\w+, rate ([0-9.]+),", out), number(r"\nepoch 1  train [0-9.]+  valid ([0-9.]+)", out)


def has_its_own_rate():
    """The default rate leaves an rnn that begins as a system better than it began; other cells and updates have theirs, and the stored one stays."""
    began = number(r"perplexity ([0-9.]+) \(", run("evaluate", "--model", "system.net", "--text", "valid.txt", "--columns", 4).stdout)
    rate, found = rate_of("--start", "system", "--cell", "rnn")
    assert rate == 0.1 and found < began, (rate, found, began)
    assert rate_of("--start", "system", "--cell", "rnn", "--rate", 0.5)[0] == 0.5
    assert rate_of("--start", "system", "--cell", "rnn", "--update", "adam")[0] == 0.001
    assert rate_of("--start", "system", "--cell", "lstm")[0] == 1 and rate_of("--cell", "rnn", "--units", 4)[0] == 1
    for options, rate in (([], 0.1), (["--rate", 1], 1)):
        run("train", "--model", "rate", *TEXTS, "--epochs", 1, "--overwrite", "--start", "system", "--cell", "rnn", *options)
        assert number(r"training +\w+, rate ([0-9.]+),", run("train", "--model", "rate", "--resume", "--epochs", 2).stdout) == rate


def reads_networks_of_lds_text():
    """The best network of `lds_text rnn` is a model: of the perplexity that was printed there, to sample from, to begin with."""
    for start in (["--model", "system"], ["--units", 6, "--init", 0.2]):
        said = lds_text("rnn", *start, *TEXTS, "--epochs", 2, "--save", "net", "--overwrite")
        best = number(r"best validation ([0-9.]+) in", said)
        out = run("evaluate", "--model", "net", "--text", "valid.txt", "--columns", 4).stdout
        assert abs(number(r"perplexity ([0-9.]+) \(", out) - best) < 0.006, (out, said)
    assert run("sample", "--model", "net", "--words", 20).stdout.count(" ") > 10
    assert len(run("score", "--model", "net", "--text", "-", text="the cat sees the dog\n").stdout.split("\t")) == 5
    out = run("train", "--model", "after", *TEXTS, "--start-from", "net", "--rate", 0, "--epochs", 1).stdout
    assert "1 x 6 rnn, free head, loss ce" in out and abs(number(r"perplexity ([0-9.]+) \(", out) - best) < 0.006, (out, best)
    assert parameters("after") == parameters("net")


def goes_on():
    """Stopped after an epoch and resumed without the system: the bytes of a training in one piece."""
    how = [*TEXTS, "--cell", "rnn", "--rate", 0.1, "--keep", 0.8]
    run("train", "--model", "whole", *how, "--start", "system", "--epochs", 3)
    run("train", "--model", "cut", *how, "--start", "system", "--epochs", 1)
    os.rename("system", "elsewhere")
    run("train", "--model", "cut", "--resume", "--epochs", 3)
    assert read("cut") == read("whole")
    error = run("train", "--model", "cut", "--resume", "--start", "elsewhere", status=1).stderr
    assert '--start ("elsewhere" given, "system" stored)' in error, error
    os.rename("elsewhere", "system")
    # its words can stay while all else is trained
    run("train", "--model", "frozen", *how, "--start", "system", "--epochs", 1, "--freeze")
    start = parameters("system.net")
    assert parameters("frozen")["E"] == start["E"] and parameters("frozen")["softmax.W"] != start["softmax.W"]


def wrong():
    def refuses(*options, says):
        before = sorted(os.listdir("."))
        error = run("train", "--model", "new", *TEXTS, "--start", "system", *options, status=1).stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)
        assert sorted(set(os.listdir(".")) - {"new.lock"}) == before, os.listdir(".")

    refuses("--head", "tied", says="--start: 'system' is another kind of model: --head (\"tied\" given, \"free\" stored). Leave these")
    refuses("--units", 8, says="--units (8 given, 4 stored)")
    refuses("--layers", 2, says="--layers (2 given, 1 stored)")
    refuses("--level", "character", says="--level (\"character\" given")
    refuses("--vectors", "vectors", says="--vectors has no effect with --start, whose word vectors they are")
    refuses("--vocabulary", "train.txt", says="--vocabulary has no effect with --start, whose vocabulary it is")
    refuses("--cell", "rnn", "--init", 0.2, says="--init has no effect with --start and --cell rnn, all of which is the system's")
    refuses("--start-from", "begun", says="--start-from has no effect with --start")
    for file, found in [("begun", "begun: holds no tensor"), ("train.txt", "train.txt: "), ("absent", "cannot open 'absent'")]:
        refuses("--start", file, says=f"--start: {found}")
        refuses("--start", file, says="Expected the file that `lds_text fit` writes as its --model; a model of this program is for --start-from")
    refuses("--log", "system", says="--start reads; it was left unchanged")


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    write("vectors", "the 1 2 3 4\n")
    lds_text("fit", "--train", "train.txt", "--model", "system", "--states", 4, "--ssid-lags", 2, "--em-lags", 3, "--iterations", 5,
             "--threads", 1)
    begins_as_two_calls_do()
    knows_the_text()
    has_its_own_rate()
    reads_networks_of_lds_text()
    goes_on()
    wrong()
