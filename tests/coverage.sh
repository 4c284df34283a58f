#!/usr/bin/env bash
# Which branches of the readers are taken by the tests of file, io and text and by the fuzz targets, each with its
# seeds and some thousand inputs of its own (the first argument says how many, 20000 unless given). Needs clang++ and llvm.
# Prints a table, and each branch that is never taken one way or the other. docs/testing.md says what may be left.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-20000}
build=build/coverage
mkdir -p build
# No precompiled headers: what is instantiated from one has no coverage mapping.
flags="-O0 -g1 -fprofile-instr-generate -fcoverage-mapping"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS_DEBUG="$flags" \
    -DISOGLOSS_FUZZ=ON "-DISOGLOSS_TEST_FOLDERS=file;io;text" -DISOGLOSS_NATIVE=OFF -DISOGLOSS_OPENMP=OFF -DISOGLOSS_EXAMPLES=OFF -DISOGLOSS_PROGRAMS=OFF \
    -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_DOCS=OFF -DISOGLOSS_INSTALL=OFF -DISOGLOSS_META_TESTS=OFF \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >$build.log 2>&1 ||
    { cat $build.log; exit 1; }
cmake --build $build
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
tool() { command -v "$1" || ls /usr/lib/llvm-*/bin/"$1" | tail -1; }
readers=(include/isogloss/{file,io,text}/*.hpp include/isogloss/lds/files.hpp
    include/isogloss/geometry/{analogies,word_similarity}.hpp programs/language_model/{model_file,options}.hpp
    programs/shared/tagged_text.hpp)
# Each program by itself: one function may differ between two of them, and a common profile would lose its counts.
rm -rf $build/profiles
reports=()
for program in $build/tests/tests_* $build/tests/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    name=$(basename "$program")
    profiles=$PWD/$build/profiles/$name
    export LLVM_PROFILE_FILE=$profiles/%p.profraw
    mkdir -p "$profiles"
    run() { "$program" "$@" >"$profiles.log" 2>&1 || { cat "$profiles.log" >&2; echo "coverage.sh: $name failed" >&2; exit 1; }; }
    if [[ $name == tests_* ]]; then
        run "~[slow]"
    else
        seeds=(tests/fuzz/seeds/"${name#fuzz_}"/*)
        if [ -e "${seeds[0]}" ]; then run "${seeds[@]}"; fi
        run -seed=1 -runs="$runs"
    fi
    "$(tool llvm-profdata)" merge -sparse "$profiles"/*.profraw -o "$profiles.profdata"
    "$(tool llvm-cov)" export -instr-profile "$profiles.profdata" "$program" "${readers[@]}" >"$profiles.json"
    reports+=("$profiles.json")
done
python3 tests/coverage.py "${reports[@]}" -- "${readers[@]}"
