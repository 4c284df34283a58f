"""The program synthetic: every network and metric runs, learns, reports in the promised form; models are saved and
go on with the same bits; wrong input is refused."""
import csv
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'programs', 'synthetic'))
import table  # noqa: E402


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def result(*arguments):
    out = run(*arguments)
    assert out.returncode == 0, (arguments, out.stderr)
    last = dict(part.split('=') for part in out.stdout.splitlines()[-1].split())
    assert list(last) == ['validation_bits', 'entropy_bits', 'success'], last
    return {k: float(v) for k, v in last.items()}, out.stdout


def catches(process, number):
    """Whether a program has a handler of a signal."""
    with open(f'/proc/{process}/status') as f:
        caught = next(line.split()[1] for line in f if line.startswith('SigCgt:'))
    return int(caught, 16) >> (number - 1) & 1


SMALL = ['--length', '3000', '--units', '6', '--seconds', '0.3']
untrained = result('--task', 'music', '--length', '3000', '--seconds', '0')[0]['validation_bits']
for network, metrics in {'glnn': ['ruop', 'rbpm', 'gradient'], 'gnn': ['rbpm'], 'leaky': ['ruop', 'gradient'], 'rnn': ['ruop'],
                         'lstm': ['gradient', 'ruop', 'rbpm'], 'hmm': ['']}.items():
    for metric in metrics:
        forms = [['--form', 'full'], ['--form', 'diagonal']] if network == 'glnn' and metric != 'gradient' else [[]]
        for how in forms + ([['--training', 'full']] if network in ('glnn', 'gnn', 'leaky', 'rnn') else []):
            # on a text of 3000 symbols minibatches may learn by heart what another text does not bear out
            enough = ['--length', '20000', '--validation-length', '3000']
            by = ['--metric', metric] if metric else []
            seen, shown = result('--task', 'music', '--network', network, *by, *how, *SMALL, *enough)
            assert ('full batches' in shown) == (how[:1] == ['--training']), shown
            assert abs(seen['entropy_bits'] - 0.66583) < 1e-5, seen
            assert seen['entropy_bits'] < seen['validation_bits'] < untrained - (0.5 if network in ('hmm', 'lstm') else 0), \
                (network, metric, how, seen, untrained)
for edges, form in ('5', 'full'), ('6', 'quasi_diagonal'):
    assert f'form {form}' in result('--edges', edges, '--units', '8', '--length', '300', '--seconds', '0.01')[1]

for task in 'alphabet', 'xor', 'anbn', 'reber', 'copy':
    assert 0 <= result('--task', task, *SMALL)[0]['success'] <= 1
assert math.isnan(result('--task', 'dyck', '--depth', '5', *SMALL)[0]['success'])
answer, _ = result('--task', 'xor', '--answer-only', *SMALL)
assert answer['entropy_bits'] == 0

result('--task', 'music', '--training', 'full', '--doublings', '3', '--conjugate', *SMALL)
# some of the sixteen parts of the second text have no insertion: success there is that of the others
_, shown = result('--task', 'alphabet', '--insert-digits', '0.002', '--training', 'full', '--length', '3000', '--units', '6', '--rounds', '1')
assert not math.isnan(float(shown.split('end_success=')[1].split()[0])), shown
for network in 'glnn', 'lstm', 'hmm':
    best, _ = result('--task', 'music', '--network', network, '--starts', '3', *SMALL)
    assert best['validation_bits'] < untrained - 0.5, best
_, shown = result('--task', 'anbn', '--longest', '20', '--validation-longest', '40', *SMALL)
longer = dict(part.split('=') for line in shown.splitlines() if line.startswith('longer_bits') for part in line.split())
assert abs(float(longer['longer_entropy_bits']) - math.log2(21) / 61) < 1e-5 and 0 <= float(longer['longer_success']) <= 1, longer

