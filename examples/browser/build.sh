#!/usr/bin/env bash
# The page as one file, which a browser opens as it is: bash examples/browser/build.sh OUT
# Needs em++ (Debian: apt-get install emscripten) and the headers of xtensor, xsimd and nlohmann-json. OUT/keyboard.html has
# everything: WebAssembly, scripts, style, and a part of examples/data/tinyshakespeare.txt to try it with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:?usage: build.sh OUT}
mkdir -p "$out/work/include"
for package in xtensor xtensor.hpp xtl xflens xsimd nlohmann; do  # of /usr/include only what is of no architecture
    [ ! -e "/usr/include/$package" ] || ln -sfn "/usr/include/$package" "$out/work/include/$package"
done
compat=$root/packaging/emscripten/libcxx13.hpp
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}  # where Debian has acorn, which em++ runs
em++ -std=c++20 -O2 -msimd128 -msse4.1 -DXTENSOR_USE_XSIMD -fwasm-exceptions -ffp-contract=off -DNDEBUG -DISOGLOSS_NO_BLAS \
    -include "$compat" -isystem "$out/work/include" -I "$root/include" "$here/bindings.cpp" -o "$out/work/keyboard.js" \
    -s WASM_BIGINT=1 -s MODULARIZE=1 -s EXPORT_NAME=createKeyboard -s ENVIRONMENT=worker -s ALLOW_MEMORY_GROWTH=1 \
    -s EXPORTED_RUNTIME_METHODS=ccall,FS -s FORCE_FILESYSTEM=1 ${ISOGLOSS_EMSCRIPTEN_FLAGS:-}
python3 - "$here" "$out" "$root/examples/data/tinyshakespeare.txt" <<'PYTHON'
import base64
import gzip
import pathlib
import sys

here, out, text = map(pathlib.Path, sys.argv[1:])
play = text.read_text()[:400000]
parts = {
    '<link rel="stylesheet" href="page.css">': "<style>\n" + (here / "page.css").read_text() + "</style>",
    'id="bundled-text">': 'id="bundled-text">' + play[:play.rfind("\n\n")].replace("<", "&lt;"),
    'id="wasm">': 'id="wasm">' + base64.b64encode(gzip.compress((out / "work/keyboard.wasm").read_bytes(), 9, mtime=0)).decode(),
    'id="worker-source">': 'id="worker-source">' + (out / "work/keyboard.js").read_text() + "\n" + (here / "worker.js").read_text(),
    '<script src="page.js">': "<script>\n" + (here / "page.js").read_text(),
}
page = (here / "index.html").read_text()
for place, content in parts.items():
    assert page.count(place) == 1 and "</script" not in content.removeprefix("<script>"), place
    page = page.replace(place, content)
(out / "keyboard.html").write_text(page)
code = len(page.encode()) - len(play.encode())
print(f"{out / 'keyboard.html'}: {code / 1e6:.2f} MB of code")
assert code < 1e6, "the page has more than 1 MB of code"
PYTHON
