"""table.py with runs of a moment: a table that is stopped and goes on, the characters of a text and their curves, what
counts as a runaway, rows of other seconds, and a page that is not the file's."""
import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
SCRIPT = os.path.join(SOURCES, 'programs', 'synthetic', 'table.py')
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(SCRIPT))
import table as script  # noqa: E402


def call(*arguments):
    return [sys.executable, '-B', SCRIPT, *arguments]


def run(*arguments, status=0):
    done = subprocess.run(call(*arguments), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, (arguments, done)
    return done.stderr if status else done.stdout


def rows(path):
    with open(path, newline='') as f:
        return list(csv.DictReader(f))


def keys(path):
    return [(r['task'], r['method'], r['seed']) for r in rows(path)]


def names():
    """A task and a method are one row of the results: no method of full batches on one sequence has the name of one on minibatches."""
    assert not set(script.METHODS) & set(script.STEPS_METHODS), set(script.METHODS) & set(script.STEPS_METHODS)


def runaways():
    """Bits on the text trained on, on another, success; seven tasks and what is known to happen in them."""
    for trained, bits, success, away in [
            ('0.69', '3.07', '0.4', True),       # music, units at a bound
            ('0.60', '1.61', '1.0', True),       # whatever else is right
            ('0.58', '1.48', '0.0', True),       # reber, units at a bound
            ('0.60', '1.19', '0.2', False),      # a text that was too short
            ('0.0110', '0.3000', '0.0', True),   # anbn: one bit would be a hundred times as much
            ('0.0102', '0.0650', '0.0', True),   # anbn: ten lines learned by heart
            ('0.0348', '0.0533', '0.0', False),  # anbn: more blurred on others
            ('0.0100', '0.0590', '0.0', False),  # anbn: six times, but by less than 0.05
            ('0.0001', '1.0003', '0.5', True),   # xor: chance is 1 bit
            ('0.0116', '0.2373', '0.993', False),  # xor: learned, and certain of a few wrong answers
            ('0.9998', '1.0010', '0.51', False),  # xor: not learned at all
            ('0.3000', '0.9500', 'nan', True),   # dyck has no success
            ('1.5', '4.6', '', True),            # nor has a text of one's own
            ('1.5', 'nan', '', True),
            ('nan', 'nan', '1', True),
            ('', '3.07', '', False)]:            # a compressor
        row = {'training_bits': trained, 'bits': bits, 'success': success}
        assert script.runaway(row) == away, row
    # A best moment that is sound; bits before the training, at its end on both texts, success there, status of the program.
    row = {'training_bits': '0.05', 'bits': '0.06', 'success': '0'}
    for start, trained, bits, success, status, away in [
            ('1.01', '0.05', '0.06', '0', '0', False),
            ('1.01', '84.5', '194', '0', '0', True),     # both texts: ten lines of anbn in columns of one line
            ('1.01', '1.10', '1.07', '0', '0', True),    # worse than untrained
            ('1.01', '1.03', '1.04', '0', '0', False),   # not learned
            ('1.01', '0.06', '0.60', '0', '0', True),    # far worse than the training text
            ('1.01', '0.06', '0.60', '0.99', '0', False),
            ('1.01', 'nan', 'nan', 'nan', '1', True),    # numbers not finite
            ('1.01', '0.05', '0.06', '0', '1', True)]:
        end = {'start_choice': start, 'end_training': trained, 'end_choice': bits, 'end_success': success, 'status': status}
        assert script.runaway({**row, **end}) == away, end
    assert not script.runaway({**row, **dict.fromkeys(end, '')})  # an earlier run


def page():
    """Counts of a small results file; --check notices a page that is another file's."""
    with open('page.csv', 'w') as f:
        writer = csv.writer(f)
        writer.writerow(script.COLUMNS)
        writer.writerow(['alphabet', script.SOURCE, 1, '', '1.5', '1.67205', *[''] * 10])
        writer.writerow(['alphabet', 'GLNN, Adam', 1, '1', '1.8', '1.67205', '0.9', '', '1.7', '0', '4', '1.7', '1.8', '0.9', '0', '0'])
        writer.writerow(['anbn', 'GLNN, Adam', 1, '1', '0.3', '0.00995', '0', '', '0.012', '0.9', '1', '0.012', '0.3', '0', '0', '0'])
        writer.writerow(['anbn', 'LSTM 64, Adam', 1, '1', '0.023', '0.00995', '0', '', '0.021', '0', '1', '0.02', '0.02', '0', '0', '3'])
        writer.writerow(['anbn', 'GLNN, gradient', 1, '1', '0.023', '0.00995', '0', '', '0.021', '0', '1', '50', '60', '0', '0', '2'])
        writer.writerow(['reber', 'GLNN, gradient', 1, '1', '0.6', '0.58333', '0', '', '0.6', '0', *[''] * 6])
    how = ['--print-only', '--parts', 'minibatch', '--seconds', '1', '--results', 'page.csv', '--page', 'page.md']
    run(*how)
    with open('page.md') as f:
        made = f.read()
    line = {name: next(x for x in made.splitlines() if x.startswith(f'| {name} |')) for name in ('GLNN, Adam', 'LSTM 64, Adam', 'GLNN, gradient')}
    assert line['GLNN, Adam'].startswith('| GLNN, Adam | 1.2000 | 0.3000 bits | – |'), line  # without the source: bits
    assert line['LSTM 64, Adam'].startswith('| LSTM 64, Adam | – | 0.0230 bits | – |'), line
    assert '- Runaways: 2 of 5 runs.' in made and ': 2 runs did.' in made and 'is judged at the best moment alone.' in made, made
    run(*how, '--check')
    with open('page.csv', 'a') as f:
        f.write('copy,"GLNN, Adam",1,1,0.7,0.67371,1.0,,0.68,0,3,0.68,0.7,1.0,0,0\r\n')
    assert "'page.md' is not made from 'page.csv'" in run(*how, '--check', status=1)
    with open('page.md') as f:
        assert f.read() == made  # --check writes nothing
    run(*how)
    run(*how, '--check')
    with open('page.md') as f:
        assert f.read().split('\n\n')[-1] in run(*how[:-2])  # one table, for the page and for the screen
    assert '--check needs --page' in run(*how[:-2], '--check', status=2)
    with open('mine.md', 'w') as f:
        f.write('notes of my own')
    for page, says in ('mine.md', 'left unchanged'), ('none.md', "there is no page 'none.md' to check"):
        assert says in run(*how[:-1], page, '--check', status=1), page
    assert 'left unchanged' in run(*how[:-1], 'mine.md', status=1) and open('mine.md').read() == 'notes of my own'
    assert "there is no program './nothing'" in run('--program', './nothing', '--parts', 'chars', '--text', 'text.txt', '--validation-lines', '10',
                                                   '--results', 'without.csv', status=1)


def of_these_seconds():
    """Rows of other seconds are neither printed nor counted as done, and --seeds chooses among those of these."""
    with open('mixed.csv', 'w') as f:
        writer = csv.writer(f)
        writer.writerow(script.COLUMNS)
        for seed, seconds, bits in (1, 0.01, '2.5'), (1, 7, '1.5'), (2, 7, '1.7'), (3, 7, 'nan'), (1, 8, '1.9'):
            writer.writerow(['chars', 'GLNN 200, RUOP', seed, seconds, bits, '', '', '', '1.5', '0', '6', '1.5', '1.6', '', '0', '0'])
    shown = {chars: run('--print-only', '--parts', 'chars', '--chars', chars, '--results', 'mixed.csv') for chars in ('0.01', '7', '8', '9')}
    assert '| 2.5000 bits |' in shown['0.01'] and '| 1.9000 bits |' in shown['8'] and shown['9'].startswith('No run of these seconds'), shown
    assert '| 1.7000 bits |' in shown['7'] and 'Median over 3 seeds. Runaways: 1 of 3 runs;' in shown['7'], shown  # what is not a number is more than any
    for seeds, cell, runs in (['1'], '| 1.5000 bits |', '0 of 1 runs'), (['1', '2'], '| 1.6000 bits |', '0 of 2 runs'):
        seen = run('--print-only', '--parts', 'chars', '--chars', '7', '--results', 'mixed.csv', '--seeds', *seeds)
        assert cell in seen and runs in seen, seen
    assert 'no run of 9 seconds' in run('--print-only', '--seconds', '9', '--results', 'page.csv', '--page', 'none.md', status=1)
    assert not os.path.exists('none.md')
    how = ['--program', PROGRAM, '--parts', 'chars', '--chars', '0.02', '--text', 'text.txt', '--validation-lines', '10', '--seeds', '1',
           '--results', 'mixed.csv']
    run(*how)
    made = [r for r in rows('mixed.csv') if r['seconds'] == '0.02']
    assert [r['method'] for r in made] == list(script.CHARS_METHODS) and len(rows('mixed.csv')) == 5 + len(made), made


def diverges():
    """A run whose numbers are no longer finite has a result; a program that fails has none."""
    seen = script.run(PROGRAM, '--task reber --length 2000 --units 6 --metric gradient --sgd-rate 1e38 --rounds 9')
    assert float(seen['validation_bits']) < 3 and seen['status'] == '1' and seen['end_choice_bits'] == 'nan', seen
    assert script.run(PROGRAM, '--task reber --length 2000 --units 6 --rounds 2')['status'] == '0'
    try:
        script.run(PROGRAM, '--task chess')
    except SystemExit as error:
        assert 'chess' in str(error)
    else:
        raise AssertionError('chess was played')


def only():
    """Some rows of a part; what is there already is left."""
    how = ['--program', PROGRAM, '--parts', 'minibatch', '--seconds', '0.01', '--seeds', '1', '2', '--results', 'only.csv']
    run(*how, '--only', 'anbn: .*full batches')
    expected = [('anbn', method, seed) for seed in '12' for method in script.STEPS_METHODS if 'full batches' in method]
    assert keys('only.csv') == expected and len(expected) == 10, keys('only.csv')
    for row in rows('only.csv'):
        assert row['status'] == '0' and all(float(row[c]) > 0 for c in ('start_choice', 'end_training', 'end_choice')), row
    before = rows('only.csv')
    with open('only.csv') as f:
        lines = f.readlines()
    with open('only.csv', 'w') as f:
        f.writelines(lines[:3] + lines[4:])
    run('--program', PROGRAM, '--parts', 'minibatch', '--seconds', '0.01', '--seeds', '1', '--results', 'sources.csv', '--only', 'the source itself|zlib')
    assert len(keys('sources.csv')) == 13, keys('sources.csv')  # the sources, and all texts but the answers of xor compressed
    run(*how, '--only', 'anbn: .*full batches')
    assert sorted(keys('only.csv')) == sorted(expected) and rows('only.csv')[:-1] == before[:2] + before[3:]
    assert '--only: ' in run(*how, '--only', '(', status=2)


def in_several_calls():
    """A row of several calls: each goes on with the model of the one before, with harder texts, for its part of the time."""
    calls = []

    def noted(program, arguments, *more):
        calls.append((arguments, *more))
        return program_run(program, arguments, *more)
    program_run, script.run = script.run, noted
    options = argparse.Namespace(far=0.05, only=re.compile(''), chars=0, seconds=0, long=0)
    task = 'xor, L = 100, every symbol'
    (method, how), = script.FAR[task].items()
    script.Runs(PROGRAM, script.Results('stages.csv', False, options)).train(task, method, 3, how)
    script.run = program_run
    assert [c[0] for c in calls] == [f'{call} --seconds 0.0075 --seed 3' for call in how] and len(how) == 2, calls
    assert [c[1] for c in calls] == ['--save', '--load'] and calls[1][2] == calls[0][2], calls
    row, = rows('stages.csv')
    assert row['seconds'] == '0.015' and abs(float(row['floor']) - 1.06927) < 1e-5 and float(row['bits']) > 1, row  # of the last texts


def goes_on():
    """Stopped while it runs: no row is lost, none is there twice, and one that was cut short is made again."""
    how = ['--program', PROGRAM, '--parts', 'chars', '--chars', '0.05', '--text', 'text.txt', '--validation-lines', '10', '--seeds', '1', '2',
           '--results', 'table.csv']
    expected = [('chars', method, str(seed)) for seed in (1, 2) for method in script.CHARS_METHODS]
    for stop, after in (signal.SIGTERM, 1), (signal.SIGKILL, 3):
        with open(os.devnull, 'w') as nothing:
            running = subprocess.Popen(call(*how), stdout=nothing, stderr=nothing)
        until = time.time() + 60
        while not (os.path.exists('table.csv') and len(keys('table.csv')) >= after):
            assert running.poll() is None and time.time() < until, running
            time.sleep(0.02)
        running.send_signal(stop)
        assert running.wait() != 0, running
        found = keys('table.csv')
        assert found == expected[:len(found)] and after <= len(found) < len(expected), found
    before = rows('table.csv')
    with open('table.csv', 'a') as f:
        f.write('chars,"LSTM 128')
    shown = run(*how)
    assert keys('table.csv') == expected and rows('table.csv')[:len(before)] == before, rows('table.csv')
    assert all(r['floor'] == r['success'] == '' and 0 < float(r['training_bits']) < 8 > float(r['bits']) for r in rows('table.csv'))
    assert shown.count(' bits |') == 3 and 'Median over 2 seeds. Runaways: 0 of 6 runs; 0 went back.' in shown, shown

    curves = sorted(os.listdir('table_curves'))
    assert curves == sorted(f'{name}_{seed}_0.05s.csv' for name in ('glnn_200_ruop', 'lstm_128_adam', 'lstm_128_ruop') for seed in (1, 2)), curves
    for name in curves:
        with open(os.path.join('table_curves', name)) as f:
            lines = f.read().splitlines()
        assert lines[0].startswith('seconds,rounds,training_bits,choice_bits,success,start') and len(lines) >= 3, lines
    assert shutil.which('gnuplot'), 'found no gnuplot: apt-get install gnuplot-nox'
    with open('table.svg') as f:
        drawn = f.read()
    assert all(f'>{name}_1_0.05s<' in drawn for name in ('glnn_200_ruop', 'lstm_128_adam', 'lstm_128_ruop')), drawn

    # all is there: nothing runs, not even the program
    again = how[:]
    again[1] = '/nonexistent/synthetic'
    whole = rows('table.csv')
    os.rename('table_curves', 'elsewhere')  # no figure is drawn without curves
    assert run(*again) == shown and rows('table.csv') == whole


def refuses():
    assert 'invalid choice' in run('--print-only', '--parts', 'chess', '--results', 'page.csv', status=2)
    with open('page.csv') as f:
        good = f.read()
    for wrong in 'reber,"GLNN, Adam",x,1,0.6', 'reber,"GLNN, Adam",1,1,many', 'reber,"GLNN, Adam",1' + ',1' * 20:
        with open('wrong.csv', 'w') as f:
            f.write(good + wrong + '\n')
        assert f"in line {good.count(chr(10)) + 1} of 'wrong.csv'" in run('--print-only', '--results', 'wrong.csv', status=1), wrong
    assert "no results file 'none.csv'" in run('--print-only', '--results', 'none.csv', status=1) and not os.path.exists('none.csv')
    assert 'does not begin with' in run('--print-only', '--results', 'text.txt', status=1)
    with open('binary', 'wb') as f:
        f.write(b'\xb8\xff\n')
    assert 'does not begin with' in run('--print-only', '--results', 'binary', status=1)
    assert 'cannot be held out' in run('--program', PROGRAM, '--parts', 'chars', '--text', 'text.txt', '--validation-lines', '900',
                                       '--results', 'new.csv', status=1)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    with open('text.txt', 'w') as text:
        text.writelines(f'{k * k} is the square of {k}\n' for k in range(60))
    names()
    runaways()
    page()
    of_these_seconds()
    in_several_calls()
    diverges()
    only()
    goes_on()
    refuses()
    os.chdir(SOURCES)
print('passed')
