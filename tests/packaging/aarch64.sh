#!/usr/bin/env bash
# A small program for 64-bit ARM, by Debian's cross compiler, run by qemu: aarch64.sh SOURCE WORK. Packages: see docs/building.md.
set -euo pipefail
mkdir -p "$2"
aarch64-linux-gnu-g++ -std=c++20 -O1 -DXTENSOR_USE_XSIMD -DHAVE_CBLAS=1 -I"$1/include" "$1/tests/consumer/main.cpp" \
    -o "$2/consumer" -lopenblas -pthread
qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib "$2/consumer"
