#!/usr/bin/env bash
# The bytes of same_bytes.cpp on each target that can run here, against those in same_bytes.sha256:
#   same_bytes.sh WORK COMPILER FLAGS...     FLAGS without those of an instruction set
# Targets: this machine's, those without fused products, with them, without xsimd; clang++; two threads; 64-bit ARM, where
# aarch64-linux-gnu-g++ and qemu-aarch64 are installed, without BLAS.
set -euo pipefail
work=$1 here=$(cd "$(dirname "$0")" && pwd) compile=("${@:2}")
mkdir -p "$work"
failed=0
# target NAME THREADS RUN... -- COMPILE...: compiles the program as COMPILE says and runs it by RUN.
target() {
    local name=$1 threads=$2 run=()
    shift 2
    while [ "$1" != -- ]; do run+=("$1"); shift; done
    shift
    if [ $# -gt 0 ]; then "$@" -ffp-contract=off -o "$work/$name" "$here/same_bytes.cpp" "${libraries[@]}"; fi
    local found
    found=$(${run[@]+"${run[@]}"} "$work/$name" "$threads" | sha256sum)
    printf '%-10s %s threads  %s\n' "$name" "$threads" "${found%% *}"
    [ "${found%% *}" = "$(cat "$here/same_bytes.sha256")" ] || failed=1
}
libraries=(-lopenblas -llapack)
xsimd=-DXTENSOR_USE_XSIMD
target native 1 -- "${compile[@]}" -O3 -march=native $xsimd -fopenmp
target native 2 --
target x86-64 1 -- "${compile[@]}" -O2 $xsimd
target plain 1 -- "${compile[@]}" -O1 -march=native
if grep -qw avx2 /proc/cpuinfo && command -v clang++ >/dev/null; then
    target clang 1 -- clang++ "${compile[@]:1}" -O2 -march=haswell $xsimd
fi
if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
    # Of /usr/include only what is of no architecture.
    mkdir -p "$work/include"
    for package in xtensor xtensor.hpp xtl xflens xsimd; do ln -sfn "/usr/include/$package" "$work/include/$package"; done
    libraries=(-static)
    target aarch64 1 qemu-aarch64 -- aarch64-linux-gnu-g++ "${compile[@]:1}" -isystem "$work/include" -O2 $xsimd -DISOGLOSS_NO_BLAS
fi
exit $failed
