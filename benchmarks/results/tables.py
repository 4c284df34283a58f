"""Makes the tables of the pages, and the picture of performance.md, from results: python3 tables.py [--check]

A table stands on its page between two marks. The first names a file beside this script, or one of COMPUTED, and the
table in it, if it has several: <!-- FILE: TABLE -->. The second is <!-- end -->. A line of a file is one number. With
--check nothing is written, and a page or a picture that is not what would be made is an error.
"""
import csv
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ROOT / "programs" / "language_model" / "results"


def read(path, **fields):
    """The lines of a file that have these values."""
    with open(path, encoding="utf-8", newline="") as f:
        return [line for line in csv.DictReader(f) if all(line[k] == v for k, v in fields.items())]


def epochs():
    """Processor time of an epoch, the median of the runs or of the epochs of a run, by what is in each file."""
    ptb, wikitext, table = 929589, 2088628, "model, text | precision | processor"
    for row, tokens, name, ran, fields in (
            ("2 × 650, augmented loss, Penn Treebank | bfloat16, sampled | Zen 4", ptb, "tables.csv", 0, {"table": "ptb-medium", "row": "REAL"}),
            ("preset `fast`, Penn Treebank | bfloat16, sampled | Zen 5", ptb, "curves/fast.csv", 1, {}),
            ("the same in PyTorch 2.15 | bfloat16, exact | Zen 5", ptb, "curves/fast_pytorch.csv", 1, {}),
            ("preset `fast`, Penn Treebank | bfloat16, sampled | Zen 4, beside other work", ptb, "recipes.csv", 13,
             {"recipe": "fast", "corpus": "ptb", "seed": "2", "adaptation": "none"}),
            ("preset `fast`, WikiText-2 | bfloat16, sampled | Zen 4, beside other work", wikitext, "recipes.csv", 4,
             {"recipe": "fast", "corpus": "wikitext-2", "adaptation": "none"}),
            ("preset `wide`, Penn Treebank | bfloat16, sampled | Zen 5, two threads", ptb, "curves/wide.csv", 1, {})):
        seconds = statistics.median(float(line.get("cpu_seconds") or 3600 * float(line["core_hours"])) / float(ran or line["epochs"])
                                    for line in read(MODELS / name, **fields))
        yield {"table": table, "row": row, "column": "seconds of an epoch", "value": f"{seconds:.0f}"}
        yield {"table": table, "row": row, "column": "tokens per second", "value": f"{round(tokens / seconds, -2):,.0f}"}


def neural_cache():
    """Test perplexities of presets without and with a cache: medians of the seeds."""
    for preset, corpus, text in ("fast", "ptb", "Penn Treebank"), ("wide", "ptb", "Penn Treebank"), ("fast", "wikitext-2", "WikiText-2"):
        for adaptation, column in ("none", "alone"), ("cache", "with the cache"):
            found = [float(line["test"]) for line in read(MODELS / "recipes.csv", recipe=preset, corpus=corpus, adaptation=adaptation)]
            yield {"table": "preset | text | seeds", "row": f"`{preset}` | {text} | {len(found)}", "column": column,
                   "value": f"{statistics.median(found):.1f}"}


COMPUTED = {"epochs": epochs, "neural_cache": neural_cache}
BEGIN = rf"<!-- (\w+\.csv|{'|'.join(COMPUTED)})(?:: (.+?))? -->\n"
MARKS = re.compile(BEGIN + r"((?:\|.*\n)*)<!-- end -->")


def markdown(source, title):
    """A table; its rows and columns are in the order of the file, and a first cell like the one above is left empty."""
    found = list(COMPUTED[source]()) if source in COMPUTED else read(HERE / source)
    lines = [line for line in found if title in (None, line["table"])]
    values = {(line["row"], line["column"]): line["value"] for line in lines}
    if not lines or len(values) < len(lines):
        sys.exit(f"tables.py: found {len(lines)} numbers, {len(values)} of them in cells of their own, for '{title or 'the table'}' of {source}; "
                 "expected some, each in its own cell. Correct the file or the mark")
    rows, columns = (list(dict.fromkeys(line[of] for line in lines)) for of in ("row", "column"))
    made, above = [" | ".join([lines[0]["table"], *columns])], None
    for row in rows:
        first, *rest = row.split(" | ")
        made.append(" | ".join(["" if rest and first == above else first, *rest, *(values.get((row, column), "") for column in columns)]))
        above = first
    made = ["| " + line + " |\n" for line in made]
    made.insert(1, "|" + "---|" * (made[0].count("|") - 1) + "\n")
    return re.sub(r"\|  (?=\|)", "| ", "".join(made))


