"""Building outlines as well-known text (WKT) polygons, and masks drawn from them.

Legend: a ring is a list of (x, y) pixels; a polygon is its outer ring followed by its holes.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from airloc.areas.area import Mask, SearchArea, fit
from airloc.areas.dataset import dataset_root
from airloc.areas.images import SUFFIXES, read_picture
from airloc.errors import AirlocError
from airloc.grid import Grid

Ring: TypeAlias = list[tuple[float, float]]
Polygon: TypeAlias = list[Ring]


def parse_polygons(text: str) -> list[Polygon]:
    """Read a POLYGON or MULTIPOLYGON.

    >>> parse_polygons("POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))")
    [[[(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 0.0)], [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.0, 1.0)]]]

    Raises:
        ValueError: If the text is neither.
    """
    match = re.fullmatch(r"\s*(MULTI)?POLYGON\s*Z?\s*(EMPTY|\(.*\))\s*", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no WKT polygon")
    if match[2].upper() == "EMPTY":
        return []
    bodies = re.split(r"\)\s*\)\s*,\s*\(\s*\(", match[2]) if match[1] else [match[2]]
    return [[_ring(ring) for ring in re.split(r"\)\s*,\s*\(", body.strip("() \t\r\n"))] for body in bodies]


def draw_mask(polygons: Iterable[Polygon], size: tuple[int, int], scale: tuple[float, float] = (1.0, 1.0)) -> Mask:
    """Draw polygons as a mask of `size` (height, width); `scale` (x, y) takes their coordinates to its pixels."""
    mask = Image.new("1", size[::-1])
    draw = ImageDraw.Draw(mask)
    for polygon in polygons:
        outer, *holes = [[(x * scale[0], y * scale[1]) for x, y in ring] for ring in polygon]
        if not holes:
            draw.polygon(outer, fill=1)
            continue
        layer = Image.new("1", size[::-1])
        ImageDraw.Draw(layer).polygon(outer, fill=1)
        for hole in holes:
            ImageDraw.Draw(layer).polygon(hole, fill=0)
        mask.paste(ImageChops.logical_or(mask, layer))
    return np.asarray(mask, dtype=np.bool_)


def _ring(text: str) -> Ring:
    """Read `x y, x y, ...`; a third coordinate is left out."""
    points = [tuple(map(float, pair.split())) for pair in text.split(",")]
    if len(points) < 3 or any(len(point) < 2 for point in points):
        raise ValueError(f"{text[:40]!r} is no ring of three points or more")
    return [(point[0], point[1]) for point in points]


# ---------- xBD (`xbd`): places before and after natural disasters, from satellites.
# ~
# ~ The data: 1024 x 1024 px PNG pictures in pre/post pairs with building outlines as JSON, unpacked into one folder or
# ~ into `train`, `tier1`, `tier3`, `test`, `hold` and so on; JPEG and other sizes are read too.
# ~
# ~     images/hurricane-michael_00000001_pre_disaster.png    labels/hurricane-michael_00000001_pre_disaster.json
# ~
# ~ Terms: CC BY-NC-SA 4.0, on request at https://xview2.org: weights trained on it say so.
# ~
# ~ Citation: R. Gupta et al., "xBD: A Dataset for Assessing Building Damage from Satellite Imagery", 2019.
# ~
# ~ One picture is one area. The paper trains on hurricane Michael before the event (xBD-pre) and tests on every other
# ~ event after it (xBD-disaster), both from what was then published as `tier1`. Ground sizes vary (0.4 to 0.5 m a
# ~ pixel at full size) and are not in the pictures, so they are left open.

PAPER = {"pre": 902, "disaster": 1303}
"""Areas in the paper's two subsets."""

PAGE = "https://xview2.org"

TRAINING_EVENT = "hurricane-michael"
"""The event the paper trains on; all the others are for testing."""

NAME = re.compile(r"(?P<event>.+)_(?P<number>\d+)_(?P<when>pre|post)_disaster")
"""The published names, less their suffix."""

Subset = Literal["pre", "post", "disaster", "before", "all"]


