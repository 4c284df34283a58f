"""What synthetic refuses: options without effect, numbers out of range, texts that are too long or too short."""
import subprocess
import sys

PROGRAM = sys.argv[1]


def refused(call, *said, stdin=None):
    done = subprocess.run([PROGRAM, *call.split()], capture_output=True, text=True, timeout=120, check=False, input=stdin)
    assert done.returncode != 0 and all(s in done.stderr + done.stdout for s in said), (call, said, done)


FULL = '--training full'
LSTM = '--network lstm'
HMM = '--network hmm'
for call, option in [(LSTM, '--edges 2'), (HMM, '--edges 2'), (LSTM, '--bound 4'), (HMM, '--pull 1'), (LSTM, '--activation tanh'), (HMM, '--slowest 9'),
                     (LSTM, FULL), (HMM, FULL), (HMM, '--metric ruop'), (HMM, '--form full'), (HMM, '--steps 20'), (HMM, '--anneal 1'),
                     ('', '--doublings 3'), ('', '--conjugate'), ('', '--start-rate 1'), ('', '--up 2'), ('', '--down 2'), ('', '--damping 1'),
                     (LSTM, '--decay 0.9'), (FULL, '--steps 20'), (FULL, '--lasting 2'), (FULL, '--anneal 1'), (FULL, '--natural-rate 1'),
                     (FULL, '--adam-rate 1'), ('--metric gradient', '--form full'), (f'--metric gradient {FULL}', '--damping 1'),
                     ('--metric gradient', '--natural-floor 1'), ('--metric gradient', '--head-rate 1'), ('', '--sgd-rate 1'), ('', '--adam-rate 1'),
                     ('--metric gradient --sgd-rate 1', '--adam-rate 1'), ('--task anbn', '--bits 5'), ('', '--validation-longest 9'),
                     ('--task copy', '--depth 5'), ('--task dyck', '--lag 5'), ('--task xor', '--insert-digits 0.1'), ('', '--min-count 2'),
                     ('', '--beside curve.csv'), ('', '--overwrite')]:
    refused(f'--seconds 0 {call} {option}', f'{option.split()[0]} is given, but it applies to', 'leave')
for option in '--save model', '--seconds 5', '--units 9', '--metric rbpm', '--rounds 5', '--sample 5', '--network lstm':
    refused(f'--write /nonexistent/text {option}', f'{option.split()[0]} is given, but --write only writes the texts of a task',
            f'leave {option.split()[0]} out')
refused('--rounds 5 --seconds 0', '--rounds is 5', 'leave --seconds out')
refused('--seconds inf', 'seconds = inf')

for call, options in {'': ['--natural-rate', '--head-rate', '--natural-damping', '--pull', '--slowest'],
                      '--metric gradient': ['--sgd-rate', '--adam-rate'], FULL: ['--start-rate', '--pull']}.items():
    for option in options:
        for value in 'nan', 'inf', '-3':
            refused(f'--seconds 0 {call} {option} {value}', f'{option} is {value}, expected a finite number of at least 0')
for option in '--natural-floor', '--bound':
    for value in 'nan', 'inf', '-7':
        refused(f'--seconds 0 {option} {value}', f'{option} is {value}, expected a finite number of at least 0, or -1')

refused('--task anbn --length 1000 --longest 1000000000000', 'longest ≤ 1000000')
refused('--task anbn --length 1000 --validation-longest 1000000000000', 'longest ≤ 1000000')
refused('--task xor --length 1000 --bits 1000000000000', 'bits = 1000000000000', '1000000')
refused('--task dyck --length 1000 --depth 1000000000000', 'depth = 1000000000000', '1000000')
refused('--length 1000000000', 'length = 1000000000', '100000000')
refused('--lines 2147483648', 'lines = 2147483648', '100000000')
refused('--sample 1000000000', 'sample = 1000000000')
# the training text is read twice
refused('--text /dev/stdin --valid /dev/null --seconds 0.3', "'/dev/stdin' is not a regular file, but its text is read twice; write it to a file",
        stdin='abcab' * 400)
# as many columns as leave each two symbols
few = subprocess.run([PROGRAM, *HMM.split(), '--columns', '2000000000', '--length', '1000', '--units', '3', '--rounds', '1'],
                     capture_output=True, text=True, timeout=120, check=False)
assert few.returncode == 0 and 'validation_bits' in few.stdout, few

refused('--task copy --lines 1', 'training text: found 1 symbols', 'longer by --lines')
refused('--task xor --answer-only --length 5', 'training text: found 5 symbols, of which 0', 'longer by --length')
refused('--task xor --answer-only --length 1000 --validation-length 3', 'validation text: found 3 symbols, of which 0', '--validation-length')
print('passed')
