"""What is trained on: folders of pictures and procedural areas, laid out on the device.

A data folder holds either pictures, or one folder a set (`masa`, `naip`, `austin`, ...), each with pictures or with
`images/` and an index. Pictures of known ground size (windows.csv) are resampled so that a cell is 70 to 130 m wide,
around the 100 m of the paper; others are used at their own resolution and at coarser ones. For cross-validation a fold
of the tiles is left out of training and checked on instead of the split `val`.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from airloc.areas.area import Mask, Pixels, SearchArea, fit
from airloc.areas.cutting import crop_ground
from airloc.areas.folder import read_area
from airloc.areas.pictures import SUFFIXES, list_pictures
from airloc.areas.synthetic import generate
from airloc.areas.windows import Window, read_windows
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.atlas import Atlas, resample
from airloc.training.folds import leave_out

CELL_METRES = 100.0
SYNTHETIC_SIDE_M = 640.0
SYNTHETIC_FIRST = 500_000_000
"""First world number of the procedural areas that are trained on; evaluation draws its worlds far below."""
CHECKED = 40
"""Number of procedural areas that training is checked on where there is nothing better."""
TERMS: dict[str, str] = {
    "deepglobe": "the terms of DeepGlobe 2018 (research only)",
    "xbd": "CC BY-NC-SA 4.0",
}
"""Terms that weights trained on a set are under, by its folder's name; of the other sets that are known, none."""
CHUNK = 20
"""Procedural areas that a process makes at a time; so few are made without starting any."""


@dataclass(frozen=True)
class Data:
    """Where training pictures come from."""

    root: Path | None = None
    """Folder of pictures, or of one folder a set; without it procedural areas alone."""
    sets: tuple[str, ...] = ("masa", "naip", "austin")
    """Sets to use, by folder name; those that are absent are passed over."""
    weights: tuple[float, ...] = (5.0, 3.0, 1.0)
    """How often each set is drawn from."""
    split: str = "train"
    """Split to train on, where an index names splits."""
    only: str = "*"
    """Pattern of the file names to use, such as 'hurricane-michael_*_pre_disaster*'; the others are not read."""
    synthetic: int = 1500
    """Number of procedural areas."""
    synthetic_weight: float = 1.0
    """How often procedural areas are drawn from."""
    fold: int | None = None
    """Number of the fold to leave out and to check on, from 0: of the tiles of sets whose index names splits or, where
    none does, of all pictures. Without it the index's splits count."""
    folds: int = 4
    """Folds that tiles or pictures are dealt into where one is left out."""

    def __post_init__(self) -> None:
        if self.fold is not None and (self.folds < 2 or not 0 <= self.fold < self.folds):
            problem = f"There is no fold {self.fold} among {self.folds}"
            raise AirlocError(problem, "Give --folds 2 or more, and with --fold a number below it, from 0")


@dataclass(frozen=True)
class Scales:
    """Scales that pictures are resampled to."""

    known: tuple[float, ...] = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
    """Cell widths, as shares of 100 m, of pictures of known ground size."""
    unknown: tuple[float, ...] = (1.0, 0.75, 0.5, 0.35)
    """Resolutions of other pictures, as shares of their own."""


def load_atlas(
    data: Data, smallest: int, device: torch.device, *, masks: bool = False, scales: Scales | None = None
) -> Atlas:
    """Lay all training pictures of at least `smallest` px out on the device.

    Args:
        data: Where they come from.
        smallest: The side of the square to be cut from them.
        device: Where they are kept.
        masks: Keep only pictures with building masks, and lay the masks out too.
        scales: Scales that pictures are resampled to.
    """
    ladder = scales or Scales()
    pictures: list[Pixels] = []
    marks: list[Mask] = []
    weights: list[float] = []
    for weight, areas in _all_sets(data):
        with ThreadPoolExecutor() as pool:
            scaled = pool.map(lambda area: list(rescaled(area, smallest, ladder)), areas)
            found = [entry for entries in scaled for entry in entries if not masks or entry[1] is not None]
        room = [(p.shape[0] - smallest + 1) * (p.shape[1] - smallest + 1) for p, _ in found]
        weights += [weight * places / sum(room) for places in room]
        pictures += [picture for picture, _ in found]
        marks += [mask for _, mask in found if mask is not None] if masks else []
    if masks and not pictures:
        raise AirlocError(
            "None of the training pictures has a building mask",
            "Name the masks in windows.csv, or add procedural areas with --synthetic 500",
        )
    return Atlas.of(pictures, weights, device, marks)


def validation_areas(data: Data, grid: Grid) -> list[SearchArea]:
    """The areas that training is checked on: the fold left out, or the split `val`, else unseen procedural ones."""
    areas = [fit(_crop(area, grid) or area, grid) for area in _checked(data)]
    if not areas and data.fold is not None:
        problem = f"There are no tiles to leave out as the fold {data.fold}"
        raise AirlocError(problem, "Give --root with more pictures than folds, or leave --fold out")
    return areas or _unseen(grid)


def large_validation_areas(data: Data, grid: Grid) -> list[SearchArea]:
    """Those of the pictures that training is checked on whose ground is known to hold a larger grid at 100 m a cell."""
    return [fit(cropped, grid) for area in _checked(data) if (cropped := _crop(area, grid)) is not None]


def _checked(data: Data) -> list[SearchArea]:
    return [area for areas in _read(data, "val").values() for area in areas]


