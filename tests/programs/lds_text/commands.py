"""lds_text: all commands on a small text, shards against one pass, a resumed fit against one in one go, wrong input."""
import array
import atexit
import csv
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from program import PROGRAM, content, crc64, grammar, run, write


def text(sentences):
    return "".join(" ".join(w for w, _ in s) + "\n" for s in sentences)


def conllu(sentences):
    return "".join("".join(f"{i + 1}\t{w}\t{w}\t{t}\n" for i, (w, t) in enumerate(s)) + "\n" for s in sentences)


def check_counts():
    run("count", "--text", "text", "--counts", "whole", "--lags", 5, "--vocabulary-to", "vocabulary", "--threads", 1)
    for i in (1, 2, 3):
        run("count", "--text", "text", "--counts", f"part{i}", "--lags", 5, "--shard", f"{i}/3", "--vocabulary-from",
            "vocabulary", "--threads", 2)
    run("count", "--counts", "sum", "--add", "part3", "part1", "part2")
    assert content("sum") == content("whole"), "shards added give the file of one pass"


def check_fit():
    base = ["--states", 4, "--ssid-lags", 2, "--em-lags", 4, "--pseudo-counts", 1, "--threads", 1]
    said = run("fit", "--train", "text", "--model", "once", "--iterations", 6, "--log", "log", *base)
    run("fit", "--train", "text", "--model", "twice", "--iterations", 2, "--log", "log2", *base)
    run("fit", "--train", "text", "--model", "twice", "--iterations", 4, "--resume", "--log", "log2", *base)
    run("fit", "--train", "text", "--model", "twice", "--iterations", 6, "--resume", "--log", "log2", *base)
    assert content("once") == content("twice"), "a resumed fit is the uninterrupted one, to the bit"
    with open("log", newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    with open("log2", newline="", encoding="utf-8") as f:
        again = [dict(r, seconds="") for r in csv.DictReader(f)]
    assert again == [dict(r, seconds="") for r in rows], "the log of a resumed fit has every row once"
    factors = [float(r["noise_factor"]) for r in rows]
    assert f"noise factor {factors[0]:.4f};" in said and factors[0] < 1, (said, factors)
    values = [float(r["log_likelihood"]) for r in rows]
    assert len(values) == 7 and all(b > a - 1e-3 for a, b in zip(values, values[1:])), values
    assert float(rows[-1]["above_static"]) > 0.5, rows[-1]
    baselines = [v - float(r["above_static"]) for v, r in zip(values, rows)]
    assert max(baselines) - min(baselines) < 1e-6, f"the log has too few digits: {baselines}"
    run("fit", "--train", "text", "--model", "random", "--iterations", 3, "--random-start", *base[:2], *base[4:])
    for model, steps in ("kept", [6]), ("kept twice", [3, 6]):  # --resume remembers
        for k, iterations in enumerate(steps):
            run("fit", "--train", "text", "--model", model, "--iterations", iterations, *(["--resume"] if k else ["--fixed-noise"]), "--log", "kept.log", *base)
    assert content("kept") == content("kept twice") != content("once")
    assert float(table("kept.log")[-1]["log_likelihood"]) < values[-1], "EM that estimates the noise of the states is ahead"
    # a fit that --stop has ended is at its end
    gains = [b - a for a, b in zip(values, values[1:])]
    stop = ["--stop", (min(gains[:3]) + gains[3]) / 2]
    assert 0 < gains[3] < min(gains[:3]), gains
    run("fit", "--train", "text", "--model", "stopped", "--iterations", 6, "--log", "stopped.log", *stop, *base)
    ended = content("stopped")
    assert [r["log_likelihood"] for r in table("stopped.log")] == [r["log_likelihood"] for r in rows[:5]]
    run("fit", "--train", "text", "--model", "stopped", "--iterations", 6, "--log", "stopped.log", *stop, *base, "--resume", says="EM   4", never="EM   5")
    assert content("stopped") == ended and len(table("stopped.log")) == 5


def check_matrix_free():
    """Without counts, from a text and from a file of tokens: the fit is that of counts, but for rounding."""
    drawn = ["--states", 4, "--em-lags", 4, "--pseudo-counts", 1, "--threads", 1, "--iterations", 4]
    base = [*drawn, "--ssid-lags", 2]
    run("fit", "--train", "text", "--model", "stored", "--log", "stored.log", "--random-start", *drawn, says="counts: ")
    run("fit", "--train", "text", "--matrix-free", "--model", "read", "--log", "read.log", "--random-start", *drawn,
        says="matrix-free: ")
    # EM from equal parameters. Those of subspace identification are not: the words of this text return after nine, A has
    # an eigenvalue of 200 before it is repaired, and with it the rounding of the singular vectors grows.
    of_counts = [float(r["log_likelihood"]) for r in table("stored.log")]
    of_text = [float(r["log_likelihood"]) for r in table("read.log")]
    assert len(of_text) == 5 and max(abs(a - b) for a, b in zip(of_counts, of_text)) < 1e-3, (of_counts, of_text)
    stored, read = (run("fit", "--train", "text", "--model", "values", "--log", "values.log", *free, *base)
                    for free in ([], ["--matrix-free"]))
    of_counts, of_text = (said.split("singular values ")[1].split(", radius")[0] for said in (stored, read))
    assert of_counts == of_text, (of_counts, of_text)
    run("fit", "--train", "text", "--matrix-free", "--model", "read", *base)
    run("count", "--text", "text", "--counts", "c", "--vocabulary-from", "vocabulary", "--tokens-to", "text.tokens")
    run("fit", "--train", "text.tokens", "--vocabulary-from", "vocabulary", "--matrix-free", "--model", "mapped", *base)
    assert content("mapped") == content("read"), "a file of tokens is the text"
    run("fit", "--train", "text.tokens", "--matrix-free", "--model", "m", status=1, says="holds no words")
    run("fit", "--counts", "whole", "--matrix-free", "--model", "m", status=1, says="--matrix-free has no effect")
    run("fit", "--train", "text", "--vocabulary-from", "vocabulary", "--vocabulary", 9, "--model", "m", status=1,
        says="--vocabulary has no effect")


def table(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def check_selection():
    """A held-out text says which system is kept, and a fit that loses likelihood keeps the better one."""
    base = ["--train", "text", "--ssid-lags", 2, "--em-lags", 4, "--threads", 1]
    output = run("fit", "--dev", "dev", "--model", "seen", "--states", 4, "--iterations", 2, "--log", "seen.log", *base)
    unigram = float(output.rsplit("unigram ", 1)[1].split()[0])
    rows = table("seen.log")
    assert len(rows) == 3 and float(rows[-1]["dev_perplexity"]) < 0.7 * unigram, output
    assert float(rows[-1]["dev_above_static"]) > 0.1, rows[-1]
    words, tokens = 14, 9 * 400  # <unk> and <eos> among them
    assert abs(float(rows[0]["pseudo_counts"]) / (0.5 * tokens / words) - 1) < 1e-9, rows[0]
    output = run("embed", "--model", "seen", "--text", "dev", "--out", "seen.tokens", says="above none")
    assert abs(float(output.split("log-likelihood ")[1].split()[0]) - float(rows[-1]["dev_log_likelihood"])) < 1e-4, output

    output = run("fit", "--dev", "dev", "--select", "--model", "best", "--states", 2, 4, "--pseudo-counts", 0.1, 300,
                 "--iterations", 3, "--log", "select.log", *base)
    rows = table("select.log")
    assert {(r["pseudo_counts"], r["states"]) for r in rows} == {(k, h) for k in ("0.1", "300") for h in "24"}, rows
    best = min(rows, key=lambda r: float(r["dev_perplexity"]))
    told = output.split("selected: ")[1]
    assert told.startswith(f"{best['pseudo_counts']} pseudo-counts, {best['states']} states, 2 blocks, iteration {best['iteration']};"), told
    output = run("embed", "--model", "best", "--text", "dev", "--out", "seen.tokens")
    assert abs(float(output.split("log-likelihood ")[1].split()[0]) - float(best["dev_log_likelihood"])) < 1e-4, (output, best)
    assert f"{best['states']} is the {'least' if best['states'] == '2' else 'greatest'} --states that was tried" in told, told
    assert "--ssid-lags that was tried" not in told, told
    run("fit", "--select", "--model", "m", *base, status=1, says="give --dev too")
    run("fit", "--dev", "./text", "--model", "m", *base, status=1, says="is both --train and --dev")
    run("fit", "--model", "m", "--states", 2, 4, *base, status=1, says="2 values of --states")
    run("fit", "--select", "--dev", "dev", "--resume", "--model", "best", *base, status=1, says="--select starts over")

    # What --resume takes from the file, and what it will not take.
    run("fit", "--resume", "--model", "seen", "--states", 4, "--iterations", 3, *base, says="EM   3")
    run("fit", "--resume", "--model", "seen", "--train", "text", "--iterations", 4, "--em-lags", 3, status=1,
        says="begun with --em-lags 4")
    run("fit", "--resume", "--model", "seen", "--train", "text", "--iterations", 4, "--states", 7, status=1, says="begun with --states 4")
    run("fit", "--resume", "--model", "seen", "--train", "text", "--iterations", 4, "--threads", 1, "--log", "seen.log")
    assert {(r["states"], r["ssid_lags"]) for r in table("seen.log")} == {("4", "2")}, table("seen.log")
    run("fit", "--resume", "--model", "best", "--train", "text", status=1, says="chosen by --select")
    run("fit", "--model", "few", "--states", 3, "--vocabulary", 6, "--iterations", 1, *base)
    run("fit", "--resume", "--model", "few", "--train", "text", "--iterations", 2, "--threads", 1, says="6 words")
    run("fit", "--model", "same.words", "--vocabulary-from", "few", "--states", 3, "--iterations", 0, *base, says="6 words")
    run("fit", "--resume", "--model", "fresh", "--states", 4, "--iterations", 0, *base, says="starts from the beginning")
    run("fit", "--counts", "whole", "--train", "text", "--model", "m", status=1, says="--train has no effect")
    run("fit", "--counts", "whole", "--vocabulary", 5, "--model", "m", status=1, says="--vocabulary has no effect")

    write("tiny", "f e f c b d a c d c f g\n")
    tiny = ["--train", "tiny", "--states", 2, "--ssid-lags", 2, "--em-lags", 3, "--pseudo-counts", 100, "--threads", 1]
    output = run("fit", "--model", "tiny.lds", "--log", "tiny.log", "--iterations", 40, *tiny, says="EM has not improved since iteration")
    rows = [float(r["log_likelihood"]) for r in table("tiny.log")]
    kept = int(output.split("since iteration ")[1].split(",")[0])
    assert rows[kept] == max(rows) and kept == len(rows) - 2, (rows, kept)


def check_slow():
    """Two topics that change once in two hundred words: three lags are too few, and the program says how many are not."""
    state, topic, words = 1, 0, []
    for _ in range(20000):
        state = (state * 1103515245 + 12345) % 2**31
        topic ^= (state >> 16) % 200 == 0
        words.append("abcdefgh"[4 * topic + (state >> 8) % 4])
    write("topics", " ".join(words) + "\n")
    fit = ["fit", "--train", "topics", "--model", "topics.lds", "--states", 1, "--ssid-lags", 2, "--iterations", 5, "--pseudo-counts", 1, "--threads", 1]
    output = run(*fit, "--em-lags", 3, says="after --em-lags 3 the slowest dynamics have")
    enough = int(output.split("half would be left after ")[1].split()[0])
    assert enough > 3 and "slowest" not in run(*fit, "--em-lags", 5 * enough), output


def options_of(path):
    """The options that a model of language_model stores."""
    file = content(path)
    return json.loads(json.loads(file[8:8 + int.from_bytes(file[:8], "little")])["__metadata__"]["language_model"])


def check_network():
    """A network is saved, goes on where it was stopped to the same bits, and starts over the words of a system."""
    texts = ["--train", "text", "--valid", "dev", "--batch", 4, "--bptt", 10, "--threads", 1]
    for start in (["--model", "once"], ["--units", 6, "--vocabulary-from", "once"], ["--units", 6, "--vocabulary-from", "vocabulary", "--epsilon", 0.02]):
        output = run("rnn", *start, *texts, "--epochs", 3, "--save", "net", "--log", "net.log", "--overwrite")
        assert output.startswith("14 words"), output
        best, state, log = content("net"), content("net.train"), table("net.log")
        arguments = [*start, *texts, "--save", "cut", "--log", "cut.log", "--checkpoint-every", 7]
        run("rnn", *arguments, "--epochs", 1, "--overwrite")
        program = subprocess.Popen([PROGRAM, *map(str, ["rnn", *arguments, "--epochs", 3, "--resume"])], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        said = program.communicate(timeout=60)[0]
        assert program.returncode in (0, 128 + signal.SIGTERM), (program.returncode, said)
        run("rnn", *arguments, "--epochs", 3, "--resume", says="best validation")
        assert content("cut") == best and content("cut.train") == state, "a training that was stopped ends with other bits"
        assert [dict(r, seconds="") for r in table("cut.log")] == [dict(r, seconds="") for r in log]
        assert len({(r["words"], r["vocabulary"]) for r in log}) == 1 and log[0]["words"] == "14" and len(log[0]["vocabulary"]) == 16, log
    run("rnn", *arguments, "--epochs", 3, status=1, says="holds a training")
    run("rnn", *arguments, "--rate", 0.2, "--epochs", 4, "--resume", status=1, says="rate 0.2")
    run("rnn", *arguments, "--epsilon", 0.01, "--epochs", 4, "--resume", status=1, says="epsilon 0.01")
    run("rnn", *texts, "--epsilon", 2, status=1, says="epsilon")
    for start in (["--model", "once", "--power", 1, "--gain", 0.1], ["--units", 6, "--vocabulary-from", "once"]):
        output = run("rnn", *start, *texts, "--tied", "--epochs", 1, "--save", "tied", "--log", "tied.log", "--overwrite")
        before, after = (float(r["valid"]) for r in table("tied.log"))
        assert after < before, (before, after)
        assert options_of("tied")["head"] == "tied" and options_of("tied")["head-bias"], options_of("tied")
    check_later_test(arguments)
    os.rename("cut", "elsewhere")
    run("rnn", *arguments, "--epochs", 4, "--resume", status=1, says="the best network so far, is missing")
    run("rnn", *texts, "--resume", status=1, says="give both")
    run("rnn", "--model", "once", "--units", 4, *texts, status=1, says="--units has no effect with --model")
    run("rnn", *texts, "--vocabulary", 5, "--vocabulary-from", "once", status=1, says="--vocabulary has no effect")
    run("rnn", *texts, "--save", "text", status=1, says="it was left unchanged")
    assert options_of("net")["level"] == "word", options_of("net")
    letters = sorted({c for line in content("text").decode().splitlines() for c in line})
    write("letters", "isogloss-vocabulary\t1\nlevel\tcharacter\neos_per_line\ttrue\nunk\t<unk>\neos\t<eos>\n"
          f"types\t{len(letters) + 2}\n" + "".join(f"{c}\t1\n" for c in letters) + "<eos>\t1\n<unk>\t0\n")
    run("rnn", *texts, "--vocabulary-from", "letters", "--units", 4, "--epochs", 1, "--save", "of.letters")
    assert options_of("of.letters")["level"] == "character", options_of("of.letters")


def check_later_test(arguments):
    """The test text is not part of a training: one that is given later, or another, is read by the best network, and the log says only that."""
    lines = content("dev").decode().splitlines(keepends=True)
    write("mixed", "".join(line if i % 4 else " ".join(reversed(line.split())) + "\n" for i, line in enumerate(lines)))
    trained = [*arguments, "--epochs", 3, "--resume"]
    before = table("cut.log")
    best = min(before, key=lambda r: float(r["valid"]))["epoch"]
    assert {r["test"] for r in before} == {""}, before
    found = {}
    for text in ("dev", "mixed"):  # the first is the validation text itself
        said = run("rnn", *trained, "--test", text, says="on the test text, which is another now, ")
        found[text] = said.split("there on test ")[1].split()[0]
        assert said.split("another now, ")[1].split()[0] == found[text], said
        now = table("cut.log")
        assert [r["epoch"] for r in now if r["test"]] == [best] and f"{float(now[int(best)]['test']):.2f}" == found[text], now
        assert [dict(r, test="") for r in now] == before
        again = run("rnn", *trained, "--test", text, never="another now")
        assert again.split("there on test ")[1].split()[0] == found[text] and table("cut.log") == now, again
    assert found["dev"] == f"{float(before[int(best)]['valid']):.2f}" and found["mixed"] != found["dev"], (found, before)
    # the same as of a training that had it from the beginning, and the training is not another by it
    whole = [a if a not in ("cut", "cut.log") else a.replace("cut", "tested") for a in arguments]
    said = run("rnn", *whole, "--epochs", 3, "--test", "mixed")
    assert said.split("there on test ")[1].split()[0] == found["mixed"], (said, found)
    run("rnn", *whole, "--epochs", 4, "--test", "mixed", "--resume")
    run("rnn", *arguments, "--epochs", 4, "--test", "mixed", "--resume", never="another now")
    assert content("tested") == content("cut") and content("tested.train") == content("cut.train"), "a later test text gives other bits"
    run("rnn", *arguments, "--epochs", 4, "--resume", never="on test")


def check_use():
    run("embed", "--model", "once", "--text", "text", "--out", "tokens", "--types", "types", says="word vectors")
    first = content("types").split(b"\n", 1)[0].split()
    assert int(first[1]) == 4, first
    run("plot", "--logs", "log", "log", "--names", "one", "two", "--svg", "curve.svg")
    assert b"<svg" in content("curve.svg") and b"two" in content("curve.svg")
    said = run("inspect", "--model", "once", "--pairs", 2, "--min-count", 1, says="what leads to what")
    found = json.loads(run("inspect", "--model", "once", "--pairs", 2, "--min-count", 1, "--json"))
    assert f"{found['states']} states, {found['types']} types, {found['iterations']} iterations" in said, (said, found)
    assert found["pseudo_counts"] == 1 and found["log_likelihood"] > found["static_log_likelihood"], found
    assert len(found["moduli"]) == found["states"] and found["moduli"][0] == max(found["moduli"]), found
    pairs = [f"{one['strength']:.3f}  {' '.join(one['from'])}  ->  {' '.join(one['to'])}" for one in found["dynamics"]]
    assert len(pairs) >= 2 and said.splitlines()[-len(pairs):] == pairs, (said, found)
    files = ["--train", "train.conllu", "--dev", "dev.conllu", "--test", "test.conllu", "--epochs", 12, "--threads", 1]
    for states in ("smoother", "filter", "types"):
        output = run("tag", "--model", "once", "--states", states, "--predictions", f"tags.{states}", *files)
        accuracy = float(output.rsplit("accuracy ", 1)[1].split()[0])
        assert accuracy > 85, output
    with open("train.conllu", encoding="utf-8") as file:
        write("xpos", file.read().replace("\tDET", "\tX\tDT").replace("\tNOUN", "\tX\tNN").replace("\tVERB", "\tX\tVB").replace("\tADP", "\tX\tIN"))
    of_xpos = ["--train", "xpos", "--dev", "xpos", "--test", "xpos", "--format", "xpos", "--epochs", 1, "--threads", 1, "--vectors", "types"]
    output = run("tag", *of_xpos, "--majority", 1, says="4 tags")  # every word has been seen: nothing is learnt
    assert "epoch 1: 0.0000 nats, accuracy on dev 100.00 %" in output, output
    run("tag", *of_xpos, "--features", "lexical", "--majority", 1, status=1, says="--majority has no effect with --features lexical")
    run("tag", *of_xpos[:6], "--vectors", "types", "--format", "xpos", "--majority", -1, status=1, says="--majority = -1")
    run("tag", *files[:6], "--vectors", "types", "--format", "xpos", status=1, says="found 4 columns, expected at least 5")
    run("tag", "--vectors", "types", "--window", 1, "--against", "tags.smoother", *files, says="exact p = ")
    write("named", "".join("".join(f"{w} X X {'I-PLACE' if t == 'NOUN' else 'O'}\n" for w, t in s) + "\n"
                           for s in grammar(60)))
    named = ["--train", "named", "--dev", "named", "--test", "named", "--format", "conll", "--epochs", 12, "--threads", 1]
    run("tag", "--model", "once", "--predictions", "names", *named, says="F1 ")
    output = run("tag", "--model", "once", "--against", "names", *named, says="approximate randomisation")
    assert "p = 1\n" in output.rsplit("randomisation", 1)[1], output
    output = run("tag", "--model", "once", "--epochs", 1, "--rate", 1e-9, "--against", "names", *named[:8], "--threads", 1)
    assert float(output.rsplit("p = ", 1)[1]) < 0.001, output
    corpus = ["--train", "text", "--valid", "text", "--test", "text", "--epochs", 2, "--batch", 4, "--bptt", 10,
              "--threads", 1]
    begun = run("rnn", "--model", "once", *corpus, says="system's start")
    random = run("rnn", "--units", 4, *corpus, says="random start")

    def before(output):
        return float(output.split("before training ")[1].split()[0])

    assert before(begun) < 0.9 * before(random), begun + random


def check_lexical():
    """A chain model sees words, affixes and neighbours, alone and with vectors; a test compares it with another tagger."""
    files = ["--train", "train.conllu", "--dev", "dev.conllu", "--test", "test.conllu", "--epochs", 4, "--threads", 1,
             "--features", "lexical"]
    for vectors in ([], ["--model", "once"], ["--vectors", "types", "--window", 1]):
        output = run("tag", *files, *vectors, "--predictions", "tags.lexical", "--overwrite", "--against", "tags.filter",
                     says="McNemar")
        assert float(output.rsplit("accuracy ", 1)[1].split()[0]) == 100, output
    # of words alone: the same spelling is a noun after "the" and a verb after a noun
    write("ambiguous", "".join("1\tthe\t_\tDET\n2\tplay\t_\tNOUN\n3\tplay\t_\tVERB\n\n" for _ in range(5)))
    output = run("tag", "--train", "ambiguous", "--dev", "ambiguous", "--test", "ambiguous", "--features", "lexical",
                 "--epochs", 5, "--min-count", 2)
    assert "accuracy 100.00" in output, output
    named = ["--train", "named", "--dev", "named", "--test", "named", "--format", "conll", "--epochs", 4, "--features", "lexical"]
    first = run("tag", *named, "--predictions", "names.lexical", "--against", "names", says="approximate randomisation")
    assert first.replace("names.lexical", "") == run("tag", *named, "--against", "names"), "the same seed gives the same tags"
    run("tag", *named, "--min-count", 0, status=1, says="--min-count = 0")


def embedded(*arguments):
    """The vectors and the tokens that `embed` writes, and what it says."""
    said = run("embed", "--out", "embedded", *arguments)
    file = content("embedded")
    length = int.from_bytes(file[:8], "little")
    head = json.loads(file[8:8 + length])

    def values(name, kind):
        first, last = head[name]["data_offsets"]
        return array.array(kind, file[8 + length + first:8 + length + last]).tolist()

    tokens, width = head["embeddings"]["shape"]
    flat = values("embeddings", "f")
    return [flat[i * width:(i + 1) * width] for i in range(tokens)], values("tokens", "i"), said


def apart(rows, others):
    """The largest difference of two lists of vectors."""
    assert len(rows) == len(others), (len(rows), len(others))
    return max(abs(a - b) for row, other in zip(rows, others) for a, b in zip(row, other))


def check_sentences():
    """embed, near and tag feed a sentence alike: by itself, and a word that is unknown in lower case."""
    base = ["--dev", "dev", "--states", 4, "--ssid-lags", 2, "--em-lags", 4, "--threads", 1, "--iterations", 3]
    run("fit", "--train", "text", "--model", "by.line", "--sentences", "--log", "by.line.log", *base)
    run("fit", "--train", "text", "--model", "running", "--log", "running.log", *base)
    lines = ["the cat sees dog", "King likes in garden", "queen greets house"]  # no word twice, and King is king
    words = " ".join(lines).split()
    write("lines", "".join(line + "\n" for line in lines))
    write("lines.conllu", "".join("".join(f"{i}\t{w}\t_\tT{len(w) % 3}\n" for i, w in enumerate(line.split())) + "\n" for line in lines))
    files = ["--train", "lines.conllu", "--dev", "lines.conllu", "--test", "lines.conllu", "--epochs", 20, "--rate", 0.03, "--threads", 1]
    for model in ("running", "by.line"):
        for states in ("smoother", "filter"):
            rows, tokens, _ = embedded("--model", model, "--states", states, "--text", "lines")
            alone, numbers = [], []
            for line in lines:
                write("line", line.lower() + "\n")
                more = embedded("--model", model, "--states", states, "--text", "line")
                alone, numbers = alone + more[0], numbers + more[1]
            assert tokens == numbers and apart(rows, alone) < 1e-5, (model, states, apart(rows, alone))
            # what tag makes of a system is what it makes of the vectors that embed has written
            ends = {sum(len(line.split()) + 1 for line in lines[:i + 1]) - 1 for i in range(len(lines))}
            of_words = [row for i, row in enumerate(rows) if i not in ends]
            write("lines.vectors", f"{len(words)} 4\n" + "".join(f"{w} {' '.join(f'{x:.9g}' for x in row)}\n" for w, row in zip(words, of_words)))
            nats = [[float(line.split(": ")[1].split()[0]) for line in run("tag", *vectors, *files).splitlines() if line.startswith("epoch")]
                    for vectors in (["--model", model, "--states", states], ["--vectors", "lines.vectors"])]
            assert len(nats[0]) == 20 and max(abs(a - b) for a, b in zip(*nats)) < 5e-4, (model, states, nats)
        # near, whose states are smoothed
        rows, tokens, _ = embedded("--model", model, "--text", "lines")
        near = json.loads(run("near", "--model", model, "--words", "king", "--text", "lines", "--count", 3, "--json"))
        assert near["context"] == "[king] likes in garden", near
        cosines = sorted((sum(a * b for a, b in zip(rows[5], row)) for i, row in enumerate(rows) if i not in ends | {5}), reverse=True)
        assert max(abs(one["cosine"] - cosine) for one, cosine in zip(near["near"], cosines)) < 1e-5, (near, cosines)
        _, _, said = embedded("--model", model, "--text", "dev")
        likelihood = float(table(f"{model}.log")[-1]["dev_log_likelihood"])
        assert abs(float(said.split("log-likelihood ")[1].split()[0]) - likelihood) < 1e-4, (said, likelihood)
    # The same system said to be of running text: a sentence comes after a line end, which one may write oneself.
    file = content("by.line").replace(b'"lds_text.sentences":"1"', b'"lds_text.sentences":"0"')
    assert file != content("by.line")
    with open("said.running", "wb") as f:
        f.write(file)
    run("inspect", "--model", "said.running", status=1, says="the file is damaged")
    digits = file.index(b'"isogloss.checksum":"') + len(b'"isogloss.checksum":"')
    written, zeros = file[digits:digits + 16], b"0" * 16
    with open("said.running", "wb") as f:
        f.write(file.replace(written, b"%016x" % crc64(file.replace(written, zeros, 1)), 1))
    write("line", "the cat sees dog\n")
    write("after", "<eos> the cat sees dog\n")
    running, bare, after = (embedded("--model", model, "--text", file)[0] for model, file in
                            (("said.running", "line"), ("by.line", "line"), ("by.line", "after")))
    assert apart(running, after[1:]) < 1e-5 and apart(running, bare) > 1e-2, (running, bare, after)


def check_texts():
    """Several files, and files of tokens, are one text to every command that reads one."""
    lines = content("dev").decode().splitlines(keepends=True)
    write("dev1", "".join(lines[:30]))
    write("dev2", "".join(lines[30:]))
    run("count", "--text", "dev2", "--counts", "c", "--vocabulary-from", "vocabulary", "--tokens-to", "dev2.tokens")
    parts = ["dev1", "dev2.tokens"]
    rows, tokens, said = embedded("--model", "once", "--text", "dev")
    assert apart(rows, embedded("--model", "once", "--text", *parts)[0]) < 1e-5
    again = embedded("--model", "once", "--text", *parts)
    assert again[1] == tokens and again[2].splitlines()[1] == said.splitlines()[1], (said, again[2])
    near = ["near", "--model", "once", "--words", "cat", "--occurrences", 2, "--count", 3, "--text"]
    assert run(*near, "dev") == run(*near, *parts)
    fit = ["fit", "--train", "text", "--states", 4, "--ssid-lags", 2, "--em-lags", 4, "--iterations", 1, "--threads", 1]
    run(*fit, "--model", "of.dev", "--log", "of.dev.log", "--dev", "dev")
    run(*fit, "--model", "of.parts", "--log", "of.parts.log", "--dev", *parts)
    assert [r["dev_perplexity"] for r in table("of.dev.log")] == [r["dev_perplexity"] for r in table("of.parts.log")]
    rnn = ["rnn", "--vocabulary-from", "vocabulary", "--units", 4, "--epochs", 1, "--batch", 4, "--bptt", 10, "--threads", 1, "--train"]
    told = [run(*rnn, *train, "--valid", *valid, "--test", *valid).rsplit("best validation", 1)[1]
            for train, valid in ((["text"], ["dev"]), (["text.tokens"], parts))]
    assert told[0] == told[1], told
    run("rnn", "--train", "text.tokens", "--valid", "dev", status=1, says="holds no words")


def check_near():
    output = run("near", "--model", "once", "--words", "cat", "garden", "--count", 3, "--min-count", 1)
    nouns, places = output.split("garden, as a word")
    assert {line.split()[1] for line in nouns.splitlines()[1:]} == {"dog", "king", "queen"}, output
    assert {line.split()[1] for line in places.splitlines()[1:]} >= {"house", "wood"}, output
    output = run("near", "--model", "once", "--words", "cat", "--text", "dev", "--occurrences", 2, "--count", 3)
    lines = output.splitlines()
    assert len(lines) == 8 and sum(line.count("[cat]") for line in lines if not line.startswith("  ")) == 2, output
    assert all(-1.001 <= float(line.split()[0]) <= 1.001 for line in lines if line.startswith("  ")), output
    words = [json.loads(line) for line in run("near", "--model", "once", "--words", "cat", "garden", "--count", 3, "--min-count", 1, "--json").splitlines()]
    assert [one["word"] for one in words] == ["cat", "garden"] and {near["word"] for near in words[0]["near"]} == {"dog", "king", "queen"}, words
    tokens = run("near", "--model", "once", "--words", "cat", "--text", "dev", "--occurrences", 2, "--count", 3, "--json").splitlines()
    assert [json.loads(line)["context"] for line in tokens] == [line for line in lines if not line.startswith("  ")], tokens
    assert all(len(json.loads(line)["near"]) == 3 for line in tokens), tokens
    run("near", "--model", "once", "--words", "unicorn", status=1, says="'unicorn' is not a word of 'once'")


def interrupted(fit, over=None):
    """Interrupts a fit of in.parts in subspace identification; `over`: a model that is there already."""
    for _ in range(5):
        for name in ("in.parts", "in.parts.ssid"):
            if os.path.exists(name):
                os.remove(name)
        if over:
            shutil.copy(over, "in.parts")
        program = subprocess.Popen([PROGRAM, *map(str, fit), "--model", "in.parts"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        while not os.path.exists("in.parts.ssid") and program.poll() is None:
            time.sleep(0.001)
        program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=60)[0]
        if "Interrupted in subspace identification; its state is in" in said:
            break
    assert program.returncode == 130, (program.returncode, said)
    assert content("in.parts") == content(over) if over else not os.path.exists("in.parts")


def check_identification():
    """Subspace identification is interrupted, and goes on to the bits of one that was not."""
    state = 1
    lines = []
    for _ in range(3000):
        words = []
        for _ in range(20):
            state = (state * 1103515245 + 12345) % 2**31
            words.append(f"w{(state >> 16) % 1200}" if words and (state >> 8) % 3 else f"v{(state >> 16) % 300}")
        lines.append(" ".join(words) + "\n")
    write("many", "".join(lines))
    fit = ["fit", "--train", "many", "--states", 60, "--iterations", 1, "--threads", 1, "--checkpoint-seconds", 0]
    run(*fit, "--model", "at.once")
    write("many.sorted", "".join(" ".join(sorted(line.split())) + "\n" for line in lines))
    interrupted([*fit, "--matrix-free"])
    run("fit", "--train", "many.sorted", *fit[3:], "--matrix-free", "--model", "in.parts", "--resume", status=1, says="was begun with")
    interrupted(fit)
    run(*fit, "--model", "in.parts", "--seed", 2, "--resume", status=1, says="seed 1")
    for other, says in (["--random-start"], "is of subspace identification"), (["--select", "--dev", "text"], "--select starts over"):
        run(*fit[:-2], "--model", "in.parts", *other, "--resume", status=1, says=says)
    run(*fit, "--model", "in.parts", "--resume", says="resume subspace identification after")
    assert content("in.parts") == content("at.once"), "an interrupted identification ends with other bits"
    assert not os.path.exists("in.parts.ssid"), "the state stays beside the model"
    # of a fit that was begun over another, the later one goes on; a state older than the model was left behind
    run("fit", "--train", "many", "--model", "small", "--random-start", "--states", 3, "--iterations", 0, "--threads", 1)
    interrupted(fit, over="small")
    shutil.copy("in.parts.ssid", "left.ssid")
    run(*fit, "--model", "in.parts", "--resume", says="resume subspace identification after")
    assert content("in.parts") == content("at.once"), "a fit over another is not the one that goes on"
    shutil.copy("left.ssid", "in.parts.ssid")
    os.utime("in.parts.ssid", (0, 0))
    run(*fit, "--model", "in.parts", "--resume", says="EM   1", never="resume subspace identification")
    # a state of other options is not said to be that of this call
    shutil.copy("left.ssid", "early.ssid")
    early = [*fit[:3], "--states", 59, "--threads", 1, "--checkpoint-seconds", 1000, "--model", "early"]
    program = subprocess.Popen([PROGRAM, *map(str, early)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    program.stdout.readline()  # of the counts, before subspace identification
    program.send_signal(signal.SIGINT)
    said = program.communicate(timeout=60)[0]
    assert program.returncode == 130 and "Interrupted in subspace identification, before its first state was written" in said, (program.returncode, said)
    write("half1", "".join(lines[:1500]))
    write("half2", "".join(lines[1500:]))
    run("fit", "--train", "half1", "half2", *fit[3:], "--model", "of.two")
    assert content("of.two") == content("at.once"), "two files are one text"


def check_figures():
    run("plot", "--systems", "once", "random", "--names", "first", "second", "--svg", "spectrum.svg")
    drawn = content("spectrum.svg")
    assert b"eigenvalues of A" in drawn and b"singular values" in drawn and b"second" in drawn
    run("plot", "--systems", "random", "--svg", "random.svg")  # has no singular values
    run("plot", "--logs", "net.log", "cut.log", "--names", "whole", "resumed", "--svg", "rnn.svg")
    assert b"epochs" in content("rnn.svg") and b"resumed" in content("rnn.svg")
    run("plot", "--logs", "net.log", "log", "--svg", "x.svg", status=1, says="logs of different kinds")
    # the first network comes to the best of the second in the third of its five epochs
    def of_network(path, values, words="9,00112233aabbccdd"):
        write(path, "epoch,rate,train,valid,test,seconds,words,vocabulary\n" + "".join(f"{i},0.1,,{v},,1,{words}\n" for i, v in enumerate(values)))

    of_network("ahead.log", [500, 200, 150, 119.5, 110, 111, 112])
    of_network("behind.log", [600, 300, 200, 150, 130, 120, 121])
    said = run("plot", "--logs", "ahead.log", "behind.log", "--svg", "epochs.svg")
    assert said.splitlines() == ["ahead: best validation 110.00 in epoch 4", "behind: best validation 120.00 in epoch 5",
                                 "ahead is at 120.00 or below in epoch 3, behind first in epoch 5: 40 % of the epochs saved"], said
    run("plot", "--logs", "behind.log", "ahead.log", "--svg", "epochs.svg", says="behind does not reach the 110.00 of ahead")
    said = run("plot", "--logs", "ahead.log", "behind.log", "ahead.log", "--names", "a", "b", "c", "--svg", "epochs.svg")
    assert said.splitlines()[3:] == ["a is at 120.00 or below in epoch 3, b first in epoch 5: 40 % of the epochs saved",
                                     "a is at 110.00 or below in epoch 4, c first in epoch 4: 0 % of the epochs saved"], said
    # perplexities over different words are not compared
    for number, words in enumerate(("8,00112233aabbccdd", "9,ffeeddccbbaa9988")):
        of_network("other.log", [300, 200], words)
        unchanged("plot", "--logs", "ahead.log", "other.log", "--svg", "x.svg",
                  says=f"plot: the perplexities of 'other.log' are over {words.replace(',', ' words, checksum ')}, those of 'ahead.log' over 9 words, checksum 0")
        write(f"joined{number}.log", content("ahead.log").decode() + f"7,0.1,,100,,1,{words}\n")
        unchanged("plot", "--logs", f"joined{number}.log", "--svg", "x.svg", says=f"joined{number}.log:9: found perplexities over {words.split(',')[0]} words")
    write("short.log", "epoch,rate,train,valid,test,seconds,words,vocabulary\n0,0.1,,500,,1\n")
    unchanged("plot", "--logs", "short.log", "--svg", "x.svg", says="short.log:2: found '0,0.1,,500,,1', expected epoch,rate")
    assert run("plot", "--logs", "log", "--svg", "curve.svg") == "", "the log of a fit has no epochs"
    assert b"counts with" in content("curve.svg")
    run("plot", "--svg", "x.svg", status=1, says="give either --logs")


def check_start():
    """A model of language_model: parameters of one layer, vocabulary, and options as JSON."""
    for cell, name in (("rnn", "rnn1.W"), ("lstm", "lstm1.W")):
        said = run("start", "--model", "once", "--out", f"{cell} start", "--cell", cell)
        rate = " --rate 0.1" if cell == "rnn" else ""
        assert said.endswith(f": language_model train --start-from '{cell} start' --model FILE{rate}\n"), said
        file = content(f"{cell} start")
        length = int.from_bytes(file[:8], "little")
        head = json.loads(file[8:8 + length])
        assert {"E", name, "softmax.W", "softmax.b", "state/vocabulary"} <= set(head), head
        options = options_of(f"{cell} start")
        assert (options["cell"], options["units"], options["layers"], options["head"]) == (cell, 4, 1, "free"), options
    run("start", "--model", "once", "--out", "text", status=1, says="it was left unchanged")
    run("start", "--model", "once", "--out", "wrong.start", "--cell", "lstm", "--init", 0, status=1, says="--init is 0, expected a number above 0")


def check_wrong_input():
    run("fit", "--train", "text", "--model", "m", "--states", 500, status=1, says="500 states")
    run("fit", "--train", "nothing", "--model", "m", status=1, says="nothing")
    run("fit", "--train", "text", "--model", "short", "--states", 4, status=1, says="not a model of lds_text")
    run("fit", "--model", "m", status=1, says="--train")
    run("fit", "--train", "text", "--model", "once", "--resume", "--pseudo-counts", 7, "--ssid-lags", 2, status=1,
        says="other word frequencies")
    again = ["--model", "once", "--resume", "--pseudo-counts", 1, "--ssid-lags", 2, "--em-lags", 4]
    run("fit", "--train", "text", *again, "--sentences", status=1, says="begun without --sentences")
    run("fit", "--counts", "whole", *again, "--sentences", status=1, says="counted across sentences")
    run("fit", "--train", "text", *again, "--log", "short", status=1, says="not a log of")
    write("one", "word word word word word word word word word\n" * 3)
    run("fit", "--train", "one", "--model", "of_one", "--states", 2, "--iterations", 3, "--threads", 1, says="EM   3")
    run("fit", "--train", "short", "--model", "m", "--states", 2, status=1, says="apart")
    run("count", "--text", "text", "--counts", "c", "--shard", "4/3", status=1, says="NUMBER/OF")
    run("count", "--counts", "c", "--add", "whole", "text", status=1, says="text")
    run("tag", "--model", "once", "--vectors", "types", "--train", "t", "--dev", "t", "--test", "t", status=1,
        says="either --model or --vectors")
    run("tag", "--model", "once", "--train", "text", "--dev", "text", "--test", "text", status=1, says="columns")
    run("inspect", "--model", "text", status=1, says="text")
    run("plot", "--logs", "text", "--svg", "x.svg", status=1, says="not a log of")
    run("plot", "--logs", "log", "--names", "a", "b", "--svg", "x.svg", status=1, says="2 names for 1 logs")
    write("cut", "")
    with open("cut", "wb") as f:
        f.write(content("once")[:-10])
    run("inspect", "--model", "cut", status=1, says="cut")


def unchanged(*arguments, says):
    """One sentence, status 1, and every file as it was."""
    before = {name: content(name) for name in os.listdir(".") if os.path.isfile(name)}
    output = run(*arguments, status=1, says=says)
    assert output.startswith("isogloss: ") and output.count("\n") == 1, output
    assert {name: content(name) for name in os.listdir(".") if os.path.isfile(name)} == before, arguments


def check_outputs():
    """No output is an input, another output or somebody else's file, and all of that is known before the work begins."""
    tagged = ["--train", "train.conllu", "--dev", "dev.conllu", "--test", "test.conllu"]
    fit = ["fit", "--train", "text", "--model", "f.lds", "--states", 4, "--iterations", 1]
    rnn = ["rnn", "--train", "text", "--valid", "text"]
    os.symlink("text", "link")
    run("count", "--text", "text", "--counts", "c", "--vocabulary", 6, "--tokens-to", "few.tokens")
    write("notes", "notes of my own\n")
    for name in ["text", "link", "./text"]:
        for call in [["count", "--text", "text", "--counts", name], ["count", "--text", "text", "--counts", "c", "--vocabulary-to", name],
                     ["embed", "--model", "once", "--text", "text", "--out", name], [*fit, "--log", name], [*rnn, "--log", name]]:
            unchanged(*call, says="reads; it was left unchanged")
    with open("latin1", "wb") as file:
        file.write(b"the cat sees caf\xe9\n")
    for broken, says in ("latin1", "UTF-8"), ("few.tokens", "vocabulary"):  # a text that is refused leaves no vectors of words
        unchanged("embed", "--model", "once", "--text", broken, "--out", "new", "--types", "new.types", says=says)
    for call in [["count", "--text", "text", "--counts", "notes"], ["count", "--text", "text", "--counts", "c", "--vocabulary-to", "notes"],
                 ["embed", "--model", "once", "--text", "text", "--out", "notes"], ["embed", "--model", "once", "--types", "notes"],
                 [*fit, "--log", "notes"], [*fit[:3], "--model", "notes"], [*rnn, "--log", "notes"],
                 ["tag", "--model", "once", *tagged, "--predictions", "notes"], ["plot", "--logs", "log", "--svg", "notes"]]:
        unchanged(*call, says="left unchanged")
    # what is of its own kind is replaced, and vectors and tags where that is asked for
    run("count", "--text", "text", "--counts", "whole", "--lags", 5, "--vocabulary-to", "vocabulary")
    run("embed", "--model", "once", "--text", "text", "--out", "tokens", "--types", "types", "--overwrite")
    run("tag", "--model", "once", *tagged, "--epochs", 1, "--predictions", "tags.types", "--overwrite")
    run("plot", "--logs", "log", "--svg", "curve.svg")
    for arguments in [["inspect", "--model", "once"], ["embed", "--model", "once", "--types", "new"], ["--help"]]:
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "standard output could not be written" in done.stderr, (arguments, done)


def check_interruptions():
    """SIGHUP, SIGTERM and a closed pipe end a fit after its iteration, and one fit at a time writes a model."""
    fit = [PROGRAM, "fit", "--train", "text", "--states", "4", "--iterations", "1000000", "--stop", "-1e9", "--threads", "1", "--model", "long"]
    for how in [signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE]:
        if os.path.exists("long"):
            os.remove("long")
        program = subprocess.Popen(fit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        atexit.register(program.kill)  # also where this test fails
        while not os.path.exists("long"):
            assert program.poll() is None, program.communicate()
            time.sleep(0.01)
        run("fit", "--train", "text", "--model", "long", "--states", 4, status=1, says="another program is writing 'long'")
        if how == signal.SIGPIPE:
            program.stdout.close()
            said = program.stderr.read()
        else:
            program.send_signal(how)
            said = program.communicate(timeout=60)[0]
        assert program.wait(timeout=60) == 128 + how and "--resume" in said, (program.returncode, said)
        assert not os.path.exists("long.lock")
    run("inspect", "--model", "long")


def check_numbers():
    fit = ["fit", "--train", "text", "--model", "f.lds", "--states", 4, "--ssid-lags", 2, "--em-lags", 4]
    tagged = ["tag", "--model", "once", "--train", "named", "--dev", "named", "--test", "named"]
    for call, says in [([*tagged, "--format", "conll", "--epochs", 0], "--epochs = 0"), ([*tagged, "--epochs", -1], "--epochs = -1"),
                       ([*tagged, "--window", -1], "--window = -1"), ([*tagged, "--units", 0], "--units = 0"),
                       ([*fit, "--pseudo-counts", "nan"], "--pseudo-counts = nan"), ([*fit, "--seed", -1], "--seed is -1"),
                       ([*fit, "--iterations", 2**63], "--iterations is 9223372036854775808"), ([*fit, "--threads", 2**31 - 1], "1 to 1024"),
                       (["inspect", "--model", "once", "--min-count", "nan"], "--min-count = nan")]:
        unchanged(*call, says=says)
    run(*fit, "--iterations", 3, "--iterations", 0)  # the last counts, as in the other programs


with tempfile.TemporaryDirectory(prefix="isogloss_lds_") as place:
    os.chdir(place)
    write("text", text(grammar(400)))
    write("dev", text(grammar(100, 5)))
    write("short", "a b c\n")
    write("train.conllu", conllu(grammar(150, 2)))
    write("dev.conllu", conllu(grammar(40, 3)))
    write("test.conllu", conllu(grammar(40, 4)))
    check_counts()
    check_fit()
    check_matrix_free()
    check_selection()
    check_slow()
    check_network()
    check_use()
    check_lexical()
    check_sentences()
    check_texts()
    check_near()
    check_identification()
    check_figures()
    check_start()
    check_wrong_input()
    check_outputs()
    check_interruptions()
    check_numbers()
    os.chdir("/")
print("all commands do what they should")
