"""A keyboard's model that learns from its user: one author's novels in reading order, after training on those of others.

    python3 user.py run --program build/release/programs/language_model --folder user
    python3 user.py report           # the table of docs/update/dynamic.md from programs/language_model/results/user.csv

Texts: gutenberg-novels of ISOGLOSS_DATA. The model is a tied LSTM of 128 units and 10,000 words, trained on the first tokens of
each novel by other authors. Rates are the best on the novel of another author that is left out too. After an interruption the same
call resumes. Lines of the results: author,seed,tokens,method,options,perplexity,typed,letters_and_spaces,cpu_seconds.
"""
import csv
import json
import lzma
import os
import subprocess
import sys

from tables_report import run_or_report, write_between

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = 'author seed tokens method options perplexity typed letters_and_spaces cpu_seconds'.split()
USER, TUNED_ON, LEFT_OUT = 'Charles Dickens', 'Frank Norris', ['Mark Twain']  # the last: for a second user
EACH, SHOWN = 30000, 3  # tokens of a training novel, words suggested
TRAIN = ('--max-vocabulary 10000 --layers 1 --units 128 --head-bias --loss ce --keep 0.9 --rate 1 --clip 5 --batch 10 --bptt 35 '
         '--schedule one-cycle --warm-up 0.05 --epsilon 0.00390625 --threads 1')
METHODS = {  # what is tried on the other author's novel
    'static': None,
    'cache': '--cache-flatness 0.2 0.3 0.5 0.8 --cache-weight 0.05 0.1 0.15 0.2',
    'plain': '--dynamic sgd --dynamic-rate 0.1 0.2 0.4 0.8 --dynamic-decay 0 0.001',
    'rms': '--dynamic rms --dynamic-rate 2e-5 5e-5 1e-4 2e-4 --dynamic-text statistics.txt',
    'quasi-diagonal': '--dynamic riemannian --dynamic-rate 5e-6 1e-5 2e-5 --dynamic-table-rate 1e-4 --dynamic-text statistics.txt',
}


def novels():
    """(author, year, split, lines) of each novel."""
    data = os.path.join(os.environ.get('ISOGLOSS_DATA') or '../shared/data', 'gutenberg-novels')
    texts = {}
    for split in 'train', 'valid', 'test':
        path = os.path.join(data, f'novels.{split}.txt')
        with lzma.open(path + '.xz', 'rt', encoding='utf-8') if split == 'train' else open(path, encoding='utf-8') as f:
            texts[split] = f.read().split('\n')
    with open(os.path.join(data, 'books.tsv'), newline='', encoding='utf-8') as f:
        for book in csv.DictReader(f, delimiter='\t'):
            lines = texts[book['split']]
            texts[book['split']] = lines[int(book['lines']):]
            yield book['author'], int(book['year']), book['split'], lines[:int(book['lines'])]


def beginning(lines, tokens):
    """Lines until there are so many tokens, line ends included."""
    for line in lines:
        if tokens <= 0:
            return
        tokens -= len(line.split()) + 1
        yield line + '\n'


def write_texts(o):
    """The texts, once."""
    if os.path.exists('train.txt'):
        return
    books = list(novels())
    out = {author: [line for *_, lines in sorted((b[1], b[3]) for b in books if b[0] == author) for line in lines] for author in (*LEFT_OUT, USER)}
    out[TUNED_ON] = next(b[3] for b in books if b[0] == TUNED_ON and b[2] == 'valid')
    train = [line for b in books if b[2] == 'train' and b[0] not in out for line in beginning(b[3], EACH)]
    for name, lines in out.items():
        for tokens in o.tokens:
            with open(f'{name}-{tokens}.txt', 'w', encoding='utf-8') as f:
                f.writelines(beginning(lines, tokens))
    with open('valid.txt', 'w', encoding='utf-8') as f:
        f.writelines(line + '\n' for line in out[TUNED_ON])
    with open('statistics.txt', 'w', encoding='utf-8') as f:
        f.writelines(train[::50])
    with open('train.txt', 'w', encoding='utf-8') as f:
        f.writelines(train)


