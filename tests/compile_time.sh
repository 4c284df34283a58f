#!/usr/bin/env bash
# Prints what the smallest program costs to compile: compile_time.sh COMPILER FILE_OF_FLAGS
# It fails when the program does not compile. The seconds are there to be read: machines differ.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <isogloss/isogloss.hpp>\nint main() {}\n' > "$work/smallest.cpp"
TIMEFORMAT='compile time: a program that includes isogloss/isogloss.hpp and nothing else: %R s (budget 6 s)'
time "$1" "@$2" -O2 -c "$work/smallest.cpp" -o "$work/smallest.o"
