"""The numbered programs leave the files of the folder they run in alone, and answer wrong files with one sentence."""
import os
import shutil
import subprocess
import sys
import tempfile


def run(name, *arguments):
    return subprocess.run([os.path.join(PROGRAMS, name), *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TMPDIR": os.path.abspath("temporary")})


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
folder = tempfile.mkdtemp(prefix="isogloss_examples_")
os.chdir(folder)
try:
    os.mkdir("temporary")
    leave_files_alone()
    refuse_wrong_files()
finally:
    os.chdir("/")
    shutil.rmtree(folder)
