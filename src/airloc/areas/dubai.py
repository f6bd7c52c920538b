"""Semantic segmentation of Dubai (`dubai`): 72 satellite images of eight scenes of a desert city.

The data, as published: one folder per scene, images of 509 x 544 to 2149 x 2062 px, class masks, and the classes.

    Tile 1/images/image_part_001.jpg    Tile 1/masks/image_part_001.png    classes.json

Terms: CC0. Citation: Humans in the Loop, "Semantic segmentation dataset", 2020, https://humansintheloop.org.

The paper only tests on it. Areas are cut as from Massachusetts: 500 x 500 px for 5 x 5 cells, and pieces with 100 or
more pure white pixels are dropped. On the whole set that leaves 154 of 270 pieces. Dropping every image with white
would leave 36; dropping nothing, as the authors' published script does here, leaves 270. The paper has 196, by a rule
that it does not state, so `airloc data list` shows the difference. Limits from 219 to 231 white pixels also give 196,
but the paper does not say which areas it dropped, so the stated limit of 100 stays.

Buildings are #D0021B in `classes.json`, but #3C1098 in the masks. Both colours count as buildings; no other class has
either of them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from airloc.areas.area import (
    MAX_WHITE,
    Mask,
    Pixels,
    SearchArea,
    cut_pieces,
    fit,
    list_images,
    paper_size,
    read_image,
    white_pixels,
)
from airloc.areas.captions.land_cover import Cover, LandCover, from_classes
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord
from airloc.errors import AirlocError
from airloc.grid import Grid

MASK_COLOUR = "#3C1098"
"""Colour of buildings in the published masks."""

CLASS_COLOURS = {
    "#8429F6": Cover.GROUND,
    "#FEDD3A": Cover.TREES,
    "#E2A929": Cover.LAKE,
    "#6EC1E4": Cover.ROAD,
    MASK_COLOUR: Cover.BUILDING,
}
"""Colours of the classes in the published masks."""


@dataclass(frozen=True)
class Dubai(Dataset):
    """Areas cut from the images of Dubai; all of them are for testing."""

    name = "dubai"
    title = "Dubai"
    terms = "Humans in the Loop, CC0"
    obtain = "the dataset is CC0, but its page requires a form: https://humansintheloop.org/resources/datasets/semantic-segmentation-dataset-2/"
    unpack = "Unpack it so that {root} holds `Tile 1/images`, `Tile 1/masks` and so on, and `classes.json`"
    expected: ClassVar[Mapping[str, int]] = {"test": 196}

    root: Path | None = None
    """The folder with Tile 1, Tile 2 and so on. Default: $AIRLOC_DATA/dubai."""
    max_white: int = MAX_WHITE
    """Areas with this many pure white pixels or more are dropped."""

    @classmethod
    def detect(cls, path: Path) -> bool:
        """Return True for a folder with scenes."""
        return any(path.glob("Tile */images"))

    def scan(self) -> list[ImageRecord]:
        """List all images, scene by scene; names carry the scene, since file names repeat from scene to scene."""
        root = self.require_location()
        scenes = sorted(root.glob("Tile */images"))
        if not scenes:
            raise AirlocError(
                f"The folder {root} has no `Tile 1/images`",
                "Run `airloc data fetch dubai` to read where to get it",
            )
        return [_record(path) for scene in scenes for path in list_images(scene)]

    def pieces(self, image: SearchArea, grid: Grid) -> Iterator[SearchArea]:
        """Cut an image into pieces of the paper's size; pieces with too many white pixels are dropped."""
        pieces = cut_pieces(image, paper_size(grid))
        return (piece for piece in pieces if white_pixels(piece.image) < self.max_white)

    def read_mask(self, path: Path, size: tuple[int, int]) -> Mask:
        """Read the pixels that have a colour of buildings."""
        del size
        labels = read_image(path)
        mask: Mask = np.any([_is_colour(labels, colour) for colour in building_colours(self.location)], axis=0)
        return mask

    def land_covers(self, grid: Grid) -> Iterator[tuple[SearchArea, LandCover]]:
        """Read the areas, each with the classes of its mask: buildings, roads, vegetation, water and bare ground."""
        for record in self.records():
            if record.mask is None:
                continue
            whole, labels = read_image(record.path), read_image(record.mask)
            layers = [
                [fit(piece, grid) for piece in self.pieces(SearchArea(record.name, whole, mask), grid)]
                for mask in (_is_colour(labels, _rgb(name)) for name in CLASS_COLOURS)
            ]
            for pieces in zip(*layers, strict=True):
                classes = np.zeros(grid.size, dtype=np.uint8)
                for piece, cover in zip(pieces, CLASS_COLOURS.values(), strict=True):
                    classes[piece.mask] = cover
                known = frozenset(CLASS_COLOURS.values())
                yield pieces[0], from_classes(classes, known, pieces[0].image, grid.cell)

    def count_areas(self) -> dict[str, int]:
        """Return the number of 5 x 5 areas; all images are read for it."""
        images = (SearchArea(record.name, read_image(record.path)) for record in self.scan())
        return {"test": sum(1 for image in images for _ in self.pieces(image, Grid()))}


def _is_colour(labels: Pixels, colour: tuple[int, int, int]) -> Mask:
    mask: Mask = (labels == np.array(colour, dtype=np.uint8)).all(axis=2)
    return mask


def _record(path: Path) -> ImageRecord:
    scene = path.parent.parent
    masks = sorted((scene / "masks").glob(f"{path.stem}.*"))
    return ImageRecord(f"{scene.name} {path.name}", path, masks[0] if masks else None, tile=scene.name, split="test")


def building_colours(root: Path) -> list[tuple[int, int, int]]:
    """Return the RGB colours of buildings: the one in the masks, and the one that `classes.json` names."""
    names = [MASK_COLOUR]
    path = root / "classes.json"
    if path.is_file():
        try:
            classes = json.loads(path.read_text(encoding="utf-8"))["classes"]
            names += [entry["color"] for entry in classes if entry["title"].lower() == "building"]
            return [_rgb(name) for name in names]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise AirlocError(f"Cannot read the classes in {path}: {error!r}", "Replace the file") from error
    return [_rgb(MASK_COLOUR)]


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
