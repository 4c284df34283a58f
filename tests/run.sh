#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and tests:
#   bash tests/run.sh          the library and the numbered examples, in build/quick, hardly optimised: it compiles sooner
#   bash tests/run.sh --full   everything but the slow tests, as CI does: these fully optimised, in build/release; what
#                              touches raw memory, and the fuzz targets, under the address and undefined-behaviour
#                              sanitizers; what may run side by side under the thread sanitizer; programs, benchmarks,
#                              packages, MPI, Python, documentation, site
# Test programs and examples that passed and have not changed since are not run again.
#   bash tests/run.sh --without-blas   as the first, with ISOGLOSS_BLAS=none, in build/no-blas
#   CXX=...                another compiler for build/quick and build/release
#   ISOGLOSS_WERROR=OFF    lets warnings pass
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
werror=-DISOGLOSS_WERROR=${ISOGLOSS_WERROR:-ON}
case "$*" in
    "") preset=quick ;;
    --full) preset=release ;;
    --without-blas) preset=no-blas ;;
    *) echo "tests/run.sh: found '$*', expected nothing, --full or --without-blas" >&2; exit 2 ;;
esac
options=(-DISOGLOSS_TESTS=ON -UISOGLOSS_TEST_FOLDERS -UISOGLOSS_COMPONENTS -DISOGLOSS_{COMPILED,EXAMPLES,NATIVE,USE_XSIMD,OPENMP}=ON)
if [ $preset = release ]; then
    options+=("-DISOGLOSS_BENCHMARKS=cells;ranks_step" -DISOGLOSS_{PROGRAMS,DOCS,META_TESTS,INSTALL,MPI}=ON)
    bash .ci/install build tests full site browser
else
    bash .ci/install build tests
fi

say() { printf '\n== %s\n' "$1"; }
build() { cmake --build --preset "$1" --parallel "$jobs" "${@:2}"; }

say "Library and examples"
cache=build/$preset/CMakeCache.txt
if [ -e $cache ]; then  # CMake looks at CXX in a new folder alone
    found=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' $cache)
    wanted=$(command -v "${CXX:-g++}" || true)
    # Compared as files: c++ and g++ may be one compiler. A configuration that found none is begun anew.
    if [ -x "$found" ] && [ "$(readlink -f "$found")" != "$(readlink -f "$wanted")" ]; then
        echo "tests/run.sh: found build/$preset configured with $found, expected ${CXX:-g++}; remove that folder, or give CXX=$found" >&2
        exit 2
    fi
fi
# Whatever the folder was configured with before.
CXX=${CXX:-g++} cmake --preset $preset "$werror" "${options[@]}"
build $preset --target check
[ $preset = release ] || exit 0

say "Programs, packages, documentation"
build release
# Not by the preset: its own filter of labels would take the place of this one.
ctest --test-dir build/release --output-on-failure --timeout 600 --parallel "$jobs" --label-exclude "^(slow|check)$"
cat build/release/tests/compile_time.txt

say "Under the sanitizers, and fuzz targets"
cmake --preset sanitize "$werror" -DISOGLOSS_TESTS=ON
build sanitize --target check fuzz
ctest --preset sanitize --parallel "$jobs" --label-regex fuzz

say "Races"
cmake --preset tsan "$werror" -DISOGLOSS_TESTS=ON
TSAN_OPTIONS=ignore_noninstrumented_modules=1 build tsan --target check

say "Python module"
bash tests/python.sh

say "Files of a release"
bash tests/packaging/release.sh build/packaging
