"""All datasets by name, and `load_dataset`, which reads a dataset by name or from a path.

A new dataset is a class in a file of its own and one line in `DATASETS`. Datasets of other packages are entry points in
the group `airloc.datasets`; each names a subclass of `Dataset`.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib.metadata import EntryPoint, entry_points
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
from airloc.areas.prepared import Prepared, open_prepared
from airloc.areas.records import Status
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError, suggest

log = logging.getLogger(__name__)

_ENTRY_POINT_GROUP = "airloc.datasets"

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
"""Datasets of this package by the name they have on the command line."""


def all_datasets() -> dict[str, type[Dataset]]:
    """Return the datasets of this package and of others; one that cannot be loaded is left out with a warning."""
    found = dict(DATASETS)
    for entry in entry_points(group=_ENTRY_POINT_GROUP):
        try:
            found.setdefault(entry.name, _load_plugin(entry))
        except AirlocError as error:
            log.warning("%s", error)
    return found


def find_kind(name: str) -> type[Dataset] | None:
    """Return the class of the dataset of this name, here or in another package; None if there is none.

    Raises:
        AirlocError: If the code of the other package fails.
    """
    if name in DATASETS:
        return DATASETS[name]
    entries = entry_points(group=_ENTRY_POINT_GROUP, name=name) if name else ()
    return next((_load_plugin(entry) for entry in entries), None)


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
        source: Name of a dataset of this or another package, or the path of a folder or GeoTIFF file. A folder may hold
            prepared areas, any images with an optional index windows.csv, or a published layout (Massachusetts, Dubai,
            xBD).
        root: Folder of the dataset, with a name only; by default $AIRLOC_DATA/NAME.
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
    kind, location = _find_dataset(source, root)
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


def _find_dataset(source: str | Path, root: Path | None = None) -> tuple[type[Dataset], Path | None]:
    """Return the class and the location that a name or a path stands for."""
    if isinstance(source, str) and (kind := find_kind(source)) is not None:
        if root is None and kind.location_option == "path":
            raise AirlocError(f"The dataset {source} needs a location", "Give its path instead of the name")
        return kind, root
    path = Path(source).expanduser()
    if root is not None:
        raise AirlocError(f"{source} is a path, and a root is given too", "Give a name with a root, or a path alone")
    if not path.exists():
        cure = suggest(str(source), all_datasets(), "Datasets", otherwise="Check the path; datasets")
        raise AirlocError(f"There is no folder, file or dataset {str(source)!r}", cure)
    if path.is_file():
        return GeoTiff, path
    if has_images(path) and not Prepared.detect(path):
        return Folder, path
    return next((kind for kind in _all_kinds() if kind.detect(path)), Folder), path


def _all_kinds() -> Iterator[type[Dataset]]:
    """Iterate over all datasets; those of other packages last, because to look for them takes longer than the rest."""
    yield from DATASETS.values()
    yield from (kind for name, kind in all_datasets().items() if name not in DATASETS)


def _load_plugin(entry: EntryPoint) -> type[Dataset]:
    """Load the class of an entry point. Errors name the package that it comes from."""
    source = f"The dataset {entry.name!r} of {entry.dist.name if entry.dist else 'another package'} ({entry.value})"
    try:
        kind = entry.load()
    except Exception as error:  # the code of another package can raise anything
        raise AirlocError(f"{source} cannot be loaded: {error!r}", "Repair or uninstall that package") from error
    if not (isinstance(kind, type) and issubclass(kind, Dataset) and getattr(kind, "name", None) == entry.name):
        problem = f"{source} is not a Dataset with the name {entry.name!r}"
        raise AirlocError(problem, "See docs/data.md for the interface of datasets")
    return kind


def weight_terms(dataset: Dataset) -> str:
    """Return the terms that weights trained on a dataset carry; empty if it is not known to have any.

    Prepared areas carry the terms of the dataset they were prepared from. A plain folder carries the terms of the
    registered dataset whose name it bears: `xbd`, or `xbd/images`.
    """
    if dataset.weight_terms or not dataset.location_option:
        return dataset.weight_terms
    name, folder = dataset.name, dataset.location.absolute()
    if isinstance(dataset, Prepared):
        source = open_prepared(folder).source
        name, folder = str(source.get("name", "")), Path(str(source.get("path") or source.get("root") or "/"))
    named = folder.parent.name if folder.name == "images" else folder.name
    kinds = [find_kind(word) for word in (name, named)]
    return next((kind.weight_terms for kind in kinds if kind and kind.weight_terms), "")


def list_datasets(root: Path) -> Iterator[Status]:
    """Check the registered datasets, and every other folder of images, under a folder of datasets."""
    if not root.is_dir():
        raise AirlocError(
            f"There is no folder {root}", "Set AIRLOC_DATA to the folder of your datasets, or give --root"
        )
    kinds = all_datasets()
    for name, kind in kinds.items():
        if kind.location_option == "root":
            yield load_dataset(name, root=root / name).status()
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and path.name not in kinds):
        if Prepared.detect(folder) or (folder / INDEX).is_file() or has_images(images_folder(folder)):
            yield replace(load_dataset(folder).status(), name=folder.name)
