"""Goal pictures that differ from what the flight sees: another light, sensor, height, cut or heading.

In the field the picture of the goal comes from another day. A `View` says how a picture of a cell was taken, `CHANGES`
draws views of one kind each, and `take` takes the picture from the area. Where the goal lies stays the cell's: a cut
is never nearer to another cell.

Legend: pictures are uint8 RGB (H, W, 3); S side of a cell; a place is (row, col) in pixels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid

SPREADS = {"saturation": 0.5, "gain": 0.1, "contrast": 0.4, "gamma": 0.35}
"""Photometric factors are e^x, x uniform between minus and plus these: saturation by 0.61 to 1.65, for instance."""

BLUR = (0.5, 1.5)
"""Smallest and largest standard deviation of the blur, in pixels."""

TURN = 10.0
"""Largest turn, in degrees."""

MARGIN = 8
"""Pixels of ground around a cut that are seen through blur and coarse pixels before it is cropped."""


@dataclass(frozen=True, slots=True)
class View:
    """How a picture of a cell was taken; by default exactly as the flight sees it."""

    shift: tuple[float, float] = (0.0, 0.0)
    """How far the cut lies below and right of the cell, in cells; at the area's border mirrored to stay inside."""
    turn: float = 0.0
    """Degrees by which the camera was turned, clockwise."""
    blur: float = 0.0
    """Standard deviation of a Gaussian blur, in pixels."""
    coarse: float = 1.0
    """Side of the sensor's pixels, in pixels of the flight."""
    saturation: float = 1.0
    contrast: float = 1.0
    """Factor of the differences from the picture's mean."""
    gains: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Factors of red, green and blue."""
    gamma: float = 1.0


def photometric(rng: np.random.Generator, strength: float) -> View:
    """Another light or sensor: saturation, contrast, channel gains and gamma."""

    def factor(name: str) -> float:
        return math.exp(strength * rng.uniform(-SPREADS[name], SPREADS[name]))

    gains = factor("gain"), factor("gain"), factor("gain")
    return View(saturation=factor("saturation"), gains=gains, contrast=factor("contrast"), gamma=factor("gamma"))


def blur(rng: np.random.Generator, strength: float) -> View:
    """A picture out of focus or in haze."""
    return View(blur=strength * rng.uniform(*BLUR))


def coarse(rng: np.random.Generator, strength: float) -> View:
    """Half the resolution: a picture from twice the height, enlarged."""
    del rng
    return View(coarse=1.0 + strength)


def off_grid(rng: np.random.Generator, strength: float) -> View:
    """A cut that does not know of the grid, up to half a cell down or up and right or left."""
    down, right = strength * rng.uniform(-0.5, 0.5, size=2)
    return View(shift=(float(down), float(right)))


def turned(rng: np.random.Generator, strength: float) -> View:
    """A camera that does not point north."""
    return View(turn=strength * rng.uniform(-TURN, TURN))


def everything(rng: np.random.Generator, strength: float) -> View:
    """All of them at once, each drawn as it is alone."""
    view = photometric(rng, strength)
    return replace(
        view,
        blur=blur(rng, strength).blur,
        coarse=coarse(rng, strength).coarse,
        shift=off_grid(rng, strength).shift,
        turn=turned(rng, strength).turn,
    )


CHANGES: dict[str, Callable[[np.random.Generator, float], View]] = {
    "photometric": photometric,
    "blur": blur,
    "coarse": coarse,
    "off-grid": off_grid,
    "turned": turned,
    "all": everything,
}
"""What draws a view of each kind, from chance and a strength between 0 (no change) and 1."""


def check_change(name: str, strength: float = 1.0) -> str:
    """Give the name of a change back if there is such a one, and such a strength."""
    if name not in CHANGES:
        near = get_close_matches(name, CHANGES, n=1)
        hint = f"Did you mean {near[0]!r}? Changes" if near else "Changes"
        raise AirlocError(f"There is no change {name!r}", f"{hint} are: {', '.join(CHANGES)}")
    if not 0 <= strength <= 1:
        raise AirlocError(f"A change cannot have the strength {strength}", "Give 0 (no change) to 1")
    return name


def take(image: Pixels, grid: Grid, cell: Cell, view: View) -> Pixels:
    """Take the picture of a cell (S, S, 3) from the image of an area of the grid's size."""
    picture = _cut(image, _centre(grid, cell, view), grid.cell + 2 * MARGIN, view.turn)
    if view.blur > 0:
        picture = blurred(picture, view.blur)
    if view.coarse > 1:
        picture = coarsened(picture, view.coarse)
    return recoloured(picture[MARGIN:-MARGIN, MARGIN:-MARGIN], view)


def blurred(picture: Pixels, deviation: float) -> Pixels:
    """Blur with a Gaussian cut off at three standard deviations; the rim goes on outside."""
    light = picture.astype(np.float64)
    light = gaussian_filter(light, (deviation, deviation, 0), mode="nearest", truncate=3.0)
    soft: Pixels = np.round(light).astype(np.uint8)
    return soft


def coarsened(picture: Pixels, side: float) -> Pixels:
    """See through pixels `side` times as long, each the mean of its ground, and enlarge to the size before."""
    height, width = picture.shape[:2]
    fewer = max(1, round(width / side)), max(1, round(height / side))
    small = Image.fromarray(picture).resize(fewer, Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BILINEAR))


def recoloured(picture: Pixels, view: View) -> Pixels:
    """Change saturation, contrast, channel gains and gamma, in this order."""
    light = picture / 255.0
    grey, middle = light.mean(axis=2, keepdims=True), light.mean()
    light = grey + (light - grey) * view.saturation
    light = middle + (light - middle) * view.contrast
    light = (light * view.gains).clip(0.0, 1.0) ** view.gamma
    bright: Pixels = np.round(light * 255.0).astype(np.uint8)
    return bright


def _centre(grid: Grid, cell: Cell, view: View) -> tuple[float, float]:
    """Where the cut's centre lies (row, col): shifted by whole pixels, and so that the turned cut stays inside."""
    x, y = grid.centre(cell)
    half, angle = grid.cell / 2, math.radians(abs(view.turn))
    reach = half * (math.cos(angle) + math.sin(angle))  # from the centre to the outermost corner, along an axis

    def place(at: float, share: float, side: int) -> float:
        shift = round(share * grid.cell)
        if not half <= at + shift <= side - half:
            shift = -shift
        return min(max(at + shift, min(reach, side / 2)), max(side - reach, side / 2))

    return place(y, view.shift[0], grid.size[0]), place(x, view.shift[1], grid.size[1])


def _cut(image: Pixels, centre: tuple[float, float], side: int, turn: float) -> Pixels:
    """Cut a square (side, side, 3) around a centre (row, col), turned; the area's rim goes on outside."""
    spare = side // 2 if turn else 0  # corners of a turned square reach beyond the square
    first = [math.floor(at - side / 2) - spare for at in centre]
    rows, cols = (
        np.arange(low, low + side + 2 * spare).clip(0, length - 1)
        for low, length in zip(first, image.shape[:2], strict=True)
    )
    ground: Pixels = image[rows[:, None], cols]
    if not turn:
        return ground
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    y, x = (at - low for at, low in zip(centre, first, strict=True))
    corner = x - (cos - sin) * side / 2, y - (sin + cos) * side / 2
    pixels = (cos, -sin, corner[0], sin, cos, corner[1])
    picture = Image.fromarray(ground).transform(
        (side, side), Image.Transform.AFFINE, pixels, resample=Image.Resampling.BICUBIC
    )
    return np.asarray(picture)
