"""Trainings that are killed at 100 random moments, without a chance to save, end with the bits of one that was left alone.

A study of minutes: ctest runs it where the label slow is asked for. ISOGLOSS_TEST_SEED repeats its moments.
"""
import os
import random
import signal
import subprocess
import time

from program import PROGRAM, Folder, run, same_training
from resume import RUNS, arguments, write_texts

KILLS = 100


def parts():
    """Temporary files that nobody writes any more."""
    return [name for name in os.listdir(".") if ".isogloss-part-" in name]


def call(model, options):
    return [*arguments(model, options), "--checkpoint-every", 5, "--resume"]


def killed(model, options, seconds, kills):
    """Starts and kills a training until it has been killed so often, or is done. Returns the kills and the parts they left."""
    done, left = 0, 0
    while done < kills:
        program = subprocess.Popen([PROGRAM, *map(str, call(model, options))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(random.uniform(0, 0.4) * seconds)
        program.kill()
        out, _ = program.communicate(timeout=300)
        if program.returncode == 0:
            return done, left
        assert program.returncode == -signal.SIGKILL, f"status {program.returncode}\n{out}"
        done += 1
        left += len(parts()) > 0
    return done, left


def main():
    seed = int(os.environ.get("ISOGLOSS_TEST_SEED") or time.time_ns() % 10**9)
    print("moments of seed", seed)
    random.seed(seed)
    write_texts()
    total, left, trainings = 0, 0, 0
    seconds = []
    for i, options in enumerate(RUNS):
        start = time.monotonic()
        run(*arguments(f"whole{i}", options), "--checkpoint-every", 5)
        seconds.append(time.monotonic() - start)
    while total < KILLS:
        i = trainings % len(RUNS)
        name = f"cut{trainings}"
        kills, parts_left = killed(name, RUNS[i], seconds[i], min(25, KILLS - total))
        run(*call(name, RUNS[i]))
        assert not parts(), ("temporary files of killed runs are still there", parts())
        same_training(f"whole{i}", name)
        total, left, trainings = total + kills, left + parts_left, trainings + 1
        print(f"training {trainings}: {kills} kills, {parts_left} times a temporary file was left, the same bits at the end", flush=True)
    assert trainings >= len(RUNS), "some kinds of training were not reached"
    print(f"{total} kills in {trainings} trainings, {left} left a temporary file; {trainings} of {trainings} models have the same bits")


if __name__ == "__main__":
    with Folder():
        main()
