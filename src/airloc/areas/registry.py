"""All datasets by name, and `load_dataset`, which reads a dataset by name or from a path.

A new dataset is a class in a file of its own and one line in `DATASETS`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from airloc.areas.austin import Austin
from airloc.areas.dataset import Dataset
from airloc.areas.deepglobe import DeepGlobe
from airloc.areas.dubai import Dubai
from airloc.areas.folder import INDEX, Folder, has_images, images_folder
from airloc.areas.geotiff import GeoTiff
from airloc.areas.masa import Masa
from airloc.areas.naip import Naip
from airloc.areas.prepared import Prepared
from airloc.areas.records import Status
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError

DATASETS: dict[str, type[Dataset]] = {
    "synthetic": Synthetic,
    "masa": Masa,
    "dubai": Dubai,
    "xbd": Xbd,
    "naip": Naip,
    "austin": Austin,
    "deepglobe": DeepGlobe,
    "folder": Folder,
    "geotiff": GeoTiff,
    "prepared": Prepared,
}
"""Datasets by the name they have on the command line."""


def load_dataset(
    source: str | Path,
    *,
    root: Path | None = None,
    split: str = "",
    cell_metres: float | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    **options: Any,
) -> Dataset:
    """Load a dataset by name or from a path.

    Args:
        source: A name of `DATASETS`, or the path of a folder or GeoTIFF file. A folder may hold prepared areas, a
            published layout (Massachusetts, Dubai, xBD), or any images with an optional index windows.csv.
        root: Folder of the dataset, with a name only; $AIRLOC_DATA/NAME if not given.
        split: Only the areas of this split: train, val or test.
        cell_metres: Crop areas so that a cell covers this many metres.
        only: Only the areas whose names match one of these shell patterns.
        without: Leave out the areas whose names match one of these shell patterns.
        options: Further options of the dataset's class, such as `subset` of `Xbd` or `count` of `Synthetic`.

    Raises:
        AirlocError: If there is no such dataset or path, or the dataset does not have an option.

    >>> from airloc.grid import Grid
    >>> next(load_dataset("synthetic", count=1).areas(Grid(5, 5))).image.shape
    (256, 256, 3)
    """
    kind, location = find_dataset(source, root)
    values: dict[str, Any] = {"split": split, "only": tuple(only), "without": tuple(without), **options}
    if cell_metres is not None:
        values["cell_metres"] = cell_metres
    if location is not None:
        values[kind.location_option or "root"] = location
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise AirlocError(
            f"The dataset {kind.name} has no option {unknown[0]!r}", f"Its options are: {', '.join(sorted(known))}"
        )
    return kind(**values)


def find_dataset(source: str | Path, root: Path | None = None) -> tuple[type[Dataset], Path | None]:
    """Return the class and the location that a name or a path stands for."""
    if isinstance(source, str) and source in DATASETS:
        kind = DATASETS[source]
        if root is None and kind.location_option == "path":
            raise AirlocError(f"The dataset {source} needs a location", "Give its path instead of the name")
        return kind, root
    path = Path(source).expanduser()
    if root is not None:
        raise AirlocError(f"{source} is a path, and a root is given too", "Give a name with a root, or a path alone")
    if not path.exists():
        near = get_close_matches(str(source), DATASETS, n=1)
        hint = f"Did you mean {near[0]!r}? Datasets" if near else "Check the path; datasets"
        raise AirlocError(f"There is no folder, file or dataset {str(source)!r}", f"{hint} are: {', '.join(DATASETS)}")
    if path.is_file():
        return GeoTiff, path
    return next((kind for kind in DATASETS.values() if kind.detect(path)), Folder), path


def weight_terms(dataset: Dataset) -> str:
    """Return the terms that weights trained on a dataset carry; empty if it is not known to have any.

    A plain folder carries the terms of the registered dataset whose name it bears: `xbd`, or `xbd/images`.
    """
    folder = dataset.location.absolute()
    name = folder.parent.name if folder.name == "images" else folder.name
    return dataset.weight_terms or (DATASETS[name].weight_terms if name in DATASETS else "")


def list_datasets(root: Path) -> Iterator[Status]:
    """Check the registered datasets, and every other folder of images, under a folder of datasets."""
    if not root.is_dir():
        raise AirlocError(
            f"There is no folder {root}", "Set AIRLOC_DATA to the folder of your datasets, or give --root"
        )
    for name, kind in DATASETS.items():
        if kind.location_option == "root":
            yield load_dataset(name, root=root / name).status()
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and path.name not in DATASETS):
        if Prepared.detect(folder) or (folder / INDEX).is_file() or has_images(images_folder(folder)):
            yield replace(load_dataset(folder).status(), name=folder.name)


# Deprecated names, until all callers use `load_dataset`.
SOURCES = DATASETS
AreaSource = Dataset


def choose_source(where, *, split="", cell_metres=None, only=None, names=None, count=100, seed=0):  # type: ignore[no-untyped-def]
    patterns = {"only": names.only, "without": names.without} if names else {}
    if only is not None:
        patterns["names"] = tuple(only)
    if where is None:
        return load_dataset("synthetic", split=split, cell_metres=cell_metres, count=count, seed=seed)
    return load_dataset(where, split=split, cell_metres=cell_metres, **patterns)


def load_pairs(areas, goals, grid, *, split="", cell_metres=None, only=None, names=None):  # type: ignore[no-untyped-def]
    patterns = {"only": names.only, "without": names.without} if names else {}
    if only is not None:
        patterns["names"] = tuple(only)
    if Prepared.detect(goals) and not Prepared.detect(areas):
        raise AirlocError(f"{goals} holds prepared areas, and {areas} does not", "Prepare both folders, or neither")
    dataset = load_dataset(areas, split=split, cell_metres=cell_metres, goals=goals, **patterns)
    pairs = list(dataset.pairs(grid))
    return [area for area, _ in pairs], [goal for _, goal in pairs]
