"""sample and complete: what is drawn is drawn from the likeliest words, and printed as it is drawn."""
import json
import math
import socket
import subprocess

from program import PROGRAM, Folder, run, sentences, train, write


def sample(*options):
    return run("sample", "--model", "m", *options).stdout


def complete(lines, *options):
    """For each line the next words and their probabilities, the most probable first."""
    out = run("complete", "--model", "m", "--text", "-", "--json", *options, text="".join(line + "\n" for line in lines)).stdout
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["text"] for one in found] == list(lines), out
    return [[(next["word"], next["probability"]) for next in one["next"]] for one in found]


def completes():
    line = "the king sees the queen in the garden"
    words = line.split()
    prefixes = [" ".join(words[:i]) for i in range(len(words) + 1)]
    found = complete(prefixes, "--k", 100)
    for next in found:
        probabilities = [p for _, p in next]
        assert len(next) == 14 and probabilities == sorted(probabilities, reverse=True) and abs(sum(probabilities) - 1) < 1e-5, next
    # One word after the other they give the probability of the line.
    log = sum(math.log(dict(next)[word]) for next, word in zip(found, words + ["<eos>"]))
    scored = json.loads(run("score", "--model", "m", "--json", text=line).stdout)
    assert abs(log - scored["log_probability"]) < 1e-3, (log, scored)
    out = run("complete", "--model", "m", "--text", "the king", "--k", 3).stdout.splitlines()
    assert out[0] == "the king" and [row.split()[1] for row in out[1:]] == [word for word, _ in found[2][:3]], (out, found[2])
    assert [float(row.split()[0]) for row in out[1:]] == [round(p, 4) for _, p in found[2][:3]], (out, found[2])
    assert run("complete", "--model", "m", "--text", "a zebra sees").stdout.startswith("a zebra sees  (2 of 3 <unk>)\n")
    longer = " ".join(words * 5)  # than a pass of the model
    assert len(complete([longer, "the", longer], "--k", 5)) == 3 and complete([longer]) == complete(["the", longer])[1:]
    # A line is answered before the next one comes.
    with subprocess.Popen([PROGRAM, "complete", "--model", "m", "--text", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        for text in "the king", "the":
            asked.stdin.write(text + "\n")
            asked.stdin.flush()
            assert json.loads(asked.stdout.readline())["text"] == text
    assert asked.returncode == 0
    assert run("complete", "--model", "c", "--text", "the kin", "--k", 1).stdout.split("  ")[-1] == "g\n"


def drawn_from_the_likeliest():
    """Every word of the first line of each text is among those that were asked for."""
    def first_lines(*options):
        lines = [text.split("\n")[0] for text in sample("--words", 8, "--samples", 12, *options).split("\n\n")]
        assert len(lines) == 12, lines
        steps = [(line.split()[:i], line.split()[i]) for line in lines for i in range(len(line.split()))]
        return lines, list(zip(steps, complete([" ".join(before) for (before, _) in steps], "--k", 100)))

    def rank(word, next):
        return [w for w, _ in next].index(word)

    free, steps = first_lines()
    assert max(rank(word, next) for (_, word), next in steps) >= 3  # the nouns are four
    lines, steps = first_lines("--top-k", 2)
    assert {rank(word, next) for (_, word), next in steps} == {0, 1} and len(set(lines)) > 3, lines
    lines, steps = first_lines("--top-p", 0.5)
    for (_, word), next in steps:
        above = sum(p for _, p in next[:rank(word, next)])
        assert above < 0.5 + 1e-3, (word, next)
    assert max(rank(word, next) for (_, word), next in steps) >= 1 and len(set(lines)) > 3, lines
    likeliest = sample("--words", 30, "--temperature", 0)
    for options in [["--top-k", 1], ["--top-p", 1e-9], ["--top-k", 5, "--top-p", 1e-9], ["--top-k", 1, "--temperature", 3, "--seed", 9]]:
        assert sample("--words", 30, *options) == likeliest, options
    assert sample("--top-k", 0, "--top-p", 1) == sample() == sample("--top-k", 100)


def several():
    """The first texts are the same however many are asked for; the first is that of one."""
    one, three, four = (sample("--words", 8, "--samples", n, "--prompt", "the king") for n in [1, 3, 4])
    assert three.startswith(one + "\nthe king ") and four.startswith(three + "\nthe king "), (one, three, four)
    assert len(set(four.split("\n\n"))) == 4, four
    # Each begins afresh: what the one before it was, and how long, does not matter.
    mark = "house house house"  # where a text begins
    short, long = (sample("--words", n, "--samples", 30, "--temperature", 2, "--prompt", mark).split(mark)[1:] for n in [3, 20])
    assert len(short) == len(long) == 30 and all(b.split()[:3] == a.split() for a, b in zip(short, long)), (short, long)


def as_they_are_drawn():
    """Every word is written by itself: a socket keeps apart what is."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = subprocess.Popen([PROGRAM, "sample", "--model", "m", "--words", "40", "--prompt", "the king"], stdout=theirs)
    theirs.close()
    pieces = []
    while piece := ours.recv(1 << 16):
        pieces.append(piece.decode())
    assert program.wait(timeout=60) == 0 and "".join(pieces) == sample("--words", 40, "--prompt", "the king")
    assert len(pieces) >= 40 and all(len(piece.split()) <= 1 for piece in pieces), pieces


def line_ends():
    """A model that draws hardly anything else ends with fewer words, and says so."""
    write("blank.txt", "\n" * 2000 + "the king\n")
    for level, what in ("word", "words"), ("character", "characters"):
        train("b", "--train", "blank.txt", "--valid", "valid.txt", "--loss", "ce", "--level", level, "--epochs", 1, "--runaway", 0, "--overwrite")
        done = run("sample", "--model", "b", "--words", 100, "--temperature", 0)
        assert done.stdout == "\n" * 2000, done
        assert done.stderr == f"isogloss: found 0 of the 100 {what}: the model draws little but line ends; try a higher --temperature\n", done


def wrong():
    def refuses(command, *options, says, text=None):
        error = run(command, "--model", "m", *options, status=1, text=text).stderr
        assert error.startswith("isogloss: ") and error.count("\n") == 1 and says in error, (options, error)

    refuses("sample", "--top-k", -1, says="--top-k = -1")
    refuses("sample", "--top-p", 0, says="--top-p = 0")
    refuses("sample", "--top-p", 1.5, says="--top-p = 1.5")
    refuses("sample", "--samples", 0, says="--samples = 0")
    refuses("complete", "--text", "the", "--k", 0, says="--k = 0")
    refuses("complete", "--text", "the\nking", says="line feed")
    refuses("complete", "--text", "-", says="the text is empty", text="")


with Folder():
    write("train.txt", sentences(1500))
    write("valid.txt", sentences(100, seed=2))
    train("m", "--train", "train.txt", "--valid", "valid.txt", "--units", 24, "--keep", 1, "--loss", "ce", "--epochs", 3)
    train("c", "--train", "train.txt", "--valid", "valid.txt", "--units", 24, "--keep", 1, "--loss", "ce", "--level", "character", "--epochs", 2)
    completes()
    drawn_from_the_likeliest()
    several()
    as_they_are_drawn()
    line_ends()
    wrong()