for task, options in {'anbn': ['--longest', '20', '--validation-longest', '40', '--sample', '5'], 'dyck': []}.items():
    calls = [*SMALL, '--task', task, *options, '--rounds', '2', '--seconds', '60']
    _, shown = result(*calls)
    out = run(*calls, '--json')
    assert out.returncode == 0 and ' rounds ' in out.stderr, out
    found = json.loads(out.stdout)
    said = dict(part.split('=') for line in shown.splitlines() if '_bits=' in line for part in line.split())
    for name in ('training_bits', 'source_bits', 'validation_bits', 'entropy_bits', 'success', 'longer_bits', 'longer_success'):
        assert (name in said) == (name in found), (name, said, found)
        assert name not in said or said[name] == ('nan' if found[name] is None else f'{found[name]:.{len(said[name]) - 2}f}'), (name, said, found)
    assert ('sample' in found) == (task == 'anbn') and found.get('sample', '') in shown, found

# a network that was trained on a short text does not run away on one that is longer
longer, shown = result('--task', 'music', '--metric', 'rbpm', '--length', '3000', '--validation-length', '20000', '--units', '6',
                       '--edges', '2', '--seconds', '60', '--rounds', '700')
assert longer['validation_bits'] < 1.5, shown

with tempfile.TemporaryDirectory() as folder:
    curve = os.path.join(folder, 'curve.csv')
    _, shown = result('--task', 'anbn', '--csv', curve, '--sample', '50', *SMALL)
    lines = open(curve).read().splitlines()
    assert lines[0] == 'seconds,rounds,training_bits,choice_bits,success,start,saturated' and len(lines) > 2, lines
    assert all(len(line.split(',')) == 7 and 0 <= float(line.split(',')[6]) <= 1 for line in lines[1:]), lines
    written = run('--task', 'anbn', '--write', os.path.join(folder, 'text'), '--length', '500')
    assert written.returncode == 0 and written.stdout.startswith('source_bits=0.0') and ' entropy_bits=0.00995' in written.stdout, written
    assert len(open(os.path.join(folder, 'text.train')).read()) == 500

    assert shutil.which('gnuplot'), 'found no gnuplot: apt-get install gnuplot-nox'
    picture = os.path.join(folder, 'curve.svg')
    earlier = os.path.join(folder, 'earlier.csv')
    open(earlier, 'w').write('\n'.join(lines) + '\n')
    result('--task', 'anbn', '--curve', picture, '--beside', curve, earlier, *SMALL)
    drawn = open(picture).read()
    assert 'entropy rate' in drawn and '>curve<' in drawn and '>earlier<' in drawn and 'glnn' in drawn, drawn
    # a training that ends at its first look has no curve, and a text of one's own no entropy rate
    none, own = os.path.join(folder, 'none.svg'), os.path.join(folder, 'own')
    assert run('--task', 'reber', '--write', own, '--length', '200000').returncode == 0
    for _ in range(5):  # the first look may be over before the signal comes
        ended = subprocess.Popen([PROGRAM, '--text', own + '.train', '--valid', own + '.valid', '--units', '6', '--seconds', '60', '--curve', none],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not catches(ended.pid, signal.SIGINT):
            assert ended.poll() is None, ended.communicate()
        ended.send_signal(signal.SIGINT)
        said = ended.communicate(timeout=120)[1]
        if not os.path.exists(none):
            break
        os.remove(none)
    assert ended.returncode == 128 + signal.SIGINT and f"no figure '{none}': training ended at its first look" in said, (ended.returncode, said)
    assert 'gnuplot' not in said, said
    wrong = run('--task', 'anbn', '--curve', picture, '--beside', os.path.join(folder, 'text.train'), *SMALL)
    assert wrong.returncode == 1 and 'not a learning curve' in wrong.stderr, wrong
    open(earlier, 'a').write('1,2,x,4,5,0,0\n')
    wrong = run('--task', 'anbn', '--curve', picture, '--beside', earlier, *SMALL)
    assert wrong.returncode == 1 and "a line '1,2,x,4,5,0,0'" in wrong.stderr, wrong
    open(earlier, 'w').write(lines[0].rstrip() + '\n1,2,3,4,5,1e300,0\n')  # no number of a start
    wrong = run('--task', 'anbn', '--curve', picture, '--beside', earlier, *SMALL)
    assert wrong.returncode == 1 and "a line '1,2,3,4,5,1e300,0'" in wrong.stderr, wrong

    # the curves of several starts count their rounds together, so that one of them cannot go on in the same file
    several, best = os.path.join(folder, 'several.csv'), os.path.join(folder, 'best')
    result('--task', 'music', '--network', 'hmm', '--starts', '3', '--rounds', '3', '--csv', several, '--save', best, *SMALL)
    before = open(several).read()
    assert {line.split(',')[5] for line in before.splitlines()[1:]} == {'0', '1', '2'}, before
    wrong = run('--load', best, '--rounds', '2', '--csv', several)
    assert wrong.returncode == 1 and 'several --starts' in wrong.stderr and open(several).read() == before, wrong
    # and a picture needs a curve
    wrong = run('--load', best, '--curve', os.path.join(folder, 'none.svg'))
    assert wrong.returncode == 1 and '--curve' in wrong.stderr and 'gnuplot' not in wrong.stderr, wrong

    # nothing is written over but a curve of this program, or a text where that is asked for
    write = ['--task', 'anbn', '--write', os.path.join(folder, 'text'), '--length', '600']
    again = run(*write)
    assert again.returncode == 1 and '--overwrite' in again.stderr, again
    assert len(open(os.path.join(folder, 'text.train')).read()) == 500
    assert run(*write, '--overwrite').returncode == 0 and len(open(os.path.join(folder, 'text.train')).read()) == 600
    result('--task', 'anbn', '--csv', curve, *SMALL)
    clash = run('--task', 'anbn', '--csv', os.path.join(folder, 'text.train'), *SMALL)
    assert clash.returncode == 1 and 'left unchanged' in clash.stderr, clash
    with open('/dev/full', 'w') as full:
        done = subprocess.run([PROGRAM, *SMALL], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1 and 'standard output could not be written' in done.stderr, done

# a text that cannot be foreseen is learned by heart, and the program says so; as long as the two are alike it does not
by_heart = ['--task', 'copy', '--noise', '1', '--length', '120', '--validation-length', '2000', '--units', '30']
out = run(*by_heart, '--training', 'full', '--seconds', '2')
assert out.returncode == 0 and 'warning: training went back to its best moment' in out.stderr and '% of the units are saturated' in out.stderr, out
assert 'warning' not in run(*by_heart, '--seconds', '0').stderr
# minibatches go back at half the rates
out = run(*by_heart, '--rounds', '1500', '--seconds', '60')
assert out.returncode == 0 and 'back to the best moment, at half the rates' in out.stdout and 'warning: training went back' in out.stderr, out
# bits of aⁿbⁿ are few: there their ratio tells, by the rule by which table.py counts
with tempfile.TemporaryDirectory() as folder:
    few = ['--task', 'anbn', '--lines', '4', '--units', '10', '--seconds', '60']
    warned = []
    for how in (['--longest', '100', '--validation-length', '3000', '--training', 'full', '--metric', 'rbpm', '--columns', '1',
                 '--slowest', '200', '--rounds', '100', '--lines', '2'],  # two lines have one cut: no way back
                ['--longest', '300', '--validation-length', '6000', '--network', 'gnn', '--columns', '4', '--rounds', '400'], ['--rounds', '1']):
        curve = os.path.join(folder, f'{len(warned)}.csv')
        out = run(*few, *how, '--csv', curve)
        assert out.returncode == 0, out
        with open(curve, newline='') as f:
            last = list(csv.DictReader(f))[-1]
        last['bits'] = last['choice_bits']
        warned.append('warning: at the end of training another text has' in out.stderr)
        assert warned[-1] == table.runaway(last), (last, out)
        assert float(last['bits']) < float(last['training_bits']) + 1, last
    assert warned == [True, False, False], warned
def told(out):
    """The contents of the last lines."""
    assert out.returncode == 0, out
    return dict(part.split('=') for line in out.stdout.splitlines()[-3:] if '_bits=' in line for part in line.split())


# a unit whose V is clamped is saturated, though tanh of the bound is far from 1
clamped = ['--task', 'reber', '--length', '3000', '--units', '6', '--rounds', '5']
assert float(told(run(*clamped, '--bound', '0.001'))['saturated']) >= 0.5
assert float(told(run(*clamped, '--bound', '0.001', '--training', 'full', '--activation', 'logistic'))['saturated']) >= 0.5
assert float(told(run(*clamped, '--bound', '0'))['saturated']) < 0.5

# full batches that stray go back to the best moment, and the end of training is reported beside it
anbn = ['--task', 'anbn', '--units', '10', '--lines', '10', '--longest', '200', '--validation-length', '2000', '--slowest', '400', '--training', 'full']
strays = [*anbn, '--metric', 'ruop', '--form', 'quasi_diagonal', '--columns', '16', '--rounds', '150']
out = run(*strays)
seen = told(out)
assert int(seen['returns']) > 0 and float(seen['end_choice_bits']) <= float(seen['start_choice_bits']), (seen, out)
times = '1 time,' if seen['returns'] == '1' else f"{seen['returns']} times,"
assert f'warning: training went back to its best moment {times}' in out.stderr and 'at the end' not in out.stderr, out
assert out.stdout.count('Another text is far worse') == int(seen['returns']), out
# another cut may have more columns
assert int(told(run(*strays, '--seed', '3'))['returns']) > 0
# two lines are not cut in another way
out = run(*strays, '--lines', '2')
seen = told(out)
assert seen['returns'] == '0' and float(seen['end_choice_bits']) > float(seen['start_choice_bits']) > 1, (seen, out)
assert 'warning: at the end of training another text has' in out.stderr and '(--columns 0)' in out.stderr and 'on more columns' not in out.stderr, out
row = {'bits': seen['validation_bits'], 'success': seen['success'], 'training_bits': seen['training_bits'], 'start_choice': seen['start_choice_bits'],
       'end_training': seen['end_training_bits'], 'end_choice': seen['end_choice_bits'], 'end_success': seen['end_success'], 'status': '0'}
assert table.runaway(row), row
found = json.loads(run(*anbn, '--rounds', '2', '--json').stdout)
assert 1 < found['start_choice_bits'] > found['end_choice_bits'] >= 0 <= found['end_success'] and found['end_training_bits'] > 0, found

# full batches: columns of several lines unless they are asked for; other texts are cut as before
for how, columns in (anbn, 3), ([*anbn, '--columns', '16'], 8), ([*anbn, '--lines', '2'], 1), (['--task', 'reber', '--length', '3000', '--training', 'full'], 16), \
        (['--task', 'anbn', '--length', '3000', '--longest', '100'], 16):
    out = run(*how, '--rounds', '1')
    assert f'in {columns} column{"s" * (columns > 1)}, metric' in out.stdout, (how, out)

# where a metric is not finite, the other parameters are trained on
out = run(*anbn, '--metric', 'rbpm', '--form', 'quasi_diagonal', '--columns', '16', '--seed', '3', '--rounds', '5')
assert out.returncode == 0 and 'rounds=5' in out.stdout and 'not finite' not in out.stderr, out

# a warning advises what applies to the network
by_heart[-1] = '60'
for network, when in ('lstm', 'training went back'), ('hmm', 'at the end of training another text has'):
    out = run(*by_heart, '--network', network, '--rounds', '300')
    assert out.returncode == 0 and f'warning: {when}' in out.stderr, out
    assert 'fewer units' in out.stderr and not any(s in out.stderr for s in ('saturated', '--columns', '--bound', 'edges')), out


def tensors(path):
    with open(path, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
        data = f.read()
    return {name: data[slice(*entry['data_offsets'])] for name, entry in header.items() if name != '__metadata__'}


with tempfile.TemporaryDirectory() as folder:
    def file(name, content=None):
        path = os.path.join(folder, name)
        if content is not None:
            open(path, 'w').write(content)
        return path

    # Rates are full for a share of the time, and then fall.
    for share in ('1', '0.2'):
        out = run('--task', 'reber', '--length', '2000', '--units', '6', '--metric', 'gradient', '--sgd-rate', '0.5', '--seconds', '0.5',
                  '--anneal', share, '--save', file('annealed'))
        assert out.returncode == 0 and '(descent)' in out.stdout, out
        rate = next(struct.unpack('<d', v)[0] for k, v in tensors(file('annealed')).items() if k == 'state/sgd/rate')
        assert rate == 0.5 if share == '1' else rate < 0.1, (share, rate)
        os.remove(file('annealed'))
    assert 'found anneal = 2' in run('--anneal', '2', *SMALL).stderr

    # Training that goes on from a file has the bits of training that was not stopped: weights, states, metrics, rates.
    # Rates of minibatches are full to the end; else each call would let them fall.
    for how in (['--network', 'glnn'], ['--network', 'gnn', '--metric', 'rbpm', '--form', 'quasi_diagonal'],
                ['--network', 'rnn', '--metric', 'gradient'], ['--network', 'gnn', '--metric', 'gradient', '--sgd-rate', '0.5'], ['--network', 'lstm'],
                ['--training', 'full', '--conjugate'], ['--training', 'full', '--metric', 'rbpm'], ['--network', 'hmm']):
        name = '_'.join(how)
        parts = [file(f'{name}.{k}') for k in range(3)]
        given = ['--task', 'reber', '--length', '2000', '--units', '6', *how]
        full_rates = [] if how[0] == '--training' or 'hmm' in how else ['--anneal', '1']
        given += full_rates and ['--steps', '20', *full_rates]
        whole = run(*given, '--rounds', '14', '--save', parts[0])
        assert whole.returncode == 0, whole
        assert run(*given, '--rounds', '5', '--save', parts[1]).returncode == 0
        rest = run('--load', parts[1], '--rounds', '9', *full_rates, '--save', parts[2])
        assert rest.returncode == 0 and 'rounds=9' in rest.stdout, rest
        a, c = tensors(parts[0]), tensors(parts[2])
        assert a.keys() == c.keys() and any('last' in k for k in a), a.keys()
        # the moments of looks are those of the clock, and so is the best one
        timed = [k for k in a if not k.startswith('state/') or k.startswith(('state/best', 'state/progress'))]
        timed += ['state/graph/step'] * ('full' in how)  # passes are counted, and looks cost a line search one
        assert all(a[k] == c[k] for k in a if k not in timed), (how, [k for k in a if a[k] != c[k]])
        assert tensors(parts[1])[next(k for k in a if '/last/' in k)] != a[next(k for k in a if '/last/' in k)]
        # without time it is evaluated
        again = run('--load', parts[0])
        assert again.returncode == 0 and again.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], (whole, again)

    # a text of one's own, as characters and as words
    line = 'the cat sat on the mat and the dog sat on the log – too\n'
    train, valid = file('train.txt', line * 60), file('valid.txt', line * 5 + 'a zebra\n')
    for level, network in ('--chars', 'glnn'), ('--words', 'gnn'), ('--chars', 'lstm'), ('--words', 'hmm'):
        model = file(f'{level}.{network}')
        made = run('--text', train, '--valid', valid, level, '--network', network, '--seconds', '1', '--save', model,
                   '--sample', '30', '--units', '12')
        assert made.returncode == 0, made
        last = made.stdout.splitlines()[-1]
        assert last.startswith('validation_bits=') and last.endswith(' entropy_bits=unknown'), last
        assert 'nan' not in last and float(last.split()[0].split('=')[1]) < 4.5, last
        seen = run('--load', model, '--valid', valid)
        assert seen.returncode == 0 and seen.stdout.splitlines()[-1] == last, (last, seen)
        assert 'end_choice_bits' in made.stdout and 'end_' not in seen.stdout, (made, seen)
        both = run('--load', model, '--valid', valid, '--json')
        assert both.returncode == 0 and both.stdout.count('\n') == 1, both
        assert f"{json.loads(both.stdout)['validation_bits']:.5f}" == last.split()[0].split('=')[1], (last, both)
        more = run('--load', model, '--valid', valid, '--text', train, '--rounds', '3', '--save', file('more'))
        assert more.returncode == 0 and 'rounds=3' in more.stdout, more
        assert run('--load', model, '--valid', valid, '--rounds', '3').returncode == 1  # nothing to train on
    model = file('--chars.glnn')
    out = run('--text', train, '--valid', valid, '--json', '--rounds', '2', *SMALL[2:])
    assert out.returncode == 0 and out.stdout.count('\n') == 1 and 'symbols to train on' in out.stderr, out
    assert json.loads(out.stdout)['rounds'] == 2 and json.loads(out.stdout)['entropy_bits'] is None, out

    # what says how a task draws its texts is no option of a text of one's own, even with the value that it has anyway
    for option in (['--task', 'alphabet'], ['--length', '3000'], ['--lines', '5'], ['--validation-length', '50'], ['--insert-digits', '0.1'],
                   ['--insert-capitals', '0.2'], ['--bits', '5'], ['--training-bits-from', '2'], ['--answer-only'], ['--shortest', '2'],
                   ['--longest', '9'], ['--depth', '3'], ['--lag', '3'], ['--noise', '0.5'], ['--validation-longest', '9']):
        out = run('--text', train, '--valid', valid, '--seconds', '0', *option)
        assert out.returncode == 1 and f'isogloss: {option[0]} is given, but it applies to texts drawn by a task alone; leave' in out.stderr, (option, out)
    out = run('--load', model, '--valid', valid, '--task', 'alphabet')
    assert out.returncode == 1 and '--task is given, but it applies to texts' in out.stderr, out
    out = run('--min-count', '2', '--seconds', '0')
    assert out.returncode == 1 and '--min-count' in out.stderr, out

    # nothing is written over but a model of this program, and no input
    before = open(train).read()
    for wrong, said in [(['--save', train], 'left unchanged'), (['--save', valid], 'left unchanged'), (['--csv', train], 'left unchanged'),
                        (['--save', file('notes', 'mine')], 'not a model of synthetic')]:
        out = run('--text', train, '--valid', valid, '--seconds', '0', *wrong)
        assert out.returncode == 1 and said in out.stderr, (wrong, out)
    assert open(train).read() == before and open(file('notes')).read() == 'mine'
    out = run('--load', model, '--valid', valid, '--text', train, '--save', model)
    assert out.returncode == 1 and 'left unchanged' in out.stderr, out
    assert run('--text', train, '--valid', valid, '--seconds', '0', '--save', file('more')).returncode == 0

    for wrong, said in [(['--load', model], '--valid is missing'), (['--load', model, '--valid', valid, '--units', '7'], '--units is 7'),
                        (['--load', train], 'train.txt'), (['--load', model, '--valid', valid, '--words'], '--words'),
                        (['--load', file('--words.gnn'), '--valid', valid, '--starts', '2'], '--starts is 2'),
                        (['--load', file('--network_glnn.0'), '--text', train, '--valid', valid], 'draws its texts'),
                        (['--text', train], '--valid is missing'), (['--valid', valid], '--text is missing'),
                        (['--text', train, '--valid', valid, '--chars', '--words'], 'choose one'),
                        (['--text', file('empty', ''), '--valid', valid], 'empty'), (['--words'], '--text')]:
        out = run(*wrong)
        assert out.returncode == 1 and said in out.stderr, (wrong, out)

    # a damaged file is refused before anything is built
    good = open(model, 'rb').read()
    for old, new in (b'\\"--units\\":12', b'\\"--units\\":92'), (b'\\"--edges\\":3', b'\\"--edges\\":x'), (b'glnn', b'glnm'):
        assert old in good, old
        with open(file('damaged'), 'wb') as f:
            f.write(good.replace(old, new))
        out = run('--load', file('damaged'), '--valid', valid)
        assert out.returncode == 1 and ('damaged' in out.stderr and 'no model' not in out.stderr or b'x' in new), (new, out)

for wrong, said in [(['--task', 'chess'], 'chess'), (['--units', '0'], 'units = 0'), (['--edges', '30'], 'edges = 30'),
                    (['--task', 'xor', '--bits', '1'], 'bits = 1'), (['--starts', '0'], '--starts'),
                    (['--task', 'xor', '--training-bits-from', '11'], '11 to 10'), (['--length', '1'], 'length = 1'),
                    (['--seed', '-1'], '--seed is -1'), (['--seconds', '1e-400'], '--seconds is 1e-400'),
                    (['--csv', '/nonexistent/curve.csv', '--seconds', '0'], '/nonexistent/curve.csv')]:
    out = run(*wrong)
    assert out.returncode != 0 and said in out.stderr + out.stdout, (wrong, out)
print('passed')
