"""evaluate and tune with a temperature of the softmax, and with models and probabilities that are mixed."""
import json
import math
import re
import shlex
import shutil

from program import Folder, read, rows, run, sentences, train, write

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


def log_p():
    """ln p of every token of the text under both models, as compare has them."""
    run("compare", "--model", "m", "--against", "weak", "--text", "valid.txt", "--columns", 1, "--csv", "p.csv", "--neighbours", 2,
        "--frequent", 2, "--likeliest", 2)
    return [(float(row["log_p_first"]), float(row["log_p_second"])) for row in rows("p.csv")]


def mixed():
    p = log_p()
    with open("p.txt", "w") as file:  # a line for each line of the text, as a toolkit would
        for i, (_, second) in enumerate(p):
            file.write(f"{math.exp(second)!r}" + ("\n" if i % 9 == 8 else " "))
    plain = perplexity()

    def by_hand(w):
        return math.exp(-sum(math.log((1 - w) * math.exp(a) + w * math.exp(b)) for a, b in p) / len(p))

    for w in [0, 0.3, 0.9]:
        for other in [["--mix-with", "weak"], ["--mix-probabilities", "p.txt"]]:
            found = evaluate(*other, "--mix-weight", w)
            assert abs(found["perplexity"] - by_hand(w)) < 1e-4 * plain, (w, other, found, by_hand(w))
            assert [one["weight"] for one in found["mixture"]] == [1 - w, w], found
            assert abs(found["mixture"][0]["perplexity"] - plain) < 1e-9 and abs(found["mixture"][1]["perplexity"] - by_hand(1)) < 1e-3
        assert abs(perplexity("--mix-with", "m", "--mix-weight", w) - plain) < 1e-9
        both = perplexity("--mix-with", "weak", "--mix-probabilities", "p.txt", "--mix-weight", w / 3, w / 2)
        assert abs(both - by_hand(w * 5 / 6)) < 1e-4 * plain, (both, by_hand(w * 5 / 6))
    for other in [["--mix-with", "weak"], ["--mix-probabilities", "p.txt"]]:  # columns of another state at their start, in the order of the text
        assert abs(perplexity(*other, "--mix-weight", 0.3, "--columns", 3) / by_hand(0.3) - 1) < 0.03, other
    out = run("evaluate", "--model", "m", *V, "--mix-with", "weak", "--mix-weight", 0.25).stdout
    assert f"mixture     0.75 of 'm', by itself perplexity {plain:.2f}\n            0.25 of 'weak', by itself" in out, out
    assert f"\nperplexity {by_hand(0.25):.2f} (" in out, out

    best, value, out = tune("--mix-with", "weak")
    assert best[:2] == ["--mix-with", "weak"] and best[2] == "--mix-weight", best
    w = float(best[3])
    steps = [i / 1000 for i in range(1001)]
    grid = min(steps, key=by_hand)
    assert 0.02 < w < 0.98 and abs(w - grid) < 0.002 and abs(value - by_hand(w)) < 0.006, (w, grid, out)
    assert f"{perplexity(*best):.2f}" == f"{value:.2f}"
    best, _, _ = tune("--mix-probabilities", "p.txt")
    assert abs(float(best[3]) - w) < 1e-3, best
    # The same model twice: only the sum of the two weights is determined.
    best, _, _ = tune("--mix-with", "weak", "--mix-probabilities", "p.txt")
    assert abs(float(best[5]) + float(best[6]) - w) < 2e-3, best
    # What says nothing gets nothing; a model that gives a token 0 is mixed all the same.
    write("flat.txt", "1e-9 " * 899 + "0")
    best, value, _ = tune("--mix-probabilities", "flat.txt")
    assert float(best[3]) < 1e-5 and value == float(f"{plain:.2f}"), best
    # A probability below the smallest double is that, not 0.
    write("tiny.txt", "0.5 " * 899 + "1e-400")
    write("least.txt", "0.5 " * 899 + "5e-324")
    assert perplexity("--mix-probabilities", "tiny.txt", "--mix-weight", 1) == perplexity("--mix-probabilities", "least.txt", "--mix-weight", 1)
    # A name with a blank and a quote comes as a shell reads it.
    shutil.copy("weak", "a b's model")
    (found,) = [json.loads(run("tune", "--model", "m", *V, "--mix-with", "a b's model", "--json").stdout)["best"]]
    assert found["options"].startswith("--mix-with 'a b'\\''s model' --mix-weight "), found
    assert f"{perplexity(*shlex.split(found['options'])):.6f}" == f"{found['perplexity']:.6f}"
    both, value, out = tune("--softmax-temperature", "--mix-with", "weak", "--columns", 2)
    assert f"{perplexity(*both):.2f}" == f"{value:.2f}", out


