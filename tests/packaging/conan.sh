#!/usr/bin/env bash
# The Conan package, made and used: conan.sh SOURCE WORK CONAN..., a command. Conan's cache is of the test alone.
set -euo pipefail
source=$1 work=$2
conan=("${@:3}")
export CONAN_HOME=$work/home
copy=$work/source  # of what git would hand out: the recipe must not need more
rm -rf "$work"
mkdir -p "$copy/tests"
(cd "$source" && cp -r CMakeLists.txt LICENSE conanfile.py .cmake include "$copy" && cp -r tests/consumer "$copy/tests")
"${conan[@]}" profile detect
"${conan[@]}" create "$copy" -s compiler.cppstd=20 -s build_type=Debug -c tools.build:jobs=1 -c tools.cmake.cmaketoolchain:generator=Ninja
