"""The pages of the project agree with the tree: python3 links.py ROOT

- every relative link of a page leads to a file or folder, and to a heading of it where it names one;
- no page of the site links one that the site does not have;
- every header named in a page is there;
- every page of docs/ is linked from its index, docs/README.md.

Prints one line for each that does not, and ends with status 1.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
# Those that docs/site/pages.py takes.
site = sorted(root.glob("*.md")) + [p for folder in ("docs", "examples") for p in sorted((root / folder).rglob("*.md"))]
pages = site + [p for folder in ("benchmarks", "tests") for p in sorted((root / folder).rglob("*.md"))]


def prose(page):
    """The lines of a page with their numbers, code blocks left out."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(page):
    """The anchors of its headings: small letters, no punctuation, hyphens for spaces."""
    for _, line in prose(page):
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            yield re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


faults = []
linked = set()
for page in pages:
    for number, line in prose(page):
        where = f"{page.relative_to(root)}:{number}"
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                faults.append(f"{where}: no file {target}")
            elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
                faults.append(f"{where}: no heading {target}")
            elif page in site and file.suffix == ".md" and file not in site:
                faults.append(f"{where}: {target} is no page of the site, name it without a link")
            elif page == root / "docs" / "README.md":
                linked.add(file)
    # A changelog speaks of headers that are gone.
    if page.name != "CHANGELOG.md":
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for header in re.findall(r"isogloss/[a-z_/0-9]+\.hpp", line):
                if not (root / "include" / header).exists():
                    faults.append(f"{page.relative_to(root)}:{number}: no header {header}")
for page in sorted((root / "docs").rglob("*.md")):
    if page not in linked and page != root / "docs" / "README.md":
        faults.append(f"docs/README.md: no link to {page.relative_to(root / 'docs')}")

print("\n".join(faults) or f"{len(pages)} pages, all links lead somewhere")
sys.exit(bool(faults))
