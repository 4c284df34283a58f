"""The Python module: pip install '.[test]' && pytest. What the functions compute is tested in C++; tested here is the
interface: values against NumPy, shared memory, errors, signals."""
import contextlib
import csv
import io
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import isogloss
import numpy as np
import pytest


def sentences(count, seed=1):
    state, lines = seed, []
    nouns, verbs = "cat dog king queen".split(), "sees likes greets".split()

    def pick(words):
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return words[(state >> 16) % len(words)]

    for _ in range(count):
        lines.append(f"the {pick(nouns)} {pick(verbs)} the {pick(nouns)}\n")
    return "".join(lines)


SMALL = dict(units=8, batch=4, bptt=10, threads=1, min_count=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("isogloss")
    (place / "train.txt").write_text(sentences(400))
    (place / "valid.txt").write_text(sentences(60, 2))
    before = os.getcwd()
    os.chdir(place)
    isogloss.train("m", train="train.txt", valid="valid.txt", epochs=3, **SMALL)
    yield place
    os.chdir(before)


def test_a_trained_model_predicts_and_its_vectors_are_its_own(folder):
    model = isogloss.LanguageModel("m")
    assert model.perplexity("valid.txt") < 6  # 2.6 possible words on average, 11 types
    assert model.vectors.shape == (len(model.words), 8) and model.vectors.dtype == np.float32
    scores = model.score(["the cat sees the dog", "dog dog the unheard"])
    assert scores[0][0] > scores[1][0] and [s[1:] for s in scores] == [(6, 0), (5, 1)]
    nats = -sum(model.score([line])[0][0] for line in sentences(20, 2).splitlines())
    assert 0 < nats < 20 * 6 * math.log(len(model.words))
    text = model.sample(words=30, seed=3)
    assert text == model.sample(words=30, seed=3) and set(text.split()) <= set(model.words)
    assert model.sample(words=3, prompt="the cat", temperature=0).startswith("the cat")
    before = model.perplexity("valid.txt")
    model.vectors[:] = 0  # the array is the model's own memory
    assert model.perplexity("valid.txt") > 1.2 * before
    vectors = isogloss.LanguageModel("m").vectors
    assert np.isfinite(vectors).all()  # the array keeps the model alive


def test_portable_trainings_have_the_same_bytes_for_any_number_of_threads(folder):
    options = {**SMALL, "train": "train.txt", "valid": "valid.txt", "units": 64, "epochs": 1, "overwrite": True}
    isogloss.portable(True)
    try:
        for threads in 1, 2:
            isogloss.train(f"p{threads}", **{**options, "threads": threads})
        assert pathlib.Path("p1").read_bytes() == pathlib.Path("p2").read_bytes()
        with pytest.raises(ValueError, match="--portable .true given, false stored."):
            isogloss.train("m", resume=True)
    finally:
        isogloss.portable(False)
    isogloss.train("p1", resume=True, epochs=2)  # goes on as it was begun
    isogloss.train("m", resume=True)  # and leaves the process as it was


def test_errors_are_pythons(folder):
    with pytest.raises(TypeError, match="'unit' is not an option"):
        isogloss.train("n", unit=3)
    with pytest.raises(TypeError, match="units is a str"):
        isogloss.train("n", units="many")
    with pytest.raises(TypeError, match="units is a list"):
        isogloss.train("n", units=[])
    with pytest.raises(TypeError, match="found -1, expected a whole number of at least 0"):
        isogloss.train("n", seed=-1)
    with pytest.raises(ValueError, match="found no texts, expected train and valid, or corpus"):
        isogloss.train("n")
    with pytest.raises(ValueError, match="found no training 'nothere.train'"):
        isogloss.train("nothere", resume=True)
    open("empty.train", "w").close()
    for name, texts in ("empty", {}), ("nothere", {"train": "", "valid": ""}), ("a\udcff", {}):
        with pytest.raises(ValueError, match="found no training"):
            isogloss.train(name, resume=True, **texts)
    with pytest.raises(OSError):
        isogloss.train("a" * 300, resume=True)
    with pytest.raises(TypeError, match="expected a whole number of 32 bits"):
        isogloss.train("n", threads=2**40)
    with pytest.raises(ValueError, match="columns"):
        isogloss.LanguageModel("m", columns=0)
    for path in "a\udcff", pathlib.Path("a\udcff"):  # a name that is not UTF-8, as os.fsdecode has it
        with pytest.raises(OSError, match="a\udcff"):
            isogloss.LanguageModel(path)
        with pytest.raises(ValueError, match="--train 'a.*' is not UTF-8"):
            isogloss.train("n", train=path, valid=path, **SMALL)
    with pytest.raises(ValueError, match="^--units is -2, expected at least 1"):
        isogloss.train("n", train="train.txt", valid="valid.txt", units=[8, -2])
    with pytest.raises(ValueError, match="^--units is -1, expected at least 1"):
        isogloss.train("n", train="train.txt", valid="valid.txt", units=-1)
    with pytest.raises(ArithmeticError, match="^the training diverged; what it printed says whether a model was written to 'd'$"):
        isogloss.train("d", train="train.txt", valid="valid.txt", rate=1e38, **SMALL)
    with pytest.raises(OSError, match="none.txt"):
        isogloss.train("n", train="none.txt", valid="valid.txt")
    with pytest.raises(OSError, match="no safetensors|none"):
        isogloss.LanguageModel("none")
    with pytest.raises(TypeError):
        isogloss.subspace_distance(np.ones(3), np.ones((3, 2)))  # a vector is not a matrix
    with pytest.raises(ArithmeticError, match="^subspace distance: the matrix is zero"):
        isogloss.subspace_distance(np.zeros((3, 2), np.float32), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="symbol|token"):
        isogloss.Hmm(2, 3).log_likelihood(np.array([0, 7], np.int32))


def test_threads_that_share_a_model_take_turns(folder):
    model = isogloss.LanguageModel("m", columns=20)
    texts = [sentences(300, seed).splitlines() for seed in (3, 4)]
    alone = [model.score(lines) for lines in texts]
    hmm = isogloss.Hmm(3, 4, seed=2)
    symbols = np.random.default_rng(1).integers(0, 4, 3000)
    likelihood = hmm.log_likelihood(symbols)
    wrong, errors = [], []

    def work(k):
        try:
            for _ in range(100):
                if model.score(texts[k]) != alone[k]:
                    wrong.append(k)
                if hmm.log_likelihood(symbols) != likelihood:
                    wrong.append(k)
        except BaseException as error:
            errors.append(error)

    def run(*works):
        threads = [threading.Thread(target=f) for f in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(lambda: work(0), lambda: work(1))
    assert not wrong and not errors, (len(wrong), errors[:2])
    steps = [isogloss.Hmm(3, 4, seed=2) for _ in range(2)]
    together, expected = [], [steps[0].step([symbols]) for _ in range(60)]
    run(*[lambda: together.extend(steps[1].step([symbols]) for _ in range(30))] * 2)
    assert sorted(together) == sorted(expected) and np.array_equal(steps[0].emission, steps[1].emission)


def test_paths_are_those_of_pathlib_too(folder):
    place = pathlib.Path(folder)
    isogloss.train(place / "p", train=place / "train.txt", valid=place / "valid.txt", epochs=1, **SMALL)
    model = isogloss.LanguageModel(place / "p")
    assert model.perplexity(place / "valid.txt") == isogloss.LanguageModel("p").perplexity("valid.txt")
    with pytest.raises(TypeError, match="cell is a int"):
        isogloss.train("n", cell=3)


def test_what_is_no_line_is_refused(folder):
    model = isogloss.LanguageModel("m")
    for bad, what in [("the cat\nsees", "line feed"), ("the cat\n", "line feed"), ("the\0cat", "NUL")]:
        with pytest.raises(ValueError, match=f"^line 2: .*{what}"):
            model.score(["the cat", bad])
    assert [s[1:] for s in model.score(["", "the"])] == [(1, 0), (2, 0)]


def test_one_str_is_not_a_list_of_lines(folder):
    model = isogloss.LanguageModel("m")
    for bad in "the cat", np.str_("the cat"):
        with pytest.raises(TypeError, match="^LanguageModel.score: found one str, expected a list of lines"):
            model.score(bad)
    for bad in [["the", 3], 7, [b"the"]]:
        with pytest.raises(TypeError, match="^LanguageModel.score: found .*, expected a list of str"):
            model.score(bad)
    assert model.score(("the cat",)) == model.score(np.array(["the cat"])) == model.score(["the cat"])


def test_columns_begin_afresh(folder):
    with open("short.txt", "w") as file:
        file.write("the cat sees a dog\n" * 4)
    one, many = (isogloss.LanguageModel("m", columns=n).perplexity("short.txt") for n in (1, 8))
    assert one != many and abs(math.log(one / many)) < 1


def test_a_forked_process_has_one_thread(folder):
    code = ("import isogloss, numpy as np, os, signal\nh, text = isogloss.Hmm(20, 9), np.arange(60000, dtype=np.int32) % 9\n"
            "isogloss.threads(2)\nbefore = h.log_likelihood(text)\nh.step([text])\npid = os.fork()\n"
            "if pid == 0:\n    signal.alarm(60)\n    h.step([text])\n    os._exit(h.log_likelihood(text) > before)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done


def test_epochs_are_told_and_returned(folder):
    seen, out = [], io.StringIO()

    def watch(row):
        seen.append(dict(row))
        assert isogloss.LanguageModel("e").perplexity("valid.txt") > 1  # the model so far is there
        with pytest.raises(ValueError, match="^train: called within a training of the same thread"):
            isogloss.train("f", train="train.txt", valid="valid.txt", **SMALL)
        row.clear()  # which is the caller's own

    with contextlib.redirect_stdout(out):
        log = isogloss.train("e", watch, train="train.txt", valid="valid.txt", epochs=2, log="e.csv", head="free", subspace=True, **SMALL)
    assert log == seen and [row["epoch"] for row in log] == [1, 2]
    assert "\nepoch 2  train " in out.getvalue() and "\nThe best model, of epoch 2" in out.getvalue()
    with open("e.csv", newline="") as file:
        for row, line in zip(log, csv.DictReader(file), strict=True):
            line.pop("run")
            assert row.keys() == line.keys()
            for name, value in row.items():
                assert type(value)(line[name]) == value, name
    assert 0 < log[1]["subspace_distance"] <= 1 and log[1]["valid_perplexity"] < log[0]["valid_perplexity"]
    log = isogloss.train("g", train="train.txt", valid="valid.txt", epochs=1, loss="ce", **SMALL)
    assert log[0]["subspace_distance"] is None and log[0]["tau_log_v"] is None


def test_what_on_epoch_raises_ends_the_training(folder):
    def stop(row):
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        isogloss.train("h", on_epoch=stop, train="train.txt", valid="valid.txt", epochs=9, **SMALL)
    assert [row["epoch"] for row in isogloss.train("h", resume=True, epochs=2)] == [2]
    with pytest.raises(TypeError, match="^train: on_epoch is a int, expected a function of one argument"):
        isogloss.train("h", on_epoch=3, resume=True)


def test_output_without_a_reader_does_not_end_a_training(folder):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with contextlib.redirect_stdout(Closed()):
        assert len(isogloss.train("i", train="train.txt", valid="valid.txt", epochs=1, **SMALL)) == 1
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        isogloss.train("i", resume=True, epochs=2)
    assert "epoch 2" in out.getvalue()


def test_weights_are_named(folder):
    model = isogloss.LanguageModel("e")
    weights = model.weights
    assert np.shares_memory(weights["E"], model.vectors) and weights["softmax.W"].shape == (len(model.words), 8)
    before = model.perplexity("valid.txt")
    weights["softmax.W"][:] = 0
    assert model.perplexity("valid.txt") != before


def test_nearest_agrees_with_numpy():
    table = np.random.default_rng(4).normal(size=(30, 5)).astype(np.float32)
    unit = table.astype(float) / np.linalg.norm(table.astype(float), axis=1, keepdims=True)
    cosines = unit @ unit[7]
    order = [i for i in np.argsort(-cosines) if i != 7][:4]
    found = isogloss.nearest(table, 7, 4)
    assert [i for i, _ in found] == order and np.allclose([c for _, c in found], cosines[order])
    assert isogloss.nearest(table, np.int64(7), 4) == found
    assert isogloss.nearest(table, table[7], 5)[1:] == found and isogloss.nearest(table.tolist(), list(table[7]), 1)[0][0] == 7
    for wrong, what in [(30, "nearest: found row 30"), ([1, 2], "nearest: found a table"), ([[1.0]], "nearest: query: found list of 2")]:
        with pytest.raises((ValueError, TypeError), match=f"^{what}"):
            isogloss.nearest(table, wrong)
    with pytest.raises(ArithmeticError, match="^nearest: .*query"):
        isogloss.nearest(table, np.zeros(5))
    assert len(isogloss.nearest(table, 0)) == 10 and isogloss.nearest(table, 0, 0) == []


def test_seeds_and_other_arguments_matter(folder):
    model = isogloss.LanguageModel("m", columns=1)
    assert model.sample(words=40, seed=1) != model.sample(words=40, seed=2)
    a, b = isogloss.Hmm(3, 4, seed=1), isogloss.Hmm(3, 4, seed=2)
    assert a.transition.shape == (3, 3) and a.emission.shape == (3, 4) and np.allclose(a.transition.sum(1), 1)
    assert not np.array_equal(a.emission, b.emission) and not np.array_equal(a.sample(50, seed=1), a.sample(50, seed=2))
    for prior in 0, 1:
        hmm = isogloss.Hmm(2, 3, prior=prior)
        hmm.step([[0, 1, 0, 1]])
        assert (hmm.emission[:, 2] > 0).all() == (prior > 0), prior
    with pytest.raises(ValueError, match="threads"):
        isogloss.threads(0)


def test_options_of_sample_are_bounded(folder):
    model = isogloss.LanguageModel("m")
    for words in (0, -1, 10**9 + 1, 2**62):
        with pytest.raises(ValueError, match=f"--words = {words}, expected 1 to 1000000000"):
            model.sample(words=words)
    for temperature in (-1, 1e-300, 0.009, 101, 1e300, math.inf, math.nan):
        with pytest.raises(ValueError, match="--temperature = .*, expected 0, for the most probable .* or 0.01 to 100"):
            model.sample(temperature=temperature)
    for temperature in (0.01, 100):
        assert model.sample(words=3, temperature=temperature)


def test_tokens_are_whole_numbers_of_32_bits():
    hmm = isogloss.Hmm(2, 3)
    expected = hmm.log_likelihood(np.array([0, 1, 2], np.int32))
    for same in ([0, 1, 2], (0, 1, 2), np.array([0, 1, 2]), np.array([0, 1, 2], np.uint8), np.array([0, 1, 2], ">i4"),
                 np.array([0, 9, 1, 9, 2, 9])[::2], np.frombuffer(b"-" + np.array([0, 1, 2], np.int32).tobytes(), np.int32, offset=1)):
        assert hmm.log_likelihood(same) == expected
    assert hmm.log_likelihood([]) == 0 and hmm.log_likelihood([-1, 0]) == hmm.log_likelihood(np.array([-1, 0], np.int32))
    for wrong in (np.array([0.9, 1.9]), np.array([0, math.nan]), [0.5], np.array([True, False]), np.array([1j]), ["a"], "ab", 3,
                  [[0, 1]], [2**70]):
        for call in (hmm.log_likelihood, lambda x: hmm.step([[0, 1], x]), lambda x: isogloss.Lds(x, 3, states=1)):
            with pytest.raises(TypeError, match="expected (a text|whole numbers)"):
                call(wrong)
    for wrong, what in [([0, 2**32 + 1], "4294967297 at position 1"), ([2**31], "2147483648 at position 0"),
                        ([0, 1, -2**31 - 1], "-2147483649 at position 2"), (np.array([2**64 - 1], np.uint64), "18446744073709551615")]:
        with pytest.raises(ValueError, match=f"^Hmm.log_likelihood: found {what}"):
            hmm.log_likelihood(wrong)
        with pytest.raises(ValueError, match=f"^Hmm.step: texts\\[1\\]: found {what}"):
            hmm.step([[0, 1], wrong])
        with pytest.raises(ValueError, match=f"^Lds: found {what}"):
            isogloss.Lds(wrong, 3, states=1)


def test_metrics_take_lists_and_any_real_numbers():
    x = np.random.default_rng(5).normal(size=(8, 3))
    y = np.asfortranarray(x[::-1] + 1)
    expected, angles = isogloss.subspace_distance(x, y), isogloss.principal_angles(x, y)
    for same in (x.tolist(), x.astype(">f8"), x.astype(np.longdouble), np.repeat(x, 2, 0)[::2]):
        assert isogloss.subspace_distance(same, y) == expected and isogloss.principal_angles(same, y) == angles
    assert isogloss.spearman([1, 2, 3], np.array([4, 9, 8], np.uint8)) == pytest.approx(0.5)
    for call in isogloss.subspace_distance, isogloss.principal_angles:
        for wrong, what in [(np.ones(3), "ndarray of 1 dimensions"), ([[[1.0]]], "list of 3 dimensions"), (x.astype(complex), "complex128"),
                            ([["a"]], "list of type <U1")]:
            with pytest.raises(TypeError, match=f"^{call.__name__}: y: found .*{what}.*, expected (a matrix|real numbers)"):
                call(x, wrong)
    with pytest.raises(TypeError, match="^spearman: x: found list of 2 dimensions, expected a vector"):
        isogloss.spearman([[1, 2]], [1, 2])


def test_long_calls_let_other_threads_run(folder):
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, 3000, 150))
    hmm, text = isogloss.Hmm(60, 20), random.integers(0, 20, 60000).astype(np.int32)
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for call in (lambda n: isogloss.principal_angles(np.tile(x, (n, 1)), np.tile(y, (n, 1))),
                     lambda n: isogloss.subspace_distance(np.tile(x, (n, 1)), np.tile(y, (n, 1))),
                     lambda n: hmm.log_likelihood(np.tile(text, n)), lambda n: hmm.sample(200000 * n),
                     lambda n: hmm.step([np.tile(text, n)]), lambda n: isogloss.LanguageModel("m", columns=4000 * n),
                     lambda n: isogloss.Hmm(500, 4000 * n)):
            n, begin, end = 1, 0, 0
            while end - begin < 0.2 and n <= 64:  # long enough for the other thread on a busy machine, too
                begin = time.monotonic()
                call(n)
                end = time.monotonic()
                n *= 4
            assert end - begin < 0.05 or any(begin + 0.01 < t < end - 0.01 for t in ticks), end - begin
    finally:
        ended.set()
        thread.join()


def ends_by_ctrl_c(call):
    """Whether a call in a process of its own ends with KeyboardInterrupt soon after the signal, which comes after 1 s."""
    code = ("import isogloss, numpy as np, os, signal, threading\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "text = np.arange(4000, dtype=np.int32) * 7 % 11 % 4\n"
            "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            f"try:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return False
    return done.stdout == "interrupted\n" and done.returncode == 0


def test_ctrl_c_ends_long_calls(folder):
    assert ends_by_ctrl_c("isogloss.Lds(text, 4, states=2, iterations=10**8)")
    assert ends_by_ctrl_c("isogloss.LanguageModel('m').sample(words=10**9)")
    waits = ("m = isogloss.LanguageModel('m')\n    threading.Thread(target=lambda: m.sample(words=10**9), daemon=True).start()\n"
             "    __import__('time').sleep(0.3)\n    try:\n        m.score(['the'])\n    except KeyboardInterrupt:\n"
             "        print('interrupted', flush=True)\n        os._exit(0)  # the other thread is still in the midst of its call")
    assert ends_by_ctrl_c(waits)


def test_a_signal_handler_may_not_use_a_model_in_use(folder):
    code = ("import isogloss, signal\nm = isogloss.LanguageModel('m')\nsignal.signal(signal.SIGALRM, lambda *_: m.score(['the']))\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.5)\ntry:\n    m.sample(words=10**9)\nexcept ValueError as error:\n    print(error)\n"
            "assert m.score(['the'])\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "in the midst of another call of this thread" in done.stdout, done


def test_ctrl_c_saves_and_is_pythons_again(folder):
    # A shell ignores the signal in background jobs, and their child processes would inherit that.
    code = ("import isogloss, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "try:\n    isogloss.train('long', train='train.txt', valid='valid.txt', epochs=100000, units=8, batch=4,"
            " bptt=10, threads=1, min_count=1)\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
            "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\ninput()\n")
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    killer = threading.Timer(120, program.kill)
    killer.start()
    try:
        for line in program.stdout:
            if line.startswith("epoch 1 "):
                program.send_signal(signal.SIGINT)
            if line.startswith("interrupted"):
                break
        program.communicate("\n", timeout=60)
    finally:
        killer.cancel()
        program.kill()
    assert program.returncode == 0 and os.path.exists("long.train")
    isogloss.train("long", resume=True, epochs=1)


def test_linear_dynamical_system():
    random = np.random.default_rng(1)
    step = np.array([[0.9, 0.1, 0, 0], [0, 0, 0.5, 0.5], [0.2, 0.2, 0.3, 0.3], [0.7, 0.1, 0.1, 0.1]])
    text = [0]
    for _ in range(5000):
        text.append(random.choice(4, p=step[text[-1]]))
    text = np.array(text, np.int32)
    lds = isogloss.Lds(text, 4, states=3, iterations=3)
    vectors = lds.word_vectors()
    assert vectors.shape == (4, 3) and np.allclose((vectors**2).sum(1), 1, atol=1e-5)
    tokens = lds.embed(text[:100])
    filtered, smoothed = lds.filter(text[:100]), lds.smooth(text[:100])
    assert filtered.shape == smoothed.shape == (100, 3) and filtered.dtype == np.float32
    assert np.allclose(filtered[-1], smoothed[-1], atol=1e-5) and not np.allclose(filtered[:-1], smoothed[:-1], atol=1e-2)
    assert np.allclose(lds.filter(text[:60]), filtered[:60], atol=1e-6)  # knows nothing of what comes later
    share = np.bincount(text, minlength=4) / len(text)
    assert lds.cross_entropy(text) < -(share * np.log(share)).sum()
    A = lds.transition
    assert A.shape == (3, 3) and not A.flags.writeable and np.abs(np.linalg.eigvals(A)).max() < 1
    for call in lds.filter, lds.smooth, lds.cross_entropy:
        with pytest.raises(ValueError, match="found token.* 4"):
            call([0, 4])
    with pytest.raises(ValueError, match="without tokens"):
        lds.cross_entropy([])
    del lds  # arrays own their memory
    assert np.isfinite(A).all()
    for option, value in [("iterations", -1), ("states", 0), ("lags", 2), ("lags", 1001), ("pseudo_counts", -1.0),
                          ("pseudo_counts", math.nan)]:
        with pytest.raises(ValueError, match=f"^Lds: found {option} = "):
            isogloss.Lds(text, 4, **{"states": 2, option: value})
    assert isogloss.Lds(text.tolist(), 4, states=2, iterations=0, lags=3).word_vectors().shape == (4, 2)
    assert tokens.shape == (100, 3) and np.allclose((tokens**2).sum(1), 1, atol=1e-5)


def test_hidden_markov_model():
    text = np.array([0, 1] * 200, np.int32)
    hmm = isogloss.Hmm(2, 2, prior=0.01, seed=3)
    likelihoods = [hmm.step([text]) for _ in range(60)]
    assert all(b >= a - 1e-6 for a, b in zip(likelihoods, likelihoods[1:]))
    assert hmm.log_likelihood(text) > -30
    assert np.allclose(hmm.transition.sum(1), 1) and np.allclose(hmm.emission.sum(1), 1)
    posteriors, (path, log_probability) = hmm.posteriors(text), hmm.most_probable_path(text)
    assert posteriors.shape == (400, 2) and np.allclose(posteriors.sum(1), 1)
    assert path.shape == (400,) and all(path[:-1] != path[1:]) and np.array_equal(path, posteriors.argmax(1))
    assert hmm.log_likelihood(text) - 1 < log_probability <= hmm.log_likelihood(text)
    lasting = isogloss.Hmm(3, 2, stay=0.9)
    assert (np.diag(lasting.transition) >= 0.9).all() and np.allclose(lasting.transition.sum(1), 1)
    with pytest.raises(ValueError, match="^hmm: found stay = 2"):
        isogloss.Hmm(3, 2, stay=2)
    assert hmm.posteriors([]).shape == (0, 2) and hmm.most_probable_path([])[1] == 0
    sample = hmm.sample(50, seed=2)
    assert sum(a != b for a, b in zip(sample, sample[1:])) > 40
    assert isinstance(sample, np.ndarray) and sample.dtype == np.int32 and sample.shape == (50,)
    del hmm  # the array owns its memory
    hmm = isogloss.Hmm(2, 2, prior=0.01, seed=3)
    assert hmm.step([sample]) == pytest.approx(isogloss.Hmm(2, 2, seed=3).log_likelihood(sample))
    assert isogloss.Hmm(2, 2).sample(0).shape == (0,)


def test_help_gives_ranges():
    for what, words in [(isogloss.Lds.__init__, ["iterations", "at least 0", "lags", "3 to 1000", "pseudo_counts", "None:"]),
                        (isogloss.Hmm.__init__, ["prior", "0 to 1e100", "seed"]), (isogloss.LanguageModel.__init__, ["columns"]),
                        (isogloss.LanguageModel.sample, ["temperature", "0.01 to 100", "10**9"]), (isogloss.threads, ["1 to 1024"])]:
        assert all(word in what.__doc__ for word in words), what.__doc__


def test_metrics_agree_with_numpy():
    random = np.random.default_rng(2)
    x, y = random.normal(size=(20, 3)), random.normal(size=(20, 3))
    qx, qy = np.linalg.qr(x)[0], np.linalg.qr(y)[0]
    cosines = np.linalg.svd(qx.T @ qy)[1]
    assert np.allclose(np.cos(isogloss.principal_angles(x, y)), np.sort(cosines)[::-1])
    assert isogloss.subspace_distance(x, x) < 1e-6 < isogloss.subspace_distance(x, y) <= 1
    assert isogloss.embedding_dimension(1e5) == 96
    ranks = lambda v: np.argsort(np.argsort(v))
    a, b = random.normal(size=30), random.normal(size=30)
    assert isogloss.spearman(a, b) == pytest.approx(np.corrcoef(ranks(a), ranks(b))[0, 1])
