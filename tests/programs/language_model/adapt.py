"""evaluate and tune with a cache and with dynamic evaluation: models that follow the text they predict."""
import json
import re

from program import Folder, number, read, run, sentences, train, write

CACHE = ["--cache", "--cache-window", 50, "--cache-flatness", 0.5, "--cache-weight", 0.2]


def evaluate(*options, text="valid.txt", model="m"):
    return run("evaluate", "--model", model, "--text", text, "--threads", 1, *options).stdout


def perplexity(out):
    return number(r"\nperplexity ([\d.]+) \(", out)


def cache():
    plain, out = evaluate(), evaluate(*CACHE)
    assert "cache       window 50, flatness 0.5, weight 0.2" in out and "in 1 column, a line end fed first" in out, out
    assert number(r"with the cache; without it perplexity ([\d.]+)", out) == perplexity(plain), (plain, out)
    assert perplexity(out) != perplexity(plain)
    assert perplexity(evaluate("--cache", "--cache-weight", 0)) == perplexity(plain)
    assert evaluate("--cache", "--cache-window", 10**15) == evaluate("--cache", "--cache-window", 10**4)  # longer than the text
    # A text of one line again and again: what stands in the cache is what comes.
    write("again.txt", "the dog greets the queen in the wood\n" * 60)
    sharp = evaluate("--cache", "--cache-flatness", 2, "--cache-weight", 0.5, text="again.txt")
    assert perplexity(sharp) < perplexity(evaluate(text="again.txt")) - 0.2
    assert "bits a character" in evaluate(*CACHE, model="c")
    assert "probability 0" in run("evaluate", "--model", "m", "--text", "valid.txt", "--cache", "--cache-weight", 1, status=1).stderr


def dynamic():
    plain = evaluate()
    for rule in [["sgd"], ["rms", "--dynamic-text", "train.txt"], ["riemannian", "--dynamic-text", "train.txt"]]:
        still = evaluate("--dynamic", *rule, "--dynamic-rate", 0, *(["--dynamic-table-rate", 0] if rule[0] == "riemannian" else []))
        assert plain.split("\nperplexity")[1] == still.split("\nperplexity")[1], (plain, still)
        out = evaluate("--dynamic", *rule, text="again.txt")
        # Of a model this small the default of rms moves no printed digit; without the tables only the metric of the units acts.
        alone = {"sgd": [], "rms": ["--dynamic-rate", 1e-3], "riemannian": ["--dynamic-rate", 1e-5, "--dynamic-table-rate", 0]}[rule[0]]
        assert perplexity(evaluate("--dynamic", *rule, *alone, text="again.txt")) < perplexity(evaluate(text="again.txt")), rule
        assert f"dynamic     {rule[0]}, rate " in out and "segments of 5 steps" in out, out
        assert ("statistics  of the gradients of 11 batches of 100 columns by 5 steps; train.txt" in out) == (rule[0] != "sgd"), out
    moving = ["--dynamic", "sgd", "--dynamic-rate", 0.5, "--dynamic-decay", 0, "--dynamic-steps", 40]
    again = evaluate(*moving, text="again.txt")
    assert "rate 0.5, decay 0, segments of 40 steps" in again, again
    assert perplexity(again) < perplexity(evaluate(text="again.txt")) - 0.2
    both = evaluate(*moving, "--cache", "--cache-flatness", 2, "--cache-weight", 0.5, text="again.txt")
    assert number(r"without it perplexity ([\d.]+)", both) == perplexity(again) > perplexity(both)


