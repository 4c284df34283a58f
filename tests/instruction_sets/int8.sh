#!/usr/bin/env bash
# The numbers of int8.cpp, compiled for this machine and for older instruction sets that it has too: int8.sh WORK COMPILER FLAGS...
set -euo pipefail
work=$1 source=$(dirname "$0")/int8.cpp
mkdir -p "$work"
sets=(native x86-64)
if grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then sets+=(haswell); fi
for set in "${sets[@]}"; do
    "${@:2}" -O2 "-march=$set" -o "$work/int8_$set" "$source"
    "$work/int8_$set" >"$work/int8_$set.txt"
    cmp "$work/int8_native.txt" "$work/int8_$set.txt"
done
[ "$(wc -l <"$work/int8_native.txt")" -gt 3000 ]
echo "the same numbers: ${sets[*]}"
