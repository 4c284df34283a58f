"""The tables of Inan, Khosravi and Socher (2017) with the program language_model: trains, resumes, reports.

    python3 tables.py run ptb-small --program build/release/examples/language_model --jobs 2
    python3 tables.py run ptb-small --program … --rows AL REAL --folder tables/gamma0.5 -- --gamma 0.5
    python3 tables.py curves ptb-small --csv curves.csv --svg curves.svg
    python3 tables.py report

A run is a row of a table with a seed. Its files are FOLDER/TABLE-ROW-SEED.safetensors, .safetensors.train (the training
state), .csv (its log) and .out (the program's output). After an interruption the same call resumes. A finished run is
evaluated in one column and becomes a line of the results; see docs/examples/language_model.md.
"""
import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from tables_report import HEADER, HERE, ROWS, RUN, TABLES, Refused, append_result, curves, log_rows, read_results, report

# The options of each row on top of the preset. The bias is explicit: a training begun without it is refused, not continued.
OPTIONS = {
    'VD': '--head free --loss ce',
    'AL': '--head free --loss al',
    'RE': '--head tied --head-bias --loss ce',
    'REAL': '--head tied --head-bias --loss al',
}
RESULTS = os.path.join(HERE, 'results', 'tables.csv')
OURS = 'corpus preset train valid test model log resume overwrite seed threads precision epsilon head head-bias loss'.split()
POLL = 0.1  # seconds


class Failed(Exception):
    """A program that ended with a status other than 0."""


def text_of(corpus, part):
    """Where the program finds a text of a corpus."""
    root = os.environ.get('ISOGLOSS_DATA') or '../shared/data'
    return os.path.join(root, corpus, f'ptb.{part}.txt' if corpus == 'ptb' else f'{part}.txt')


