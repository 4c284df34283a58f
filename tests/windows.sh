#!/usr/bin/env bash
# Tests for Windows, cross-compiled by mingw-w64 without BLAS and run under wine: windows.sh WORK [FOLDER...], folders of tests/; by
# default file. Takes Debian's g++-mingw-w64-x86-64-posix, wine64, catch2 (2.13), libxtensor-dev, libxsimd-dev and
# nlohmann-json3-dev. Left out are files that include what Windows does not have, or LAPACK.
set -euo pipefail
mkdir -p "$1/include"
work=$(cd "$1" && pwd)
folders=("${@:2}")
[ ${#folders[@]} -gt 0 ] || folders=(file)
cd "$(dirname "$0")"
# Of /usr/include only what is of no system.
for library in xtensor xtensor.hpp xtl xsimd nlohmann catch2; do ln -sfn "/usr/include/$library" "$work/include/$library"; done
flags=(-std=c++20 -O0 -DISOGLOSS_UNOPTIMISED -DXTENSOR_USE_XSIMD -DISOGLOSS_NO_BLAS -ffp-contract=off -Wall -Wextra -Wa,-mbig-obj
    -I../include -I. -isystem "$work/include")
# compile SOURCE OBJECT: unless that is newer than the source and every header.
compile() {
    if [ -e "$2" ] && [ -z "$(find ../include . "$1" -newer "$2" \( -name '*.hpp' -o -path "$1" \) -print -quit)" ]; then return; fi
    x86_64-w64-mingw32-g++-posix "${flags[@]}" -c "$1" -o "$2"
}
printf '#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n' >"$work/main.cpp"
[ -e "$work/main.o" ] || compile "$work/main.cpp" "$work/main.o"
export WINEPREFIX="$work/wine" WINEDEBUG=-all
for folder in "${folders[@]}"; do
    objects=("$work/main.o")
    for source in "$folder"/*.cpp; do
        name=$(basename "$source" .cpp)
        if grep -qE '<(sys/(wait|resource|ioctl)|dlfcn)\.h>|::(chmod|symlink|pipe)\(|factor\.hpp|lds' "$source"; then
            echo "left out: tests/$source"
            continue
        fi
        compile "$source" "$work/${folder}_$name.o"
        objects+=("$work/${folder}_$name.o")
    done
    x86_64-w64-mingw32-g++-posix -static "${objects[@]}" -o "$work/tests_$folder.exe"
    echo "tests/$folder:"
    (cd "$work" && wine "./tests_$folder.exe" "~[slow]")
done
