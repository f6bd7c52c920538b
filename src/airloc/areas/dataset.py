"""The base class of datasets: a source of search areas with its facts, options, selection and pairs.

A dataset is one class in one file. Facts (title, terms, expected counts) are class attributes, options are
the fields of a frozen dataclass, and `scan` lists the images. The base class derives the rest from that list: selection
by split and name, search areas cut to a grid, whole images for training, pairs of images of the same place on different
days, and the line in `airloc data list`. docs/data.md has an example of a new dataset.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from pathlib import Path
from shlex import quote
from typing import Annotated, ClassVar

import tyro

from airloc.areas.area import Mask, SearchArea, crop_ground, cut_piece, fit, read_image, read_mask
from airloc.areas.captions.land_cover import LandCover, from_building_mask
from airloc.areas.download import Downloaded, Progress, Timeouts
from airloc.areas.records import POST, PRE, ImageRecord, NameFilter, Status, count_splits
from airloc.errors import AirlocError
from airloc.grid import Grid

log = logging.getLogger(__name__)

VARIABLE = "AIRLOC_DATA"
"""Environment variable with the folder that holds one folder per dataset."""


def data_root() -> Path:
    """Return the folder that holds one folder per dataset."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        raise AirlocError(f"The environment variable {VARIABLE} is not set", f"Set {VARIABLE}, or give --root")
    return Path(folder).expanduser()


