"""What Doxygen reads in place of a header: python3 docstrings.py HEADER, from docs/Doxyfile.in.

Docstrings are set for the eye: sections in columns (Shapes, Options, Errors, Source ...), one option a line. Here sections
become paragraphs with a title, and options and shapes lists. Beside that
- the inline namespace of version and configuration, which nobody writes, is left out;
- raw strings become plain ones: Doxygen 1.9.4 counts the quotes and braces in them;
- with ISOGLOSS_GUIDE, the path from the reference to the pages, what a page describes links to it.
"""

import os
import pathlib
import re
import sys

SECTION = re.compile(r"([A-Z][a-z]+)(  +)(?=\S)")
ITEM = re.compile(r"([a-z_]+(?:, [a-z_]+)*)  +(\S.*)")


def items(name, lines):
    """The list items of a section's lines, the first column taken off; None where it is running text."""
    if name == "Options":
        found = []
        for line in lines:
            if item := ITEM.fullmatch(line):
                names = ", ".join(f"`{option}`" for option in item[1].split(", "))
                found.append(f"{names} · {item[2]}")
            elif found:
                found[-1] += " " + line.strip()
            else:
                return None
        return found
    if name == "Shapes":
        rows = [line.strip() for line in lines]
        found = re.split(r";  +", " ".join(row + " " if row.endswith(";") else row for row in rows))
        return found if len(found) > 1 else None
    return None


def docstring(lines):
    """The lines of one block of comments, without their slashes, for Doxygen."""
    out = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        section = SECTION.match(line)
        if not section:
            out.append(line)
            continue
        content = [line[section.end():]]
        column = section.end()
        while number < len(lines) and re.match(r" +\S", lines[number]):
            content.append(lines[number][min(column, len(lines[number]) - len(lines[number].lstrip())):])
            number += 1
        out += [f"@par {section[1]}"]
        listed = items(section[1], content)
        out += [f"- {item}" for item in listed] if listed else content
        out.append("")
    return out if out[-1] else out[:-1]


def plain_string(match):
    return '"' + match[2].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def guide_to(header, guide):
    """A link to the page whose opening names the header, or None."""
    docs = pathlib.Path(__file__).resolve().parent.parent
    for page in sorted(docs.rglob("*.md")):
        opening = page.read_text().split("\n", 4)[:4]
        if f"`isogloss/{header}`" in "\n".join(opening):
            place = page.relative_to(docs.parent).with_suffix(".html").as_posix()
            return f'@par Guide\n<a href="{guide}{place}">{opening[0].lstrip("# ")}</a>'
    return None


def main(path):
    text = pathlib.Path(path).read_text().replace(" inline namespace ISOGLOSS_CONFIGURATION {", "")
    text = re.sub(r"^}(}+  // namespace isogloss)", r"\1", text, flags=re.M)
    text = re.sub(r'R"([^()\\ ]*)\((.*?)\)\1"', plain_string, text, flags=re.S)
    header = path.partition("include/isogloss/")[2]
    guide = os.environ.get("ISOGLOSS_GUIDE")
    see = guide_to(header, guide) if guide and header else None

    out = []
    block = []
    for line in text.split("\n"):
        comment = re.match(r"( *)///(?:$| (.*)|(?=[^</!]))", line)
        if comment:
            block.append(comment[2] or "")
            indent = comment[1]
            continue
        if block:
            lines = docstring(block)
            if see and (block[0].startswith("@file") or
                        (not indent and re.match(r"(template <.*> )?(struct|class) \w+ *(final )?(:|\{|$)", line))):
                lines = [*lines, "", *see.split("\n")]
            out += [f"{indent}/// {one}".rstrip() for one in lines]
            block = []
        out.append(line)
    sys.stdout.write("\n".join(out))


main(sys.argv[1])
