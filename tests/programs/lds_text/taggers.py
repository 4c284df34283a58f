"""tables.py of lds_text with taggers of a moment: a table that goes on, pages made from it, and what it refuses."""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "programs", "lds_text", "tables.py")


def run(*arguments, status=0):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, (arguments, done)
    return done.stderr if status else done.stdout


def sentences(count, seed):
    """Words and tags of a small grammar in which a name and a noun may have one spelling."""
    state = seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        a, b = (state >> 16) % 4, (state >> 20) % 4
        yield [("the", "DET", "O"), ("cat dog king rose".split()[a], "NOUN", "O"), ("sees", "VERB", "O"),
               ("Ann Bob Eve Rose".split()[b], "PROPN", "I-PER"), (".", "PUNCT", "O")]


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def rows():
    with open("tags.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def corpora():
    for seed, (conllu, conll) in enumerate([("train", "train"), ("dev", "testa"), ("test", "testb")]):
        text = list(sentences(120 if seed == 0 else 30, seed + 1))
        write(f"data/ud-english-ewt/en_ewt-ud-{conllu}.conllu",
              "".join("".join(f"{i + 1}\t{w}\t{w}\t{t}\n" for i, (w, t, _) in enumerate(s)) + "\n" for s in text))
        write(f"data/conll-2003/eng.{conll}", "".join("".join(f"{w} {t} X {e}\n" for w, t, e in s) + "\n" for s in text))
    write("text", "".join(" ".join(w for w, _, _ in s) + "\n" for s in sentences(300, 7)))
    write("w2v", "the 1 0\ncat 0 1\nsees 1 1\nAnn 0 2\n")
    for model, iterations in ("m.lds", 3), ("s.lds", 0):
        subprocess.run([PROGRAM, "fit", "--train", "text", "--model", model, "--states", "3", "--ssid-lags", "2", "--em-lags", "3", "--iterations",
                        str(iterations), "--threads", "1"], check=True, capture_output=True, timeout=120)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    corpora()
    base = ["--results", "tags.csv", "--data", "data", "--epochs", 2]
    few = [PROGRAM, *base, "--seeds", 1, "--corpora", "ewt", "--features", "words", "smoother"]
    run(*few, "--system", "m.lds")
    assert [(r["corpus"], r["features"], r["seed"]) for r in rows()] == [("ewt", "words", "1"), ("ewt", "smoother", "1")], rows()
    before = rows()
    out = run(PROGRAM, *base, "--seeds", 1, "--system", "m.lds", "--ssid", "s.lds", "--word2vec", "w2v")
    assert rows()[:2] == before and len(rows()) == 22, rows()
    for r in rows():
        reference = {"words": "", "smoother": ""}.get(r["features"], "words" if r["features"].startswith("words") else "smoother")
        assert r["against"] == reference and bool(r["p"]) == bool(reference), r
        assert 0 <= float(r["dev"]) <= 100 and 0 <= float(r["test"]) <= 100 and (not r["p"] or 0 < float(r["p"]) <= 1), r
    assert out.count("| words, types |") == 2 and "accuracy" in out and "F1" in out, out

    # two calls at once add to one table
    both = [PROGRAM, "--results", "both.csv", "--data", "data", "--epochs", 1, "--corpora", "ewt", "--features", "words", "smoother", "--system", "m.lds"]
    at_once = [subprocess.Popen([sys.executable, "-B", SCRIPT, *map(str, both), "--seeds", str(seed)], stdout=subprocess.DEVNULL) for seed in (1, 2)]
    assert [process.wait(timeout=300) for process in at_once] == [0, 0]
    with open("both.csv", newline="", encoding="utf-8") as file:
        made = sorted((r["features"], r["seed"]) for r in csv.DictReader(file))
    assert made == [("smoother", "1"), ("smoother", "2"), ("words", "1"), ("words", "2")], made

    # all is there: nothing runs, not even a program; pages are made from the file
    whole = rows()
    assert run("/nonexistent/lds_text", *base, "--seeds", 1, "--system", "m.lds", "--word2vec", "w2v") == out and rows() == whole
    assert run("--results", "tags.csv") == out
    run("--results", "tags.csv", "--page", "page.md")
    run("--results", "tags.csv", "--page", "page.md", "--check")
    with open("page.md", encoding="utf-8") as file:
        made = file.read()
    assert out.strip() in made, made
    with open("tags.csv", encoding="utf-8") as file:
        write("tags.csv", "".join(file.readlines()[:-1]))
    assert "'page.md' is not made from 'tags.csv'" in run("--results", "tags.csv", "--page", "page.md", "--check", status=1)
    assert open("page.md", encoding="utf-8").read() == made  # --check writes nothing

    # the page says which features have a window, and what is noted of the files
    assert '"words, types" and "words, word2vec"\nhave those of the two neighbours' in made and "of 3 states" not in made, made
    run("--results", "tags.csv", "--page", "page.md", "--note", "Systems of 3 states.")
    with open("page.md", encoding="utf-8") as file:
        made = file.read()
    assert "\nSystems of 3 states.\n\n|" in made and json.loads(content("tags.csv.inputs"))["note"] == "Systems of 3 states.", made
    run("--results", "tags.csv", "--page", "page.md", "--check")

    # a reader that ends early is no error
    shown = subprocess.Popen([sys.executable, "-B", SCRIPT, "--results", "tags.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shown.stdout.close()
    assert shown.stderr.read() == b"" and shown.wait(timeout=60) != 1, shown.returncode

    # other files are not the table's, and are left as they are
    write("notes", "notes of my own\n")
    for arguments in (["--results", "notes"], ["--results", "tags.csv", "--page", "notes"], ["--results", "tags.csv", "--page", "notes", "--check"]):
        assert "left unchanged" in run(*arguments, status=1) and content("notes") == "notes of my own\n", arguments
        assert "left unchanged" in run(PROGRAM, *base, *arguments, status=1) and content("notes") == "notes of my own\n", arguments
    assert "there is no page 'none.md'" in run("--results", "tags.csv", "--page", "none.md", "--check", status=1)

    # SIGTERM ends the tagger that runs too
    write("slow", "#!/bin/sh\necho $$ > slow.part\nmv slow.part slow.pid\nexec sleep 60\n")
    os.chmod("slow", 0o755)
    running = subprocess.Popen([sys.executable, "-B", SCRIPT, "./slow", "--results", "slow.csv", "--data", "data", "--features", "words", "--seeds", "1"])
    until = time.time() + 60
    while not os.path.exists("slow.pid"):
        assert running.poll() is None and time.time() < until, running
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=60) == 143, running.returncode
    try:
        os.kill(int(content("slow.pid")), signal.SIGKILL)
        raise AssertionError("the tagger goes on")
    except ProcessLookupError:
        pass

    # what is asked for by name is made, or there is a message
    assert "Give --ssid" in run(PROGRAM, *base, "--features", "SSID smoother", "--corpora", "ewt", "--system", "m.lds", "--word2vec", "w2v", status=1)
    assert "'./nope' cannot be run" in run("./nope", "--results", "new.csv", "--data", "data", "--features", "words", "--seeds", 1, status=1)

    write("wrong.csv", content("tags.csv") + "ewt,words,1,many,90,,\n")
    assert "'ewt,words,1,many,90,,' in line" in run("--results", "wrong.csv", status=1)

    # a table goes on with what it was made with, or not at all; one without that list gets it
    again = [PROGRAM, "--results", "tags.csv", "--data", "data", "--seeds", 1, "--corpora", "ewt", "--features", "words", "filter"]
    for other, says in ((["--epochs", 3, "--system", "m.lds"], "--epochs 2, not 3"), (["--epochs", 2, "--system", "s.lds"], "another system")):
        assert says in run(*again, *other, status=1), says
    inputs = content("tags.csv.inputs")
    os.remove("tags.csv.inputs")
    run(*again, "--epochs", 2, "--system", "m.lds")
    made = json.loads(content("tags.csv.inputs"))
    assert made == {name: json.loads(inputs)[name] for name in ("epochs", "ewt", "system")}, made
    write("tags.csv.inputs", "[1, 2]")
    assert "left unchanged" in run(*again, status=1)
    os.remove("tags.csv.inputs")

    # a reference whose tags are missing is trained again, and a row that was never compared is
    before = rows()
    old = [r if r["features"] != "filter" else dict(r, against="", p="") for r in before]
    write("tags.csv", "\n".join([",".join(old[0]), *(",".join(f'"{v}"' for v in r.values()) for r in old)]) + "\n")
    os.remove("tags.csv.tags/ewt.smoother.1")
    assert "give --system" in run(PROGRAM, *base, "--seeds", 9, "--corpora", "ewt", "--features", "word2vec", "--word2vec", "w2v", status=1)
    run(PROGRAM, *base, "--seeds", 1, "--corpora", "ewt", "--features", "filter", "--system", "m.lds")
    assert [r for r in rows() if r["corpus"] == "ewt"] == [r for r in before if r["corpus"] == "ewt"] and os.path.exists("tags.csv.tags/ewt.smoother.1")
    write("p.csv", "corpus,features,seed,dev,test,against,p\newt,filter,1,90,90,,\newt,filter,2,90,91,smoother,0.5\n")
    assert "| filter | 90.50 | smoother | –, 0.5 | 90.00 |" in run("--results", "p.csv"), run("--results", "p.csv")

    assert "no results file 'none.csv'" in run("--results", "none.csv", status=1) and not os.path.exists("none.csv")
    assert "is not a table of this program" in run("--results", "text", status=1)

    # files that cannot be read or written, and a full disk, are one line each
    for script, calls in ((SCRIPT, [["--results", "."], ["--results", "tags.csv", "--page", "nowhere/p.md"], ["--results", "tags.csv"]]),
                          (SCRIPT.replace("tables.py", "rnn_table.py"), [["log", "--names", "a", "--page", "none.md"], [".", "--names", "a"],
                                                                         ["binary", "--names", "a"], ["log", "--names", "a"]])):
        write("log", "epoch,valid,test\n0,5,6\n")
        with open("binary", "wb") as file:
            file.write(b"\xb8\xff\n")
        for call in calls:
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([sys.executable, "-B", script, *call], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith(os.path.basename(script) + ": "), (call, done)
    write("empty.csv", "")
    error = run(PROGRAM, "--results", "empty.csv", "--data", "nowhere", "--seeds", 1, status=1)
    assert "nowhere" in error and "tag --format conllu" in error, error
    os.chdir("/")
print("passed")
