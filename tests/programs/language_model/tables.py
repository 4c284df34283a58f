"""tables.py on a tiny corpus: a table that is stopped and goes on, what it writes down, what it shows and what it refuses."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from program import PROGRAM, Folder, number, read, rows, run, sentences, write
from stand_in import stand_in

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SCRIPT = os.path.join(SOURCES, "programs", "language_model", "tables.py")
HEADER = "table,row,seed,epochs,valid,test,core_hours"
TINY = "--units 8 --batch 4 --bptt 10 --rate 0.3 --checkpoint-every 50 --epochs 9".split()
AWAY = [*TINY, "--rate", "3", "--epochs", "40", "--runaway", "1.0001"]  # at this rate some epoch is worse than the best
CALL = ["run", "ptb-small", "--program", PROGRAM, "--folder", "t", "--jobs", "2"]


def tables(*arguments, status=0, **environment):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == status, f"{arguments}\nstatus {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
    return done.stderr if status else done.stdout


def refuses(*arguments, says, **environment):
    error = tables(*arguments, status=1, **environment)
    assert error.startswith("tables.py: ") and error.count("\n") == 1, error
    for part in says:
        assert part in error, (part, error)


def stopped(arguments):
    """Sends SIGTERM when both trainings of two jobs have an epoch behind them; they save, and nothing is written down."""
    process = subprocess.Popen([sys.executable, "-B", SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    models = ["t/ptb-small-RE-1", "t/ptb-small-REAL-1"]
    while not all(os.path.exists(model + ".safetensors") for model in models):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and "the same call continues" in out, (process.returncode, out)
    for model in models:
        assert "Interrupted at epoch" in read(model + ".out").decode(), read(model + ".out")
        assert not os.path.exists(model + ".safetensors.lock"), "it is still running"
        assert 1 <= len(rows(model + ".csv")) < 9, rows(model + ".csv")
    assert read("t/tables.csv").decode() == HEADER + "\n"


def table():
    """A table that is stopped goes on, and ends with the models and figures of the program by itself."""
    arguments = [*CALL, "--rows", "RE", "REAL", "--seeds", "1", "--", *TINY]
    stopped(arguments)
    assert tables(*arguments).count("goes on") == 2
    assert read("t/tables.csv").decode().startswith(HEADER + "\n") and len(rows("t/tables.csv")) == 2
    for line, loss in zip(sorted(rows("t/tables.csv"), key=lambda line: line["row"]), ["ce", "al"], strict=True):
        model = f"t/ptb-small-{line['row']}-1"
        run("train", "--corpus", "ptb", "--preset", "small", "--head", "tied", "--loss", loss, "--seed", 1, *TINY, "--precision", "auto",
            "--epsilon", 1 / 256, "--threads", 1, "--model", "alone", "--overwrite")
        assert read("alone") == read(model + ".safetensors"), f"{model} is another model"
        log = rows(model + ".csv")
        assert [int(row["epoch"]) for row in log] == list(range(1, 10)) and len({row["run"] for row in log}) == 1, log
        assert (line["table"], line["seed"], line["epochs"]) == ("ptb-small", "1", "9"), line
        for part in "valid", "test":
            out = run("evaluate", "--model", "alone", "--text", f"ptb/ptb.{part}.txt", "--threads", 1).stdout
            assert float(line[part]) == number(r"\nperplexity ([0-9.]+)", out), (line, out)
        hours = sum(float(row["cpu_seconds"]) for row in log) / 3600
        assert abs(float(line["core_hours"]) - hours) <= 0.5001e-4 and hours > 1e-5, (line, hours)
        # One thread computes no longer than the clock runs, of which validation has a part, too.
        assert all(0 < float(row["cpu_seconds"]) < 2 * float(row["seconds"]) + 1 for row in log), log

    # What is finished is not run again.
    before = {name: read(os.path.join("t", name)) for name in sorted(os.listdir("t"))}
    assert tables(*arguments).count("finished, validation") == 2
    assert before == {name: read(os.path.join("t", name)) for name in sorted(os.listdir("t"))}


def refused():
    """What does not fit is one message; nothing is changed by it."""
    before = {name: read(os.path.join("t", name)) for name in sorted(os.listdir("t"))}
    one = [*CALL, "--rows", "RE", "--seeds", "1"]
    refuses(*one, "--program", "nowhere/language_model", says=["'nowhere/language_model'", "Build it (cmake --preset release -DISOGLOSS_PROGRAMS=ON &&"])
    refuses(*one, "--", "--model=x", says=["--model=x", "set for each run"])
    refuses(*one, "--", *TINY, "--keep", "0.5", says=["'t'", "--keep 0.5", "another --folder"])
    here, = re.match(rb"--precision (fp32|bf16) --epsilon 0.00390625 --units", read("t/ptb-small.options.txt")).groups()
    here = here.decode()
    other = "bf16" if here == "fp32" else "fp32"
    refuses(*one, "--precision", other, "--", *TINY, says=[f"--precision {here} --epsilon 0.00390625 --units", f"the given ones are --precision {other}"])
    refuses(*CALL, "--rows", "LSTM", says=["found --rows LSTM, expected rows of ptb-small: VD, AL, RE, REAL"])
    refuses("run", "ptb-cells", *CALL[2:], "--", "--units", "8", says=["found --units after --"])
    write("notes.csv", "notes,of,my own\n")
    refuses(*one, "--results", "notes.csv", "--", *TINY, says=["'notes,of,my own'", HEADER])
    write("twice.csv", f"{HEADER}\nptb-small,RE,1,2,3,4,5\nptb-small,RE,1,2,3,4,5\n")
    write("binary.csv", b"\xff\x00" * 9)
    refuses(*one, "--results", "binary.csv", "--", *TINY, says=["'binary.csv'", HEADER])
    write("long.csv", HEADER + "\n" + "x" * 200_000)
    refuses(*one, "--results", "long.csv", "--", *TINY, says=["line 2 of 'long.csv'"])
    refuses(*one, "--results", "twice.csv", "--", *TINY, says=["RE seed 1 again in line 3"])
    write("cut.csv", f"{HEADER}\nptb-small,RE,1,2,nan,4,5\n")
    refuses(*one, "--results", "cut.csv", "--", *TINY, says=["line 2", "'ptb-small,RE,1,2,nan,4,5'"])
    refuses("run", "wikitext-2-small", "--program", PROGRAM, says=["wikitext-2/train.txt", "ISOGLOSS_DATA"])
    assert before == {name: read(os.path.join("t", name)) for name in sorted(os.listdir("t"))}

    # Runs that fail: what was the matter, and the status.
    for folder, options, says in [("bad", ["--units", "0"], ["status 1; the last of", "--units is 0, expected"]),
                                  ("away", AWAY, ["status 3; the last of", "it has run away"])]:
        call = [*CALL, "--folder", folder, "--rows", "VD", "--seeds", "1", "--", *options]
        done = subprocess.run([sys.executable, "-B", SCRIPT, *call], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and all(part in done.stdout for part in says), done
        assert rows(f"{folder}/tables.csv") == []


def subspace():
    """Rows with a head of their own are trained with --subspace, which is recorded by epoch."""
    import math
    call = [*CALL, "--folder", "s", "--rows", "VD", "RE", "--seeds", "1"]
    tables(*call, "--", *TINY)
    assert read("s/tables.options.csv").decode().count("--subspace") == 0 and "--subspace" not in read("s/ptb-small-RE-1.out").decode()
    lines = rows("s/tables.subspace.csv")
    assert list(lines[0]) == "table,row,seed,epoch,distance".split(","), lines
    assert [(line["table"], line["row"], line["seed"], line["epoch"]) for line in lines] == [("ptb-small", "VD", "1", str(e)) for e in range(10)]
    start = number(r"\nsubspace .* softmax ([\d.]+) at the start", read("s/ptb-small-VD-1.out").decode())
    logged = [start, *(float(row["subspace_distance"]) for row in rows("s/ptb-small-VD-1.csv"))]
    assert all(abs(float(line["distance"]) - distance) < 1e-5 for line, distance in zip(lines, logged, strict=True)), (lines, logged)
    run("train", "--corpus", "ptb", "--preset", "small", "--head", "free", "--loss", "ce", *TINY, "--precision", "auto", "--epsilon", 1 / 256,
        "--threads", 1, "--model", "plain")
    assert read("plain") == read("s/ptb-small-VD-1.safetensors"), "the training is another with --subspace"

    out = tables("report", "--results", "s/tables.csv", "--print")
    cells = " | ".join(f"{float(lines[epoch]['distance']):.3f}" for epoch in (0, 1, 9))
    assert f"| table | row | seeds | start | first | last |\n|---|---|---|---|---|---|\n| ptb-small | VD | 1 | {cells} |\n" in out, out
    assert "| ptb-small | RE | 1 |" not in out and 0 < float(lines[0]["distance"]) <= 1 and not math.isnan(float(lines[9]["distance"]))
    # A line of a run that is not finished, or was removed, is not shown.
    write("s/tables.csv", HEADER + "\n")
    assert "distance" not in tables("report", "--results", "s/tables.csv", "--print")


def written_once():
    """A run that another call has finished meanwhile keeps the line it has."""
    write("r.csv", f"{HEADER}\nptb-small,AL,1,40,90.0,87.0,2.5\n")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tables_report import HEADER, RUN, append_result as f; print(" \
           "f('r.csv', HEADER, RUN, ['ptb-small', 'AL', 1, 41, 91, 88, 3]), f('r.csv', HEADER, RUN, ['ptb-small', 'AL', 11, 41, 91, 88, 3]))"
    done = subprocess.run([sys.executable, "-B", "-c", code, os.path.dirname(SCRIPT)], capture_output=True, text=True)
    assert done.stdout == "False True\n", done
    assert [(line["seed"], line["valid"]) for line in rows("r.csv")] == [("1", "90.0"), ("11", "91")]
    refuses(*CALL, "--folder", "row", "--", "--loss", "ce", says=["found --loss after --"])


def one_call_at_a_time():
    """A second call at a run that the first one evaluates leaves it alone: each would read the other's output."""
    call = [sys.executable, "-B", SCRIPT, "run", "ptb-small", "--printed", "--program", stand_in(), "--rows", "RE", "--seeds", "1", "--results",
            "both.csv", "--folder", "both"]
    first = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env={**os.environ, "STAND_IN_EVALUATES": "1"})
    out = "both/ptb-small-RE-1.out"
    while not os.path.exists(out) or b"$ language_model evaluate" not in read(out):
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    second = subprocess.run(call, capture_output=True, text=True, timeout=60, env={**os.environ, "STAND_IN_PERPLEXITY": "79"})
    assert second.returncode == 1 and f"found another call at this run, which writes '{out}'" in second.stdout, second
    first.communicate(timeout=60)
    assert first.returncode == 0 and read("both.csv").decode() == f"{HEADER}\nptb-small,RE,1,2,80,80,0.0200\n", read("both.csv")


