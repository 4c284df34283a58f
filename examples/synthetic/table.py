"""The tables of docs/riemannian.md: every method on every synthetic task at equal computing time, and distant xor by length.

    python3 table.py --program build/release/examples/synthetic --seconds 6 --long 30 --seeds 5 --results results.csv

Rows named "growing" begin with an eighth of the text, which doubles three times, and take conjugate directions.
Runs are kept in the results file and not repeated; the tables are printed from it at the end, as Markdown, mean,
standard deviation and median over the seeds. Compressors say what the validation text adds to the training text.
"""
import argparse
import bz2
import csv
import lzma
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import zlib

# What every method is given; `--units`, `--edges` and `--slowest` are of the sparse networks, others override them.
TASKS = {
    'alphabet': '--task alphabet --length 100000 --validation-length 50000',
    'music': '--task music --edges 20 --length 100000 --validation-length 50000',
    'anbn': '--task anbn --units 10 --slowest 2000 --lines 10 --length 10000 --longest 1000 --validation-length 100000',
    'xor, L = 10, answer': '--task xor --units 10 --edges 10 --answer-only --bits 10 --lines 2000 --validation-length 15000',
}
# The whole text as one sequence, with a line search.
FULL = '--training full --form quasi_diagonal --columns 1 --bound 0'
# Distant xor at growing distances, by GLNN, RUOP alone: lines and seconds for each.
XOR = f'{FULL} --task xor --units 10 --edges 10 --metric ruop --validation-length 50000'
CURVE = {
    'L = 10': '--answer-only --bits 10 --lines 2000 --seconds 12',
    'L = 20': '--answer-only --bits 20 --lines 2000 --seconds 30',
    'L = 50': '--answer-only --bits 50 --lines 2000 --seconds 40',
    'L = 100': '--answer-only --bits 100 --lines 2000 --seconds 60',
    'L = 10, every symbol': '--bits 10 --lines 2000 --seconds 40',
}
CURVE_METHODS = {'xor, lines of L bits': '', 'xor, lines of 2 to L bits': '--training-bits-from 2'}
GROWING = '--conjugate --up 1.3 --doublings 3'
METHODS = {
    'GLNN, RUOP': f'--network glnn --metric ruop {FULL}',
    'GLNN, RBPM': f'--network glnn --metric rbpm {FULL}',
    'GLNN, gradient': f'--network glnn --metric gradient {FULL}',
    'GLNN, RUOP, growing': f'--network glnn --metric ruop {FULL} {GROWING}',
    'GLNN, RBPM, growing': f'--network glnn --metric rbpm {FULL} {GROWING}',
    'GLNN, gradient, growing': f'--network glnn --metric gradient {FULL} {GROWING}',
    'GNN, RUOP': f'--network gnn --metric ruop {FULL}',
    'RNN, RUOP': f'--network rnn --metric ruop {FULL}',
    'RNN, gradient': f'--network rnn --metric gradient {FULL}',
    'LSTM 64, Adam': '--network lstm --metric gradient --units 64',
    'LSTM 64, RUOP': '--network lstm --metric ruop --units 64',
    'HMM, 20 states': '--network hmm --units 20',
    'HMM, 50 states': '--network hmm --units 50',
}
# Every method as the program trains it unless it is told otherwise: 16 columns, the full form for graphs of few edges.
STEPS = 'minibatch'
# V within ± 4 in all rows of graphs but on anbn, where it is the counter.
SOURCES = {
    'alphabet': TASKS['alphabet'] + ' --bound 4',
    'music': TASKS['music'] + ' --bound 4',
    'anbn': TASKS['anbn'] + ' --bound 0',
    'xor, L = 10, answer': TASKS['xor, L = 10, answer'] + ' --bound 4',
    'reber': '--task reber --length 100000 --validation-length 50000 --bound 4',
    'dyck': '--task dyck --length 100000 --validation-length 50000 --bound 4',
    'copy': '--task copy --length 100000 --validation-length 50000 --bound 4',
}
# In the order in which they are run: minibatches of a GLNN and its peers, full batches, other networks.
STEPS_METHODS = {
    'GLNN, RUOP, full form': '--metric ruop --form full',
    'GLNN, RUOP, quasi-diagonal': '--metric ruop --form quasi_diagonal',
    'GLNN, RBPM, full form': '--metric rbpm --form full',
    'GLNN, RBPM, quasi-diagonal': '--metric rbpm --form quasi_diagonal',
    'GLNN, Adam': '--metric gradient',
    'LSTM 64, Adam': '--network lstm --metric gradient --units 64',
    'GLNN, gradient, full batches': '--metric gradient --training full',
    'GLNN, RUOP, full form, full batches': '--metric ruop --form full --training full',
    'GLNN, RBPM, full form, full batches': '--metric rbpm --form full --training full',
    'LSTM 64, RUOP': '--network lstm --metric ruop --units 64',
    'GNN, RUOP, full form': '--network gnn --metric ruop --form full',
    'RNN, RUOP, full form': '--network rnn --metric ruop --form full',
    'HMM, 20 states': '--network hmm --units 20 --starts 3',
    'HMM, 50 states': '--network hmm --units 50 --starts 3',
    'GLNN, RUOP, quasi-diagonal, full batches': '--metric ruop --form quasi_diagonal --training full',
    'GLNN, RBPM, quasi-diagonal, full batches': '--metric rbpm --form quasi_diagonal --training full',
}
SOURCE = 'the source itself'
# One row at a longer time, in which each task has what serves it best. Ten lines of anbn leave much to the start.
LONG = 'GLNN, longer'
LONG_RUNS = {
    'alphabet': f'{FULL} --metric ruop --conjugate --up 1.3 --length 200000 --doublings 3',
    'music': f'{FULL} --metric ruop --conjugate --up 1.3 --length 200000 --doublings 4',
    'anbn': f'{FULL} --metric rbpm --damping 0.1 --starts 8 --validation-longest 2000',
    'xor, L = 10, answer': f'{FULL} --metric ruop',
}


