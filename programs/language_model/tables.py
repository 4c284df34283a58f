"""The tables of Inan, Khosravi and Socher (2017) with the program language_model: trains, resumes, reports.

    python3 tables.py run ptb-small --program build/release/programs/language_model --jobs 2
    python3 tables.py run ptb-small --program … --printed --folder tables/printed
    python3 tables.py run ptb-small --program … --rows AL REAL --folder tables/rate0.5 -- --rate 0.5
    python3 tables.py tune ptb-small --program … --row REAL --gamma 0.5 0.65 0.8 --epochs 12
    python3 tables.py try ptb-small --program … --row REAL --change keep0.8='--keep 0.8' --change bptt70='--bptt 70' --epochs 12
    python3 tables.py curves ptb-small --csv curves.csv --svg curves.svg
    python3 tables.py figure ptb-small --svg ptb-small.svg
    python3 tables.py figure ptb-small --results exact.csv sampled.csv --svg both.svg
    python3 tables.py compare ptb-small --results exact.csv sampled.csv
    python3 tables.py report
    python3 tables.py trials

run, tune and try record in their folder; report, trials and figure read the results of the project, unless told otherwise.

A run is a row of a table with a seed. Its files are FOLDER/TABLE-ROW-SEED.safetensors, .safetensors.train (the training
state), .csv (its log) and .out (the program's output). After an interruption the same call resumes. A finished run is
evaluated in one column and becomes a line of the results; see docs/lab/language_model_tables.md.
"""
import argparse
import math
import os
import re
import shlex
import sys

from runs import (OURS, PRECISIONS, Failed, Pool, Run, at_least_1, finite, precision_of, record_options, require_free,
                  require_program_and_texts, require_same_options, seed, split_arguments, status_of, text_of)
from tables_report import (ALL_ROWS, CHANGED, CHANGES, CHANGES_RUN, CURVES, DEPTH, DISTANCES, HEADER, HERE, LAYERS, PRINTED, RESULTS, ROWS, RUN, TABLES,
                           TUNED, TUNED_HEADER, TUNED_RUN, UNITS, Refused, append_result, best_gamma, by_gamma, compare, curves, figure, log_distances,
                           markdown_changes, read_by_epoch, read_changes, read_options, read_results, read_tuned, report, require_alike, require_results,
                           trials)

# The options of each row on top of the preset. The bias is explicit: a training begun without it is refused, not continued.
OPTIONS = {
    'VD': '--head free --loss ce',
    'AL': '--head free --loss al',
    'RE': '--head tied --head-bias --loss ce',
    'REAL': '--head tied --head-bias --loss al',
    # As many parameters within 0.1 %, and nothing else different.
    'LSTM': f'--head tied --head-bias --loss ce --cell lstm --layers {LAYERS} --units {UNITS}',
    'RHN': f'--head tied --head-bias --loss ce --cell rhn --layers 1 --depth {DEPTH} --units {UNITS}',
}
# What gives the figures of a table, in place of the schedule, the one keep probability and the temperature that the source prints.
SCHEDULE = '--schedule one-cycle --warm-up 0.05'
RECIPES = {
    'ptb-small': f'--scheme recurrent --keep-input 0.8 --keep-state 0.75 --keep-between 0.85 --keep-output 0.75 --temperature 10 {SCHEDULE} --epochs 38',
    'ptb-medium': f'--scheme recurrent --keep-input 0.7 --keep-state 0.65 --keep-between 0.75 --keep-output 0.55 --temperature 10 {SCHEDULE} --epochs 48',
    'wikitext-2-small': f'--scheme recurrent --keep-input 0.85 --keep-state 0.8 --keep-between 0.9 --keep-output 0.8 --temperature 10 {SCHEDULE} --epochs 30',
    'ptb-cells': f'--keep 0.78 {SCHEDULE} --epochs 38',
}
AUGMENTED = ['--temperature', '--gamma', '--alpha', '--target']  # options of the augmented loss, which the program refuses with cross-entropy


