#!/usr/bin/env bash
# Fuzzes every reader for a while, one after the other, and goes on where the last call stopped:
#   bash tests/fuzz/long.sh [seconds per target, 600] [target ...]
# Inputs of interest gather in build/fuzz/corpus/<target>, and the number of inputs run in build/fuzz/executions, a line
# for each call and target; the sums are printed at the end. What fails is written to build/fuzz/found/, the status is
# then 1; once it is mended, the input goes to tests/fuzz/seeds/<target>/ under a name that says what was wrong.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/*.cpp; do
        name=$(basename "$source" .cpp)
        case $name in fuzz | safetensors_bytes) ;; *) targets+=("$name") ;; esac
    done
fi
[ -e build/fuzz/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p build/fuzz/found
failed=0
for name in "${targets[@]}"; do
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus"
    seeds=()
    [ -d "tests/fuzz/seeds/$name" ] && seeds=("tests/fuzz/seeds/$name")
    log=build/fuzz/found/$name.log
    if "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -print_final_stats=1 \
        -artifact_prefix="build/fuzz/found/$name-" "$corpus" ${seeds[@]+"${seeds[@]}"} >"$log" 2>&1; then
        echo "$name: $(grep -aE '^Done|^taken' "$log" | tr '\n' ' ')"
        awk -v name="$name" '/^Done/ { print name, $2 }' "$log" >>build/fuzz/executions
    else
        echo "$name: FAILED, see $log"
        failed=1
    fi
done
[ ! -e build/fuzz/executions ] || awk '{ n[$1] += $2; all += $2 }
    END { for (name in n) print name, n[name] | "sort"; close("sort"); print "all", all }' build/fuzz/executions
exit $failed
