#!/usr/bin/env bash
# Tests of the products in bfloat16 and int8 by BFMMLA and SDOT of 64-bit ARM, run by qemu: arm.sh SOURCE WORK
set -euo pipefail
tests=$1/tests work=$2
mkdir -p "$work/include"
cd "$work"
# Of /usr/include only what is of no architecture.
for package in xtensor xtensor.hpp xtl xsimd catch2; do ln -sfn "/usr/include/$package" "include/$package"; done
printf '#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n' >main.cpp
compile=(aarch64-linux-gnu-g++ -std=c++20 -ffp-contract=off -march=armv8.6-a -DXTENSOR_USE_XSIMD -DISOGLOSS_NO_BLAS
    "-I$1/include" "-I$tests" -isystem include)
"${compile[@]}" -O0 -c -o main.o main.cpp
for name in bf16 int8_gemm; do "${compile[@]}" -O1 -c -o $name.o "$tests/kernel/$name.cpp"; done
"${compile[@]}" -static -o arm main.o bf16.o int8_gemm.o
for instruction in bfmmla sdot; do [ "$(aarch64-linux-gnu-objdump -d arm | grep -cw $instruction)" -gt 16 ]; done
qemu-aarch64 ./arm
