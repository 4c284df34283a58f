"""The address of the project in the files that repeat it: python3 home_page.py ROOT [--write]

HOMEPAGE_URL of project() in CMakeLists.txt is the one place. Where it is empty, CITATION.cff, conanfile.py,
pyproject.toml and packaging/vcpkg/vcpkg.json have no such field. Without --write, prints each that differs and ends with status 1.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
home = re.search(r'HOMEPAGE_URL "([^"]*)"', (root / "CMakeLists.txt").read_text())[1]
if home and not re.fullmatch(r"https?://[^\s\"'\\]+", home):
    sys.exit(f"CMakeLists.txt: HOMEPAGE_URL is '{home}', expected https://… or nothing")

# In each file: the field as it may stand now, the line before it, and what is to stand there.
PLACES = {
    "CITATION.cff": (r"url: .*\n", r"license: .*\n", f"url: {home}\n"),
    "conanfile.py": (r"    homepage = .*\n", r"    license = .*\n", f'    homepage = "{home}"\n'),
    "pyproject.toml": (r"\n\[project\.urls\]\nHomepage = .*\n", r"license = .*\n", f'\n[project.urls]\nHomepage = "{home}"\n'),
    "packaging/vcpkg/vcpkg.json": (r'  "homepage": .*\n', r'  "description": .*\n', f'  "homepage": "{home}",\n'),
}
faults = []
for name, (field, before, wanted) in PLACES.items():
    path = root / name
    text = path.read_text()
    without = re.sub(rf"(?m)^{field}" if not field.startswith(r"\n") else field, "", text)
    right, places = re.subn(rf"(?m)^{before}", lambda found: found[0] + (wanted if home else ""), without)
    assert places == 1, name
    if right != text and "--write" in sys.argv[2:]:
        path.write_text(right)
    elif right != text:
        faults.append(f"{name}: not the address of CMakeLists.txt, '{home}': python3 tests/packaging/home_page.py . --write")

print("\n".join(faults) or f"home page '{home}' everywhere")
sys.exit(bool(faults))
