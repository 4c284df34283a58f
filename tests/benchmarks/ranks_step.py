"""The program that distributed_cost.py runs: what it prints are times and sizes that can be right.

Usage: ranks_step.py PROGRAM MPIRUN"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from launch import launch  # noqa: E402


def numbers(ranks, *arguments):
    done = launch(ranks, [sys.argv[1], *arguments], mpirun=sys.argv[2])
    assert done.returncode == 0, done
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


V, units = 10000, 4
tied = 4 * (V * units + 2 * (2 * units * 4 * units + 4 * units))
for head, size in (([], tied), (["free"], tied + 4 * (V * units + V))):
    ((whole, waited, found),) = numbers(2, "step", units, 4, 2, 1, 3, *head)
    assert 0 < waited < whole and found == size, (whole, waited, found, size)
((_, waited, _),) = numbers(1, "step", units, 4, 1, 1, 3)
assert waited == 0, waited

messages = numbers(2, "link")
assert [size for size, _ in messages] == [8 ** k for k in range(1, 9)], messages
assert all(seconds > 0 for _, seconds in messages), messages

wrong = launch(2, [sys.argv[1], "step"], mpirun=sys.argv[2])
assert wrong.returncode != 0 and "expected" in wrong.stderr, wrong
wrong = launch(2, [sys.argv[1], "step", *map(str, (units, 4, 2, 1, 1))], mpirun=sys.argv[2])  # the first step is not timed
assert wrong.returncode != 0 and "found STEPS = 1, expected at least 2" in wrong.stderr, wrong