def without_augmented(options):
    """Options of the training less those of the augmented loss."""
    kept, rest = [], iter(options)
    for option in rest:
        name, equals, _ = option.partition('=')
        if name not in AUGMENTED:
            kept.append(option)
        elif not equals:
            next(rest, None)  # its value
    return kept


def last_value(option, options):
    """The value that counts of an option that several of the options give."""
    return re.findall(rf'{option}[ =](\S+)', ' '.join(options))[-1]


class TableRun(Run):
    """A row of a table with a seed."""
    header, run, parts = HEADER, RUN, ['valid', 'test']
    files = {'curves': CURVES, 'subspace': DISTANCES}  # beside the results, apart from the options

    def __init__(self, o, row, number, mark=''):
        super().__init__(o, f'{o.table} {row}{mark} seed {number}', f"{o.table}-{row}{mark.replace(' ', '-')}-{number}")
        self.row, self.seed = row, number
        self.free = '--head free' in OPTIONS[row]
        self.last = ['--subspace'] if self.free else []  # the training is the same with it
        self.key = (o.table, row, number)

    def alike(self):
        """The results with which its own are compared."""
        return [r for r in read_results(self.o.results) if r['table'] == self.o.table]

    def lines(self, log, perplexities, hours):
        """What the results say of it."""
        return [[*self.key, len(log), *perplexities, f'{hours:.4f}']]

    def beside(self, log):
        """What the files beside the results say of it."""
        by_epoch = {'curves': (self.files['curves'], [[epoch, f'{valid:.6g}'] for epoch, valid, _ in log])}
        if self.free:
            by_epoch['subspace'] = (self.files['subspace'], [[epoch, f'{distance:.6g}'] for epoch, distance in self.distances()])
        return by_epoch

    def distances(self):
        """The distance of word vectors and softmax by epoch; epoch 0 is the start."""
        with open(self.base + '.out', errors='replace') as out:
            start = re.findall(r'^subspace .* softmax ([0-9.]+) at the start$', out.read(), re.M)
        return [*((0, float(distance)) for distance in start[-1:]), *log_distances(self.base + '.csv')]

    def steps(self):
        """Trains, evaluates and records the result, as a generator of processes to wait for."""
        o = self.o
        corpus, preset = TABLES[o.table]
        threads = ['--threads', str(o.threads)]
        more = [*o.extra, *o.recipe.split()]
        row = OPTIONS[self.row].split()
        if last_value('--loss', [*row, *self.last]) == 'ce':  # a change of `try` may have another
            more = without_augmented(more)
        if last_value('--head', [*row, *self.last]) == 'free':  # likewise; it always has a bias, and the option is refused
            row = [option for option in row if option != '--head-bias']
        yield from self.execute(
            'train', '--corpus', corpus, '--preset', preset, *row, '--seed', str(self.seed), '--precision', o.precision,
            '--epsilon', o.epsilon, *threads, '--model', self.model, '--log', self.base + '.csv', '--resume', *more, *self.last)
        perplexities = []
        for part in self.parts:
            printed = yield from self.execute('evaluate', '--model', self.model, '--text', text_of(corpus, part), *threads)
            found = re.search(r'^perplexity ([0-9.]+|inf|nan) ', printed, re.M)
            if not found:
                raise Failed(f"evaluate printed no perplexity; see the end of '{self.base}.out'")
            finite(found[1], part)
            perplexities.append(found[1])
        hours, log = self.hours()
        require_alike(o.results, self.run, self.alike(), o.options)  # again: another call may have finished with others
        beside = {'options': (','.join([*self.run, 'options']), [[o.options]]), **self.beside(log)}
        if not append_result(o.results, self.header, self.run, *self.lines(log, perplexities, hours), **beside):
            print(f"{self.title}: has a line in '{o.results}' already, by another call; it stays", flush=True)
            return
        figures = ', '.join(f'{name} {p}' for name, p in zip(['validation', 'test'], perplexities or [f'{log[-1][1]:.2f}']))
        print(f'{self.title}: {figures}, {len(log)} epochs, {hours:.4f} core-hours', flush=True)