@dataclass(frozen=True)
class Dataset(ABC):
    """A source of search areas. Subclasses are frozen dataclasses whose fields are options."""

    name: ClassVar[str]
    """Name on the command line and in `DATASETS`; also the folder under $AIRLOC_DATA."""
    title: ClassVar[str]
    """Name for people."""
    terms: ClassVar[str] = ""
    """Licence of the images."""
    weight_terms: ClassVar[str] = ""
    """Licence that weights trained on the images carry; empty if the images put no terms on them."""
    obtain: ClassVar[str] = ""
    """Why airloc cannot download the data, such as a form, and where to get it; empty if `download` works."""
    unpack: ClassVar[str] = ""
    """Layout of the files in `{root}` after a manual download."""
    expected: ClassVar[Mapping[str, int]] = {}
    """Number of 5 x 5 areas in the paper, by split or subset."""
    location_option: ClassVar[str] = "root"
    """The field that holds the location: `root` (optional), `path` (required), or empty for generated areas."""

    split: str = field(default="", kw_only=True)
    """Only the areas of this split: train, val or test."""
    only: tuple[str, ...] = field(default=(), kw_only=True)
    """Only the areas whose names match one of these shell patterns, such as 'santa-rosa-*'."""
    without: Annotated[tuple[str, ...], tyro.conf.arg(name="except")] = field(default=(), kw_only=True)
    """Leave out the areas whose names match one of these shell patterns."""
    names: tuple[str, ...] | None = field(default=None, kw_only=True)
    """Only the images with exactly these names; an unknown name raises an error."""
    cell_metres: float | None = field(default=None, kw_only=True)
    """Crop the centre of each area so that a cell covers this many metres; areas that are smaller, or whose ground size
    is unknown, are left out."""

    def __post_init__(self) -> None:
        if self.cell_metres is not None and not 0 < self.cell_metres < float("inf"):
            raise AirlocError(f"Cells of {self.cell_metres} m are not valid", "Give --cell-metres above 0, such as 100")

    @property
    def location(self) -> Path:
        """Folder or file of the data: the option `root` or `path`, else the dataset's name under $AIRLOC_DATA."""
        location: Path | None = getattr(self, self.location_option, None)
        return data_root() / self.name if location is None else location.expanduser()

    def require_location(self) -> Path:
        """Return the location of the data, or raise an error that names the command that gets the data."""
        if not self.location.exists():
            cure = "Check the path"
            if self.location_option == "root":
                cure = f"Run `airloc data fetch {self.name}` to get the dataset, or to read where to get it"
            raise AirlocError(f"There is no folder {self.location}", cure)
        return self.location

    @classmethod
    def detect(cls, path: Path) -> bool:
        """Return True if a folder has this dataset's layout, so that `load_dataset(path)` reads it with this class."""
        del path
        return False

    @abstractmethod
    def scan(self) -> list[ImageRecord]:
        """List every image of the dataset in a fixed order, without reading pixels."""

    def records(self) -> list[ImageRecord]:
        """List the images that the options select, without reading pixels."""
        return self.select(self.scan())

    def images(self) -> Iterator[SearchArea]:
        """Read the selected images one by one, whole and at their own resolution, for training."""
        return self._read_all(self.records())

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Read the selected areas one by one, cropped and resampled to a grid, for search."""
        return self._fit_all(self._read_all(self.select(self.scan_for(grid))), grid)

    def land_covers(self, grid: Grid) -> Iterator[tuple[SearchArea, LandCover]]:
        """Read the areas whose land cover is known, each with it; by default those with building masks."""
        for area in self.areas(grid):
            if area.mask is not None:
                yield area, from_building_mask(area.mask, area.image, grid.cell)

    def pairs(self, grid: Grid) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Read (area, goal area) pairs, fitted to a grid: the goal area shows the same place on another day.

        The area is the later image and the goal area is the earliest image of the place, so that each area occurs once.
        """
        first_of: dict[str, tuple[ImageRecord, ImageRecord]] = {}
        for goal, area in self.record_pairs():
            first_of.setdefault(area.name, (goal, area))
        goals_and_areas = ((replace(goal, mask=None), area) for goal, area in first_of.values())
        read = ((self.read(area), self.read(goal)) for goal, area in goals_and_areas)
        return self._fit_pairs(read, grid)

    def record_pairs(self) -> list[tuple[ImageRecord, ImageRecord]]:
        """List every two images of the same place as (earlier, later).

        A pair is selected if one of its names matches `only` and none matches `without`.
        """
        places: dict[str, list[ImageRecord]] = {}
        for record in self.scan():
            if record.place:
                places.setdefault(record.place, []).append(record)
        pairs = [
            pair
            for records in places.values()
            for pair in combinations(sorted(records, key=lambda record: record.day), 2)
            if self.selects(*pair)
        ]
        if not pairs:
            raise AirlocError(
                f"{self.location if self.location_option else self.title} has no selected pair of images of one place",
                f"Check the options, use naip or xbd, or name the images of a place ..._{PRE} and ..._{POST}",
            )
        return pairs

    def read(self, record: ImageRecord) -> SearchArea:
        """Read one image, whole and at its own resolution."""
        return next(self._read_all([record]))

    def read_mask(self, path: Path, size: tuple[int, int]) -> Mask:
        """Read the building mask of an image of `size` (height, width)."""
        del size
        return read_mask(path)

    def scan_for(self, grid: Grid) -> list[ImageRecord]:
        """List every image that areas of a grid are made from; by default the same for all grids."""
        del grid
        return self.scan()

    def pieces(self, image: SearchArea, grid: Grid) -> Iterator[SearchArea]:
        """Cut one image into areas of a grid; by default the whole image is one area."""
        del grid
        yield image

    def selects(self, *records: ImageRecord) -> bool:
        """Return True if the options `names`, `only`, `without` and `split` select an image, or a pair of images."""
        names = [record.name for record in records]
        return (
            (self.names is None or any(name in self.names for name in names))
            and (not self.only or any(NameFilter(self.only).matches(name) for name in names))
            and all(NameFilter(without=self.without).matches(name) for name in names)
            and (not self.split or any(record.split == self.split for record in records))
        )

    def select(self, records: Sequence[ImageRecord]) -> list[ImageRecord]:
        """Return the records that the options select, in their order.

        Raises:
            AirlocError: If nothing is left, or a name of `names` is unknown.
        """
        missing = sorted(set(self.names or ()) - {record.name for record in records})
        if missing:
            others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise AirlocError(
                f"{self.location} has no image {missing[0]!r}{others}",
                "Check the names, or give the folder that holds them",
            )
        selected = [record for record in records if self.selects(record)]
        if selected or not records:
            return selected
        patterns = NameFilter(self.only, self.without)
        if not any(patterns.matches(record.name) for record in records):
            raise patterns.no_match_error(self.location)
        present = ", ".join(sorted({record.split for record in records} - {""})) or "none"
        raise AirlocError(
            f"No image of {self.location} is in the split {self.split!r}; its splits are: {present}",
            "Give another --split, or name the splits in windows.csv beside the images",
        )

    def count_areas(self) -> dict[str, int]:
        """Return the number of 5 x 5 areas by split or subset."""
        return count_splits(record.split for record in self.scan_for(Grid()))

    def status(self) -> Status:
        """Check what is present."""
        location, option = self.location, f"--{self.location_option}"
        status = Status(self.name, location, self.state(), expected=self.expected)
        if not location.exists():
            return replace(status, state="absent", remark=f"run `airloc data fetch {self.name}`")
        try:
            counts = self.count_areas()
        except AirlocError as error:
            return replace(status, state="damaged", remark=str(error))
        command = f"{self.name} {option} {quote(str(location))}"
        return replace(status, areas=counts, command=command, remark=self.remark())

    def state(self) -> str:
        """Return the `Status.state` of data that is present."""
        return "published layout"

    def remark(self) -> str:
        """Return a note on data that is present, for `airloc data list`."""
        return ""

    def download(
        self, *, mirror: str = "", timeouts: Timeouts | None = None, progress: Progress | None = None
    ) -> Downloaded:
        """Download the data, or what is still missing of it, from a mirror or from the dataset's own site.

        Raises:
            AirlocError: If the data requires a form or registration; the message says where, and how to unpack it.
        """
        del mirror, timeouts, progress
        root = getattr(self, "root", None) or f"${VARIABLE}/{self.name}"
        raise AirlocError(
            f"{self.title} cannot be downloaded by airloc: {self.obtain or 'it has no public address'}",
            self.unpack.format(root=root) or f"Put its images into {root}",
        )

    def _read_all(self, records: Sequence[ImageRecord]) -> Iterator[SearchArea]:
        """Read images; a file is read once for consecutive pieces of it."""
        for _, group in groupby(records, key=lambda record: (record.path, record.mask)):
            whole: SearchArea | None = None
            for record in group:
                whole = whole or self._read_file(record)
                piece = whole
                if record.corner is not None and record.size is not None:
                    piece = cut_piece(whole, record.corner, record.size)
                yield replace(piece, name=record.name, tile=record.tile, split=record.split)

    def _read_file(self, record: ImageRecord) -> SearchArea:
        """Read the whole file of a record."""
        image = read_image(record.path)
        height, width = image.shape[:2]
        mask = None if record.mask is None else self.read_mask(record.mask, (height, width))
        ground = None
        if record.width_m is not None:
            ground = (record.width_m * height / width, record.width_m)
        elif record.metres_per_pixel is not None:
            ground = (height * record.metres_per_pixel, width * record.metres_per_pixel)
        return SearchArea(record.path.name, image, mask, ground)

    def _fit_all(self, images: Iterable[SearchArea], grid: Grid) -> Iterator[SearchArea]:
        """Cut, crop and resample images to a grid; report how many are left out."""
        kept = left_out = 0
        for image in images:
            before = kept + left_out
            for piece in self.pieces(image, grid):
                area = self._crop_and_fit(piece, grid)
                if area is None:
                    left_out += 1
                else:
                    kept += 1
                    yield area
            left_out += kept + left_out == before  # the image is too small for one piece
        self._report(kept, left_out, grid)

    def _fit_pairs(
        self, pairs: Iterable[tuple[SearchArea, SearchArea]], grid: Grid
    ) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Crop and resample pairs of images to a grid; report how many are left out."""
        kept = left_out = 0
        for first, second in pairs:
            area, goal = self._crop_and_fit(first, grid), self._crop_and_fit(second, grid)
            if area is None or goal is None:
                left_out += 1
            else:
                kept += 1
                yield area, goal
        self._report(kept, left_out, grid)

    def _crop_and_fit(self, area: SearchArea, grid: Grid) -> SearchArea | None:
        """Crop to `cell_metres` and resample to the grid; None if the image does not cover enough ground."""
        if self.cell_metres is None:
            return fit(area, grid)
        cropped = crop_ground(area, (grid.rows * self.cell_metres, grid.cols * self.cell_metres))
        return None if cropped is None else fit(cropped, grid)

    def _requirement(self, grid: Grid) -> str:
        """Describe the size that an image must have to give an area; empty if any size will do."""
        if self.cell_metres is None:
            return ""
        return f"{grid.cols * self.cell_metres:g} x {grid.rows * self.cell_metres:g} m"

    def _report(self, kept: int, left_out: int, grid: Grid) -> None:
        """Warn about images that are too small; raise if no area is left."""
        needed = self._requirement(grid)
        if kept == 0:
            problem = f"No image of {self.location} gives an area of {grid} cells"
            raise AirlocError(
                f"{problem}; none is known to cover {needed}" if needed else problem,
                "Give smaller cells or pieces, larger images, or the ground size (side_m) in windows.csv"
                if needed
                else "Check the images with `airloc data show`",
            )
        if left_out and needed:
            log.warning("%d of %s left out: not known to cover %s", left_out, self.location, needed)