class Run:
    """One row of a table with one seed."""

    def __init__(self, o, row, seed):
        self.o, self.row, self.seed = o, row, seed
        self.title = f'{o.table} {row} seed {seed}'
        self.base = os.path.join(o.folder, f'{o.table}-{row}-{seed}')
        self.model = self.base + '.safetensors'

    def log(self):
        """The rows of the log, from the first epoch on."""
        rows = log_rows(self.base + '.csv')
        epochs = [epoch for epoch, _, _ in rows]
        if epochs != list(range(1, len(rows) + 1)):
            raise Refused(f"found the epochs {', '.join(map(str, epochs))} in '{self.base}.csv', expected all from 1 on: core-hours "
                          'are the sum of its seconds. Put the whole log of the training there')
        return rows

    def check(self):
        """A model without its training state would be retrained and overwritten; without its log its hours are unknown."""
        for there, missing in [(self.model, self.model + '.train'), (self.model + '.train', self.base + '.csv')]:
            if os.path.exists(there) and not os.path.exists(missing):
                raise Refused(f"found '{there}' without '{missing}', expected both or neither. Put the file beside it, or remove "
                              f"'{self.base}.*' to start over")
        if os.path.exists(self.base + '.csv'):
            self.log()

    def execute(self, *arguments):
        """Starts the program with output to the .out file and yields its process; sent the exit status, returns its output. Raises Failed."""
        with open(self.base + '.out', 'ab') as out:
            out.write(f'$ language_model {shlex.join(arguments)}\n'.encode())
            out.flush()
            start = out.seek(0, os.SEEK_END)
            # Its own process group: Ctrl-C reaches it once, through this script.
            process = subprocess.Popen([self.o.program, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        status = yield process
        with open(self.base + '.out', 'rb') as out:
            out.seek(start)
            printed = out.read().decode(errors='replace')
        if status:
            lines = [line for line in printed.splitlines() if line.strip()]
            ran_away = [i for i, line in enumerate(lines) if line.startswith('The training stops')] if status == 3 else []
            last = lines[ran_away[-1]:][:5] if ran_away else lines[-5:]
            how = f'status {status}' if status > 0 else f'signal {-status}'
            raise Failed('\n    '.join([f"{arguments[0]} ended with {how}; the last of '{self.base}.out':", *last]))
        return printed

    def steps(self):
        """Trains, evaluates and records the result, as a generator of processes to wait for."""
        o = self.o
        corpus, preset = TABLES[o.table]
        threads = ['--threads', str(o.threads)]
        yield from self.execute(
            'train', '--corpus', corpus, '--preset', preset, *OPTIONS[self.row].split(), '--seed', str(self.seed),
            '--precision', o.precision, '--epsilon', o.epsilon, *threads, '--model', self.model, '--log', self.base + '.csv', '--resume', *o.extra)
        perplexities = []
        for part in 'valid', 'test':
            printed = yield from self.execute('evaluate', '--model', self.model, '--text', text_of(corpus, part), *threads)
            found = re.search(r'^perplexity ([0-9.]+) ', printed, re.M)
            if not found:
                raise Failed(f"evaluate printed no perplexity; see the end of '{self.base}.out'")
            perplexities.append(found[1])
        log = self.log()
        if not log:
            raise Failed(f"found no epoch in '{self.base}.csv', expected those of the training. Put its log there")
        hours = sum(seconds for _, _, seconds in log) / 3600
        if not append_result(o.results, HEADER, RUN, [o.table, self.row, self.seed, len(log), *perplexities, f'{hours:.4f}']):
            print(f"{self.title}: has a line in '{o.results}' already, by another call; it stays", flush=True)
            return
        print(f'{self.title}: validation {perplexities[0]}, test {perplexities[1]}, {len(log)} epochs, {hours:.4f} core-hours',
              flush=True)


class Pool:
    """Runs in parallel. A signal is passed on to their programs, which save and exit."""

    def __init__(self, jobs):
        self.jobs, self.active, self.failed = jobs, [], []
        self.signals = []  # received and not yet passed on
        self.stopped = 0  # the first signal received
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, lambda number, _: self.signals.append(number))

    def advance(self, run, steps, status=None):
        """Advances a run to its next program."""
        try:
            self.active.append((run, steps, steps.send(status)))
        except StopIteration:
            pass
        except (Failed, Refused, OSError) as error:
            self.failed.append(run)
            print(f'{run.title}: failed. {error}', flush=True)

    def work(self, runs):
        """Returns when all have ended or been stopped."""
        waiting = list(runs)
        try:
            while self.active or (waiting and not self.stopped):
                while waiting and len(self.active) < self.jobs and not self.signals and not self.stopped:
                    run = waiting.pop(0)
                    how = 'goes on' if os.path.exists(run.model + '.train') else 'begins'
                    print(f"{run.title}: {how}, output in '{run.base}.out'", flush=True)
                    self.advance(run, run.steps())
                time.sleep(POLL)
                while self.signals:
                    number = self.signals.pop(0)
                    self.stopped = self.stopped or number
                    for _, _, process in self.active:
                        process.send_signal(number)
                for one in list(self.active):
                    run, steps, process = one
                    if process.poll() is None:
                        continue
                    self.active.remove(one)
                    if self.stopped:
                        print(f'{run.title}: stopped', flush=True)
                    else:
                        self.advance(run, steps, process.returncode)
        finally:  # for instance after a closed pipe
            for _, _, process in self.active:
                process.terminate()
            for _, _, process in self.active:
                process.wait()


def require_same_options(o):
    """All runs of a folder share precision, epsilon and the options after --, so that a finished run is never mistaken for one with others."""
    path = os.path.join(o.folder, 'options.txt')
    ours = shlex.join(['--precision', o.precision, '--epsilon', o.epsilon, *o.extra]) + '\n'
    if os.path.exists(path):
        with open(path) as f:
            found = f.read()
        if found != ours:
            raise Refused(f"the runs in '{o.folder}' have the options {found.strip()}, as '{path}' says; the given ones are {ours.strip()}. "
                          'Give the same, or another --folder')
    with open(path, 'w') as f:
        f.write(ours)


def require_program_and_texts(o, corpus):
    """Checks that what a run needs exists, and makes the program's path absolute."""
    program = shutil.which(o.program)
    if not program:
        raise Refused(f"found no program '{o.program}', expected the language_model that was built. Build it (cmake --preset release && "
                      'cmake --build --preset release --target language_model), or give --program its path')
    o.program = os.path.abspath(program)
    for part in 'train', 'valid', 'test':
        if not os.path.isfile(text_of(corpus, part)):
            raise Refused(f"found no text '{text_of(corpus, part)}', expected the corpus {corpus} there. Set ISOGLOSS_DATA to the folder "
                          f'that holds {corpus}/')


def run_table(o):
    require_program_and_texts(o, TABLES[o.table][0])
    for option in o.extra:
        if re.sub('=.*', '', option)[2:] in OURS and option.startswith('--'):
            raise Refused(f"found {option} after --, expected options of the model and the training: this one is set for each run. "
                          'Leave it out; --help lists what can be given before --')
    os.makedirs(o.folder, exist_ok=True)
    o.results = o.results or (os.path.join(o.folder, 'tables.csv') if o.extra else RESULTS)
    known = {(r['table'], r['row'], r['seed']): r for r in read_results(o.results)}
    # Seed by seed, so that a table stopped early is complete over fewer seeds.
    runs = []
    for run in [Run(o, row, seed) for seed in sorted(set(o.seeds)) for row in ROWS if row in o.rows]:
        if (done := known.get((o.table, run.row, run.seed))):
            print(f"{run.title}: finished, validation {done['valid']}, test {done['test']}", flush=True)
        else:
            run.check()
            runs.append(run)
    require_same_options(o)
    append_result(o.results, HEADER, RUN, None)  # fails now if it cannot be written
    pool = Pool(o.jobs)
    pool.work(runs)
    if pool.stopped:
        print('tables.py: stopped; the same call continues', file=sys.stderr)
        return 128 + pool.stopped
    if pool.failed:
        print(f"tables.py: {len(pool.failed)} of {len(runs)} runs failed, see above: {', '.join(run.title for run in pool.failed)}. The "
              'same call continues with them', file=sys.stderr)
    return 1 if pool.failed else 0


def at_least_1(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f'found {text}, expected at least 1')
    return int(text)


def seed(text):
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f'found {text}, expected 0 or more')
    return int(text)