def damaged():
    """A full disk leaves nothing half written."""
    # The limit of the size of a file stands for a full disk. What was there stays, and nothing is added.
    code = "import resource, signal, sys; sys.path.insert(0, sys.argv[1]); from tables_report import CHANGES, CHANGES_RUN, append_result as f\n" \
           "lines = [['ptb-small', 'REAL', 'x', '--epochs 9', 1, epoch, 90] for epoch in range(1, 10)]\n" \
           "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n" \
           "try: f('l.csv', CHANGES, CHANGES_RUN, *lines)\nexcept OSError as error: print(error)"
    before = "table,row,change,options,seed,epoch,valid\nptb-small,REAL,a,--epochs 1,1,1,123.44\n"
    write("l.csv", before)
    done = subprocess.run([sys.executable, "-B", "-c", code, os.path.dirname(SCRIPT)], capture_output=True, text=True)
    assert "File too large: 'l.csv'" in done.stdout and read("l.csv").decode() == before, (done, read("l.csv"))


def shown():
    """The tables of the page, and the curves."""
    write("r.csv", f"{HEADER}\n" + "".join(f"ptb-small,REAL,{seed},{39 + seed},{valid},{test},{hours}\n" for seed, valid, test, hours in
                                          [(1, 90.04, 87.26, 2.5), (2, 88, 85, 2.25), (3, 89.5, 86.5, 3)]))
    printed = tables("report", "--results", "r.csv", "--print")
    line = "| REAL | 86.3 | 82.7 | 89.5 (88.0 … 90.0) | 86.5 (85.0 … 87.3) | 3 | 41 (40 … 42) | 2.50 (2.25 … 3.00) |\n"
    assert line in printed and "| VD |" not in printed and "ptb-medium" not in printed, printed  # nothing of what has not been run

    write("x.csv", "table,row,change,options,seed,epoch,valid\nptb-small,REAL,wide,--units 9 --epochs 1,1,1,123.44\n")
    for command, name, own, text in (("report", "language_model_results.md", ["--results", "r.csv"], line),
                                     ("trials", "language_model_search.md", ["--changes", "x.csv"], "| ptb-small REAL | `--units 9` | 1 | 198.3 | 123.4 | 1 |\n")):
        page = os.path.join(SOURCES, "docs", "lab", name)
        tables(command, "--check")  # of the project, with its own results
        shutil.copy(page, "page.md")
        refuses(command, "--check", "--page", "page.md", *own, says=["are not those of", own[1], f"tables.py {command}"])
        assert read("page.md") == read(page)
        tables(command, "--page", "page.md", *own)
        assert text in read("page.md").decode()
        tables(command, "--check", "--page", "page.md", *own)
        tables(command, "--page", "page.md")
        assert read("page.md") == read(page), "the rest of the page is not as it was"
        write("page.md", "no markers\n")
        refuses(command, "--page", "page.md", says=["found 0 times"])

    # A mistyped name of results is no results without lines, with which the page would lose its tables.
    shutil.copy(os.path.join(SOURCES, "docs", "lab", "language_model_results.md"), "page.md")
    before = read("page.md")
    refuses("report", "--page", "page.md", "--results", "mistyped.csv", says=["found no file 'mistyped.csv', expected results of run. Correct --results"])
    for option, command in ("--results", "run"), ("--tuned", "tune"), ("--changes", "try"):
        refuses("trials", "--page", "page.md", option, "mistyped.csv", says=[f"found no file 'mistyped.csv', expected results of {command}. Correct {option}"])
    for name, own, shift in ("exact", "--epsilon 0", 0), ("sampled", "--epsilon 0.5", 1):
        write(f"{name}.csv", f"{HEADER}\n" + "".join(f"ptb-small,REAL,{seed},8,{90 + seed + shift},{80 + seed + shift},{1.5 - shift}\n" for seed in (1, 2, 3)))
        write(f"{name}.options.csv", "table,row,seed,options\n" + "".join(f"ptb-small,REAL,{seed},--precision fp32 {own} --keep 0.8\n" for seed in (1, 2, 3)))
    compare = ["compare", "ptb-small", "--results", "exact.csv", "sampled.csv"]
    compared = tables(*compare)
    assert compared == ("**ptb-small**, all with `--precision fp32 --keep 0.8`:\n\n"
                        "| results | row | options | validation | test | seeds | epochs | core-hours |\n|---|---|---|---|---|---|---|---|\n"
                        "| exact | REAL | `--epsilon 0` | 92.00 (91.00 … 93.00) | 82.00 (81.00 … 83.00) | 3 | 8 | 1.50 |\n"
                        "| sampled | REAL | `--epsilon 0.5` | 93.00 (92.00 … 94.00) | 83.00 (82.00 … 84.00) | 3 | 8 | 0.50 |\n"), compared
    write("page.md", "before\n<!-- tables.py compare writes from here -->\n<!-- tables.py compare: to here -->\nafter\n")
    refuses(*compare, "--page", "page.md", "--check", says=["are not those of 'exact.csv', 'sampled.csv'"])
    tables(*compare, "--page", "page.md")
    assert read("page.md").decode() == ("before\n<!-- tables.py compare writes from here -->\n" + compared + "<!-- tables.py compare: to here -->\nafter\n")
    tables(*compare, "--page", "page.md", "--check")
    refuses(*compare, "--check", says=["--check without --page"])
    refuses("compare", "ptb-medium", "--results", "exact.csv", says=["no finished run of ptb-medium in 'exact.csv'"])
    # Several tables, each of the results that have some of it.
    write("medium.csv", f"{HEADER}\nptb-medium,REAL,1,8,75,72,6\n")
    several = tables("compare", "ptb-small", "ptb-medium", "--results", "exact.csv", "sampled.csv", "medium.csv")
    assert several == compared + "\n" + tables("compare", "ptb-medium", "--results", "medium.csv"), several
    refuses("compare", "ptb-small", "ptb-medium", "--results", "exact.csv", says=["no finished run of ptb-medium in exact.csv", "leave the table out"])

    header = "table,row,seed,epoch,valid\n"
    expected = header + "".join(f"ptb-small,{name},1,{row['epoch']},{float(row['valid_perplexity'])}\n" for name in ["RE", "REAL"]
                                for row in rows(f"t/ptb-small-{name}-1.csv"))
    assert tables("curves", "ptb-small", "--folder", "t") == expected
    tables("curves", "ptb-small", "--folder", "t", "--csv", "c.csv", "--svg", "c.svg")
    assert read("c.csv").decode() == expected
    svg = read("c.svg").decode()
    assert "<svg" in svg and "RE, seed 1" in svg and "REAL, seed 1" in svg, svg[:300]
    tables("curves", "ptb-small", "--folder", "t", "--csv", "c.csv", "--svg", "c.svg")
    for option in "--csv", "--svg":
        refuses("curves", "ptb-small", "--folder", "t", option, "notes.csv", says=[f"{option} 'notes.csv'", "left unchanged"])
    refuses("curves", "ptb-medium", "--folder", "t", says=["ptb-medium-ROW-SEED.csv", "'t'"])

    # The curves that were recorded with the results, in the order of their recording.
    logs = {(row["row"], row["epoch"]): float(row["valid"]) for row in rows("c.csv")}
    recorded = {(row["row"], row["epoch"]): float(row["valid"]) for row in rows("t/tables.curves.csv")}
    assert read("t/tables.curves.csv").decode().startswith(header) and len(recorded) == 18 and recorded.keys() == logs.keys()
    assert all(abs(recorded[key] / logs[key] - 1) < 1e-5 for key in logs), (recorded, logs)
    tables("figure", "ptb-small", "--results", "t/tables.csv", "--svg", "f.svg")
    assert re.sub(r"[\d.]+", "", read("f.svg").decode()) == re.sub(r"[\d.]+", "", svg), "another figure than from the logs"
    write("t/tables.csv", "\n".join(line for line in read("t/tables.csv").decode().splitlines() if ",RE," not in line) + "\n")
    tables("figure", "ptb-small", "--results", "t/tables.csv", "--svg", "f.svg")
    assert "REAL, seed 1" in read("f.svg").decode() and "RE, seed 1" not in read("f.svg").decode(), "a run that is not finished"
    refuses("figure", "ptb-medium", "--results", "t/tables.csv", "--svg", "f.svg", says=["'t/tables.curves.csv'", "tables.py curves"])


