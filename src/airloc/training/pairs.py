"""Pairs of pictures to train on: the same ground before and after a disaster, on real and on procedural areas."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from airloc.areas.area import Pixels, SearchArea
from airloc.areas.folder import read_area
from airloc.areas.pairs import pair_up
from airloc.areas.synthetic import DISASTERS, generate
from airloc.errors import AirlocError
from airloc.training.atlas import Atlas
from airloc.training.data import CHUNK, SYNTHETIC_FIRST, SYNTHETIC_SIDE_M, Scales, rescaled, terms_of

METRES_PER_PX = 2.0
STRUCK_FIRST = SYNTHETIC_FIRST + 100_000_000
"""First world number of the procedural pairs."""


@dataclass(frozen=True)
class Pairs:
    """Where pairs come from."""

    pairs: Path | None = None
    """Folder of pictures named ..._pre_disaster and ..._post_disaster."""
    pairs_only: str = "*"
    """Pattern of the file names of pairs to use, such as 'hurricane-michael_*'."""
    struck: int = 0
    """Number of procedural areas that are used as they were before and after a disaster."""
    pairs_share: float = 0.15
    """How often areas are drawn from pairs, where there are some."""

    def __post_init__(self) -> None:
        if not 0 <= self.pairs_share < 1:
            problem = f"A share of {self.pairs_share} areas from pairs leaves none of the other pictures"
            raise AirlocError(problem, "Give --pairs-share 0 or more, and less than 1")

    @property
    def terms(self) -> str:
        """The terms that weights trained on the pairs are under; empty where none are known."""
        return "" if self.pairs is None else terms_of([self.pairs])


def load_pairs(source: Pairs, smallest: int, device: torch.device, scales: Scales) -> Atlas | None:
    """Lay all pairs of at least `smallest` px out on the device, at several scales; nothing where there are none."""
    pictures = [picture for pair in _areas(source) for picture in _paired(*pair, smallest, scales)]
    if not pictures:
        return None
    weights = [float((side[0] - smallest + 1) * (side[1] - smallest + 1)) for side in (p.shape for p in pictures)]
    return Atlas.of(pictures, weights, device)


def _areas(source: Pairs) -> list[tuple[SearchArea, SearchArea]]:
    """Every pair that is asked for, before and after."""
    found: list[tuple[SearchArea, SearchArea]] = []
    if source.pairs is not None:
        if not source.pairs.is_dir():
            raise AirlocError(f"There is no folder of pairs {source.pairs}", "Check the path, or leave --pairs out")
        named = [pair for pair in pair_up(source.pairs) if fnmatchcase(pair[0].name, source.pairs_only)]
        if not named:
            problem = f"The folder {source.pairs} holds no pair called like {source.pairs_only!r}"
            raise AirlocError(problem, "Give pictures named ..._pre_disaster and ..._post_disaster, or --pairs-only")
        with ThreadPoolExecutor() as pool:
            found += pool.map(lambda pair: (read_area(pair[0]), read_area(pair[1])), named)
    return found + _procedural_pairs(source.struck)


def _procedural_pairs(count: int) -> list[tuple[SearchArea, SearchArea]]:
    seeds = range(STRUCK_FIRST, STRUCK_FIRST + count)
    if count <= CHUNK:
        return [_procedural(seed) for seed in seeds]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        return list(pool.map(_procedural, seeds, chunksize=CHUNK // 2))


def _procedural(seed: int) -> tuple[SearchArea, SearchArea]:
    """One area before and after one of the disasters, like pictures whose ground size is not known."""
    side = round(SYNTHETIC_SIDE_M / METRES_PER_PX)
    disaster = DISASTERS[seed % len(DISASTERS)]
    before, after = (generate(seed, (side, side), METRES_PER_PX, disaster=kind) for kind in (None, disaster))
    return replace(before, ground_m=None), replace(after, ground_m=None)


def _paired(before: SearchArea, after: SearchArea, smallest: int, scales: Scales) -> Iterator[Pixels]:
    """A pair at every scale at which it is large enough, (H, W, 6)."""
    if before.image.shape != after.image.shape:
        problem = f"The pictures {before.name} and {after.name} of a pair differ in size"
        raise AirlocError(problem, "Cut both to the same ground and size")
    for (first, _), (second, _) in zip(
        rescaled(before, smallest, scales), rescaled(after, smallest, scales), strict=True
    ):
        yield np.concatenate([first, second], axis=2)
