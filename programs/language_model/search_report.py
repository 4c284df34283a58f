"""The table of docs/lab/language_model_search.md, from the results of benchmarks/peers/search_torch.py.

    python3 search_report.py [--check]

A line for each group of models, with the best one by the last validation perplexity. --check writes nothing; its status is 1 if the page is not what
would be written.
"""
import argparse
import math
import os
import sys

from runs import status_of
from tables_report import HERE, Refused, integers, read_lines, write_between

RESULTS = os.path.join(HERE, 'results', 'search.csv')
PAGE = os.path.join(HERE, '..', '..', 'docs', 'lab', 'language_model_search.md')


def read_results(path):
    """Validation perplexity by epoch, for each group and model: {group: {model: {epoch: perplexity}}}."""
    def fine(row):
        integers(row, 'epoch')
        row['valid'] = float(row['valid'])
        return 0 < row['valid'] < math.inf
    groups = {}
    for row in read_lines(path, 'group,model,epoch,valid', ['group', 'model', 'epoch'], fine, 'an epoch of a model'):
        groups.setdefault(row['group'], {}).setdefault(row['model'], {})[row['epoch']] = row['valid']
    for group, models in groups.items():
        for model, curve in models.items():
            if missing := {*range(1, max(curve) + 1)} - {*curve}:
                raise Refused(f"found no epoch {min(missing)} of '{model}' in group {group} of '{path}', expected all up to its last. Run the search again")
    if not groups:
        raise Refused(f"found no results in '{path}', expected those of benchmarks/peers/search_torch.py. Run it")
    return groups


def markdown(groups):
    """A line for each group: how many models it has, and the best of them at the end of all of them."""
    out = ['| group | models | epochs | the best model | validation |', '|---|---|---|---|---|']
    for group, models in groups.items():
        last = min(max(curve) for curve in models.values())
        best = min(models, key=lambda model: models[model][last])
        out.append(f'| {group} | {len(models)} | {last} | {best} | {models[best][last]:.2f} |')
    return '\n'.join(out) + '\n'


def report(o):
    return write_between(PAGE, os.path.basename(__file__), markdown(read_results(RESULTS)), o.check, RESULTS)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument('command', nargs='?', choices=['report'], help='there is no other')
    parser.add_argument('--check', action='store_true', help='write nothing; status 1 if the page is not what would be written')
    return status_of('search_report.py', report, parser.parse_args())


if __name__ == '__main__':
    sys.exit(main())