class Trial(TableRun):
    """A short training of a row with options in place of the preset's. The texts are named, so that the program does not take the corpus's
    test text, too."""
    header, run, parts = CHANGES, CHANGES_RUN, []
    files = {}

    def __init__(self, o, name, options, number):
        corpus, _ = TABLES[o.table]
        super().__init__(o, o.row, number, f' {name} epochs{o.epochs}')
        self.options = [*options, '--epochs', str(o.epochs)]
        self.last = ['--train', text_of(corpus, 'train'), '--valid', text_of(corpus, 'valid'), *self.options]
        self.key = (o.table, o.row, name, number)

    def alike(self):
        return [r for r in read_changes(self.o.results) if (r['table'], r['row']) == (self.o.table, self.o.row)]

    def lines(self, log, perplexities, hours):
        *what, number = self.key
        return [[*what, shlex.join(self.options), number, epoch, f'{valid:.6g}'] for epoch, valid, _ in log]

    def beside(self, log):
        return {}


class GammaTrial(Trial):
    """A trial of a gamma, with one figure as its result: the validation perplexity in one column."""
    header, run, parts = TUNED_HEADER, TUNED_RUN, ['valid']

    def __init__(self, o, gamma, number):
        super().__init__(o, f'gamma{gamma:g}', ['--gamma', f'{gamma:g}'], number)
        self.key = (o.table, o.row, f'{gamma:g}', number, o.epochs)

    def alike(self):
        o = self.o
        return [r for r in read_tuned(o.results) if (r['table'], r['row'], r['epochs']) == (o.table, o.row, o.epochs)]

    def lines(self, log, perplexities, hours):
        return [[*self.key, *perplexities]]


def work(o, runs):
    """Does those of the runs that have no result; returns the exit status."""
    known = {tuple(r[name] for name in run.run): r for run in runs[:1] for r in run.alike()}
    missing = []
    for run in runs:
        if (done := known.get(run.key)):
            print(f"{run.title}: finished, validation {done['valid']}{', test ' + done['test'] if 'test' in done else ''}", flush=True)
        else:
            run.check()
            missing.append(run)
    record = os.path.join(o.folder, f"{o.table}{'-trials' if isinstance(runs[0], Trial) else ''}.options.txt")
    require_same_options(record, o.options)
    require_alike(o.results, runs[0].run, known.values(), o.options)
    record_options(record, o.options)
    beside = {what: (header, []) for what, header in runs[0].files.items()}
    append_result(o.results, runs[0].header, runs[0].run, **beside)  # fails now if it cannot be written
    pool = Pool(o.jobs)
    pool.work(missing)
    return pool.status(missing, 'tables.py')


def prepare(o, ours, name, recipe=''):
    """What all commands that train require and set; `recipe`: options of all runs, unless others are given."""
    require_program_and_texts(o, TABLES[o.table][0])
    require_free(o.extra, [*OURS, 'epsilon', 'head', 'head-bias', 'loss', *ours])
    os.makedirs(o.folder, exist_ok=True)
    o.results = o.results or os.path.join(o.folder, name)
    if o.precision == 'auto':
        o.precision = precision_of(o.program, '--precision', 'auto')
    o.recipe = '' if o.extra else recipe
    o.options = shlex.join(['--precision', o.precision, '--epsilon', o.epsilon, *o.extra, *o.recipe.split()])


def run_table(o):
    """The command run."""
    rows = o.rows or ROWS[o.table]
    for row in rows:
        if row not in ROWS[o.table]:
            raise Refused(f"found --rows {row}, expected rows of {o.table}: {', '.join(ROWS[o.table])}")
    if o.printed and o.extra:
        raise Refused('found --printed and options after --, expected one of them: with options after -- the rest is what the source prints')
    ours = ['cell', 'layers', 'depth', 'units', 'embedding'] if o.table == 'ptb-cells' else []
    prepare(o, ours, 'tables.csv', '' if o.printed else RECIPES.get(o.table, ''))
    # Seed by seed, so that a table stopped early is complete over fewer seeds.
    return work(o, [TableRun(o, row, number) for number in sorted(set(o.seeds)) for row in ROWS[o.table] if row in rows])


