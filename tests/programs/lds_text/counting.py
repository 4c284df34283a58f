"""lds_text count --memory: the same file as without a bound, whatever is killed, damaged or full on the way."""
import glob
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

if len(sys.argv) != 2 or not os.path.exists(sys.argv[1]):
    sys.exit(f"usage: {sys.argv[0]} PROGRAM, where PROGRAM is the lds_text that was built")
PROGRAM = os.path.abspath(sys.argv[1])
TOKENS = 500_000


def run(*arguments, status=0, says="", **more):
    done = subprocess.run([PROGRAM, "count", *map(str, arguments)], capture_output=True, text=True, timeout=300, **more)
    call = " ".join(map(str, arguments))
    output = done.stdout + done.stderr
    assert done.returncode == status, f"{call}\nstatus {done.returncode}, expected {status}\n{output}"
    assert says in output, f"{call}\nsaid {output}\nexpected {says!r}"
    return output


def content(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, words):
    with open(path, "w", encoding="utf-8") as f:
        for i in range(0, len(words), 20):
            f.write(" ".join(words[i:i + 20]) + "\n")


def least():
    """The least --memory in MiB, as the program says it."""
    output = run("--text", "text", *COMMON, "--memory", "1KiB", "--counts", "none", status=1, says="expected at least ")
    assert output.count("\n") == 1 and not os.path.exists("none.spill"), output
    return int(output.split("expected at least ")[1].split()[0])


def same(*arguments, to="bounded", **more):
    output = run("--counts", to, *BOUNDED, *arguments, **more)
    assert content(to) == WHOLE, arguments
    assert not glob.glob("*.spill"), os.listdir(".")
    return output


def check_bound():
    output = same("--text", "text")
    files, peak = int(output.split(" files, adding")[0].split()[-1]), int(output.rsplit("peak ", 1)[1].split()[0])
    assert files >= 2, output  # how many depends on what the program itself takes, which differs from run to run
    assert peak <= MEMORY, output
    same("--text", "text", "--threads", 2, "--memory", f"{MEMORY + 8} MiB", "--memory", f"{MEMORY + 2}MiB")
    same("--text", "text", "--memory", str(MEMORY << 20))
    same("a", "b", "c")
    run("a", "b", "c", *COMMON, "--counts", "together")
    assert content("together") == WHOLE
    os.mkdir("elsewhere")
    same("--text", "text", "--spill", "elsewhere")
    assert not os.listdir("elsewhere")
    write("taken.spill", ["a", "file"])
    for counts, options, folder in (("x", ["--spill", "nowhere"], "nowhere/x"), ("taken", [], "taken")):
        run("--text", "text", *BOUNDED, "--counts", counts, *options, "--vocabulary-to", "early.vocabulary", "--tokens-to", "early.tokens", status=1,
            says=f"cannot create the folder '{folder}.spill/'")
        assert not os.path.exists("early.vocabulary") and not os.path.exists("early.tokens")  # found before anything is written
    os.remove("taken.spill")


def check_tokens_and_shards():
    run("--text", "text", *COMMON, "--counts", "whole", "--tokens-to", "text.tokens")
    same("--text", "text.tokens")
    run("--text", "text.tokens", "--lags", 5, "--counts", "x", status=1, says="--vocabulary-from")
    for i in (1, 2, 3):
        run("--text", "text.tokens", *BOUNDED, "--shard", f"{i}/3", "--counts", f"part{i}")
        run("--text", "text", *COMMON, "--shard", f"{i}/3", "--counts", "again")
        assert content(f"part{i}") == content("again"), i
    run("--add", "part2", "part3", "part1", "--counts", "bounded", "--threads", 1)
    run("--add", "part2", "part3", "--counts", "x", "--memory", "1GiB", status=1, says="--memory has no effect with --add")
    assert content("bounded") == WHOLE
    damaged = bytearray(content("text.tokens"))
    damaged[5000] ^= 1
    with open("damaged.tokens", "wb") as f:
        f.write(damaged)
    run("--text", "damaged.tokens", *BOUNDED, "--counts", "x", status=1, says="damaged")
    shutil.rmtree("x.spill")
    run("--text", "text", *COMMON, "--counts", "x", "--tokens-to", "text", status=1, says="reads; it was left unchanged")


