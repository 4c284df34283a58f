"""The component mpi under mpirun: what it moves is right, the model does not depend on the number of ranks, and a rank that
fails ends all. Usage: run.py PROGRAM MPIRUN"""
import sys

from launch import launch

program = sys.argv[1]
models = set()
for ranks in (1, 2, 3, 4):
    done = launch(ranks, [program], mpirun=sys.argv[2])
    assert done.returncode == 0, done
    assert done.stdout.startswith("right, model "), done
    models.add(done.stdout)
assert len(models) == 1, models

for ranks, how in ((2, "fail"), (4, "fail"), (2, "busy"), (4, "busy"), (2, "number")):
    done = launch(ranks, [program, how], mpirun=sys.argv[2])  # a rank that waited for ever would run out of time
    assert done.returncode != 0 and "right" not in done.stdout and "has not been ended" not in done.stderr, done
    says = [line for line in done.stderr.splitlines() if line.startswith("isogloss: ")]
    cause = "an exception that is not a std::exception" if how == "number" else "as it was asked to"
    assert says == [f"isogloss: rank {ranks - 1} of {ranks}: {cause}"], done
