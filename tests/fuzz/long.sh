#!/usr/bin/env bash
# Fuzzes every reader for a while, one after the other, and goes on where the last call stopped:
#   bash tests/fuzz/long.sh [seconds per target, 600] [target ...]
# Each target first runs without the address sanitizer (preset fuzz-fast: several times as many inputs a second, standard
# library assertions and undefined behaviour still trap); then under all sanitizers (preset fuzz) what it has gathered,
# each input once, and new ones for a quarter of the time.
# Inputs of interest gather in build/fuzz/corpus/<target>, and the number of inputs run in build/fuzz/executions, a line
# for each run: preset, target, inputs; the sums are printed at the end. What fails is written to build/fuzz/found/, the
# status is then 1; once it is mended, the input goes to tests/fuzz/seeds/<target>/ under a name that says what was wrong.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=600
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
    [ "$seconds" -gt 0 ] || { echo "long.sh: found 0 seconds, expected at least 1" >&2; exit 2; }
fi
for name in "$@"; do
    [[ -e tests/fuzz/$name.cpp && $name != fuzz && $name != safetensors_bytes ]] || { echo "long.sh: found '$name', expected seconds, or a target of tests/fuzz" >&2; exit 2; }
done
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/*.cpp; do
        name=$(basename "$source" .cpp)
        case $name in fuzz | safetensors_bytes) ;; *) targets+=("$name") ;; esac
    done
fi
for preset in fuzz-fast fuzz; do
    [ -e build/$preset/build.ninja ] || cmake --preset $preset
    cmake --build --preset $preset --target "${targets[@]/#/fuzz_}"
done
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p build/fuzz/found
failed=0

run() {  # preset target seconds
    local corpus=build/fuzz/corpus/$2 log=build/fuzz/found/$2.$1.log seeds=()
    mkdir -p "$corpus"
    [ -d "tests/fuzz/seeds/$2" ] && seeds=("tests/fuzz/seeds/$2")
    if "build/$1/tests/fuzz/fuzz_$2" -max_total_time="$3" -artifact_prefix="build/fuzz/found/$2-" \
        "$corpus" ${seeds[@]+"${seeds[@]}"} >"$log" 2>&1; then
        echo "$2, $1: $(grep -aE '^Done|^taken' "$log" | tr '\n' ' ')"
        awk -v preset="$1" -v name="$2" '/^Done/ { print preset, name, $2 }' "$log" >>build/fuzz/executions
    else
        echo "$2, $1: FAILED, see $log"
        failed=1
    fi
}

for name in "${targets[@]}"; do
    run fuzz-fast "$name" "$seconds"
    run fuzz "$name" $((seconds / 4 + 1))
done
[ ! -e build/fuzz/executions ] || awk '{ n[$2 ", " $1] += $3; all += $3 }
    END { for (name in n) print name ":", n[name] | "sort"; close("sort"); print "all:", all }' build/fuzz/executions
exit $failed
