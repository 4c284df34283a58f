"""The other scripts of benchmarks/, with stand-ins for the programs that they measure: what is missing is found before the work,
and what is made for a run is removed, however it ends.

Usage: scripts.py BENCHMARKS
"""
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import types

FOLDER = os.path.abspath(sys.argv[1])
PEERS = os.path.join(FOLDER, "peers")
sys.path.insert(0, PEERS)  # as for a script that is run


def script(*path):
    spec = importlib.util.spec_from_file_location("script", os.path.join(FOLDER, *path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stand_in(path, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + lines)
    os.chmod(path, 0o755)


def ends(module, *arguments):
    """What a script says that ends with an error."""
    sys.argv = ["script.py", *arguments]
    try:
        module.main()
    except SystemExit as ended:
        return str(ended)
    raise AssertionError(f"{arguments}: ended without an error")


def cooccur():
    """Nothing is left in the folder, which is the current one by default."""
    stand_in("build/benchmarks/zipf_text", 'echo "the cat"\n')
    stand_in("build/programs/lds_text", 'touch ours words\n')
    stand_in("glove/vocab_count", 'echo "the 1"\n')
    stand_in("glove/cooccur", 'cat > overflow\n')
    os.mkdir("here")
    for more, status in ([], 0), (["--folder", "."], 0), (["--folder", ".", "--check"], 1):  # there are no counts to compare
        done = subprocess.run([sys.executable, "-B", os.path.join(PEERS, "cooccur.py"), "../build", "../glove", "--rounds", "1",
                               "--tokens", "2", "--json", "figures.json", *more], cwd="here", capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == status, done
        assert os.listdir("here") == ["figures.json"], os.listdir("here")


def namespaces():
    """Those that a run has added are removed when it cannot go on; those of another run are not."""
    module = script("distributed_cost.py")
    real, there = module.ip, set()

    def ip(*words, check=True):
        if words[:2] == ("netns", "add"):
            if words[2] in there:
                sys.exit(f"'{words[2]}' exists")
            there.add(words[2])
        elif words[:2] == ("netns", "del"):
            there.discard(words[2])
        elif fails and fails in words:
            sys.exit("not permitted")

    def enter():
        with tempfile.TemporaryDirectory() as folder:
            with module.Link(folder, "mpirun", delayed) as link:
                assert len(there) == 2 and link.added == list(module.HOSTS), (there, link.added)

    class Line(module.DelayLine):
        def __init__(self):
            module.threading.Thread.__init__(self, daemon=True)
            self.over, self.ends = False, []

    module.ip, module.DelayLine, module.Link.has_netem = ip, Line, lambda self: False
    for delayed in False, True:
        for fails in "addr", "up":
            try:
                enter()
                raise AssertionError(f"{fails} did not fail")
            except SystemExit as ended:
                assert str(ended) == "not permitted"
            assert not there, there
    delayed, fails = False, ""
    enter()
    assert not there, there
    there.add(module.HOSTS[1])
    try:
        enter()
        raise AssertionError("a namespace of another run was taken")
    except SystemExit:
        assert there == {module.HOSTS[1]}, there
    module.ip = real


def missing():
    """A missing program or folder is found before anything is measured."""
    module = script("distributed.py")
    module.tokens_per_second = lambda *_: sys.exit("it measures")
    assert "found no program 'none/language_model'" in ends(module, "none/language_model")
    assert "found no folder for 'none/figures.json'" in ends(module, "build/programs/lds_text", "--ranks", "1", "--json", "none/figures.json")
    assert ends(module, "build/programs/lds_text", "--ranks", "1") == "it measures"
    assert "found no 'none/mpirun', expected the launcher of MPI" in ends(module, "build/programs/lds_text", "--mpirun", "none/mpirun")
    if not all(map(importlib.util.find_spec, ("onnx", "onnxruntime", "safetensors"))):  # what it imports; a stand-in is enough for what comes before the work
        for name in "onnx", "onnxruntime", "export_onnx":
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__version__ = "0"
        sys.modules["onnx"].TensorProto = sys.modules["onnx"].helper = None
    module = script("peers", "rescoring.py")
    module.measure = lambda *_: sys.exit("it measures")
    stand_in("build/benchmarks/peer_rescoring", "")
    assert "found no program 'build/peer_rescoring'" in ends(module, "build")
    assert "found no folder for 'none/figures.json'" in ends(module, "build/benchmarks", "--json", "none/figures.json")
    assert "found no folder for 'none/figures.csv'" in ends(module, "build/benchmarks", "--csv", "none/figures.csv")
    row = {"shape": "2x650x500", "lists": "alike", "weights": "int8", "isogloss": 100.04, "ratio to batch": 2, "difference": 3e-5}
    assert list(module.numbers([row])) == [("ours ÷ onnxruntime", "packed, int8", "2 × 650 × 500, alike", "2.00"),
                                           ("hypotheses a second", "packed, int8", "2 × 650 × 500, alike", "100.0"),
                                           ("ours ÷ onnxruntime", "largest difference of int8, nats a token", "2 × 650 × 500, alike", "3e-5")]
    assert ends(module, "build/benchmarks") == "it measures"
    for name in ("distributed_cost.py",), ("peers", "cooccur.py"):
        module = script(*name)
        assert "found no program" in ends(module, *["none/none"] * len(name))


def wrong_numbers():
    """A number that leaves nothing to measure is refused before the work."""
    for path, needed, wrong in (
            (("distributed.py",), ["true"], "--units 0 --ranks 0 --rounds 0 --words 9999"),
            (("distributed_cost.py",), ["true"], "--units 0 --rates 0 --rounds 0 --steps 1"),
            (("peers", "cooccur.py"), ["build", "glove"], "--tokens 0 --window 0 --memory 0 --rounds 0 --rounds x"),
            (("peers", "hmm.py"), ["build", "text"], "--states 0 --symbols 1 --tokens 0 --length 0 --rounds 0"),
            (("peers", "rescoring.py"), ["build"], "--rounds 0 --lists 0 --shapes 2x3 --shapes 2x0x5 --weights full,half")):
        module, wrong = script(*path), wrong.split()
        for option, value in zip(wrong[::2], wrong[1::2]):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                assert ends(module, *needed, option, value) == "2", (path, option, value)
            assert "found '" in said.getvalue() and "expected" in said.getvalue(), said.getvalue()


def dead_sides():
    """A side that ends before it answers is named, and so is a text with nothing in it to take."""
    hmm, rescoring = script("peers", "hmm.py"), script("peers", "rescoring.py")
    stand_in("dead/peer_hmm", "exit 3\n")
    stand_in("dead/peer_rescoring", "exit 3\n")
    with open("text", "w", encoding="utf-8") as f:
        f.write("the cat sees the dog\n" * 10)
    taken = "dead", "text", "--states", "2", "--symbols", "4", "--peers", ""
    assert "found 0 words in the answer of peer_hmm, expected at least 2" in ends(hmm, *taken)
    assert "found 5 tokens, expected at least one sequence of 25" in ends(hmm, *taken, "--tokens", "5")
    assert "'none' cannot be read as a text" in ends(hmm, "dead", "none", "--peers", "")
    assert "found 0 words in the answer of peer_rescoring, expected at least 1" in ends(rescoring, "dead", "--shapes", "1x2x60")


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    cooccur()
    namespaces()
    missing()
    wrong_numbers()
    dead_sides()
    os.chdir("/")
print("passed")
