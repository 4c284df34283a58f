"""What synthetic keeps: the best of several starts, the best state when training or a figure fails, the text chosen by
in a later call, a text that had not grown to its end, and files of before."""
import json
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'language_model'))
from program import PROGRAM, crc64  # noqa: E402


def run(*arguments, status=0, **more):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False, **more)
    assert done.returncode == status, (arguments, done)
    return done


def last(done):
    return done.stdout.splitlines()[-1]


def bits(done):
    return float(last(done).split()[0].removeprefix('validation_bits='))


def parts(path):
    with open(path, 'rb') as f:
        header = f.read(struct.unpack('<Q', f.read(8))[0])
        return header, f.read()


def stored(path):
    return json.loads(json.loads(parts(path)[0])['__metadata__']['synthetic'])


def tensor(path, name):
    """Where a tensor is in the second part of a file."""
    return slice(*json.loads(parts(path)[0])[name]['data_offsets'])


def craft(path, header, data):
    """A file with these parts and a checksum that is right."""
    opening = b'{"__metadata__":{"isogloss.checksum":"'
    assert header.startswith(opening), header
    header = header.rstrip(b' ')
    header = opening + b'0' * 16 + header[len(opening) + 16:] + b' ' * (-(len(header) + 8) % 64)
    whole = struct.pack('<Q', len(header)) + header + data
    with open(path, 'wb') as f:
        f.write(whole.replace(b'0' * 16, b'%016x' % crc64(whole), 1))


def starts():
    """The best of several starts is the one in the file, whichever it is."""
    winners = set()
    for seed in '1', '2', '3', '4':
        for how in ['--network', 'glnn', '--form', 'quasi_diagonal'], ['--network', 'hmm', '--units', '6']:
            made = run('--task', 'reber', '--length', '3000', '--starts', '3', '--rounds', '10', '--seed', seed, *how, '--save', 'best')
            seen = run('--load', 'best')
            assert last(seen) == last(made), (made, seen)
            winners.add(stored('best')['start'])
            more = run('--load', 'best', '--rounds', '3', '--save', 'more')
            assert bits(more) < bits(made) + 0.2 and last(run('--load', 'more')) == last(more), (made, more)
    assert winners - {0} and winners <= {0, 1, 2}, winners


def of_before():
    """A file without the number of the start is of the first."""
    made = run('--task', 'reber', '--length', '2000', '--rounds', '5', '--save', 'new')
    header, data = parts('new')
    old = header
    for key in b',\\"start\\":0', b'\\"doublings\\":0,', b'\\"cut\\":0,':
        assert key in old, (key, old)
        old = old.replace(key, b'')
    craft('old', old, data)
    assert last(run('--load', 'old')) == last(made)
    for key, value in (b'start', b'0.5'), (b'start', b'1000'), (b'doublings', b'-1'), (b'cut', b'8'):
        craft('old', header.replace(b'\\"%s\\":0' % key, b'\\"%s\\":%s' % (key, value)), data)
        assert 'damaged' in run('--load', 'old', status=1).stderr


def fails_at_the_end():
    """A figure that cannot be drawn costs neither the model nor its result; a table that cannot be read is refused first."""
    small = ['--task', 'reber', '--length', '2000', '--units', '6']
    done = run(*small, '--rounds', '3', '--save', 'drawn', '--curve', 'curve.svg', status=1, env={**os.environ, 'PATH': '/nonexistent'})
    assert 'gnuplot' in done.stderr and last(run('--load', 'drawn')) == last(done), done
    with open('none.csv', 'w') as f:
        f.write('nothing\n')
    done = run(*small, '--curve', 'curve.svg', '--beside', 'none.csv', status=1)
    assert 'not a learning curve' in done.stderr and 'rounds' not in done.stdout, done


