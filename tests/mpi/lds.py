"""EM and subspace identification under mpirun: the system does not depend on the number of ranks. Usage: lds.py PROGRAM MPIRUN"""
import sys

from launch import launch

systems = set()
for ranks in (1, 2, 4):
    done = launch(ranks, [sys.argv[1]], mpirun=sys.argv[2])
    assert done.returncode == 0 and done.stdout.startswith("right, system "), done
    systems.add(done.stdout)
assert len(systems) == 1, systems
