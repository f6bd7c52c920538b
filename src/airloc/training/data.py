"""Cross-validation: folds of tiles that are left out of training in turn, and their figures pooled.

Pictures cut from one tile are always left out together. Every fold is a run of its own with the same settings but
`fold`; the counts that it was checked with are in its metrics, so that what is pooled is exact.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from airloc.areas.area import Mask, Pixels, SearchArea, crop_ground, fit, tile_of
from airloc.areas.folder import Window, read_area, read_windows
from airloc.areas.images import SUFFIXES, list_images
from airloc.areas.pairs import pair_up
from airloc.areas.synthetic import DISASTERS, generate
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Overlap
from airloc.grid import Grid
from airloc.training.runs import CONFIG, METRICS


def deal(tiles: Iterable[str], folds: int) -> dict[str, int]:
    """Number of each tile's fold: dealt out like cards, in the order of the hashes of the tiles' names.

    >>> deal(["a", "b", "c"], 2)
    {'c': 0, 'b': 1, 'a': 0}
    """
    order = sorted(set(tiles), key=lambda tile: hashlib.sha256(tile.encode()).digest())
    return {tile: number % folds for number, tile in enumerate(order)}


def leave_out(split_of: Mapping[str, str], masked: set[str], split: str, fold: int, folds: int) -> dict[str, str]:
    """Deal pictures for training and validation anew: one fold of their tiles is `val`, the rest is trained on.

    Args:
        split_of: The split of each picture by its file name; those in other splits, such as `test`, stay there.
        masked: Names of pictures with building masks, whose tiles are dealt for themselves: every fold has its share.
        split: The split that is trained on.
        fold: Which fold is left out.
        folds: How many there are.
    """
    tile = {name: tile_of(name) or name for name, own in split_of.items() if own in (split, "val")}
    marked = {tile[name] for name in tile if name in masked}
    number = deal(set(tile.values()) - marked, folds) | deal(marked, folds)
    return {**split_of, **{name: "val" if number[tile[name]] == fold else split for name in tile}}


def fold_overlaps(folders: Sequence[Path]) -> dict[int, Overlap]:
    """The last counts of the segmentation unit's run of every fold, by fold.

    Args:
        folders: Run folders of segmentation units, one for each fold.

    Raises:
        AirlocError: When one is no such run, has no figures yet, or they are not the folds of one cross-validation.
    """
    found: dict[int, Overlap] = {}
    first: dict[str, Any] = {}
    for folder in folders:
        settings = _settings(folder)
        fold = settings["data"].pop("fold")
        first = first or settings
        if settings != first or fold in found:
            problem = f"{str(folder)!r} is not another fold of the run in {str(folders[0])!r}"
            raise AirlocError(problem, "Give one run for each fold, trained with the same settings")
        found[fold] = _last_counts(folder / METRICS)
    if missing := sorted(set(range(first["data"]["folds"])) - set(found)):
        raise AirlocError(f"The fold {missing[0]} is missing", f"Train it with --fold {missing[0]}, and name it too")
    return dict(sorted(found.items()))


def _settings(folder: Path) -> dict[str, Any]:
    """The settings of a segmentation unit's run that has left a fold out."""
    try:
        content = json.loads((folder / CONFIG).read_bytes())
        settings: dict[str, Any] = content["settings"]
        right = content["kind"] == "SegmenterConfig" and settings["data"]["fold"] is not None
    except (OSError, ValueError, LookupError, TypeError):
        right = False
    if not right:
        problem = f"{str(folder)!r} is no run of a segmentation unit that left a fold out"
        raise AirlocError(problem, "Make one with 'airloc train segmenter --fold 0' and give its folder")
    return settings


def _last_counts(path: Path) -> Overlap:
    try:
        last = json.loads(path.read_bytes().splitlines()[-1])
        return Overlap(last["tp"], last["fp"], last["fn"])
    except (OSError, ValueError, LookupError, TypeError):
        problem = f"{str(path)!r} has no counts of a validation on masks"
        raise AirlocError(problem, "Train the run to its end, on data whose masks are left out in turn") from None


