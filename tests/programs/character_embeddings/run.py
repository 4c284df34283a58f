"""Trains on a small text: below the unigram model, a table row and a label per character, errors."""
import html
import os
import re
import sys
import xml.dom.minidom

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "language_model"))

from program import Folder, guards_outputs, number, read, rows, run, sentences, write  # noqa: E402


def learns():
    write("text.txt", sentences(400))
    out = run("--text", "text.txt", "--before", 3, "--width", 4, "--epochs", 20, "--batch", 64).stdout
    unigram, bigram = number(r"1-gram, Witten-Bell +([\d.]+)", out), number(r"2-gram, Witten-Bell +([\d.]+)", out)
    ours = number(r"embeddings of 3 characters +([\d.]+)", out)
    assert 1 < ours < bigram < unigram, out
    characters = set(sentences(400))
    assert f"{len(characters)} of them different" in out, out
    table = rows("character_embeddings.csv")
    assert len(table) == len(characters) and {r["character"] for r in table} >= set("acd"), table
    assert sum(int(r["count"]) for r in table) == len(sentences(400))
    svg = read("character_embeddings.svg").decode()
    assert svg.startswith("<?xml") and svg.rstrip().endswith("</svg>") and ">g<" in svg.replace(" ", ""), svg[:200]
    again = run("--text", "text.txt", "--before", 3, "--width", 4, "--epochs", 20, "--batch", 64, "--svg", "").stdout
    assert f"embeddings of 3 characters  {ours:7.3f}" in again, (ours, again)  # the same seed, the same model


def labels():
    """Every character of ASCII is in the picture as it is, except those that have no shape of their own."""
    characters = "".join(map(chr, range(33, 127)))
    write("ascii.txt", (characters + " \f\x1b\n") * 20)
    run("--text", "ascii.txt", "--before", 1, "--epochs", 1, "--batch", 16, "--csv", "ascii.csv", "--svg", "ascii.svg")
    found = [html.unescape(re.sub("<[^>]*>", "", t)) for t in re.findall("<text>(.*?)</text>", read("ascii.svg").decode())]
    shown = {'"': "''", ",": "\u201a"}
    missing = [c for c in [*characters, "\u21b5", "\u2423", "\\x0C", "\\x1B"] if shown.get(c, c) not in found]
    assert not missing, (missing, found)
    assert {r["character"] for r in rows("ascii.csv")} == set(characters) | {" ", "\\x0A", "\\x0C", "\\x1B"}
    xml.dom.minidom.parse("ascii.svg")


def refuses_before_training():
    """What would fail at the end of a training, or train nothing, is refused before the first epoch."""
    def refused(*options, says):
        done = run("--text", "text.txt", "--csv", "e.csv", "--svg", "", *options, status=1)
        assert says in done.stderr and done.stderr.count("\n") == 1 and "epoch" not in done.stdout, done
        assert not os.path.exists("e.csv")

    types = len(set(sentences(400)))
    refused("--width", types + 1, says=f"found {types} different characters, expected at least --width {types + 1}")
    refused("--before", 40, says="found --before = 40, but (41)-grams")
    most = next(n for n in range(2, 64) if (types + 1) ** (n + 1) > 1.8e19)  # the longest n-grams with numbers of 64 bits
    run("--text", "text.txt", "--epochs", 1, "--csv", "", "--svg", "", "--before", most - 1)
    refused("--before", most, says=f"found --before = {most}, but ({most + 1})-grams")
    for number in (0, 2**63 - 1):
        refused("--before", number, says=f"--before = {number}, expected 1 to 1000")
    refused("--batch", 0, says="--batch = 0, expected at least 1")
    size = len(sentences(400))
    refused("--batch", size, says=f"found {size * 9 // 10} characters for training")
    run("--text", "text.txt", "--epochs", 1, "--csv", "", "--svg", "", "--batch", size * 9 // 10, "--width", types)


def diverges():
    """A training that diverges is an error, and leaves no table."""
    away = run("--text", "text.txt", "--epochs", 2, "--rate", 1e6, "--csv", "away.csv", "--svg", "", status=1)
    assert "diverged in epoch 1; lower --rate" in away.stderr and "inf" not in away.stdout and not os.path.exists("away.csv"), away


def refuses():
    assert "none.txt" in run("--text", "none.txt", status=1).stderr
    os.mkfifo("pipe")
    assert "'pipe' is not a regular file, but its text is read twice; write it to a file" in run("--text", "pipe", status=1).stderr
    assert "cannot read '.': Is a directory" in run("--text", ".", status=1).stderr
    guards_outputs("--text", "text.txt", "--epochs", 1, inputs=["text.txt"], outputs=["--csv", "--svg"])
    assert "--seed is -1" in run("--text", "text.txt", "--seed", -1, status=1).stderr
    run("--text", "text.txt", "--width", 1, status=105)
    nowhere = run("--text", "text.txt", "--epochs", 1, "--csv", "kept.csv", status=1, environment={"PATH": "/nowhere"}).stderr
    assert "gnuplot-nox" in nowhere and os.path.exists("kept.csv"), nowhere


with Folder():
    learns()
    labels()
    refuses_before_training()
    diverges()
    refuses()