def diverges():
    """Training that ends in numbers that are not finite leaves the best state."""
    for name, how in {'sgd': ['--metric', 'gradient', '--sgd-rate', '1e38'], 'adam': ['--metric', 'gradient', '--adam-rate', '1e38']}.items():
        done = run('--task', 'reber', '--length', '2000', '--units', '6', *how, '--rounds', '100', '--save', name, status=1)
        assert 'not finite' in done.stderr and f'lower rates (--{name}-rate)' in done.stderr, done
        assert ' end_training_bits=nan end_choice_bits=nan end_success=nan' in done.stdout, done
        assert 0 < bits(done) < 3, done
        assert last(run('--load', name)) == last(done)


def not_a_number():
    """A model with numbers that are none is refused, and says so."""
    run('--task', 'reber', '--length', '2000', '--units', '6', '--network', 'hmm', '--rounds', '2', '--save', 'hmm')
    header, data = parts('hmm')
    place = tensor('hmm', 'state/best/transition').start
    craft('broken', header, data[:place] + struct.pack('<d', math.nan) + data[place + 8:])
    done = run('--load', 'broken', status=1)
    assert 'hmm: row 0 of `transition` sums to nan' in done.stderr and 'validation_bits' not in done.stdout, done


def another_validation_text():
    """The best moment is that on the text of the call, not on that of an earlier one."""
    for name, content in ('train', 'abcab' * 400), ('easy', 'ab' * 300), ('hard', 'abcab' * 100):
        with open(name, 'w') as f:
            f.write(content)
    for network in 'glnn', 'hmm':
        how = ['--text', 'train', '--network', network, '--units', '6']
        run(*how, '--valid', 'easy', '--rounds', '1', '--save', f'{network}.easy')
        header, data = parts(f'{network}.easy')
        place = tensor(f'{network}.easy', 'state/progress/bits').start
        craft(f'{network}.easy', header, data[:place] + struct.pack('<d', 1e-3) + data[place + 8:])  # as if learned there
        before = run('--load', f'{network}.easy', '--valid', 'hard')
        after = run('--load', f'{network}.easy', '--valid', 'hard', '--text', 'train', '--rounds', '200')
        assert bits(after) < bits(before) - 0.1, (before, after)


def another_training_text():
    """Training that goes on with another text than before says so; files without a checksum are accepted."""
    for name, content in ('train', 'abcab' * 400), ('same', 'abcab' * 400), ('other', 'abcab' * 401), ('valid', 'abcab' * 100):
        with open(name, 'w') as f:
            f.write(content)
    said = "the training text is another one than that of the model in"
    for network in 'glnn', 'hmm':
        model = f'{network}.text'
        made = run('--text', 'train', '--valid', 'valid', '--network', network, '--units', '6', '--rounds', '2', '--save', model)
        assert said not in made.stdout, made
        go_on = ['--load', model, '--valid', 'valid', '--rounds', '1', '--text']
        assert said not in run(*go_on, 'same').stdout
        assert f"{said} '{model}'" in run(*go_on, 'other', '--save', f'{network}.more').stdout
        assert said not in run('--load', f'{network}.more', '--valid', 'valid', '--rounds', '1', '--text', 'other').stdout
        done = run(*go_on, 'other', '--json')
        assert said in done.stderr and json.loads(done.stdout)['rounds'] == 1, done
        # Without the text a network's training cannot be restored, and is not to be lost; that of an HMM is its values.
        copied = run('--load', model, '--valid', 'valid', '--save', f'{network}.copy', status=network != 'hmm')
        if network == 'hmm':
            assert stored(f'{network}.copy')['text'] == stored(model)['text']
        else:
            assert '--save is given, but it applies to calls with the training text (--text)' in copied.stderr, copied
            assert not os.path.exists(f'{network}.copy')
        header, data = parts(model)
        craft(f'{network}.before', header.replace(b',\\"text\\":\\"%s\\"' % stored(model)['text'].encode(), b''), data)
        assert 'text' not in stored(f'{network}.before') and said not in run('--load', f'{network}.before', *go_on[2:], 'other').stdout


