"""Conditions of an image that carry no information about place: compression, resampling, lens, tone, mirrors.

`CONDITIONS` maps names to functions of an image, (H, W, 3) uint8. Most change a whole area at its own resolution,
before it is resampled to the grid and cut into cells; some change every cell on its own. Glimpses and goals come from
the same changed area. A mirrored area takes the start and the goal of an episode with it.

A network that learns where one patch lies to another learns shortcuts through such conditions: the block grid of JPEG
has a period of 8 px, or of 16 px where chroma is subsampled, and cells lie 52 px apart, so that the phase of the block
grid in two patches tells about the direction between them.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from airloc.areas.area import Pixels, SearchArea, fit
from airloc.grid import Grid
from airloc.seeding import stream
from airloc.task.cells import flip_cells

Cells: TypeAlias = npt.NDArray[np.int64]
Change: TypeAlias = Callable[[Pixels, np.random.Generator], Pixels]

BLOCK = 16
"""Period of JPEG's block grid in pixels, with chroma subsampled."""


def jpeg(
    image: Pixels,
    rng: np.random.Generator,
    *,
    quality: int,
    chroma: bool = False,
    phase: tuple[int, int] | None = (0, 0),
) -> Pixels:
    """Save an image as JPEG and read it again.

    Args:
        image: The image.
        rng: Draws the phase.
        quality: Quality from 1 to 95.
        chroma: Keep chroma at full resolution (4:4:4); otherwise it is subsampled (4:2:0).
        phase: Row and column by which the block grid is moved, 0 to 15. None draws them.
    """
    top, left = rng.integers(BLOCK, size=2).tolist() if phase is None else phase
    padded = np.pad(image, ((top, 0), (left, 0), (0, 0)), mode="edge")
    file = io.BytesIO()
    Image.fromarray(padded).save(file, "JPEG", quality=quality, subsampling=0 if chroma else 2)
    return np.asarray(Image.open(file))[top:, left:]


def resample(image: Pixels, rng: np.random.Generator, *, factor: float, kernel: Image.Resampling) -> Pixels:
    """Resample an image to `factor` times its size and back."""
    del rng
    height, width = image.shape[:2]
    other = Image.fromarray(image).resize((round(width * factor), round(height * factor)), kernel)
    return np.asarray(other.resize((width, height), kernel))


