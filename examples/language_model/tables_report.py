"""Output of tables.py: the results of finished runs, the tables of the page, training curves."""
import csv
import fcntl
import math
import os
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = 'table,row,seed,epochs,valid,test,core_hours'
RUN = ['table', 'row', 'seed']  # what identifies a line
ROWS = ['VD', 'AL', 'RE', 'REAL']
TABLES = {'ptb-small': ('ptb', 'small'), 'ptb-medium': ('ptb', 'medium'), 'wikitext-2-small': ('wikitext-2', 'small')}
# Table 1 of the source, validation and test. Figures with a question mark could not be checked against the source.
SOURCE = {
    'ptb-small': {'VD': ('92.6', '87.3'), 'AL': ('86.3', '82.9'), 'RE': ('89.9', '85.1'), 'REAL': ('86.3', '82.7')},
    'ptb-medium': {'VD': ('82.0', '77.7'), 'AL': ('77.4', '74.7'), 'RE': ('77.1', '73.9'), 'REAL': ('75.7', '73.2')},
    'wikitext-2-small': {'VD': ('112.2?', '105.9?'), 'AL': ('110.3', '103.8'), 'RE': ('106.1', '100.5'), 'REAL': ('105.6', '98.9')},
}
NONE = 'no finished training yet'
CURVES = 'row,seed,epoch,valid'


class Refused(Exception):
    """A request that cannot be met: what was found, what was expected and what to do."""


def read_lines(path, header, run, fine, expected):
    """The lines of a results file as dictionaries; none if it does not exist. `run` names the columns that identify a line;
    fine(row) converts a row and returns whether it is one of `expected`."""
    if not os.path.exists(path):
        return []
    with open(path, newline='') as f:
        lines = f.read().splitlines()
    if lines and lines[0] != header:
        raise Refused(f"found the first line '{lines[0]}' in '{path}', expected '{header}': these are not results of this "
                      'script, and the file was left unchanged. Give --results another name')
    results, seen = [], set()
    for number, line in enumerate(lines[1:], 2):
        row = dict(zip(header.split(','), line.split(',')))
        try:
            good = line.count(',') == header.count(',') and fine(row)
        except (KeyError, ValueError):
            good = False
        if not good:
            raise Refused(f"found '{line}' in line {number} of '{path}', expected {header} of {expected}. Correct or remove the line")
        if tuple(row[name] for name in run) in seen:
            title = ' '.join(f'seed {row[name]}' if name == 'seed' else row[name] for name in run)
            raise Refused(f"found {title} again in line {number} of '{path}', expected each run once. Remove one of the lines")
        seen.add(tuple(row[name] for name in run))
        results.append(row)
    return results


def read_results(path):
    """The results of finished runs of the tables."""
    def fine(row):
        row['seed'], row['epochs'] = int(row['seed']), int(row['epochs'])
        return (row['table'] in TABLES and row['row'] in ROWS
                and all(0 <= float(row[name]) < math.inf for name in ('valid', 'test', 'core_hours')))
    return read_lines(path, HEADER, RUN, fine, f"a table ({', '.join(TABLES)}) and a row ({', '.join(ROWS)})")


def append_result(path, header, run, fields):
    """Appends a line to the results unless its run has one, and syncs it to disk; returns whether it was appended. Without
    fields: writes the header if there is no file."""
    places = [header.split(',').index(name) for name in run]
    with open(path, 'a+b') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        before = f.read()
        key = fields and [str(fields[i]) for i in places]
        for line in before.decode().splitlines():
            there = line.split(',')
            if fields and len(there) == len(fields) and [there[i] for i in places] == key:
                return False  # another call came first
        text = '' if before else header + '\n'
        if fields:
            text += ('' if not before or before.endswith(b'\n') else '\n') + ','.join(map(str, fields)) + '\n'
        f.write(text.encode())
        f.flush()
        os.fsync(f.fileno())
    return True


def log_rows(path):
    """Epoch, validation perplexity and computing time of the last training in a log, from its complete rows."""
    with open(path, newline='') as f:
        text = f.read()
    try:
        rows = list(csv.DictReader(text[:text.rfind('\n') + 1].splitlines()))
        rows = [row for row in rows if row['run'] == rows[-1]['run']]
        return [(int(row['epoch']), float(row['valid_perplexity']), float(row['cpu_seconds'])) for row in rows]
    except (KeyError, TypeError, ValueError):
        first = text.split('\n')[0]
        raise Refused(f"found '{first}' and rows that do not fit it in '{path}', expected a log of language_model, with numbers for "
                      'epoch, valid_perplexity and cpu_seconds. Put the log of the training there') from None


def spread(values, form):
    """Median, minimum and maximum."""
    show = [format(v, form) for v in (statistics.median(values), min(values), max(values))]
    return show[0] if len(values) == 1 else f'{show[0]} ({show[1]} … {show[2]})'


