"""recipes.py on a tiny corpus: what a preset costs and reaches, alone and adapted; what it writes down, shows and refuses."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from program import PROGRAM, Folder, read, rows, run, sentences, write
from stand_in import stand_in

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SCRIPT = os.path.join(SOURCES, "programs", "language_model", "recipes.py")
HEADER = "recipe,corpus,seed,core_hours,valid,test,adaptation"
TINY = "--units 8 --batch 4 --bptt 10 --epochs 3".split()
RMS = "--dynamic rms --dynamic-steps 20 --dynamic-rate 0.00014 --dynamic-text ptb/ptb.train.txt".split()
CALL = ["run", "fast", "--program", PROGRAM, "--folder", "f"]


def recipes(*arguments, status=0, **environment):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == status, f"{arguments}\nstatus {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
    return done.stderr if status else done.stdout


def fails(*arguments, says, **environment):
    """A run that fails: what was the matter is in the output."""
    done = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert done.returncode == 1 and done.stderr.startswith("recipes.py: 1 of 1 runs failed"), done
    assert all(part in done.stdout for part in says), done


def refuses(*arguments, says, **environment):
    error = recipes(*arguments, status=1, **environment)
    assert error.startswith("recipes.py: ") and error.count("\n") == 1, error
    for part in says:
        assert part in error, (part, error)


def trained():
    """The lines of a preset are the figures of the program by itself; what is there is not done again."""
    recipes(*CALL, "--adaptations", "none", "--", *TINY)
    before = read("f/recipes.csv")
    out = recipes(*CALL, "--", *TINY)
    assert read("f/recipes.csv").startswith(before) and "none" not in out, out
    lines = {line["adaptation"]: line for line in rows("f/recipes.csv")}
    assert list(lines) == ["none", "cache", "rms", "rms+cache"], lines
    hours = sum(float(row["cpu_seconds"]) for row in rows("f/fast-ptb-1.csv")) / 3600
    assert abs(float(lines["none"]["core_hours"]) - hours) < 1e-4
    assert all(float(lines[a]["core_hours"]) >= float(lines["none"]["core_hours"]) for a in lines)

    run("train", "--corpus", "ptb", "--preset", "fast", "--seed", 1, "--threads", 1, *TINY, "--model", "alone")
    assert read("alone") == read("f/fast-ptb-1.safetensors")
    for part, name in ("valid", "valid"), ("test", "test"):
        printed = run("evaluate", "--model", "alone", "--text", f"ptb/ptb.{part}.txt").stdout
        assert f"perplexity {float(lines['none'][name]):.2f} " in printed, (printed, lines)
        printed = run("evaluate", "--model", "alone", "--text", f"ptb/ptb.{part}.txt", *RMS).stdout
        assert f"perplexity {float(lines['rms'][name]):.2f} " in printed, (printed, lines)
    best, of_both = (line for line in read("f/fast-ptb-1.out").decode().splitlines() if '"best"' in line)
    options = json.loads(of_both)["best"]["options"]
    assert "--cache-weight" in options and "--dynamic-rate 0.00014" in options and "--dynamic-text f/ptb-train8000.txt" in options, options
    for part, name in ("valid", "valid"), ("test", "test"):
        printed = run("evaluate", "--model", "alone", "--text", f"ptb/ptb.{part}.txt", *options.split()).stdout
        assert f"perplexity {float(lines['rms+cache'][name]):.2f} " in printed, (printed, lines)
    assert f'"perplexity":{float(lines["cache"]["valid"]):.2f}'[:-1] in best.replace(" ", ""), (best, lines)
    assert recipes(*CALL, "--", *TINY) == "fast on ptb, seed 1: finished\n"


def shown():
    """The table of the page, and the figure."""
    write("r.csv", f"{HEADER}\nfast,ptb,1,0.5000,100.04,97.26,none\nfast,ptb,2,0.6000,101,98,none\nfast,ptb,1,0.5500,90,88,cache\n")
    page = os.path.join(SOURCES, "docs", "lab", "language_model_results.md")
    recipes("report", "--check")  # of the project, with its own results
    shutil.copy(page, "page.md")
    refuses("report", "--check", "--page", "page.md", "--results", "r.csv", says=["are not those of 'r.csv'", "recipes.py report"])
    write("r.options.csv", "recipe,corpus,seed,adaptation,options\n" + "".join(f"fast,ptb,{seed},none,--precision bf16\n" for seed in (1, 2)))
    recipes("report", "--page", "page.md", "--results", "r.csv")
    assert "| fast | ptb | none | 2 | 100.5 (100.0 … 101.0) | 97.6 (97.3 … 98.0) | 0.55 (0.50 … 0.60) | `--precision bf16` |\n" \
           "| fast | ptb | cache | 1 | 90.0 | 88.0 | 0.55 | options that were not recorded |\n" in read("page.md").decode()
    recipes("report", "--page", "page.md")
    assert read("page.md") == read(page), "the rest of the page is not as it was"
    refuses("report", "--page", "page.md", "--results", "mistyped.csv", says=["found no file 'mistyped.csv', expected results of run. Correct --results"])
    recipes("figure", "--results", "r.csv", "--svg", "r.svg")
    svg = read("r.svg").decode()
    assert "<svg" in svg and "fast, none" in svg and "fast, cache" in svg, svg[:300]
    write("log.csv", "run,epoch,valid_perplexity,cpu_seconds\n1,1,200,1800\n1,2,150,1800\n")
    for results, name in ("r.csv", "both.svg"), ("none.csv", "alone.svg"):
        write("none.csv", HEADER + "\n")
        recipes("figure", "--results", results, "--curve", "a peer=log.csv", "--svg", name)
        svg = read(name).decode()
        assert "a peer, validation by epoch" in svg and ("fast, none" in svg) == (results == "r.csv"), svg[:300]
    recipes("figure", "--results", "r.csv", "--point", "a peer: test=0.9,96.5", "--svg", "point.svg")
    assert "a peer: test" in read("point.svg").decode()
    write("empty.csv", "run,epoch,valid_perplexity,cpu_seconds\n")
    refuses("figure", "--results", "r.csv", "--curve", "x=r.csv", "--svg", "x.svg", says=["in 'r.csv'", "expected a log"])
    refuses("figure", "--results", "r.csv", "--curve", "x=empty.csv", "--svg", "x.svg", says=["no epoch in 'empty.csv'"])
    refuses("figure", "--results", "r.csv", "--svg", "r.csv", says=["--svg 'r.csv'", "left unchanged"])
    refuses("figure", "--results", "r.csv", "--corpus", "wikitext-2", "--svg", "w.svg", says=["no result on wikitext-2"])


def refused():
    """Wrong results, programs and options; a run that fails."""
    write("wrong.csv", "a,b\n")
    refuses("report", "--page", "page.md", "--results", "wrong.csv", says=["found the first line 'a,b'", HEADER])
    refuses("run", "fast", "--program", "nowhere", says=["found no program 'nowhere'"])
    refuses("run", "fast", "--corpus", "wikitext-2", "--program", PROGRAM, says=["found no text", "ISOGLOSS_DATA"])
    fails(*CALL, "--folder", "g", "--", "--units", "0", says=["train ended with status 1", "--units is 0, expected"])
    for option in ["--seed", "7"], ["--precision=bf16"], ["--test", "x"]:
        refuses(*CALL, "--", *option, says=[f"found {option[0]} after --", "set for each run"])
    before = read("f/fast-ptb-1.safetensors"), read("f/recipes.csv"), read("f/fast-ptb.options.txt")
    refuses(*CALL, "--seeds", "2", "--", *TINY, "--keep", "0.5", says=["--keep 0.5", "'f/fast-ptb.options.txt'", "another --folder"])
    write("f/recipes.csv", HEADER + "\n")
    os.rename("f/fast-ptb-1.safetensors.train", "away")
    refuses(*CALL, "--", *TINY, says=["found 'f/fast-ptb-1.safetensors' without", "fast-ptb-1.safetensors.train'"])
    os.rename("away", "f/fast-ptb-1.safetensors.train")
    write("f/recipes.csv", before[1])
    assert before == (read("f/fast-ptb-1.safetensors"), read("f/recipes.csv"), read("f/fast-ptb.options.txt"))


def precision():
    """What auto is at the beginning holds for a folder and for the results; it is recorded with them."""
    call = ["run", "fast", "--program", stand_in(), "--adaptations", "none", "--results", "p.csv", "--folder"]
    recipes(*call, "p", STAND_IN_AUTO="fp32")
    assert read("p.csv").decode() == f"{HEADER}\nfast,ptb,1,0.0200,80.0000,80.0000,none\n"
    assert read("p.options.csv").decode() == "recipe,corpus,seed,adaptation,options\nfast,ptb,1,none,--precision fp32\n"
    before = sorted(os.listdir("p"))
    refuses(*call, "p", "--seeds", "2", STAND_IN_AUTO="bf16", says=["the runs in 'p' have the options --precision fp32", "--precision bf16"])
    refuses(*call, "q", "--seeds", "2", STAND_IN_AUTO="bf16", says=["fast ptb 1 none in 'p.csv' was made with --precision fp32",
                                                                    "have --precision bf16", "another --results"])
    assert sorted(os.listdir("p")) == before and os.listdir("q") == []
    recipes(*call, "q", "--seeds", "2", "--precision", "fp32", STAND_IN_AUTO="bf16")
    assert read("q/fast-ptb.options.txt") == b"--precision fp32\n" and len(rows("p.csv")) == 2
    assert "--precision fp32" in read("q/fast-ptb-2.out").decode().splitlines()[0]
    recipes("run", "fast", "--program", stand_in(), "--adaptations", "none", "--folder", "own", "--precision", "fp32")  # in its folder
    assert [line["recipe"] for line in rows("own/recipes.csv")] == ["fast"]
    os.remove("p.options.csv")
    refuses(*call, "q", "--seeds", "3", says=["fast ptb 1 none in 'p.csv' is not in it"])
    fails("run", "fast", "--program", stand_in(), "--folder", "i", "--results", "i.csv", STAND_IN_PERPLEXITY="inf",
          says=["found no finite perplexity on the validation text"])
    fails("run", "fast", "--program", stand_in(), "--folder", "i", "--results", "i.csv", STAND_IN_PERPLEXITY="none",
          says=["evaluate printed no JSON; see the end of 'i/fast-ptb-1.out'"])
    assert rows("i.csv") == []


def stopped():
    """Ctrl-C, which the terminal sends to the group, and SIGTERM, sent to the script alone: the training saves, and has ended."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where this test runs under nohup
    for number, send in (signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill), (signal.SIGHUP, os.kill):
        folder = f"stopped{int(number)}"
        process = subprocess.Popen([sys.executable, "-B", SCRIPT, "run", "fast", "--program", stand_in(), "--folder", folder, "--results", "s.csv"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env={**os.environ, "STAND_IN_WAITS": "1"})
        state = f"{folder}/fast-ptb-1.safetensors.train"
        while not (os.path.exists(state) and read(state)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        send(process.pid, number)
        out, error = process.communicate(timeout=30)
        assert process.returncode == 128 + number and error == "recipes.py: stopped; the same call continues\n", (process.returncode, out, error)
        assert read(state) == b"saved", "the training was ended before it had saved"


if __name__ == "__main__":
    with Folder():
        os.environ["ISOGLOSS_DATA"] = "."
        os.mkdir("ptb")
        for seed, (part, count) in enumerate([("train", 2000), ("valid", 100), ("test", 100)], 1):
            write(f"ptb/ptb.{part}.txt", sentences(count, seed))
        trained()
        shown()
        refused()
        precision()
        stopped()
