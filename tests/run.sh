#!/usr/bin/env bash
# Installs what is missing, builds everything and passes the tests, all but the slow ones: optimised with
# g++, then with clang++ under the address and undefined-behaviour sanitizers, what may run side by side under the
# thread sanitizer, and a short run of each fuzz target.
#   CXX=...                another compiler for the first part
#   ISOGLOSS_WERROR=OFF    lets warnings pass
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
werror=-DISOGLOSS_WERROR=${ISOGLOSS_WERROR:-ON}

bash .ci/install build tests

say() { printf '\n== %s\n' "$1"; }

say "Optimised build"
CXX=${CXX:-g++} cmake --preset release "$werror" -DISOGLOSS_TESTS=ON -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_DOCS=ON
cmake --build --preset release --parallel "$jobs"

say "Build under the sanitizers"
cmake --preset sanitize "$werror" -DISOGLOSS_BENCHMARKS=ON  # here they are compiled, not measured
cmake --build --preset sanitize --parallel "$jobs"

say "Tests under the sanitizers, fuzz targets"
ctest --preset sanitize --parallel "$jobs"

say "Races"
cmake --preset tsan "$werror"
cmake --build --preset tsan --parallel "$jobs"
ctest --preset tsan --parallel "$jobs"

say "Tests"
ctest --preset release --parallel "$jobs"
cat build/release/tests/compile_time.txt
