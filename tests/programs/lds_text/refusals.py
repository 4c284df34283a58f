"""lds_text: options out of range or without effect, files of another kind, texts that do not fit: each is one sentence, and comes before the work."""
import json
import os
import tempfile

from program import content, grammar, run, write


def refused(*arguments, says, stdin=None):
    """One sentence, status 1, and every file as it was."""
    before = {name: content(name) for name in os.listdir(".")}
    output = run(*arguments, status=1, says=says, stdin=stdin)
    assert output.startswith("isogloss: ") and output.count("\n") == 1, output
    assert {name: content(name) for name in os.listdir(".")} == before, arguments


def conll(sentences, blank=" "):
    return "".join("".join(blank.join([w, "X", "X", "B-PLACE" if t == "NOUN" else "O"]) + "\n" for w, t in s) + "\n" for s in sentences)


SIZES = ["--states", 4, "--ssid-lags", 2, "--em-lags", 4, "--threads", 1]
SMALL = [*SIZES, "--pseudo-counts", 1]
DRAWN = [*SMALL[:2], *SMALL[4:]]  # --random-start has no --ssid-lags


def check_ranges():
    fit = ["fit", "--train", "text", "--model", "new"]
    for option, values, says in (("--states", [0, -3, -2**62], "expected at least 1"), ("--ssid-lags", [1, 501, 2**62], "expected 2 to 500"),
                                 ("--em-lags", [0, 1001, 2**62], "expected 1 to 1000")):
        for value in values:
            refused(*fit, *([] if option == "--ssid-lags" else ["--random-start"]), option, value, says=f"found {option} = {value}, {says}")
    rnn = ["rnn", "--train", "text", "--valid", "dev", "--save", "net"]
    for option, values in (("--decay", ["nan", -1, 0, 30]), ("--init", [0, "inf"])):
        for value in values:
            refused(*rnn, option, value, says=f"found {option} = {value}")
    for option, values in (("--rms", [0]), ("--gain", [-1, "nan"]), ("--power", [-1, 2])):
        for value in values:
            refused(*rnn, "--model", "m", option, value, says=f"found {option} = {value}")
    refused("count", "--text", "text", "--counts", "c", "--shard", "1/10000000000", says="at most 1000000000 parts")
    for value in 0, -1, 1025:
        refused(*fit, "--threads", value, says=f"fit: found --threads = {value}, expected 1 to 1024")
    refused(*fit, "--states", "010", says="--states is 010, which would be read as octal")


def check_selection():
    select = ["fit", "--train", "text", "--dev", "dev", "--select", "--ssid-lags", 2, "--em-lags", 4, "--iterations", 1, "--threads", 1]
    said = run(*select, "--model", "selected", "--pseudo-counts", 1, "--states", 500, 4, "--log", "select.log", says="selected: 1 pseudo-counts, 4 states")
    assert "500 states, 2 blocks: left out: subspace identification: " in said, said
    twice = ["--pseudo-counts", 1, 1, "--states", 4, 2, 4, "--ssid-lags", 2, 2]
    said = run(*select, "--model", "selected", *twice, "--log", "twice.log")
    assert said.count(" 4 states, ") + said.count(" 2 states, ") == 3, said  # two candidates, and the one selected
    assert [row.split(",")[7] for row in content("twice.log").decode().splitlines()[1:]] == ["4", "4", "2", "2"], content("twice.log")
    run(*select, "--model", "none", "--states", 500, 600, "--pseudo-counts", 1, status=1, says="none of the 2 candidates")
    assert not os.path.exists("none")
    run(*select, "--model", "selected", "--states", 2, 4, "--pseudo-counts", 1, "--log", "select.log")
    refused("plot", "--logs", "select.log", "--svg", "s.svg", says="select.log:4: iteration 0 comes after 1: the log has several candidates")
    header, row, *_ = content("select.log").decode().splitlines(True)
    for iteration in "1e300", "-1", "0.5":
        write("far.log", header + iteration + row[1:])
        refused("plot", "--logs", "far.log", "--svg", "s.svg", says=f"far.log:2: found '{iteration},")


