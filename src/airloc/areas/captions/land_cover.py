"""Land cover of an area: a class for every pixel and the buildings, from which captions are written.

Legend: H, W: height and width in pixels; n: number of buildings.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from airloc.areas.area import Mask, Pixels


class Cover(IntEnum):
    """Class of a pixel."""

    UNKNOWN = 0
    GROUND = 1
    """Bare ground."""
    GRASS = 2
    FIELD = 3
    TREES = 4
    SEA = 5
    LAKE = 6
    RIVER = 7
    SAND = 8
    ROAD = 9
    HIGHWAY = 10
    RAILWAY = 11
    PAVED = 12
    """Car parks and other paved ground."""
    PITCH = 13
    """Sports grounds."""
    POOL = 14
    BUILDING = 15


WATER = (Cover.SEA, Cover.LAKE, Cover.RIVER)


@dataclass(frozen=True)
class Buildings:
    """The buildings of an area."""

    row: npt.NDArray[np.float64]
    """Row of the centre in pixels, (n,)."""
    col: npt.NDArray[np.float64]
    size: npt.NDArray[np.float64]
    """Area as a fraction of the area of a cell, (n,)."""
    colour: npt.NDArray[np.float64]
    """Mean RGB of the roof, (n, 3)."""


@dataclass(frozen=True)
class LandCover:
    """Classes of the pixels of an area, and its buildings."""

    classes: npt.NDArray[np.uint8]
    """`Cover` of every pixel, (H, W)."""
    known: frozenset[Cover]
    """Classes that the source labels. A caption does not mention others, not even that they are absent."""
    buildings: Buildings


def from_classes(classes: npt.NDArray[np.uint8], known: frozenset[Cover], image: Pixels, cell: float) -> LandCover:
    """Return the land cover of labelled pixels (H, W). Connected pixels of buildings are one building.

    Args:
        classes: `Cover` of every pixel.
        known: Classes that the labels distinguish.
        image: The image of the area, for the colours of the roofs.
        cell: Side of a cell in pixels.
    """
    labels, count = ndimage.label(classes == Cover.BUILDING)
    index = np.arange(1, count + 1)
    if not count:
        none = np.zeros(0)
        return LandCover(classes, known, Buildings(none, none, none, np.zeros((0, 3))))
    centres = np.array(ndimage.center_of_mass(labels > 0, labels, index)).reshape(-1, 2)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)[1:] / cell**2
    colour = np.stack([ndimage.mean(image[..., band], labels, index) for band in range(3)], axis=1)
    kept = sizes > 0.002  # specks of a few pixels are no buildings
    return LandCover(classes, known, Buildings(centres[kept, 0], centres[kept, 1], sizes[kept], colour[kept]))


def from_building_mask(mask: Mask, image: Pixels, cell: float) -> LandCover:
    """Return the land cover of an area with a building mask (H, W), and nothing else known."""
    classes = np.where(mask, np.uint8(Cover.BUILDING), np.uint8(Cover.UNKNOWN))
    return from_classes(classes, frozenset({Cover.BUILDING}), image, cell)