def half_pixel(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Move an image by half a pixel down and right: the mean of four neighbours."""
    del rng
    padded = np.pad(image, ((1, 0), (1, 0), (0, 0)), mode="edge").astype(np.uint16)
    total = padded[1:, 1:] + padded[:-1, 1:] + padded[1:, :-1] + padded[:-1, :-1]
    return ((total + 2) // 4).astype(np.uint8)


def saved_at(image: Pixels, rng: np.random.Generator, *, factor: float) -> Pixels:
    """Resample an image to `factor` times its size and save it there as JPEG 75; the grid then resamples it again."""
    height, width = (round(side * factor) for side in image.shape[:2])
    resized = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))
    return jpeg(resized, rng, quality=75)


def sharpen(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Sharpen an image by an unsharp mask, which leaves halos of about a pixel."""
    del rng
    return np.asarray(Image.fromarray(image).filter(ImageFilter.UnsharpMask(radius=1, percent=60, threshold=0)))


def chromatic_aberration(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Enlarge red and reduce blue about the centre, by half a pixel at the border."""
    del rng
    height, width = image.shape[:2]
    planes = []
    for channel, inset in zip(range(3), (0.5, 0.0, -0.5), strict=True):
        plane = Image.fromarray(np.pad(image[..., channel], 1, mode="edge"))
        box = (1 + inset, 1 + inset, width + 1 - inset, height + 1 - inset)
        planes.append(np.asarray(plane.resize((width, height), Image.Resampling.BILINEAR, box=box)))
    return np.stack(planes, axis=2)


def vignette(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Darken an area towards its corners, by 15 % there."""
    del rng
    row, col = (np.linspace(-1, 1, side) for side in image.shape[:2])
    light = 1 - 0.15 * (row[:, None] ** 2 + col**2) / 2
    return (image * light[..., None] + 0.5).astype(np.uint8)


def mosaic_seam(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Give a half of an area another tone, as where two images of a mosaic meet."""
    half = image.shape[1] // 2
    gain = np.exp(rng.choice([-1, 1]) * 0.06 + rng.normal(0, 0.02, size=3))
    toned = image.copy()
    toned[:, half:] = (image[:, half:] * gain + 0.5).clip(0, 255).astype(np.uint8)
    return toned


def mirror(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Flip an image left to right."""
    del rng
    return np.ascontiguousarray(image[:, ::-1])


def transpose(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Swap rows and columns of an image."""
    del rng
    return np.ascontiguousarray(image.swapaxes(0, 1))


def _same_cells(cells: Cells, grid: Grid) -> Cells:
    del grid
    return cells


def _mirrored_cells(cells: Cells, grid: Grid) -> Cells:
    return flip_cells(cells, 1, grid)


def _transposed_cells(cells: Cells, grid: Grid) -> Cells:
    del grid
    return np.ascontiguousarray(cells[..., ::-1])


@dataclass(frozen=True)
class Condition:
    """A condition under which the same episodes are played."""

    title: str
    """What it is, for tables."""
    change: Change
    """Returns the changed image."""
    each_cell: bool = False
    """Change every cell on its own, after the area was resampled to the grid."""
    context: int = 0
    """Pixels around a cell that its photo shows, mirrored at the border of the area. The photo is then cropped."""
    noticeable: bool = False
    """A person would notice it in the image, so that it may lower success."""
    move_cells: Callable[[Cells, Grid], Cells] = _same_cells
    """Returns where the content of cells (..., 2) is after the change."""
    size: float | None = None
    """Size at which the area was saved, in units of its own. Success must not depend on it."""
    square: bool = False
    """Needs a square grid."""

    @property
    def mirrors(self) -> bool:
        """Return True if the area is mirrored."""
        return self.move_cells is not _same_cells

    def apply(self, name: str, area: SearchArea, grid: Grid, seed: int) -> SearchArea:
        """Return the changed area at the size of the grid. `name` is the condition's and selects the random numbers."""
        rng = stream(seed, "condition", name, ascii(area.name))
        if not self.each_cell:
            return fit(replace(area, image=self.change(area.image, rng), mask=None), grid)
        fitted = fit(replace(area, mask=None), grid)
        image, around = fitted.image.copy(), self.context
        padded = np.pad(image, ((around, around), (around, around), (0, 0)), mode="reflect")
        for cell in grid.cells():
            left, top, right, bottom = grid.box(cell)
            photo = self.change(padded[top : bottom + 2 * around, left : right + 2 * around], rng)
            image[top:bottom, left:right] = photo[around : around + grid.cell, around : around + grid.cell]
        return replace(fitted, image=image)


def _compression(quality: int) -> dict[str, Condition]:
    """Return the conditions of one JPEG quality, with chroma subsampled."""
    name, seen = f"JPEG {quality}", quality < 60
    save = partial(jpeg, quality=quality)
    return {
        f"jpeg-{quality}": Condition(f"{name}, aligned", save, noticeable=seen, size=1.0 if quality == 75 else None),
        f"jpeg-{quality}-moved": Condition(f"{name}, moved by 3 px", partial(save, phase=(3, 3)), noticeable=seen),
        f"jpeg-{quality}-cells": Condition(f"{name}, each cell at phase 0", save, each_cell=True, noticeable=seen),
        f"jpeg-{quality}-cells-phase": Condition(
            f"{name}, each cell at its own phase", partial(save, phase=None), each_cell=True, noticeable=seen
        ),
        f"jpeg-{quality}-photos": Condition(
            f"{name}, each cell from a larger photo",
            partial(save, phase=None),
            each_cell=True,
            context=BLOCK,
            noticeable=seen,
        ),
    }


_NEAREST, _BILINEAR, _BICUBIC, _LANCZOS = (
    Image.Resampling.NEAREST,
    Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC,
    Image.Resampling.LANCZOS,
)
_444 = partial(jpeg, quality=75, chroma=True)

CONDITIONS: dict[str, Condition] = {
    **_compression(95),
    **_compression(75),
    **_compression(50),
    "jpeg-75-444": Condition("JPEG 75, full chroma, aligned", _444),
    "jpeg-75-444-moved": Condition("JPEG 75, full chroma, moved by 3 px", partial(_444, phase=(3, 3))),
    "jpeg-75-444-cells": Condition("JPEG 75, full chroma, each cell at phase 0", _444, each_cell=True),
    "jpeg-75-444-cells-phase": Condition(
        "JPEG 75, full chroma, each cell at its own phase", partial(_444, phase=None), each_cell=True
    ),
    "size-0.88": Condition("JPEG 75 saved at 88 % of the size", partial(saved_at, factor=0.88), size=0.88),
    "size-0.92": Condition("JPEG 75 saved at 92 % of the size", partial(saved_at, factor=0.92), size=0.92),
    "size-0.96": Condition("JPEG 75 saved at 96 % of the size", partial(saved_at, factor=0.96), size=0.96),
    "size-1.04": Condition("JPEG 75 saved at 104 % of the size", partial(saved_at, factor=1.04), size=1.04),
    "size-1.08": Condition("JPEG 75 saved at 108 % of the size", partial(saved_at, factor=1.08), size=1.08),
    "enlarged-bilinear": Condition(
        "enlarged by 5 % and back, bilinear", partial(resample, factor=1.05, kernel=_BILINEAR)
    ),
    "enlarged-bicubic": Condition("enlarged by 5 % and back, bicubic", partial(resample, factor=1.05, kernel=_BICUBIC)),
    "enlarged-lanczos": Condition("enlarged by 5 % and back, Lanczos", partial(resample, factor=1.05, kernel=_LANCZOS)),
    "reduced-nearest": Condition(
        "reduced by 5 % and back, nearest", partial(resample, factor=0.95, kernel=_NEAREST), noticeable=True
    ),
    "reduced-bilinear": Condition(
        "reduced by 5 % and back, bilinear", partial(resample, factor=0.95, kernel=_BILINEAR)
    ),
    "reduced-bicubic": Condition("reduced by 5 % and back, bicubic", partial(resample, factor=0.95, kernel=_BICUBIC)),
    "reduced-lanczos": Condition("reduced by 5 % and back, Lanczos", partial(resample, factor=0.95, kernel=_LANCZOS)),
    "half-pixel": Condition("moved by half a pixel", half_pixel),
    "sharpened": Condition("sharpened", sharpen),
    "chromatic-aberration": Condition("chromatic aberration", chromatic_aberration),
    "vignetting": Condition("vignetting of the area", vignette),
    "mosaic-seam": Condition("seam of a mosaic", mosaic_seam, noticeable=True),
    "mirrored": Condition("mirrored", mirror, move_cells=_mirrored_cells),
    "transposed": Condition("transposed", transpose, move_cells=_transposed_cells, square=True),
}
"""All conditions by name."""
