#!/usr/bin/env bash
# Builds the Python module as `pip install .` does, lightly optimised, into build/python, and runs its tests and the notebooks.
set -euo pipefail
cd "$(dirname "$0")/.."
python=build/python/bin/python
if [ ! -x $python ]; then
    system=/usr/bin/python3
    [ -x $system ] || system=python3
    $system -m venv build/python
fi
newer() { [ -n "$(find CMakeLists.txt .cmake include python pyproject.toml README.md LICENSE programs/language_model programs/shared \
    docs/notebooks examples/data tests/python.sh -newer build/python/passed \( -type f -o -type d \) -print -quit)" ]; }  # folders: of what was removed
if [ -e build/python/passed ] && ! newer; then
    echo "Passed before and unchanged: python"
    exit
fi
touch build/python/begun  # what is changed while they run has not passed
$python -m pip install --quiet --disable-pip-version-check "scikit-build-core>=0.10" "nanobind>=2.14" numpy pytest ninja \
    matplotlib nbclient ipykernel
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) $python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
    --config-settings=build-dir=build/python/cmake --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O1 .
(cd python/tests && "$OLDPWD/$python" -B -m pytest -q -p no:cacheprovider)
touch -r build/python/begun build/python/passed
