"""Training data: images of datasets, procedural areas, image pairs, and folds of a cross-validation.

A data folder holds one folder per dataset (`masa`, `naip`, `austin`, ...), or is a dataset itself: images with an
optional index windows.csv, a published layout, or the output of `airloc data prepare`. Images of known ground size are
resampled so that a cell covers 70 to 130 m, around the 100 m of the paper. Other images are used at their own
resolution and at lower ones. Images without a split are for training. For cross-validation a fold of the tiles is held
out of training and validated on, instead of the split `val`.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

import torch

from airloc.areas import DATASETS, Dataset, ImageRecord, SearchArea, find_kind, fit, load_dataset, weight_terms
from airloc.areas.area import Mask, Pixels, crop_ground, resample, tile_of
from airloc.areas.folder import has_images
from airloc.areas.synthetic import DISASTERS, generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.atlas import CELL_METRES, Atlas, Imagery, Scales, check_images, rescale
from airloc.training.runs import NON_NEGATIVE, NonNegativeFloat, NonNegativeInt, Share, check_settings

log = logging.getLogger(__name__)

SYNTHETIC_SIDE, PAIR_SIDE = 320, 640
"""Sides of the procedural training images and of the procedural pairs, in pixels."""
SYNTHETIC_METRES_PER_PX = 2.0
SYNTHETIC_FIRST = 500_000_000
"""First seed of the procedural areas for training; evaluation uses seeds far below."""
PAIRS_FIRST = SYNTHETIC_FIRST + 100_000_000
"""First seed of the procedural pairs."""
VALIDATION_COUNT = 40
"""Number of procedural validation areas, for data without validation images."""
CHUNK = 20
"""Procedural images that a process generates at a time; up to this number no process is started."""

Crops = Literal["random", "grid"]
"""Where training patches and areas come from: any offset of the images at several scales, or the cells of the search
areas, one in each image, with cells of 100 m where the ground size is known."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class DataConfig:
    """The images to train on."""

    root: Path | None = None
    """Folder with one folder per dataset, or the folder of one dataset; without it only the procedural areas of
    --synthetic are used, and there must be some."""
    datasets: tuple[str, ...] = ("masa", "naip", "austin")
    """Folders under the root to use; absent ones are skipped."""
    weights: Annotated[tuple[float, ...], NON_NEGATIVE] = (5.0, 3.0, 1.0)
    """Sampling weight of each dataset."""
    split: str = "train"
    """Split to train on; images without a split are in `train`."""
    only: str = "*"
    """Shell pattern of the image names to use, such as 'hurricane-michael_*_pre_disaster*'."""
    synthetic: NonNegativeInt = 1500
    """Number of procedural areas."""
    synthetic_weight: NonNegativeFloat = 1.0
    """Sampling weight of the procedural areas."""
    fold: int | None = None
    """Fold to hold out and validate on, from 0. Folds are made of the tiles of datasets with splits, or of all images
    if no dataset has splits. Without a fold the splits of the datasets are used."""
    folds: int = 4
    """Number of folds."""

    def __post_init__(self) -> None:
        check_settings(self)
        if len(self.datasets) != len(self.weights):
            raise AirlocError(
                f"There are {len(self.datasets)} datasets ({', '.join(self.datasets)}) and {len(self.weights)} weights",
                "Give one number of --weights for each name of --datasets",
            )
        if self.fold is not None and (self.folds < 2 or not 0 <= self.fold < self.folds):
            problem = f"There is no fold {self.fold} of {self.folds}"
            raise AirlocError(problem, "Give --folds 2 or more, and --fold from 0 to the number of folds - 1")


