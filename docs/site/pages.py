"""Hooks of MkDocs, see mkdocs.yml.in: the pages of the site where they lie in the project, their order, and links to the
reference.

Every page of docs/, those beside the README, every source file that one of them links, and the reference that
Doxygen has made. A page that is new takes its place in the navigation by its folder.
"""

import functools
import html
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

START = ["tutorial", "faq", "building", "from_pytorch", "limits"]  # of docs/, after README.md and the index; the rest are tasks
TASKS = ["python", "sentences", "inference", "onnx", "keyboard", "performance", "compiler_messages", "surprises", "how_to_add", "lds", "riemannian"]
REFERENCE = ["compositions"]
NAMESPACES = ("check", "counts", "dense", "file", "graph", "hmm", "io", "kernel", "lds", "text")
PROJECT = ["docs/architecture.md", "docs/testing.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
FOLDERS = {
    "graph": "Graphs", "node": "Nodes", "loss": "Losses", "update": "Updates", "evaluation": "Evaluation", "geometry": "Geometry", "text": "Text",
    "io": "Files", "counts": "Counts", "lds": "Linear dynamical systems", "hmm": "Hidden Markov models", "closed_form": "Closed forms",
    "core": "Core", "distributed": "Several ranks",
}
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "sh"}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?\)")


def project(config):
    return pathlib.Path(config.extra["project"])


def lines_of(markdown):
    """Pairs of a line and whether it is in a block of code."""
    inside = False
    for line in markdown.split("\n"):
        fence = line.startswith("```")
        yield line, inside or fence
        inside ^= fence


@functools.cache
def pages(root):
    found = sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md")) + sorted((root / "examples").rglob("*.md"))
    return [p.relative_to(root).as_posix() for p in found]


@functools.cache
def sources(root):
    """The files that pages link and that are neither pages nor figures."""
    found = set()
    for page in pages(root):
        for line, code in lines_of((root / page).read_text()):
            for link in [] if code else LINK.finditer(line):
                target = (root / page).parent / link[2]
                if ":" not in link[2] and target.is_file() and target.suffix not in (".md", ".svg", ".png"):
                    found.add(target.resolve().relative_to(root).as_posix())
    return sorted(found)


