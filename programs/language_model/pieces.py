"""What single pieces give a tied language model in the time of a preset: each alone, and the whole without each.

    python3 pieces.py run --program build/release/programs/language_model --seeds 1 2 --core 'Zen 4'
    python3 pieces.py report         # the table of docs/lab/pieces.md from programs/language_model/results/pieces.csv

A run is a preset, a piece or the lack of it, and a seed, on the Penn Treebank. All other options are those of the preset. After an
interruption the same call resumes. With the model of each run `tune` finds the temperature of the softmax on the validation text. Lines of
the results: preset,change,seed,epoch,core_seconds,valid,test,temperature,tempered,nearest,core, the test perplexity and the three numbers
after it with the last epoch alone: tempered is the test perplexity at that temperature, nearest the distance from a word vector to the
nearest other one, divided by its length, in the median over the words. core is the processor. `run` needs numpy.
"""
import os
import re
import statistics
import subprocess
import sys

from runs import epochs_of, run_missing, runs_by_epoch, text_of
from tables_report import run_or_report, spread, write_between

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ['preset', 'change', 'seed', 'epoch', 'core_seconds', 'valid', 'test', 'temperature', 'tempered', 'nearest', 'core']
# Half an hour of a core without bfloat16, half an hour of one with it, five hours of one with it.
PRESETS = {'fast-5': '--preset fast --epochs 5', 'fast': '--preset fast', 'wide': '--preset wide'}
PIECES = {
    'adversarial softmax': '--adversarial 0.03',
    'mogrifier': '--rounds 4 --rank 40',
    'element-wise cell': '--cell qrnn',
    'partial shuffling': '--shuffle partial',
    'two-tailed averaging': '--two-tailed',
}
WHOLE = ['adversarial softmax', 'mogrifier', 'partial shuffling', 'two-tailed averaging']  # no cell has both of the others
CHANGES = {'as it is': [], **{name: [name] for name in PIECES}, 'the whole': WHOLE,
           **{f'without {name}': [other for other in WHOLE if other != name] for name in WHOLE}}


def last(program, command, *options):
    """What a command of the program prints."""
    return subprocess.run([program, command, *options, '--threads', '1'], capture_output=True, text=True, check=True).stdout


def nearest(program, model):
    """The median over the words of the distance to the nearest other word vector, divided by the length."""
    import numpy  # `report` does without
    vectors = model + '.vectors'
    subprocess.run([program, 'neighbours', '--model', model, '--export', vectors, '--overwrite'], stdout=subprocess.DEVNULL, check=True)
    with open(vectors, encoding='utf-8') as f:
        next(f)  # how many, and how long
        e = numpy.array([line.split(' ')[1:] for line in f], float)
    os.remove(vectors)
    squares = (e * e).sum(1)
    apart = squares[:, None] + squares - 2 * e @ e.T
    numpy.fill_diagonal(apart, numpy.inf)
    return numpy.median(numpy.sqrt(apart.min(1) / squares))


def train(o, preset, change, seed):
    """The lines of a run."""
    name = f'{preset}-{change}-{seed}'.replace(' ', '_')
    options = f'--corpus ptb {PRESETS[preset]} --precision {o.precision} --threads 1 --seed {seed}'.split()
    for piece in CHANGES[change]:
        options += PIECES[piece].split()
    lines = [[preset, change, seed, *epoch, '', '', '', o.core] for epoch in epochs_of(o, name, options)]
    model = os.path.join(o.folder, name + '.safetensors')
    tuned = last(o.program, 'tune', '--softmax-temperature', '--model', model, '--text', text_of('ptb', 'valid'))
    temperature = re.search(r'--softmax-temperature ([0-9.]+)', tuned)[1]
    printed = last(o.program, 'evaluate', '--model', model, '--text', text_of('ptb', 'test'), '--softmax-temperature', temperature)
    tempered = re.search(r'^perplexity ([0-9.]+) ', printed, re.M)[1]
    lines[-1][-4:-1] = [temperature, tempered, f'{nearest(o.program, model):.3f}']
    return lines


def run(o):
    """The command run."""
    return run_missing(o, HEADER, [(o.preset, change) for change in o.changes], train)


def report(o):
    """The command report: medians over the seeds, of the test perplexity the range as well; minutes by processor."""
    runs = runs_by_epoch(o.results, HEADER)
    cores = sorted({epochs[-1]['core'] for epochs in runs.values()})
    columns = ['preset', 'change', *(f'minutes, {core}' for core in cores), 'validation', 'test', 'with a temperature', 'nearest vector', 'seeds']
    table = []
    for preset in PRESETS:
        for change in CHANGES:
            found = [epochs[-1] for key, epochs in runs.items() if key[:2] == (preset, change)]
            if found:
                numbers = {name: [float(row[name]) for row in found] for name in ('valid', 'test', 'tempered', 'nearest')}
                minutes = [[float(row['core_seconds']) / 60 for row in found if row['core'] == core] for core in cores]
                table.append([preset, change, *(f'{statistics.median(m):.1f}' if m else '' for m in minutes),
                              f"{statistics.median(numbers['valid']):.1f}", spread(numbers['test'], '.1f'),
                              f"{statistics.median(numbers['tempered']):.1f}", f"{statistics.median(numbers['nearest']):.3f}", str(len(found))])
    lines = [f"| {' | '.join(row)} |\n" for row in [columns, *table]]
    lines.insert(1, '|---' * len(columns) + '|\n')
    return write_between(o.page, 'pieces.py', ''.join(lines), o.check, f"'{o.results}'")


def options(p):
    """Options of the command run."""
    p.add_argument('--preset', choices=PRESETS, default='fast-5')
    p.add_argument('--core', required=True, help='the processor, for the results: times are compared on the same one')
    p.add_argument('--changes', nargs='+', choices=CHANGES, default=list(CHANGES))
    p.add_argument('--precision', choices=['fp32', 'bf16', 'auto'], default='auto')


def main():
    """Commands and their options."""
    return run_or_report('pieces', __doc__, run, report, os.path.join(HERE, 'results', 'pieces.csv'),
                         os.path.join(HERE, '..', '..', 'docs', 'lab', 'pieces.md'), options)


if __name__ == '__main__':
    sys.exit(main())