def _crop(area: SearchArea, grid: Grid) -> SearchArea | None:
    return crop_ground(area, (grid.rows * CELL_METRES, grid.cols * CELL_METRES))


@lru_cache(maxsize=1)
def _unseen(grid: Grid) -> list[SearchArea]:
    """Procedural areas that are not trained on, kept for the next unit."""
    seeds = range(SYNTHETIC_FIRST - CHECKED, SYNTHETIC_FIRST)
    return [generate(seed, size=grid.size, metres_per_px=CELL_METRES / grid.pitch) for seed in seeds]


@lru_cache(maxsize=1)
def _all_sets(data: Data) -> list[tuple[float, list[SearchArea]]]:
    """All sets, kept for the next unit that is trained on the same data."""
    return list(_sets(data))


def _sets(data: Data) -> Iterator[tuple[float, list[SearchArea]]]:
    """Every set of areas with its weight."""
    found = {folder: areas for folder, areas in _read(data, data.split).items() if areas}
    named = dict(zip(data.sets, data.weights, strict=True))
    for folder, areas in found.items():
        yield named.get(_set_name(folder), 1.0), areas
    if data.root and not found:
        called = "" if data.only == "*" else f"is called like {data.only!r} and "
        raise AirlocError(
            f"No picture of the data folder {data.root} {called}is in the split {data.split!r}",
            "Name another split with --split or other files with --only, or mend the splits in windows.csv",
        )
    if data.synthetic > 0:
        yield data.synthetic_weight, _procedural_areas(data.synthetic)


def terms(data: Data) -> str:
    """The terms that weights trained on the data are under, where it is known to have some; else empty."""
    return terms_of(_folders(data))


def terms_of(folders: Iterable[Path]) -> str:
    """The terms that come with the pictures of folders, where they are known to have some; else empty."""
    return " and ".join(sorted({TERMS[name] for name in map(_set_name, folders) if name in TERMS}))


def _set_name(folder: Path) -> str:
    return folder.parent.name if folder.name == "images" else folder.name


def _procedural_areas(count: int) -> list[SearchArea]:
    seeds = range(SYNTHETIC_FIRST, SYNTHETIC_FIRST + count)
    if count <= CHUNK:
        return [_procedural(seed) for seed in seeds]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        return list(pool.map(_procedural, seeds, chunksize=CHUNK))


def _procedural(seed: int) -> SearchArea:
    """One area, used at several scales like a picture whose ground size is not known."""
    side = round(SYNTHETIC_SIDE_M / 2)
    return replace(generate(seed, (side, side), metres_per_px=2.0), ground_m=None)


def _folders(data: Data) -> list[Path]:
    """The folders of pictures that the data stands for."""
    if len(data.sets) != len(data.weights):
        raise AirlocError(
            f"There are {len(data.sets)} sets ({', '.join(data.sets)}) and {len(data.weights)} weights",
            "Give as many numbers with --weights as names with --sets",
        )
    if data.root is None:
        return []
    if not data.root.is_dir():
        raise AirlocError(
            f"There is no data folder {data.root}", "Check the path, or leave it out for procedural areas"
        )
    places = [data.root] + [data.root / name for name in data.sets]
    places = [place / "images" if (place / "images").is_dir() else place for place in places]
    found = [place for place in places if place.is_dir() and any(p.suffix.lower() in SUFFIXES for p in place.iterdir())]
    if not found:
        raise AirlocError(
            f"The data folder {data.root} holds neither pictures nor a set named {', '.join(data.sets)}",
            "Put pictures in it, or name its sets with --sets and --weights",
        )
    return found


def _read(data: Data, split: str) -> dict[Path, list[SearchArea]]:
    """Read the areas that are in a split, by folder; without an index all are for training."""
    indexes = {folder: read_windows(folder) for folder in _folders(data)}
    with_splits = {folder for folder, windows in indexes.items() if any(w.split for w in windows.values())}
    found = {}
    for folder, windows in indexes.items():
        pictures = [path for path in list_pictures(folder) if fnmatchcase(path.name, data.only)]
        split_of = {path.name: windows.get(path.name, Window()).split or "train" for path in pictures}
        if data.fold is not None and folder in (with_splits or indexes):
            masked = {name for name, window in windows.items() if window.mask}
            split_of = leave_out(split_of, masked, data.split, data.fold, data.folds)
        chosen = [path for path in pictures if split_of[path.name] == split]
        with ThreadPoolExecutor() as pool:
            found[folder] = list(pool.map(partial(_read_area, windows=windows), chosen))
    return found


def _read_area(path: Path, windows: Mapping[str, Window]) -> SearchArea:
    return read_area(path, windows.get(path.name))


def rescaled(area: SearchArea, smallest: int, ladder: Scales) -> Iterator[tuple[Pixels, Mask | None]]:
    """An area at every scale at which it is large enough."""
    height, width = area.image.shape[:2]
    if area.ground_m is not None:
        pitch = Grid().pitch
        sizes = [
            (
                round(area.ground_m[0] * pitch / (CELL_METRES * share)),
                round(area.ground_m[1] * pitch / (CELL_METRES * share)),
            )
            for share in ladder.known
        ]
    else:
        sizes = [(round(height * share), round(width * share)) for share in ladder.unknown]
    for size in sizes:
        if min(size) >= smallest:
            mask = area.mask
            marked = None if mask is None else resample(mask.astype(np.uint8) * 255, size) >= 128
            yield resample(area.image, size), marked