def tune():
    out = run("tune", "--model", "m", "--text", "valid.txt", "--cache-window", 50, "--cache-flatness", 0, 0.5, "--cache-weight", 0, 0.1, 0.2).stdout
    rows = [[float(x) for x in line.split()] for line in out.splitlines() if re.match(r" +[\d.]+ ", line)]
    assert [row[0] for row in rows] == [0, 0.5] and len(rows[0]) == 4, out
    assert f"{rows[1][3]:.2f}" == f"{perplexity(evaluate(*CACHE)):.2f}" and rows[0][1] == perplexity(evaluate())
    best = re.search(r"best        (--cache .*): perplexity ([\d.]+)\n", out)
    assert float(best.group(2)) == min(x for row in rows for x in row[1:]) == perplexity(evaluate(*best.group(1).split()))
    # Several windows: each as if it were alone.
    grid = ["--cache-flatness", 0, 0.5, "--cache-weight", 0.1, 0.2]
    alone = {w: run("tune", "--model", "m", "--text", "valid.txt", "--cache-window", w, *grid, "--json").stdout for w in (3, 50, 80)}
    alone = {w: json.loads(out.splitlines()[-1]) for w, out in alone.items()}
    found = json.loads(run("tune", "--model", "m", "--text", "valid.txt", "--cache-window", 3, 50, 80, *grid, "--json").stdout.splitlines()[-1])
    assert found["trials"] == [trial for one in alone.values() for trial in one["trials"]], found
    best = min((one["best"] for one in alone.values()), key=lambda b: b["perplexity"])
    assert found["best"] == best, (found, alone)
    edge = {e["option"]: e for e in found["edge"]}.get("--cache-window")
    window = int(re.search(r"--cache-window (\d+)", best["options"]).group(1))
    assert (edge and edge["value"]) == {3: 3, 50: None, 80: 80}[window] and all(x == int(x) for x in (edge or {"try": []})["try"]), found
    # The window is the one asked for, though this text is shorter: the next may not be.
    for window, asked in [(5000, ["--cache-window", 5000]), (2000, [])]:
        out = run("tune", "--model", "m", "--text", "valid.txt", *asked, "--cache-flatness", 0.5, "--cache-weight", 0.2).stdout
        assert f"--cache-window {window} --cache-flatness 0.5" in out, out
    out = run("tune", "--model", "m", "--text", "again.txt", "--dynamic", "sgd", "--dynamic-rate", 0, 0.2, "--dynamic-decay", 0.01, 0).stdout
    best = re.search(r"best        (--dynamic .*): perplexity ([\d.]+)\n", out)
    assert "--dynamic-rate 0.2 --dynamic-decay" in best.group(1), out
    assert float(best.group(2)) == perplexity(evaluate(*best.group(1).split(), text="again.txt"))
    out = run("tune", "--model", "m", "--text", "again.txt", "--dynamic", "rms", "--dynamic-text", "train.txt").stdout
    assert "best        --dynamic rms --dynamic-rate" in out, out
    # Both: the best cache for each rate, as evaluate finds it.
    how = ["--dynamic", "sgd", "--dynamic-rate", 0, 0.2, "--dynamic-decay", 0, "--cache-window", 50, "--cache-flatness", 0, 2, "--cache-weight", 0, 0.3]
    out = run("tune", "--model", "m", "--text", "again.txt", *how).stdout
    best = re.search(r"best        (--cache .* --dynamic sgd --dynamic-rate 0\.2 .*): perplexity ([\d.]+)\n", out)
    assert float(best.group(2)) == perplexity(evaluate(*best.group(1).split(), text="again.txt")), out
    assert "with the best cache of window 50 by rate" in out and float(best.group(2)) < perplexity(evaluate(*how[:3], 0.2, *how[5:7], text="again.txt")), out
    found = json.loads(run("tune", "--model", "m", "--text", "again.txt", *how, "--json").stdout.splitlines()[-1])
    assert [sorted(trial) for trial in found["trials"]] == 2 * [["decay", "flatness", "perplexity", "rate", "steps", "weight"]], found
    out = run("tune", "--model", "m", "--text", "again.txt", "--dynamic", "riemannian", "--dynamic-text", "train.txt", "--dynamic-rate", 0, 1e-6).stdout
    assert "best        --dynamic riemannian --dynamic-rate" in out, out