def require_row(o):
    """Checks that the row is one of the table."""
    if o.row not in ROWS[o.table]:
        raise Refused(f"found --row {o.row}, expected a row of {o.table}: {', '.join(ROWS[o.table])}")


def tune(o):
    """The command tune."""
    require_row(o)
    prepare(o, ['gamma', 'alpha', 'epochs'], 'gamma.csv')
    status = work(o, [GammaTrial(o, gamma, number) for number in sorted(set(o.seeds)) for gamma in sorted(set(o.gamma))])
    group = by_gamma(read_tuned(o.results)).get((o.table, o.row, o.epochs))
    if status == 0:
        print(f'{o.table} {o.row} after {o.epochs} epochs: the best of {len(group)} gammas on validation is {best_gamma(group):g}')
    return status


def try_changes(o):
    """The command try."""
    require_row(o)
    if o.plain:
        require_results(o.plain, '--plain')
    changes = dict(o.change)
    if len(changes) < len(o.change):
        raise Refused(f"found --change with the names {', '.join(name for name, _ in o.change)}, expected each name once")
    for name, options in changes.items():
        require_free(options, [*OURS, 'epochs'], f'in --change {name}')
    prepare(o, ['epochs'], 'changes.csv')
    runs = [Trial(o, name, options, number) for number in sorted(set(o.seeds)) for name, options in changes.items()]
    found = {r['change']: r['options'] for r in runs[0].alike()}
    for run in runs:
        name, options = run.key[2], shlex.join(run.options)
        if found.get(name, options) != options:
            raise Refused(f"found the change {name} with the options {found[name]} in '{o.results}', and now with {options}, expected one name for "
                          'one set of options. Give it another name')
    status = work(o, runs)
    if status == 0:
        plain = o.plain or (os.path.join(o.folder, 'tables.csv') if o.extra else PRINTED)
        print(markdown_changes(runs[0].alike(), read_options(o.results, CHANGES_RUN), read_by_epoch(plain, 'curves', CURVES),
                               read_options(plain, RUN)), end='')
    return status


def change(text):
    """A change, NAME=OPTIONS, as its name and the list of its options."""
    try:
        name, options = re.fullmatch(r'([A-Za-z0-9][A-Za-z0-9._-]*)=(.*)', text, re.S).groups()
        return name, shlex.split(options)
    except (AttributeError, ValueError):
        raise argparse.ArgumentTypeError(f"found {text}, expected NAME='OPTIONS' with a name of letters, digits, '.', '_' and '-', and options as in "
                                         'a shell') from None