def precision():
    """--precision is that of every model of a mixture."""
    for kind in "bf16", "int8":
        alone = perplexity("--precision", kind, model="weak")
        first, other = evaluate("--mix-with", "weak", "--mix-weight", 0.4, "--precision", kind)["mixture"]
        assert abs(other["perplexity"] - alone) < 1e-9 < abs(other["perplexity"] - perplexity(model="weak")), (kind, other, alone)
        assert abs(first["perplexity"] - perplexity("--precision", kind)) < 1e-9 < abs(first["perplexity"] - perplexity()), (kind, first)


def wrong():
    def refuses(command, *options, says, after=""):
        """`after`: what was printed before; nothing, if it is found before the passes over the text."""
        done = run(command, "--model", "m", "--text", "valid.txt", *options, status=1)
        error = done.stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)
        assert done.stdout.startswith(after) and bool(done.stdout) == bool(after), (options, done.stdout)

    weak, file = ["--mix-with", "weak"], ["--mix-probabilities", "f.txt", "--mix-weight", 0.5]
    refuses("evaluate", "--softmax-temperature", 0, says="--softmax-temperature = 0")
    refuses("evaluate", "--softmax-temperature", "nan", says="--softmax-temperature = nan")
    refuses("evaluate", "--softmax-temperature", 2, "--cache", says="--softmax-temperature is given with the cache")
    refuses("evaluate", *weak, "--mix-weight", 0.5, "--dynamic", "sgd", says="--mix-with is given with --dynamic")
    refuses("tune", *weak, "--cache-weight", 0.1, says="--mix-with is given with the cache")
    refuses("tune", "--columns", 2, says="--columns is 2, expected 1 with the cache")
    refuses("evaluate", "--mix-weight", 0.5, says="--mix-weight is given without --mix-with or --mix-probabilities")
    refuses("evaluate", *weak, says="--mix-weight has 0 numbers, expected 1")
    refuses("evaluate", *weak, "--mix-weight", 0.5, 0.2, says="--mix-weight has 2 numbers, expected 1")
    refuses("evaluate", *weak, "--mix-weight", 1.5, says="--mix-weight = 1.5")
    refuses("evaluate", *weak, "--mix-weight", -0.1, says="--mix-weight = -0.1")
    refuses("evaluate", *weak, "--mix-with", "m", "--mix-weight", 0.5, 0.6, says="the weights sum to 1.1, expected at most 1")
    refuses("evaluate", "--mix-with", "rare", "--mix-weight", 0.5, says="--mix-with 'rare': the models have different vocabularies")
    refuses("evaluate", "--mix-with", "absent", "--mix-weight", 0.5, says="absent")
    refuses("tune", "--mix-with", "rare", says="--mix-with 'rare': the models have different vocabularies")
    refuses("tune", "--softmax-temperature", "--mix-probabilities", "f.txt", says="f.txt")
    refuses("evaluate", *file, says="f.txt")  # is not there
    for content, says in [("0.5 " * 899, "f.txt: 899 probabilities in it, expected 900, one for each token of 'valid.txt'"),
                          ("0.5\n" * 901, "f.txt: 901 probabilities"), ("0.5\n0.1 1.01\n", "f.txt:2: '1.01' is not a probability"),
                          ("-3.5\n", "f.txt:1: '-3.5' is not a probability; expected numbers from 0 to 1, one for each token of 'valid.txt', not their log"),
                          ("0.5\nking\n", "f.txt:2: 'king'"), ("nan\n", "f.txt:1: 'nan'"), ("1e400\n", "f.txt:1: '1e400'"), ("-1e-400\n", "f.txt:1: '-1e-400'"), ("0.5x\n", "f.txt:1: '0.5x'")]:
        write("f.txt", content)
        refuses("evaluate", *file, says=says)
    write("f.txt", "0.5 " * 4 + "0 " + "0.5 " * 895)
    refuses("evaluate", "--mix-probabilities", "f.txt", "--mix-weight", 1, says="token 5 of the text has probability 0 under the mixture", after="text ")


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    texts = ["--train", "train.txt", "--valid", "valid.txt"]
    train("m", *texts, "--epochs", 1)
    train("weak", *texts, "--epochs", 1, "--cell", "gru", "--seed", 5, "--rate", 0.3, "--bptt", 7)
    train("rare", *texts, "--epochs", 1, "--max-vocabulary", 6)
    before = read("m"), read("weak")
    temperature()
    tuned_temperature()
    extreme()
    mixed()
    precision()
    wrong()
    assert (read("m"), read("weak")) == before
