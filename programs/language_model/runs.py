"""Trainings of the program language_model for tables.py and recipes.py: what a run needs, how it is stopped and resumed, and with which options."""
import argparse
import contextlib
import csv
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tables_report import Refused, lock, log_rows

OURS = 'corpus preset train valid test model log resume overwrite seed threads precision'.split()  # set for every run
PRECISIONS = ['fp32', 'bf16', 'auto']
POLL = 0.1  # seconds


class Failed(Exception):
    """A program that ended with a status other than 0, or without a usable result."""


def text_of(corpus, part):
    """Where the program finds a text of a corpus."""
    root = os.environ.get('ISOGLOSS_DATA') or '../shared/data'
    return os.path.join(root, corpus, f'ptb.{part}.txt' if corpus == 'ptb' else f'{part}.txt')


def finite(perplexity, part):
    """The perplexity of a part of a corpus; Failed if it is not finite (null in JSON)."""
    if perplexity is None or not float(perplexity) < float('inf'):
        raise Failed(f'found no finite perplexity on the {part} text: the model gives some token the probability 0, and has no result that '
                     'could be recorded. Train it with other options, for instance a lower --rate, in another --folder')
    return float(perplexity)


def epochs_of(o, name, options):
    """Trains on the Penn Treebank, or goes on, and yields for each epoch its number, the core-seconds so far, the validation perplexity
    and, of the last, the test perplexity. Files: FOLDER/NAME.safetensors, .csv, .out."""
    base = os.path.join(o.folder, name)
    with open(base + '.out', 'ab') as out:
        subprocess.run([o.program, 'train', *options, '--model', base + '.safetensors', '--log', base + '.csv', '--resume'], stdout=out, stderr=out,
                       check=True)
    printed = subprocess.run([o.program, 'evaluate', '--model', base + '.safetensors', '--text', text_of('ptb', 'test'), '--threads', '1'],
                             capture_output=True, text=True, check=True).stdout
    test = re.search(r'^perplexity ([0-9.]+) ', printed, re.M)[1]
    log = log_rows(base + '.csv')
    seconds = 0
    for epoch, valid, used in log:
        seconds += used
        yield epoch, f'{seconds:.1f}', f'{valid:.3f}', test if epoch == len(log) else ''


def runs_by_epoch(path, header):
    """Results by run, that is by the first two columns and the seed: epochs in order."""
    runs = {}
    if os.path.exists(path):
        with open(path, newline='', encoding='utf-8') as f:
            for row in csv.DictReader(f):
                runs.setdefault((row[header[0]], row[header[1]], int(row['seed'])), []).append(row)
    return runs


def run_missing(o, header, pairs, train):
    """Trains what the results lack of `pairs`, of the first two columns, with each seed, and records its lines."""
    os.makedirs(o.folder, exist_ok=True)
    for number in o.seeds:
        for first, second in pairs:
            if (first, second, number) in runs_by_epoch(o.results, header):
                continue
            lines = list(train(o, first, second, number))
            new = not os.path.exists(o.results)
            with open(o.results, 'a', newline='', encoding='utf-8') as f:
                csv.writer(f, lineterminator='\n').writerows([header, *lines] if new else lines)
            print(*lines[-1], flush=True)
    return 0


class Run:
    """A training and what follows it. Files: BASE.safetensors, .safetensors.train, .csv (the log), .out."""

    def __init__(self, o, title, name):
        self.o, self.title = o, title
        self.base = os.path.join(o.folder, name)
        self.model = self.base + '.safetensors'

    def log(self):
        """The rows of the log, from the first epoch on."""
        rows = log_rows(self.base + '.csv')
        epochs = [epoch for epoch, _, _ in rows]
        if epochs != list(range(1, len(rows) + 1)):
            raise Refused(f"found the epochs {', '.join(map(str, epochs))} in '{self.base}.csv', expected all from 1 on: core-hours "
                          'are the sum of its seconds. Put the whole log of the training there')
        return rows

    def hours(self):
        """Core-hours of the training, and its log."""
        log = self.log()
        return sum(seconds for _, _, seconds in log) / 3600, log

    def check(self):
        """A model without its training state would be retrained and overwritten; without its log its hours are unknown, and without the
        output it was not begun here, with these options."""
        state = self.model + '.train'
        for there, missing in [(self.model, state), (state, self.base + '.csv'), (state, self.base + '.out')]:
            if os.path.exists(there) and not os.path.exists(missing):
                raise Refused(f"found '{there}' without '{missing}', expected both or neither. Put the file beside it, or remove "
                              f"'{self.base}.*' to start over")
        if os.path.exists(self.base + '.csv'):
            self.log()

    def alone(self):
        """The steps, as long as no other call takes them for the same run: both would write its output, and read each other's."""
        with open(self.base + '.out', 'ab') as out:
            try:
                lock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Failed(f"found another call at this run, which writes '{self.base}.out', expected one at a time. Wait until it has ended, or "
                             'give another --folder') from None
            yield from self.steps()

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
                    self.advance(run, run.alone())
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

    def status(self, runs, script):
        """The exit status of the script after work(runs), with a line on stderr unless it is 0."""
        if self.stopped:
            print(f'{script}: stopped; the same call continues', file=sys.stderr)
            return 128 + self.stopped
        if self.failed:
            print(f"{script}: {len(self.failed)} of {len(runs)} runs failed, see above: {', '.join(run.title for run in self.failed)}. The "
                  'same call continues with them', file=sys.stderr)
        return 1 if self.failed else 0