def found(o, *arguments):
    """The JSON object that the program prints last, and its processor seconds."""
    before = os.times()
    out = subprocess.run([o.program, *arguments, '--threads', '1', '--json'], stdout=subprocess.PIPE, text=True, check=True).stdout
    after = os.times()
    return json.loads(out.splitlines()[-1]), after.children_user - before.children_user + after.children_system - before.children_system


def best_of(o, model, method):
    """The options of a method that are best on the novel of another author."""
    if METHODS[method] is None:
        return ''
    path = f'{model}.{method}.json'
    if not os.path.exists(path):
        result, _ = found(o, 'tune', '--model', model, '--text', f'{TUNED_ON}-{min(o.tokens)}.txt', *METHODS[method].split())
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(result, f)
    with open(path, encoding='utf-8') as f:
        return json.load(f)['best']['options']


def read(path):
    """The lines of the results."""
    if not os.path.exists(path):
        return []
    with open(path, newline='', encoding='utf-8') as f:
        return list(csv.DictReader(f))


def run(o):
    """The command run."""
    o.program, o.results = os.path.abspath(o.program), os.path.abspath(o.results)
    if 'ISOGLOSS_DATA' in os.environ:
        os.environ['ISOGLOSS_DATA'] = os.path.abspath(os.environ['ISOGLOSS_DATA'])
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    write_texts(o)
    for seed in o.seeds:
        model = f'keyboard-{seed}.safetensors'
        subprocess.run([o.program, 'train', '--train', 'train.txt', '--valid', 'valid.txt', *TRAIN.split(), '--epochs', str(o.epochs), '--seed',
                        str(seed), '--model', model, '--resume'], check=True)
        for author in o.authors:
            for tokens in o.tokens:
                for method in METHODS:
                    key = [author, str(seed), str(tokens), method]
                    if key in [[row[name] for name in HEADER[:4]] for row in read(o.results)]:
                        continue
                    options = best_of(o, model, method)
                    suggest = [] if method == 'cache' else ['--suggest', str(SHOWN)]
                    result, seconds = found(o, 'evaluate', '--model', model, '--text', f'{author}-{tokens}.txt', *options.split(), *suggest)
                    keys = result.get('keystrokes', {'typed': '', 'letters_and_spaces': ''})
                    line = [*key, options, f"{result['perplexity']:.2f}", keys['typed'], keys['letters_and_spaces'], f'{seconds:.1f}']
                    new = not os.path.exists(o.results)
                    with open(o.results, 'a', newline='', encoding='utf-8') as f:
                        csv.writer(f, lineterminator='\n').writerows([HEADER, line] if new else [line])
                    print(*line, flush=True)
    return 0


def report(o):
    """The command report: a row for each author and method."""
    rows = {(row['author'], int(row['tokens']), row['method']): row for row in read(o.results)}
    lengths = sorted({tokens for _, tokens, _ in rows})
    columns = [f'{what}, {n // 1000}k' for what in ('perplexity', 'saved') for n in lengths]
    table = ['| | ' + ' | '.join(columns) + ' |', '|---|' + '---|' * len(columns)]
    authors = list(dict.fromkeys(author for author, *_ in rows))

    def saved(row):
        return f"{100 * (1 - int(row['typed']) / int(row['letters_and_spaces'])):.1f} %" if row and row['typed'] else '–'

    for author in authors:
        for method in METHODS:
            name = f'{author}: {method}' if len(authors) > 1 else method
            found_rows = [rows.get((author, n, method)) for n in lengths]
            cells = [f"{float(row['perplexity']):.1f}" if row else '–' for row in found_rows] + [saved(row) for row in found_rows]
            if any(found_rows):
                table.append(f'| {name} | ' + ' | '.join(cells) + ' |')
    return write_between(o.page, 'user.py', '\n'.join(table) + '\n', o.check, f"'{o.results}'")


def main():
    """Commands and their options."""
    def options(p):
        p.add_argument('--epochs', type=int, default=1)
        p.add_argument('--tokens', type=int, nargs='+', default=[20000, 100000])
        p.add_argument('--authors', nargs='+', default=[USER], choices=[USER, *LEFT_OUT])
    return run_or_report('user', __doc__, run, report, os.path.join(HERE, 'results', 'user.csv'),
                         os.path.join(HERE, '..', '..', 'docs', 'update', 'dynamic.md'), options)


if __name__ == '__main__':
    sys.exit(main())
