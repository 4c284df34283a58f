#!/usr/bin/env bash
# The bytes of same_bytes.cpp on each target that can run here, against those in same_bytes.sha256:
#   same_bytes.sh WORK COMPILER FLAGS...     FLAGS without those of an instruction set
# Targets: this machine's, those without fused products, with them, without xsimd; clang++; two threads; two and four
# ranks; without BLAS 64-bit ARM, where aarch64-linux-gnu-g++ and qemu-aarch64 are installed, and WebAssembly, where em++
# and node are.
set -euo pipefail
work=$1 here=$(cd "$(dirname "$0")" && pwd) compile=("${@:2}")
mkdir -p "$work"
failed=0
echo 'target     threads, ranks'
# target NAME "THREADS [RANKS]" RUN... -- COMPILE...: compiles the program as COMPILE says and runs it by RUN.
target() {
    local name=$1 threads=$2 run=()
    shift 2
    while [ "$1" != -- ]; do run+=("$1"); shift; done
    shift
    if [ $# -gt 0 ]; then "$@" -ffp-contract=off -o "$work/$name" "$here/same_bytes.cpp" "${libraries[@]}"; fi
    local found
    found=$(${run[@]+"${run[@]}"} "$work/$name" $threads | sha256sum)
    printf '%-10s %-4s %s\n' "$name" "$threads" "${found%% *}"
    [ "${found%% *}" = "$(cat "$here/same_bytes.sha256")" ] || failed=1
}
libraries=(-lopenblas -llapack)
xsimd=-DXTENSOR_USE_XSIMD
target native 1 -- "${compile[@]}" -O3 -march=native $xsimd -fopenmp
target native 2 --
target native "1 2" --
target native "1 4" --
target x86-64 1 -- "${compile[@]}" -O2 $xsimd
target plain 1 -- "${compile[@]}" -O1 -march=native
if grep -qw avx2 /proc/cpuinfo && command -v clang++ >/dev/null; then
    target clang 1 -- clang++ "${compile[@]:1}" -O2 -march=haswell $xsimd
fi
# Of /usr/include only what is of no architecture.
mkdir -p "$work/include"
for package in xtensor xtensor.hpp xtl xflens xsimd; do ln -sfn "/usr/include/$package" "$work/include/$package"; done
other=("${compile[@]:1}" -isystem "$work/include" -O2 -DISOGLOSS_NO_BLAS)
if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
    libraries=(-static)
    target aarch64 1 qemu-aarch64 -- aarch64-linux-gnu-g++ "${other[@]}" $xsimd
else
    echo "aarch64: left out, as aarch64-linux-gnu-g++ or qemu-aarch64 is not installed"
fi
if command -v em++ >/dev/null && command -v node >/dev/null; then
    # Files by node's own functions: without them em++ takes what is written for text. emscripten 3.1.6 finds its module
    # acorn by a node of Debian alone, and no file beside the program under node 18 and later.
    export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}
    libraries=(-sNODERAWFS=1 -sFORCE_FILESYSTEM=1 -sSINGLE_FILE=1 -sWASM_BIGINT=1 -sALLOW_MEMORY_GROWTH=1)
    target wasm.js 1 node -- em++ "${other[@]}" $xsimd -msimd128 -msse4.1 -fwasm-exceptions \
        -include "$here/../../packaging/emscripten/libcxx13.hpp"
else
    echo "wasm: left out, as em++ (emscripten) or node is not installed"
fi
exit $failed
