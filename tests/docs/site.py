"""The site is whole: python3 site.py SITE ROOT

- every link, image, style and script of a page is a file of the site, and every anchor is in it; nothing is fetched from
  elsewhere;
- every page of the project and every class of the reference is reached by links from the start page;
- the reference has a main page, lists options one by one, and has every class in its namespace.

Prints one line for each fault, and ends with status 1.
"""

import collections
import html
import os
import pathlib
import re
import sys
import urllib.parse

site, root = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
TAG = re.compile(r"<(\w+)\b([^<>]*?)/?>")
ATTRIBUTE = re.compile(r'\b(href|src|id|name)="([^"]*)"')
faults = []

pages = {p.relative_to(site).as_posix(): p for p in sorted(site.rglob("*.html"))}
pages.pop("404.html", None)  # what a server shows for an address that is not there
pages = {place: path for place, path in pages.items() if not place.startswith("reference/search/")}  # pieces of the search field
anchors = {}
links = {}
for place, path in pages.items():
    text = re.sub(r"<!--.*?-->|<script\b[^>]*>(?!</script>).*?</script>", "", path.read_text(), flags=re.S)
    anchors[place] = {""}
    links[place] = []
    for tag, attributes in TAG.findall(text):
        for key, value in ATTRIBUTE.findall(attributes):
            value = html.unescape(value)
            if key in ("id", "name"):
                anchors[place].add(value)
            elif not value.startswith(("data:", "javascript:", "mailto:")):
                links[place].append((tag, value))

leads_to = collections.defaultdict(set)
for place, found in links.items():
    for tag, value in found:
        if re.match(r"[a-z]+:|//", value):
            if tag != "a" and not (tag == "link" and "w3.org" in value):
                faults.append(f"{place}: fetches {value}")
            continue
        path, _, anchor = urllib.parse.unquote(value).partition("#")
        path = path.partition("?")[0]
        target = os.path.normpath(os.path.join(os.path.dirname(place), path)) if path else place
        if target == "." or (site / target).is_dir():
            target = os.path.normpath(os.path.join(target, "index.html"))
        if not (site / target).is_file():
            faults.append(f"{place}: no file {value}")
        elif target in anchors:
            leads_to[place].add(target)
            if anchor not in anchors[target]:
                faults.append(f"{place}: no anchor {value}")

# The trees of the reference, which scripts build; navtreeindex tells where in the tree a page is
for path in sorted((site / "reference").glob("*.js")):
    if path.name.startswith("navtreeindex"):
        continue
    for target in set(re.findall(r'"([\w-]+\.html)(?:#\w*)?"', path.read_text())):
        if not (path.parent / target).is_file():
            faults.append(f"reference/{path.name}: no file {target}")

reached = {"index.html"}
queue = collections.deque(reached)
while queue:
    new = leads_to[queue.popleft()] - reached
    reached |= new
    queue.extend(new)
sources = [p.relative_to(root) for p in [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.md")]]
for source in sources:
    place = source.with_name("index.html") if source.name == "README.md" else source.with_suffix(".html")
    if place.as_posix() not in reached:
        faults.append(f"{place}: not reached from the start page")
for place in pages:
    if re.match(r"reference/(class|struct)isogloss", place) and not place.endswith("-members.html") and place not in reached:
        faults.append(f"{place}: not reached from the start page")


def reference(place):
    path = site / "reference" / place
    if not path.is_file():
        faults.append(f"reference/{place}: is not there")
        return ""
    return re.sub(r"\s+", " ", path.read_text())


if "isogloss::Graph</a>" not in reference("index.html"):
    faults.append("reference/index.html: does not lead to isogloss::Graph")
for option in ("units", "keep", "scheme", "init", "forget_bias"):
    if not re.search(rf"<li>(<p[^>]*>)? ?<code>{option}</code>", reference("structisogloss_1_1Lstm.html")):
        faults.append(f"reference/structisogloss_1_1Lstm.html: the option {option} is no item of a list")
if "../docs/node/lstm.html" not in reference("structisogloss_1_1Lstm.html"):
    faults.append("reference/structisogloss_1_1Lstm.html: no link to the guide")
if "reference/structisogloss_1_1Lstm.html" not in [urllib.parse.unquote(v).replace("../", "") for _, v in links["docs/node/lstm.html"]]:
    faults.append("docs/node/lstm.html: no link to the reference")
reference("classisogloss_1_1io_1_1Safetensors.html")
for place in pages:
    if re.match(r"reference/(class|struct)(?!isogloss|es\.html)", place) and not re.match(r"reference/structstd_", place):
        faults.append(f"{place}: is in no namespace")

print("\n".join(faults) or f"{len(pages)} pages, {sum(map(len, links.values()))} links, {len(reached)} pages reached")
sys.exit(bool(faults))
