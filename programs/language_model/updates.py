"""Updates of a tied language model at equal computing time: trains, resumes, reports.

    python3 updates.py run --program build/release/programs/language_model --folder updates --seeds 1
    python3 updates.py report        # the table of docs/lab/updates.md from programs/language_model/results/updates.csv

A run is an update, a loss and a seed: 2 x 200 LSTM on the Penn Treebank, tied head, exact gradients, one rate that rises and falls
once. After an interruption the same call resumes. Lines of the results: update,loss,seed,epoch,core_seconds,valid,test, the test
perplexity with the last epoch alone.
"""
import os
import sys

from runs import epochs_of, run_missing, runs_by_epoch
from tables_report import run_or_report, spread, write_between

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ['update', 'loss', 'seed', 'epoch', 'core_seconds', 'valid', 'test']
COMMON = '--corpus ptb --preset small --head tied --head-bias --keep 0.9 --precision fp32 --epsilon 0 --threads 1 --schedule one-cycle --warm-up 0.1'
UPDATES = {  # two epochs; SGD, whose steps are the cheapest, also three, in the time of two of the others
    'SGD': '--update sgd --rate 1 --epochs 2',
    'RUOP': '--update ruop --rate 0.001 --epochs 2',
    'RBPM': '--update rbpm --rate 0.001 --epochs 2',
    'Muon': '--update muon --rate 0.02 --table-rate 0.006 --epochs 2',
    'Adam': '--update adam --rate 0.001 --epochs 2',
    'SGD, longer': '--update sgd --rate 1 --epochs 3',
}
LOSSES = {'cross-entropy': 'ce', 'augmented': 'al'}


def train(o, update, loss, seed):
    """The lines of a run."""
    options = [*COMMON.split(), *UPDATES[update].split(), '--loss', LOSSES[loss], '--seed', str(seed)]
    for epoch in epochs_of(o, f"{update.replace(', ', '-')}-{LOSSES[loss]}-{seed}", options):
        yield [update, loss, seed, *epoch]


def run(o):
    """The command run."""
    return run_missing(o, HEADER, [(update, loss) for loss in LOSSES for update in UPDATES], train)


def report(o):
    """The command report: medians over the seeds."""
    runs = runs_by_epoch(o.results, HEADER)
    table = ['| loss | update | core-minutes | validation by epoch | test | seeds |', '|---|---|---|---|---|---|']
    for loss in LOSSES:
        for update in UPDATES:
            found = [epochs for key, epochs in runs.items() if key[:2] == (update, loss)]
            if found:
                minutes = spread([float(epochs[-1]['core_seconds']) / 60 for epochs in found], '.1f')
                valid = ', '.join(spread([float(row['valid']) for row in column], '.1f') for column in zip(*found))
                test = spread([float(epochs[-1]['test']) for epochs in found], '.1f')
                table.append(f'| {loss} | {update} | {minutes} | {valid} | {test} | {len(found)} |')
    return write_between(o.page, 'updates.py', '\n'.join(table) + '\n', o.check, f"'{o.results}'")


def main():
    """Commands and their options."""
    return run_or_report('updates', __doc__, run, report, os.path.join(HERE, 'results', 'updates.csv'),
                         os.path.join(HERE, '..', '..', 'docs', 'lab', 'updates.md'))


if __name__ == '__main__':
    sys.exit(main())