def epsilon(text):
    """A share below 1, or a fraction such as 1/256, in the form in which the program gets it and the results record it."""
    above, slash, below = text.partition('/')
    try:
        value = float(above) / (float(below) if slash else 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not (1e-300 <= value < 1 or (value == 0 and not re.search('[1-9]', above))):
        raise argparse.ArgumentTypeError(f'found {text}, expected 0, or a number below 1 such as 0.01 or 1/256')
    return repr(value) if value else '0'


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number above 0")
    return value


def processors():
    """How many processors this process may use, such as those that a batch system or taskset leaves it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def arguments_of_training(p, seeds, name):
    p.add_argument('--program', required=True, help='the language_model that was built')
    p.add_argument('--seeds', nargs='+', type=seed, default=seeds)
    p.add_argument('--threads', type=at_least_1, default=1, help='of each run; the same from its beginning to its end (1)')
    p.add_argument('--jobs', type=at_least_1, help='runs in parallel (as many as the processors have room for)')
    p.add_argument('--precision', choices=PRECISIONS, default='auto', help='of the training, the same for a whole table (auto: what the '
                   'program chooses here)')
    p.add_argument('--epsilon', type=epsilon, default='0.00390625', help='below which probability the gradient of the softmax is sampled, '
                   'without bias; 0: exact (1/256)')
    p.add_argument('--folder', default='tables', help='of models, trainings, logs and outputs (tables)')
    p.add_argument('--results', help=f'where finished runs are written down, and read as finished (FOLDER/{name})')


def main():
    arguments, extra = split_arguments()
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    commands = parser.add_subparsers(dest='command', required=True)

    p = commands.add_parser('run', help='train and evaluate what is not finished of a table; after --, options of language_model train')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--rows', nargs='+', choices=ALL_ROWS, help='of the table (all)')
    p.add_argument('--printed', action='store_true', help='with what the source prints alone, where another recipe gives its figures')
    arguments_of_training(p, [1, 2, 3], 'tables.csv')

    p = commands.add_parser('tune', help='short trainings of a row for several gammas, compared on the validation text alone; after -- as for run')
    p.add_argument('table', choices=[table for table in TABLES if 'REAL' in ROWS[table]])
    p.add_argument('--row', choices=['AL', 'REAL'], default='REAL')
    p.add_argument('--gamma', nargs='+', type=positive, required=True)
    p.add_argument('--epochs', type=at_least_1, default=12, help='of each training, from the beginning of the preset\'s schedule (12)')
    arguments_of_training(p, [1], 'gamma.csv')

    p = commands.add_parser('try', help='short trainings of a row with one thing changed, compared by epoch on the validation text alone; after -- '
                            'as for run')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--row', choices=ALL_ROWS, default='REAL')
    p.add_argument('--change', action='append', type=change, required=True, metavar="NAME='OPTIONS'",
                   help='options of language_model train in place of those of the row; several times for several changes')
    p.add_argument('--epochs', type=at_least_1, default=12, help='of each training, from the beginning of the preset\'s schedule (12)')
    p.add_argument('--plain', help=f'results of run, for the curve of the row as it is ({os.path.relpath(PRINTED)}; with options after -- '
                   'FOLDER/tables.csv)')
    arguments_of_training(p, [1], 'changes.csv')

    def arguments_of_page(p, page):
        p.add_argument('--page', default=os.path.join(HERE, '..', '..', 'docs', 'lab', page))
        p.add_argument('--check', action='store_true', help='write nothing; status 1 if the page is not what would be written')
        p.add_argument('--print', action='store_true', help='print the tables, and leave the page unchanged')

    p = commands.add_parser('report', help='rewrite the tables of docs/lab/language_model_results.md from the results')
    p.add_argument('--results', default=RESULTS)
    arguments_of_page(p, 'language_model_results.md')

    p = commands.add_parser('trials', help='rewrite the trials of tune and try in docs/lab/language_model_search.md')
    p.add_argument('--results', default=PRINTED, help='of run --printed, for the curves of the rows as they are')
    p.add_argument('--tuned', default=TUNED, help='results of tune')
    p.add_argument('--changes', default=CHANGED, help='results of try')
    arguments_of_page(p, 'language_model_search.md')

    p = commands.add_parser('compare', help='a table of the finished runs in several results, made with different options')
    p.add_argument('tables', nargs='+', choices=TABLES, metavar='table')
    p.add_argument('--results', nargs='+', required=True)
    p.add_argument('--page', help='where it is written between the marks of this command (it is printed)')
    p.add_argument('--check', action='store_true', help='with --page: write nothing; status 1 if the page is not what would be written')

    p = commands.add_parser('curves', help='validation perplexity by epoch, of all logs of a table in a folder')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--folder', default='tables')
    p.add_argument('--csv', help='file for it (standard output)')
    p.add_argument('--svg', help='file for a figure, which gnuplot draws')

    p = commands.add_parser('figure', help='the same of the finished runs, as recorded with the results, drawn by gnuplot')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--results', nargs='+', default=[RESULTS], help=f'several are drawn together ({os.path.relpath(RESULTS)})')
    p.add_argument('--svg', required=True)

    o = parser.parse_args(arguments)
    if o.command in ('run', 'tune', 'try'):
        o.extra = extra
        o.jobs = o.jobs or max(1, processors() // o.threads)
    elif extra:
        parser.error(f'-- and options of the training are for run, tune and try, not for {o.command}')
    do = {'run': run_table, 'tune': tune, 'try': try_changes, 'report': report, 'trials': trials, 'compare': compare, 'curves': curves,
          'figure': figure}
    return status_of('tables.py', do[o.command], o)


if __name__ == '__main__':
    sys.exit(main())
