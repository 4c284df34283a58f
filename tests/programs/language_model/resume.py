"""Trainings that are killed or interrupted at random moments end with the bits of one that was left alone."""
import json
import os
import random
import signal
import subprocess
import time

from program import PROGRAM, Folder, read, run, same_training, sentences, tensors, train, write

RUNS = [
    ["--loss", "al", "--keep", 0.7, "--adversarial", 0.05],
    ["--loss", "ce", "--update", "adam", "--rate", 0.01, "--schedule", "plateau", "--random-bptt", "--cell", "gru", "--rounds", 2, "--rank", 3,
     "--shuffle", "partial", "--two-tailed"],
    ["--loss", "ce", "--update", "ruop", "--rate", 0.003, "--damping", 0.1, "--head", "free", "--layers", 1],
    ["--cell", "glnn", "--edges", 4, "--update", "muon", "--rate", 0.02, "--head-bias"],
    ["--keep-weights", 0.6, "--ar", 0.5, "--tar", 0.3, "--schedule", "one-cycle", "--rate", 2, "--units", "12,8"],
    ["--start-from", "start", "--train-tokens", "10%:9000", "--scheme", "recurrent", "--keep-input", 0.6, "--keep-state", 0.9,
     "--keep-output", 0.5, "--patience", 2],
    # Whatever the model learns of the grammar is wrong for sentences read backwards: validation worsens a
    # hundredfold after the first epoch, and a small rate keeps it from wandering back, so averaging begins.
    ["--update", "asgd", "--epochs", 9, "--rate", 0.3, "--head", "free", "--loss", "ce", "--valid", "backwards.txt",
     "--runaway", 0],
]
INTERRUPTIONS = 6


def arguments(model, options):
    return ["train", "--train", "train.txt", "--valid", "valid.txt", "--model", model, "--log", f"{model}.csv", "--units", 12,
            "--batch", 4, "--bptt", 10, "--epochs", 3, "--threads", 1, "--checkpoint-every", 25, *options]


