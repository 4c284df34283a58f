#!/usr/bin/env bash
# Writes and prints what the smallest program costs to compile: compile_time.sh COMPILER FILE_OF_FLAGS RESULT
# It fails when the program does not compile. The seconds are there to be read: machines differ.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <isogloss/isogloss.hpp>\nint main() {}\n' > "$work/smallest.cpp"
TIMEFORMAT='Compile time of the smallest program, #include <isogloss/isogloss.hpp> and an empty main: %R s (budget 6 s)'
{ time "$1" "@$2" -O2 -c "$work/smallest.cpp" -o "$work/smallest.o" 2>&3; } 3>&2 2> "$3"
cat "$3"
