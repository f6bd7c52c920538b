"""xBD (`xbd`): places before and after natural disasters, from satellites.

The data: 1024 x 1024 px PNG images in pre/post pairs with building outlines as JSON, unpacked into one folder or into
`train`, `tier1`, `tier3`, `test`, `hold` and so on; JPEG and other sizes are read too.

    images/hurricane-michael_00000001_pre_disaster.png    labels/hurricane-michael_00000001_pre_disaster.json

Terms: CC BY-NC-SA 4.0, on request at https://xview2.org; weights trained on it carry the same terms.

Citation: R. Gupta et al., "xBD: A Dataset for Assessing Building Damage from Satellite Imagery", 2019.

One image is one area. The paper trains on hurricane Michael before the event (xBD-pre) and tests on every other event
after it (xBD-disaster), both from what was then published as `tier1`. Ground sizes vary (0.4 to 0.5 m per pixel at full
size) and are not in the images, so they are left unknown.

Legend: a ring is a list of (x, y) pixels; a polygon is its outer ring followed by its holes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from airloc.areas.area import SUFFIXES, Mask
from airloc.areas.dataset import Dataset
from airloc.areas.records import ImageRecord
from airloc.errors import AirlocError

TRAINING_EVENT = "hurricane-michael"
"""The event that the paper trains on; all the others are for testing."""

NAME = re.compile(r"(?P<event>.+)_(?P<number>\d+)_(?P<when>pre|post)_disaster")
"""The published names, without their suffix."""

Subset = Literal["pre", "post", "disaster", "before", "all"]
Ring: TypeAlias = list[tuple[float, float]]
Polygon: TypeAlias = list[Ring]


@dataclass(frozen=True)
class Xbd(Dataset):
    """Images of xBD, each an area."""

    name = "xbd"
    title = "xBD"
    terms = "CC BY-NC-SA 4.0"
    weight_terms = "CC BY-NC-SA 4.0"
    obtain = "the dataset is CC BY-NC-SA 4.0 and available to registered users only: https://xview2.org"
    unpack = (
        "Unpack it so that {root} holds `images` and `labels`, or `train/images` and so on "
        "(files are called EVENT_00000000_pre_disaster.png)"
    )
    expected: ClassVar[Mapping[str, int]] = {"pre": 902, "disaster": 1303}

    root: Path | None = None
    """The folder with images and labels, or with subfolders that have them. Default: $AIRLOC_DATA/xbd."""
    subset: Subset = "pre"
    """Michael before the event (pre: the paper's xBD-pre) or after it (post), the other events after (disaster: the
    paper's xBD-disaster) or before them (before), or all images."""
    tiers: tuple[str, ...] = ()
    """Only these subfolders, such as tier1. Default: all."""
    validation_every: int = 0
    """Put every image of the training event with this number, such as the 10th, 20th and so on, into the split val;
    0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset not in get_args(Subset):
            raise AirlocError(f"xBD has no subset {self.subset!r}", f"Use one of {', '.join(get_args(Subset))}")

    @classmethod
    def detect(cls, path: Path) -> bool:
        """Return True for a folder with images of published names in subfolders."""
        inside = (file.stem for folder in _image_folders(path, ()) for file in folder.iterdir())
        return any(NAME.fullmatch(stem) for stem in inside)

    def scan(self) -> list[ImageRecord]:
        """List all images, in the order of their names; a name that occurs in two subfolders counts once."""
        found: dict[str, ImageRecord] = {}
        for path in (path for folder in _image_folders(self.location, self.tiers) for path in folder.iterdir()):
            match = NAME.fullmatch(path.stem)
            if match and path.suffix.lower() in SUFFIXES:
                found.setdefault(path.stem, _record(path, match))
        if not found:
            raise AirlocError(
                f"There are no images images/EVENT_00000000_pre_disaster.png in {self.location}"
                + (f" under {', '.join(self.tiers)}" if self.tiers else ""),
                "Run `airloc data fetch xbd` to read where to get the dataset",
            )
        return self._mark_validation([found[name] for name in sorted(found)])

    def selects(self, *records: ImageRecord) -> bool:
        """Return True if an image, or one of a pair of images, is in the subset and selected."""
        return any(_in_subset(record, self.subset) for record in records) and super().selects(*records)

    def read_mask(self, path: Path, size: tuple[int, int]) -> Mask:
        """Draw the buildings of a label file."""
        return read_labels(path, size)

    def count_areas(self) -> dict[str, int]:
        """Return the number of areas of the paper's two subsets."""
        records = self.scan()
        subsets: tuple[Subset, Subset] = ("pre", "disaster")
        return {subset: sum(_in_subset(record, subset) for record in records) for subset in subsets}

    def _mark_validation(self, records: list[ImageRecord]) -> list[ImageRecord]:
        """Put every `validation_every`-th image of the training event, before and after apart, into val."""
        if self.validation_every < 1:
            return records
        counts = {"pre": 0, "post": 0}
        marked = []
        for record in records:
            if record.split == "train":
                when = "post" if record.day else "pre"
                counts[when] += 1
                if counts[when] % self.validation_every == 0:
                    record = replace(record, split="val")
            marked.append(record)
        return marked


def _image_folders(root: Path, tiers: tuple[str, ...]) -> list[Path]:
    """Return the folders of images: below the root, and below its subfolders or the tiers."""
    bases = [root / tier for tier in tiers] if tiers else [root, *sorted(root.glob("*/"))]
    return [base / "images" for base in bases if (base / "images").is_dir()]


def _record(path: Path, match: re.Match[str]) -> ImageRecord:
    place = f"{match['event']}_{match['number']}"
    labels = path.parent.with_name("labels") / f"{path.stem}.json"
    split = "train" if match["event"] == TRAINING_EVENT else "test"
    return ImageRecord(
        path.name,
        path,
        labels if labels.is_file() else None,
        tile=place,
        split=split,
        place=place,
        day=int(match["when"] == "post"),
    )


def _in_subset(record: ImageRecord, subset: Subset) -> bool:
    training = record.split != "test"
    return {
        "pre": training and record.day == 0,
        "post": training and record.day == 1,
        "disaster": not training and record.day == 1,
        "before": not training and record.day == 0,
        "all": True,
    }[subset]


def read_labels(path: Path, size: tuple[int, int]) -> Mask:
    """Rasterise the buildings of a label file to a mask of `size` (height, width)."""
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
        labelled = float(labels["metadata"]["width"]), float(labels["metadata"]["height"])
        polygons: list[Polygon] = []
        for feature in labels["features"]["xy"]:
            if feature.get("properties", {}).get("feature_type", "building") == "building":
                polygons += parse_polygons(feature["wkt"])
        return draw_mask(polygons, size, (size[1] / labelled[0], size[0] / labelled[1]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise AirlocError(f"Cannot read the labels {path}: {error!r}", "Replace the file, or delete it") from error


def parse_polygons(text: str) -> list[Polygon]:
    """Parse a POLYGON or MULTIPOLYGON in well-known text (WKT).

    >>> parse_polygons("POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))")
    [[[(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 0.0)], [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.0, 1.0)]]]

    Raises:
        ValueError: If the text is neither.
    """
    match = re.fullmatch(r"\s*(MULTI)?POLYGON\s*Z?\s*(EMPTY|\(.*\))\s*", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a WKT polygon")
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
    """Parse `x y, x y, ...`; a third coordinate is ignored."""
    points = [tuple(map(float, pair.split())) for pair in text.split(",")]
    if len(points) < 3 or any(len(point) < 2 for point in points):
        raise ValueError(f"{text[:40]!r} is not a ring of three points or more")
    return [(point[0], point[1]) for point in points]
