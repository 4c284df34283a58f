"""What the tests of lds_text share: calls of the program, a small text, files."""
import os
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checksum import crc64  # noqa: E402, F401
from grammar import grammar  # noqa: E402, F401

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


def write(path, text):
    """Writes a text to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def content(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()
