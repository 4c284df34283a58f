#!/usr/bin/env bash
# Tests of the library for Windows, cross-compiled by mingw-w64 without BLAS, run by wine:
#   bash tests/windows.sh [FOLDER...]      these folders of tests/ alone, instead of all
# In build/windows. Left out is what needs LAPACK, and what calls POSIX.
set -euo pipefail
cd "$(dirname "$0")/.."
bash .ci/install build tests windows
folders=$(IFS=';'; echo "$*")
export WINEPREFIX="$PWD/build/windows/wine" WINEDEBUG=-all
cmake --preset windows "-DISOGLOSS_WERROR=${ISOGLOSS_WERROR:-ON}" -DISOGLOSS_TESTS=ON "-DISOGLOSS_TEST_FOLDERS=$folders"
cmake --build --preset windows --parallel "$(nproc)" --target check -- -k 0