def precision():
    """What auto is at the beginning holds for a folder, and for a table of the results; it is recorded with them."""
    call = ["run", "ptb-small", "--printed", "--program", stand_in(), "--results", "p.csv", "--folder"]
    tables(*call, "p", "--rows", "AL", "--seeds", "1", STAND_IN_AUTO="bf16")
    assert read("p.csv").decode() == f"{HEADER}\nptb-small,AL,1,2,80,80,0.0200\n"
    assert read("p.options.csv").decode() == "table,row,seed,options\nptb-small,AL,1,--precision bf16 --epsilon 0.00390625\n"
    assert read("p.curves.csv").decode() == "table,row,seed,epoch,valid\nptb-small,AL,1,1,90.5\nptb-small,AL,1,2,80.25\n"
    refuses(*call, "p", STAND_IN_AUTO="fp32", says=["the runs in 'p' have the options --precision bf16", "the given ones are --precision fp32"])
    refuses(*call, "q", STAND_IN_AUTO="fp32", says=["ptb-small AL 1 in 'p.csv' was made with --precision bf16", "another --results"])
    assert os.listdir("q") == []
    tables(*call, "q", "--rows", "AL", "--seeds", "2", "--precision", "bf16", STAND_IN_AUTO="fp32")
    tables("run", "ptb-medium", *call[2:], "m", "--rows", "AL", "--seeds", "1", STAND_IN_AUTO="fp32")  # another table may have another
    out = tables("report", "--results", "p.csv", "--print")
    assert "**ptb-small**, `--corpus ptb --preset small`, with `--precision bf16 --epsilon 0.00390625`:" in out, out
    assert "**ptb-medium**, `--corpus ptb --preset medium`, with `--precision fp32 --epsilon 0.00390625`:" in out, out
    # A run that is done again has its new curve and options only, and options may contain commas.
    write("p.csv", HEADER + "\n")
    tables("run", "ptb-small", *call[3:], "r", "--rows", "AL", "--seeds", "1", "--", "--units", "9,9")
    assert read("p.options.csv").decode().count("ptb-small,AL,1,") == 1 and '"--precision fp32 --epsilon 0.00390625 --units 9,9"' in \
        read("p.options.csv").decode() and read("p.curves.csv").decode().count("ptb-small,AL,1,") == 2
    tables("run", "ptb-small", *call[3:], "r", "--rows", "AL", "--seeds", "1", "--", "--units", "9,9")
    for p in "inf", "nan":
        done = subprocess.run([sys.executable, "-B", SCRIPT, *call[:-3], "--results", "i.csv", "--folder", p, "--rows", "VD", "--seeds", "1"],
                              capture_output=True, text=True, env={**os.environ, "STAND_IN_PERPLEXITY": p})
        assert done.returncode == 1 and "found no finite perplexity on the valid" in done.stdout and rows("i.csv") == [], done


