"""What the scripts of this folder require before they measure, and how they write down what they found."""
import argparse
import csv
import datetime
import os
import shlex
import sys

SCRIPT = os.path.basename(sys.argv[0])


def at_least(least):
    """The type of an option: a whole number of at least so much."""
    def number(text):
        try:
            found = int(text)
        except ValueError:
            found = None
        if found is None or found < least:
            raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number of at least {least}")
        return found
    return number


def lacks_module(error):
    """Ends the script, whose Python has not what it imports."""
    sys.exit(f"{SCRIPT}: {sys.executable} has no module '{error.name}'; pip install what the top of the script names, or run it with a Python "
             "that has it")


def require_programs(*paths):
    """Ends the script if one of these is not a program."""
    for path in paths:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            sys.exit(f"{SCRIPT}: found no program '{path}', expected it to have been built. Build it, or name the folder that it is in (--help)")


def require_place(path):
    """Ends the script if a file of results cannot be made because its folder is missing; None is no file."""
    if path and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        sys.exit(f"{SCRIPT}: found no folder for '{path}', expected an existing one. Create it, or give another name")


def ask(program, least, line=""):
    """The words, at least so many, of the next line that a side prints after it was given one, if any; ends the script if the side has ended
    instead."""
    try:
        program.stdin.write(line)
        program.stdin.flush()
    except BrokenPipeError:
        pass  # there will be no answer
    words = program.stdout.readline().split()
    if len(words) < least:
        name = os.path.basename(program.args[0])
        program.kill()
        sys.exit(f"{SCRIPT}: found {len(words)} words in the answer of {name}, expected at least {least}; it ended with status {program.wait()}. "
                 "What it said is above")
    return words


def processor():
    """Vendor, family, model and name of the processor, as benchmarks/machine.hpp has them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            of = dict(map(str.strip, line.split(":", 1)) for line in f if ":" in line)
        return "{vendor_id} family {cpu family} model {model}, {model name}".format_map(of)
    except (OSError, KeyError):
        return "unknown"


def write_csv(path, numbers, threads, versions):
    """Numbers, each (table, row, column, value), for benchmarks/results: with where, of what, when and by which call they were measured."""
    about = [f"{processor()}, {threads} thread{'s' * (threads > 1)}", versions, datetime.date.today().isoformat(),
             f"python3 benchmarks/peers/{SCRIPT} {shlex.join(sys.argv[1:])}"]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["table", "row", "column", "value", "processor", "versions", "date", "command"])
        writer.writerows([*number, *about] for number in numbers)
