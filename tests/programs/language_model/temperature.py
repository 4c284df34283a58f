"""evaluate and tune with a temperature of the softmax."""
import json
import math
import re

from program import Folder, run, sentences, train, write

V = ["--text", "valid.txt", "--threads", 1]


def evaluate(*options, text="valid.txt", model="m"):
    return json.loads(run("evaluate", "--model", model, "--text", text, "--threads", 1, "--json", *options).stdout)


def perplexity(*options, **keywords):
    return evaluate(*options, **keywords)["perplexity"]


def tune(*options):
    out = run("tune", "--model", "m", *V, *options).stdout
    best = re.search(r"\nbest        (--.*): perplexity ([\d.]+)\n", out)
    return best.group(1).split(), float(best.group(2)), out


def temperature():
    for columns in [1, 4]:
        assert abs(perplexity("--softmax-temperature", 1, "--columns", columns) - perplexity("--columns", columns)) < 1e-9
    # By hand, from all probabilities after each beginning of a line.
    line = "the king sees the queen in the garden"
    write("line.txt", line + "\n")
    words = line.split() + ["<eos>"]
    prefixes = "".join(" ".join(words[:i]) + "\n" for i in range(9))
    found = [json.loads(one) for one in run("complete", "--model", "m", "--text", "-", "--k", 99, "--json", text=prefixes).stdout.splitlines()]
    for T in [0.5, 1.7]:
        nats = 0
        for one, word in zip(found, words, strict=True):
            p = {next["word"]: next["probability"] ** (1 / T) for next in one["next"]}
            nats -= math.log(p[word] / sum(p.values()))
        assert abs(nats / 9 - evaluate("--softmax-temperature", T, text="line.txt")["nats_per_token"]) < 1e-4, T
        assert abs(perplexity("--softmax-temperature", T, text="line.txt", model="m") - math.exp(nats / 9)) < 1e-3


def tuned_temperature():
    for columns in [1, 5]:
        best, value, out = tune("--softmax-temperature", "--columns", columns)
        assert best[0] == "--softmax-temperature" and best[2:] == ["--columns", str(columns)], best
        T = float(best[1])
        here = perplexity(*best)
        assert f"{here:.2f}" == f"{value:.2f}" and here < perplexity("--columns", columns) - 1e-3, (T, here, out)
        for other in [0.97 * T, 1.03 * T]:
            assert here < perplexity("--softmax-temperature", other, "--columns", columns), (T, other)
    found = json.loads(run("tune", "--model", "m", *V, "--softmax-temperature", "--columns", 5, "--json").stdout)
    assert found["best"]["options"].split() == best and found["trials"][0]["softmax_temperature"] == 1, found
    assert abs(found["best"]["perplexity"] - here) < 1e-9 and len(found["trials"]) >= 2


def extreme():
    """Where ever higher or lower temperatures would be better, the best is the last that evaluate takes."""
    write("ab.txt", "a b\n" * 200)
    write("other.txt", "b b b a\n" * 20)
    train("ab", "--train", "ab.txt", "--valid", "ab.txt", "--epochs", 20, "--batch", 4, "--bptt", 8)
    out = run("tune", "--model", "ab", "--text", "other.txt", "--threads", 1, "--softmax-temperature").stdout
    best = re.search(r"\nbest        (--.*): perplexity", out).group(1).split()
    assert best[0] == "--softmax-temperature" and best[1] in ("0.01", "100"), out
    run("evaluate", "--model", "ab", "--text", "other.txt", *best)


def wrong():
    def refuses(command, *options, says):
        done = run(command, "--model", "m", "--text", "valid.txt", *options, status=1)
        error = done.stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)
        assert not done.stdout, (options, done.stdout)  # it is found before the passes over the text

    refuses("evaluate", "--softmax-temperature", 0, says="--softmax-temperature = 0")
    refuses("evaluate", "--softmax-temperature", 2, "--cache", says="--softmax-temperature is given with the cache")
    refuses("tune", "--columns", 2, says="--columns is 2, expected 1 with the cache")


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    train("m", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1)
    temperature()
    tuned_temperature()
    extreme()
    wrong()
