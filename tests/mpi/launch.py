"""Starts programs by mpirun on one machine, whoever runs the tests and however few cores there are."""
import glob
import os
import subprocess
import time


def environment():
    """For Open MPI, which else refuses more ranks than cores and to work for root; others do not look at it. Ranks that
    wait give way."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "OMP_NUM_THREADS": "1"}


def command(ranks, program, mpirun):
    return [mpirun, "-n", str(ranks), *map(str, program)]


def launch(ranks, program, mpirun, timeout=240):
    """The finished process."""
    return subprocess.run(command(ranks, program, mpirun), capture_output=True, text=True, timeout=timeout,
                          env=environment())


def processes(program, name):
    """The ranks of a program that were given this name, by number."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0] == program.encode() and name.encode() in words:
            found.append(int(number))
    return sorted(found)


def said():
    """What the ranks that start() began have said so far."""
    with open("said", "rb") as f:
        return f.read().decode()


def start(ranks, program, mpirun, name, ready):
    """mpirun with ranks that write files of this name, once ready() is true or they have ended. What is ready is to be what
    comes after MPI_Init on all ranks: Open MPI 4.1's mpiexec can miss the end of a rank that is killed before, and then
    never ends itself."""
    with open("said", "wb") as out:
        running = subprocess.Popen(command(ranks, program, mpirun), env=environment(), stdout=out, stderr=out, start_new_session=True)
    limit = time.time() + 120
    while running.poll() is None and not (ready() and len(processes(program[0], name)) == ranks):
        assert time.time() < limit, (program, said())
        time.sleep(0.002)
    return running


def signal_last(number, running, program, name):
    """Sends the last rank a signal, if it is still there, and waits until all have ended, of which mpirun may be the first.
    Returns whether they ended before they were done."""
    for rank in processes(program[0], name)[-1:]:
        os.kill(rank, number)
    running.wait(timeout=60)
    limit = time.time() + 60
    while processes(program[0], name):
        assert time.time() < limit, (program, said())
        time.sleep(0.01)
    return running.returncode != 0


def cut_short(number, ranks, program, mpirun, name, ready):
    """Ranks that write files of this name, from the beginning, ended by a signal to one of them once ready() is true. They may
    be done before: then they start anew, until it has met them. Returns what they said."""
    for _ in range(50):
        for old in filter(os.path.isfile, glob.glob(f"{name}*")):
            os.remove(old)
        if signal_last(number, start(ranks, program, mpirun, name, ready), program, name):
            return said()
    raise AssertionError((program, said()))
