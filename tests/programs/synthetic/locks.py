"""A training of synthetic holds a lock beside its model and its learning curve: a second one for either is refused and changes nothing."""
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
SMALL = ['--task', 'reber', '--length', '2000', '--units', '6']


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *SMALL, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, (arguments, done)
    return done


def content(path):
    with open(path, 'rb') as f:
        return f.read()


def refused():
    """By the lock of another program on either file."""
    outputs = ['--save', 'model', '--csv', 'curve.csv']
    run('--rounds', '3', *outputs)
    assert sorted(os.listdir('.')) == ['curve.csv', 'model'], os.listdir('.')
    before = content('model'), content('curve.csv')
    for option, path in ('--save', 'model'), ('--csv', 'curve.csv'):
        with open(path + '.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = run('--rounds', '3', *outputs, status=1)
            assert f"another program is writing '{path}'" in done.stderr and f'give {option} another name' in done.stderr, done
            assert done.stdout == '', done
            run('--rounds', '3')  # without these files
        os.remove(path + '.lock')
        assert (content('model'), content('curve.csv')) == before
    with open('model.lock', 'w') as own:
        own.write('my own\n')
    done = run('--rounds', '3', *outputs, status=1)
    assert "'model.lock' already exists" in done.stderr and content('model.lock') == b'my own\n', done
    os.remove('model.lock')
    evaluated = subprocess.run([PROGRAM, '--load', 'model'], capture_output=True, text=True, timeout=120, check=False)
    assert evaluated.returncode == 0 and sorted(os.listdir('.')) == ['curve.csv', 'model'], evaluated


def at_once():
    """By a training that runs, until it has ended."""
    with subprocess.Popen([PROGRAM, *SMALL, '--seconds', '100', '--csv', 'curve.csv'], stdout=subprocess.DEVNULL) as training:
        try:
            begin = time.monotonic()
            while not os.path.exists('curve.csv.lock'):
                assert time.monotonic() < begin + 60 and training.poll() is None, 'no lock'
                time.sleep(0.01)
            assert "another program is writing 'curve.csv'" in run('--rounds', '3', '--csv', 'curve.csv', status=1).stderr
        finally:
            training.send_signal(signal.SIGTERM)
            training.wait(timeout=60)
    assert not os.path.exists('curve.csv.lock')
    run('--rounds', '3', '--csv', 'curve.csv')


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    refused()
    at_once()
    os.chdir('/')
print('passed')