def check_resumption():
    """Not with a text of the same words in another order, by counts or without."""
    lines = content("text").decode().splitlines(keepends=True)
    write("shuffled", "".join(" ".join(sorted(line.split())) + "\n" for line in lines))
    for more in ([], ["--matrix-free"]):
        fit = ["fit", *SMALL, *more, "--model", "begun"]
        run(*fit, "--train", "text", "--iterations", 1)
        begun = content("begun")
        run(*fit, "--train", "shuffled", "--iterations", 2, "--resume", status=1, says="with the same word frequencies; resume with the text")
        assert content("begun") == begun
    run(*fit, "--train", "text", "--iterations", 2, "--resume", says="EM   2")
    fit = ["fit", *DRAWN, "--train", "text", "--model", "drawn"]
    run(*fit, "--iterations", 1, "--random-start", "--seed", 7)
    refused(*fit, "--resume", "--scaled", says="begun with --random-start, not with --scaled")
    refused(*fit, "--resume", "--seed", 8, says="begun with --seed 7, not with --seed 8")
    refused(*fit, "--resume", "--fixed-noise", says="begun with EM that estimates it, not with --fixed-noise")
    run(*fit, "--iterations", 2, "--random-start", "--seed", 7, "--resume", says="EM   2")
    run(*fit, "--iterations", 3, "--resume", says="EM   3")
    refused("fit", "--train", "text", "--model", "begun", "--resume", "--random-start", *DRAWN, says="begun with subspace identification, not")


def check_before_the_work():
    run("count", "--text", "text", "--counts", "c", "--lags", 5)
    refused("fit", "--counts", "c", "--model", "new", "--states", 4, "--ssid-lags", 2, "--em-lags", 9, says="the counts have distances 1 to 5; give --em-lags 5")
    refused("fit", "--counts", "c", "--model", "new", "--states", 4, "--ssid-lags", 4, "--em-lags", 5,
            says="--ssid-lags is 4, which needs distances 1 to 7, but the counts have 1 to 5; give --ssid-lags 3, or count with --lags 7")
    with open("cut", "wb") as out:
        out.write(content("m")[:-100])
    refused("fit", "--train", "text", "--model", "cut", *SIZES, says="is not a model of lds_text (cut: the tensors take ")
    fit = ["fit", "--train", "text", "--model", "new", *SIZES]
    write("empty", "")
    refused(*fit, "--dev", "nothing", says="nothing")
    refused(*fit, "--dev", "empty", says="the text is empty")
    write("unknown", "the unicorn\n")
    run(*fit, "--dev", "unknown", "--pseudo-counts", 0, status=1, says="'<unk>' occurs in --dev but not in the training text", never="subspace identification:")
    files = ["--train", "named", "--dev", "named", "--test", "named", "--format", "conll", "--features", "lexical", "--epochs", 2]
    refused("tag", *files, "--against", "nothing", says="nothing")
    write("few", "O\nO\n")
    refused("tag", *files, "--against", "few", says="few: holds 2 tags, but the test text has 480 words")
    write("few", "O\nE-PLACE\n")
    refused("tag", *files, "--against", "few", says="few:2: found the tag 'E-PLACE'")
    for command in (["fit", "--model", "new", "--train"], ["count", "--counts", "new", "--text"], ["rnn", "--valid", "dev", "--train"]):
        refused(*command, "/dev/stdin", says="'/dev/stdin' is not a regular file, but its text is read twice", stdin=content("text").decode())
    run("count", "--text", "text", "--counts", "c", "--lags", 5, "--vocabulary-to", "v")
    run("count", "--text", "/dev/stdin", "--counts", "piped", "--lags", 5, "--vocabulary-from", "v", stdin=content("text").decode())
    assert content("piped") == content("c")


def check_tagged_texts():
    tag = ["tag", "--features", "lexical", "--epochs", 2, "--format"]

    def files(name):
        return ["--train", name, "--dev", name, "--test", name]

    run(*tag, "conll", *files("named"), "--predictions", "tags")
    for number, blank in enumerate(("  ", "\t", " \t ")):
        write("spaced", conll(grammar(60), blank))
        run(*tag, "conll", *files("spaced"), "--predictions", f"tags{number}")
        assert content(f"tags{number}") == content("tags"), blank
    for tags in ("S-PLACE", "E-PLACE", "PLACE", "I-", "o"):
        write("wrong", f"the X X O\nhouse X X {tags}\n\n")
        refused(*tag, "conll", *files("wrong"), says=f"wrong:2: found the tag '{tags}', expected O, I-TYPE or B-TYPE")
    for line, says in (("1\t\t_\tDET", "wrong:1: the word is empty"), ("1\tthe\t_\t\t_", "wrong:1: found the tag ''")):
        write("wrong", line + "\n\n")
        refused(*tag, "conllu", *files("wrong"), says=says)


