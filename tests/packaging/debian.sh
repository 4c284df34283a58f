#!/usr/bin/env bash
# Unpacks the Debian packages that packaging/release.sh has put into FOLDER, builds a program with the compiled core of each
# instruction set, and runs the builds that this processor can: debian.sh FOLDER WORK [SETS]
set -euo pipefail
folder=$(cd "$1" && pwd) sets=${3:-"avx2_fma;avx512;avx512_amx"}
source=$(cd "$(dirname "$0")/../consumer/instruction_sets" && pwd)
mkdir -p "$2"
cd "$2"
for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" root
    dpkg-deb -f "$package" Package Architecture Depends Installed-Size
done
cmake -S "$source" -B build -DCMAKE_PREFIX_PATH="$PWD/root/usr" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
    "-DSETS=$sets" > log
cmake --build build >> log || { cat log; exit 1; }
ls build/consumer.builds
for set in "" sse2 ${sets//;/ }; do
    for mode in "" portable; do
        echo "ISOGLOSS_INSTRUCTION_SET=$set $mode: $(ISOGLOSS_INSTRUCTION_SET=$set build/consumer $mode 2>&1 || true)"
    done
done
