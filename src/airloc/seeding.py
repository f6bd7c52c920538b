"""Named random streams: the same seed and names give the same numbers, on every machine.

Each consumer asks for its own stream by name, so that adding one never shifts the numbers of another:

>>> stream(0, "suite", "masa").integers(100) == stream(0, "suite", "masa").integers(100)
np.True_
"""

import hashlib

import numpy as np


def derive(seed: int, *names: str | int) -> int:
    """Give the 63-bit seed of the stream called `names` under `seed`."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Give the NumPy generator called `names` under `seed`."""
    return np.random.default_rng(derive(seed, *names))