def notebook(path):
    """A notebook with what it showed when it ran, as Markdown; its figures are in the page itself."""
    out = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        out.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
            if "image/png" in data:
                out.append(f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"].split())}">')
            elif text:
                out.append(f"```text\n{text}\n```")
    return "\n\n".join(out) + "\n"


def on_config(config):
    root = project(config)
    own = [p for p in pages(root) if p not in PROJECT]
    guide = {pathlib.Path(p).stem: p for p in own if p.startswith("docs/") and p.count("/") == 1 and p != "docs/README.md"}
    tasks = [name for name in [*TASKS, *sorted(guide)] if name in guide and name not in START + REFERENCE]
    folders = {p.split("/")[1] for p in own if p.startswith("docs/") and p.count("/") > 1} - {"examples", "programs", "lab"}
    folders = [f for f in FOLDERS if f in folders] + sorted(folders - set(FOLDERS))
    components = [{FOLDERS.get(f, f): [p for p in own if p.startswith(f"docs/{f}/")]} for f in folders]
    python = (root / "docs/python.md").read_text()  # which has the notebooks in their order
    notebooks = sorted((s + ".md" for s in sources(root) if s.endswith(".ipynb")), key=lambda p: python.find(pathlib.Path(p).stem))
    examples = [{pathlib.Path(s).name: s + ".md"} for s in sources(root) if s.startswith("examples/")]
    rest = [s + ".md" for s in sources(root) if not s.startswith("examples/") and s + ".md" not in notebooks]
    house = [p for p in PROJECT if p in pages(root)] + [p for p in own if "/" not in p and p != "README.md"]
    config.nav = [
        {"Start": ["README.md", "docs/README.md", *(guide[name] for name in START if name in guide), {"Notebooks": notebooks},
                   {"Examples": [p for p in own if "examples/" in p] + [{"Sources": examples}]}]},
        {"Tasks": [*(guide[name] for name in dict.fromkeys(tasks)), {"Programs": [p for p in own if "programs/" in p]}]},
        {"Reference": ["reference.md", *(guide[name] for name in REFERENCE if name in guide), *components]},
        {"Lab": [*(p for p in own if p.startswith("docs/lab/")), {"The project": house + rest}]},
    ]
    return config


def on_files(files, config):
    root = project(config)
    made = pathlib.Path(config.extra["reference"]) / "html"
    there = {page: root / page for page in pages(root)}
    there |= {p.relative_to(root).as_posix(): p for p in (root / "docs").rglob("*.*") if p.suffix in (".svg", ".png")}
    there |= {f"reference/{p.relative_to(made).as_posix()}": p for p in made.rglob("*") if p.is_file()}
    there |= {f"assets/{name}": root / "docs" / "site" / name for name in ("site.css", "iframe-worker.js")}
    keyboard = pathlib.Path(config.extra["keyboard"])  # the page of examples/browser, where em++ could build it
    if keyboard.is_file():
        there["keyboard.html"] = keyboard
    for place, path in there.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for source in sources(root):
        language = LANGUAGES.get(pathlib.Path(source).suffix, "text")
        text = (notebook(root / source) if source.endswith(".ipynb") else
                f"# {pathlib.Path(source).name}\n\n`{source}`\n\n```{language}\n{(root / source).read_text()}\n```\n")
        files.append(File.generated(config, source + ".md", content=text))
    files.append(File.generated(config, "reference.md", content=index_of_reference(config)))
    return files


def on_page_markdown(markdown, page, config, files):
    """What GitHub's Markdown has and Python's has not: words after a fence's language. Links to sources lead to their pages."""
    root = project(config)
    here = pathlib.PurePosixPath(page.file.src_uri).parent

    def link(match):
        target = (root / here / match[2]).resolve()
        if target.is_file() and root in target.parents and target.relative_to(root).as_posix() in sources(root):
            return f"{match[1]}{match[2]}.md)"
        return match[0]

    out = []
    if page.file.src_uri == "docs/keyboard.md" and files.get_file_from_path("keyboard.html"):
        markdown += "\n[Open the page](../keyboard.html)\n"
    for line, code in lines_of(markdown):
        out.append(re.sub(r"^(```\w+) .*", r"\1", line) if code else LINK.sub(link, line))
    return "\n".join(out)


def on_page_content(content, page, config, files):
    """Names of headers and classes lead to the reference; the header of a page about one class leads to the class."""
    if page.file.src_uri == "CHANGELOG.md":  # speaks of what is gone
        return content
    names = reference_names(config)

    def link(match):
        name = match[2] and re.sub(r"^(isogloss::|ig::)|&lt;\w+&gt;$", "", match[2])
        if not name or name not in names:
            return match[0]
        if name.endswith(".hpp") and page.title in names:
            name = page.title
        return f'<a href="{get_relative_url("reference/" + names[name], page.url)}">{match[0]}</a>'

    return re.sub(r"<(pre|a|h\d)\b.*?</\1>|<code>([^<]+)</code>", link, content, flags=re.S)


@functools.cache
def compounds(folder):
    """Of Doxygen's XML: the root of each compound by its name of file."""
    index = ElementTree.parse(folder / "index.xml").getroot()
    return {c.get("refid"): ElementTree.parse(folder / f"{c.get('refid')}.xml").getroot()[0] for c in index.iter("compound")
            if c.get("kind") in ("class", "struct", "file", "concept", "namespace")}


def xml(config):
    return compounds(pathlib.Path(config.extra["reference"]) / "xml")


@functools.cache
def names_in(folder):
    names = {}
    for refid, compound in compounds(folder).items():
        if compound.get("kind") == "file":
            names[compound.find("location").get("file")] = f"{refid}.html"
        elif compound.get("kind") != "namespace":
            name = compound.findtext("compoundname")
            if "<" not in name and name.startswith("isogloss::"):
                names[name.removeprefix("isogloss::")] = f"{refid}.html"
    # Without its namespace where there is only one of the name; Options and other parts of classes are none of these.
    short = {}
    for name in names:
        if "::" in name and name.rpartition("::")[0] not in names and "/" not in name:
            short.setdefault(name.rpartition("::")[2], []).append(name)
    return names | {s: names[full[0]] for s, full in short.items() if len(full) == 1 and s not in names}


def reference_names(config):
    return names_in(pathlib.Path(config.extra["reference"]) / "xml")


def text_of(element):
    """The text of a description, with nothing that Markdown takes for its own."""
    text = " ".join("".join(element.itertext()).split()) if element is not None else ""
    return re.sub(r"([\\*_\[\]|#])", r"\\\1", html.escape(text, quote=False))


def index_of_reference(config):
    """The page that lists every header with its classes and functions: what the search of the site finds of the reference."""
    parts = xml(config)
    headers = {}
    for refid, file in parts.items():
        place = file.find("location").get("file") if file.get("kind") == "file" else ""
        if not place.startswith("isogloss/"):
            continue
        rows = headers[place] = []
        for inner in [*file.findall("innerclass"), *file.findall("innerconcept")]:
            name = (inner.text or "").removeprefix("isogloss::")
            if inner.get("refid") in parts and "<" not in name and name.rpartition("::")[0] in ("", *NAMESPACES):
                rows.append((name, f"{inner.get('refid')}.html", text_of(parts[inner.get("refid")].find("briefdescription"))))
    for refid, space in parts.items():
        if space.get("kind") != "namespace":
            continue
        prefix = (space.findtext("compoundname") + "::").removeprefix("isogloss::")
        for member in space.iter("memberdef"):
            place = member.find("location").get("file")
            name = prefix + member.findtext("name")
            brief = text_of(member.find("briefdescription"))
            if brief and prefix.removesuffix("::") in ("", *NAMESPACES) and name not in [row[0] for row in headers.get(place, [])]:
                compound, _, anchor = member.get("id").rpartition("_1")
                headers.setdefault(place, []).append((name, f"{compound}.html#{anchor}", brief))
    out = ["# Reference", "", "Every public name by its header. Equations, shapes, options, errors and source of each stand in the "
           "[API reference](reference/index.html); there are also its lists of [namespaces](reference/namespaces.html), "
           "[classes](reference/annotated.html) and [headers](reference/files.html).", ""]
    folder = None
    for place, rows in sorted(headers.items(), key=lambda item: (item[0].rpartition("/")[0], item[0])):
        if place.rpartition("/")[0] != folder:
            folder = place.rpartition("/")[0]
            out += [f"## {folder}", ""]
        target = names_in(pathlib.Path(config.extra["reference"]) / "xml")[place]
        brief = text_of(parts[target.removesuffix(".html")].find("briefdescription"))
        out += [f"### {place.removeprefix('isogloss/')}", "", f"[`{place}`](reference/{target}) · {brief}", ""]
        out += [f"- [`{name}`](reference/{link})" + (f" · {text}" if text else "") for name, link, text in rows]
        out.append("")
    return "\n".join(out)