def recipe():
    """A table is made with the recipe that gives its figures, with --printed without it, and with options after -- without it too."""
    call = ["run", "ptb-small", "--program", stand_in(), "--rows", "RE", "REAL", "--seeds", "1", "--precision", "fp32", "--results", "w.csv", "--folder"]
    tables(*call, "w")
    options = {line["row"]: line["options"] for line in rows("w.options.csv")}
    assert options["RE"] == options["REAL"] and options["RE"].endswith("--temperature 10 --schedule one-cycle --warm-up 0.05 --epochs 38"), options
    for row, has in ("RE", False), ("REAL", True):  # the temperature is one of the augmented loss
        made = read(f"w/ptb-small-{row}-1.out").decode().splitlines()[0]
        assert made.endswith("--keep-output 0.75 " + "--temperature 10 " * has + "--schedule one-cycle --warm-up 0.05 --epochs 38"), made
    assert tables(*call, "w").count("finished, validation") == 2
    os.mkdir("wikitext-2")
    for part in "train", "valid", "test":
        shutil.copy(f"ptb/ptb.{part}.txt", f"wikitext-2/{part}.txt")
    for table, keep, epochs in (("ptb-small", (0.8, 0.75, 0.85, 0.75), 38), ("ptb-medium", (0.7, 0.65, 0.75, 0.55), 48),
                                ("wikitext-2-small", (0.85, 0.8, 0.9, 0.8), 30)):
        tables("run", table, *call[2:4], "--rows", "REAL", "--seeds", "1", "--folder", f"w-{table}")
        made = read(f"w-{table}/{table}-REAL-1.out").decode().splitlines()[0]
        places = " ".join(f"--keep-{place} {p}" for place, p in zip(("input", "state", "between", "output"), keep, strict=True))
        assert made.endswith(f" --scheme recurrent {places} --temperature 10 --schedule one-cycle --warm-up 0.05 --epochs {epochs}"), made
    tables("run", "ptb-cells", *call[2:4], "--seeds", "1", "--folder", "w-cells")
    for row in "LSTM", "RHN":
        made = read(f"w-cells/ptb-cells-{row}-1.out").decode().splitlines()[0]
        assert made.endswith(" --keep 0.78 --schedule one-cycle --warm-up 0.05 --epochs 38"), made
    refuses(*call, "w2", "--printed", says=["was made with --precision fp32 --epsilon 0.00390625 --scheme", "another --results"])
    refuses(*call, "w2", "--printed", "--", "--clip", "9", says=["found --printed and options after --"])
    write("w.csv", HEADER + "\n")
    for folder, more in ("w3", ["--printed"]), ("w4", ["--", "--clip", "9"]):
        write("w.csv", HEADER + "\n")
        tables(*call, folder, *more)
        made = read(f"{folder}/ptb-small-REAL-1.out").decode().splitlines()[0]
        assert made.endswith("--resume" + " --clip 9" * (more[0] == "--")), made


