"""Nothing is lost: outputs that clash, output that cannot be printed, signals, two trainings of one model, killed writers."""
import atexit
import json
import os
import shutil
import signal
import stat
import subprocess
import time

from program import PROGRAM, Folder, read, rows, run, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]


def unchanged(*arguments, says, keep):
    """One sentence, status 1, and every file of the folder as it was."""
    before = {name: read(name) for name in os.listdir(".") if os.path.isfile(name)}
    done = run(*arguments, status=1)
    assert done.stderr.startswith("isogloss: ") and done.stderr.count("\n") == 1, done.stderr
    for part in [keep, *([says] if isinstance(says, str) else says)]:
        assert part in done.stderr, (arguments, part, done.stderr)
    assert {name: read(name) for name in os.listdir(".") if os.path.isfile(name)} == before, (arguments, os.listdir("."))


def outputs_that_clash():
    os.symlink("train.txt", "link.txt")
    os.link("train.txt", "hard.txt")
    os.symlink("absent", "dangling")
    for path in ["train.txt", "link.txt", "hard.txt", "valid.txt"]:
        unchanged("train", "--model", "m", *TEXTS, "--log", path, says="reads; it was left unchanged", keep=f"--log '{path}'")
        unchanged("train", "--model", path, *TEXTS, says="reads; it was left unchanged", keep=f"--model '{path}'")
        unchanged("neighbours", "--model", "model", "--export", path, says="already exists", keep=path)
        unchanged("compare", "--model", "model", "--against", "model", "--text", "train.txt", "--csv", path, says="left unchanged", keep=path)
    # two outputs of one name, before either is there
    for model, log in [("m", "m"), ("m", "./m"), ("m", "m.train"), ("m", "m.lock"), ("dangling", "absent"), ("dangling", "absent.lock"), ("absent", "dangling"),
                       ("absent", "dangling.train") if os.symlink("absent.train", "dangling.train") is None else None]:
        unchanged("train", "--model", model, *TEXTS, "--log", log, says="is the file that --model writes", keep=f"--log '{log}'")
    for name in ["model", "model.train"]:
        unchanged("train", "--model", "m", *TEXTS, "--log", name, says="not a log of language_model; it was left unchanged", keep=name)
    unchanged("neighbours", "--model", "model", "--export", "model", says="--model reads", keep="model")
    # found before the work begins, not after it
    for arguments in [["--model", "none/m"], ["--model", "m", "--log", "none/log"]]:
        unchanged("train", *TEXTS, *arguments, "--epochs", 10**6, says="'none/', which does not exist", keep="none")
    os.mkfifo("pipe")
    for name in ["/dev/null", "pipe"]:
        unchanged("train", "--model", "m", *TEXTS, "--log", name, says="not a regular file", keep=name)
    for name in ["link.txt", "hard.txt", "dangling", "dangling.train", "pipe"]:
        os.remove(name)


def trainings():
    """A training is no model that may be overwritten, nor a model a training, whatever its name."""
    train("one", *TEXTS, "--epochs", 1)
    shutil.copy("model", "one.train.train")
    convert = ["convert", "--model", "model", "--store", "bf16", "--to"]
    unchanged(*convert, "one.train", says="is not a model of language_model; it was left unchanged", keep="one.train")
    unchanged("train", "--model", "one.train", *TEXTS, "--overwrite", says="is not a model of language_model; it was left unchanged", keep="one.train")
    os.remove("one.train")
    for more in [], ["--overwrite"]:
        unchanged("train", "--model", "one.train", *TEXTS, *more, says="is not a training of language_model", keep="one.train.train")
    unchanged("train", "--model", "one.train", "--resume", says="is not a training of language_model", keep="one.train.train")
    run(*convert, "one.train.train")  # a model


