"""Output of tables.py and recipes.py: results and how they were made, the tables of the page, curves."""
import argparse
import csv
import errno
import fcntl
import io
import math
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = 'table,row,seed,epochs,valid,test,core_hours'
RUN = ['table', 'row', 'seed']  # what identifies a line
PAPER, CELLS = ['VD', 'AL', 'RE', 'REAL'], ['LSTM', 'RHN']
TABLES = {'ptb-small': ('ptb', 'small'), 'ptb-medium': ('ptb', 'medium'), 'wikitext-2-small': ('wikitext-2', 'small'),
          'ptb-cells': ('ptb', 'small')}
ROWS = {table: CELLS if table == 'ptb-cells' else PAPER for table in TABLES}
ALL_ROWS = PAPER + CELLS
EXPECTED = f"a table ({', '.join(TABLES)}) and one of its rows ({', '.join(ALL_ROWS)})"
# Table 1 of the source, validation and test; – where its text was not at hand.
SOURCE = {
    'ptb-small': {'VD': ('92.6', '87.3'), 'AL': ('86.3', '82.9'), 'RE': ('89.9', '85.1'), 'REAL': ('86.3', '82.7')},
    'ptb-medium': {'VD': ('82.0', '77.7'), 'AL': ('77.4', '74.7'), 'RE': ('77.1', '73.9'), 'REAL': ('75.7', '73.2')},
    'wikitext-2-small': {'VD': ('–', '–'), 'AL': ('110.3', '103.8'), 'RE': ('106.1', '100.5'), 'REAL': ('105.6', '98.9')},
}
# Of ptb-cells: one width of the table and of both cells, and the depth at which the highway network has as many parameters as the LSTM.
UNITS, LAYERS, DEPTH, TYPES = 200, 2, 7, 10000
IN_CELLS = {'LSTM': LAYERS * 4 * (2 * UNITS * UNITS + UNITS),  # W, U and b of the four gates of each layer
            'RHN': 2 * UNITS * UNITS + DEPTH * 2 * (UNITS * UNITS + UNITS)}  # of h and t: W once, R and b in each micro-step
TUNED_HEADER = 'table,row,gamma,seed,epochs,valid'
TUNED_RUN = ['table', 'row', 'gamma', 'seed', 'epochs']
CURVES, DISTANCES = 'table,row,seed,epoch,valid', 'table,row,seed,epoch,distance'
CHANGES = 'table,row,change,options,seed,epoch,valid'
CHANGES_RUN = ['table', 'row', 'change', 'seed']
NONE = 'no finished training yet'
# Those of the pages, which report and the like read; a run records its own in its folder unless told otherwise.
RESULTS, PRINTED, TUNED, CHANGED = (os.path.join(HERE, 'results', name) for name in ('tables.csv', 'printed.csv', 'gamma.csv', 'changes.csv'))


class Refused(Exception):
    """A request that cannot be met: what was found, what was expected and what to do."""


def require_results(path, option='--results', command='run'):
    """Refuses a file of results that is not there, which reads as one without lines: a page would lose its tables."""
    if not os.path.exists(path):
        raise Refused(f"found no file '{path}', expected results of {command}. Correct {option}")


def require_finished(results, path, option='--results'):
    """Refuses results without lines, such as those of runs of which none has finished: a page would lose its tables."""
    if not results:
        raise Refused(f"found no finished run in '{path}', expected some: the page would lose its tables. Correct {option}")


