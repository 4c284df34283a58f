"""evaluate, tune, compare and score take no more memory for more columns or longer segments than the text fills, and say the same."""
import json
import os
import subprocess

from program import PROGRAM, Folder, run, sentences, train, write

SOME = ["--model", "m", "--text", "text.txt", "--threads", 1]


def measured(*arguments):
    """What it prints, and its largest resident memory in MB."""
    program = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    out = program.stdout.read()
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = 0  # it has been waited for
    assert status == 0, (arguments, status, out)
    return out, used.ru_maxrss / 1024


def perplexities(command, *options):
    out, memory = measured(command, *SOME, "--json", *options)
    found = json.loads(out)
    return (found["perplexity"] if command == "evaluate" else [trial["perplexity"] for trial in found["trials"]]), memory


def same(command, asked, enough, least):
    """The same numbers as with just enough, and the memory of that; `least` is that of the command without."""
    (first, one), (second, other) = perplexities(command, *asked), perplexities(command, *enough)
    assert first == second and one < least + 60 > other, (asked, first, second, one, other, least)


with Folder():
    write("train.txt", sentences(300))
    write("text.txt", sentences(51))  # 459 tokens
    train("m", "--train", "train.txt", "--valid", "text.txt", "--units", 16, "--epochs", 1, "--bptt", 35)
    _, least = perplexities("evaluate")
    for columns in [8000, 100000]:
        same("evaluate", ["--columns", columns], ["--columns", 459], least)
        same("evaluate", ["--columns", columns, "--softmax-temperature", 1.1], ["--columns", 459, "--softmax-temperature", 1.1], least)
    same("tune", ["--columns", 100000, "--softmax-temperature"], ["--columns", 459, "--softmax-temperature"], least)
    assert "in 459 columns" in run("evaluate", *SOME, "--columns", 8000).stdout
    statistics = ["--dynamic-text", "train.txt", "--dynamic", "rms"]
    for steps in [3000, 100000]:
        for rule in (["--dynamic", "sgd"], statistics):
            for command in ["evaluate", "tune"]:
                same(command, [*rule, "--dynamic-steps", steps], [*rule, "--dynamic-steps", 459], least)
    found = json.loads(run("tune", *SOME, *statistics, "--dynamic-steps", 3000, "--json").stdout)  # rate and decay belong to the steps
    assert "--dynamic-steps 459 --dynamic-text train.txt" in found["best"]["options"], found
    out, memory = measured("compare", *SOME, "--against", "m", "--neighbours", 2, "--frequent", 2, "--likeliest", 2, "--columns", 100000)
    assert memory < least + 60 and "459\n" in out, (memory, least)
    write("lines.txt", sentences(3))
    out, memory = measured("score", "--model", "m", "--text", "lines.txt", "--threads", 1, "--batch", 100000)
    assert memory < least + 60 and out == run("score", "--model", "m", "--text", "lines.txt", "--threads", 1, "--batch", 3).stdout, memory
    for columns in [0, -1, 100001]:
        error = run("evaluate", *SOME, "--columns", columns, status=1).stderr
        assert f"--columns is {columns}, expected at least 1 and at most 100000" in error, error
