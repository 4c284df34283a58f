"""The numbered programs print what their sources show, leave the files of the folder they run in alone, and are read at sight."""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def run(name, *arguments):
    return subprocess.run([os.path.join(PROGRAMS, name), *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TMPDIR": os.path.abspath("temporary")})


def print_what_they_show():
    """Of the programs that run within a second: words and whole numbers exactly, others but for rounding."""
    number = re.compile(r"-?\d+(?:\.\d+)?")
    compared = 0
    for name in "02_own_cell", "03_own_loss", "04_save_load", "11_tagger", "14_beam_search", "15_rescoring", "16_frozen_vectors":
        if not os.path.exists(os.path.join(PROGRAMS, name)):
            continue
        with open(os.path.join(SOURCES, name + ".cpp"), encoding="utf-8") as file:
            shown = re.search(r"\n}\n\n?((?://.*\n)+)\Z", file.read())[1].replace("// ", "")
        found = run(name).stdout
        assert number.split(found) == number.split(shown), (name, found, shown)
        for a, b in zip(number.findall(found), number.findall(shown)):
            assert a == b or "." in a and abs(float(a) - float(b)) <= 0.02 + 0.02 * abs(float(b)), (name, found, shown)
        compared += 1
    assert compared, os.listdir(PROGRAMS)


def leave_files_alone():
    names = "vectors.txt", "04_save_load.safetensors", "model"
    for name in names:
        with open(name, "w") as file:
            file.write("my own\n")
    for program in ("04_save_load", "16_frozen_vectors"):
        done = run(program)
        assert done.returncode == 0, done
        assert sorted(os.listdir(".")) == sorted([*names, "temporary"]), os.listdir(".")
        assert os.listdir("temporary") == [], os.listdir("temporary")
        for name in names:
            with open(name) as file:
                assert file.read() == "my own\n", (program, name)


def are_read_at_sight():
    """At most 80 lines, the complete model 180, and no statement that a comma joins to another."""
    for name in sorted(os.listdir(SOURCES)):
        if not name.endswith(".cpp"):
            continue
        with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
            text = file.read()
        assert text.count("\n") <= (180 if name == "18_language_model.cpp" else 80), (name, text.count("\n"))
        code = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\\])\'', "@", text)
        code = re.sub(r"//.*|#.*|<[\w:, ]*>", "", code)
        inner = re.compile(r"\([^()]*\)|\[[^][]*\]")
        while inner.search(code):
            code = inner.sub("@", code)
        for statement in re.findall(r"[^;{}]*;", code):
            joined = re.match(r"(?:\s|(?:for|if|while) @|else\b|do\b)*(?:\w[\w.:>-]*\s*(?:@|\+\+|[-+*/]?=)|\+\+|return\b)[^?]*,", statement)
            assert not joined, (name, " ".join(statement.split()))


PROGRAMS = os.path.abspath(sys.argv[1])
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
folder = tempfile.mkdtemp(prefix="isogloss_examples_")
os.chdir(folder)
try:
    are_read_at_sight()
    os.mkdir("temporary")
    print_what_they_show()
    leave_files_alone()
finally:
    os.chdir("/")
    shutil.rmtree(folder)