def edges():
    """tune says of which options the best value is the largest or smallest that was tried, and what to try; not of a limit of the range."""
    def found(*options):
        call = ["tune", "--model", "m", "--text", "again.txt", *options]
        printed, edge = run(*call).stdout, json.loads(run(*call, "--json").stdout)["edge"]
        assert ("\nedge  " in printed) == (edge != []), (printed, edge)
        return printed, edge

    # Of a text that repeats itself, a sharper and a heavier cache predict more.
    printed, edge = found("--cache-flatness", 0.5, 2, "--cache-weight", 0.1, 0.4)
    assert printed.endswith("\nedge        the best has the largest --cache-flatness and the largest --cache-weight of those tried, and a better one "
                            "may lie beyond; try --cache-flatness 2 3 4 6 --cache-weight 0.4 0.6 0.8\n"), printed
    assert edge == [{"option": "--cache-flatness", "value": 2, "try": [2, 3, 4, 6]},
                    {"option": "--cache-weight", "value": 0.4, "try": [0.4, 0.6, 0.8]}], edge
    assert [one["try"] for one in found("--cache-flatness", 2, "--cache-weight", 0.4, 0.9)[1]] == [[0.9, 0.95]]
    assert found("--cache-flatness", 2, "--cache-weight", 0.4)[1] == []  # one of each: nothing was compared
    printed, edge = found("--cache-flatness", 0.1, 0.2, "--cache-weight", 0, 0.5)
    assert edge == [] and " --cache-weight 0: perplexity " in printed, printed  # the limit; without the cache any flatness is as good
    one = ["--cache-flatness", 2, "--cache-weight", 0.4]
    printed, edge = found("--cache-window", 4, 10, *one)  # lines are of 9 tokens
    assert edge == [{"option": "--cache-window", "value": 10, "try": [10, 15, 20, 30]}] and printed.endswith("; try --cache-window 10 15 20 30\n"), printed
    run("tune", "--model", "m", "--text", "again.txt", "--cache-window", *edge[0]["try"], *one)
    assert found("--cache-window", 10**6, 2 * 10**6, *one)[1] == []  # both longer than the text
    printed, edge = found("--dynamic", "sgd", "--dynamic-rate", 0.01, 0.1)
    assert edge == [{"option": "--dynamic-rate", "value": 0.1, "try": [0.1, 0.15, 0.2, 0.3]}] and "the largest --dynamic-rate of those" in printed, edge
    printed, edge = found("--dynamic", "sgd", "--dynamic-rate", 0.2, 50, "--dynamic-decay", 0.001)
    assert edge == [{"option": "--dynamic-rate", "value": 0.2, "try": [0.05, 0.1, 0.2]}] and "the smallest --dynamic-rate of those" in printed, edge


def keystrokes():
    text = "the king sees the dog - in the garden\n"
    write("line.txt", text)
    words = text.split()
    # The model's own ranking of what may come next, for every beginning of the line.
    rankings = [[c["word"] for c in json.loads(run("complete", "--model", "m", "--text", " ".join(words[:i]), "--k", 10**6, "--json").stdout)["next"]]
                for i in range(len(words))]
    for shown in 1, 3:
        typed = 0
        for word, ranking in zip(words, rankings):
            known = [w for w in ranking if w.isalnum()]
            if word.isalnum():
                typed += 1 + next((n for n in range(len(word)) if word in [w for w in known if w.startswith(word[:n])][:shown]), len(word))
        found = json.loads(evaluate("--suggest", shown, "--json", text="line.txt"))["keystrokes"]
        assert found == {"suggested": shown, "typed": typed, "letters_and_spaces": sum(len(w) + 1 for w in words if w.isalnum())}, (found, typed)
    assert typed < sum(len(w) + 1 for w in words if w.isalnum())
    plain, out = evaluate(text="again.txt"), evaluate("--suggest", 3, text="again.txt")
    assert perplexity(out) == perplexity(plain) and "with 3 words suggested: " in out, out
    saved = number(r"suggested: ([\d.]+) % saved", out)
    assert number(r"suggested: ([\d.]+) % saved", evaluate("--suggest", 3, "--dynamic", "sgd", text="again.txt")) > saved > 0
    write("unknown.txt", "zebra zebra\n")
    assert json.loads(evaluate("--suggest", 3, "--json", text="unknown.txt"))["keystrokes"] == {"suggested": 3, "typed": 12, "letters_and_spaces": 12}


