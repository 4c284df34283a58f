"""Trains on a small text: below the unigram model, a table row and a label per character, errors."""
import os
import sys

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


def refuses():
    assert "none.txt" in run("--text", "none.txt", status=1).stderr
    guards_outputs("--text", "text.txt", "--epochs", 1, inputs=["text.txt"], outputs=["--csv", "--svg"])
    assert "--seed is -1" in run("--text", "text.txt", "--seed", -1, status=1).stderr
    assert "order 41" in run("--text", "text.txt", "--before", 40, "--epochs", 1, status=1).stderr
    run("--text", "text.txt", "--width", 1, status=105)
    nowhere = run("--text", "text.txt", "--epochs", 1, "--csv", "kept.csv", status=1, environment={"PATH": "/nowhere"}).stderr
    assert "gnuplot-nox" in nowhere and os.path.exists("kept.csv"), nowhere


with Folder():
    learns()
    refuses()
