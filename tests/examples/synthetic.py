"""The program synthetic: every network and metric runs, learns, reports in the promised form; wrong input is refused."""
import math
import os
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def result(*arguments):
    out = run(*arguments)
    assert out.returncode == 0, (arguments, out.stderr)
    last = dict(part.split('=') for part in out.stdout.splitlines()[-1].split())
    assert list(last) == ['validation_bits', 'entropy_bits', 'success'], last
    return {k: float(v) for k, v in last.items()}, out.stdout


SMALL = ['--length', '3000', '--units', '6', '--edges', '2', '--seconds', '0.3']
untrained = result('--task', 'music', '--length', '3000', '--seconds', '0')[0]['validation_bits']
for network, metrics in {'glnn': ['ruop', 'rbpm', 'gradient'], 'gnn': ['rbpm'], 'rnn': ['ruop'],
                         'lstm': ['gradient', 'ruop', 'rbpm'], 'hmm': ['gradient']}.items():
    for metric in metrics:
        for form in ['full', 'quasi_diagonal'] if network == 'glnn' else ['quasi_diagonal']:
            seen, _ = result('--task', 'music', '--network', network, '--metric', metric, '--form', form, *SMALL)
            assert abs(seen['entropy_bits'] - 0.66583) < 1e-5, seen
            assert seen['entropy_bits'] < seen['validation_bits'] < untrained + (0.1 if network in ('hmm', 'lstm') else 0), \
                (network, metric, form, seen, untrained)

for task in 'alphabet', 'xor', 'anbn', 'reber', 'copy':
    assert 0 <= result('--task', task, *SMALL)[0]['success'] <= 1
assert math.isnan(result('--task', 'dyck', '--depth', '5', *SMALL)[0]['success'])
answer, _ = result('--task', 'xor', '--answer-only', *SMALL)
assert answer['entropy_bits'] == 0

for network in 'glnn', 'lstm':  # the sparse networks alone have a text that grows
    result('--task', 'music', '--network', network, '--doublings', '3', '--conjugate', *SMALL)
for network in 'glnn', 'lstm', 'hmm':
    best, _ = result('--task', 'music', '--network', network, '--starts', '3', *SMALL)
    assert best['validation_bits'] < untrained + 0.1, best
_, shown = result('--task', 'anbn', '--longest', '20', '--validation-longest', '40', *SMALL)
longer = dict(part.split('=') for line in shown.splitlines() if line.startswith('longer_bits') for part in line.split())
assert abs(float(longer['longer_entropy_bits']) - math.log2(21) / 61) < 1e-5 and 0 <= float(longer['longer_success']) <= 1, longer

with tempfile.TemporaryDirectory() as folder:
    curve = os.path.join(folder, 'curve.csv')
    _, shown = result('--task', 'anbn', '--csv', curve, '--sample', '50', *SMALL)
    lines = open(curve).read().splitlines()
    assert lines[0] == 'seconds,rounds,training_bits,choice_bits,success,start' and len(lines) > 2, lines
    assert run('--task', 'anbn', '--write', os.path.join(folder, 'text'), '--length', '500').returncode == 0
    assert len(open(os.path.join(folder, 'text.train')).read()) == 500

    # nothing is written over but a curve of this program, or a text where that is asked for
    write = ['--task', 'anbn', '--write', os.path.join(folder, 'text'), '--length', '600']
    again = run(*write)
    assert again.returncode == 1 and '--overwrite' in again.stderr, again
    assert len(open(os.path.join(folder, 'text.train')).read()) == 500
    assert run(*write, '--overwrite').returncode == 0 and len(open(os.path.join(folder, 'text.train')).read()) == 600
    result('--task', 'anbn', '--csv', curve, *SMALL)
    clash = run('--task', 'anbn', '--csv', os.path.join(folder, 'text.train'), *SMALL)
    assert clash.returncode == 1 and 'left as it is' in clash.stderr, clash
    same = run(*write, '--overwrite', '--csv', os.path.join(folder, 'text.valid'))
    assert same.returncode == 1 and ('left as it is' in same.stderr or 'writes' in same.stderr), same
    with open('/dev/full', 'w') as full:
        done = subprocess.run([PROGRAM, *SMALL], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1 and 'standard output could not be written' in done.stderr, done

for wrong, said in [(['--task', 'chess'], 'chess'), (['--units', '0'], 'units = 0'), (['--edges', '30'], 'edges = 30'),
                    (['--task', 'xor', '--bits', '1'], 'bits = 1'), (['--starts', '0'], '--starts'),
                    (['--task', 'xor', '--training-bits-from', '11'], '11 to 10'), (['--length', '1'], 'length = 1'),
                    (['--seed', '-1'], '--seed is -1'), (['--seconds', '1e-400'], '--seconds is 1e-400'),
                    (['--csv', '/nonexistent/curve.csv', '--seconds', '0'], '/nonexistent/curve.csv')]:
    out = run(*wrong)
    assert out.returncode != 0 and said in out.stderr + out.stdout, (wrong, out)
print('passed')
