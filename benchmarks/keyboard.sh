#!/usr/bin/env bash
# The engine of examples/browser at the size of a keyboard, without BLAS, on one core: bash benchmarks/keyboard.sh WORK
# Prints the time of a prediction and of a step, the memory, and the bytes of its stripped program.
set -euo pipefail
work=$1 root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$work"
flags=(-std=c++20 -march=native -ffp-contract=off -DNDEBUG -DXTENSOR_USE_XSIMD -DISOGLOSS_NO_BLAS -I "$root/include")
small=(-Oz -flto -fno-asynchronous-unwind-tables -no-pie -ffunction-sections -fdata-sections -fvisibility=hidden -Wl,--gc-sections -Wl,--as-needed)
"${CXX:-g++}" "${flags[@]}" "${small[@]}" -o "$work/keyboard_small" "$root/examples/browser/main.cpp"
strip "$work/keyboard_small"
"${CXX:-g++}" "${flags[@]}" -O2 -o "$work/keyboard_timed" "$root/benchmarks/keyboard.cpp"
taskset -c 0 "$work/keyboard_timed"
printf 'the program, stripped                     %7.0f kB   (goal 400)\n' "$(($(stat -c %s "$work/keyboard_small") / 1000))"
