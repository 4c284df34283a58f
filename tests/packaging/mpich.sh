#!/usr/bin/env bash
# The component mpi with MPICH, beside the MPI that the build has found: mpich.sh MPICXX MPIRUN SOURCE WORK. Builds the program of
# tests/mpi and runs its test on 1 to 4 ranks. Packages: libmpich-dev and mpich (docs/distributed/data_parallel.md).
set -euo pipefail
mkdir -p "$4"
"$1" -std=c++20 -O1 -DXTENSOR_USE_XSIMD -DHAVE_CBLAS=1 -I"$3/include" "$3/tests/mpi/ranks.cpp" -o "$4/ranks" -lopenblas -pthread
python3 "$3/tests/mpi/run.py" "$4/ranks" "$2"
