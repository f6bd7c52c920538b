"""A search area: one aerial image, as an array, with what is known about it.

Legend: H, W: height and width in pixels; images are uint8 RGB (H, W, 3), masks are bool (H, W).
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.errors import AirlocError
from airloc.grid import Grid

Pixels: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SearchArea:
    """One aerial image over which a search runs."""

    name: str
    """What the area is called; for files, the file name."""
    image: Pixels
    """RGB, (H, W, 3)."""
    mask: Mask | None = None
    """True on buildings, (H, W); None where nobody marked them."""
    ground_m: tuple[float, float] | None = None
    """Height and width on the ground in metres, where known."""
    tile: str = ""
    """The source image it was cut from; areas of one tile are not independent. Empty: its own tile."""
    split: str = ""
    """`train`, `val` or `test`; empty where the data has no splits."""

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8:
            raise AirlocError(
                f"Area {self.name!r} has an image of shape {self.image.shape} and type {self.image.dtype}",
                "Give RGB bytes of shape (height, width, 3)",
            )
        if self.mask is not None and self.mask.shape != self.image.shape[:2]:
            height, width = self.image.shape[:2]
            raise AirlocError(
                f"The mask of area {self.name!r} is {self.mask.shape[1]} x {self.mask.shape[0]} px, "
                f"its image {width} x {height} px",
                "Give a mask of the size of the image, or none",
            )

    @property
    def source(self) -> str:
        """The tile, or the area itself where it has none: what a bootstrap resamples."""
        return self.tile or self.name


def fit(area: SearchArea, grid: Grid) -> SearchArea:
    """Crop an area at its centre to the grid's aspect and resample it (antialiased) to the grid's size."""
    height, width = area.image.shape[:2]
    if min(height, width) < grid.cell:
        raise AirlocError(
            f"Area {area.name!r} is {width} x {height} px, smaller than one cell of {grid.cell} px",
            "Use a larger picture, or smaller cells",
        )
    to_height, to_width = grid.size
    if (height, width) == (to_height, to_width):
        return area
    scale = min(height / to_height, width / to_width)
    crop_height, crop_width = scale * to_height, scale * to_width
    top, left = max(0.0, (height - crop_height) / 2), max(0.0, (width - crop_width) / 2)
    box = (left, top, min(float(width), left + crop_width), min(float(height), top + crop_height))
    ground = area.ground_m and (area.ground_m[0] * crop_height / height, area.ground_m[1] * crop_width / width)
    return replace(
        area,
        image=_resample(area.image, grid.size, box),
        mask=None if area.mask is None else _resample(area.mask.astype(np.uint8) * 255, grid.size, box) >= 128,
        ground_m=ground,
    )


def _resample(pixels: Pixels, size: tuple[int, int], box: tuple[float, float, float, float]) -> Pixels:
    """Resample the box (left, top, right, bottom) of an image to `size` (height, width)."""
    picture = Image.fromarray(pixels).resize(size[::-1], Image.Resampling.LANCZOS, box=box)
    return np.asarray(picture)
