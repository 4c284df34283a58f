#!/usr/bin/env bash
# The files of a release, see docs/building.md: bash packaging/release.sh [--try] FOLDER
# Of the commit that is checked out, which has to be the release: clean, with the tag of its version and a dated section in
# CHANGELOG. --try takes the tree as it is. Needs git, CMake, Python with venv, and what the library needs (.ci/install build full).
#   CMAKE_ARGS, SKBUILD_…   further options of the module's build, as of scikit-build-core
#   SETS                    on x86-64: the instruction sets for which the module and the compiled core are built beside sse2
#   CORE=OFF                leaves out the package of the compiled core
set -euo pipefail
cd "$(dirname "$0")/.."
trying=
[ "${1:-}" != --try ] || { trying=yes; shift; }
[ $# = 1 ] || { echo "usage: bash packaging/release.sh [--try] FOLDER" >&2; exit 2; }
fail() { echo "packaging/release.sh: $1" >&2; exit 1; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -z "$(ls -A "$folder")" ] || fail "found files in '$1', expected an empty folder or a new one"
[ "$(git rev-parse --show-prefix 2>&1)" = "" ] || fail "expected a checkout of git: what it does not track is no part of a release"
version=$(sed -n 's/^project(isogloss VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $trying ]; then
    export GIT_INDEX_FILE=$work/index
    git read-tree HEAD
    git add --all
    content=$(git write-tree)
    unset GIT_INDEX_FILE
else
    content=HEAD
    [ -z "$(git status --porcelain)" ] || fail "found changes that are not committed; commit them, or give --try"
    [ "$(git cat-file -t "v$version" 2>/dev/null)" = tag ] && [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ] ||
        fail "expected the annotated tag v$version at this commit; make it, or give --try"
    grep -qE "^## ${version//./[.]} .*[0-9]{4}-[0-9]{2}-[0-9]{2}" CHANGELOG.md ||
        fail "expected a section '## $version (YEAR-MONTH-DAY)' in CHANGELOG.md; write it, or give --try"
fi
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)

say() { printf '== %s\n' "$1"; }
say "Source archive"
git archive --format=tar --prefix="isogloss-$version/" "$content" | gzip -9n > "$folder/isogloss-$version-source.tar.gz"
tar -xzf "$folder/isogloss-$version-source.tar.gz" -C "$work"
cd "$work/isogloss-$version"  # nothing below sees the checkout

say "Single header"
python3 tools/single_header.py > "$folder/isogloss.hpp"

# For other processors than this one, as packages are copied: each instruction set has a build of its own, chosen at the start.
sets=-DISOGLOSS_INSTRUCTION_SETS= core=OFF
if [ "$(uname -m)" = x86_64 ]; then sets+=${SETS:-"avx2_fma;avx512;avx512_amx"} core=${CORE:-ON}; fi
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

say "Debian packages"
cmake -S . -B "$work/core" -DISOGLOSS_{TESTS,EXAMPLES,PROGRAMS,BENCHMARKS,DOCS,MPI,NATIVE}=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DISOGLOSS_COMPILED=$core "$sets" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/core" > "$work/log" || { cat "$work/log"; exit 1; }
(cd "$work/core" && cpack -B "$work/package" > "$work/log") || { cat "$work/log"; exit 1; }
cp "$work"/package/*.deb "$folder"

say "Python module"
python=/usr/bin/python3
[ -x $python ] || python=python3
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check build "scikit-build-core>=0.10" "nanobind>=2.14"
# A manylinux tag takes the container of that project.
CMAKE_ARGS="-DISOGLOSS_NATIVE=OFF $sets ${CMAKE_ARGS:-}" \
    "$work/venv/bin/python" -m build --no-isolation --outdir "$folder" . > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }

cd "$folder"
sha256sum -- * > "$work/sums"
mv "$work/sums" SHA256SUMS
ls -l "$folder"
