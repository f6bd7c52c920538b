"""Semantic segmentation of Dubai (`dubai`): desert city from space, 72 pictures of eight scenes.

The data, as published: a folder a scene, pictures of 509 x 544 to 2149 x 2062 px, class masks, and the classes.

    Tile 1/images/image_part_001.jpg    Tile 1/masks/image_part_001.png    classes.json

Terms: CC0. Citation: Humans in the Loop, "Semantic segmentation dataset", 2020, https://humansintheloop.org.

The paper only tests on it. Areas are cut as from Massachusetts: 500 x 500 px for 5 x 5 cells, pieces with 100 or
more pure white pixels dropped. On the whole set that leaves 154 of 270 pieces (dropping every picture with white
would leave 36; dropping nothing, as the authors' published script does here, 270). The paper has 196, by a rule that
it does not state, so `count` reports the difference. Of the limits tried, any from 219 to 231 comes to 196 too, but
only because it was searched for: which areas the paper dropped is not known, so the stated limit of 100 stays.

The masks are not painted in the colours of `classes.json`: there buildings are #D0021B, in the masks #3C1098. Both
are taken as buildings; neither stands for anything else.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airloc.areas.area import MAX_WHITE, Mask, SearchArea, cut_pieces, fit, paper_size, white_pixels
from airloc.areas.dataset import dataset_root
from airloc.areas.images import list_pictures, read_picture
from airloc.errors import AirlocError
from airloc.grid import Grid

PICTURES = 72
"""Published pictures."""

PAPER = {"test": 196}
"""Areas of 5 x 5 cells in the paper."""

PAGE = "https://humansintheloop.org/resources/datasets/semantic-segmentation-dataset-2/"

PAINTED = "#3C1098"
"""The colour of buildings in the published masks."""


@dataclass(frozen=True)
class Dubai:
    """Areas cut from the pictures of Dubai; all of them are for testing."""

    root: Path | None = None
    """The folder with Tile 1, Tile 2 and so on; $AIRLOC_DATA/dubai if not given."""
    max_white: int = MAX_WHITE
    """Areas with this many pure white pixels or more are dropped."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Read the areas one by one, fitted to the grid."""
        root = dataset_root(self.root, "dubai")
        colours = building_colours(root)
        for path in pictures(root):
            for piece in cut_pieces(_read(path, colours), paper_size(grid)):
                if white_pixels(piece.image) < self.max_white:
                    yield fit(piece, grid)


def pictures(root: Path) -> list[Path]:
    """Give all pictures, scene by scene."""
    scenes = sorted(root.glob("Tile */images")) if root.is_dir() else []
    if not scenes:
        missing = f"There is no folder {root}" if not root.is_dir() else f"The folder {root} has no `Tile 1/images`"
        raise AirlocError(missing, "Run `airloc data fetch dubai` to read where the dataset is had")
    return [path for scene in scenes for path in list_pictures(scene)]


def count(root: Path, grid: Grid) -> dict[str, int]:
    """Count the areas, for comparison with `PAPER`."""
    found = 0
    for path in pictures(root):
        pieces = cut_pieces(SearchArea(path.name, read_picture(path)), paper_size(grid))
        found += sum(white_pixels(piece.image) < MAX_WHITE for piece in pieces)
    return {"test": found}


def building_colours(root: Path) -> list[tuple[int, int, int]]:
    """RGB colours that stand for buildings: the painted one, and the one that `classes.json` names."""
    named = [PAINTED]
    path = root / "classes.json"
    if path.is_file():
        try:
            classes = json.loads(path.read_text(encoding="utf-8"))["classes"]
            named += [entry["color"] for entry in classes if entry["title"].lower() == "building"]
            return [_rgb(colour) for colour in named]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise AirlocError(f"Cannot read the classes in {path}: {error!r}", "Replace the file") from error
    return [_rgb(PAINTED)]


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _read(path: Path, colours: list[tuple[int, int, int]]) -> SearchArea:
    """Read a picture with its mask; its name carries the scene, since file names repeat from scene to scene."""
    scene = path.parent.parent
    masks = sorted((scene / "masks").glob(f"{path.stem}.*"))
    mask: Mask | None = None
    if masks:
        red, green, blue = np.moveaxis(read_picture(masks[0]), 2, 0)
        mask = np.any([(red == r) & (green == g) & (blue == b) for r, g, b in colours], axis=0)
    return SearchArea(f"{scene.name} {path.name}", read_picture(path), mask, tile=scene.name, split="test")
