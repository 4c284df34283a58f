#!/usr/bin/env bash
# Which branches of the readers are taken by the tests of file, io and text and by the fuzz targets, each with its
# seeds and some thousand inputs of its own (the first argument says how many, 20000 unless given). Needs clang++ and llvm.
# Prints a table, and each branch that is never taken one way or the other. docs/testing.md says what may be left.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-20000}
build=build/coverage
flags="-O0 -g1 -fprofile-instr-generate -fcoverage-mapping"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS_DEBUG="$flags" \
    -DISOGLOSS_FUZZ=ON "-DISOGLOSS_TEST_FOLDERS=file;io;text" -DISOGLOSS_NATIVE=OFF -DISOGLOSS_OPENMP=OFF -DISOGLOSS_EXAMPLES=OFF \
    -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_DOCS=OFF -DISOGLOSS_INSTALL=OFF -DISOGLOSS_META_TESTS=OFF >$build.log 2>&1 ||
    { cat $build.log; exit 1; }
cmake --build $build
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 LLVM_PROFILE_FILE="$PWD/$build/profiles/%p-%m.profraw"
rm -rf $build/profiles
objects=()
for program in $build/tests/tests_* $build/tests/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    objects+=(-object "$program")
    name=$(basename "$program")
    if [[ $name == tests_* ]]; then
        "$program" "~[slow]" >/dev/null
    else
        seeds=(tests/fuzz/seeds/"${name#fuzz_}"/*)
        [ -e "${seeds[0]}" ] && "$program" "${seeds[@]}" >/dev/null 2>&1
        "$program" -seed=1 -runs="$runs" >/dev/null 2>&1
    fi
done
tool() { command -v "$1" || ls /usr/lib/llvm-*/bin/"$1" | tail -1; }
"$(tool llvm-profdata)" merge -sparse $build/profiles/*.profraw -o $build/all.profdata
"$(tool llvm-cov)" export -instr-profile $build/all.profdata "${objects[@]:1}" \
    $(ls include/isogloss/{file,io,text}/*.hpp include/isogloss/lds/{counts,files}.hpp \
        include/isogloss/metric/{analogies,word_similarity}.hpp examples/language_model/{model_file,options}.hpp \
        examples/lds_text/tagged_text.hpp) >$build/coverage.json
python3 tests/coverage.py $build/coverage.json
