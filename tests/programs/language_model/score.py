"""score: lines that begin alike are computed together, and each gets what it gets alone."""
import json
import random

from program import Folder, run, sentences, train, write

CELLS = [["--cell", "lstm"], ["--cell", "lstm", "--rounds", 5, "--rank", 3], ["--cell", "rnn", "--layers", 1], ["--cell", "gru", "--scheme", "gal"],
         ["--cell", "rhn", "--depth", 2, "--layers", 1, "--scheme", "recurrent"], ["--cell", "qrnn"], ["--cell", "glnn"], ["--cell", "leaky", "--edges", 8]]


def score(lines, batch, *options):
    out = run("score", "--model", "m", "--batch", batch, "--threads", 1, "--json", *options, text="".join(line + "\n" for line in lines)).stdout
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["text"] for one in found] == lines
    return [(one["log_probability"], one["tokens"]) for one in found]


def hypotheses():
    """Lines that part at every place, that are the same, that are the beginning of another, and that are longer than a pass."""
    draw = random.Random(3)
    words = "the king sees queen in garden dog likes".split()
    lines = ["", "", "the", "the king", "the king sees", "the <eos>", "the <eos> king", "<eos>", "<eos> <eos>", "the king"]
    for _ in range(12):
        stem = [draw.choice(words) for _ in range(draw.randrange(1, 30))]
        for _ in range(draw.randrange(1, 9)):
            cut = draw.randrange(len(stem) + 1)
            lines.append(" ".join(stem[:cut] + [draw.choice(words) for _ in range(draw.randrange(0, 25))]))
    draw.shuffle(lines)
    return lines


def alike():
    lines = hypotheses()
    alone = score(lines, 1)
    assert len({total for total, _ in alone}) > len(lines) / 2 and max(n for _, n in alone) > 25
    for batch in [2, 3, 16, len(lines), 500]:
        for one, (total, tokens), (other, _) in zip(lines, alone, score(lines, batch), strict=True):
            assert abs(total - other) < 1e-5 * tokens + 1e-4, (batch, one, total, other)
    (line,) = [i for i, one in enumerate(lines) if one == "the king sees"]
    write("line.txt", lines[line] + "\n")
    found = json.loads(run("evaluate", "--model", "m", "--text", "line.txt", "--json").stdout)
    assert abs(found["nats_per_token"] * 4 + alone[line][0]) < 1e-3, (found, alone[line])


with Folder():
    write("train.txt", sentences(300))
    write("valid.txt", sentences(40, seed=2))
    for cell in CELLS:
        train("m", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 1, "--bptt", 7, "--loss", "ce", *cell)
        alike()
