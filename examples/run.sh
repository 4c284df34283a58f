#!/usr/bin/env bash
# Installs what is missing, builds the language model, trains it on the bundled text (two LSTM layers, the
# table tied to the softmax head, augmented loss), and prints its perplexity and a sample.
# What is given to this script, except --model, goes on to the training: bash examples/run.sh --epochs 10
set -euo pipefail
cd "$(dirname "$0")/.."

bash .ci/install build

# The tests are tests/run.sh's business, and may lack their packages here. A configuration that failed leaves a cache, and no build.ninja.
options=()
[ -f build/release/build.ninja ] || options=(-DISOGLOSS_EXAMPLES=OFF -DISOGLOSS_TESTS=OFF -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_DOCS=OFF)
CXX=${CXX:-g++} cmake --preset release "${options[@]}" -DISOGLOSS_PROGRAMS=ON -UISOGLOSS_COMPONENTS
cmake --build --preset release --target language_model --parallel "$(nproc)"

program=build/release/programs/language_model
place=build/examples_run  # of this script alone: whoever trains a model gives it another place
mkdir -p "$place"
# The rest are the program's defaults, so that an option given here meets none that it excludes: --cell lstm --layers 2
# --units 200 --keep 0.7 --head tied --loss al --gamma 0.65 --temperature 20 --batch 20 --bptt 35 --epochs 3 --seed 1.
bias=(--head-bias) again=(--overwrite)
# A free head has one anyway, and a file to start with (--start, --start-from) says whether it has.
case " $* " in *" --head free "* | *" --head=free "* | *" --start"*) bias=() ;; esac
# A training that goes on keeps the head it was begun with; the first call with --resume begins one.
case " $* " in *" --resume "*) again=(); [ ! -s "$place/model.safetensors.train" ] || bias=() ;; esac
"$program" train "${again[@]}" "${bias[@]}" --threads "$(nproc)" --log "$place/log.csv" "$@" --model "$place/model.safetensors"
[ -f "$place/model.safetensors" ] || exit 0  # --help trains none

printf '\nA sample:\n'
"$program" sample --model "$place/model.safetensors" --words 100 --seed 1