@dataclass(frozen=True)
class PairConfig:
    """Pairs of images of the same place on two days, to train on too."""

    pairs: tuple[str, ...] = ()
    """Datasets with image pairs: folders, or names of datasets under the root, such as naip and xbd."""
    pairs_only: tuple[str, ...] = ()
    """Shell pattern of the image names to use of each dataset of pairs, such as 'hurricane-michael_*'. Default: all."""
    pairs_weights: Annotated[tuple[float, ...], NON_NEGATIVE] = ()
    """Sampling weight of a pair of each dataset, where a procedural one has 1. Default: 1."""
    disaster_pairs: NonNegativeInt = 0
    """Number of procedural areas to use as they are before and after a disaster."""
    pairs_share: Share = 0.15
    """Share of the training areas that are drawn from pairs, if there are any."""

    def __post_init__(self) -> None:
        check_settings(self)
        for option, values in (("only", self.pairs_only), ("weights", self.pairs_weights)):
            if values and len(values) != len(self.pairs):
                problem = f"--pairs and --pairs-{option} differ in number: {len(self.pairs)} and {len(values)}"
                raise AirlocError(problem, f"Give one of --pairs-{option} for each name of --pairs, or none")

    def sources(self) -> list[tuple[str, str, float]]:
        """Return the datasets of pairs, each with its pattern and its weight."""
        patterns, weights = self.pairs_only or ("*",) * len(self.pairs), self.pairs_weights or (1.0,) * len(self.pairs)
        return list(zip(self.pairs, patterns, weights, strict=True))


def load_atlas(
    config: DataConfig,
    min_side: int,
    device: torch.device,
    *,
    masks: bool = False,
    crops: Crops = "random",
) -> Atlas:
    """Load all training images into an atlas; with `masks`, only images with building masks, and these masks.

    Scales at which an image is smaller than the squares to crop, `min_side`, are skipped. With `crops="grid"` the
    images are those of `training_areas`.
    """
    images: list[Pixels] = []
    all_masks: list[Mask] = []
    weights: list[float] = []
    for weight, areas in _training_images(config):
        with ThreadPoolExecutor() as pool:
            scaled = pool.map(lambda area: list(_scale(area, min_side, crops)), areas)
            found = [entry for entries in scaled for entry in entries if not masks or entry[1] is not None]
        offsets = [(image.shape[0] - min_side + 1) * (image.shape[1] - min_side + 1) for image, _ in found]
        weights += [weight * count / sum(offsets) for count in offsets]
        images += [image for image, _ in found]
        all_masks += [mask for _, mask in found if mask is not None] if masks else []
    if masks and not images:
        raise AirlocError(
            "None of the training images has a building mask",
            "Name the masks in windows.csv, or add procedural areas with --synthetic 500",
        )
    return Atlas.from_images(images, weights, device, all_masks)


def _scale(area: SearchArea, min_side: int, crops: Crops) -> Iterator[tuple[Pixels, Mask | None]]:
    """Yield the image and the mask of an area at every scale, or once at the size of a grid."""
    if crops == "random":
        yield from rescale(area, min_side, Scales())
        return
    fitted = fit_ground(area, Grid())
    yield fitted.image, fitted.mask


def training_areas(config: DataConfig, grid: Grid, limit: int) -> list[SearchArea]:
    """Return the search areas to train on: one in the centre of each training image, the first `limit` of them."""
    areas = [area for _, areas in _training_images(config) for area in areas]
    return [fit_ground(area, grid) for area in areas[:limit]]


def fit_ground(area: SearchArea, grid: Grid) -> SearchArea:
    """Fit the centre of an image to a grid, with cells of 100 m if the image is known to cover enough ground."""
    return fit(_crop_ground(area, grid) or area, grid)


def load_imagery(
    config: DataConfig,
    pairs: PairConfig,
    device: torch.device,
    scales: Scales,
    copies: int = 0,
    distortion: float = 0.0,
) -> Imagery:
    """Load all training images and image pairs at their own resolution, and rotated copies of those from files.

    Crops can later have any scale between the smallest and the largest one of `scales`. Pairs are a share of
    `pairs.pairs_share` of the crops, if there are any. Copies are stretched and recoloured by `distortion`, 0 to 1.
    """
    entries: list[tuple[tuple[Pixels, Pixels], tuple[float, float], float]] = []
    of_two_days, pair_weights = _image_pairs(pairs, config.root)
    paired = [store_pair(*pair, scales) for pair in of_two_days]
    share = pairs.pairs_share if sum(pair_weights) else 0.0
    images = _training_images(config)
    total = sum(weight for weight, areas in images if areas) or 1.0
    for weight, areas in images:
        with ThreadPoolExecutor() as pool:
            stored = list(pool.map(lambda area: store_pair(area, area, scales), areas))
        ground = [pair[0].shape[0] * pair[0].shape[1] for pair, _ in stored]
        part = (1 - share) * weight / total
        entries += [(*entry, part * own / sum(ground)) for entry, own in zip(stored, ground, strict=True)]
    of_pair = share / (sum(pair_weights) or 1.0)
    entries += [(*entry, of_pair * own) for entry, own in zip(paired, pair_weights, strict=True)]
    both_days, steps, parts = zip(*entries, strict=True) if entries else ((), (), ())
    check_images(parts)
    places = [*range(-1, len(paired) - len(entries) - 1, -1), *_number_places(of_two_days)]
    single, double = len(entries) - len(paired) - config.synthetic, len(paired) - pairs.disaster_pairs
    clean = [False] * single + [True] * config.synthetic + [False] * double + [True] * pairs.disaster_pairs
    return Imagery.from_pairs(both_days, steps, parts, device, places, clean, copies, distortion)


