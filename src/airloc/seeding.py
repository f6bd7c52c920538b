"""Named random streams: the same seed and names give the same numbers on every machine.

Each consumer uses a stream of its own, so that a new consumer does not change the numbers of the others:

>>> stream(0, "suite", "masa").integers(100) == stream(0, "suite", "masa").integers(100)
np.True_
"""

import hashlib

import numpy as np


def derive(seed: int, *names: str | int) -> int:
    """Return the 63-bit seed of the stream with these names."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the NumPy generator of the stream with these names."""
    return np.random.default_rng(derive(seed, *names))
