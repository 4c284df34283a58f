"""A hidden semi-Markov source: three states that last 3 to 8 symbols each, all durations equally likely, and go over to either of the
others. A state is never seen; it draws the five letters with probabilities of its own."""
import math
import random

LETTERS = 'abcde'
EMITS = [[0.8, 0.1, 0.04, 0.03, 0.03], [0.03, 0.8, 0.1, 0.04, 0.03], [0.03, 0.03, 0.04, 0.1, 0.8]]
SHORTEST, LONGEST = 3, 8


def draw(length, seed):
    """A text of so many letters."""
    dice = random.Random(seed)
    state, text = dice.randrange(3), []
    while len(text) < length:
        text += dice.choices(LETTERS, EMITS[state], k=dice.randint(SHORTEST, LONGEST))
        state = (state + dice.randint(1, 2)) % 3
    return ''.join(text[:length])


def bits(text):
    """Bits per letter, after the first, of a text under the source itself, which is not told the states: by the forward recursion over
    states and the symbols that they still last."""
    durations = LONGEST - SHORTEST + 1
    # p[s][k]: state s, of which k more symbols follow the current one
    p = [[1 / 3 / durations if k >= SHORTEST - 1 else 0 for k in range(LONGEST)] for _ in range(3)]
    total = 0
    for t, letter in enumerate(text):
        v = LETTERS.index(letter)
        if t:
            ends = [p[s][0] for s in range(3)]
            enters = [(sum(ends) - ends[s]) / 2 / durations for s in range(3)]
            p = [[(p[s][k + 1] if k + 1 < LONGEST else 0) + (enters[s] if k >= SHORTEST - 1 else 0) for k in range(LONGEST)] for s in range(3)]
        p = [[x * EMITS[s][v] for x in p[s]] for s in range(3)]
        q = sum(map(sum, p))
        if t:
            total -= math.log2(q)
        p = [[x / q for x in row] for row in p]
    return total / (len(text) - 1)