def run(program, arguments):
    out = subprocess.run([program, *arguments.split()], capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(f'{program} {arguments}\n{out.stderr}')
    return dict(part.split('=') for line in out.stdout.splitlines()[-4:] if '_bits=' in line for part in line.split())


def ppmd(text):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'text'), 'wb') as f:
            f.write(text)
        subprocess.run(['7z', 'a', '-m0=PPMd', '-mx=9', 'text.7z', 'text'], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        return os.path.getsize(os.path.join(folder, 'text.7z'))


COMPRESSORS = {
    'zlib': lambda text: len(zlib.compress(text, 9)),
    'bzip2': lambda text: len(bz2.compress(text, 9)),
    'xz': lambda text: len(lzma.compress(text, preset=9)),
    'PPMd (7z)': ppmd,
}


def compress(program, task, seed, method):
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, 'text')
        run(program, f'{task} --seed {seed} --write {prefix} --overwrite')
        train, valid = (open(f'{prefix}.{part}', 'rb').read() for part in ('train', 'valid'))
    size = COMPRESSORS[method]
    return 8 * (size(train + valid) - size(train)) / len(valid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', help='the program synthetic; not for --print-only')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--long', type=float, default=120, help='seconds of the longer row')
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--results', default='results.csv')
    parser.add_argument('--print-only', action='store_true', help='runs nothing')
    parser.add_argument('--page', help='file for the table of the part minibatch as a page; otherwise tables are printed')
    parser.add_argument('--check', action='store_true', help='write nothing; status 1 where the page is not what would be written')
    parser.add_argument('--parts', nargs='*', help='what to run of: ' + ', '.join([*TASKS, LONG, STEPS, 'curve']) + '; all by default')
    o = parser.parse_args()
    if not (o.program or o.print_only):
        parser.error('--program is needed, but for --print-only')
    columns = ['task', 'method', 'seed', 'bits', 'floor', 'success', 'longer_success', 'training_bits', 'saturated']
    known = {}
    if os.path.exists(o.results):
        for row in csv.DictReader(open(o.results)):
            known[row['task'], row['method'], int(row['seed'])] = row
    else:
        with open(o.results, 'w') as f:
            csv.writer(f).writerow(columns)

    def keep(task, method, seed, row):
        with open(o.results, 'a') as f:
            csv.writer(f).writerow([task, method, seed, *row])
        known[task, method, seed] = dict(zip(columns, [task, method, seed, *row]))

    def train(task, method, seed, arguments):
        if (task, method, seed) in known:
            return
        seen = run(o.program, f'{arguments} --seed {seed}')
        keep(task, method, seed, [seen['validation_bits'], seen['entropy_bits'], seen['success'], seen.get('longer_success', ''), seen['training_bits'], seen['saturated']])

    def compressed(task, source, method, seed):
        # a compressor predicts every symbol
        if (task, method, seed) not in known and 'answer' not in task and (method[:4] != 'PPMd' or shutil.which('7z')):
            keep(task, method, seed, [compress(o.program, source, seed, method), '', '', '', '', ''])

    def of_source(task, source, seed):
        """Bits of the source itself, of the text that the others are held to: what its draws say, symbol by symbol."""
        if (task, SOURCE, seed) in known:
            return
        with tempfile.TemporaryDirectory() as folder:
            seen = run(o.program, f"{source} --seed {seed} --write {os.path.join(folder, 'text')}")
        keep(task, SOURCE, seed, [seen['source_bits'], seen['entropy_bits'], '', '', '', ''])

    def wanted(part):
        return o.parts is None or part in o.parts

    # Seed by seed, so that a table that was stopped early is a whole one over fewer seeds.
    for seed in [] if o.print_only else range(1, o.seeds + 1):
        for task, source in TASKS.items():
            if wanted(LONG):
                train(task, LONG, seed, f'{source} {LONG_RUNS[task]} --seconds {o.long * (4 if task == "anbn" else 1)}')
        if wanted(STEPS):
            for task, source in SOURCES.items():
                of_source(task, source, seed)
            for method, how in STEPS_METHODS.items():
                for task, source in SOURCES.items():
                    train(task, method, seed, f'{source} {how} --seconds {o.seconds}')
            for task, source in SOURCES.items():
                for method in COMPRESSORS:
                    compressed(task, source, method, seed)
        if wanted('curve'):
            for task, source in CURVE.items():
                for method, how in CURVE_METHODS.items():
                    train(task, method, seed, f'{XOR} {source} {how}')
        for task, source in TASKS.items():
            if not wanted(task):
                continue
            for method, how in METHODS.items():
                train(task, method, seed, f'{source} {how} --seconds {o.seconds}')
            for method in COMPRESSORS:
                compressed(task, source, method, seed)
    parts = ((None, TASKS, [LONG, *METHODS, *COMPRESSORS]), ('curve', CURVE, CURVE_METHODS), (STEPS, SOURCES, [*STEPS_METHODS, *COMPRESSORS, SOURCE]))
    if o.page:
        made = PAGE.format(seconds=o.seconds, table=table(known, SOURCES, [*STEPS_METHODS, *COMPRESSORS, SOURCE], median=True))
        if o.check:
            if open(o.page).read() != made:
                raise SystemExit(f"table.py: '{o.page}' is not made from '{o.results}'. Run it without --check, with --print-only")
            return
        with open(o.page, 'w') as f:
            f.write(made)
        return
    for part, tasks, methods in parts:
        if o.parts is None or part in o.parts or (part is None and any(t in o.parts for t in TASKS)):
            print(table(known, tasks, methods, median=part == STEPS))