def picture():
    """Bars of the time of the same work, ours with exact gradients being 1; each library at its fastest setting."""
    lines = [line for line in read(HERE / "peers_zen4.csv") if line["table"] in ("step or head | size", "one LSTM layer")]
    values = {(line["row"], line["column"]): float(line["value"]) for line in lines}
    names = {library: re.search(library + r"( [0-9.]+|)", lines[0]["versions"] + library)[0] for library in ("PyTorch", "oneDNN")}
    groups = []
    for row, heading in (("step, cross-entropy | width 200", "Training step of 700 tokens, LSTM of 2 × 200 units, 10,000 words"),
                         ("step, cross-entropy | width 650", "Training step of 700 tokens, LSTM of 2 × 650 units, 10,000 words"),
                         ("head, cross-entropy | 200,000 words", "Output layer alone, 128 tokens, 200 units, 200,000 words"),
                         ("width 200", "LSTM layer alone, 700 tokens, 200 units")):
        torch, sampled, onednn, ms = (values.get((row, column)) for column in ("PyTorch, bf16 allowed", "PyTorch, ours sampled",
                                                                               "oneDNN, bf16 allowed", "ours, bf16: ms"))
        groups.append((heading, [bar for bar in (("isogloss, sampled gradients", sampled and torch / sampled, "#7db4e0", ""),
                                                 ("isogloss, exact gradients", 1, "#1f6fb2", f" ({ms:g} ms)" if ms else ""),
                                                 (names["PyTorch"], torch, "#e08a2e", ""), (names["oneDNN"], onednn, "#8a8a8a", "")) if bar[1]]))
    unit = 440 / max(bar[1] for _, bars in groups for bar in bars)
    text = lambda x, y, what, more="": f'<text x="{x:.0f}" y="{y}"{more}>{what}</text>'
    out = [text(20, 28, "Time for the same work: a shorter bar is faster", ' font-weight="bold" font-size="17"'),
           text(20, 50, "1 is isogloss with exact gradients. Each library uses its fastest setting; bfloat16 is allowed.", ' fill="#555"')]
    y = 58
    for heading, bars in groups:
        out.append(text(20, y + 22, heading, ' font-weight="bold"'))
        y += 30
        for name, length, colour, more in bars:
            out += [text(215, y + 14, name, ' text-anchor="end"'), text(231 + unit * length, y + 14, f"{length:.2f}{more}"),
                    f'<rect x="225" y="{y + 1}" width="{unit * length:.0f}" height="16" fill="{colour}"/>']
            y += 21
    out.append(text(20, y + 26, f"{lines[0]['processor']}; {lines[0]['date']}", ' fill="#555"'))
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {y + 42}" width="800" height="{y + 42}" font-family="sans-serif" '
                      'font-size="13">', f'<rect width="800" height="{y + 42}" fill="white"/>', *out, "</svg>\n"])


def main():
    made = {ROOT / "docs" / "time_of_a_step.svg": picture()}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if not len(MARKS.findall(text)) == len(re.findall(BEGIN, text)) == text.count("<!-- end -->"):
            sys.exit(f"{page.relative_to(ROOT)}: found a mark without its counterpart, expected nothing but a table between <!-- FILE --> and <!-- end -->")
        if MARKS.search(text):
            made[page] = MARKS.sub(lambda m: m[0][:m.start(3) - m.start()] + markdown(m[1], m[2]) + "<!-- end -->", text)
    for path, text in made.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what its results make; change these, not the page, and run: python3 benchmarks/results/tables.py")


try:
    main()
except OSError as problem:  # of a file that a mark names, for instance
    sys.exit(f"tables.py: {problem}")
