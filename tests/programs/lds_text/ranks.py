"""lds_text under mpirun: systems and counts have the bytes of one process, whichever way they were stopped and resumed.
Usage: ranks.py PROGRAM MPIRUN"""
import csv
import glob
import os
import random
import signal
import subprocess
import sys
import tempfile

PROGRAM, MPIRUN = map(os.path.abspath, sys.argv[1:])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../mpi"))
from launch import cut_short, launch, said, signal_last, start  # noqa: E402


def run(*arguments, status=0, says=""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == status and says in done.stdout + done.stderr, (arguments, done)
    return done.stdout


def together(ranks, *arguments, fails=False, says=""):
    done = launch(ranks, [PROGRAM, *arguments], MPIRUN)
    assert (done.returncode != 0) == fails and says in done.stdout + done.stderr, (ranks, arguments, done)
    if fails:
        errors = [line for line in done.stderr.splitlines() if line.startswith("isogloss: ")]
        assert len(errors) == 1, done
    return done.stdout


def content(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, words):
    with open(path, "w", encoding="utf-8") as f:
        for i in range(0, len(words), 20):
            f.write(" ".join(words[i:i + 20]) + "\n")


def check_counts():
    run("count", "--text", "text", "--lags", 5, "--counts", "whole", "--vocabulary-to", "vocabulary", "--tokens-to",
        "text.tokens", "--threads", 1)
    base = ["--lags", 5, "--vocabulary-from", "vocabulary"]
    for ranks in (1, 2, 3, 4):
        said = together(ranks, "count", "--text", "text", "--counts", f"c{ranks}", *base)
        assert said.count("\n") == 1 and content(f"c{ranks}") == content("whole"), said
    together(2, "count", "--text", "text", "--counts", "own", "--lags", 5, "--vocabulary-to", "again")
    assert content("own") == content("whole") and content("again") == content("vocabulary")
    bounded = [*base, "--memory", "80MiB"]
    for ranks, text in ((1, "text"), (2, "text"), (4, "text"), (2, "text.tokens"), (4, "text.tokens")):
        together(ranks, "count", "--text", text, "--counts", "bounded", *bounded)
        assert content("bounded") == content("whole"), (ranks, text)
        assert not glob.glob("*.spill") and not glob.glob("*.lock"), os.listdir(".")
    # a shard of the text is shared by the ranks in turn
    run("count", "--text", "text", *base, "--shard", "2/3", "--counts", "shard")
    for more in ([], ["--memory", "80MiB"]):
        together(2, "count", "--text", "text", *base, "--shard", "2/3", "--counts", "shards", *more)
        assert content("shards") == content("shard"), more
    together(2, "count", "--add", "whole", "whole", "--counts", "sum", fails=True, says="start it without mpirun")
    together(2, "count", "--text", "none", "--counts", "x", *base, fails=True, says="none")
    together(2, "count", "--text", "text", "--counts", "x", *base, "--memory", "1KiB", fails=True, says="expected at least")


def check_counts_stopped():
    """Stopped while ranks count, by a kill and by a signal, and resumed; by other ranks that is refused."""
    base = ["count", "--text", "text.tokens", "--lags", 5, "--vocabulary-from", "vocabulary", "--memory", "80MiB", "--counts", "cut"]
    program = [PROGRAM, *base]
    for number in (signal.SIGKILL, signal.SIGTERM):
        out = cut_short(number, 2, program, MPIRUN, "cut", lambda: os.path.exists("cut.spill/begun"))
        assert number == signal.SIGKILL or "Interrupted; --resume continues" in out, out
        together(3, *base, "--resume", fails=True, says="on 2 ranks")
        run(*base, "--resume", status=1, says="on 2 ranks")
        resumed = [*program, "--resume"]
        if signal_last(number, start(2, resumed, MPIRUN, "cut", lambda: "going on from" in said()), resumed, "cut"):
            together(2, *base, "--resume")
        assert content("cut") == content("whole") and not os.path.exists("cut.spill")
    # What ranks have left, one process removes, if it is told to; also what a kill leaves of a file.
    cut_short(signal.SIGKILL, 4, program, MPIRUN, "cut", lambda: os.path.exists("cut.spill/begun"))
    write("cut.spill/rank-3/block-1-2-3.counts.isogloss-part-1234-0", ["x"])
    run(*base, status=1, says="start over with --overwrite")
    assert glob.glob("cut.spill/rank-3/block-*")
    run(*base, "--overwrite")
    assert content("cut") == content("whole") and not os.path.exists("cut.spill"), list(os.walk("cut.spill"))
    # and what one process has left, ranks remove
    os.mkdir("cut.spill")
    write("cut.spill/block-0-9-3.counts", ["x"])
    together(2, *base, "--overwrite")
    assert content("cut") == content("whole") and not os.path.exists("cut.spill"), list(os.walk("cut.spill"))


def rows(path):
    """The log without its seconds."""
    with open(path, newline="", encoding="utf-8") as f:
        return [{k: v for k, v in r.items() if k != "seconds"} for r in csv.DictReader(f)]


def check_fit():
    base = ["--states", 5, "--ssid-lags", 2, "--em-lags", 4, "--iterations", 4]
    sources = {"counts": ["--counts", "whole"], "counted": ["--train", "small"], "text": ["--train", "small", "--matrix-free"]}
    for name, source in sources.items():
        call = ["fit", *source, *base]
        run(*call, "--model", f"{name}0", "--log", f"{name}0.csv", "--shards", 4, "--threads", 1)
        for ranks in (2, 4) if name == "text" else (1, 2, 3, 4):
            said = together(ranks, *call, "--model", f"{name}{ranks}", "--log", f"{name}{ranks}.csv")
            assert name != "counted" or ("each rank a part" in said) == (ranks > 1), said
            assert said.count("EM   4") == 1 and said.count("subspace identification: singular") == 1, said
            assert content(f"{name}{ranks}") == content(f"{name}0"), (name, ranks)
            assert rows(f"{name}{ranks}.csv") == rows(f"{name}0.csv"), (name, ranks)
    # shards change sums in their last digits and nothing else
    run("fit", "--counts", "whole", *base, "--model", "plain", "--log", "plain.csv", "--threads", 1)
    for x, y in zip(rows("plain.csv"), rows("counts0.csv"), strict=True):
        assert abs(float(x["log_likelihood"]) - float(y["log_likelihood"])) < 1e-3, (x, y)

    # With --dev and --select, whose numbers the first rank finds.
    call = ["fit", "--counts", "whole", *base, "--dev", "small", "--select", "--pseudo-counts", 1, 100]
    run(*call, "--model", "s1", "--shards", 4, "--threads", 1)
    together(2, *call, "--model", "s2")
    assert content("s1") == content("s2")
    assert "left out" in together(2, *call, "--states", 100000, "--model", "s2")  # after the 5 of base
    assert content("s1") == content("s2")

    # Stopped after iterations on two ranks, finished on four, and on one without mpirun.
    call = ["fit", "--counts", "whole", *base]
    for ranks in (4, 1):
        together(2, *call, "--model", "resumed", "--iterations", 2)
        if ranks > 1:
            together(ranks, *call, "--model", "resumed", "--resume")
        else:
            run(*call, "--model", "resumed", "--resume", "--threads", 1)
        assert content("resumed") == content("counts0"), ranks
    together(2, *call, "--model", "resumed", "--resume", "--shards", 6, fails=True, says="begun with --shards 4")
    together(4, *call, "--model", "x", "--shards", 2, fails=True, says="--shards is 2, expected at least the 4 ranks")
    together(2, *call, "--model", "x", "--states", 100000, fails=True, says="states")


def check_fit_stopped():
    """One rank is killed, or asked to end, in subspace identification and in EM: the others end, and a resumed fit has the same bits."""
    call = ["fit", "--counts", "whole", "--states", 60, "--ssid-lags", 3, "--em-lags", 5, "--iterations", 12,
            "--checkpoint-seconds", 0]
    run(*call, "--model", "long", "--shards", 4, "--threads", 1)
    for state in ("cut2.ssid", "cut2"):
        for number in (signal.SIGKILL, signal.SIGTERM):
            out = cut_short(number, 2, [PROGRAM, *call, "--model", "cut2"], MPIRUN, "cut2", lambda: os.path.exists(state))
            assert number == signal.SIGKILL or "Interrupted" in out, out
            together(4, *call, "--model", "cut2", "--resume")
            assert content("cut2") == content("long"), (state, number)


def check_alone():
    """Commands of one process: several ranks are refused before anything is written, one is none too many."""
    calls = [["embed", "--model", "counts0", "--types", "alone"], ["inspect", "--model", "counts0"],
             ["near", "--model", "counts0", "w1"],
             ["tag", "--model", "counts0", "--train", "small", "--dev", "small", "--test", "small", "--predictions", "alone"],
             ["rnn", "--train", "small", "--valid", "small", "--save", "alone", "--log", "alone.csv"],
             ["start", "--model", "counts0", "--out", "alone"], ["plot", "--systems", "counts0", "--svg", "alone"]]
    for call in calls:
        before = sorted(os.listdir("."))
        said = together(2, *call, fails=True, says=f"{call[0]}: found 2 ranks that mpirun has started, expected one process")
        assert not said and sorted(os.listdir(".")) == before, (call, said)
    assert "singular" in together(1, "inspect", "--model", "counts0")


with tempfile.TemporaryDirectory(prefix="isogloss_ranks_") as place:
    os.chdir(place)
    dice = random.Random(7)
    text = ["w0"]
    for t in range(300_000):  # every third word by itself, the others near the one before
        text.append(f"w{int(1000 ** dice.random())}" if t % 3 == 0 else f"w{(int(text[-1][1:]) + dice.randrange(5)) % 1000}")
    write("text", text)
    write("small", text[:5000])
    check_counts()
    check_counts_stopped()
    check_fit()
    check_alone()
    check_fit_stopped()
    os.chdir("/")
print("ranks count and fit as one process does, and leave the rest to one")
