"""Sweeps a tiny model: near 1 at beta = 0, far less at beta = 1, the same table when resumed, held targets, errors."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "language_model"))

from program import Folder, guards_outputs, read, rows, run, sentences, write  # noqa: E402

BETAS = ["--text", "text.txt", "--units", 4, "--layers", 1, "--tokens", 2000, "--batch", 5, "--bptt", 10, "--betas", "0,1"]
SMALL = [*BETAS, "--taus", "2,10"]


def words(count):
    """A text of many words, so that two spaces of 4 dimensions are far apart by chance."""
    return "".join(f"w{i * i % 97} {line}" for i, line in enumerate(sentences(count).splitlines(True)))


def sweeps():
    write("text.txt", words(300))
    out = run(*SMALL, "--epochs", 8).stdout
    table = rows("subspace_distance.csv")
    last = {(r["sweep"], r["beta"], r["tau"]): float(r["distance"]) for r in table if r["epoch"] == "8"}
    assert len(table) == 4 * 9 and len(last) == 4, table
    assert last["beta", "0", "10"] > 0.7 and last["beta", "1", "10"] < 0.6 * last["beta", "0", "10"], last
    assert last["beta", "1", "10"] == last["tau", "1", "10"]  # one training, not two
    assert out.count("epoch 8:") == 3 and "sweep over" in out, out
    for r in table:
        assert (float(r["turn"]) == 0) == (r["epoch"] == "0"), r  # the table has moved since
        assert float(r["smallest_angle"]) <= float(r["median_angle"]) <= float(r["largest_angle"]) <= 90.001, r
    assert read("subspace_distance.svg").decode().rstrip().endswith("</svg>")


def holds():
    """Held targets train another table at beta = 1 and the same at beta = 0; several runs are summed up."""
    run(*BETAS, "--epochs", 2, "--sweep", "beta", "--csv", "free.csv", "--svg", "")
    out = run(*BETAS, "--epochs", 2, "--sweep", "beta", "--csv", "held.csv", "--svg", "", "--hold-target", "--runs", 3).stdout
    free, held = ({(r["beta"], r["run"], r["epoch"]): r["distance"] for r in rows(name)} for name in ("free.csv", "held.csv"))
    assert held["0", "0", "2"] == free["0", "0", "2"] and held["1", "0", "2"] != free["1", "0", "2"], held
    least, median, most = sorted(float(held["1", run, "2"]) for run in "012")
    assert f"1  distance of 3 runs: least {least:.4f}, median {median:.4f}, most {most:.4f}" in out, out


def resumes():
    before = read("subspace_distance.csv")
    assert "epoch" not in run(*SMALL, "--epochs", 8, "--resume").stdout
    assert read("subspace_distance.csv") == before
    write("empty.csv", "")  # counts as none
    run(*BETAS, "--epochs", 1, "--sweep", "beta", "--csv", "empty.csv", "--svg", "", "--resume")
    assert len(rows("empty.csv")) == 4
    kept = [line for line in before.decode().splitlines(True) if not line.startswith("tau")]
    write("subspace_distance.csv", "".join(kept))
    assert run(*SMALL, "--epochs", 8, "--resume", "--svg", "").stdout.count("epoch 8:") == 1
    assert read("subspace_distance.csv") == before  # to the bit
    # a training that is complete in one sweep is not made again because the other has a part of it
    for part in ["beta,1,10,0,8,", "tau,1,10,0,8,"]:
        kept = [line for line in before.decode().splitlines(True) if not line.startswith(part)]
        assert len(kept) == 4 * 9, part
        write("part.csv", "".join(kept))
        if part.startswith("beta"):
            assert "epoch" not in run(*BETAS[:-2], "--taus", "2,10", "--sweep", "tau", "--epochs", 8, "--resume", "--csv", "part.csv", "--svg", "").stdout
            assert read("part.csv").decode().splitlines(True) == kept
        assert "epoch" not in run(*SMALL, "--epochs", 8, "--resume", "--csv", "part.csv", "--svg", "").stdout
        assert sorted(read("part.csv").splitlines()) == sorted(before.splitlines()), part
    os.remove("subspace_distance.svg")
    run("--plot-only")
    assert os.path.exists("subspace_distance.svg")


def keeps_studies_apart():
    """--resume refuses rows that another text or other options made, and names what differs."""
    before = read("subspace_distance.csv")

    def refused(*options, says):
        error = run(*SMALL, "--epochs", 8, "--svg", "", "--resume", *options, status=1).stderr
        assert error.startswith("isogloss: --csv 'subspace_distance.csv' has rows of another study: ") and error.count("\n") == 1, error
        assert all(s in error for s in [says, "Give --csv another name"]), error
        assert read("subspace_distance.csv") == before

    write("other.txt", words(310))
    refused("--text", "other.txt", says="--text is ")
    for option, old, new in [("--tokens", 2000, 1000), ("--units", 4, 5), ("--layers", 1, 2), ("--batch", 5, 4), ("--bptt", 10, 9),
                             ("--epochs", 8, 9), ("--seed", 1, 2), ("--rate", 0.003, 0.001), ("--head-rate", 10, 9), ("--rest", 0.5, 0.25),
                             ("--table-rate", 0.01, 0.02), ("--clip", 0, 5), ("--init", 0.1, 0.2), ("--update", "split", "adam")]:
        refused(option, new, says=f"{option} is {old}, not {new}")
    refused("--hold-target", says="--hold-target is off, not on")
    refused("--epochs", 9, "--seed", 3, says="--epochs is 8, not 9, --seed is 1, not 3")


def draws():
    """A table without rows or with lines of another kind replaces no picture."""
    run("--plot-only")
    svg, lines = read("subspace_distance.svg"), read("subspace_distance.csv").decode().splitlines(True)
    write("none.csv", lines[0])
    assert "none.csv: found a table without rows" in run("--plot-only", "--csv", "none.csv", status=1).stderr
    row = lines[1].rstrip("\n")
    for bad in [row + ",1", row.replace("beta", "gamma"), row.replace(",0,0,", ",-1,0,"), row.replace(",0,0,", ",0,0.5,"), ""]:
        write("bad.csv", lines[0] + row + "\n" + bad + "\n")
        assert "bad.csv:3: found " in run("--plot-only", "--csv", "bad.csv", status=1).stderr, bad
    assert read("subspace_distance.svg") == svg


def without_effect():
    """Options that change nothing are refused before anything is written."""
    for with_it, options in [("--update sgd", ["--head-rate 1", "--table-rate 1", "--rest 0"]), ("--update adam", ["--head-rate 1"]),
                             ("--sweep beta", ["--beta 0.5", "--taus 2"]), ("--sweep tau", ["--tau 5", "--betas 1"]),
                             ("--plot-only", ["--epochs 3", "--resume", "--threads 1", "--sweep beta", "--text text.txt"])]:
        for option in options:
            error = run(*with_it.split(), *option.split(), "--csv", "none.csv", status=1).stderr
            assert error.startswith(f"isogloss: {option.split()[0]} has no effect with {with_it}") and error.endswith("; leave it out\n"), error
            assert error.count("\n") == 1 and not os.path.exists("none.csv"), error


def refuses():
    guards_outputs(*SMALL, inputs=["text.txt"], outputs=["--csv", "--svg"])
    assert "found --betas = 2, expected 0 to 1" in run("--betas", "2", status=1).stderr
    assert "below 1" in run("--rest", "1", status=1).stderr
    assert "found --layers = 0, expected at least 1" in run(*SMALL, "--layers", 0, "--csv", "x.csv", status=1).stderr
    assert "found --batch = 9223372036854775807" in run(*SMALL, "--batch", 2**63 - 1, "--csv", "x.csv", status=1).stderr
    os.mkfifo("pipe")
    assert "'pipe' is not a regular file, but its text is read twice" in run("--text", "pipe", "--csv", "x.csv", status=1).stderr
    away = run(*SMALL, "--head-rate", 1e6, "--csv", "away.csv", status=1).stderr
    assert "diverged" in away and "--head-rate" in away, away
    away = run(*SMALL, "--update", "adam", "--rate", 1e20, "--csv", "one.csv", status=1).stderr
    assert "diverged in epoch 1; lower --rate\n" in away, away  # the others have no effect there
    assert "at least --tokens" in run("--text", "text.txt", "--csv", "x.csv", status=1).stderr
    assert "none.txt" in run("--text", "none.txt", "--csv", "x.csv", status=1).stderr
    missing = run("--csv", "x.csv", environment={"ISOGLOSS_DATA": "nowhere"}, status=1).stderr
    assert "'nowhere/ptb/ptb.train.txt' does not exist" in missing and "set ISOGLOSS_DATA to the folder that holds ptb/, or give --text" in missing, missing
    many = run(*SMALL, "--units", 500, "--csv", "x.csv", status=1)
    assert "types, expected at least --units 500" in many.stderr and "nan" not in many.stdout, many


with Folder():
    sweeps()
    resumes()
    holds()
    keeps_studies_apart()
    without_effect()
    draws()
    refuses()
