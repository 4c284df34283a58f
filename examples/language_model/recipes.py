"""Perplexity per core-hour of the presets of the program language_model: trains, adapts, records, draws.

    python3 recipes.py run fast --program build/release/examples/language_model --seeds 1 2 3
    python3 recipes.py run small --program … --threads 2 --folder recipes
    python3 recipes.py figure --svg recipes.svg
    python3 recipes.py report

A run is a preset with a seed. It is trained on one corpus and evaluated alone, with the neural cache that `tune` finds best on the
validation text, and with dynamic evaluation (rms with its defaults). Each of the three is a line of the results. Its files are
FOLDER/RECIPE-CORPUS-SEED.safetensors, .safetensors.train (the training state), .csv (its log) and .out (the program's output). After
an interruption the same call resumes. See docs/examples/language_model.md.
"""
import argparse
import json
import math
import os
import resource
import shlex
import subprocess
import sys

from tables import at_least_1, require_program_and_texts, seed, split_arguments, text_of
from tables_report import HERE, Refused, append_result, draw, log_rows, read_lines, require_own, spread, write_between

HEADER = 'recipe,corpus,seed,core_hours,valid,test,adaptation'
RUN = ['recipe', 'corpus', 'seed', 'adaptation']  # what identifies a line
RECIPES, CORPORA = ['fast', 'small', 'medium', 'large', 'awd', 'rhn'], ['ptb', 'wikitext-2']
ADAPTATIONS = ['none', 'cache', 'rms']
RESULTS = os.path.join(HERE, 'results', 'recipes.csv')
STATISTICS = 8000  # lines of the training text used for those of rms: gradients of all of it take as long as an epoch


class Failed(Exception):
    """A program that ended with a status other than 0."""


def read_results(path):
    """The lines of the results; none if the file does not exist."""
    def fine(row):
        row['seed'] = int(row['seed'])
        return (row['corpus'] in CORPORA and row['adaptation'] in ADAPTATIONS
                and all(0 <= float(row[name]) < math.inf for name in ('core_hours', 'valid', 'test')))
    return read_lines(path, HEADER, RUN, fine, f"a corpus ({', '.join(CORPORA)}) and an adaptation ({', '.join(ADAPTATIONS)})")


