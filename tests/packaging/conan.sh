#!/usr/bin/env bash
# The Conan package, made and used: conan.sh CONAN SOURCE WORK. Conan's cache is of the test alone.
set -euo pipefail
export CONAN_HOME=$3/home
copy=$3/source  # of what git would hand out: the recipe must not need more
rm -rf "$3"
mkdir -p "$copy/tests"
(cd "$2" && cp -r CMakeLists.txt LICENSE conanfile.py .cmake include "$copy" && cp -r tests/consumer "$copy/tests")
"$1" profile detect
"$1" create "$copy" -s compiler.cppstd=20 -s build_type=Debug -c tools.build:jobs=1
