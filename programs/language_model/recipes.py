"""Perplexity per core-hour of the presets of the program language_model: trains, adapts, records, draws.

    python3 recipes.py run fast --program build/release/programs/language_model --seeds 1 2 3
    python3 recipes.py run small --program … --threads 2 --folder recipes
    python3 recipes.py figure --results recipes/recipes.csv --svg recipes.svg
    python3 recipes.py report

A run is a preset with a seed. It is trained on one corpus and evaluated alone, with the neural cache that `tune` finds best on the
validation text, with dynamic evaluation by rms, and with both, the cache then tuned under rms. Each of the four is a line of the results. Its files are
FOLDER/RECIPE-CORPUS-SEED.safetensors, .safetensors.train (the training state), .csv (its log) and .out (the program's output). After
an interruption the same call resumes. See docs/lab/language_model_tables.md.
"""
import argparse
import json
import math
import os
import resource
import shlex
import sys

from runs import (OURS, PRECISIONS, Failed, Pool, Run, at_least_1, finite, precision_of, record_options, require_free,
                  require_program_and_texts, require_same_options, seed, split_arguments, status_of, text_of)
from tables_report import (HERE, Refused, append_result, draw, log_rows, made_with, read_lines, read_options, require_alike,
                           require_finished, require_own, require_results, spread, write_between)

HEADER = 'recipe,corpus,seed,core_hours,valid,test,adaptation'
RUN = ['recipe', 'corpus', 'seed', 'adaptation']  # what identifies a line
RECIPES, CORPORA = ['fast', 'wide', 'small', 'medium'], ['ptb', 'wikitext-2']
TITLES = dict(zip(CORPORA, ['Penn Treebank', 'WikiText-2']))
ADAPTATIONS = ['none', 'cache', 'rms', 'rms+cache']
RESULTS = os.path.join(HERE, 'results', 'recipes.csv')  # of the page; a run records its own in its folder unless told otherwise
# Of segments of 20 steps, which take half the time of 5. Rate and decay, chosen on parts of ptb.valid.txt: see language_model_results.md.
RMS = ['--dynamic', 'rms', '--dynamic-steps', '20']
RATES = {'wide': ['--dynamic-rate', '0.0001', '--dynamic-decay', '0.016']}
OTHER_RATES = ['--dynamic-rate', '0.00014', '--dynamic-decay', '0.008']
STATISTICS = 8000  # lines of the training text used for those of rms: gradients of all of it take as long as an epoch


def read_results(path):
    """The lines of the results; none if the file does not exist."""
    def fine(row):
        row['seed'] = int(row['seed'])
        return (row['corpus'] in CORPORA and row['adaptation'] in ADAPTATIONS
                and all(0 <= float(row[name]) < math.inf for name in ('core_hours', 'valid', 'test')))
    return read_lines(path, HEADER, RUN, fine, f"a corpus ({', '.join(CORPORA)}) and an adaptation ({', '.join(ADAPTATIONS)})")