class Run:
    """A preset with a seed on a corpus."""

    def __init__(self, o, number):
        self.o, self.seed = o, number
        self.title = f'{o.recipe} on {o.corpus}, seed {number}'
        self.base = os.path.join(o.folder, f'{o.recipe}-{o.corpus}-{number}')
        self.model = self.base + '.safetensors'

    def execute(self, *arguments):
        """The program's output, and its processor time in hours."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(self.base + '.out', 'ab') as out:
            out.write(f'$ language_model {shlex.join(arguments)}\n'.encode())
            out.flush()
            start = out.seek(0, os.SEEK_END)
            status = subprocess.run([self.o.program, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT).returncode
        with open(self.base + '.out', 'rb') as out:
            out.seek(start)
            printed = out.read().decode(errors='replace')
        if status:
            how = f'status {status}' if status > 0 else f'signal {-status}'
            last = '\n    '.join([line for line in printed.splitlines() if line.strip()][-5:])
            raise Failed(f"{arguments[0]} ended with {how}; the last of '{self.base}.out':\n    {last}\nThe same call continues")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return printed, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3600

    def json(self, *arguments):
        """The same for a command that prints JSON, preceded by any warnings."""
        printed, hours = self.execute(*arguments, '--json', '--threads', str(self.o.threads))
        return json.loads(printed.strip().splitlines()[-1]), hours

    def statistics(self):
        """A file with the first lines of the training text."""
        path = os.path.join(self.o.folder, f'{self.o.corpus}-train{STATISTICS}.txt')
        if not os.path.exists(path):
            with open(text_of(self.o.corpus, 'train'), 'rb') as text, open(path + '.part', 'wb') as part:
                part.writelines(line for line, _ in zip(text, range(STATISTICS)))
            os.replace(path + '.part', path)
        return path

    def train(self):
        """Trains to the end; returns the hours from the log."""
        o = self.o
        self.execute('train', '--corpus', o.corpus, '--preset', o.recipe, '--seed', str(self.seed), '--threads', str(o.threads),
                     '--model', self.model, '--log', self.base + '.csv', '--resume', *o.extra)
        rows = log_rows(self.base + '.csv')
        if [epoch for epoch, _, _ in rows] != list(range(1, len(rows) + 1)):
            raise Refused(f"found other epochs than all from 1 on in '{self.base}.csv': core-hours are the sum of its seconds. Put the "
                          'whole log of the training there')
        return sum(seconds for _, _, seconds in rows) / 3600

    def evaluated(self, adaptation):
        """Hours of tuning and evaluating, and the perplexities of the validation and the test text."""
        texts = [text_of(self.o.corpus, part) for part in ('valid', 'test')]
        options, hours = [], 0
        if adaptation == 'cache':
            tuned, hours = self.json('tune', '--model', self.model, '--text', texts[0])
            options = tuned['best']['options'].split()
        elif adaptation == 'rms':
            options = ['--dynamic', 'rms', '--dynamic-text', self.statistics()]
        perplexities = []
        for text in texts:
            found, more = self.json('evaluate', '--model', self.model, '--text', text, *options)
            perplexities.append(found['perplexity'])
            hours += more
        return hours, perplexities

    def go(self, done):
        """Records the results that are still missing."""
        wanted = [a for a in self.o.adaptations if (self.seed, a) not in done]
        if not wanted:
            print(f'{self.title}: finished', flush=True)
            return
        print(f"{self.title}: output in '{self.base}.out'", flush=True)
        trained = self.train()
        for adaptation in wanted:
            hours, (valid, test) = self.evaluated(adaptation)
            hours = trained if adaptation == 'none' else trained + hours
            append_result(self.o.results, HEADER, RUN, [self.o.recipe, self.o.corpus, self.seed, f'{hours:.4f}', f'{valid:.4f}',
                                                        f'{test:.4f}', adaptation])
            print(f'{self.title}: {adaptation}, validation {valid:.2f}, test {test:.2f}, {hours:.4f} core-hours', flush=True)


def run(o):
    """The command run."""
    require_program_and_texts(o, o.corpus)
    os.makedirs(o.folder, exist_ok=True)
    o.results = o.results or (os.path.join(o.folder, 'recipes.csv') if o.extra else RESULTS)
    done = {(r['seed'], r['adaptation']) for r in read_results(o.results) if (r['recipe'], r['corpus']) == (o.recipe, o.corpus)}
    append_result(o.results, HEADER, RUN, None)  # fails now if it cannot be written
    for number in sorted(set(o.seeds)):
        Run(o, number).go(done)
    return 0


def markdown(results):
    """The table of the page."""
    if not results:
        return 'No finished training yet.\n'
    columns = ['recipe', 'corpus', 'adaptation', 'seeds', 'validation', 'test', 'core-hours']
    out = ['| ' + ' | '.join(columns) + ' |', '|' + '---|' * len(columns)]
    groups = {}
    for r in results:
        groups.setdefault((r['corpus'], r['recipe'], r['adaptation']), []).append(r)
    for corpus, recipe, adaptation in sorted(groups, key=lambda g: (CORPORA.index(g[0]), g[1], ADAPTATIONS.index(g[2]))):
        runs = groups[corpus, recipe, adaptation]
        figures = [spread([float(r[name]) for r in runs], form) for name, form in [('valid', '.1f'), ('test', '.1f'), ('core_hours', '.2f')]]
        out.append('| ' + ' | '.join([recipe, corpus, adaptation, str(len(runs)), *figures]) + ' |')
    return '\n'.join(out) + '\n'


def report(o):
    """The command report."""
    return write_between(o.page, 'recipes.py', markdown(read_results(o.results)), o.check, f"'{o.results}'")


def figure(o):
    """The command figure: test perplexity against core-hours, a curve for each adaptation of a recipe."""
    curves = {}
    for r in sorted(read_results(o.results), key=lambda r: float(r['core_hours'])):
        if r['corpus'] == o.corpus:
            curves.setdefault(f"{r['recipe']}, {r['adaptation']}", []).append((r['core_hours'], r['test']))
    if not curves:
        raise Refused(f"found no result on {o.corpus} in '{o.results}'. Run: python3 examples/language_model/recipes.py run fast")
    require_own('--svg', o.svg, b'GNUPLOT', 'a picture of gnuplot')
    draw(o.svg, o.corpus, 'core-hours', 'test perplexity', curves, 'points pt 7')
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
    p.add_argument('--folder', default='recipes', help='of models, trainings, logs and outputs (recipes)')
    p.add_argument('--results', help=f'where results are written down ({os.path.relpath(RESULTS)}; with options after -- '
                   'FOLDER/recipes.csv)')

    p = commands.add_parser('report', help='rewrite the table of docs/examples/language_model.md from the results')
    p.add_argument('--results', default=RESULTS)
    p.add_argument('--page', default=os.path.join(HERE, '..', '..', 'docs', 'examples', 'language_model.md'))
    p.add_argument('--check', action='store_true', help='write nothing; status 1 if the page is not what would be written')

    p = commands.add_parser('figure', help='test perplexity against core-hours, drawn by gnuplot')
    p.add_argument('--results', default=RESULTS)
    p.add_argument('--corpus', choices=CORPORA, default='ptb')
    p.add_argument('--svg', required=True)

    o = parser.parse_args(arguments)
    if extra and o.command != 'run':
        parser.error(f'-- and options of the training are for run, not for {o.command}')
    o.extra = extra
    try:
        return {'run': run, 'report': report, 'figure': figure}[o.command](o)
    except (Refused, Failed, OSError) as error:
        print(f'recipes.py: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('recipes.py: stopped; the same call continues', file=sys.stderr)
        return 130


if __name__ == '__main__':
    sys.exit(main())
