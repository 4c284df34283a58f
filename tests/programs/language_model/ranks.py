"""A model trained by several processes has the bytes of one trained by one, whichever way it was stopped and resumed.
Usage: ranks.py PROGRAM MPIRUN"""
import os
import signal
import sys

MPIRUN = os.path.abspath(sys.argv.pop())
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../mpi"))
from launch import cut_short, launch  # noqa: E402
from program import PROGRAM, Folder, read, rows, run, same_training, sentences, tensors, write  # noqa: E402

RECIPES = [
    ["--loss", "al", "--keep", 0.7, "--head-bias", "--epsilon", 0.01],
    ["--loss", "ce", "--head", "free", "--cell", "gru", "--update", "adam", "--rate", 0.01, "--random-bptt", "--keep-words", 0.9],
    ["--loss", "ce", "--keep-weights", 0.6, "--tar", 0.3, "--update", "asgd", "--batch", 7, "--precision", "bf16", "--adversarial", 0.05],
    ["--loss", "ce", "--head", "free", "--update", "rbpm"],
]


def arguments(model, options):
    return ["train", "--train", "train.txt", "--valid", "valid.txt", "--model", model, "--log", f"{model}.csv", "--units", 12,
            "--batch", 8, "--bptt", 10, "--epochs", 2, "--checkpoint-every", 10, *options]


def together(ranks, model, options, status=0):
    done = launch(ranks, [PROGRAM, *arguments(model, options)], MPIRUN)
    assert (done.returncode == 0) == (status == 0), done
    return done


def errors(done):
    return [line for line in done.stderr.splitlines() if line.startswith("isogloss: ")]


with Folder():
    write("train.txt", sentences(500))
    write("valid.txt", sentences(60, 2))

    for number, recipe in enumerate(RECIPES):
        alone = f"alone{number}"
        run(*arguments(alone, ["--shards", 4, "--threads", 1, *recipe]))
        for ranks in (1, 2, 3, 4) if number == 0 else (2, 4):
            model = f"m{number}_{ranks}"
            done = together(ranks, model, recipe)
            assert done.stdout.count("The best model, of epoch") == 1 and done.stdout.count("\ntraining ") == 1, done.stdout
            same_training(model, alone)
    # Shards change sums in their last digits and nothing else.
    run(*arguments("whole", ["--threads", 1, *RECIPES[1]]))
    for x, y in zip(rows("whole.csv"), rows("alone1.csv"), strict=True):
        assert abs(float(x["valid_perplexity"]) / float(y["valid_perplexity"]) - 1) < 1e-3, (x, y)

    # Stopped after an epoch on two ranks, finished on four, and on one without mpirun.
    together(2, "s4", [*RECIPES[1], "--epochs", 1])
    together(4, "s4", [*RECIPES[1], "--resume"])
    same_training("s4", "alone1")
    together(4, "s1", [*RECIPES[0], "--epochs", 1])
    run(*arguments("s1", [*RECIPES[0], "--resume", "--threads", 1]))
    same_training("s1", "alone0")

    # One rank is killed in the middle: the others end, and what was written serves to go on.
    def middle(number, model, options):
        return cut_short(number, 2, [PROGRAM, *arguments(model, options)], MPIRUN, model, lambda: os.path.exists(f"{model}.train") and
                         tensors(f"{model}.train")[0]["state/batch"][2] != bytes(8))

    long = ["--epochs", 4, "--checkpoint-every", 2]
    run(*arguments("whole4", [*RECIPES[0], *long, "--shards", 4, "--threads", 1]))
    middle(signal.SIGKILL, "killed", [*RECIPES[0], *long])
    together(2, "killed", [*RECIPES[0], *long, "--resume"])
    same_training("killed", "whole4")

    # Ctrl-C reaches the ranks through mpirun, and the first saves.
    out = middle(signal.SIGTERM, "stopped", [*RECIPES[0], *long])
    assert "Interrupted at epoch" in out, out
    together(4, "stopped", [*RECIPES[0], *long, "--resume"])
    same_training("stopped", "whole4")

    # What diverges on one of them ends all, with one report.
    done = together(2, "away", ["--rate", "1e38"], status=3)
    assert done.stdout.count("it has run away. The cause:\n") == 1 and "'away' was not written" in done.stdout and not os.path.exists("away"), done
    assert not errors(done), done

    # What is wrong is said once.
    for options, says in [(["--shards", 2], "--shards is 2, expected at least the 4 ranks"), (["--batch", 3], "--shards is 3"),
                          (["--keep", 2], "keep"), (["--train", "none.txt"], "none.txt")]:
        done = together(4, "wrong", options, status=1)
        assert len(errors(done)) == 1 and says in errors(done)[0], (options, done)
    together(2, "m0_2", [*RECIPES[0], "--overwrite"])  # a finished one is trained anew
    assert read("m0_2") == read("alone0")

    # What one process does is refused to several before anything is written.
    for command_ in (["evaluate", "--model", "alone0", "--text", "valid.txt"], ["sample", "--model", "alone0"],
                     ["score", "--model", "alone0", "--text", "valid.txt"],
                     ["convert", "--model", "alone0", "--to", "converted", "--store", "bf16"]):
        before = sorted(os.listdir("."))
        done = launch(2, [PROGRAM, *command_], MPIRUN)
        assert done.returncode != 0 and not done.stdout and sorted(os.listdir(".")) == before, done
        assert len(errors(done)) == 1 and f"{command_[0]}: found 2 ranks" in errors(done)[0], done
    done = launch(1, [PROGRAM, "evaluate", "--model", "alone0", "--text", "valid.txt"], MPIRUN)
    assert done.returncode == 0 and "perplexity" in done.stdout, done
