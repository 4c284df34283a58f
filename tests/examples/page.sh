#!/usr/bin/env bash
# Builds the page of examples/browser and tests it: page.sh WORK KEYBOARD CHROMIUM, see page.py
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bash "$here/../../examples/browser/build.sh" "$1"
python3 -B "$here/page.py" "$1/keyboard.html" "$2" "$3"