def outputs_that_are_replaced():
    """A file of its own kind, and an empty one; vectors and text only with --overwrite."""
    for csv in ["table.csv", "empty.csv"]:
        write("empty.csv", "")
        for _ in range(2):
            run("compare", "--model", "model", "--against", "model", "--text", "valid.txt", "--neighbours", 2, "--frequent", 2,
                "--likeliest", 2, "--csv", csv)
    run("neighbours", "--model", "model", "--export", "vectors")
    unchanged("neighbours", "--model", "model", "--export", "vectors", says="--overwrite", keep="vectors")
    run("neighbours", "--model", "model", "--export", "vectors", "--overwrite", "--format", "glove")
    assert not read("vectors").startswith(b"14 ")
    train("own", *TEXTS, "--epochs", 1, "--log", "own.csv")
    train("own", *TEXTS, "--epochs", 1, "--log", "own.csv")
    assert len(rows("own.csv")) == 2
    # a row that was cut goes, the others stay
    write("own.csv", read("own.csv")[:-9])
    train("own", *TEXTS, "--epochs", 1, "--log", "own.csv")
    assert len(rows("own.csv")) == 2


def places_that_cannot_be_seen():
    """Errors of the system are sentences of this program too."""
    os.symlink("loop", "loop")
    for path, says in [("loop/m", "symbolic links"), ("n" * 300, "too long"), ("train.txt/m", "train.txt/m")]:
        for option in ["--model", "--log"]:
            files = ["--model", path] if option == "--model" else ["--model", "m", "--log", path]
            unchanged("train", *TEXTS, *files, says=says, keep="isogloss: ")
    name = b"tr\xe4in.txt"
    shutil.copy("train.txt", name)
    done = subprocess.run([PROGRAM, "train", "--model", "m", "--train", name, "--valid", "valid.txt"], capture_output=True, timeout=60)
    assert done.returncode == 1 and b"UTF-8" in done.stderr, done
    os.remove(name)
    os.remove("loop")


