#!/usr/bin/env bash
# Makes the files of a release and uses each of them as somebody would who has nothing else: release.sh WORK. The source archive
# is installed, found and used; the single header compiles; a fresh virtual environment gets the wheel and trains a model.
# Not done again where nothing has changed since it passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(git rev-parse --show-prefix 2>&1)" = "" ] || { echo "Left out: files of a release are made from a checkout of git"; exit; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
changed() { [ -n "$(find .cmake CMakeLists.txt LICENSE README.md conanfile.py include packaging programs/language_model programs/shared \
    pyproject.toml python tests/consumer tests/packaging/release.sh tools/single_header.py -newer "$work/passed" \( -type f -o -type d \) -print -quit)" ]; }
if [ -e "$work/passed" ] && ! changed; then
    echo "Passed before and unchanged: files of a release"
    exit
fi
rm -rf "$work"
mkdir -p "$work"
touch "$work/begun"  # what is changed meanwhile has not passed
files=$work/files
# The module is not optimised and built for two instruction sets, and the compiled core left to debian.sh, as that takes less time.
SETS=avx2_fma CORE=OFF CMAKE_ARGS="-DCMAKE_CXX_FLAGS_DEBUG=-O0" SKBUILD_CMAKE_BUILD_TYPE=Debug bash packaging/release.sh --try "$files"
(cd "$files" && sha256sum --check --quiet SHA256SUMS && [ "$(wc -l < SHA256SUMS)" = 5 ])

tar -xzf "$files"/isogloss-*-source.tar.gz -C "$work"
source=$(echo "$work"/isogloss-*)
quietly() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; echo "this failed: $*" >&2; exit 1; }; }
quietly cmake -S "$source" -B "$work/install" -DISOGLOSS_{TESTS,EXAMPLES,PROGRAMS,BENCHMARKS,DOCS,MPI}=OFF
quietly cmake --install "$work/install" --prefix "$work/prefix"
mkdir "$work/program"
cp "$source/tests/consumer/main.cpp" "$work/program"
cat > "$work/program/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(program LANGUAGES CXX)
find_package(isogloss REQUIRED)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE isogloss::isogloss)
CMAKE
quietly cmake -S "$work/program" -B "$work/program/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE=-O1
quietly cmake --build "$work/program/build"
"$work/program/build/program"

mkdir -p "$work/single/isogloss"
cp "$files/isogloss.hpp" "$work/single/isogloss"
"${CXX:-g++}" -std=c++20 -O2 -march=native -fopenmp -DXTENSOR_USE_XSIMD -I"$work/single" -fsyntax-only "$work/program/main.cpp"

python=/usr/bin/python3
[ -x $python ] || python=python3
$python -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$files"/*.whl
cd "$work"  # no Python file of the project is near
cat > model.py <<'PYTHON'
import os

import isogloss

isogloss.portable(True)  # the same perplexity from every build
words = "the cat sat on a mat".split()
if not os.path.exists("model.safetensors"):
    with open("text.txt", "w") as text:
        for i in range(400):
            text.write(" ".join(words[(i + j) % 6] for j in range(6)) + "\n")
    isogloss.train("model.safetensors", train="text.txt", valid="text.txt", units=8, layers=1, keep=1.0, init=0.5,
                   epochs=4, batch=5, bptt=14, threads=1)
model = isogloss.LanguageModel("model.safetensors")
perplexity = model.perplexity("text.txt")
assert 1 < perplexity < 2, perplexity  # 7 is a guess among words and line ends, 1.2 what four epochs reach
assert model.vectors.shape[1] == 8, model.vectors.shape
print(f"{perplexity:.4f}", isogloss.configuration)
PYTHON
quietly venv/bin/python model.py
chosen=$(tail -1 log)
echo "the wheel trained a model of perplexity $chosen"
if [ "$(uname -m)" = x86_64 ]; then
    ISOGLOSS_INSTRUCTION_SET=sse2 quietly venv/bin/python model.py
    plain=$(tail -1 log) widest=sse2
    ! grep -qw avx2 /proc/cpuinfo || widest=avx2_fma
    [[ $chosen == *_${widest}_* && $plain == *_sse2_* && ${chosen%% *} = "${plain%% *}" ]] ||
        { echo "the wheel: found '$chosen', then '$plain'; expected $widest, then sse2, and the same perplexity" >&2; exit 1; }
fi
touch -r begun passed
