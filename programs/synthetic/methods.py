"""The contents of the tables of table.py: tasks, methods and parts by name, each with its options for the program."""
# Options of the texts, common to all methods: table.py writes the texts with these alone.
TASKS = {
    'alphabet': '--task alphabet --length 100000 --validation-length 50000',
    'music': '--task music --length 100000 --validation-length 50000',
    'anbn': '--task anbn --lines 10 --longest 1000 --validation-length 100000',
    'xor, L = 10, answer': '--task xor --answer-only --bits 10 --lines 2000 --validation-length 15000',
}
# Those of networks on graphs alone; the program refuses options without effect.
GRAPHS = {'alphabet': '', 'music': '--edges 20', 'anbn': '--units 10 --slowest 2000', 'xor, L = 10, answer': '--units 10 --edges 10'}
# The whole text as one sequence, with line search.
SEQUENCE = '--training full --columns 1 --bound 0'
FULL = f'{SEQUENCE} --form quasi_diagonal'
# Distant xor at increasing distances, by GLNN with RUOP only: lines and seconds for each.
XOR = f'{FULL} --task xor --units 10 --edges 10 --metric ruop --validation-length 50000'
CURVE = {
    'L = 10': '--answer-only --bits 10 --lines 2000',
    'L = 20': '--answer-only --bits 20 --lines 2000',
    'L = 50': '--answer-only --bits 50 --lines 2000',
    'L = 100': '--answer-only --bits 100 --lines 2000',
    'L = 10, every symbol': '--bits 10 --lines 2000',
}
CURVE_SECONDS = {'L = 10': 12, 'L = 20': 30, 'L = 50': 40, 'L = 100': 60, 'L = 10, every symbol': 40}
CURVE_METHODS = {'xor, lines of L bits': '', 'xor, lines of 2 to L bits': '--training-bits-from 2'}
# Networks on graphs by full batches, from the whole text and from a growing one. A name is that of one row of the results, and of none in STEPS_METHODS.
GROWING = '--conjugate --up 1.3 --doublings 3'
METHODS = {
    'GLNN, RUOP': f'--network glnn --metric ruop {FULL}',
    'GLNN, RBPM': f'--network glnn --metric rbpm {FULL}',
    'GLNN, gradient, one sequence': f'--network glnn --metric gradient {SEQUENCE}',
    'GLNN, RUOP, growing': f'--network glnn --metric ruop {FULL} {GROWING}',
    'GLNN, RBPM, growing': f'--network glnn --metric rbpm {FULL} {GROWING}',
    'GLNN, gradient, growing': f'--network glnn --metric gradient {SEQUENCE} {GROWING}',
    'GNN, RUOP': f'--network gnn --metric ruop {FULL}',
    'RNN, RUOP': f'--network rnn --metric ruop {FULL}',
    'RNN, gradient': f'--network rnn --metric gradient {SEQUENCE}',
}
# Every method with the program's default training: 16 columns (full batches: at most a third of the lines), the full form for graphs with few edges.
STEPS = 'minibatch'
SOURCES = {
    **TASKS,
    'reber': '--task reber --length 100000 --validation-length 50000',
    'dyck': '--task dyck --length 100000 --validation-length 50000',
    'copy': '--task copy --length 100000 --validation-length 50000',
}
# Sizes by task: on minibatches larger networks learn texts of 100 000 symbols by heart in this time.
SMALLER = {'alphabet': '--units 12', 'music': '--units 10 --edges 6', 'reber': '--units 6', 'dyck': '--units 6 --edges 6'}
# Predictions from averages of the weights, of networks on minibatches.
AVERAGED = {'music': '--average 0.999'}
# Methods that learn worse with so few units on music, or memorise more with 10 on xor, or that dyck was not chosen for: other
# sizes, and no averages.
OWN = {
    '--network gnn': {'music': '--units 12 --edges 5', 'dyck': ''},
    '--network rnn': {'music': '--units 12 --edges 5', 'dyck': '', 'xor, L = 10, answer': '--units 8 --edges 8'},
    '--sgd-rate': {'music': '--units 12 --edges 5', 'dyck': ''},
}


def own(how):
    """The sizes of a method that has other ones than the rest."""
    return next((sizes for name, sizes in OWN.items() if name in how), {})


def steps_graph(task, how):
    """The options of a network on a graph. V is within ± 4 except on anbn, where V is the counter."""
    sizes = GRAPHS if '--training full' in how else {**GRAPHS, **SMALLER, **own(how)}
    return f"{sizes.get(task, '')} --bound {0 if task == 'anbn' else 4}"


def averaged(task, how):
    """The options of averages for a task and a method."""
    return '' if '--training full' in how or '--network hmm' in how or own(how) else AVERAGED.get(task, '')