def markdown(results):
    """The tables of the page."""
    out = []
    for table, (corpus, preset) in TABLES.items():
        ours = {row: [r for r in results if (r['table'], r['row']) == (table, row)] for row in ROWS}
        title = f'**{table}**, `--corpus {corpus} --preset {preset}`'
        if not any(ours.values()):
            out += [f'{title}: {NONE}.', '']
            continue
        columns = ['row', 'paper: validation', 'test', 'ours: validation', 'test', 'seeds', 'epochs', 'core-hours']
        out += [f'{title}:', '', '| ' + ' | '.join(columns) + ' |', '|' + '---|' * len(columns)]
        for row, runs in ours.items():
            cells = [NONE, '', '', '', '']
            if runs:
                cells = [spread([float(r[name]) for r in runs], '.1f') for name in ('valid', 'test')]
                cells += [str(len(runs)), spread([r['epochs'] for r in runs], '.4g')]
                cells += [spread([float(r['core_hours']) for r in runs], '.2f')]
            out.append('| ' + ' | '.join([row, *SOURCE[table][row], *cells]) + ' |')
        out.append('')
        if any('?' in figure for row in ROWS for figure in SOURCE[table][row]):
            out += ['?: from memory; no text of the paper with these figures was at hand.', '']
    return '\n'.join(out)


def write_between(page, script, made, check, results):
    """Writes the output of a script between its two marks on a page, or checks that it is there; returns 0."""
    begin, end = f'<!-- {script} report writes from here -->', f'<!-- {script}: to here -->'
    with open(page) as f:
        text = f.read()
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise Refused(f"found {text.count(begin)} times '{begin}' and {text.count(end)} times '{end}' in '{page}', expected "
                      'each once, in this order. Put them back around the place of the tables')
    new = text[:text.index(begin) + len(begin)] + '\n' + made + text[text.index(end):]
    if check and text != new:
        raise Refused(f"the tables in '{page}' are not those of {results}. Run: python3 examples/language_model/{script} report")
    if not check:
        with open(page + '.part', 'w') as f:
            f.write(new)
        os.replace(page + '.part', page)
    return 0


def report(o):
    """The command report."""
    made = markdown(read_results(o.results))
    if o.print:
        print(made, end='')
        return 0
    return write_between(o.page, 'tables.py', made, o.check, f"'{o.results}'")


def require_own(option, path, mark, what):
    """The rule of the example programs: a file is overwritten only if it is empty or of the kind to be written."""
    if os.path.exists(path) and os.path.getsize(path):
        with open(path, 'rb') as f:
            if mark not in f.read(4096):
                raise Refused(f"found something else in {option} '{path}', expected {what} or no file; it was left unchanged. Give {option} "
                              'another name, or remove the file')


def draw(path, title, x, y, curves, style='lines lw 2'):
    """A figure of curves, given as points (x, y) by name, drawn by gnuplot."""
    script = ["set terminal svg size 800,500 font 'sans-serif,12' background 'white'", f"set title '{title}'",
              f"set xlabel '{x}'", f"set ylabel '{y}'", 'set logscale y', 'set key top right']
    script += ['plot ' + ', '.join(f"'-' using 1:2 with {style} title '{name}'" for name in curves)]
    for points in curves.values():
        script += [*(f'{a} {b}' for a, b in points), 'e']
    try:
        drawn = subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', capture_output=True, text=True)
    except FileNotFoundError:
        raise Refused(f"found no gnuplot, expected it for --svg '{path}'. On Debian and Ubuntu: apt-get install gnuplot-nox")
    if drawn.returncode:
        raise Refused(f"gnuplot could not draw '{path}'; it says: {drawn.stderr.strip()}")
    with open(path, 'w') as f:
        f.write(drawn.stdout)


def curves(o):
    """The command curves."""
    pattern = re.compile(rf"{re.escape(o.table)}-({'|'.join(ROWS)})-([0-9]+)\.csv")
    logs = [found for name in (os.listdir(o.folder) if os.path.isdir(o.folder) else []) if (found := pattern.fullmatch(name))]
    found = {}
    for log in sorted(logs, key=lambda log: (ROWS.index(log[1]), int(log[2]))):
        rows = log_rows(os.path.join(o.folder, log[0]))
        if rows:  # otherwise its first epoch has not ended
            found[log[1], log[2]] = [(epoch, valid) for epoch, valid, _ in rows]
    if not found:
        raise Refused(f"found no log {o.table}-ROW-SEED.csv with an epoch in '{o.folder}', expected those of `tables.py run "
                      f'{o.table}`. Give --folder the folder of the runs')
    lines = [CURVES, *(f'{row},{seed},{epoch},{valid}' for (row, seed), points in found.items() for epoch, valid in points)]
    if o.csv:
        require_own('--csv', o.csv, CURVES.encode() + b'\n', 'curves of this script')
    if o.svg:
        require_own('--svg', o.svg, b'GNUPLOT', 'a picture of gnuplot')
        draw(o.svg, o.table, 'epoch', 'validation perplexity',
             {f'{row}, seed {seed}': points for (row, seed), points in found.items()})
    if o.csv or not o.svg:
        with open(o.csv, 'w') if o.csv else os.fdopen(os.dup(1), 'w') as f:
            f.write('\n'.join(lines) + '\n')
    return 0