def standard_output():
    for arguments in [["evaluate", "--model", "model", "--text", "valid.txt"], ["sample", "--model", "model"],
                      ["score", "--model", "model", "--text", "valid.txt"], ["neighbours", "--model", "model", "--word", "king"],
                      ["train", "--model", "full", *TEXTS, "--epochs", "1", "--units", "8", "--threads", "1"], ["--help"], ["train", "--help"]]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "isogloss: standard output could not be written" in done.stderr, (arguments, done)
    assert run("evaluate", "--model", "full", "--text", "valid.txt").stdout  # the training itself was none the worse
    done = subprocess.run(["sh", "-c", f"'{PROGRAM}' evaluate --model model --text valid.txt >&-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "standard output" in done.stderr, done


LONG = ["--epochs", 100000, "--units", 12, "--batch", 4, "--bptt", 10, "--threads", 1, "--checkpoint-every", 10**6]


def begin(model, *arguments, **streams):
    """A training that goes on for long, once its first epoch is done."""
    program = subprocess.Popen([PROGRAM, *map(str, ["train", *TEXTS, "--model", model, *LONG, *arguments])], **streams)
    atexit.register(program.kill)  # also where this test fails
    while not os.path.exists(model):
        assert program.poll() is None, program.communicate()
        time.sleep(0.01)
    return program


def batch_of(model):
    state = tensors(model + ".train")[0]
    return [int.from_bytes(state[f"state/{name}"][2], "little") for name in ("epoch", "batch")]


def signals():
    for how in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        program = begin("stopped", "--overwrite", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.05)
        program.send_signal(how)
        time.sleep(0.001)
        program.send_signal(how)  # a shell or a script passes on what a terminal or a batch system sends as well
        out, err = program.communicate(timeout=60)
        assert program.returncode == 128 + how, (how, program.returncode, out, err)
        epoch, batch = (int(n) for n in out.rsplit("Interrupted at epoch ", 1)[1].split(";")[0].split(", batch "))
        assert batch_of("stopped") == [epoch, batch], (how, out)
        assert "--resume" in out
        os.remove("stopped")
    # nobody reads on: train | head -1
    program = begin("stopped", "--overwrite", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    program.stdout.close()
    err = program.stderr.read()
    assert program.wait(timeout=60) == 128 + signal.SIGPIPE, (program.returncode, err)
    assert "Interrupted at epoch" in err and "--resume" in err and "standard output" not in err, err
    assert batch_of("stopped")[1] > 0, "the batches since the last checkpoint are saved"
    # nohup: a closed terminal is to be ignored, and stays so
    os.remove("stopped")
    program = begin("stopped", "--overwrite", stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    program.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert program.poll() is None
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=60) == 130


def file_size_limit():
    """A file that may not grow is an error of writing like any other: a sentence, and nothing left behind."""
    before = read("model"), read("model.train")
    done = subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", PROGRAM, "train", *TEXTS, "--model", "model", "--units", "64", "--overwrite"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "File too large" in done.stderr and "model.train" in done.stderr, done
    assert (read("model"), read("model.train")) == before and not [name for name in os.listdir(".") if ".isogloss-part-" in name], os.listdir(".")


def two_trainings():
    first = begin("shared", stdout=subprocess.PIPE, text=True)
    os.symlink("shared", "alias")
    for name in ["shared", "./shared", "alias"]:
        for more in [[], ["--resume"], ["--overwrite"]]:
            error = run("train", *TEXTS, "--model", name, *LONG, *more, status=1).stderr
            assert f"another program is writing '{name}'" in error and error.count("\n") == 1, error
    train("other", *TEXTS, "--epochs", 1)  # another model is free
    run("evaluate", "--model", "shared", "--text", "valid.txt")  # and so is reading
    first.kill()
    first.wait()
    assert os.path.exists("shared.lock"), "what this test is about"
    out = run("train", "--model", "shared", "--resume", "--epochs", 1).stdout  # a killed program has no lock
    assert "epochs are done" in out or "epoch is done" in out, out
    assert not os.path.exists("shared.lock")
    os.remove("alias")


def permissions_and_links():
    os.mkdir("place")
    train("place/m", *TEXTS, "--epochs", 1)
    os.chmod("place/m", 0o600)
    os.chmod("place/m.train", 0o640)
    os.symlink("place/new", "to_new")
    train("place/m", *TEXTS, "--epochs", 1)
    modes = [stat.S_IMODE(os.stat(name).st_mode) for name in ("place/m", "place/m.train")]
    assert modes == [0o600, 0o640], [oct(mode) for mode in modes]
    train("to_new", *TEXTS, "--epochs", 1)
    assert os.path.islink("to_new") and os.path.isfile("place/new"), os.listdir("place")


def killed_writers():
    """However often a training is killed while it saves, the next leaves nothing of that behind."""
    def parts():
        return [name for name in os.listdir("kill") if ".isogloss-part-" in name]

    os.mkdir("kill")
    seen = 0
    for attempt in range(30):
        program = begin("kill/m", "--resume", "--checkpoint-every", 1, stdout=subprocess.DEVNULL)
        time.sleep(0.01 + 0.003 * attempt)
        program.kill()
        program.wait()
        seen = len(parts())
        if seen:
            break
    if not seen:  # it was never caught at it: then as it would have looked
        write("kill/m.train.isogloss-part-999999-7", "half")
    write("kill/m.train.isogloss-part-notes", "not of this kind")
    run("train", "--model", "kill/m", "--resume", "--epochs", 1)
    assert parts() == ["m.train.isogloss-part-notes"], parts()


with Folder():
    write("train.txt", sentences(600))
    write("valid.txt", sentences(50, seed=2))
    train("model", *TEXTS, "--epochs", 1)
    json.loads(tensors("model")[1]["language_model"])
    CHECKS = [outputs_that_clash, trainings, outputs_that_are_replaced, places_that_cannot_be_seen, standard_output, signals, file_size_limit,
              two_trainings, permissions_and_links, killed_writers]
    for check in CHECKS:
        check()