def load_pairs(config: PairConfig, root: Path | None, device: torch.device, scales: Scales) -> Imagery:
    """Load image pairs alone, at their own resolution."""
    pairs, weights = _image_pairs(config, root)
    images, steps = zip(*(store_pair(*pair, scales) for pair in pairs), strict=True)
    return Imagery.from_pairs(images, steps, weights, device, _number_places(pairs))


def _number_places(pairs: Iterable[tuple[SearchArea, SearchArea]]) -> list[int]:
    """Number the places that pairs of days show, from 0: pairs with an image in common show one place."""
    known: dict[str, int] = {}
    numbers = []
    for number, pair in enumerate(pairs):
        names = [area.name for area in pair]
        place = next((known[name] for name in names if name in known), number)
        known |= dict.fromkeys(names, place)
        numbers.append(place)
    return numbers


def _image_pairs(config: PairConfig, root: Path | None) -> tuple[list[tuple[SearchArea, SearchArea]], list[float]]:
    """Read and generate all pairs of images of the same place on two days, and return their weights too."""
    pairs: list[tuple[SearchArea, SearchArea]] = []
    weights: list[float] = []
    for dataset, weight in _pair_datasets(config, root):
        records = dataset.record_pairs()
        log.info("Reading %d image pairs of %s", len(records), dataset.location)
        with ThreadPoolExecutor() as pool:
            pairs += pool.map(partial(_read_pair, dataset), records)
        weights += [weight] * len(records)
    pairs += generate_parallel(_procedural_pair, PAIRS_FIRST, config.disaster_pairs, "pairs")
    return pairs, weights + [1.0] * config.disaster_pairs


def _read_pair(dataset: Dataset, records: tuple[ImageRecord, ImageRecord]) -> tuple[SearchArea, SearchArea]:
    return dataset.read(records[0]), dataset.read(records[1])


def store_pair(
    before: SearchArea, after: SearchArea, scales: Scales
) -> tuple[tuple[Pixels, Pixels], tuple[float, float]]:
    """Return the images of a pair, and the smallest and largest step of crops; finer images are reduced first."""
    if before.image.shape != after.image.shape:
        problem = f"The images {before.name} and {after.name} of a pair differ in size"
        raise AirlocError(problem, "Cut both to the same ground and size")
    height, width = before.image.shape[:2]
    if before.ground_m is not None:
        step = CELL_METRES / Grid().pitch * height / before.ground_m[0]  # of cells of 100 m
        smallest, largest = (step * factor for factor in (min(scales.cell_widths), max(scales.cell_widths)))
    else:
        smallest, largest = (1 / factor for factor in (max(scales.resolutions), min(scales.resolutions)))
    reduction = max(1.0, smallest)
    size = round(height / reduction), round(width / reduction)
    return (resample(before.image, size), resample(after.image, size)), (smallest / reduction, largest / reduction)


def validation_areas(config: DataConfig, grid: Grid) -> list[SearchArea]:
    """Return the areas to validate on: the fold held out, or the split `val`, else other procedural areas."""
    areas = [fit_ground(area, grid) for area in _validation_images(config)]
    if not areas and config.fold is not None:
        problem = f"There are no tiles to hold out as fold {config.fold}"
        raise AirlocError(problem, "Give --root with more images than folds, or leave --fold out")
    return areas or _procedural_validation_areas(grid)