def seconds():
    """Processor time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class RecipeRun(Run):
    """A preset with a seed on a corpus."""

    def __init__(self, o, number, wanted):
        super().__init__(o, f'{o.recipe} on {o.corpus}, seed {number}', f'{o.recipe}-{o.corpus}-{number}')
        self.seed, self.wanted = number, wanted

    def json(self, *arguments):
        """The output of a command that prints JSON, preceded by any warnings."""
        printed = yield from self.execute(*arguments, '--json', '--threads', str(self.o.threads))
        try:
            return json.loads(printed.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise Failed(f"{arguments[0]} printed no JSON; see the end of '{self.base}.out'") from None

    def statistics(self):
        """A file with the first lines of the training text."""
        path = os.path.join(self.o.folder, f'{self.o.corpus}-train{STATISTICS}.txt')
        own = f'{path}.part{os.getpid()}'  # other calls may write the file at the same time
        with open(text_of(self.o.corpus, 'train'), 'rb') as text, open(own, 'wb') as part:
            part.writelines(line for line, _ in zip(text, range(STATISTICS)))
        os.replace(own, path)
        return path

    def evaluated(self, adaptation):
        """Hours of tuning and evaluating, and the perplexities of the validation and the test text."""
        texts = {'validation': text_of(self.o.corpus, 'valid'), 'test': text_of(self.o.corpus, 'test')}
        before, perplexities = seconds(), {}
        options = [*RMS, *RATES.get(self.o.recipe, OTHER_RATES), '--dynamic-text', self.statistics()] if 'rms' in adaptation else []
        if 'cache' in adaptation:
            grid = ['--cache-window', '2000'] if options else []  # with --dynamic tune has a cache if one of its options is given
            tuned = yield from self.json('tune', '--model', self.model, '--text', texts['validation'], *options, *grid)
            options = shlex.split(tuned['best']['options'])
            perplexities['validation'] = finite(tuned['best']['perplexity'], 'validation')
            for edge in tuned['edge']:
                print(f"{self.title}: {adaptation}, the best {edge['option']}, {edge['value']:g}, is at the edge of those that tune tried", flush=True)
        for part, text in texts.items():
            if part not in perplexities:
                found = yield from self.json('evaluate', '--model', self.model, '--text', text, *options)
                perplexities[part] = finite(found['perplexity'], part)
        return (seconds() - before) / 3600, perplexities['validation'], perplexities['test']

    def steps(self):
        """Trains and records the results that are still missing, as a generator of processes to wait for."""
        o = self.o
        yield from self.execute('train', '--corpus', o.corpus, '--preset', o.recipe, '--seed', str(self.seed), '--precision', o.precision,
                                '--threads', str(o.threads), '--model', self.model, '--log', self.base + '.csv', '--resume', *o.extra)
        trained, _ = self.hours()
        for adaptation in self.wanted:
            hours, valid, test = yield from self.evaluated(adaptation)
            hours = trained if adaptation == 'none' else trained + hours
            require_alike(o.results, RUN, alike(o), o.options)  # again: another call may have finished with others
            line = [o.recipe, o.corpus, self.seed, f'{hours:.4f}', f'{valid:.4f}', f'{test:.4f}', adaptation]
            if not append_result(o.results, HEADER, RUN, line, options=(','.join([*RUN, 'options']), [[o.options]])):
                print(f"{self.title}: {adaptation} has a line in '{o.results}' already, by another call; it stays", flush=True)
                continue
            print(f'{self.title}: {adaptation}, validation {valid:.2f}, test {test:.2f}, {hours:.4f} core-hours', flush=True)


def alike(o):
    """The results that are merged or compared with those of this call."""
    return [r for r in read_results(o.results) if (r['recipe'], r['corpus']) == (o.recipe, o.corpus)]


def run(o):
    """The command run."""
    require_program_and_texts(o, o.corpus)
    require_free(o.extra, OURS)
    os.makedirs(o.folder, exist_ok=True)
    o.results = o.results or os.path.join(o.folder, 'recipes.csv')
    if o.precision in (None, 'auto'):
        o.precision = precision_of(o.program, '--preset', o.recipe, *(['--precision', 'auto'] if o.precision else []))
    o.options = shlex.join(['--precision', o.precision, *o.extra])
    done = {(r['seed'], r['adaptation']) for r in alike(o)}
    runs = []
    for number in sorted(set(o.seeds)):
        run = RecipeRun(o, number, [a for a in dict.fromkeys(o.adaptations) if (number, a) not in done])
        if run.wanted:
            run.check()
            runs.append(run)
        else:
            print(f'{run.title}: finished', flush=True)
    record = os.path.join(o.folder, f'{o.recipe}-{o.corpus}.options.txt')
    require_same_options(record, o.options)
    require_alike(o.results, RUN, alike(o), o.options)
    record_options(record, o.options)
    append_result(o.results, HEADER, RUN)  # fails now if it cannot be written
    pool = Pool(1)  # one after another: the processor time of an evaluation is that of all programs meanwhile
    pool.work(runs)
    return pool.status(runs, 'recipes.py')


def markdown(results, made):
    """The table of the page."""
    if not results:
        return 'No finished training yet.\n'
    alike = made_with(results, RUN, made)  # options of all, said once
    own = ' and ' in alike
    columns = ['recipe', 'corpus', 'adaptation', 'seeds', 'validation', 'test', 'core-hours', *(['options'] if own else [])]
    out = [*([] if own else [f'All with {alike}:', '']), '| ' + ' | '.join(columns) + ' |', '|' + '---|' * len(columns)]
    groups = {}
    for r in results:
        groups.setdefault((r['corpus'], r['recipe'], r['adaptation']), []).append(r)
    for corpus, recipe, adaptation in sorted(groups, key=lambda g: (CORPORA.index(g[0]), g[1], ADAPTATIONS.index(g[2]))):
        runs = groups[corpus, recipe, adaptation]
        figures = [spread([float(r[name]) for r in runs], form) for name, form in [('valid', '.1f'), ('test', '.1f'), ('core_hours', '.2f')]]
        out.append('| ' + ' | '.join([recipe, corpus, adaptation, str(len(runs)), *figures, *([made_with(runs, RUN, made)] if own else [])]) + ' |')
    return '\n'.join(out) + '\n'


def report(o):
    """The command report."""
    require_results(o.results)
    results = read_results(o.results)
    require_finished(results, o.results)
    return write_between(o.page, 'recipes.py', markdown(results, read_options(o.results, RUN)), o.check, f"'{o.results}'")


def named_file(text):
    """NAME=FILE of --curve."""
    name, equals, path = text.partition('=')
    if not (name and equals and path) or "'" in name:
        raise argparse.ArgumentTypeError(f"found '{text}', expected NAME=LOG, the name without quotes")
    return name, path


def named_point(text):
    """NAME=CORE-HOURS,PERPLEXITY of --point."""
    name, equals, numbers = text.partition('=')
    try:
        hours, perplexity = map(float, numbers.split(','))
        fine = equals and name and "'" not in name and 0 < hours < math.inf and 0 < perplexity < math.inf
    except ValueError:
        fine = False
    if not fine:
        raise argparse.ArgumentTypeError(f"found '{text}', expected NAME=CORE-HOURS,PERPLEXITY, two numbers above 0, the name without quotes")
    return name, hours, perplexity


def figure(o):
    """The command figure: test perplexity against core-hours, points for each adaptation of a recipe, lines for the validation in logs."""
    curves, lines = {}, {}
    for name, path in o.curve:
        hours, points = 0, []
        for _, valid, used in log_rows(path):
            hours += used / 3600
            points.append((f'{hours:.4f}', valid))
        if not points:
            raise Refused(f"found no epoch in '{path}', expected the log of a training. Leave --curve '{name}={path}' out")
        lines[f'{name}, validation by epoch'] = points
    for r in sorted(read_results(o.results), key=lambda r: float(r['core_hours'])):
        if r['corpus'] == o.corpus:
            curves.setdefault(f"{r['recipe']}, {r['adaptation']}: test", []).append((r['core_hours'], r['test']))
    for name, hours, perplexity in o.point:
        curves.setdefault(name, []).append((f'{hours:.4f}', perplexity))
    if not curves and not lines:
        raise Refused(f"found no result on {o.corpus} in '{o.results}'. Run: recipes.py run fast --program … --results {o.results}")
    require_own('--svg', o.svg, b'GNUPLOT', 'a picture of gnuplot')
    draw(o.svg, TITLES[o.corpus], 'hours of one core', 'perplexity', {**lines, **curves}, points=curves, log_x=True)
    return 0


def main():
    arguments, extra = split_arguments()
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    commands = parser.add_subparsers(dest='command', required=True)

    p = commands.add_parser('run', help='train and evaluate what is not finished; after --, options of language_model train')
    p.add_argument('recipe', choices=RECIPES, metavar='RECIPE', help=f"a preset: {', '.join(RECIPES)}")
    p.add_argument('--corpus', choices=CORPORA, default='ptb')
    p.add_argument('--program', required=True, help='the language_model that was built')
    p.add_argument('--seeds', nargs='+', type=seed, default=[1])
    p.add_argument('--adaptations', nargs='+', choices=ADAPTATIONS, default=ADAPTATIONS)
    p.add_argument('--threads', type=at_least_1, default=1, help='the same from the beginning of a run to its end (1)')
    p.add_argument('--precision', choices=PRECISIONS, help='of the training, the same for all seeds (that of the preset)')
    p.add_argument('--folder', default='recipes', help='of models, trainings, logs and outputs (recipes)')
    p.add_argument('--results', help='where results are written down, and read as finished (FOLDER/recipes.csv)')

    p = commands.add_parser('report', help='rewrite the table of docs/lab/language_model_results.md from the results')
    p.add_argument('--results', default=RESULTS)
    p.add_argument('--page', default=os.path.join(HERE, '..', '..', 'docs', 'lab', 'language_model_results.md'))
    p.add_argument('--check', action='store_true', help='write nothing; status 1 if the page is not what would be written')

    p = commands.add_parser('figure', help='test perplexity against core-hours, drawn by gnuplot')
    p.add_argument('--results', default=RESULTS)
    p.add_argument('--corpus', choices=CORPORA, default='ptb')
    p.add_argument('--curve', type=named_file, action='append', default=[], metavar='NAME=LOG',
                   help='a log of language_model train or of benchmarks/peers/train_torch.py, drawn by epoch; may be repeated')
    p.add_argument('--point', type=named_point, action='append', default=[], metavar='NAME=CORE-HOURS,PERPLEXITY',
                   help='a result of another program, such as of the test text; may be repeated')
    p.add_argument('--svg', required=True)

    o = parser.parse_args(arguments)
    if extra and o.command != 'run':
        parser.error(f'-- and options of the training are for run, not for {o.command}')
    o.extra = extra
    return status_of('recipes.py', {'run': run, 'report': report, 'figure': figure}[o.command], o)


if __name__ == '__main__':
    sys.exit(main())