def split_arguments():
    """The arguments of the script before --, and those of the training after it."""
    arguments = sys.argv[1:]
    at = arguments.index('--') if '--' in arguments else len(arguments)
    return arguments[:at], arguments[at + 1:]


def main():
    arguments, extra = split_arguments()
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    commands = parser.add_subparsers(dest='command', required=True)

    p = commands.add_parser('run', help='train and evaluate what is not finished of a table; after --, options of language_model train')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--program', required=True, help='the language_model that was built')
    p.add_argument('--rows', nargs='+', choices=ROWS, default=ROWS)
    p.add_argument('--seeds', nargs='+', type=seed, default=[1, 2, 3])
    p.add_argument('--threads', type=at_least_1, default=1, help='of each run; the same from its beginning to its end (1)')
    p.add_argument('--jobs', type=at_least_1, help='runs in parallel (as many as the processors have room for)')
    p.add_argument('--precision', choices=['fp32', 'bf16', 'auto'], default='auto', help='of the training (auto)')
    p.add_argument('--epsilon', default='0.00390625', help='below which probability the gradient of the softmax is sampled, '
                   'without bias; 0: exact (1/256)')
    p.add_argument('--folder', default='tables', help='of models, trainings, logs and outputs (tables)')
    p.add_argument('--results', help=f'where finished runs are written down ({os.path.relpath(RESULTS)}; with options after -- '
                   'FOLDER/tables.csv)')

    p = commands.add_parser('report', help='rewrite the tables of docs/examples/language_model.md from the results')
    p.add_argument('--results', default=RESULTS)
    p.add_argument('--page', default=os.path.join(HERE, '..', '..', 'docs', 'examples', 'language_model.md'))
    p.add_argument('--check', action='store_true', help='write nothing; status 1 if the page is not what would be written')
    p.add_argument('--print', action='store_true', help='print the tables, and leave the page unchanged')

    p = commands.add_parser('curves', help='validation perplexity by epoch, of all logs of a table in a folder')
    p.add_argument('table', choices=TABLES)
    p.add_argument('--folder', default='tables')
    p.add_argument('--csv', help='file for it (standard output)')
    p.add_argument('--svg', help='file for a figure, which gnuplot draws')

    o = parser.parse_args(arguments)
    if extra and o.command != 'run':
        parser.error(f'-- and options of the training are for run, not for {o.command}')
    if o.command == 'run':
        o.extra = extra
        o.jobs = o.jobs or max(1, (os.cpu_count() or 1) // o.threads)
    try:
        return {'run': run_table, 'report': report, 'curves': curves}[o.command](o)
    except (Refused, OSError) as error:
        print(f'tables.py: {error}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