def large_validation_areas(config: DataConfig, grid: Grid) -> list[SearchArea]:
    """Return the validation areas that are known to hold a larger grid with cells of 100 m."""
    cropped = (_crop_ground(area, grid) for area in _validation_images(config))
    return [fit(area, grid) for area in cropped if area is not None]


def _open_datasets(config: DataConfig) -> list[tuple[Dataset, float]]:
    """Open the datasets of a config, each with its sampling weight, without reading images; none without a root."""
    root, patterns = config.root, () if config.only == "*" else (config.only,)
    if root is None:
        return []
    if not root.is_dir():
        raise AirlocError(f"There is no data folder {root}", "Check --root, or give --synthetic 500 in its place")
    weighted = dict(zip(config.datasets, config.weights, strict=True))
    found = [(root / name, weight) for name, weight in weighted.items() if (root / name).is_dir()]
    if not found or has_images(root):
        found.insert(0, (root, weighted.get(root.name, 1.0)))
    opened = [(_open_folder(folder, patterns), weight) for folder, weight in found]
    try:
        return [(dataset, weight) for dataset, weight in opened if dataset.scan()]
    except AirlocError as error:
        raise AirlocError(
            f"The data folder {root} cannot be used: {error.problem}",
            f"{error.cure}; --root takes a folder with images or with the datasets {', '.join(config.datasets)}",
        ) from error


def _open_folder(folder: Path, patterns: tuple[str, ...]) -> Dataset:
    """Open a folder of images: by its layout, or as the dataset of another package whose name it has."""
    if folder.name not in DATASETS and find_kind(folder.name) is not None:
        return load_dataset(folder.name, root=folder, only=patterns)
    return load_dataset(folder, only=patterns)


def _pair_datasets(config: PairConfig, root: Path | None) -> list[tuple[Dataset, float]]:
    """Open the datasets of image pairs, each with the sampling weight of its pairs."""
    opened = []
    for name, pattern, weight in config.sources():
        patterns = () if pattern == "*" else (pattern,)
        if find_kind(name) is None:
            dataset = load_dataset(Path(name), only=patterns)
        else:
            dataset = load_dataset(name, root=None if root is None else root / name, only=patterns)
        opened.append((dataset, weight))
    return opened


def terms(config: DataConfig, pairs: PairConfig | None = None) -> str:
    """Return the terms that weights trained on the data carry; empty if none are known."""
    datasets = [dataset for dataset, _ in _open_datasets(config)]
    if pairs is not None:
        datasets += [dataset for dataset, _ in _pair_datasets(pairs, config.root)]
    return " and ".join(sorted({weight_terms(dataset) for dataset in datasets} - {""}))


def join_terms(*terms: str) -> str:
    """Join the terms of data and of weights, each once and without empty ones."""
    return " and ".join(dict.fromkeys(filter(None, terms)))


def dataset_names(config: DataConfig) -> str:
    """Return the names of the folders that are trained on, for model cards."""
    return ", ".join(dataset.location.resolve().name for dataset, _ in _open_datasets(config)) or "none"


def assign_folds(tiles: Iterable[str], folds: int) -> dict[str, int]:
    """Assign tiles to folds of equal size, in the order of the hashes of their names.

    >>> assign_folds(["a", "b", "c"], 2)
    {'c': 0, 'b': 1, 'a': 0}
    """
    order = sorted(set(tiles), key=lambda tile: hashlib.sha256(tile.encode()).digest())
    return {tile: number % folds for number, tile in enumerate(order)}


def hold_out_fold(split_of: Mapping[str, str], masked: set[str], split: str, fold: int, folds: int) -> dict[str, str]:
    """Reassign the images of the training split and of `val`: one fold of their tiles becomes `val`, the rest trains.

    Images of other splits, such as `test`, keep their split. The tiles of images with building masks (`masked`) are
    assigned separately, so that every fold has some.
    """
    tile = {name: tile_of(name) or name for name, own in split_of.items() if own in (split, "val")}
    masked_tiles = {tile[name] for name in tile if name in masked}
    fold_of = assign_folds(set(tile.values()) - masked_tiles, folds) | assign_folds(masked_tiles, folds)
    return {**split_of, **{name: "val" if fold_of[tile[name]] == fold else split for name in tile}}


