#!/usr/bin/env python3
"""A Baum-Welch step in isogloss, hmmlearn and dynamax, from the same start on the same text, one thread each.

    hmm.py BUILD TEXT [--states 100] [--tokens 100000] [--length 25] [--rounds 3] [--peers hmmlearn,dynamax] [--json FILE]      needs: pip install numpy hmmlearn [dynamax]

BUILD is the folder of the benchmark programs (build/release/benchmarks). The first --tokens words of TEXT and its line ends, the 9,998 most
frequent ones and <unk> as separate symbols, are cut into sequences of --length, all equally long because dynamax requires it. hmmlearn's
CategoricalHMM runs with `implementation="scaling"`, the faster of its two, dynamax's in float, compiled beforehand, up to 16 sequences at a
time; isogloss and hmmlearn use double. The log-likelihood before the step must agree, to 1e-9 with hmmlearn and 1e-4 with dynamax. The sides
alternate; time is processor time, a figure the median over the rounds, a ratio the median of the rounds' ratios (the peer's time over ours).
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from inputs import SCRIPT, ask, at_least, lacks_module, require_place, require_programs

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import numpy as np
except ImportError as missing:
    lacks_module(missing)


def sequences(path, tokens, length, symbols):
    """[number, length] word indices by decreasing frequency, the last index for all remaining words."""
    try:
        with open(path, encoding="utf-8") as f:
            words = [word for line in f for word in line.split() + ["<eos>"]]
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{SCRIPT}: '{path}' cannot be read as a text ({error}). Give the name of a text in UTF-8")
    if min(len(words), tokens) < length:
        sys.exit(f"{SCRIPT}: found {min(len(words), tokens)} tokens, expected at least one sequence of {length}. Give a longer text, more --tokens or a "
                 "lower --length")
    order = [word for word, _ in collections.Counter(words).most_common(symbols - 1)]
    number = {word: i for i, word in enumerate(order)}
    found = np.array([number.get(word, symbols - 1) for word in words[:tokens]], np.int32)
    return found[: len(found) // length * length].reshape(-1, length)


class Ours:
    name = "isogloss"

    def __init__(self, build, x, start, rounds):
        self.place = tempfile.TemporaryDirectory(prefix="hmm_")
        folder = pathlib.Path(self.place.name)
        np.concatenate([part.ravel() for part in start]).tofile(folder / "start")
        np.concatenate([np.array([x.shape[1]], np.int32), x.ravel()]).tofile(folder / "texts")
        states, symbols = start[2].shape
        self.program = subprocess.Popen([build / "peer_hmm", str(states), str(symbols), folder / "start", folder / "texts", str(rounds)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self):
        seconds, likelihood = map(float, ask(self.program, 2, "\n"))
        return seconds, likelihood


class Hmmlearn:
    name = "hmmlearn"

    def __init__(self, x, start):
        from hmmlearn.hmm import CategoricalHMM
        self.make, self.start = CategoricalHMM, start
        self.x, self.lengths = x.reshape(-1, 1), [x.shape[1]] * len(x)

    def step(self):
        model = self.make(self.start[2].shape[0], n_features=self.start[2].shape[1], n_iter=1, init_params="", params="ste",
                          implementation="scaling")
        model.startprob_, model.transmat_, model.emissionprob_ = (part.copy() for part in self.start)
        begin = time.process_time()
        model.fit(self.x, self.lengths)
        return time.process_time() - begin, model.monitor_.history[0]


class Dynamax:
    name = "dynamax"

    def __init__(self, x, start):
        import jax
        import jax.numpy as jnp
        from dynamax.hidden_markov_model import CategoricalHMM
        states, symbols = start[2].shape
        self.hmm = CategoricalHMM(states, 1, symbols, initial_probs_concentration=1.0, transition_matrix_concentration=1.0,
                                  emission_prior_concentration=1.0)
        init, transition, emission = (jnp.array(part, jnp.float32) for part in start)
        self.params, self.props = self.hmm.initialize(jax.random.PRNGKey(0), initial_probs=init, transition_matrix=transition,
                                                      emission_probs=emission[:, None, :])
        together = next(n for n in (16, 10, 8, 5, 4, 2, 1) if len(x) % n == 0)
        self.x = jnp.array(x.reshape(-1, together, x.shape[1], 1))

        # All sequences at once, as in fit_em, would need a states × symbols matrix of statistics for each.
        @jax.jit
        def step(params, state, x):
            def chunk(sums, x):
                found = jax.vmap(lambda one: self.hmm.e_step(params, one))(x)
                return jax.tree.map(lambda a, b: a + b.sum(0), sums, found), None

            shapes = jax.eval_shape(lambda: self.hmm.e_step(params, x[0, 0]))
            (statistics, likelihood), _ = jax.lax.scan(chunk, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes), x)
            made, state = self.hmm.m_step(params, self.props, jax.tree.map(lambda a: a[None], statistics), state)
            return made, likelihood

        self.run, self.jax, self.state = step, jax, self.hmm.initialize_m_step_state(self.params, self.props)
        self.step()  # compiles

    def step(self):
        begin = time.process_time()
        _, likelihood = self.jax.block_until_ready(self.run(self.params, self.state, self.x))
        return time.process_time() - begin, float(likelihood)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("text")
    parser.add_argument("--states", type=at_least(1), default=100)
    parser.add_argument("--symbols", type=at_least(2), default=10000)
    parser.add_argument("--tokens", type=at_least(1), default=100000)
    parser.add_argument("--length", type=at_least(1), default=25)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--peers", default="hmmlearn,dynamax")
    parser.add_argument("--json")
    o = parser.parse_args()
    require_programs(o.build / "peer_hmm")
    require_place(o.json)
    x = sequences(o.text, o.tokens, o.length, o.symbols)
    random = np.random.default_rng(1)
    start = [np.full(o.states, 1 / o.states), random.dirichlet(np.ones(o.states), o.states), random.dirichlet(np.ones(o.symbols), o.states)]
    sides = [Ours(o.build.resolve(), x, start, o.rounds)]
    for peer in (peer for peer in (Hmmlearn, Dynamax) if peer.name in o.peers.split(",")):
        try:
            sides.append(peer(x, start))
        except ImportError as error:
            print(f"without {peer.name}: {error}")
    rounds = []
    for i in range(o.rounds):
        found = {side.name: side.step() for side in sides}
        ours = found["isogloss"][1]
        for name, (_, likelihood) in found.items():
            if not abs(likelihood / ours - 1) <= (1e-4 if name == "dynamax" else 1e-9):  # NaN agrees with nothing
                sys.exit(f"{name}: the log-likelihood is {likelihood}, of isogloss {ours}")
        rounds.append({name: seconds for name, (seconds, _) in found.items()})
        print(f"round {i + 1}: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in rounds[-1].items()), flush=True)
    for side in sides:
        seconds = statistics.median(r[side.name] for r in rounds)
        ratio = statistics.median(r[side.name] / r["isogloss"] for r in rounds)
        print(f"{side.name}: {seconds:.2f} s, {1e6 * seconds / x.size:.2f} us a token, {ratio:.1f} times ours")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"states": o.states, "symbols": o.symbols, "tokens": x.size, "length": o.length, "rounds": rounds}, f, indent=1)


if __name__ == "__main__":
    main()