def precision_of(program, *options):
    """The precision in which the program would train here with these options, fp32 or bf16, as a model of one unit records it."""
    with tempfile.TemporaryDirectory(prefix='isogloss_precision_') as folder:
        text, model = os.path.join(folder, 'text.txt'), os.path.join(folder, 'model')
        with open(text, 'w') as f:
            f.write('a b c\n' * 40)
        done = subprocess.run([program, 'train', '--train', text, '--valid', text, *options, '--units', '1', '--embedding', '1', '--batch',
                               '1', '--bptt', '10', '--epochs', '1', '--runaway', '0', '--threads', '1', '--model', model],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"'{program}' could not train on a text of 160 tokens, which says what --precision auto is here: {done.stderr.strip()}")
        with open(model, 'rb') as f:
            length, = struct.unpack('<Q', f.read(8))
            return json.loads(json.loads(f.read(length))['__metadata__']['language_model'])['precision']


def require_free(extra, ours, where='after --'):
    """Refuses options of the training that are set for each run."""
    for option in extra:
        if option.startswith('--') and re.sub('=.*', '', option)[2:] in ours:
            raise Refused(f"found {option} {where}, expected options of the model and the training: this one is set for each run. "
                          'Leave it out; --help lists what can be given before --')


def require_same_options(path, given):
    """Runs that share a record of options have the same, so that a finished run is never mistaken for one with others."""
    if os.path.exists(path):
        with open(path, encoding='utf-8', errors='replace') as f:
            found = f.read()
        if found != given + '\n':
            raise Refused(f"the runs in '{os.path.dirname(path)}' have the options {found.strip()}, as '{path}' says; the given ones are {given}. "
                          'Give the same, or another --folder')


def record_options(path, given):
    """Writes the record of options, whole, unless it is there. Of calls at the same time the first writes it, and others must have the same."""
    if os.path.exists(path):
        return require_same_options(path, given)
    own = f'{path}.part{os.getpid()}'
    with open(own, 'w', encoding='utf-8') as f:
        f.write(given + '\n')
    try:
        os.link(own, path)
    except FileExistsError:
        require_same_options(path, given)
    except OSError:  # a file system without hard links
        os.replace(own, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(own)


def require_program_and_texts(o, corpus):
    """Checks that what a run needs exists, and makes the program's path absolute."""
    program = shutil.which(o.program)
    if not program:
        raise Refused(f"found no program '{o.program}', expected the language_model that was built. Build it (cmake --preset release "
                      '-DISOGLOSS_PROGRAMS=ON && cmake --build --preset release --target language_model), or give --program its path')
    o.program = os.path.abspath(program)
    for part in 'train', 'valid', 'test':
        if not os.path.isfile(text_of(corpus, part)):
            raise Refused(f"found no text '{text_of(corpus, part)}', expected the corpus {corpus} there. Set ISOGLOSS_DATA to the folder "
                          f'that holds {corpus}/')


def at_least_1(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number of at least 1")
    return int(text)


def seed(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number of at least 0")
    return int(text)


def split_arguments():
    """The arguments of the script before --, and those of the training after it."""
    arguments = sys.argv[1:]
    at = arguments.index('--') if '--' in arguments else len(arguments)
    return arguments[:at], arguments[at + 1:]


def status_of(script, command, o):
    """Runs a command of a script; its exit status. What it refuses is one message."""
    try:
        return command(o)
    except (Refused, Failed, OSError) as error:
        print(f'{script}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # before a Pool listens
        print(f'{script}: stopped; the same call continues', file=sys.stderr)
        return 130
