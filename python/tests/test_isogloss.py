"""The Python module: pip install '.[test]' && pytest. What the functions compute is tested in C++; tested here is the
interface: values against NumPy, shared memory, errors, signals."""
import math
import os
import signal
import subprocess
import sys
import threading

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


def test_errors_are_pythons(folder):
    with pytest.raises(TypeError, match="'unit' is not an option"):
        isogloss.train("n", unit=3)
    with pytest.raises(TypeError, match="units is a str"):
        isogloss.train("n", units="many")
    with pytest.raises(TypeError, match="units is a list"):
        isogloss.train("n", units=[])
    with pytest.raises(ValueError, match="^--units is -2, expected at least 1"):
        isogloss.train("n", train="train.txt", valid="valid.txt", units=[8, -2])
    with pytest.raises(ValueError, match="^--units is -1, expected at least 1"):
        isogloss.train("n", train="train.txt", valid="valid.txt", units=-1)
    with pytest.raises(OSError, match="none.txt"):
        isogloss.train("n", train="none.txt", valid="valid.txt")
    with pytest.raises(OSError, match="no safetensors|none"):
        isogloss.LanguageModel("none")
    with pytest.raises(TypeError):
        isogloss.Hmm(2, 3).log_likelihood([0, 1])  # a list is not an array
    with pytest.raises(TypeError):
        isogloss.subspace_distance(np.ones(3), np.ones((3, 2)))  # a vector is not a matrix
    with pytest.raises(ArithmeticError, match="^subspace distance: the matrix is zero"):
        isogloss.subspace_distance(np.zeros((3, 2), np.float32), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="symbol|token"):
        isogloss.Hmm(2, 3).log_likelihood(np.array([0, 7], np.int32))


def test_ctrl_c_saves_and_is_pythons_again(folder):
    # A shell ignores the signal in background jobs, and their child processes would inherit that.
    code = ("import isogloss, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "try:\n    isogloss.train('long', train='train.txt', valid='valid.txt', epochs=100000, units=8, batch=4,"
            " bptt=10, threads=1, min_count=1)\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
            "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\ninput()\n")
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    threading.Timer(120, program.kill).start()
    for line in program.stdout:
        if line.startswith("epoch 1 "):
            program.send_signal(signal.SIGINT)
        if line.startswith("interrupted"):
            break
    program.communicate("\n", timeout=60)
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
    del lds  # arrays own their memory
    assert tokens.shape == (100, 3) and np.allclose((tokens**2).sum(1), 1, atol=1e-5)


def test_hidden_markov_model():
    text = np.array([0, 1] * 200, np.int32)
    hmm = isogloss.Hmm(2, 2, prior=0.01, seed=3)
    likelihoods = [hmm.step([text]) for _ in range(60)]
    assert all(b >= a - 1e-6 for a, b in zip(likelihoods, likelihoods[1:]))
    assert hmm.log_likelihood(text) > -30
    assert np.allclose(hmm.transition.sum(1), 1) and np.allclose(hmm.emission.sum(1), 1)
    sample = hmm.sample(50, seed=2)
    assert sum(a != b for a, b in zip(sample, sample[1:])) > 40


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