# In the order of the runs: minibatches of a GLNN and its peers, full batches, other networks.
STEPS_METHODS = {
    'GLNN, RUOP, full form': '--metric ruop --form full',
    'GLNN, RUOP, quasi-diagonal': '--metric ruop --form quasi_diagonal',
    'GLNN, RBPM, full form': '--metric rbpm --form full',
    'GLNN, RBPM, quasi-diagonal': '--metric rbpm --form quasi_diagonal',
    'GLNN, Adam': '--metric gradient',
    'GLNN, gradient': '--metric gradient --sgd-rate 1',
    'LSTM 64, Adam': '--network lstm --metric gradient --units 64',
    'GLNN, gradient, full batches': '--metric gradient --training full',
    'GLNN, RUOP, full form, full batches': '--metric ruop --form full --training full',
    'GLNN, RBPM, full form, full batches': '--metric rbpm --form full --training full',
    'LSTM 64, RUOP': '--network lstm --metric ruop --units 64',
    'GNN, RUOP, full form': '--network gnn --metric ruop --form full',
    'RNN, RUOP, full form': '--network rnn --metric ruop --form full',
    'HMM, 20 states': '--network hmm --units 20 --starts 3',
    'HMM, 50 states': '--network hmm --units 50 --starts 3',
    'GLNN, RUOP, quasi-diagonal, full batches': '--metric ruop --form quasi_diagonal --training full',
    'GLNN, RBPM, quasi-diagonal, full batches': '--metric rbpm --form quasi_diagonal --training full',
}
SOURCE = 'the source itself'
# One row with more time, with the best options for each task. On ten lines of anbn much depends on the start.
LONG = 'GLNN, longer'
LONG_RUNS = {
    'alphabet': f'{FULL} --metric ruop --conjugate --up 1.3 --length 200000 --doublings 3',
    'music': f'{FULL} --metric ruop --conjugate --up 1.3 --length 200000 --doublings 4',
    'anbn': f'{FULL} --metric rbpm --damping 0.1 --starts 8 --validation-longest 2000',
    'xor, L = 10, answer': f'{FULL} --metric ruop',
}

# Sources at a length that makes them hard, one row each: ten lines of anbn with n in the thousands, and xor of 100 bits
# with every symbol predicted, in segments longer than a line. Several calls share the time; each goes on with harder texts.
FAR = {
    'anbn, thousands': {
        'GLNN, RBPM, full form, full batches': '--task anbn --training full --columns 1 --form full --metric rbpm --units 10 --slowest 5000 --damping 0.1 '
                                               '--starts 8 --lines 10 --shortest 1000 --longest 3000 --validation-length 200000',
    },
    'xor, L = 100, every symbol': {
        'GLNN, RUOP, quasi-diagonal, from 20 bits': [
            '--task xor --bits 20 --training-bits-from 2 --lines 5000 --units 10 --edges 10 --steps 400 --validation-length 50000',
            '--bits 100 --lines 2000',
        ],
    },
}
FAR_TIME = {'anbn, thousands': 1, 'xor, L = 100, every symbol': 0.3}  # of the seconds of --far
# One setting for every source, as Ollivier claims one suffices: this graph, the default start values, and no other option; a row is a method.
ONE = 'one setting'
ONE_GRAPH = '--units 20 --edges 3'
ONE_METHODS = {
    f'{title}, {rule}{batches}': f'--network {network} {how} {training}'
    for batches, training, gradient in ((', full batches', '--training full --columns 1', ''), (', minibatches', '', ' --sgd-rate 1'))
    for title, network, rule, how in (('GLNN 20', 'glnn', 'RUOP', '--metric ruop'), ('GLNN 20', 'glnn', 'gradient', f'--metric gradient{gradient}'),
                                      ('leaky 20', 'leaky', 'RUOP', '--metric ruop'), ('GNN 20', 'gnn', 'gradient', f'--metric gradient{gradient}'),
                                      ('RNN 20', 'rnn', 'gradient', f'--metric gradient{gradient}'))
}
# A source whose states are hidden and last (durations.py): how many edges a unit needs.
HIDDEN = 'hidden durations'
HIDDEN_METHODS = {
    **{f'GLNN 20, {edges} edges, RUOP': f'--network glnn --metric ruop --units 20 --edges {edges}' for edges in (3, 6, 20)},
    'LSTM 64, Adam': '--network lstm --metric gradient --units 64',
}
# Characters of a text.
CHARS = 'chars'
CHARS_METHODS = {
    'GLNN 200, RUOP': '--network glnn --metric ruop --units 200 --edges 5',
    'LSTM 128, Adam': '--network lstm --metric gradient --units 128',
    'LSTM 128, RUOP': '--network lstm --metric ruop --units 128',
}
