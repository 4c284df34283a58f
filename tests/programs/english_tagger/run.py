"""english_tagger learns from the bundled sentences, and answers wrong files with one sentence."""
import os
import shutil
import subprocess
import sys
import tempfile


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False)


def refuse_wrong_files():
    with open("empty.conllu", "w"):
        pass
    with open("good.conllu", "w") as file:
        file.write("1\tthe\tthe\tDET\n2\tcat\tcat\tNOUN\n\n" * 40)
    for arguments, says in [(["none.conllu", "good.conllu"], "none.conllu"), (["good.conllu", "none.conllu"], "none.conllu"),
                            (["empty.conllu", "good.conllu"], "empty.conllu"), (["good.conllu", "empty.conllu"], "empty.conllu"),
                            (["good.conllu"], "usage: english_tagger TRAIN.conllu TEST.conllu")]:
        done = run(*arguments)
        assert done.returncode == 1 and done.stdout == "", (arguments, done)
        assert done.stderr.startswith("isogloss: ") and done.stderr.count("\n") == 1 and says in done.stderr, (arguments, done)
    done = run("good.conllu", "good.conllu")
    assert done.returncode == 0 and "of 80 tags" in done.stdout, done
    # Poor accuracy on a text is a result: status 0, and the texts after it are read too.
    with open("other.conllu", "w") as file:
        file.write("1\tthe\tthe\tNOUN\n2\tcat\tcat\tDET\n\n" * 40)
    done = run("good.conllu", "other.conllu", "good.conllu")
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout == "other.conllu: 0.00 % of 80 tags\ngood.conllu: 100.00 % of 80 tags\n", done


PROGRAM = os.path.abspath(sys.argv[1])
folder = tempfile.mkdtemp(prefix="isogloss_programs_")
os.chdir(folder)
try:
    done = run()
    assert done.returncode == 0 and "sentences.dev.conllu: 92." in done.stdout, done
    refuse_wrong_files()
finally:
    os.chdir("/")
    shutil.rmtree(folder)
