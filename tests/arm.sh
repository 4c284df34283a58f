#!/usr/bin/env bash
# Tests of the library for 64-bit ARM, by Debian's cross compiler, run by qemu:
#   bash tests/arm.sh [FOLDER...]      these folders of tests/ alone, instead of all
# Everything in build/aarch64, for any such processor; then the kernels in build/aarch64-v8.6, with BFMMLA and SDOT.
# With OpenBLAS where that of the other architecture is installed (docs/building.md), otherwise without what needs LAPACK.
set -euo pipefail
cd "$(dirname "$0")/.."
bash .ci/install build tests arm
blas=none
if [ -e /usr/lib/aarch64-linux-gnu/libopenblas.so ]; then blas=openblas; fi
folders=$(IFS=';'; echo "$*")
run() { # PRESET OPTIONS...
    cmake --preset "$1" "-DISOGLOSS_WERROR=${ISOGLOSS_WERROR:-ON}" "${@:2}"
    cmake --build --preset "$1" --parallel "$(nproc)" --target check -- -k 0
}
run aarch64 -DISOGLOSS_BLAS=$blas "-DISOGLOSS_TEST_FOLDERS=$folders"
run aarch64-v8.6