# ---------- Training pictures on the device, at several scales, and patches cut from them at any offset.
# ~
# ~ Every picture is resampled beforehand, antialiased and exactly as evaluation does it, to a ladder of scales; patches are
# ~ then cut at whole pixels, so that a training patch is what an agent would see. All pixels lie in one long row, and a cut
# ~ is one gather.
# ~
# ~ Legend: N pictures (a picture at each of its scales counts), B cuts, S side of a patch.


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """Pictures of any size in one row of pixels."""

    pixels: torch.Tensor
    """RGB and, where marked, the building mask, or of pairs RGB twice: (pixels of all pictures, 3, 4 or 6) uint8."""
    first: torch.Tensor
    """Where each picture begins in the row, (N,)."""
    height: torch.Tensor
    width: torch.Tensor
    share: torch.Tensor
    """How often each picture or one before it is drawn, (N,), rising to one."""

    @classmethod
    def of(
        cls,
        pictures: Sequence[Pixels],
        weights: Sequence[float],
        device: torch.device | str,
        masks: Sequence[Mask] = (),
    ) -> "Atlas":
        """Lay pictures (and their masks, if given for all) out in one row."""
        if not pictures:
            raise AirlocError("There are no pictures to train on", "Give a folder with pictures large enough")
        rows = [picture.reshape(-1, picture.shape[2]) for picture in pictures]
        if masks:
            marks = (mask.reshape(-1, 1).astype(np.uint8) * 255 for mask in masks)
            rows = [np.hstack([row, mark]) for row, mark in zip(rows, marks, strict=True)]
        sizes = torch.tensor([picture.shape[:2] for picture in pictures])
        lengths = sizes.prod(dim=1)
        return cls(
            torch.from_numpy(np.concatenate(rows)).to(device),
            (lengths.cumsum(0) - lengths).to(device),
            sizes[:, 0].to(device),
            sizes[:, 1].to(device),
            (torch.tensor(weights, dtype=torch.float64).cumsum(0) / sum(weights)).float().to(device),
        )

    def beside(self, pairs: "Atlas", share: float) -> "Atlas":
        """These pictures, each a pair with itself, and pairs of pictures, which are drawn so often."""
        return Atlas(
            torch.cat([self.pixels.repeat(1, 2), pairs.pixels]),
            torch.cat([self.first, pairs.first + len(self.pixels)]),
            torch.cat([self.height, pairs.height]),
            torch.cat([self.width, pairs.width]),
            torch.cat([self.share * (1 - share), 1 - share + pairs.share * share]),
        )

    def draw(self, count: int, span: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw pictures (B,) by weight and in each the corner, top (B,) and left (B,), of a square that fits."""
        level = torch.rand(3, count, device=self.first.device)
        which = torch.searchsorted(self.share, level[0]).clamp(max=len(self.share) - 1)
        top, left = (
            (part * (side[which] - span + 1)).long().clamp(min=0)
            for part, side in ((level[1], self.height), (level[2], self.width))
        )
        return which, top, left

    def cut(self, which: torch.Tensor, top: torch.Tensor, left: torch.Tensor, side: int) -> torch.Tensor:
        """Cut patches, (B, S, S, channels) uint8."""
        step = torch.arange(side, device=which.device)
        row = (top[:, None] + step)[:, :, None] * self.width[which][:, None, None]
        index = self.first[which][:, None, None] + row + (left[:, None] + step)[:, None, :]
        return self.pixels[index]


def resample(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resample an image to (height, width), antialiased as evaluation does."""
    if pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS))


# ---------- What is trained on: folders of pictures and procedural areas, laid out on the device.
# ~
# ~ A data folder holds either pictures, or one folder a set (`masa`, `naip`, `austin`, ...), each with pictures or with
# ~ `images/` and an index. Pictures of known ground size (windows.csv) are resampled so that a cell is 70 to 130 m wide,
# ~ around the 100 m of the paper; others are used at their own resolution and at coarser ones. For cross-validation a fold
# ~ of the tiles is left out of training and checked on instead of the split `val`.

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
        pictures = [path for path in list_images(folder) if fnmatchcase(path.name, data.only)]
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


# ---------- Pairs of pictures to train on: the same ground before and after a disaster, on real and on procedural areas.
# ~

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
    disaster_pairs: int = 0
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
    return found + _procedural_pairs(source.disaster_pairs)


def _procedural_pairs(count: int) -> list[tuple[SearchArea, SearchArea]]:
    seeds = range(STRUCK_FIRST, STRUCK_FIRST + count)
    if count <= CHUNK:
        return [_procedural_pair(seed) for seed in seeds]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        return list(pool.map(_procedural_pair, seeds, chunksize=CHUNK // 2))


def _procedural_pair(seed: int) -> tuple[SearchArea, SearchArea]:
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