class _Selection(NamedTuple):
    """The images of a dataset that are in a split."""

    dataset: Dataset
    weight: float
    records: list[ImageRecord]

    def read(self) -> list[SearchArea]:
        log.info("Reading %d images of %s", len(self.records), self.dataset.location)
        with ThreadPoolExecutor() as pool:
            return list(pool.map(self.dataset.read, self.records))


def _select(config: DataConfig, split: str) -> list[_Selection]:
    """Select the images of a split from every dataset, without reading them."""
    opened = [(dataset, weight, dataset.scan()) for dataset, weight in _open_datasets(config)]
    any_splits = any(record.split for _, _, records in opened for record in records)
    selections = []
    for dataset, weight, records in opened:
        selected = [record for record in records if dataset.selects(record)]
        split_of = {record.name: record.split or "train" for record in selected}
        if config.fold is not None and (not any_splits or any(record.split for record in records)):
            masked = {record.name for record in selected if record.mask is not None}
            split_of = hold_out_fold(split_of, masked, config.split, config.fold, config.folds)
        in_split = [record for record in selected if split_of[record.name] == split]
        if in_split:
            selections.append(_Selection(dataset, weight, in_split))
    return selections


@lru_cache(maxsize=1)
def _training_images(config: DataConfig) -> list[tuple[float, list[SearchArea]]]:
    """Read all training images, per dataset with its weight; cached for the next unit that trains on the same data."""
    selections = _select(config, config.split)
    if config.root and not selections:
        matching = "" if config.only == "*" else f"matches {config.only!r} and "
        raise AirlocError(
            f"No image of the data folder {config.root} {matching}is in the split {config.split!r}",
            "Give another --split or --only, or correct the splits in windows.csv",
        )
    images = [(selection.weight, selection.read()) for selection in selections]
    if config.synthetic:
        images.append(
            (config.synthetic_weight, generate_parallel(_procedural_image, SYNTHETIC_FIRST, config.synthetic, "areas"))
        )
    return images


def _validation_images(config: DataConfig) -> list[SearchArea]:
    return [area for selection in _select(config, "val") for area in selection.read()]


def _crop_ground(area: SearchArea, grid: Grid) -> SearchArea | None:
    return crop_ground(area, (grid.rows * CELL_METRES, grid.cols * CELL_METRES))


@lru_cache(maxsize=1)
def _procedural_validation_areas(grid: Grid) -> list[SearchArea]:
    """Generate areas that are not trained on; cached for the next unit."""
    log.info("Generating %d procedural areas to validate on", VALIDATION_COUNT)
    seeds = range(SYNTHETIC_FIRST - VALIDATION_COUNT, SYNTHETIC_FIRST)
    return [generate(seed, size=grid.size, metres_per_px=CELL_METRES / grid.pitch) for seed in seeds]


def generate_parallel(
    make: Callable[[int], _Item], first: int, count: int, what: str, chunk: int = CHUNK // 2
) -> list[_Item]:
    """Generate procedural images with consecutive seeds, in several processes if there are many, in chunks."""
    seeds = range(first, first + count)
    if count:
        log.info("Generating %d procedural %s", count, what)
    if count <= CHUNK:
        return [make(seed) for seed in seeds]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        return list(pool.map(make, seeds, chunksize=chunk))


def _procedural_image(seed: int, side: int = SYNTHETIC_SIDE, disaster: str | None = None) -> SearchArea:
    """Generate an image that is used at several scales, as an image of unknown ground size."""
    return replace(generate(seed, (side, side), SYNTHETIC_METRES_PER_PX, disaster=disaster), ground_m=None)


def _procedural_pair(seed: int) -> tuple[SearchArea, SearchArea]:
    """Generate the images of an area before and after a disaster."""
    disaster = DISASTERS[seed % len(DISASTERS)]
    return _procedural_image(seed, PAIR_SIDE), _procedural_image(seed, PAIR_SIDE, disaster)
