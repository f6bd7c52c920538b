"""Any folder of images, with an optional index.

Every image is one area, or is cut into areas with `cut`. JPEG, PNG, TIFF, WebP and BMP are read; grey, RGBA, palette,
CMYK and 16-bit images are converted. Subfolders are not searched, except that a folder without images of its own is
read from its subfolder `images`. Files that are not images are ignored.

The index `windows.csv` gives the ground size, split and building mask of images. It lies beside the images or in the
parent folder, and the masks lie in `masks/` beside the index. Every column but `image` may be absent or empty:

    image,mask,side_m,split
    23129065_0_100.jpg,23129065_0_100.png,600,val

Pairs: the goal of an area comes from the image of the same name in the folder `goals`, else from the image whose name
differs only in `pre_disaster` and `post_disaster`. Without `goals`, both images lie in this folder.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from airloc.areas.area import SUFFIXES, SearchArea, cut_pieces, list_images, piece_size, tile_of
from airloc.areas.dataset import Dataset
from airloc.areas.records import POST, PRE, ImageRecord, NameFilter, count_splits
from airloc.errors import AirlocError
from airloc.grid import Grid

INDEX = "windows.csv"
MASKS = "masks"


@dataclass(frozen=True, slots=True)
class Window:
    """One row of the index."""

    mask: Path | None = None
    """File of the building mask."""
    side_m: float | None = None
    """Width on the ground in metres."""
    split: str = ""
    """`train`, `val` or `test`."""


@dataclass(frozen=True)
class ImageSet(Dataset):
    """Base class of datasets that are one folder of images, with an optional index."""

    cut: int | None = field(default=None, kw_only=True)
    """Cut each image into pieces, edge to edge, whose longer side has this many pixels and whose aspect is the grid's;
    without it an image is one area."""
    metres_per_pixel: float | None = field(default=None, kw_only=True)
    """Side of a pixel on the ground, for images whose ground size is not in windows.csv."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cut is not None and self.cut < 1:
            raise AirlocError(f"Cannot cut pieces of {self.cut} px", "Give --cut 1 or more")
        if self.metres_per_pixel is not None and not 0 < self.metres_per_pixel < float("inf"):
            raise AirlocError(
                f"Pixels of {self.metres_per_pixel} m are not valid", "Give --metres-per-pixel above 0, such as 0.6"
            )

    def scan(self) -> list[ImageRecord]:
        """List the images, with what the index says about them."""
        return scan_folder(self.require_location(), self.metres_per_pixel)

    def pieces(self, image: SearchArea, grid: Grid) -> Iterator[SearchArea]:
        """Cut one image into pieces of `cut` pixels."""
        return iter([image]) if self.cut is None else cut_pieces(image, piece_size(self.cut, grid))

    def count_areas(self) -> dict[str, int]:
        """Return the number of images, by split if the index names splits."""
        records = self.scan()
        if any(record.split for record in records):
            return count_splits(record.split for record in records)
        return {"images": len(records)}

    def state(self) -> str:
        """Return `windows` for a folder with an index, else `images`."""
        return "images" if _find_index(images_folder(self.location)) is None else "windows"

    def remark(self) -> str:
        """Return the number of building masks."""
        masks = sum(record.mask is not None for record in self.scan())
        return f"{masks} with building masks" if masks else ""

    def _requirement(self, grid: Grid) -> str:
        pixels = "" if self.cut is None else "{1} x {0} px".format(*piece_size(self.cut, grid))
        return " and ".join(part for part in (pixels, super()._requirement(grid)) if part)


@dataclass(frozen=True)
class Folder(ImageSet):
    """Any folder of images."""

    name = "folder"
    title = "A folder of images"
    terms = "yours"
    location_option = "path"

    path: Path
    """The folder; its subfolders are not read."""
    goals: Path | None = None
    """Folder with images of the same places on another day, for pairs. Default: this folder."""

    def record_pairs(self) -> list[tuple[ImageRecord, ImageRecord]]:
        """List the pairs (image of `goals`, image of this folder), or the pairs inside this folder."""
        if self._pairs_inside():
            return super().record_pairs()
        assert self.goals is not None
        goals = {record.name: record for record in scan_folder(self.goals)}
        areas = self.records()
        goal_of = match_goals([area.name for area in areas], goals, self.goals)
        # Both images show the same place, so that the index entry of the area applies to both.
        pairs = ((replace(area, name=goal_of[area.name], path=goals[goal_of[area.name]].path), area) for area in areas)
        return list(pairs)

    def pairs(self, grid: Grid) -> Iterator[tuple[SearchArea, SearchArea]]:
        """Read (area, goal area) pairs; inside one folder, every post_disaster image needs its pre_disaster image."""
        if self._pairs_inside():
            present = [record.name for record in self.scan()]
            patterns = NameFilter(self.only, self.without)
            areas = self.names or [name for name in present if POST in name and patterns.matches(name)]
            check_partners(present, areas, self.location)
        return super().pairs(grid)

    def _pairs_inside(self) -> bool:
        return self.goals is None or self.goals.resolve() == self.location.resolve()