# What --page writes.
PAGE = """# Seven sources at equal computing time

Made by `examples/synthetic/table.py --parts minibatch --seconds {seconds:g} --page FILE` from its results file, `examples/synthetic/results/minibatch.csv`: {seconds:g} seconds of computing time of
one core for each run, texts of 100 000 symbols (aⁿbⁿ: ten lines of n ≤ 1000; xor: 2 000 lines of 10 bits, the answer alone), 20 units
(aⁿbⁿ, xor: 10) with 3 edges (music: 20, xor: 10) where nothing else is said, V within ± 4 (aⁿbⁿ: unbounded). Median bits of the validation text over the seeds; the median of
how many times those of the source itself on that same text they are, which draws it and so knows what each symbol costs; the number of seeds;
and the mean share of what the task calls a [success](synthetic.md), solved being 99 % of them. On minibatches unless the row says otherwise. A run has run away
that ends more than a bit a symbol worse on the validation text than on the text it was trained on. Hidden Markov models begin three times and
share the time. Compressors: what the validation text adds to
the training text.

{table}"""


def runaway(row):
    """Right on the text that was trained on, and more than a bit a symbol worse on another."""
    return bool(row.get('training_bits')) and float(row['bits']) > float(row['training_bits']) + 1


def table(known, tasks, methods, median=False):
    """Markdown: mean and standard deviation over the seeds, or the median, how many there are, and successes."""
    last = ' runaways |' if median else ''
    lines = ['| | ' + ' | '.join(tasks) + ' |' + last, '|---|' + '---|' * (len(tasks) + median)]
    for method in methods:
        cells, runs, away = [], 0, 0
        for task in tasks:
            rows = [r for (t, m, _), r in known.items() if (t, m) == (task, method)]
            bits = [float(r['bits']) for r in rows]
            success = [float(r['success']) for r in rows if r['success'] not in ('', 'nan')]
            runs, away = runs + sum(bool(r.get('training_bits')) for r in rows), away + sum(map(runaway, rows))
            own = {seed: float(r['bits']) for (t, m, seed), r in known.items() if (t, m) == (task, SOURCE)}
            times = [float(r['bits']) / own[seed] for (t, m, seed), r in known.items() if (t, m) == (task, method) and own.get(seed)]
            cell = '–'
            if bits and median:
                cell = f'{statistics.median(bits):.4f}' + (f', × {statistics.median(times):.3f}' if times and method != SOURCE else '') + f' ({len(bits)})'
            elif bits:
                spread = statistics.stdev(bits) if len(bits) > 1 else math.nan
                cell = f'{statistics.mean(bits):.4f} ± {spread:.4f}, median {statistics.median(bits):.4f} ({len(bits)})'
            if success:
                solved = sum(v >= 0.99 for v in success)
                cell += f', {100 * statistics.mean(success):.1f} %, {solved} of {len(success)} solved'
            longer = [float(r['longer_success']) for r in rows if r['longer_success'] != '']
            if longer:
                cell += f" ({', '.join(f'{100 * v:.0f}' for v in longer)} % of longer lines)"
            cells.append(cell)
        lines.append(f'| {method} | ' + ' | '.join(cells) + ' |' + (f' {away} of {runs} |' if median and runs else ' – |' if median else ''))
    floors = [[float(r['floor']) for (t, _, _), r in known.items() if t == task and r['floor']] for task in tasks]
    lines.append('| entropy rate | ' + ' | '.join(f'{f[0]:.4f}' if f else '–' for f in floors) + ' |' + (' |' if median else ''))
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    main()
