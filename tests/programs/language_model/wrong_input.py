"""Wrong input of every kind: a message that names the thing, status 1, nothing written over."""
import json
import os
import re

from program import PROGRAM, Folder, craft, read, run, sentences, tensors, train, write

TEXTS = ["--train", "train.txt", "--valid", "valid.txt"]


def refuses(*arguments, says):
    """One plain message on stderr, status 1, no files left behind."""
    before = sorted(os.listdir("."))
    done = run(*arguments, status=1)
    assert done.stderr.startswith("isogloss: ") and done.stderr.count("\n") == done.stderr.rstrip().count("\n") + 1, done.stderr
    for part in [says] if isinstance(says, str) else says:
        assert part in done.stderr, (arguments, part, done.stderr)
    assert sorted(os.listdir(".")) == before, (arguments, before, os.listdir("."))


def usage(*arguments, says):
    """Errors of usage are the parser's: its own status above 100, and the option named."""
    import subprocess
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode >= 100 and says in done.stderr + done.stdout, (arguments, done)


def options_out_of_range():
    for option, value, says in [
            ("--units", 0, "--units is 0"), ("--units", -3, "--units is -3"), ("--layers", 2000000, "at most"), ("--units", 10**12, "at most 100000"),
            ("--rounds", 9, "--rounds is 9, expected 0 to 8"), ("--rank", -1, "--rank is -1"), ("--layers", 0, "--layers is 0"), ("--embedding", -1, "--embedding is -1"),
            ("--keep", 0, "keep = 0"), ("--keep", 1.5, "keep = 1.5"), ("--keep", "nan", "--keep is nan, expected a number above 0"),
            ("--keep-state", "nan", "--keep-state is nan, expected a number above 0"), ("--keep-words", 0, "keep_words = 0"),
            ("--bptt", -1, "--bptt is -1"), ("--bptt", 0, "--bptt is 0"), ("--batch", 0, "--batch is 0"), ("--batch", 10**5, "columns"),
            ("--epochs", 0, "--epochs is 0"), ("--rate", -1, "rate"), ("--clip", -1, "clip = -1"),
            ("--weight-decay", "inf", "weight_decay"), ("--temperature", 0, "temperature = 0"), ("--gamma", -1, "gamma = -1"),
            ("--epsilon", 1, "--epsilon is 1"), ("--keep-weights", 0, "--keep-weights is 0"), ("--warm-up", 1, "--warm-up is 1"),
            ("--ar", -1, "size = -1"), ("--adversarial", 1, "adversarial = 1"), ("--keep-between", 7, "--keep-between is 7"), ("--tar", "nan", "change"), ("--units", "8,-2", "--units is -2"), ("--units", f"8,{10**6}", "--units is 1000000"),
            ("--decay", 0, "--decay is 0"), ("--decay-from", -1, "--decay-from is -1"), ("--init", 0, "--init is 0"),
            ("--init", 1e6, "--init is 1e+06, expected a number above 0 and below 1e6"), ("--runaway", "1e300", "expected 0, or a number above 1 and below 1e300"),
            ("--threads", 0, "threads"), ("--min-count", 0, "min_count"), ("--max-vocabulary", -1, "max_size"),
            ("--min-count", 10**6, "no type occurs"), ("--checkpoint-every", 0, "--checkpoint-every is 0"),
            ("--seed", -1, "--seed is -1"), ("--seed", 99999999999999999999, "--seed is 99999999999999999999"),
            ("--epochs", "010", "--epochs is 010, which would be read as octal"), ("--epochs", 2**63, "--epochs is 9223372036854775808"), ("--clip", "1e-400", "--clip is 1e-400"),
            ("--rate", "1e999", "--rate is 1e999"), ("--threads", 2147483647, "1 to 1024")]:
        refuses("train", "--model", "m", *TEXTS, option, value, says=says)
    refuses("train", "--model", "m", *TEXTS, "--cell", "rhn", "--depth", 0, says="--depth is 0")
    refuses("train", "--model", "m", *TEXTS, "--cell", "glnn", "--edges", 9, "--units", "10,8", says="--edges is 9, expected 1 to --units, 8")
    refuses("train", "--model", "m", *TEXTS, "--cell", "leaky", "--bound", -1, says="--bound is -1")
    refuses("train", "--model", "m", *TEXTS, *"--cell leaky --scheme recurrent --keep-state 0.5".split(), says="--keep-state has no effect with --cell leaky")
    refuses("train", "--model", "m", *TEXTS, "--units", "8,9,8", "--layers", 2, says="--units is [8,9,8], expected one number for all of --layers 2, or one for each")
    refuses("train", "--model", "m", *TEXTS, "--alpha", 1, "--gamma", 1, says="more than one of alpha, gamma and beta")
    refuses("train", "--model", "m", *TEXTS, "--loss", "mixture", says="--beta")
    refuses("train", "--model", "m", *TEXTS, "--loss", "mixture", "--beta", 2, says="beta = 2")
    refuses("train", "--model", "m", *TEXTS, "--update", "ruop", "--epsilon", 0.01, says="--update ruop needs --epsilon 0")
    refuses("train", "--model", "m", *TEXTS, "--update", "rbpm", "--table-rate", 0.01, says="--table-rate has no effect with --head tied")
    refuses("train", "--model", "m", *TEXTS, "--update", "ruop", "--head", "free", "--damping", 0, says="damping = 0")
    refuses("train", "--model", "m", *TEXTS, "--update", "ruop", "--head", "free", "--floor", -1, says="floor = -1")
    for options in ["--loss ce --gamma 1", "--loss ce --alpha 1", "--loss mixture --beta 0.5 --gamma 1", "--loss al --gamma 1 --beta 0.5",
                    "--loss ce --temperature 20", "--cell gru --depth 3", "--cell rhn --rounds 5", "--rounds 0 --rank 3", "--cell lstm --edges 5", "--cell rnn --bound 1", "--cell glnn --keep-weights 0.5",
                    "--update muon --head-rate 0.1", "--update adam --damping 0.1", "--schedule plateau --decay-from 3",
                    "--schedule one-cycle --decay 0.5", "--schedule decay --warm-up 0.2", "--scheme tied --keep-between 0.5", "--layers 1 --keep-between 0.5 --scheme recurrent"]:
        refuses("train", "--model", "m", *TEXTS, *options.split(), says="has no effect with " + " ".join(options.split()[:2]))
    refuses("train", "--model", "m", *TEXTS, *"--scheme recurrent --keep 0.2 --keep-input 1 --keep-state 1 --keep-output 1 --keep-between 1".split(),
            says="--keep has no effect with that of every place")
    refuses("train", "--model", "m", *TEXTS, "--start-from", "model", "--init", 5, says="--init has no effect with --start-from")
    refuses("train", "--model", "m", *TEXTS, "--corpus", "ptb", says="--corpus has no effect with --train and without --preset")
    refuses("train", "--model", "m", *TEXTS, "--resume", "--overwrite", says="give one of them")
    for more in ["--overwrite"], ["--format", "glove"]:
        refuses("neighbours", "--model", "model", "--word", "king", *more, says="no effect without --export")
    done = run("train", "--model", "m", "--train", "/dev/stdin", "--valid", "valid.txt", status=1, text=sentences(20))
    assert "'/dev/stdin' is not a regular file, but its text is read twice; write it to a file" in done.stderr, done
    refuses("train", "--model", "m", *TEXTS, *"--update asgd --two-tailed".split(), says="expected another")
    refuses("train", "--model", "m", *TEXTS, *"--update asgd --unit-rows".split(), says="which the averages of --update asgd are not")
    refuses("train", "--model", "m", *TEXTS, *"--update rbpm --head free --start-from free --freeze --weight-decay 1".split(),
            says="--weight-decay has no effect with --update rbpm and --freeze")
    refuses("train", "--model", "m", "--train", "train.txt", says="--train is given without --valid")
    refuses("train", "--model", "m", "--valid", "valid.txt", says="--valid is given without --train")