def cells():
    """The rows of ptb-cells have the parameters that the page says, within 1 % of each other, on a text of 10,000 types."""
    os.makedirs("types/ptb")
    words = [f"w{i}" for i in range(9998)]  # and <unk>, <eos>
    write("types/ptb/ptb.train.txt", "".join(" ".join(words[i:i + 50]) + "\n" for i in range(0, 9998, 50)))
    for part in "valid", "test":
        write(f"types/ptb/ptb.{part}.txt", "w1 w2 w3\n" * 20)
    tables("run", "ptb-cells", *CALL[2:], "--folder", "cells", "--seeds", "1", "--", "--epochs", "1", "--train-tokens", "0:1000", ISOGLOSS_DATA="types")
    counts = {}
    for row, cell in ("LSTM", "2 x 200 lstm"), ("RHN", "1 x 200 rhn"):
        printed = re.search(r"\nmodel +(.*), ([\d,]+) parameters", read(f"cells/ptb-cells-{row}-1.out").decode())
        assert printed and printed[1].startswith(cell) and "tied head with a bias, loss ce" in printed[1], printed
        counts[row] = printed[2]
    small, large = sorted(int(count.replace(",", "")) for count in counts.values())
    assert large <= 1.01 * small, counts
    out = tables("report", "--results", "cells/tables.csv", "--print")
    for row, count in counts.items():
        assert re.search(rf"\| {row} \| {count} \| [\d.]+ \| [\d.]+ \| 1 \| 1 \|", out), (counts, out)


