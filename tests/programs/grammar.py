"""Sentences of a small grammar, the same everywhere, in which a word says much about the next."""


def grammar(count, seed=1):
    """The words of each sentence, with their tags."""
    state = seed
    nouns, verbs, places = "cat dog king queen".split(), "sees likes greets".split(), "garden house wood".split()

    def pick(words):
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return words[(state >> 16) % len(words)]

    for _ in range(count):
        yield [("the", "DET"), (pick(nouns), "NOUN"), (pick(verbs), "VERB"), ("the", "DET"), (pick(nouns), "NOUN"),
               ("in", "ADP"), ("the", "DET"), (pick(places), "NOUN")]