def other_texts_of_the_task():
    """Training goes on with harder texts of its task; nothing else may differ."""
    small = ['--task', 'xor', '--lines', '100', '--validation-length', '2000', '--units', '6']
    for network in 'glnn', 'hmm':
        run(*small, '--bits', '3', '--network', network, '--rounds', '3', '--save', f'{network}.short')
        go_on = ['--load', f'{network}.short', '--bits', '5']
        made = run(*go_on, '--rounds', '2', '--save', f'{network}.long')
        assert f"the texts are other ones than those of the model in '{network}.short': --bits 5 in place of 3" in made.stdout, made
        assert stored(f'{network}.long') == {**stored(f'{network}.short'), '--bits': 5}
        seen = run('--load', f'{network}.long')
        assert 'other ones' not in seen.stdout and last(seen) == last(made), seen
        evaluated = run(*go_on)
        assert last(evaluated).split()[1] == last(made).split()[1] != last(run('--load', f'{network}.short')).split()[1], evaluated  # the entropy rate
        for option in ['--task', 'copy'], ['--units', '7'], ['--seed', '2']:
            assert f'leave {option[0]} out' in run('--load', f'{network}.short', *option, status=1).stderr, option
        if network == 'glnn':  # states are carried column by column
            assert 'another number of columns' in run('--load', 'glnn.short', '--lines', '3', status=1).stderr
        assert 'bits = 1' in run('--load', f'{network}.short', '--bits', '1', status=1).stderr


def grows_on():
    """A text that was to double when training was stopped is still to double in the next call."""
    with subprocess.Popen([PROGRAM, '--task', 'music', '--training', 'full', '--length', '3000', '--units', '6', '--doublings', '3',
                           '--seconds', '1000', '--save', 'growing'], stdout=subprocess.PIPE, text=True) as running:
        while ' rounds ' not in running.stdout.readline():
            assert running.poll() is None, running
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait() == 130, running
    assert stored('growing')['doublings'] == 3, stored('growing')
    assert '3 doublings' in run('--load', 'growing', '--doublings', '3', '--rounds', '1', status=1).stderr
    run('--load', 'growing', '--rounds', '3', '--save', 'midway')  # 0, 1/3, 2/3 of the rounds
    assert stored('midway')['doublings'] == 0
    assert last(run('--load', 'growing', '--save', 'copy')) == last(run('--load', 'copy')) and stored('copy')['doublings'] == 3


def goes_back():
    """Training that has gone back to the best moment goes on with the cut of the text that it went to."""
    how = ['--task', 'anbn', '--lines', '10', '--longest', '200', '--validation-length', '2000', '--slowest', '400', '--training', 'full', '--units', '10',
           '--form', 'quasi_diagonal', '--columns', '16', '--rounds', '60', '--json', '--save', 'strayed']
    returns = json.loads(run(*how).stdout)['returns']
    assert returns > 0 and stored('strayed')['cut'] == returns % 8, (returns, stored('strayed'))
    run('--load', 'strayed', '--save', 'copy')
    assert stored('copy') == stored('strayed')
    more = json.loads(run('--load', 'copy', '--rounds', '1', '--json', '--save', 'more').stdout)
    assert stored('more')['cut'] == (returns + more['returns']) % 8, more


def halves():
    """Minibatches go back at half the rates, seven times in all; then they do not say that they do."""
    run('--task', 'copy', '--noise', '1', '--length', '120', '--validation-length', '2000', '--units', '30', '--natural-rate', '12.8',
        '--seconds', '0', '--save', 'fresh')  # a text that is learned by heart, at any of these rates
    header, data = parts('fresh')
    assert b'\\"cut\\":0' in header, header
    for before in 0, 7:
        craft('halved', header.replace(b'\\"cut\\":0', b'\\"cut\\":%d' % before), data)
        done = run('--load', 'halved', '--rounds', '1500', '--save', 'more')
        times = done.stdout.count('back to the best moment, at half the rates')
        assert f' returns={times}' in done.stdout and stored('more')['cut'] == before + times <= 7, done
        assert times > 0 or before == 7, done
    assert 'at the end of training another text has' in done.stderr, done