def images_folder(folder: Path) -> Path:
    """Return the folder that holds the images: the folder itself, or its subfolder `images` if it has none."""
    inside = folder / "images"
    return inside if inside.is_dir() and not has_images(folder) else folder


def has_images(folder: Path) -> bool:
    """Return True if a folder holds at least one image file."""
    return folder.is_dir() and any(path.suffix.lower() in SUFFIXES for path in folder.iterdir())


def scan_folder(folder: Path, metres_per_pixel: float | None = None) -> list[ImageRecord]:
    """List the images of a folder, with what its index says about them."""
    place = images_folder(folder)
    windows = read_windows(place)
    return [_record(path, windows.get(path.name), metres_per_pixel) for path in list_images(place)]


def _record(path: Path, window: Window | None, metres_per_pixel: float | None) -> ImageRecord:
    # Only images in an index are windows of tiles; other names may end in two numbers by chance.
    tile = "" if window is None else tile_of(path.name)
    window = window or Window()
    place, day = place_and_day(path.name)
    return ImageRecord(
        path.name,
        path,
        window.mask,
        width_m=window.side_m,
        metres_per_pixel=metres_per_pixel,
        tile=tile,
        split=window.split,
        place=place,
        day=day,
    )


def place_and_day(name: str) -> tuple[str, int]:
    """Return the place that an image shows and its order among the images of the place.

    >>> place_and_day("socal-fire_00000001_post_disaster.png"), place_and_day("town.png")
    (('socal-fire_00000001_.png', 1), ('', 0))
    """
    if POST in name:
        return name.replace(POST, ""), 1
    return (name.replace(PRE, ""), 0) if PRE in name else ("", 0)


def partner(name: str) -> str | None:
    """Return the name of the other image of a pre/post pair; None if the name is of neither kind.

    >>> partner("socal-fire_00000001_post_disaster.png"), partner("town.png")
    ('socal-fire_00000001_pre_disaster.png', None)
    """
    if POST in name:
        return name.replace(POST, PRE)
    return name.replace(PRE, POST) if PRE in name else None


def match_goals(names: Sequence[str], goals: Collection[str], where: Path) -> dict[str, str]:
    """Match each area with the image of its goal: the image of the same name, else its pre/post partner.

    The folder of goals, `where`, holds the images `goals`.
    """
    goal_of = {}
    for name in names:
        candidates = [candidate for candidate in (name, partner(name)) if candidate is not None]
        found = next((candidate for candidate in candidates if candidate in goals), None)
        if found is None:
            wanted = " or ".join(map(repr, candidates))
            raise AirlocError(
                f"The folder of goals {where} has no image {wanted} for the area {name!r}",
                "Put it there, or leave the area out",
            )
        goal_of[name] = found
    return goal_of


def check_partners(present: Sequence[str], names: Sequence[str] | None, folder: Path) -> None:
    """Check that a folder with the images `present` holds areas (post_disaster) with their goals (pre_disaster).

    The areas are `names`; by default all post_disaster images.
    """
    areas = [name for name in present if POST in name] if names is None else list(names)
    if not areas:
        raise AirlocError(
            f"{folder} holds no images named ..._{POST}, and the goals come from the same folder",
            "Give another folder of goals",
        )
    for name in areas:
        if POST not in name:
            raise AirlocError(
                f"The area {name!r} is not a ..._{POST} image, and its goal comes from the same folder {folder}",
                f"Search {POST} images only, or give another folder of goals",
            )
        if (goal := partner(name)) not in present:
            raise AirlocError(
                f"{folder} has no image {goal!r} for the area {name!r}", "Put it there, or leave the area out"
            )


def _find_index(folder: Path) -> Path | None:
    """Find the index of a folder of images: in the folder, or in its parent."""
    places = (folder / INDEX, folder.absolute().parent / INDEX)
    return next((place for place in places if place.is_file()), None)


def read_windows(folder: Path) -> dict[str, Window]:
    """Read the index of a folder of images, by file name; empty if there is no index."""
    index = _find_index(folder)
    if index is None:
        return {}
    try:
        with index.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if "image" not in (reader.fieldnames or ()):
                raise AirlocError(
                    f"The index {index} has no column `image`", "Give it the header image,mask,side_m,split"
                )
            return {row["image"]: _window(row, index, reader.line_num) for row in reader}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AirlocError(f"Cannot read the index {index}: {error}", "Correct the file, or delete it") from error


def _window(row: dict[str, str | None], index: Path, line: int) -> Window:
    """Parse one row; short rows have None for missing columns."""
    mask, side, split = (row.get(column) or "" for column in ("mask", "side_m", "split"))
    try:
        side_m = float(side) if side else None
    except ValueError:
        side_m = -1.0
    if not row["image"] or (side_m is not None and not 0 < side_m < float("inf")):
        raise AirlocError(
            f"Line {line} of {index} is not valid",
            "Write image,mask,side_m,split with a file name and a positive number of metres",
        )
    return Window(index.parent / MASKS / mask if mask else None, side_m, split)