def wrong():
    def refuses(command, *options, says):
        error = run(command, "--model", "m", "--text", "valid.txt", *options, status=1).stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)

    refuses("evaluate", "--cache-window", 5, says="--cache-window is given without --cache")
    refuses("evaluate", "--cache-weight", 0.1, says="--cache-weight is given without --cache")
    refuses("evaluate", "--cache", "--cache-window", 0, says="window = 0")
    refuses("evaluate", "--cache", "--cache-flatness", -1, says="flatness = -1")
    refuses("evaluate", "--cache", "--cache-weight", 2, says="weight = 2")
    refuses("evaluate", "--cache", "--columns", 2, says="--columns is 2, expected 1 with --cache")
    refuses("evaluate", "--dynamic", "sgd", "--columns", 2, says="--columns is 2, expected 1 with --dynamic")
    refuses("evaluate", "--suggest", 3, "--columns", 2, says="--columns is 2, expected 1 with --suggest")
    refuses("evaluate", "--suggest", 3, "--cache", says="--suggest is given with --cache")
    refuses("evaluate", "--suggest", -1, says="--suggest = -1")
    assert "is of characters" in run("evaluate", "--model", "c", "--text", "valid.txt", "--suggest", 3, status=1).stderr
    refuses("evaluate", "--dynamic-rate", 1, says="--dynamic-rate is given without --dynamic")
    refuses("evaluate", "--dynamic", "sgd", "--dynamic-text", "train.txt", says="--dynamic-text is given without --dynamic rms or riemannian")
    refuses("evaluate", "--dynamic", "rms", "--dynamic-text", "train.txt", "--dynamic-table-rate", 1,
            says="--dynamic-table-rate is given without --dynamic riemannian")
    refuses("evaluate", "--dynamic", "riemannian", says="--dynamic riemannian needs --dynamic-text")
    refuses("evaluate", "--dynamic", "rms", says="--dynamic rms needs --dynamic-text")
    refuses("evaluate", "--dynamic", "rms", "--dynamic-text", "none.txt", says="none.txt")
    refuses("evaluate", "--dynamic", "sgd", "--dynamic-steps", 0, says="--dynamic-steps is 0")
    refuses("evaluate", "--dynamic", "sgd", "--dynamic-rate", -1, says="rate = -1")
    refuses("evaluate", "--dynamic", "sgd", "--dynamic-decay", 2, says="decay = 2")
    refuses("evaluate", "--dynamic", "sgd", "--dynamic-rate", "1e300", says="rate = 1e+300")
    refuses("tune", "--cache-weight", 0.1, -0.1, says="weight = -0.1")
    refuses("tune", "--dynamic", "sgd", "--cache-flatness", 0.5, "1e300", says="--cache-flatness is 1e+300, expected at most 3.40282e+38 with --dynamic")
    refuses("tune", "--dynamic", "sgd", "--cache-window", 5, 9, says="--cache-window has 2 values, expected one with --dynamic")
    refuses("tune", "--dynamic-rate", 1, says="--dynamic-rate is given without --dynamic")
    # Numbers are checked before any file is read.
    for command in "evaluate", "tune":
        cache = ["--cache"] if command == "evaluate" else []
        for options, says in [([*cache, "--cache-weight", "nan"], "weight = nan"), ([*cache, "--cache-flatness", "nan"], "flatness = nan"),
                              ([*cache, "--cache-window", 0], "window = 0"), (["--dynamic", "sgd", "--dynamic-rate", "nan"], "rate = nan"),
                              (["--dynamic", "sgd", "--dynamic-decay", 2], "decay = 2"), (["--columns", 0], "--columns is 0"),
                              (["--dynamic", "riemannian", "--dynamic-text", "none.txt", "--dynamic-table-rate", -1], "table-rate = -1")]:
            error = run(command, "--model", "absent", "--text", "absent.txt", *options, status=1).stderr
            assert error.startswith("isogloss: ") and says in error, (command, options, error)
    refuses("tune", "--dynamic", "sgd", "--dynamic-rate", 0.1, "nan", says="rate = nan")


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(40, seed=2))
    train("m", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1)
    train("c", "--train", "train.txt", "--valid", "valid.txt", "--level", "character", "--epochs", 1)
    before = read("m")
    cache()
    dynamic()
    tune()
    edges()
    keystrokes()
    wrong()
    assert read("m") == before
