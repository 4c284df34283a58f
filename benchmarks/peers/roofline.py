"""Where the time of a training step goes: what share of it are matrix products, how near the peak they run, and what the rest is.

    python3 benchmarks/peers/roofline.py build/release/benchmarks [--csv FILE]

The share of the multiply-add peak that a step reaches is measured by the benchmark `step`, the shares of its functions by `perf record` on
peer_isogloss: one thread, exact gradients, in float and, where the processor has it, in bfloat16. Products near their peak bound the step by
computing; what has no products is bound by memory, or by exponentials. perf is in Debian's package linux-perf.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from compare import versions
from inputs import require_place, require_programs, write_csv

KINDS = {  # the first that matches the name of a function
    'products': r'gemm_kernel|MicroKernel<.*::run|Bf16Gemm::multiply|Bf16Micro::|Packed<.*multiply|SkinnyGemm|gemv',
    'packing and rounding': r'copy_|gemm_beta|pack|transpose|Bf16Tiles|Bf16Gemm::product|Square<',
    'exponentials and logits': r'exp|softmax|Softmax|row_max|CrossEntropy|AugmentedLoss|two_temperatures',
    'gates': r'LstmRows|lstm_',
    'update and clipping': r'Sgd|sum_of_squares|first_non_finite|for_each_range|scale',
}
REST = 'the rest'
LOSSES = {'ce': 'cross-entropy', 'al': 'augmented loss'}


def shares(program, row, setting):
    """The share of each kind of function in the time of a row of peer_isogloss, without the first seconds, which make it."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, 'perf.data')
        subprocess.run(['perf', 'record', '-q', '-F', '997', '-e', 'cpu-clock', '-D', '3000', '-o', data, program, '1', setting],
                       input=f'{row}\n' * 50, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True)
        printed = subprocess.run(['perf', 'report', '-i', data, '--stdio', '--sort', 'symbol', '-q'], capture_output=True, text=True,
                                 check=True).stdout
    found = dict.fromkeys([*KINDS, REST], 0.0)
    for share, name in re.findall(r'^ *([0-9.]+)% +\[.\] (.*)$', printed, re.M):
        found[next((kind for kind, names in KINDS.items() if re.search(names, name)), REST)] += float(share) / 100
    found[REST] += 1 - sum(found.values())  # of the system, and what perf leaves out
    return found


def peak(program, name):
    """The share of the peak, that of float, which a row of the benchmark step reaches; None if it is left out here."""
    printed = subprocess.run([program, '--threads=1', f'--benchmark_filter=^step/{name}', '--benchmark_format=json'], capture_output=True,
                             text=True, check=True).stdout
    rows = json.loads(printed[printed.index('{'):])['benchmarks'] if '{' in printed else []
    return rows[0]['peak'] if rows else None


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--csv', help='write the numbers to this file')
    options = parser.parse_args()
    step, peer = (os.path.join(options.build, name) for name in ('step', 'peer_isogloss'))
    require_programs(step, peer, shutil.which('perf') or 'perf')
    require_place(options.csv)
    os.environ.update(OMP_NUM_THREADS='1')
    for name in 'OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE':
        os.environ.pop(name, None)
    numbers = []
    for setting, ending, column in ('full', '', 'float'), ('automatic', '/bf16', 'bfloat16'):
        for loss, says in LOSSES.items():
            for width in 200, 650:
                reached = peak(step, f'{loss}/width:{width}{ending}/min_time')
                if reached is None:
                    continue
                found = shares(peer, f'step/{loss}/{width}/10000/35/20', setting)
                row = f'{says} | {column}, width {width}'
                values = {'products: share of the time': found['products'], 'their share of the peak': reached / found['products'],
                          **{kind: share for kind, share in found.items() if kind != 'products'}}
                numbers += [('step | computed', row, kind, f'{value:.2f}') for kind, value in values.items()]
                print(row + ': ' + ', '.join(f'{kind} {value:.2f}' for kind, value in values.items()), flush=True)
    if options.csv:
        about = subprocess.run([peer, '1', 'full'], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
        write_csv(options.csv, numbers, 1, versions([], [line[2:] for line in about.splitlines()]))
    return 0


if __name__ == '__main__':
    sys.exit(main())