def started(*arguments):
    """A program that has written at least one file of counts, and waits there."""
    program = subprocess.Popen([PROGRAM, "count", "--counts", "killed", *map(str, [*BOUNDED, *arguments])], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    while program.poll() is None and not glob.glob("killed.spill/block-*.counts"):
        time.sleep(0.001)
    program.send_signal(signal.SIGSTOP)
    return program


def check_kills():
    """Killed and stopped again and again, and resumed with other bounds."""
    dice = random.Random(1)
    kills = 0
    for _ in range(4):
        resume = []
        for attempt in range(200):
            program = started("--text", "text", "--memory", f"{MEMORY + attempt % 3}MiB", *resume)
            if resume:
                program.send_signal(signal.SIGCONT)
                time.sleep(dice.random() * 0.2)
            program.kill()
            program.communicate()
            if program.returncode == 0:
                break
            assert program.returncode == -signal.SIGKILL, program.returncode
            kills += 1
            resume = ["--resume"]
        else:
            same("--text", "text", "--resume", to="killed")
        assert content("killed") == WHOLE and not os.path.exists("killed.spill")
        os.remove("killed")
    assert kills >= 4, kills


def check_signals_within_blocks():
    """Asked to end while it counts a block, in different places, and resumed."""
    dice = random.Random(2)
    stops = 0
    for attempt in range(12):
        call = ["--text", "text", "--memory", f"{MEMORY + 3 * (attempt % 3)}MiB", *(["--resume"] if stops else [])]
        program = subprocess.Popen([PROGRAM, "count", "--counts", "killed", *map(str, [*BOUNDED, *call])], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        if stops:
            assert "going on from" in program.stdout.readline()
        while program.poll() is None and not os.path.exists("killed.spill/begun"):
            time.sleep(0.001)
        time.sleep(dice.random() * 0.3)
        program.send_signal(signal.SIGINT if attempt % 2 else signal.SIGTERM)
        said = program.communicate(timeout=60)[0]
        if program.returncode == 0:
            break
        assert program.returncode == 128 + (signal.SIGINT if attempt % 2 else signal.SIGTERM), said
        assert "--resume continues from the files in 'killed.spill'" in said and not os.path.exists("killed"), said
        assert not glob.glob("killed.spill/*.isogloss-part-*"), os.listdir("killed.spill")
        stops += 1
    else:
        same("--text", "text", "--resume", to="killed")
    assert stops > 0 and content("killed") == WHOLE and not glob.glob("killed*.*"), (stops, os.listdir("."))
    os.remove("killed")


def check_signal_and_damage():
    program = started("--text", "text")
    run("--text", "text", *BOUNDED, "--counts", "killed", status=1, says="another program is writing 'killed'")
    program.send_signal(signal.SIGTERM)
    program.send_signal(signal.SIGCONT)
    said = program.communicate(timeout=60)[0]
    assert program.returncode == 128 + signal.SIGTERM and "--resume continues from the files in 'killed.spill'" in said, said
    for call, says in [(["--text", "text", "--lags", 4], "was begun with '--lags 5"), (["--text", "a"], "--text text"),
                       (["--text", "text", "--shard", "1/2"], "--shard 1/1")]:
        output = run("--counts", "killed", *BOUNDED, *call, "--resume", status=1, says=says)
        assert output.count("\n") == 1, output
    name = sorted(glob.glob("killed.spill/block-*.counts"))[0]
    damaged = bytearray(content(name))
    damaged[len(damaged) // 2] ^= 16
    with open(name, "wb") as f:
        f.write(damaged)
    output = run("--text", "text", *BOUNDED, "--counts", "killed", "--resume", status=1, says=f"{name}: its checksum is wrong")
    assert "--resume continues" in output and os.path.exists(name), output
    os.remove(name)
    os.mkfifo(name)  # which is not waited for
    run("--text", "text", *BOUNDED, "--counts", "killed", "--resume", status=1, says="not a regular file")
    os.remove(name)
    same("--text", "text", "--resume", to="killed")
    # what a killed program has left costs a word to remove, and is not lost without it
    program = started("--text", "text")
    program.kill()
    program.communicate()
    os.remove("killed")
    left = {name: content(name) for name in glob.glob("killed.spill/*")}
    assert len(left) >= 3, left  # counts, vocabulary and request
    for call in (["--text", "text"], ["--text", "text", "--lags", 4]):
        output = run("--counts", "killed", *BOUNDED, *call, status=1, says="'killed.spill' holds a counting that was interrupted. Continue with --resume")
        assert output.count("\n") == 1 and "start over with --overwrite" in output, output
        assert left.items() <= {name: content(name) for name in glob.glob("killed.spill/*")}.items() and not os.path.exists("killed")
    same("--text", "text", "--overwrite", to="killed")
    # a new one is overwritten as if it were resumed: from the beginning
    same("--text", "text", "--overwrite")
    # --resume without anything to resume starts from the beginning
    same("--text", "text", "--resume")


def check_full_disk():
    """A limit on the size of files stands for a disk that is full."""
    for limit in (20_000, 300_000):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        output = run("--text", "text", *BOUNDED, "--counts", "full", status=1, says="cannot write", preexec_fn=limited)
        assert output.count("\n") == 1 and "--resume continues" in output and not os.path.exists("full"), output
        same("--text", "text", "--resume", to="full")
        os.remove("full")


def check_wrong_input():
    for given in ("", "2GB", "x", "-1", "0", "1.5GiB", "99999999999GiB", "9223372036854775808", "GiB"):
        if given:
            output = run("--text", "text", *COMMON, f"--memory={given}", "--counts", "x", status=1, says=f"--memory is '{given}'")
            assert output.count("\n") == 1, output
    run("--text", "text", *COMMON, "--resume", "--counts", "x", status=1, says="--resume has no effect without --memory")
    run("--text", "text", *COMMON, "--spill", ".", "--counts", "x", status=1, says="--spill has no effect without --memory")
    run("--text", "text", *COMMON, "--overwrite", "--counts", "x", status=1, says="--overwrite has no effect without --memory")
    run("--text", "text", *BOUNDED, "--resume", "--overwrite", "--counts", "x", status=1, says="give one of them")
    run("--text", "text", "--add", "whole", "--counts", "x", status=1, says="not both")
    run("--counts", "x", status=1, says="give --text to count")
    run("--counts", "x", "--vocabulary", 9, status=1, says="give --text to count")
    run("--text", "missing", *BOUNDED, "--counts", "x", status=1, says="missing")
    for option in ("--vocabulary-to", "--tokens-to"):
        run("--text", "text", *BOUNDED, "--counts", "x", option, "x.lock", status=1, says=f"{option} 'x.lock' is the file that --counts writes")
    assert not os.path.exists("x.spill") and not os.path.exists("x.lock")


with tempfile.TemporaryDirectory(prefix="isogloss_counting_") as place:
    os.chdir(place)
    dice = random.Random(7)
    tokens = [f"w{int(3000 ** dice.random())}" for _ in range(TOKENS)]
    write("text", tokens)
    write("a", tokens[:200_000])
    write("b", tokens[200_000:200_020])
    write("c", tokens[200_020:])
    run("--text", "text", "--lags", 5, "--counts", "whole", "--vocabulary-to", "vocabulary", "--threads", 1)
    WHOLE = content("whole")
    COMMON = ["--lags", 5, "--threads", 1, "--vocabulary-from", "vocabulary"]
    MEMORY = least() + 1
    BOUNDED = [*COMMON, "--memory", f"{MEMORY}MiB"]
    check_bound()
    check_tokens_and_shards()
    check_kills()
    check_signals_within_blocks()
    check_signal_and_damage()
    check_full_disk()
    check_wrong_input()
    os.chdir("/")
print("counting within given memory does what it should")
