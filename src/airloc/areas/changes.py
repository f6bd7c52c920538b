"""Goal images that differ from the images of the flight: other light, sensor, height, position or heading.

In the field the image of the goal comes from another day. A `GoalTransform` describes how the image of a cell was
taken, `CHANGES` draws transforms of one kind each, and `cut_goal` cuts the image of a cell from an area and applies a
transform. The goal stays in its cell: the centre of the image is never nearer to another cell.

Legend: images are uint8 RGB (H, W, 3); S is the side of a cell; a centre is (row, col) in pixels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates

from airloc.areas.area import Pixels
from airloc.errors import AirlocError, suggest
from airloc.grid import Cell, Grid

COLOUR_RANGES = {"saturation": 0.5, "gain": 0.1, "contrast": 0.4, "gamma": 0.35}
"""Photometric factors are e^x with x uniform in [-range, range]: saturation by 0.61 to 1.65, for instance."""

BLUR_RANGE = (0.5, 1.5)
"""Smallest and largest standard deviation of the blur, in pixels."""

MAX_ROTATION = 10.0
"""Largest rotation, in degrees."""

MAX_SCALE = 1.5
"""Largest factor by which a goal that lies anywhere is larger or smaller than a cell."""

MARGIN = 8
"""Pixels around a cell that blur and downsampling use before the image is cropped to the cell."""


@dataclass(frozen=True, slots=True)
class GoalTransform:
    """How the image of a cell was taken; by default exactly as in the flight."""

    shift: tuple[float, float] = (0.0, 0.0)
    """Offset of the image down and to the right, in cells; at the border of the area mirrored to stay inside."""
    rotation: float = 0.0
    """Clockwise rotation of the camera, in degrees."""
    scale: float = 1.0
    """Side of the ground that the image shows, in cells."""
    upright: bool = False
    """Heading and width of the image are known, so that it is turned and scaled like the cells, and mirrored beyond
    its border."""
    blur: float = 0.0
    """Standard deviation of a Gaussian blur, in pixels."""
    downsampling: float = 1.0
    """Side of the sensor's pixels, in pixels of the flight."""
    saturation: float = 1.0
    contrast: float = 1.0
    """Factor of the differences from the image's mean."""
    channel_gains: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Factors of red, green and blue."""
    gamma: float = 1.0


def photometric(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw another light or sensor: saturation, contrast, channel gains and gamma."""

    def factor(name: str) -> float:
        return math.exp(strength * rng.uniform(-COLOUR_RANGES[name], COLOUR_RANGES[name]))

    gains = factor("gain"), factor("gain"), factor("gain")
    return GoalTransform(
        saturation=factor("saturation"), channel_gains=gains, contrast=factor("contrast"), gamma=factor("gamma")
    )


