"""--json and standard input: one object a line and nothing else, with the numbers that people see."""
import json
import re

from program import Folder, number, read, run, sentences, train, write

V = ["--model", "m", "--text", "valid.txt", "--threads", 1]


def objects(*arguments, text=None):
    """The objects of an output, which has nothing besides; stderr is empty."""
    done = run(*arguments, "--json", text=text)
    assert done.stderr == "" and done.stdout.endswith("\n"), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def evaluates():
    for options in [[], ["--columns", 4], ["--cache", "--cache-window", 50], ["--dynamic", "rms", "--dynamic-text", "valid.txt"],
                    ["--cache", "--dynamic", "sgd"], ["--softmax-temperature", 1.2]]:
        (found,) = objects("evaluate", *V, *options)
        out = run("evaluate", *V, *options).stdout
        printed = re.search(r"\nperplexity ([\d.]+) \(([\d.]+) nats, ([\d.]+) bits a token\)", out).groups()
        assert printed == (f"{found['perplexity']:.2f}", f"{found['nats_per_token']:.4f}", f"{found['bits_per_token']:.4f}"), (found, out)
        text = found["text"]
        assert (text["name"], text["tokens"], text["line_ends"], text["unknowns"]) == ("valid.txt", 900, 100, 0), found
        assert f"checksum {text['checksum']}" in out and f"vocabulary {found['vocabulary_checksum']}" in out and found["tokens"] == 900
        assert found["columns"] == (4 if "--columns" in options else 1) and f"{found['unigram_perplexity']:.2f}" in out
        assert ("perplexity_without_cache" in found) == ("cache" in found) == ("--cache" in options), found
        if "--cache" in options:
            assert number(r"without it perplexity ([\d.]+)", out) == round(found["perplexity_without_cache"], 2)
        assert ("dynamic" in found) == ("--dynamic" in options) and "bits_per_character" not in found
    (found,) = objects("evaluate", "--model", "c", "--text", "valid.txt")
    assert f"{found['bits_per_character']:.4f} bits a character" in run("evaluate", "--model", "c", "--text", "valid.txt").stdout
    # From a pipe the same, but for the name.
    content = read("valid.txt").decode()
    for options in [[], ["--cache"], ["--softmax-temperature", 1.2]]:
        (found,) = objects("evaluate", "--model", "m", "--text", "-", *options, text=content)
        (file,) = objects("evaluate", *V, *options)
        assert found["text"].pop("name") == "standard input" and file["text"].pop("name") == "valid.txt" and found == file
    assert "text        standard input: 900 tokens" in run("evaluate", "--model", "m", "--text", "-", text=content).stdout
    assert "standard input: the text is empty" in run("evaluate", "--model", "m", "--text", "-", text="", status=1).stderr
    assert "standard input:2: byte" in run("evaluate", "--model", "m", "--text", "-", text="a\n\0\n", status=1).stderr


def tunes():
    grid = ["--cache-window", 50, "--cache-flatness", 0, 0.5, "--cache-weight", 0, 0.1]
    (found,) = objects("tune", *V, *grid)
    assert [(trial["flatness"], trial["weight"]) for trial in found["trials"]] == [(0, 0), (0, 0.1), (0.5, 0), (0.5, 0.1)], found
    best = min(found["trials"], key=lambda trial: trial["perplexity"])
    assert found["best"]["perplexity"] == best["perplexity"] and found["text"]["tokens"] == 900
    (again,) = objects("evaluate", *V, *found["best"]["options"].split())
    assert abs(again["perplexity"] - best["perplexity"]) < 1e-9, (again, found)
    out = run("tune", *V, *grid).stdout
    assert f"best        {found['best']['options']}: perplexity {best['perplexity']:.2f}\n" in out, out
    (found,) = objects("tune", *V, "--dynamic", "sgd", "--dynamic-rate", 0, 0.2, "--dynamic-decay", 0.01)
    assert [trial["rate"] for trial in found["trials"]] == [0, 0.2] and found["best"]["options"].startswith("--dynamic sgd"), found
    content = read("valid.txt").decode()
    (piped,) = objects("tune", "--model", "m", "--text", "-", "--dynamic", "sgd", "--dynamic-rate", 0, 0.2, "--dynamic-decay", 0.01, text=content)
    assert piped["trials"] == found["trials"]


def scores():
    lines = ["the king sees the queen in the garden", "", "a \"zebra\" \\", "käse\tüber"]
    text = "\n".join(lines)
    found = objects("score", "--model", "m", text=text)
    table = [line.split("\t", 4) for line in run("score", "--model", "m", text=text).stdout.splitlines()]
    assert [one["text"] for one in found] == lines, found
    for one, row in zip(found, table, strict=True):
        assert row == [f"{one['log_probability']:.4f}", f"{one['mean']:.4f}", str(one["tokens"]), str(one["unknowns"]), one["text"]], (one, row)
    best = objects("score", "--model", "m", "--sort", "total", text=text)
    assert [one["log_probability"] for one in best] == sorted((one["log_probability"] for one in found), reverse=True)


def lists():
    found = objects("neighbours", "--model", "m", "--word", "king", "--word", "wood", "--k", 3)
    out = run("neighbours", "--model", "m", "--word", "king", "--word", "wood", "--k", 3).stdout
    again = "".join(one["word"] + "\n" + "".join(f"  {n['similarity']:.4f}  {n['word']}\n" for n in one["neighbours"]) for one in found)
    assert again == out, (found, out)
    assert run("neighbours", "--model", "m", "--export", "vectors.txt", "--json").stdout == ""
    (found,) = objects("complete", "--model", "m", "--text", "the zebra", "--k", 2)
    assert found["text"] == "the zebra" and found["unknowns"] == 1 and len(found["next"]) == 2, found


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    train("m", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1)
    train("c", "--train", "train.txt", "--valid", "valid.txt", "--level", "character", "--epochs", 1)
    evaluates()
    tunes()
    scores()
    lists()