def texts():
    write("empty.txt", "")
    write("blank.txt", "\n\n\n")
    write("bytes.txt", b"the king\nthe qu\xff\xfeen\n")
    write("binary.txt", b"the king\n\0\0\0\n")
    write("short.txt", "the king\n")
    os.mkdir("folder")
    for name, says in [("absent.txt", "absent.txt"), ("empty.txt", "empty.txt"), ("bytes.txt", "bytes.txt:2"),
                       ("binary.txt", "binary.txt:2"), ("folder", "folder"), ("short.txt", "short.txt")]:
        refuses("train", "--model", "m", "--batch", 4, "--train", name, "--valid", "valid.txt", says=says)
    for name, says in [("absent.txt", "absent.txt"), ("empty.txt", "empty.txt"), ("bytes.txt", "bytes.txt:2"), ("folder", "folder")]:
        refuses("train", "--model", "m", "--train", "train.txt", "--valid", name, says=says)
        refuses("train", "--model", "m", *TEXTS, "--test", name, says=says)
        refuses("evaluate", "--model", "model", "--text", name, says=says)
        refuses("score", "--model", "model", "--text", name, says=says)
    assert "perplexity" in run("evaluate", "--model", "model", "--text", "blank.txt").stdout  # line ends are tokens


def models():
    content = read("model")
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 8
    foreign = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    write("damaged", bytes(damaged))
    write("cut", content[:len(content) // 2])
    write("foreign", len(foreign).to_bytes(8, "little") + foreign + b"\0\0\0\0")
    write("nothing", "")
    for command, rest in [("evaluate", ["--text", "valid.txt"]), ("sample", []), ("complete", ["--text", "the"]), ("score", ["--text", "valid.txt"]),
                          ("neighbours", ["--word", "king"])]:
        for name, says in [("absent", "absent"), ("damaged", "damaged"), ("cut", "cut"), ("foreign", "foreign"),
                           ("nothing", "nothing"), ("train.txt", "train.txt"), ("folder", "folder")]:
            refuses(command, "--model", name, *rest, says=says)
    refuses("sample", "--model", "model", "--words", 0, says="--words = 0")
    for words in (-1, 10**9 + 1, 2**62):
        refuses("sample", "--model", "model", "--words", words, says=f"--words = {words}, expected 1 to 1000000000")
    for temperature in (-1, "1e-300", 0.009, 101, "1e300", "nan"):
        refuses("sample", "--model", "model", "--temperature", temperature, says=["--temperature = ", "expected 0, for the most probable"])
    refuses("sample", "--model", "model", "--prompt", "two\nlines", says="line feed")
    refuses("evaluate", "--model", "model", "--text", "valid.txt", "--columns", 0, says="--columns is 0")
    refuses("evaluate", "--model", "model", "--text", "valid.txt", "--columns", 10**9, says="at most 100000")
    refuses("score", "--model", "model", "--text", "valid.txt", "--batch", -2, says="batch = -2")
    refuses("score", "--model", "model", "--text", "valid.txt", "--threads", 0, says="threads")
    refuses("neighbours", "--model", "model", "--word", "zebra", says=["'zebra'", "14 types"])
    refuses("neighbours", "--model", "model", says="--word")
    refuses("neighbours", "--model", "model", "--word", "king", "--k", 0, says="--k = 0")
    refuses("neighbours", "--model", "model", "--export", "no/such/folder/v.txt", says="no/such/folder")
    refuses("neighbours", "--model", "model", "--export", "model", says="is the file that --model reads")


def crafted_options():
    """A whole model with a valid checksum whose options are not those of its tensors, or of any model."""
    stored = json.loads(tensors("model")[1]["language_model"])
    for changes, says in [
            *[({name: value}, f"--{name} is {value}, expected at most 100000")
              for name in ("bptt", "units", "embedding", "layers", "depth", "batch") for value in (2**60, 2**62, 2**63 - 1)],
            *[({name: 0}, f"--{name} is 0, expected at least 1") for name in ("bptt", "units", "embedding", "layers")],
            ({"bptt": 2**63}, "stored as 9223372036854775808"), ({"bptt": 1e300}, "stored as 1e+300"), ({"units": -1}, "--units is -1"),
            ({"layers": 10**6}, "--layers is 1000000"), ({"layers": 10**5}, "do not have these sizes"), ({"units": 10**5}, "do not have these sizes"),
            ({"embedding": 10**5}, "do not have these sizes"), ({"cell": "rhn", "depth": 10**5}, "do not have these sizes"), ({"rounds": 8, "rank": 10**5}, "do not have these sizes"), ({"units": 9}, "does not fit the model"),
            ({"threads": 2**40}, "stored as 1099511627776"), ({"threads": 0}, "--threads is 0, expected 1 to 1024"), ({"seed": -1}, "stored as -1"), ({"cell": "transformer"}, "'transformer'"),
            ({"head": ""}, "--head is ''"), ({"keep": "much"}, 'stored as "much"'), ({"random-bptt": 1}, "stored as 1"),
            ({"keep": 0}, "keep = 0"), ({"temperature": -1}, "temperature = -1"),
            ({"units": [8, 9, 8]}, "--units is [8,9,8], expected one number for all of --layers 2, or one for each"), ({"units": []}, "--units is []"), ({"units": {"a": 8}}, 'stored as {"a":8}'),
            ({"units": [8, "9"]}, 'stored as [8,"9"]'), ({"units": [8, 4]}, "does not fit the model")]:
        craft("model", "crafted", {**stored, **changes})
        for arguments in [("evaluate", "--text", "valid.txt"), ("sample",)]:
            refuses(*arguments, "--model", "crafted", says=says)
        os.remove("crafted")
    craft("model", "crafted", stored)  # the forger is no worse than the program
    assert run("evaluate", "--model", "crafted", "--text", "valid.txt").stdout == run("evaluate", "--model", "model", "--text", "valid.txt").stdout
    os.remove("crafted")
    state = json.loads(tensors("kept")[1]["language_model"])
    os.mkdir("resumed")
    for changes, says in [({"bptt": 2**62}, "--bptt is"), ({"units": 10**5}, "do not have these sizes"), ({"epochs": -1}, "--epochs is -1")]:
        craft("kept", "resumed/m.train", {**state, **changes})
        refuses("train", "--model", "resumed/m", "--resume", says=["resumed/m.train", says])


def nothing_is_written_over():
    """A text or another program's file that is named as the model or the log stays as it was."""
    for path in ["train.txt", "foreign"]:
        before = read(path)
        refuses("train", "--model", path, *TEXTS, says=[f"'{path}'", "left unchanged"])
        refuses("train", "--model", "m", *TEXTS, "--log", path, says=[f"'{path}'", "left unchanged"])
        assert read(path) == before
    refuses("train", "--model", "no/such/folder/m", *TEXTS, says="no/such/folder/m")
    refuses("train", "--model", "folder", *TEXTS, says="folder")
    refuses("train", "--model", "m", *TEXTS, "--log", "folder", says="folder")


def usage_errors():
    usage(says="subcommand")
    usage("trian", "--model", "m", says="'trian' is not a command, expected one of train, evaluate,")
    usage("train", says="--model")
    usage("train", "--model", "m", "--cell", "transformer", says="--cell")
    for units in ["many", "8,", ",8", "8 8", "8;8", ""]:
        usage("train", "--model", "m", "--units", units, says="--units")
    usage("train", "--model", "m", "--no-such-option", says="no-such-option")
    usage("train", "--modle", "m", says="'--modle' is not an option; did you mean --model?")
    usage("evaluate", "--model", "model", says="--text")
    for command in ["train", "evaluate", "tune", "sample", "complete", "score", "neighbours", "compare", "convert"]:
        lines = run(command, "--help").stdout.splitlines()
        assert any("--model" in line for line in lines) and max(map(len, lines)) <= 80, lines


def help_of_train():
    """--help of train fits a screen; --help-all has every option, each once, and both keep to 80 columns."""
    brief, whole = run("train", "--help").stdout.splitlines(), run("train", "--help-all").stdout.splitlines()
    assert len(brief) <= 40 and max(map(len, brief + whole)) <= 80, (len(brief), brief)
    names = [line.split()[0] for line in whole if line.startswith("  --")]
    shown = [line.split()[0] for line in brief if line.startswith("  --")]
    assert len(names) == len(set(names)) > 60 and names[:len(shown)] == shown, names
    assert {"--train", "--valid", "--epochs", "--model", "--resume", "--verbose"} <= set(shown), shown
    usage("train", "--trian", "f", "--model", "m", says="'--trian' is not an option; did you mean --train?")


def defaults_in_the_help():
    """Those of the cache and of --dynamic are the ones that evaluate says it uses."""
    helped = " ".join(run("evaluate", "--help").stdout.split())
    said = run("evaluate", "--model", "model", "--text", "valid.txt", "--cache").stdout
    flatness, weight = (re.search(rf"{name} ([0-9.]+)", said).group(1) for name in ("flatness", "weight"))
    assert f"0 or more [{flatness}]" in helped and f"in the mixture, 0 to 1 [{weight}]" in helped, (said, helped)
    for rule in "sgd", "rms", "riemannian":
        text = [] if rule == "sgd" else ["--dynamic-text", "train.txt"]
        said = run("evaluate", "--model", "model", "--text", "valid.txt", "--dynamic", rule, *text).stdout
        rate, decay = re.search(rf"dynamic +{rule}, rate (\S+), decay (\S+),", said).groups()
        assert re.search(rf"its learning rate \[[^]]*{rule} {rate}\b", helped) and re.search(rf"{rule}( and \w+)? {decay}\b", helped), (said, helped)
    tried = " ".join(run("tune", "--help").stdout.split())
    for values in "0 or more, or several [0 0.05", "0 to 1, or several [0 0.02", "or several [a quarter", "or several [that of evaluate]":
        assert values in tried, (values, tried)


with Folder():
    write("train.txt", sentences(200))
    write("valid.txt", sentences(50, seed=2))
    train("model", *TEXTS, "--epochs", 1)
    os.rename("model.train", "kept")
    train("free", *TEXTS, "--epochs", 1, "--head", "free")
    options_out_of_range()
    defaults_in_the_help()
    texts()
    models()
    crafted_options()
    nothing_is_written_over()
    usage_errors()
    help_of_train()
