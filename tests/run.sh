#!/usr/bin/env bash
# Installs what is missing, builds everything and passes the tests, all but the slow ones: optimised with
# g++, then with clang++ under the address and undefined-behaviour sanitizers together with a short run of each fuzz target,
# and what may run side by side under the thread sanitizer. Tests that passed and have not changed since are not
# run again; --all runs them all.
#   CXX=...                another compiler for the first part
#   ISOGLOSS_WERROR=OFF    lets warnings pass
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
werror=-DISOGLOSS_WERROR=${ISOGLOSS_WERROR:-ON}
case "$*" in
    "") ;;
    --all) rm -rf build/{release,sanitize,tsan}/passed build/python/passed ;;
    *) echo "tests/run.sh: found '$*', expected nothing or --all" >&2; exit 2 ;;
esac

bash .ci/install build tests site browser

say() { printf '\n== %s\n' "$1"; }

# Whether a file that the tests of a label read or run is newer than their last success.
changed() { # preset label
    local tests=build/$1/tests inputs
    case $2 in
        benchmarks) inputs=("build/$1/benchmarks" benchmarks tests/{benchmarks,mpi}) ;;
        core) inputs=("$tests/tests_core" CMakeLists.txt pyproject.toml CITATION.cff packaging include) ;;
        examples) inputs=("build/$1/examples" examples tests/examples) ;;
        programs) inputs=("$tests/tests_programs" "build/$1/programs" examples/data programs tests/{programs,mpi}) ;;
        docs) inputs=("$tests"/docs_* ./*.md LICENSE docs tests/{docs,distributed} include examples programs benchmarks/peers/README.md) ;;
        distributed) inputs=("$tests"/{tests_distributed,mpi_ranks,mpi_lds} tests/{distributed,mpi}) ;;
        fuzz) inputs=("$tests/fuzz" tests/fuzz) ;;
        project) inputs=(CMakeLists.txt {examples,programs,benchmarks,tests}/CMakeLists.txt .cmake include src docs tools conanfile.py packaging
            tests/{compile_fail,consumer,instruction_sets,mpi,packaging} tests/*.{cmake,sh}) ;;
        tools) inputs=(tools tests/tools "build/$1/programs/language_model" tests/programs/language_model/program.py) ;;
        io) inputs=("$tests/tests_io" tests/io/*.py "$tests"/{write_for_numpy,read_npy,list_tensors} docs/io/npy.md) ;;
        *) inputs=("$tests/tests_$2" "tests/$2"/*.py) ;;
    esac
    inputs+=({tests,examples,programs,benchmarks}/CMakeLists.txt tests/fuzz/CMakeLists.txt tests/meta.cmake)  # which say what tests there are
    [ ! -e "build/$1/passed/$2" ] ||
        [ -n "$(find "${inputs[@]}" -newer "build/$1/passed/$2" \( -type f -o -type d ! -path 'build/*' \) -print -quit 2>/dev/null)" ]  # folders: of what was removed
}

# Every test has a label, and the labels of a preset are run together.
pass_tests() { # preset
    local label labels=() before=() nameless found
    nameless=$(ctest --test-dir "build/$1" -N -LE . --no-tests=ignore | sed -n 's/^ *Test *#[0-9]*: //p')
    [ -z "$nameless" ] || { echo "Tests without a label, which would not be run:" $nameless >&2; return 1; }
    found=$(ctest --preset "$1" --print-labels)
    for label in $(sed -n 's/^  //p' <<<"$found"); do
        if [ "$label" = slow ]; then continue; fi
        if changed "$1" "$label"; then labels+=("$label"); else before+=("$label"); fi
    done
    [ $((${#labels[@]} + ${#before[@]})) -gt 0 ] || { echo "found no tests in build/$1" >&2; return 1; }
    [ ${#before[@]} = 0 ] || echo "Passed before and unchanged: ${before[*]}"
    [ ${#labels[@]} = 0 ] && return
    mkdir -p "build/$1/passed"
    touch "build/$1/passed/.begun"  # what is changed while they run has not passed
    ctest --preset "$1" --parallel "$jobs" -L "^($(IFS='|'; echo "${labels[*]}"))\$"
    for label in "${labels[@]}"; do touch -r "build/$1/passed/.begun" "build/$1/passed/$label"; done
}

say "Optimised build"
cache=build/release/CMakeCache.txt
if [ -e $cache ]; then  # CMake looks at CXX in a new folder alone
    found=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' $cache)
    wanted=$(command -v "${CXX:-g++}" || true)
    # Compared as files: c++ and g++ may be one compiler. A configuration that found none is begun anew.
    if [ -x "$found" ] && [ "$(readlink -f "$found")" != "$(readlink -f "$wanted")" ]; then
        echo "tests/run.sh: found build/release configured with $found, expected ${CXX:-g++}; remove that folder, or give CXX=$found" >&2
        exit 2
    fi
fi
# Everything, whatever the folder was configured with before.
CXX=${CXX:-g++} cmake --preset release "$werror" -DISOGLOSS_TESTS=ON -UISOGLOSS_TEST_FOLDERS "-DISOGLOSS_BENCHMARKS=cells;ranks_step" \
    -DISOGLOSS_DOCS=ON -DISOGLOSS_EXAMPLES=ON -DISOGLOSS_PROGRAMS=ON -DISOGLOSS_META_TESTS=ON -DISOGLOSS_INSTALL=ON -DISOGLOSS_COMPILED=ON -DISOGLOSS_MPI=ON -UISOGLOSS_COMPONENTS \
    -DISOGLOSS_NATIVE=ON -DISOGLOSS_USE_XSIMD=ON -DISOGLOSS_OPENMP=ON
cmake --build --preset release --parallel "$jobs"

say "Build under the sanitizers"
cmake --preset sanitize "$werror" -DISOGLOSS_TESTS=ON -UISOGLOSS_TEST_FOLDERS -DISOGLOSS_EXAMPLES=ON -DISOGLOSS_PROGRAMS=ON -UISOGLOSS_COMPONENTS -DISOGLOSS_COMPILED=ON -DISOGLOSS_USE_XSIMD=ON \
    -DISOGLOSS_OPENMP=ON -DISOGLOSS_BENCHMARKS=ON  # here they are compiled, not measured
cmake --build --preset sanitize --parallel "$jobs"

say "Tests under the sanitizers, fuzz targets"
pass_tests sanitize

say "Races"
cmake --preset tsan "$werror" -DISOGLOSS_TESTS=ON -DISOGLOSS_USE_XSIMD=ON -DISOGLOSS_OPENMP=ON
cmake --build --preset tsan --parallel "$jobs"
pass_tests tsan

say "Tests"
pass_tests release
[ ! -e build/release/tests/compile_time.txt ] || cat build/release/tests/compile_time.txt

say "Python module"
bash tests/python.sh