@dataclass(frozen=True)
class Xbd:
    """Pictures of xBD, each an area."""

    root: Path | None = None
    """The folder with images and, where wanted, labels, or with subfolders that have them; $AIRLOC_DATA/xbd if not
    given."""
    subset: Subset = "pre"
    """Michael before (pre: the paper's xBD-pre) or after the event (post), the other events after (disaster: the
    paper's xBD-disaster) or before them (before), or all pictures."""
    tiers: tuple[str, ...] = ()
    """Only these subfolders, such as tier1; none: all."""

    def areas(self, grid: Grid) -> Iterator[SearchArea]:
        """Read the areas one by one, fitted to the grid."""
        for picture in self.pictures():
            yield fit(_read(picture), grid)

    def pictures(self) -> list["Picture"]:
        """The pictures of the subset, in the order of their names."""
        return [found for found in pictures(dataset_root(self.root, "xbd"), self.tiers) if _belongs(found, self.subset)]

    def pairs(self) -> list[tuple["Picture", "Picture"]]:
        """The places of the subset that are there before and after the event, as (pre, post)."""
        there = {(found.place, found.when): found for found in pictures(dataset_root(self.root, "xbd"), self.tiers)}
        places = dict.fromkeys(picture.place for picture in self.pictures())
        return [
            (there[place, "pre"], there[place, "post"])
            for place in places
            if (place, "pre") in there and (place, "post") in there
        ]


class Picture(NamedTuple):
    """One published picture."""

    path: Path
    place: str
    """Event and number: what a pair shares."""
    event: str
    when: str
    """`pre` or `post`."""


def pictures(root: Path, tiers: tuple[str, ...] = ()) -> list[Picture]:
    """Give all pictures, in the order of their names; a name that occurs in two subfolders counts once."""
    bases = [root / tier for tier in tiers] if tiers else [root, *sorted(root.glob("*/"))]
    folders = [base / "images" for base in bases if (base / "images").is_dir()]
    found: dict[str, Picture] = {}
    for path in (path for folder in folders for path in folder.iterdir()):
        match = NAME.fullmatch(path.stem)
        if match and path.suffix.lower() in SUFFIXES:
            place = f"{match['event']}_{match['number']}"
            found.setdefault(path.stem, Picture(path, place, match["event"], match["when"]))
    if not found:
        raise AirlocError(
            f"There are no pictures images/EVENT_00000000_pre_disaster.png in {root}"
            + (f" under {', '.join(tiers)}" if tiers else ""),
            "Run `airloc data fetch xbd` to read where the dataset is had",
        )
    return [found[name] for name in sorted(found)]


def count(root: Path, tiers: tuple[str, ...] = ()) -> dict[str, int]:
    """Count the areas of the paper's subsets, for comparison with `PAPER`."""
    there = pictures(root, tiers)
    return {
        "pre": sum(_belongs(picture, "pre") for picture in there),
        "disaster": sum(_belongs(picture, "disaster") for picture in there),
    }


def _belongs(picture: Picture, subset: Subset) -> bool:
    trains = picture.event == TRAINING_EVENT
    return {
        "pre": trains and picture.when == "pre",
        "post": trains and picture.when == "post",
        "disaster": not trains and picture.when == "post",
        "before": not trains and picture.when == "pre",
        "all": True,
    }[subset]


def _read(picture: Picture) -> SearchArea:
    split = "train" if picture.event == TRAINING_EVENT else "test"
    area = SearchArea(picture.path.name, read_picture(picture.path), tile=picture.place, split=split)
    labels = picture.path.parent.with_name("labels") / f"{picture.path.stem}.json"
    height, width = area.image.shape[:2]
    return replace(area, mask=read_labels(labels, (height, width))) if labels.is_file() else area


def read_labels(path: Path, size: tuple[int, int]) -> Mask:
    """Draw the buildings of a label file as a mask of `size` (height, width), whatever size they were marked at."""
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
        marked = float(labels["metadata"]["width"]), float(labels["metadata"]["height"])
        polygons: list[Polygon] = []
        for feature in labels["features"]["xy"]:
            if feature.get("properties", {}).get("feature_type", "building") == "building":
                polygons += parse_polygons(feature["wkt"])
        return draw_mask(polygons, size, (size[1] / marked[0], size[0] / marked[1]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise AirlocError(f"Cannot read the labels {path}: {error!r}", "Replace the file, or take it away") from error
