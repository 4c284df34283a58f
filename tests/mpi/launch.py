"""Starts programs by mpirun on one machine, whoever runs the tests and however few cores there are."""
import os
import subprocess


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