def blur(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw an image out of focus or in haze."""
    return GoalTransform(blur=strength * rng.uniform(*BLUR_RANGE))


def coarse(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Halve the resolution: an image from twice the height, enlarged."""
    del rng
    return GoalTransform(downsampling=1.0 + strength)


def off_grid(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw an image that is not aligned with the grid, up to half a cell off in both directions."""
    down, right = strength * rng.uniform(-0.5, 0.5, size=2)
    return GoalTransform(shift=(float(down), float(right)))


def turned(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw a camera that does not point north."""
    return GoalTransform(rotation=strength * rng.uniform(-MAX_ROTATION, MAX_ROTATION))


def anywhere(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw a square of ground anywhere, of any heading and up to 1.5 times as large or small as a cell, both known."""
    return replace(any_heading(rng, strength), upright=True)


def any_heading(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw a square of ground anywhere, as `anywhere` does, but the heading of the image is unknown."""
    down, right = strength * rng.uniform(-0.5, 0.5, size=2)
    rotation, level = strength * rng.uniform(-1, 1, size=2)
    return GoalTransform(
        shift=(float(down), float(right)), rotation=180 * float(rotation), scale=MAX_SCALE ** float(level)
    )


def all_changes(rng: np.random.Generator, strength: float) -> GoalTransform:
    """Draw all changes at once, each as it is drawn alone."""
    transform = photometric(rng, strength)
    return replace(
        transform,
        blur=blur(rng, strength).blur,
        downsampling=coarse(rng, strength).downsampling,
        shift=off_grid(rng, strength).shift,
        rotation=turned(rng, strength).rotation,
    )


CHANGES: dict[str, Callable[[np.random.Generator, float], GoalTransform]] = {
    "photometric": photometric,
    "blur": blur,
    "coarse": coarse,
    "off-grid": off_grid,
    "turned": turned,
    "anywhere": anywhere,
    "any-heading": any_heading,
    "all": all_changes,
}
"""Functions that draw a transform of each kind, given a random generator and a strength from 0 (no change) to 1."""


def check_change(name: str, strength: float = 1.0) -> str:
    """Return the name of a change, or raise an error if there is none or the strength is not between 0 and 1."""
    if name not in CHANGES:
        raise AirlocError(f"There is no change {name!r}", suggest(name, CHANGES, "Changes"))
    if not 0 <= strength <= 1:
        raise AirlocError(f"A strength of {strength} is not valid", "Give 0 (no change) to 1")
    return name


def cut_goal(image: Pixels, grid: Grid, cell: Cell, transform: GoalTransform) -> Pixels:
    """Cut the image of a cell (S, S, 3) from the image of an area of the grid's size, and apply a transform."""
    side = round(transform.scale * grid.cell)
    goal = _cut(image, goal_centre(grid, cell, transform), side + 2 * MARGIN, transform.rotation)
    if transform.blur > 0:
        goal = blur_image(goal, transform.blur)
    if transform.downsampling > 1:
        goal = downsample(goal, transform.downsampling)
    goal = adjust_colours(goal[MARGIN:-MARGIN, MARGIN:-MARGIN], transform)
    if transform.upright:
        return turn_upright(goal, transform.rotation, grid.cell)
    resized = Image.fromarray(goal).resize((grid.cell, grid.cell), Image.Resampling.LANCZOS)
    return goal if side == grid.cell else np.asarray(resized)


def turn_upright(image: Pixels, rotation: float, side: int) -> Pixels:
    """Turn an image back by the clockwise rotation of its camera, and crop or pad it to (side, side, 3).

    Beyond its border the image is mirrored: agents read a uniform border as ground.
    """
    height, width = image.shape[:2]
    cos, sin = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    step = np.arange(side) - (side - 1) / 2
    col = cos * step + sin * step[:, None] + (width - 1) / 2
    row = cos * step[:, None] - sin * step + (height - 1) / 2
    values = [
        map_coordinates(image[..., channel].astype(np.float64), (row, col), mode="mirror") for channel in range(3)
    ]
    upright: Pixels = np.stack(values, axis=2).round().clip(0, 255).astype(np.uint8)
    return upright


def blur_image(image: Pixels, deviation: float) -> Pixels:
    """Blur with a Gaussian that is cut off at three standard deviations; border pixels are repeated outside."""
    values = image.astype(np.float64)
    values = gaussian_filter(values, (deviation, deviation, 0), mode="nearest", truncate=3.0)
    blurred: Pixels = np.round(values).astype(np.uint8)
    return blurred


def downsample(image: Pixels, factor: float) -> Pixels:
    """Average over pixels `factor` times as long, and enlarge to the original size."""
    height, width = image.shape[:2]
    fewer = max(1, round(width / factor)), max(1, round(height / factor))
    small = Image.fromarray(image).resize(fewer, Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BILINEAR))


def adjust_colours(image: Pixels, transform: GoalTransform) -> Pixels:
    """Change saturation, contrast, channel gains and gamma, in this order."""
    values = image / 255.0
    grey, mean = values.mean(axis=2, keepdims=True), values.mean()
    values = grey + (values - grey) * transform.saturation
    values = mean + (values - mean) * transform.contrast
    values = (values * transform.channel_gains).clip(0.0, 1.0) ** transform.gamma
    adjusted: Pixels = np.round(values * 255.0).astype(np.uint8)
    return adjusted


def goal_centre(grid: Grid, cell: Cell, transform: GoalTransform) -> tuple[float, float]:
    """Return the pixel (row, col) at the centre of `cut_goal`.

    It is shifted by whole pixels, and such that the rotated cut stays inside.
    """
    x, y = grid.centre(cell)
    half, angle = transform.scale * grid.cell / 2, math.radians(abs(transform.rotation) % 90)
    reach = half * (math.cos(angle) + math.sin(angle))  # from the centre to the outermost corner, along an axis
    reach = min(reach, grid.cell)  # a larger one would move the centre to another cell

    def shifted(at: float, cells: float, side: int) -> float:
        shift = round(cells * grid.cell)
        if not grid.cell / 2 <= at + shift <= side - grid.cell / 2:
            shift = -shift
        return min(max(at + shift, min(reach, side / 2)), max(side - reach, side / 2))

    return shifted(y, transform.shift[0], grid.size[0]), shifted(x, transform.shift[1], grid.size[1])


def _cut(image: Pixels, centre: tuple[float, float], side: int, rotation: float) -> Pixels:
    """Cut a rotated square (side, side, 3) around a centre (row, col); border pixels are repeated outside."""
    spare = side // 2 if rotation else 0  # corners of a rotated square reach beyond the square
    first = [math.floor(at - side / 2) - spare for at in centre]
    rows, cols = (
        np.arange(low, low + side + 2 * spare).clip(0, length - 1)
        for low, length in zip(first, image.shape[:2], strict=True)
    )
    square: Pixels = image[rows[:, None], cols]
    if not rotation:
        return square
    cos, sin = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    y, x = (at - low for at, low in zip(centre, first, strict=True))
    corner = x - (cos - sin) * side / 2, y - (sin + cos) * side / 2
    matrix = (cos, -sin, corner[0], sin, cos, corner[1])
    rotated = Image.fromarray(square).transform(
        (side, side), Image.Transform.AFFINE, matrix, resample=Image.Resampling.BICUBIC
    )
    return np.asarray(rotated)
