"""The numbered programs print what their sources show, leave the files of the folder they run in alone, and answer wrong files with one sentence."""
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
    for name in "02_own_cell", "03_own_loss", "04_save_load", "11_tagger", "14_beam_search", "15_rescoring", "18_frozen_vectors":
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
    for program in ("04_save_load", "18_frozen_vectors"):
        done = run(program)
        assert done.returncode == 0, done
        assert sorted(os.listdir(".")) == sorted([*names, "temporary"]), os.listdir(".")
        assert os.listdir("temporary") == [], os.listdir("temporary")
        for name in names:
            with open(name) as file:
                assert file.read() == "my own\n", (program, name)


def refuse_wrong_files():
    with open("empty.conllu", "w"):
        pass
    with open("good.conllu", "w") as file:
        file.write("1\tthe\tthe\tDET\n2\tcat\tcat\tNOUN\n\n" * 40)
    for arguments, says in [(["none.conllu", "good.conllu"], "none.conllu"), (["good.conllu", "none.conllu"], "none.conllu"),
                            (["empty.conllu", "good.conllu"], "empty.conllu"), (["good.conllu", "empty.conllu"], "empty.conllu"),
                            (["good.conllu"], "usage: 16_english_tagger TRAIN.conllu TEST.conllu")]:
        done = run("16_english_tagger", *arguments)
        assert done.returncode == 1 and done.stdout == "", (arguments, done)
        assert done.stderr.startswith("isogloss: ") and done.stderr.count("\n") == 1 and says in done.stderr, (arguments, done)
    done = run("16_english_tagger", "good.conllu", "good.conllu")
    assert done.returncode == 0 and "of 80 tags" in done.stdout, done
    # Poor accuracy on a text is a result: status 0, and the texts after it are read too.
    with open("other.conllu", "w") as file:
        file.write("1\tthe\tthe\tNOUN\n2\tcat\tcat\tDET\n\n" * 40)
    done = run("16_english_tagger", "good.conllu", "other.conllu", "good.conllu")
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout == "other.conllu: 0.00 % of 80 tags\ngood.conllu: 100.00 % of 80 tags\n", done


PROGRAMS = os.path.abspath(sys.argv[1])
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
folder = tempfile.mkdtemp(prefix="isogloss_examples_")
os.chdir(folder)
try:
    os.mkdir("temporary")
    print_what_they_show()
    leave_files_alone()
    refuse_wrong_files()
finally:
    os.chdir("/")
    shutil.rmtree(folder)
