"""Perplexities by epoch from logs of `lds_text rnn`, as the table of docs/lab/lds.md.

    python3 rnn_table.py system.csv random1.csv --names "system's start" "random start, seed 1" [--page docs/lab/lds.md]

Of each log a row of the validation text and one of the test text, which is evaluated where validation has improved; the columns are the first epochs,
then every second one, and the last. With --page nothing is printed: the status is 1 if the page does not contain the table.
"""
import argparse
import csv
import signal
import sys


def read(path):
    """(validation, test) by epoch, None where there is no number."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            number = lambda text: float(text) if text else None
            curve = {int(row["epoch"]): (number(row["valid"]), number(row["test"])) for row in csv.DictReader(file)}
    except OSError as error:
        sys.exit(f"rnn_table.py: {error}")
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        what = "bytes that are not UTF-8" if isinstance(error, UnicodeError) else repr(error)
        sys.exit(f"rnn_table.py: found {what} in '{path}', expected a log of `lds_text rnn --valid FILE --test FILE --log {path}`")
    if not curve:
        sys.exit(f"rnn_table.py: found no epoch in '{path}', expected a log of `lds_text rnn`. Let an epoch end first")
    return curve


def table(names, curves):
    last = max(max(curve) for curve in curves)
    epochs = sorted({*range(min(7, last + 1)), *range(6, last + 1, 2), last})
    lines = ["| epoch | " + " | ".join(map(str, epochs)) + " |", "|" + "---|" * (len(epochs) + 1)]
    for name, curve in zip(names, curves):
        for text, title in enumerate((f"{name}, validation", "test")):
            values = [curve.get(epoch, (None, None))[text] for epoch in epochs]
            lines.append(f"| {title} | " + " | ".join("" if value is None else f"{value:.1f}" for value in values) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="CSV files of `lds_text rnn --log`")
    parser.add_argument("--names", nargs="+", required=True, help="of the rows, one for each log")
    parser.add_argument("--page", help="a page that is compared with the table")
    o = parser.parse_args()
    if len(o.names) != len(o.logs):
        parser.error(f"found {len(o.names)} --names for {len(o.logs)} logs, expected one for each")
    made = table(o.names, [read(path) for path in o.logs])
    if not o.page:
        print(made, end="")
        return 0
    with open(o.page, encoding="utf-8") as file:
        if made in file.read():
            return 0
    print(f"rnn_table.py: found no such table in '{o.page}', expected there what follows. Put it in the place of the old one\n{made}", file=sys.stderr, end="")
    return 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, such as head, ends it without a message
    try:
        status = main()
        sys.stdout.flush()
    except (OSError, UnicodeError) as problem:  # of the page, or of a full disk
        sys.exit(f"rnn_table.py: {problem}")
    sys.exit(status)
