"""Building outlines as well-known text (WKT) polygons, and masks drawn from them.

Legend: a ring is a list of (x, y) pixels; a polygon is its outer ring followed by its holes.
"""

import re
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from airloc.areas.area import Mask

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
