"""train --subspace: the distance between the column spaces of word vectors and softmax, by epoch."""
import fcntl
import math
import os
import subprocess
import time

from program import PROGRAM, Folder, floats, number, read, rows, run, same_training, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt", "--head", "free"]


def matrix(tensor):
    values, (_, cols) = floats(tensor), tensor[1]
    return [values[i:i + cols] for i in range(0, len(values), cols)]


def basis(columns):
    """An orthonormal basis of some columns, by Gram and Schmidt, twice each."""
    found = []
    for column in columns:
        for _ in range(2):
            for b in found:
                product = sum(x * y for x, y in zip(column, b))
                column = [x - product * y for x, y in zip(column, b)]
        norm = math.sqrt(sum(x * x for x in column))
        found.append([x / norm for x in column])
    return found


def distance(path):
    """sqrt(1 - |U^T Q|^2 / r) of the table and the softmax in a file."""
    found = tensors(path)[0]
    U, Q = (basis(list(zip(*matrix(found[name])))) for name in ("E", "softmax.W"))
    squares = sum(sum(x * y for x, y in zip(u, q)) ** 2 for u in U for q in Q)
    return math.sqrt(1 - squares / min(len(U), len(Q)))


def of_an_epoch():
    """The log and the line of an epoch have the distance of the parameters as they are saved after it, also if widths differ."""
    for more in [[], ["--units", "8,5", "--embedding", 6]]:
        out = train("m", *TEXTS, *more, "--subspace", "--epochs", 1, "--log", "m.csv", "--overwrite").stdout
        by_hand = distance("m.train")
        assert abs(float(rows("m.csv")[-1]["subspace_distance"]) - by_hand) < 1e-5, (rows("m.csv"), by_hand)
        assert abs(number(r"  subspace distance ([\d.]+)\n", out) - by_hand) < 1e-4, out
        assert 0 < number(r"\nsubspace    averaged distance of word vectors and softmax ([\d.]+) at the start\n", out) <= 1, out
    # it falls where the augmented loss draws the softmax to the table
    train("drawn", *TEXTS, "--subspace", "--loss", "al", "--alpha", 50, "--keep", 1, "--epochs", 8, "--rate", 0.5, "--log", "drawn.csv")
    course = [float(row["subspace_distance"]) for row in rows("drawn.csv")]
    assert course[-1] < course[0] - 0.02, course


def only_read():
    """The training is what it is without; asked for when it is resumed, the log has it from then on."""
    train("without", *TEXTS, "--epochs", 4, "--log", "without.csv")
    train("with", *TEXTS, "--epochs", 2, "--log", "with.csv")
    assert rows("without.csv")[0]["subspace_distance"] == ""
    out = run("train", "--model", "with", "--resume", "--subspace", "--epochs", 4).stdout
    assert " as resumed\n" in out and out.count("  subspace distance ") == 2, out
    assert [row["subspace_distance"] != "" for row in rows("with.csv")] == [False, False, True, True]
    run("train", "--model", "with", "--resume", "--epochs", 5)  # goes on with it
    assert rows("with.csv")[4]["subspace_distance"] != ""
    run("train", "--model", "without", "--resume", "--epochs", 5)
    for name in ["with.csv", "without.csv"]:  # the rest of the log is the same
        table = [line.split(",")[:17] for line in read(name).decode().splitlines()]
        write(name, "".join(",".join(row) + "\n" for row in table))
    assert read("with") == read("without")
    # the options of the two files differ by --subspace alone; the rest is what same_training compares
    same_training("without", "with")


def in_turn():
    """A row that ends while another program replaces the log comes after what it puts there."""
    train("first", *TEXTS, "--epochs", 1, "--log", "turn.csv")
    with open("turn.csv", "r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([PROGRAM, "train", *TEXTS, "--units", "4", "--epochs", "1", "--threads", "1", "--model", "late", "--log", "turn.csv"],
                              stdout=subprocess.DEVNULL) as program:
            while not os.path.exists("late.lock"):  # there before the log is opened, which waits for the lock on it
                assert program.poll() is None
                time.sleep(0.01)
            time.sleep(1)
            assert program.poll() is None, "it did not wait"
            header, row = held.read().splitlines()
            write("new.csv", f"{header}\n{row}\n{row}0.5\n")
            os.replace("new.csv", "turn.csv")
            fcntl.flock(held, fcntl.LOCK_UN)
            assert program.wait(60) == 0
    assert [row["subspace_distance"] for row in rows("turn.csv")] == ["", "0.5", ""], rows("turn.csv")


def refused():
    for options in [["--head", "tied"], ["--preset", "small"]]:
        error = train("no", "--train", "train.txt", "--valid", "valid.txt", "--subspace", *options, status=1).stderr
        assert error.startswith("isogloss: --subspace needs --head free") and error.count("\n") == 1, error
    error = train("no", *TEXTS, "--subspace", "--units", 20, status=1).stderr  # 14 words span no space of 20 dimensions
    assert error.startswith("isogloss: principal angles: ") and "14" in error and "20" in error, error


with Folder():
    write("train.txt", sentences(300))
    write("valid.txt", sentences(50, seed=2))
    of_an_epoch()
    only_read()
    in_turn()
    refused()
