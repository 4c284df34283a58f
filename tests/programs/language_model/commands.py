"""evaluate, sample, score, neighbours and compare on trained models."""
import math
import re

from program import Folder, floats, number, read, rows, run, sentences, tensors, train, write


def evaluate(out):
    """Under the protocol of the training, evaluate prints the very line that the training printed."""
    printed = re.search(r"\nvalidation valid.txt\n    (perplexity .*\n.*\n.*)\n", out).group(1)
    again = run("evaluate", "--model", "m", "--text", "valid.txt", "--columns", 4, "--threads", 1).stdout
    assert printed in again, (printed, again)
    assert number(r"unigram +perplexity ([\d.]+)", again) == number(r"unigram +validation perplexity ([\d.]+)", out)
    alone = run("evaluate", "--model", "m", "--text", "valid.txt").stdout
    assert "in 1 column, a line end fed first" in alone
    assert abs(number(r"perplexity [\d.]+ \(([\d.]+) nats", alone) - number(r"perplexity [\d.]+ \(([\d.]+) nats", printed)) < 0.05
    write("unknown.txt", "the zebra sees the king in the garden\n\nthe cat\n")
    assert "unknown.txt: 13 tokens, 3 of them line ends, 1 <unk>" in run("evaluate", "--model", "m", "--text", "unknown.txt").stdout


def sample():
    def text(*arguments):
        return run("sample", "--model", "m", *arguments).stdout

    first = text("--words", 50, "--seed", 1)
    assert first == text("--words", 50, "--seed", 1) != text("--words", 50, "--seed", 2)
    words = first.split()
    assert len(words) == 50 and first.endswith("\n")
    assert set(words) <= set(sentences(600).split()), words
    likeliest = text("--words", 9, "--temperature", 0)
    assert likeliest == text("--words", 9, "--temperature", 0, "--seed", 7)
    assert text("--words", 5, "--prompt", "the king sees").startswith("the king sees the ")
    assert "<unk>" in run("sample", "--model", "rare", "--words", 200, "--unknowns").stdout
    assert "<unk>" not in run("sample", "--model", "rare", "--words", 200).stdout
    # <unk>, by far the most probable there, gives its place to the next word, not to line ends.
    # Within a line two words may be equally likely; its first word cannot tie.
    cold, coldest = (run("sample", "--model", "rare", "--words", 40, "--temperature", t).stdout for t in (0.01, 0))
    begins = [{line.split()[0] for line in drawn.splitlines() if line} for drawn in (cold, coldest)]
    assert begins[0] == begins[1] and len(begins[0]) == 1 and "<unk>" not in cold + coldest and cold.count("\n") < 40, (cold, coldest)
    assert run("sample", "--model", "m", "--words", 3, "--prompt", "the zebra").stderr == "isogloss: 1 of the 2 tokens of --prompt is <unk> to the model\n"
    characters = run("sample", "--model", "c", "--characters", 40).stdout
    assert len(characters.replace("\n", "")) == 40, characters


def score():
    lines = ["the king sees the queen in the garden", "king the the garden sees queen in the", "", "a zebra", "the cat",
             " ".join(["the"] * 37)]
    write("lines.txt", "\n".join(lines))
    out = run("score", "--model", "m", "--text", "lines.txt").stdout
    table = [line.split("\t") for line in out.splitlines()]
    assert [row[4] for row in table] == lines and [int(row[2]) for row in table] == [9, 9, 1, 3, 3, 38], table
    assert [int(row[3]) for row in table] == [0, 0, 0, 2, 0, 0], table
    total = [float(row[0]) for row in table]
    assert total[0] > total[1] + 5, total
    for row in table:
        assert abs(float(row[0]) / int(row[2]) - float(row[1])) < 1e-4, row
    assert run("score", "--model", "m", text="\n".join(lines)).stdout == out  # standard input
    for batch in [1, 2, 100]:  # lines side by side do not see each other
        other = run("score", "--model", "m", "--text", "lines.txt", "--batch", batch).stdout
        for a, b in zip(total, other.splitlines(), strict=True):
            assert abs(a - float(b.split("\t")[0])) < 2e-3, (batch, a, b)
    # A text of one line is scored and evaluated alike.
    write("one.txt", lines[0])
    nats = number(r"perplexity [\d.]+ \(([\d.]+) nats", run("evaluate", "--model", "m", "--text", "one.txt").stdout)
    assert abs(nats * 9 + total[0]) < 2e-3, (nats, total[0])
    for by, column in [("total", 0), ("mean", 1)]:
        values = [float(line.split("\t")[column]) for line in
                  run("score", "--model", "m", "--text", "lines.txt", "--sort", by).stdout.splitlines()]
        assert values == sorted(values, reverse=True) and len(values) == len(lines), (by, values)


