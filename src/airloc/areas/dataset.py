"""Where datasets lie: in the folder that the environment variable AIRLOC_DATA names, or where a person says."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from airloc.errors import AirlocError
from airloc.seeding import stream

VARIABLE = "AIRLOC_DATA"
"""The environment variable that names the folder of all datasets."""


def data_root() -> Path:
    """Give the folder of all datasets."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise AirlocError(f"No data folder is named: {VARIABLE} is not set", f"Set {VARIABLE}, or give --root")
    return Path(named).expanduser()


def dataset_root(root: Path | None, dataset: str) -> Path:
    """Give the folder of a dataset: `root` where given, else the dataset's name under the data folder."""
    return data_root() / dataset if root is None else root.expanduser()


# ---------- Train, validation and test splits: by area as in the paper, or by tile so that no tile is in two of them.
# ~

NAMES = ("train", "val", "test")
"""The splits, in the order in which they are reported."""

SHARES = {"val": 0.15, "test": 0.15}
"""The paper's shares; the rest (70 %) is for training."""


def targets(count: int) -> dict[str, int]:
    """How many of `count` areas each split is to hold.

    >>> targets(1188)
    {'train': 832, 'val': 178, 'test': 178}
    """
    val, test = (round(share * count) for share in SHARES.values())
    return {"train": count - val - test, "val": val, "test": test}


def by_area(count: int, seed: int) -> list[str]:
    """Draw the split of each of `count` areas, in exactly the target numbers.

    Neighbours cut from one tile fall into different splits, as in the paper; see `by_tile` for the alternative.
    """
    wanted = targets(count)
    labels = [name for name in NAMES for _ in range(wanted[name])]
    order = stream(seed, "split by area").permutation(count)
    split = [""] * count
    for label, area in zip(labels, order.tolist(), strict=True):
        split[area] = label
    return split


def by_tile(tiles: Sequence[str], seed: int) -> list[str]:
    """Draw the split of each area, given its tile, so that all areas of a tile share one split.

    Tiles, the largest first and in random order among equals, go one by one to the split that lacks most areas,
    so no split exceeds its target by a whole tile.
    """
    sizes = Counter(tiles)
    order = stream(seed, "split by tile").permutation(sorted(sizes))
    lacking = targets(len(tiles))
    home: dict[str, str] = {}
    for tile in sorted(order.tolist(), key=lambda tile: -sizes[tile]):
        home[tile] = max(NAMES, key=lambda name: lacking[name])
        lacking[home[tile]] -= sizes[tile]
    return [home[tile] for tile in tiles]