def lock(file, how):
    """Locks an open file (flock); does nothing on a file system without locks, as the program does."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


def read_lines(path, header, run, fine, expected):
    """The lines of a results file as dictionaries; none if it does not exist. `run` names the columns that identify a line;
    fine(row) converts a row and returns whether it is one of `expected`."""
    if not os.path.exists(path):
        return []
    with open(path, newline='', encoding='utf-8-sig', errors='replace') as f:  # an editor may have put a byte order mark there
        lines = f.read().splitlines()
    if lines and lines[0] != header:
        raise Refused(f"found the first line '{lines[0]}' in '{path}', expected '{header}': these are not results of this "
                      'script, and the file was left unchanged. Give --results another name')
    results, seen = [], set()
    for number, line in enumerate(lines[1:], 2):
        try:
            fields = next(csv.reader([line]), [])
        except csv.Error:  # a field that is too long
            fields, line = [], line[:60] + '…'
        row = dict(zip(header.split(','), fields))
        try:
            good = len(fields) == header.count(',') + 1 and fine(row)
        except (KeyError, ValueError):
            good = False
        if not good:
            raise Refused(f"found '{line}' in line {number} of '{path}', expected {header} of {expected}. Correct or remove the line")
        if tuple(row[name] for name in run) in seen:
            title = ' '.join(f'seed {row[name]}' if name == 'seed' else str(row[name]) for name in run)
            raise Refused(f"found {title} again in line {number} of '{path}', expected each run once. Remove one of the lines")
        seen.add(tuple(row[name] for name in run))
        results.append(row)
    return results


def integers(row, *names):
    """Converts fields to integers."""
    for name in names:
        row[name] = int(row[name])


def read_results(path):
    """The results of finished runs of the tables."""
    def fine(row):
        integers(row, 'seed', 'epochs')
        return row['row'] in ROWS[row['table']] and all(0 <= float(row[name]) < math.inf for name in ('valid', 'test', 'core_hours'))
    return read_lines(path, HEADER, RUN, fine, EXPECTED)


def read_tuned(path):
    """The results of trials of gamma."""
    def fine(row):
        integers(row, 'seed', 'epochs')
        return row['row'] in ROWS[row['table']] and 0 <= float(row['valid']) < math.inf and 0 < float(row['gamma']) < math.inf
    return read_lines(path, TUNED_HEADER, TUNED_RUN, fine, EXPECTED)


def read_changes(path):
    """The curves of changes, a line for each epoch; its field `epochs` is that of the options."""
    def fine(row):
        integers(row, 'seed', 'epoch')
        row['valid'] = float(row['valid'])
        found = re.fullmatch(r'(?:.* )?--epochs (\d+)', row['options'])
        row['epochs'] = int(found[1]) if found else 0
        return found and row['row'] in ROWS[row['table']] and 0 < row['valid'] < math.inf
    return read_lines(path, CHANGES, [*CHANGES_RUN, 'epoch'], fine, EXPECTED + ', and of options that end with --epochs N')


def beside(results, what):
    """The file that goes with one of results: X.csv has X.options.csv."""
    return re.sub(r'\.csv$', '', results) + f'.{what}.csv'


def read_options(results, run):
    """The options of the training of each result, by the fields that identify it."""
    lines = read_lines(beside(results, 'options'), ','.join([*run, 'options']), run, lambda row: True, 'one line for each result')
    return {tuple(row[name] for name in run): row['options'] for row in lines}


def read_by_epoch(results, what, header):
    """A number by epoch in the file beside results that `what` names, for each run in the results: {(table, row, seed): {epoch: number}}."""
    name = header.split(',')[-1]

    def fine(row):
        integers(row, 'seed', 'epoch')
        row[name] = float(row[name])
        return row['row'] in ROWS[row['table']] and 0 <= row[name] < math.inf
    runs = {(r['table'], r['row'], r['seed']): {} for r in read_results(results)}
    for r in read_lines(beside(results, what), header, [*RUN, 'epoch'], fine, EXPECTED):
        if (run := (r['table'], r['row'], r['seed'])) in runs:
            runs[run][r['epoch']] = r[name]
    return runs


def require_alike(results, run, lines, options):
    """Results that are compared, or merged as seeds, have been made with the same options; these are given."""
    made = read_options(results, run)
    for line in lines:
        key = tuple(str(line[name]) for name in run)
        if made.get(key) != options:
            how = f'was made with {made[key]}' if key in made else 'is not in it'
            raise Refused(f"{' '.join(key)} in '{results}' {how}, says '{beside(results, 'options')}'; the runs now wanted have {options}, and "
                          'would be compared with it as if they were alike. Give the same options, or another --results')


def append_result(path, header, run, *lines, **with_it):
    """Appends the lines of one run to the results unless it has some, all or none, and syncs them to disk; returns whether they were appended.
    Without lines: writes the header if there is no file. `with_it`: for a file beside the results, by its name, its header and lines of
    this run less the fields that identify it; they take the place of those that the run has there. Without lines they are not written either,
    and what is there is only checked to be of this kind."""
    places = [header.split(',').index(name) for name in run]
    with open(path, 'a+b', buffering=0) as f:
        lock(f, fcntl.LOCK_EX)
        f.seek(0)
        before = f.read()
        key = [str(lines[0][i]) for i in places] if lines else None
        for there in csv.reader(before.decode(errors='replace').splitlines()):
            if lines and len(there) == len(lines[0]) and [there[i] for i in places] == key:
                return False  # another call came first
        for what, (columns, more) in with_it.items():
            if lines:
                replace_lines(beside(path, what), columns, key, more)
            else:
                lines_beside(beside(path, what), columns)
        text = '' if before else header + '\n'
        if lines:
            text += ('' if not before or before.endswith(b'\n') else '\n') + csv_text(lines)
        try:
            rest = text.encode()
            while rest:
                rest = rest[f.write(rest):]
            os.fsync(f.fileno())
        except OSError as error:  # such as a full disk: a part of the lines would be taken for all of them
            os.ftruncate(f.fileno(), len(before))
            raise OSError(error.errno, error.strerror, path) from None
    return True


def csv_text(lines):
    """Lines of a CSV file, from lists of fields."""
    out = io.StringIO()
    csv.writer(out, lineterminator='\n').writerows(lines)
    return out.getvalue()


def lines_beside(path, header):
    """The lines of a file beside results, without its header; none if there is no file. Bytes that are not UTF-8 stay what they are."""
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8-sig', errors='surrogateescape') as f:
        lines = f.read().splitlines()
    if lines and lines[0] != header:
        found = lines[0].encode(errors='replace').decode()
        raise Refused(f"found the first line '{found}' in '{path}', expected '{header}' or no file: this script writes such a file beside the "
                      'results, and it was left unchanged. Rename it, or give --results another name')
    return lines[1:]


def replace_lines(path, header, key, lines):
    """Writes lines that begin with the fields `key` in place of those in a file, which appears whole; without lines, none is begun."""
    if not lines and not os.path.exists(path):
        return
    kept = [line for line in lines_beside(path, header) if next(csv.reader([line]), [])[:len(key)] != key]
    try:
        with open(path + '.part', 'w', encoding='utf-8', errors='surrogateescape') as f:
            f.write('\n'.join([header, *kept]) + '\n' + csv_text([*key, *fields] for fields in lines))
            f.flush()
            os.fsync(f.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path + '.part') from None
    os.replace(path + '.part', path)


def rows_of_log(path, of_row):
    """of_row(row) of the complete rows of the last training in a log."""
    with open(path, newline='', encoding='utf-8', errors='replace') as f:
        text = f.read()
    try:
        rows = list(csv.DictReader(text.split('\n')[:-1]))  # words may hold other characters that splitlines() takes for line ends
        rows = [row for row in rows if row['run'] == rows[-1]['run']]
        return [of_row(row) for row in rows]
    except (KeyError, TypeError, ValueError, csv.Error):
        first = text.split('\n')[0]
        raise Refused(f"found '{first}' and rows that do not fit it in '{path}', expected a log of language_model, with numbers for "
                      'epoch, valid_perplexity and cpu_seconds. Put the log of the training there') from None


def log_rows(path):
    """Epoch, validation perplexity and computing time of each epoch in a log."""
    return rows_of_log(path, lambda row: (int(row['epoch']), float(row['valid_perplexity']), float(row['cpu_seconds'])))


def log_distances(path):
    """Epoch and distance of word vectors and softmax in a log, of the epochs that were trained with --subspace."""
    return [(epoch, float(found)) for epoch, found in rows_of_log(path, lambda row: (int(row['epoch']), row.get('subspace_distance')))
            if found]


def spread(values, form):
    """Median, minimum and maximum; one number where all are shown alike."""
    show = [format(v, form) for v in (statistics.median(values), min(values), max(values))]
    return show[0] if len({*show}) == 1 else f'{show[0]} ({show[1]} … {show[2]})'


def parameters(row):
    """How many parameters are trained in a row of ptb-cells: the tied table, the bias of the head, the cells."""
    return TYPES * UNITS + TYPES + IN_CELLS[row]


def made_with(runs, run, made):
    """The options of results, as the page names them."""
    found = sorted({made.get(tuple(str(r[name]) for name in run), '') for r in runs})
    return ' and '.join(f'`{options}`' if options else 'options that were not recorded' for options in found)


def markdown(results, made):
    """The tables of the page; tables and rows without a finished run are left out."""
    out = []
    for table, (corpus, preset) in TABLES.items():
        ours = {row: [r for r in results if (r['table'], r['row']) == (table, row)] for row in ROWS[table]}
        title = f'**{table}**, `--corpus {corpus} --preset {preset}`'
        if not any(ours.values()):
            continue
        source = SOURCE.get(table, {})
        columns = [*(['paper: validation', 'test', 'ours: validation'] if source else ['parameters', 'validation']), 'test', 'seeds',
                   'epochs', 'core-hours']
        title += f', with {made_with(sum(ours.values(), []), RUN, made)}'
        out += [f'{title}:', '', '| ' + ' | '.join(['row', *columns]) + ' |', '|' + '---|' * (len(columns) + 1)]
        for row, runs in ours.items():
            if not runs:
                continue
            cells = [spread([float(r[name]) for r in runs], '.1f') for name in ('valid', 'test')]
            cells += [str(len(runs)), spread([r['epochs'] for r in runs], '.4g')]
            cells += [spread([float(r['core_hours']) for r in runs], '.2f')]
            out.append('| ' + ' | '.join([row, *(source[row] if source else [f'{parameters(row):,}']), *cells]) + ' |')
        out.append('')
    return '\n'.join(out)


def by_gamma(results):
    """The trials of each table, row and number of epochs, by gamma."""
    groups = {}
    for r in results:
        groups.setdefault((r['table'], r['row'], r['epochs']), {}).setdefault(float(r['gamma']), []).append(r)
    return groups


def best_gamma(group):
    """The gamma of the lowest validation perplexity, the median over the seeds, among trials by gamma."""
    return min(group, key=lambda gamma: statistics.median(float(r['valid']) for r in group[gamma]))


def markdown_tuned(results, made):
    """The trials of gamma on the page; nothing if there are none."""
    out = []
    for (table, row, epochs), group in by_gamma(results).items():
        out += ['', f'{table} {row} after {epochs} epochs, with {made_with(sum(group.values(), []), TUNED_RUN, made)}:', '',
                '| γ | validation | seeds |', '|---|---|---|']
        for gamma, runs in sorted(group.items()):
            best = ' (best)' if gamma == best_gamma(group) else ''
            out.append(f"| {gamma:g}{best} | {spread([float(r['valid']) for r in runs], '.1f')} | {len(runs)} |")
    return '\n'.join(out) + '\n' if out else ''


def markdown_distances(runs):
    """The distance of word vectors and softmax of finished runs {(table, row, seed): {epoch: distance}}; nothing if none was recorded."""
    groups = {}
    for (table, row, _), found in runs.items():
        if found:
            groups.setdefault((table, row), []).append(found)
    out = ['', 'Averaged distance of the column spaces of word vectors and softmax (`--subspace`), at the start, after the first and the last epoch:', '',
           '| table | row | seeds | start | first | last |', '|---|---|---|---|---|---|']
    for (table, row), curves in groups.items():
        cells = [spread([curve[epoch(curve)] for curve in curves if epoch(curve) in curve] or [math.nan], '.3f')
                 for epoch in (lambda curve: 0, lambda curve: 1, max)]
        out.append('| ' + ' | '.join([table, row, str(len(curves)), *cells]) + ' |')
    return '\n'.join(out) + '\n' if groups else ''


def markdown_changes(changes, made, plain, made_plain):
    """Validation by epoch of each change of a row, below that of finished runs of the row as it is; nothing if there are no changes."""
    groups = {}
    for r in changes:
        groups.setdefault((r['table'], r['row'], r['epochs']), {}).setdefault(r['change'], []).append(r)
    out = []
    for (table, row, epochs), group in groups.items():
        how = made_with(sum(group.values(), []), CHANGES_RUN, made)
        shown = sorted({1, 5, 10, epochs} & set(range(epochs + 1)))
        out += ['', f'{table} {row} with one change, {epochs} epochs, with {how}:', '',
                '| change | options | ' + ' | '.join(map(str, shown)) + ' | seeds |', '|' + '---|' * (3 + len(shown))]

        def line(name, options, curves):
            values = [[curve[epoch] for curve in curves if epoch in curve] for epoch in shown]
            return '| ' + ' | '.join([name, options, *(spread(v, '.1f') if v else '' for v in values), str(len(curves))]) + ' |'
        same = {run: curve for run, curve in plain.items() if run[:2] == (table, row) and curve}
        if same:
            how_plain = made_with([dict(zip(RUN, run)) for run in same], RUN, made_plain)
            out.append(line('the row as it is', '' if how_plain == how else how_plain, same.values()))
        else:
            out.append('| ' + ' | '.join(['the row as it is', '', NONE, *[''] * len(shown)]) + ' |')
        for name, lines in group.items():
            curves = {}
            for r in lines:
                curves.setdefault(r['seed'], {})[r['epoch']] = r['valid']
            options = re.sub(r' ?--epochs \d+$', '', lines[0]['options'])
            out.append(line(name, f'`{options}`' if options else '', curves.values()))
    return '\n'.join(out) + '\n' if out else ''


def markdown_changes_at_end(changes, made, plain):
    """A line for each change of a row: validation after its last epoch, and of finished runs of the row as it is after as many; nothing if there
    are no changes."""
    groups = {}
    for r in changes:
        groups.setdefault((r['table'], r['row'], r['epochs'], r['change']), []).append(r)
    out = ['', f'Changes with {made_with(changes, CHANGES_RUN, made)}:', '', '| row | options of the change | epochs | as it is | changed | seeds |', '|' + '---|' * 6]
    for (table, row, epochs, change), lines in groups.items():
        options = re.sub(r' ?--epochs \d+$', '', lines[0]['options'])
        same = [curve[epochs] for run, curve in plain.items() if run[:2] == (table, row) and epochs in curve]
        changed = [r['valid'] for r in lines if r['epoch'] == epochs]
        cells = [spread(values, '.1f') if values else '–' for values in (same, changed)]
        out.append(f"| {table} {row} | {f'`{options}`' if options else change} | {epochs} | {' | '.join(cells)} | {len({r['seed'] for r in lines})} |")
    return '\n'.join(out) + '\n' if groups else ''


def markdown_compared(table, files):
    """Finished runs of a table in several results, a line for each of them and each row; options that all have stand above."""
    found = []
    for path in files:
        name, made = name_of(path), read_options(path, RUN)
        results = [r for r in read_results(path) if r['table'] == table]
        for row in ROWS[table]:
            if (runs := [r for r in results if r['row'] == row]):
                how = ' and '.join(sorted({made.get(tuple(str(r[name]) for name in RUN), 'not recorded') for r in runs}))
                found.append((name, row, how, runs))
    # An option and its value are what stands between one ' --' and the next.
    options = [re.split(' (?=--)', how) for _, _, how, _ in found]
    same = [option for option in options[0] if all(option in others for others in options)]
    title = f'**{table}**' + (f", all with `{' '.join(same)}`" if same else '')
    out = [f'{title}:', '', '| results | row | options | validation | test | seeds | epochs | core-hours |', '|' + '---|' * 8]
    before = None
    for (name, row, _, runs), how in zip(found, options):
        cells = [spread([float(r[column]) for r in runs], '.2f') for column in ('valid', 'test')]
        epochs = sorted({r['epochs'] for r in runs})
        cells += [str(len(runs)), '–'.join(str(n) for n in (epochs if len(epochs) == 1 else [epochs[0], epochs[-1]]))]
        cells += [spread([float(r['core_hours']) for r in runs], '.2f')]
        own = ' '.join(option for option in how if option not in same)
        shown = 'the same' if own and (name, own) == before else f'`{own}`' if own else ''
        before = name, own
        out.append('| ' + ' | '.join([name, row, shown, *cells]) + ' |')
    return '\n'.join(out) + '\n'


def write_between(page, script, made, check, results, command='report'):
    """Writes the output of a script between its two marks on a page, or checks that it is there; returns 0."""
    begin, end = f'<!-- {script} {command} writes from here -->', f'<!-- {script} {command}: to here -->'
    with open(page, encoding='utf-8', errors='surrogateescape') as f:
        text = f.read()
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise Refused(f"found {text.count(begin)} times '{begin}' and {text.count(end)} times '{end}' in '{page}', expected "
                      'each once, in this order. Put them back around the place of the tables')
    new = text[:text.index(begin) + len(begin)] + '\n' + made + text[text.index(end):]
    if check and text != new:
        raise Refused(f"the tables in '{page}' are not those of {results}. Run: python3 programs/language_model/{script} {command}"
                      f"{' with the arguments of the check' if command == 'compare' else ''}")
    if not check:
        with open(page + '.part', 'w', encoding='utf-8', errors='surrogateescape') as f:
            f.write(new)
        os.replace(page + '.part', page)
    return 0


def put(o, made, results, command):
    """Prints what a command has made (--print), or writes it between the marks of the command on --page, or checks it there (--check)."""
    if o.print:
        print(made, end='')
        return 0
    return write_between(o.page, 'tables.py', made, o.check, results, command)


def report(o):
    """The command report."""
    require_results(o.results)
    results = read_results(o.results)
    if not o.print:
        require_finished(results, o.results)
    made = markdown(results, read_options(o.results, RUN))
    made += markdown_distances(read_by_epoch(o.results, 'subspace', DISTANCES))
    return put(o, made, f"'{o.results}'", 'report')


def trials(o):
    """The command trials."""
    tuned, changes = read_tuned(o.tuned), read_changes(o.changes)
    for path, option, command, results in ((o.results, '--results', 'run', read_results(o.results)), (o.tuned, '--tuned', 'tune', tuned),
                                           (o.changes, '--changes', 'try', changes)):
        if path not in (PRINTED, TUNED, CHANGED):  # of which one may not have been made yet
            require_results(path, option, command)
            if not o.print:
                require_finished(results, path, option)
    made = markdown_tuned(tuned, read_options(o.tuned, TUNED_RUN))
    made += markdown_changes_at_end(changes, read_options(o.changes, CHANGES_RUN), read_by_epoch(o.results, 'curves', CURVES))
    return put(o, made.removeprefix('\n'), f"'{o.tuned}' and '{o.changes}'", 'trials')


def name_of(results):
    """What results are called among several."""
    return os.path.basename(results).removesuffix('.csv')


def require_names(results):
    """Refuses several results of one name, by which their rows and curves are told apart."""
    names = [name_of(path) for path in results]
    if same := [name for name in names if names.count(name) > 1]:
        raise Refused(f"found two files '{same[0]}.csv' among --results, expected different names: what they have is named by them. "
                      'Rename one, with the files beside it')


def compare(o):
    """The command compare."""
    require_names(o.results)
    if o.check and not o.page:
        raise Refused('found --check without --page, expected the page that is checked. Add --page, or leave --check out')
    tables = {path: {r['table'] for r in read_results(path)} for path in o.results}
    for path, has in tables.items():
        if not has & set(o.tables):
            names = ' or '.join(o.tables)
            raise Refused(f"found no finished run of {names} in '{path}', expected those that `tables.py run {o.tables[0]} --results {path}` "
                          'records. Run it, or leave the file out')
    made = []
    for table in o.tables:
        if not (files := [path for path, has in tables.items() if table in has]):
            raise Refused(f"found no finished run of {table} in {', '.join(o.results)}, expected those that `tables.py run {table}` records. "
                          'Run it, or leave the table out')
        made.append(markdown_compared(table, files))
    o.print = not o.page
    return put(o, '\n'.join(made), ', '.join(f"'{path}'" for path in o.results), 'compare')


def require_own(option, path, mark, what):
    """The rule of the example programs: a file is overwritten only if it is empty or of the kind to be written."""
    if os.path.exists(path) and os.path.getsize(path):
        with open(path, 'rb') as f:
            if mark not in f.read(4096):
                raise Refused(f"found something else in {option} '{path}', expected {what} or no file; it was left unchanged. Give {option} "
                              'another name, or remove the file')


def narrow(values):
    """Settings of gnuplot for a logarithmic axis of less than a decade, which it would label at the decades alone."""
    low, high = min(values), max(values)
    if not 1.001 * low < high < 10 * low:
        return []
    decade = 10 ** math.floor(math.log10(high - low))
    step = next(m * decade for m in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (m * decade) <= 8)
    marks = (i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1))
    return [f'set yrange [{low / 1.02}:{high * 1.02}]', f"set ytics ({', '.join(f'{mark:g}' for mark in marks)})"]


def draw(path, title, x, y, curves, points=(), log_x=False):
    """A figure of curves, given as points (x, y) by name, as lines or, if named in `points`, as points alone; drawn by gnuplot."""
    script = ["set terminal svg noenhanced size 800,500 font 'sans-serif,12' background 'white'", f"set title '{title}'",
              f"set xlabel '{x}'", f"set ylabel '{y}'", f"set logscale {'xy' if log_x else 'y'}", 'set key top right']
    quoted = lambda text: "'" + text.replace("'", "''") + "'"
    script += narrow([float(value) for curve in curves.values() for _, value in curve])
    marks = dict(zip(points, (7, 5, 9, 11, 13, 6, 4, 8, 10, 12)))  # where there are more kinds of points than colours
    script += ['plot ' + ', '.join(f"'-' using 1:2 with {f'points pt {marks.get(name, 7)}' if name in points else 'lines lw 2'} title {quoted(name)}"
                                   for name in curves)]
    for curve in curves.values():
        script += [*(f'{a} {b}' for a, b in curve), 'e']
    try:
        drawn = subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', capture_output=True, text=True)
    except FileNotFoundError:
        raise Refused(f"found no gnuplot, expected it for --svg '{path}'. On Debian and Ubuntu: apt-get install gnuplot-nox")
    if drawn.returncode:
        raise Refused(f"gnuplot could not draw '{path}'; it says: {drawn.stderr.strip()}")
    with open(path, 'w') as f:
        f.write(drawn.stdout)


def draw_curves(svg, table, curves):
    """Validation perplexity by epoch, of points by row and seed."""
    require_own('--svg', svg, b'GNUPLOT', 'a picture of gnuplot')
    draw(svg, table, 'epoch', 'validation perplexity', {f'{row}, seed {seed}': points for (row, seed), points in curves.items()})


def curves(o):
    """The command curves: from the logs in a folder."""
    rows = ROWS[o.table]
    pattern = re.compile(rf"{re.escape(o.table)}-({'|'.join(rows)})-([0-9]+)\.csv")
    logs = [found for name in (os.listdir(o.folder) if os.path.isdir(o.folder) else []) if (found := pattern.fullmatch(name))]
    found = {}
    for log in sorted(logs, key=lambda log: (rows.index(log[1]), int(log[2]))):
        points = [(epoch, valid) for epoch, valid, _ in log_rows(os.path.join(o.folder, log[0]))]
        if points:  # otherwise its first epoch has not ended
            found[log[1], log[2]] = points
    if not found:
        raise Refused(f"found no log {o.table}-ROW-SEED.csv with an epoch in '{o.folder}', expected those of `tables.py run "
                      f'{o.table}`. Give --folder the folder of the runs')
    lines = [CURVES, *(f'{o.table},{row},{seed},{epoch},{valid}' for (row, seed), points in found.items() for epoch, valid in points)]
    if o.csv:
        require_own('--csv', o.csv, CURVES.encode() + b'\n', 'curves of this script')
    if o.svg:
        draw_curves(o.svg, o.table, found)
    if o.csv or not o.svg:
        with open(o.csv, 'w') if o.csv else os.fdopen(os.dup(1), 'w') as f:
            f.write('\n'.join(lines) + '\n')
    return 0


def figure(o):
    """The command figure: from the curves recorded with the results, named by their files where there are several."""
    require_names(o.results)
    found = {}
    for results in o.results:
        name = name_of(results) + ' ' if len(o.results) > 1 else ''
        runs = [(run, curve) for run, curve in read_by_epoch(results, 'curves', CURVES).items() if run[0] == o.table and curve]
        if not runs:
            raise Refused(f"found no curve of a finished run of {o.table} in '{beside(results, 'curves')}', expected those that `tables.py run "
                          f'{o.table}` records. Run it, or draw the logs of a folder with `tables.py curves`')
        for (_, row, seed), curve in sorted(runs, key=lambda r: (ROWS[o.table].index(r[0][1]), r[0][2])):
            found[name + row, seed] = list(curve.items())
    draw_curves(o.svg, o.table, found)
    return 0


def run_or_report(script, description, run, report, results, page, options=lambda p: None):
    """The command line of a script that trains models into a CSV file and makes a table of a page from it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    p = commands.add_parser('run')
    p.add_argument('--program', required=True)
    p.add_argument('--folder', default=script)
    p.add_argument('--results', default=results)
    p.add_argument('--seeds', type=int, nargs='+', default=[1])
    options(p)
    p = commands.add_parser('report')
    p.add_argument('--results', default=results)
    p.add_argument('--page', default=page)
    p.add_argument('--check', action='store_true')
    o = parser.parse_args()
    try:
        if o.command == 'report':
            require_results(o.results)
        return {'run': run, 'report': report}[o.command](o)
    except Refused as e:
        print(f'{script}.py: {e}', file=sys.stderr)
        return 1