def neighbours():
    out = run("neighbours", "--model", "m", "--word", "king", "--word", "wood", "--k", 3).stdout.splitlines()
    assert out[0] == "king" and out[4] == "wood" and len(out) == 8, out
    E = tensors("m")[0]["E"]
    count, width = E[1]
    values = floats(E)
    run("neighbours", "--model", "m", "--export", "vectors.txt")
    lines = read("vectors.txt").decode().splitlines()
    assert lines[0] == f"{count} {width}" and len(lines) == count + 1
    table = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in lines[1:]}
    assert all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip((x for row in table.values() for x in row), values))

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))

    near = sorted(((cosine(table["king"], row), word) for word, row in table.items() if word != "king"), reverse=True)[:3]
    assert [line.split()[1] for line in out[1:4]] == [word for _, word in near], (out, near)
    assert abs(float(out[1].split()[0]) - near[0][0]) < 1e-4
    run("neighbours", "--model", "m", "--export", "vectors.bin", "--format", "word2vec-binary")
    assert len(read("vectors.bin")) == len(f"{count} {width}\n") + sum(len(word) + 2 + 4 * width for word in table)
    run("neighbours", "--model", "m", "--export", "glove.txt", "--format", "glove")
    assert read("glove.txt").decode().splitlines() == lines[1:]
    assert "--export is for models of words" in run("neighbours", "--model", "c", "--export", "c.txt", status=1).stderr


def compare():
    """Its means are those of the rows it writes; perplexities are those of evaluate; its neighbours those of the tables."""
    call = ["compare", "--model", "m", "--against", "weak", "--text", "valid.txt", "--columns", 4, "--neighbours", 2,
            "--frequent", 3, "--likeliest", 4, "--show", 2, "--context", 3, "--threads", 1]
    out = run(*call, "--word", "the", "--csv", "out.csv").stdout
    piped = run(*["-" if a == "valid.txt" else a for a in call], "--word", "the", text=read("valid.txt").decode()).stdout
    assert piped == out.replace("valid.txt", "standard input"), piped
    table = rows("out.csv")
    assert [int(row["position"]) for row in table] == list(range(900))
    words = [word for line in read("valid.txt").decode().splitlines() for word in line.split() + ["<eos>"]]
    assert [row["target"] for row in table] == words
    for name, which in [("first", "m"), ("second", "weak")]:
        perplexity = math.exp(-sum(float(row["log_p_" + name]) for row in table) / 900)
        printed = number(rf"{name} +{which} +perplexity ([\d.]+)", out)
        evaluated = run("evaluate", "--model", which, "--text", "valid.txt", "--columns", 4, "--threads", 1).stdout
        assert abs(perplexity - printed) < 0.006 and abs(printed - number(r"\nperplexity ([\d.]+)", evaluated)) < 0.006
        target = sum(math.exp(float(row["log_p_" + name])) for row in table) / 900
        column = 1 if name == "first" else 2
        found = re.search(r"the target +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) % +900", out)
        assert found and abs(float(found.group(column)) - target) < 1e-4, (out, target)
    better = sum(float(row["log_p_second"]) > float(row["log_p_first"]) for row in table) / 9
    assert abs(float(found.group(4)) - better) < 0.06, (found.group(4), better)
    # 'the' stands three times in each of 100 lines of 9.
    assert re.search(r"'the', where it is not the target +0\.\d+ +0\.\d+ +\S+ +[\d.]+ % +600\n", out), out
    assert re.search(r"nearest words in the table of the second +0\.\d+ .* 800\n", out), out  # no line ends
    gains = [float(x) for x in re.findall(r"\(x ([\d.]+)\)", out)]
    assert len(gains) == 4 and gains[0] >= gains[1] >= gains[3] >= gains[2], gains
    best = max((row for row in table if row["target"] != "<eos>"),
               key=lambda row: float(row["log_p_second"]) - float(row["log_p_first"]))
    assert abs(gains[0] - math.exp(float(best["log_p_second"]) - float(best["log_p_first"]))) < 0.006
    at = int(best["position"])
    assert "  " + " ".join(words[max(0, at - 3):at]) + " -> " + words[at] in out, (out, at)
    assert len(re.findall(r"^    (?:first|second)  (?: ?\S+ \d\.\d\d){4}$", out, re.M)) == 8, out
    # A model against itself: nothing differs.
    same = run(*call[:4], "m", *call[5:]).stdout
    assert re.search(r"the target +([\d.]+) +\1 +1.000 +0.0 %", same) and "(x " not in same, same
    assert "different vocabularies" in run(*call[:4], "rare", *call[5:], status=1).stderr
    assert "'zebra' is not among" in run(*call, "--word", "zebra", status=1).stderr
    # Fewer words than the defaults ask for: 4 beside <unk> and line ends.
    few = run("compare", "--model", "rare", "--against", "rare", "--text", "valid.txt", "--threads", 1).stdout
    assert "its 3 nearest words" in few and "the 3 most frequent" in few, few
    assert "--neighbours = 90" in run(*call, "--neighbours", 90, status=1).stderr
    before = read("weak")
    assert "reads; it was left unchanged" in run(*call, "--csv", "./weak", status=1).stderr and read("weak") == before


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(100, seed=2))
    trained = train("m", "--train", "train.txt", "--valid", "valid.txt", "--units", 24, "--keep", 0.9, "--epochs", 3).stdout
    train("rare", "--train", "train.txt", "--valid", "valid.txt", "--max-vocabulary", 6)
    train("c", "--train", "train.txt", "--valid", "valid.txt", "--level", "character", "--epochs", 1)
    evaluate(trained)
    sample()
    score()
    neighbours()
    train("weak", "--train", "train.txt", "--valid", "valid.txt", "--loss", "ce", "--bptt", 7)
    compare()