def check_rare_words():
    """By how often a word occurs, whatever its pseudo-counts."""
    write("rare", content("text").decode() + "the unicorn sees the cat in the garden\n")
    run("fit", "--train", "rare", "--model", "rare.lds", *SIZES, "--pseudo-counts", 1000, "--iterations", 1)
    for least, there in ((1, True), (2, False)):
        near = json.loads(run("near", "--model", "rare.lds", "--words", "cat", "--count", 50, "--min-count", least, "--json"))
        assert ("unicorn" in [one["word"] for one in near["near"]]) == there and len(near["near"]) > 9, near
        seen = json.loads(run("inspect", "--model", "rare.lds", "--words", 50, "--min-count", least, "--json"))["dynamics"]
        assert all(("unicorn" in one["from"]) == there and len(one["to"]) > 9 for one in seen), seen
    run("near", "--model", "rare.lds", "--words", "cat", "--min-count", 1e6, says="no other word occurs 1e+06 times")
    run("inspect", "--model", "rare.lds", "--min-count", 1e6, says="no word occurs 1e+06 times", never="->  ")
    assert json.loads(run("near", "--model", "rare.lds", "--words", "cat", "--min-count", 1e6, "--json"))["near"] == []


def check_divergence():
    rnn = ["rnn", "--train", "text", "--valid", "dev", "--batch", 4, "--bptt", 10, "--threads", 1, "--epochs", 3]
    refused(*rnn, "--model", "m", "--gain", 1e30, "--save", "far", says="the perplexity of --valid before training is inf")
    run(*rnn, "--units", 4, "--epochs", 0, "--save", "before")
    run(*rnn, "--units", 4, "--rate", 1e30, "--save", "net", status=1, says="diverges in epoch 1 at rate 1e+30")
    net, before = (file[8 + int.from_bytes(file[:8], "little"):] for file in (content("net"), content("before")))
    assert net == before, "the best network is not that from before training"
    run(*rnn, "--units", 4, "--epochs", 1, "--save", "on")
    said = run(*rnn, "--units", 4, "--epochs", 1, "--save", "on", "--resume", says="resume at epoch 2, batch 0; best validation so far", never="before training")
    assert said.split("so far ")[1].split()[0] == said.split("best validation ")[2].split()[0], said


def check_diverging_taggers():
    """An error that names the model and the option, and no tags."""
    write("one", conll(grammar(1)))  # a single step, after which the weights are not finite
    for name, model, of_model, rate in (("named", "the chain model", ["--features", "lexical"], 1e30),
                                        ("one", "the chain model", ["--features", "lexical"], 1e300), ("named", "the network", ["--model", "m"], 1e38)):
        run("tag", "--train", name, "--dev", name, "--test", name, "--format", "conll", "--epochs", 1, "--threads", 1, "--predictions", "none.tags", *of_model,
            "--rate", rate, status=1, says=f"isogloss: tag: {model} diverges in epoch 1 at rate {rate:g}; use a smaller --rate\n", never="best on dev")
    assert not os.path.exists("none.tags")


def check_without_effect():
    run("count", "--text", "text", "--counts", "c", "--vocabulary-to", "v")
    refused("count", "--counts", "sum", "--add", "c", "c", "--lags", 3, says="count: --lags has no effect with --add")
    refused("count", "--counts", "c", "--text", "text", "--vocabulary-from", "v", "--min-count", 100, says="--min-count has no effect with --vocabulary-from")
    refused("embed", "--model", "m", "--types", "t", "--states", "filter", says="--states has no effect without --text")
    refused("near", "--model", "m", "--words", "cat", "--text", "dev", "--min-count", 2, says="--min-count has no effect with --text")
    refused("fit", "--train", "text", "--model", "new", "--random-start", "--scaled", says="fit: --scaled has no effect with --random-start")
    refused("start", "--model", "m", "--out", "new", "--seed", 9, says="--seed has no effect with --cell rnn")
    refused("rnn", "--train", "text", "--valid", "dev", "--model", "m", "--init", 0.5, says="--init has no effect with --model")
    tag = ["tag", "--train", "named", "--dev", "named", "--test", "named", "--format", "conll"]
    refused(*tag, "--features", "lexical", "--units", 5, says="--units has no effect with --features lexical")


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    write("text", "".join(" ".join(w for w, _ in s) + "\n" for s in grammar(200)))
    write("dev", "".join(" ".join(w for w, _ in s) + "\n" for s in grammar(60, 5)))
    write("named", conll(grammar(60)))
    run("fit", "--train", "text", "--model", "m", "--iterations", 2, *SMALL)
    network = ["rnn", "--train", "text", "--valid", "dev", "--units", 4, "--save", "trained", "--epochs", 1, "--threads", 1]
    run(*network)
    os.rename("trained.train", "elsewhere")
    refused(*network, "--resume", says="'trained' exists, but no training in 'trained.train'")
    os.remove("trained")
    for check in (check_ranges, check_selection, check_resumption, check_before_the_work, check_tagged_texts, check_rare_words, check_divergence,
                  check_diverging_taggers, check_without_effect):
        check()
    os.chdir("/")
print("passed")