def tuned():
    """tune compares gammas on the validation text alone, and records them in a file of their own."""
    call = ["tune", *CALL[1:], "--folder", "gammas", "--gamma", "0.8", "0.5", "--epochs", "2", "--", *TINY[:-2]]
    out = tables(*call)
    lines = rows("gammas/gamma.csv")
    assert list(lines[0]) == "table,row,gamma,seed,epochs,valid".split(","), lines
    assert sorted((line["row"], line["gamma"], line["seed"], line["epochs"]) for line in lines) == [("REAL", g, "1", "2") for g in ("0.5", "0.8")]
    assert not os.path.exists("gammas/tables.csv")
    best = min(lines, key=lambda line: float(line["valid"]))["gamma"]
    assert out.endswith(f"ptb-small REAL after 2 epochs: the best of 2 gammas on validation is {best}\n"), (out, lines)
    for line in lines:
        base = f"gammas/ptb-small-REAL-gamma{line['gamma']}-epochs2-1"
        assert "ptb.test.txt" not in read(base + ".out").decode() and len(rows(base + ".csv")) == 2
        printed = run("evaluate", "--model", base + ".safetensors", "--text", "ptb/ptb.valid.txt", "--threads", 1).stdout
        assert float(line["valid"]) == number(r"\nperplexity ([0-9.]+)", printed)
    run("train", "--corpus", "ptb", "--preset", "small", "--gamma", 0.8, *TINY, "--epochs", 2, "--precision", "auto", "--epsilon", 1 / 256,
        "--threads", 1, "--model", "gamma")
    assert read("gamma") == read("gammas/ptb-small-REAL-gamma0.8-epochs2-1.safetensors")
    again = tables(*call)
    assert again.count("finished, validation") == 2 and "goes on" not in again, again
    write("none.csv", HEADER + "\n")
    out = tables("trials", "--results", "none.csv", "--tuned", "gammas/gamma.csv", "--print")
    assert f"\n| {best} (best) | " in out and "ptb-small REAL after 2 epochs, with `--precision" in out, out
    refuses(*call, "--epochs", "1", says=["found --epochs after --"])
    # The best is that of the lowest median over the seeds, for each number of epochs.
    write("g.csv", "table,row,gamma,seed,epochs,valid\n" + "".join(f"ptb-small,REAL,{gamma},{seed},{epochs},{valid}\n" for gamma, seed, epochs, valid in [
        (0.5, 1, 12, 91), (0.5, 2, 12, 80), (0.5, 3, 12, 92), (0.65, 1, 12, 90), (0.8, 1, 12, 93), (0.8, 1, 2, 200), (0.5, 1, 2, 210)]))
    out = tables("trials", "--results", "none.csv", "--tuned", "g.csv", "--print")
    assert "| 0.5 | 91.0 (80.0 … 92.0) | 3 |\n| 0.65 (best) | 90.0 | 1 |\n| 0.8 | 93.0 | 1 |\n" in out, out
    assert "REAL after 2 epochs, with options that were not recorded" in out and "| 0.5 | 210.0 | 1 |\n| 0.8 (best) | 200.0 | 1 |\n" in out, out
    out = tables("tune", "ptb-small", "--program", stand_in(), "--folder", "g2", "--results", "g2.csv", "--gamma", "0.5", "--epochs", "2")
    out = tables("tune", "ptb-small", "--program", stand_in(), "--folder", "g2", "--results", "g2.csv", "--gamma", "0.8", "--epochs", "2",
                 STAND_IN_PERPLEXITY="79")
    assert out.endswith("the best of 2 gammas on validation is 0.8\n"), out
    refuses(*call, "--clip", "9", says=["another --folder"])


