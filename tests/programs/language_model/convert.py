"""convert: a file of half and of a quarter of the bytes, which predicts nearly the same and is read wherever a model is."""
import json
import os

from program import Folder, guards_outputs, number, read, run, sentences, tensors, train, write

KINDS = {"bf16": ("BF16", 2), "int8": ("I8", 1)}


def perplexity(model, *options):
    return json.loads(run("evaluate", "--model", model, "--text", "valid.txt", "--json", *options).stdout)["perplexity"]


def scores(model, *options):
    lines = run("score", "--model", model, "--text", "valid.txt", "--json", *options).stdout.splitlines()
    return [json.loads(line)["log_probability"] for line in lines]


def rounded(model):
    """Products in bf16 and int8 predict nearly the same, from the file in float."""
    exact, lines = perplexity(model), scores(model)
    assert perplexity(model, "--precision", "fp32") == exact
    for precision in KINDS:
        found = perplexity(model, "--precision", precision)
        assert found != exact and abs(found / exact - 1) < 0.005, (precision, found, exact)
        other = scores(model, "--precision", precision)
        assert other != lines and max(abs(a / b - 1) for a, b in zip(other, lines, strict=True)) < 0.02, precision
    for adaptive in ["--cache"], ["--dynamic", "sgd"]:
        error = run("evaluate", "--model", model, "--text", "valid.txt", "--precision", "int8", *adaptive, status=1).stderr
        assert "--precision is int8, expected fp32 with " + adaptive[0] in error, error


def smaller(model):
    exact = perplexity(model)
    before, options = tensors(model)
    for store, (name, width) in KINDS.items():
        said = run("convert", "--model", model, "--to", store, "--store", store).stdout
        assert number(r"model of ([\d,]+) bytes", said) == os.path.getsize(model)
        assert number(r" ([\d,]+) bytes$", said.strip()) == os.path.getsize(store)
        after, metadata = tensors(store)
        assert metadata["language_model"] == options["language_model"]
        for tensor, (kind, shape, data) in before.items():
            table = len(shape) == 2 and shape[0] > 1 and not tensor.startswith("state/")
            if not table:
                assert after[tensor] == (kind, shape, data), tensor
                continue
            assert after[tensor][:2] == (name, shape) and len(after[tensor][2]) == width * shape[0] * shape[1], tensor
            assert (store == "int8") == (tensor + ".scale" in after), tensor
        found = perplexity(store)
        assert found != exact and abs(found / exact - 1) < 0.005, (store, found, exact)
        # Back in float: the same numbers in more bytes.
        run("convert", "--model", store, "--to", "wide", "--store", "fp32")
        assert {one: t[:2] for one, t in tensors("wide")[0].items()} == {one: t[:2] for one, t in before.items()}
        assert perplexity("wide") == found
    run("convert", "--model", model, "--to", "same", "--store", "fp32")
    assert read("same") == read(model)
    # Of a training the model as it is now, which may be overwritten again.
    for _ in range(2):
        run("convert", "--model", model + ".train", "--to", "of_training", "--store", "int8")
    assert [one for one in tensors("of_training")[0] if one.startswith("state/")] == ["state/vocabulary"]
    assert abs(perplexity("of_training") / exact - 1) < 0.2


with Folder():
    write("train.txt", sentences(300))
    write("valid.txt", sentences(60, seed=2))
    for cell in [["--cell", "rhn", "--depth", 2], ["--cell", "gnn", "--update", "adam", "--rate", 0.01], ["--cell", "lstm", "--head", "free"]]:
        train("m", "--train", "train.txt", "--valid", "valid.txt", *cell)
        smaller("m")
        rounded("m")
    run("sample", "--model", "int8", "--words", 5)
    run("train", "--model", "next", "--train", "train.txt", "--valid", "valid.txt", "--start-from", "bf16", "--units", 8, "--head", "free",
        "--epochs", 1, "--batch", 4, "--bptt", 10, "--threads", 1)
    assert run("convert", "--model", "m", "--to", "x", status=106).stderr
    guards_outputs("convert", "--model", "m", "--store", "bf16", inputs=["m"], outputs=["--to"])