def interrupted(model, options, seconds):
    """Starts the training, stops it after a while, and resumes it until it is done. Returns how often it was cut short."""
    cuts = 0
    for attempt in range(INTERRUPTIONS):
        how = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP][attempt % 4]
        program = subprocess.Popen([PROGRAM, *map(str, arguments(model, options)), "--resume"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        time.sleep(random.uniform(0.02, 0.35) * seconds)
        program.send_signal(how)
        out, _ = program.communicate(timeout=300)
        status = program.returncode
        if status == 0:
            break  # it was faster
        cuts += 1
        # A signal that comes before the program has begun to catch it ends it like any other program.
        assert status in (-how, 128 + how), f"{how}: status {status}\n{out}"
        assert how != signal.SIGKILL or status == -how, status
        if status > 0:
            assert "Interrupted" in out, out
            assert os.path.exists(model + ".train")
    run(*arguments(model, options), "--resume")
    return cuts


def killed_at_random():
    seed = int(os.environ.get("ISOGLOSS_TEST_SEED") or time.time_ns() % 10**9)
    print("moments of seed", seed)  # ISOGLOSS_TEST_SEED repeats them
    random.seed(seed)
    cuts = 0
    for i, options in enumerate(RUNS):
        start = time.monotonic()
        run(*arguments(f"whole{i}", options))
        cuts += interrupted(f"cut{i}", options, time.monotonic() - start)
        same_training(f"whole{i}", f"cut{i}")
    assert cuts >= 3, f"only {cuts} trainings were cut short"
    averaged = next(i for i, options in enumerate(RUNS) if "asgd" in options)
    assert tensors(f"whole{averaged}.train")[0]["state/update/triggered"][2] == b"\1", "averaging never began, so nothing was shown of it"


def more_epochs():
    """Raising the epochs of a finished training gives what asking for them at once gives."""
    train("once", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 4, "--log", "once.csv")
    train("twice", "--train", "train.txt", "--valid", "valid.txt", "--epochs", 2, "--log", "twice.csv")
    out = run("train", "--model", "twice", "--resume", "--epochs", 4).stdout  # all other options come from the file
    assert "resume      at epoch 3, batch 0" in out, out
    same_training("once", "twice")
    out = run("train", "--model", "twice", "--resume").stdout
    assert "4 epochs are done and no more were requested" in out, out
    other = run("train", "--model", "twice", "--resume", "--corpus", "ptb", status=1).stderr
    assert "begun with --train 'train.txt', not with --corpus ptb alone" in other, other
    same_training("once", "twice")


def preset_again():
    """On resuming, the preset of the training changes nothing, and another is refused."""
    texts = ["--train", "train.txt", "--valid", "valid.txt", "--threads", 1]
    tiny = ["--units", 8, "--batch", 4, "--bptt", 10]

    def stored(model):
        options = json.loads(tensors(model + ".train")[1]["language_model"])
        return [options[name] for name in ("units", "epochs", "patience")]

    run("train", "--model", "p", *texts, "--preset", "small", *tiny, "--epochs", 2, "--patience", 7)
    run("train", "--model", "p", "--resume")
    assert stored("p") == [8, 2, 7], stored("p")
    run("train", "--model", "p", "--resume", "--preset", "small", *tiny, "--epochs", 3, "--patience", 7)
    assert stored("p") == [8, 3, 7], stored("p")
    error = run("train", "--model", "p", "--resume", "--preset", "medium", status=1).stderr
    assert "'p.train' was begun with --preset small, not with --preset medium" in error, error


def refused():
    """What does not fit the training that is there is refused, and changes nothing."""
    before = read("twice.train")

    def says(*parts, options, name="twice"):
        error = run("train", "--model", name, *options, status=1).stderr
        for part in parts:
            assert part in error, (part, error)

    says("--units (9 given, 8 stored), --rate (0.5 given, 1.0 stored)", options=["--resume", "--units", 9, "--rate", 0.5])
    says("other.txt is not the text that the training was begun with", options=["--resume", "--train", "other.txt", "--valid", "valid.txt"])
    assert read("twice.train") == before

    os.rename("twice", "elsewhere")
    says("'twice', the best model so far, is missing", options=["--resume"])
    os.rename("elsewhere", "twice")

    os.rename("twice", "elsewhere")
    write("twice", "")
    says("'twice', the best model so far, is missing or empty", options=["--resume"])
    os.rename("elsewhere", "twice")
    before = read("twice.train")

    # A model without its training is not trained anew and lost.
    os.rename("twice.train", "elsewhere")
    model = read("twice")
    begin = ["--train", "train.txt", "--valid", "valid.txt"]
    says("'twice' exists, but no training in 'twice.train'", "--start-from", options=["--resume", *begin])
    assert read("twice") == model and not os.path.exists("twice.train")
    write("twice.train", "")  # an empty file holds none
    says("'twice' exists, but no training in 'twice.train'", options=["--resume", *begin])
    assert read("twice") == model
    os.rename("elsewhere", "twice.train")

    # An unfinished training is not written over unless told so.
    program = subprocess.Popen([PROGRAM, *map(str, arguments("half", ["--epochs", 100000]))], stdout=subprocess.PIPE, text=True)
    while not os.path.exists("half"):  # the first epoch is done
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=60) and program.returncode == 130, program.returncode
    says("'half.train' holds a training that stopped in epoch", "--resume", "--overwrite",
         options=["--train", "train.txt", "--valid", "valid.txt", "--epochs", 1], name="half")
    train("half", *begin, "--epochs", 1, "--overwrite")
    # Nor is a finished one, nor a model whose training is not there.
    model = read("half")
    says("--model 'half' already exists; it was left unchanged", "--overwrite", options=[*begin, "--epochs", 1], name="half")
    os.remove("half.train")
    says("--model 'half' already exists; it was left unchanged", options=[*begin, "--epochs", 1], name="half")
    assert read("half") == model and not os.path.exists("half.train")
    write("empty.train", "")
    write("empty", "")
    assert "'empty.train' holds no training yet" in train("empty", *begin, "--epochs", 1, "--resume").stdout

    damaged = bytearray(before)
    damaged[-5] ^= 1
    write("twice.train", damaged)
    says("twice.train", "damaged", options=["--resume"])
    write("twice.train", before[:-100])
    says("twice.train", options=["--resume"])


def write_texts():
    write("train.txt", sentences(2500))
    write("valid.txt", sentences(100, seed=2))
    write("other.txt", sentences(2500, seed=3))
    write("backwards.txt", "".join(" ".join(line.split()[::-1]) + "\n" for line in sentences(100, seed=2).splitlines()))
    train("start", "--train", "train.txt", "--valid", "valid.txt", "--units", 12, "--epochs", 1, "--head-bias")


if __name__ == "__main__":
    with Folder():
        write_texts()
        killed_at_random()
        more_epochs()
        preset_again()
        refused()
