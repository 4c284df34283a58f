"""A text as long as wanted, in bounded memory: python3 zipf_text.py TOKENS TYPES [SEED] > text

Words are as frequent as in a text: rank r has a probability of about 1 / (r + 10). Every second word is one of twenty that the word
before it decides, so that pairs repeat. Lines have 20 words. For counting texts that are larger than the memory, see
docs/lds/spilled_counts.md.
"""

import itertools
import random
import sys

if not 3 <= len(sys.argv) <= 4 or not all(a.isdigit() for a in sys.argv[1:]) or int(sys.argv[2]) < 1:
    sys.exit("usage: zipf_text.py TOKENS TYPES [SEED], all of them whole numbers")
tokens, types = int(sys.argv[1]), int(sys.argv[2])
dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
words = [f"w{i}" for i in range(types)]
ranks = range(types)
cumulative = list(itertools.accumulate(1 / (r + 10) for r in ranks))
while tokens > 0:
    pairs = min(tokens + 1, 200_000) // 2
    line = []
    for first, step in zip(dice.choices(ranks, cum_weights=cumulative, k=pairs), dice.choices(range(20), k=pairs)):
        line.append(words[first])
        line.append(words[(7 * first + step) % types])
    line = line[:tokens]
    tokens -= len(line)
    sys.stdout.write("".join(" ".join(line[i:i + 20]) + "\n" for i in range(0, len(line), 20)))