def changed():
    """try trains a row with one thing changed, on the validation text alone, and shows its curve beside that of the row."""
    call = ["try", *CALL[1:], "--folder", "x", "--row", "REAL", "--seeds", "1", "--epochs", "3", "--results", "x.csv", "--plain", "t/tables.csv", "--jobs", "1"]  # in this order
    ends = ["--", *TINY[:-2]]
    changes = ["--change", "gamma0.8=--gamma 0.8", "--change", "two=--keep 0.9 --units '9,8'"]
    out = tables(*call, *changes, *ends)
    lines = rows("x.csv")
    assert list(lines[0]) == "table,row,change,options,seed,epoch,valid".split(","), lines
    assert sorted((line["change"], line["options"], line["seed"], line["epoch"]) for line in lines) == [
        *(("gamma0.8", "--gamma 0.8 --epochs 3", "1", str(e)) for e in (1, 2, 3)), *(("two", "--keep 0.9 --units 9,8 --epochs 3", "1", str(e)) for e in (1, 2, 3))]
    for name in "gamma0.8", "two":
        base = f"x/ptb-small-REAL-{name}-epochs3-1"
        assert "ptb.test.txt" not in read(base + ".out").decode() and "language_model evaluate" not in read(base + ".out").decode()
        for line, row in zip([line for line in lines if line["change"] == name], rows(base + ".csv"), strict=True):
            assert abs(float(line["valid"]) / float(row["valid_perplexity"]) - 1) < 1e-5, (line, row)
    run("train", "--corpus", "ptb", "--preset", "small", *TINY, "--units", "9,8", "--keep", 0.9, "--epochs", 3, "--precision", "auto",
        "--epsilon", 1 / 256, "--threads", 1, "--model", "two")
    assert read("two") == read("x/ptb-small-REAL-two-epochs3-1.safetensors"), "a change is not what the options give"
    recorded = rows("x.options.csv")
    assert list(recorded[0]) == "table,row,change,seed,options".split(",") and len(recorded) == 2 and "--units 8 " in recorded[0]["options"]
    plain = {int(row["epoch"]): float(row["valid"]) for row in rows("t/tables.curves.csv") if row["row"] == "REAL"}
    table = ["| change | options | 1 | 3 | seeds |", "|---|---|---|---|---|", "| the row as it is |  |" + f" {plain[1]:.1f} | {plain[3]:.1f} | 1 |"]
    for name, options in ("gamma0.8", "--gamma 0.8"), ("two", "--keep 0.9 --units 9,8"):
        curve = {line["epoch"]: float(line["valid"]) for line in lines if line["change"] == name}
        table.append(f"| {name} | `{options}` | {curve['1']:.1f} | {curve['3']:.1f} | 1 |")
    made = rows("t/tables.options.csv")[0]["options"]  # has --epochs 9 after --, which its line says
    table[2] = table[2].replace("|  |", f"| `{made}` |")
    assert out.endswith("\n" + "\n".join(table) + "\n"), (out, table)
    assert "ptb-small REAL with one change, 3 epochs, with `--precision" in out, out
    printed = tables("trials", "--results", "t/tables.csv", "--changes", "x.csv", "--print")
    last = {line["change"]: float(line["valid"]) for line in lines if line["epoch"] == "3"}
    table_at_end = ["| row | options of the change | epochs | as it is | changed | seeds |", "|---|---|---|---|---|---|",
                    *(f"| ptb-small REAL | `{options}` | 3 | {plain[3]:.1f} | {last[name]:.1f} | 1 |"
                      for name, options in (("gamma0.8", "--gamma 0.8"), ("two", "--keep 0.9 --units 9,8")))]
    assert printed.endswith("\n" + "\n".join(table_at_end) + "\n"), printed
    write("none.csv", HEADER + "\n")
    assert "| 3 | – | " in tables("trials", "--results", "none.csv", "--changes", "x.csv", "--print")

    again = tables(*call, *changes, *ends)
    assert again.count("finished, validation") == 2 and "goes on" not in again and again.endswith("\n".join(table) + "\n"), again
    assert rows("x.csv") == lines
    # A name stands for one set of options.
    refuses(*call, "--change", "two=--keep 0.8", *ends, says=["found the change two with the options --keep 0.9 --units 9,8 --epochs 3 in 'x.csv', and now "
                                                              "with --keep 0.8 --epochs 3", "another name"])

    # Several seeds, numbers of epochs and rows, by the program that takes the place of a training.
    call = ["try", "ptb-small", "--program", stand_in(), "--folder", "y", "--results", "y.csv", "--plain", "y0.csv"]
    tables("run", "ptb-small", "--printed", *call[2:4], "--folder", "y", "--results", "y0.csv", "--rows", "VD", "--seeds", "1")
    out = tables(*call, "--row", "VD", "--change", "as-it-was=", "--change", "b=--keep 1", "--epochs", "2", "--seeds", "1", "2")
    assert "| change | options | 1 | 2 | seeds |\n|---|---|---|---|---|\n| the row as it is |  | 90.5 | 80.2 | 1 |\n| as-it-was |  | 90.5 | 80.2 | 2 |\n" \
           "| b | `--keep 1` | 90.5 | 80.2 | 2 |\n" in out, out
    out = tables(*call, "--row", "VD", "--change", "c=--keep 1", "--epochs", "12")
    assert "VD with one change, 2 epochs" in out and "VD with one change, 12 epochs" in out and "| change | options | 1 | 5 | 10 | 12 | seeds |" in out, out
    # The bias that a row names goes with its head: the program refuses it with a free one, which always has one.
    tables(*call, "--row", "REAL", "--change", "free=--head free", "--epochs", "2")
    begun = read("y/ptb-small-REAL-free-epochs2-1.out").decode().splitlines()[0]
    assert "--head tied" in begun and "--head free" in begun and "--head-bias" not in begun, begun
    assert "--subspace" not in read("y/ptb-small-VD-b-epochs2-1.out").decode() + read("y/ptb-small-VD-c-epochs12-1.out").decode()


if __name__ == "__main__":
    with Folder():
        os.environ["ISOGLOSS_DATA"] = "."
        os.mkdir("ptb")
        for seed, (part, count) in enumerate([("train", 4000), ("valid", 100)], 1):
            write(f"ptb/ptb.{part}.txt", sentences(count, seed))
        write("ptb/ptb.test.txt", "".join(" ".join(line.split()[::-1]) + "\n" for line in sentences(100, 3).splitlines()))
        table()
        refused()
        subspace()
        written_once()
        one_call_at_a_time()
        damaged()
        changed()  # before shown(), which removes a line of the results
        shown()
        precision()
        recipe()
        cells()
        tuned()