def averages():
    """With --average the averages are what is kept; weights and averages go on in a later call as if there had been one."""
    how = ['--task', 'reber', '--length', '2000', '--validation-length', '500', '--units', '6', '--average', '0.9', '--anneal', '1', '--rounds']
    run(*how, '20', '--save', 'whole')
    run(*how, '10', '--save', 'half')
    run('--load', 'half', '--anneal', '1', '--rounds', '10', '--save', 'resumed')
    (_, whole), (_, resumed) = parts('whole'), parts('resumed')
    for name in 'out.W', 'state/last/out.W', 'state/last/net.tau', 'state/average/mean/net.tau', 'state/average/averaged':
        assert whole[tensor('whole', name)] == resumed[tensor('resumed', name)], name
    best, average, weights = (whole[tensor('whole', name)] for name in ('out.W', 'state/average/mean/out.W', 'state/last/out.W'))
    assert best == average != weights  # the last look was the best
    assert last(run('--load', 'whole')) == last(run('--load', 'resumed'))
    assert '--average is 2, expected' in run(*how, '1', '--average', '2', status=1).stderr
    assert 'minibatches alone' in run('--task', 'reber', '--training', 'full', '--average', '0.9', status=1).stderr
    # a file of before has none
    run('--task', 'reber', '--length', '2000', '--rounds', '2', '--save', 'new')
    header, data = parts('new')
    assert b'\\"--average\\":0.0,' in header, header
    craft('old', header.replace(b'\\"--average\\":0.0,', b''), data)
    assert last(run('--load', 'old')) == last(run('--load', 'new'))


def by_rounds():
    """--rounds alone: rates fall over the rounds, whatever the clock says."""
    for share in '1', '0.2':
        run('--task', 'reber', '--length', '2000', '--units', '6', '--metric', 'gradient', '--sgd-rate', '0.5', '--rounds', '20',
            '--anneal', share, '--save', f'rate{share}')
        rate, = struct.unpack('<d', parts(f'rate{share}')[1][tensor(f'rate{share}', 'state/sgd/rate')])
        assert abs(rate - (0.5 if share == '1' else 0.5 * 0.05 / 0.8)) < 1e-12, rate  # the last round begins at 19/20


def curves():
    """The file of --csv goes on with the training, and a call that is refused leaves it as it was."""
    small = ['--task', 'dyck', '--units', '4', '--length', '500']
    run(*small, '--rounds', '3', '--csv', 'curve.csv', '--save', 'curve')
    def rounds():
        with open('curve.csv') as f:
            return [int(line.split(',')[1]) for line in f.read().splitlines()[1:]]
    begun = rounds()
    assert begun and begun[0] == 0, begun
    for more in ['--decay', '1'], ['--edges', '100']:
        run(*small, '--rounds', '3', *more, '--csv', 'curve.csv', status=1)
        assert rounds() == begun, (more, rounds())
    run('--load', 'curve', '--rounds', '5', '--csv', 'curve.csv')
    now = rounds()
    assert now[0] == 0 and now == sorted(set(now)) and now[-1] > begun[-1], (begun, now)
    run(*small, '--rounds', '2', '--csv', 'curve.csv')  # another training begins it anew
    assert rounds()[0] == 0 and rounds()[-1] <= 2, rounds()


def unseen():
    """A symbol that the training text does not have costs what one of its rarest does, and does not lead training astray."""
    draw = random.Random(1)
    letters = ''.join(draw.choices('abc', k=2500))
    strange = ''.join(letter if i % 25 else 'é' for i, letter in enumerate(letters[2000:]))
    for name, content in ('seen', letters[:2000]), ('known', letters[2000:]), ('strange', strange):
        with open(name, 'w') as f:
            f.write(content)
    how = ['--text', 'seen', '--chars', '--units', '6', '--rounds', '300', '--valid']
    known, strange = run(*how, 'known'), run(*how, 'strange')
    assert '(20 unknown)' in strange.stdout and 'returns=0' in strange.stdout, strange
    assert bits(strange) < bits(known) + 1, (known, strange)


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    for test in curves, unseen, starts, of_before, fails_at_the_end, diverges, not_a_number, another_validation_text, another_training_text, other_texts_of_the_task, grows_on, goes_back, halves, averages, by_rounds:
        test()
    os.chdir('/')
print('passed')
