"""What the tests of lds_text share: calls of the program, a small text, files."""
import os
import subprocess
import sys

if len(sys.argv) != 2 or not os.path.exists(sys.argv[1]):
    sys.exit(f"usage: {sys.argv[0]} PROGRAM, where PROGRAM is the lds_text that was built")
PROGRAM = os.path.abspath(sys.argv[1])


def run(*arguments, status=0, says="", never="\0", stdin=None):
    """The output of a call with this status, which says one thing and never another."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, input=stdin)
    call, output = " ".join(map(str, arguments)), done.stdout + done.stderr
    assert done.returncode == status, f"{call}\nstatus {done.returncode}, expected {status}\n{output}"
    assert says in output and never not in output, f"{call}\nsaid {output}\nexpected {says!r} and not {never!r}"
    return output


def grammar(count, seed=1):
    """Tagged sentences of a small grammar in which a word says much about the next."""
    state = seed
    nouns, verbs, places = "cat dog king queen".split(), "sees likes greets".split(), "garden house wood".split()

    def pick(words):
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return words[(state >> 16) % len(words)]

    for _ in range(count):
        yield [("the", "DET"), (pick(nouns), "NOUN"), (pick(verbs), "VERB"), ("the", "DET"), (pick(nouns), "NOUN"),
               ("in", "ADP"), ("the", "DET"), (pick(places), "NOUN")]


def write(path, text):
    """Writes a text to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def content(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()
