"""Where in a photo is the goal? Dense correlation of local features over shift, turn and scale.

The goal is turned and scaled in steps, and every view is correlated with the photo at all shifts. Features are the
local detail of the image, normalised to its contrast, and the strength of edges in six orientations; neither depends on
exposure, and edges stay where seasons change colours. Only pixels that both images show are compared, so that a goal
may lie partly outside the photo, and a turned goal has no corners. The best alignment is refined once with finer steps.
A network that has learned to recognise places across days may have the last word (`judge`): it compares goal and photo
as they were aligned.

This file needs NumPy alone: `airloc export` copies it, so that a vehicle without PyTorch locates goals in the same way.

Legend: 48 px are the side of a cell, in goals and photos alike. H, W height and width of an image, h, w = H / 2, W / 2,
N views, D = 9 features, T = 36 side of a view's features.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

CELL = 48
"""Pixels along the side of a cell."""
CANVAS = 72
"""Pixels along the side of a view. A goal that shows more than one and a half cells is cropped."""
ORIENTATIONS = 6
"""Number of edge orientations."""
COLOUR_WEIGHT = 0.5
"""Weight of the features that differences of colours make."""
WINDOW = 9
"""Side of the window that contrast is normalised in, in halved pixels."""
MIN_CONTRAST, MIN_EDGE = 0.02, 0.01
"""Contrast and edge strength, in units of the full range, below which an image counts as flat."""
OVERLAP = 0.45
"""Smallest fraction of a view that must lie in the photo."""
NEIGHBOURHOOD = 5
"""Halved pixels around the best alignment that do not count as elsewhere."""
TURN_STEP, SCALE_STEP = 9.0, 1.12
"""Steps of turns in degrees and of scales, before they are refined."""
FINE = (-1 / 3, 0.0, 1 / 3)
"""Steps of the refinement, in units of the steps above."""
NOWHERE = -1.0
"""Score of alignments that show too little of the goal."""
LOWEST_LOG = -12.0
"""Lowest log-probability of the network that counts."""
LOCATED = 0.1
"""Probability of a sighting from which on its position counts."""


class Sighting(NamedTuple):
    """The alignment of goal and photo that agrees best."""

    score: float
    """Agreement of the features, -1 to 1; about 0.3 for unrelated images."""
    margin: float
    """Score minus the best score elsewhere in the photo."""
    down: float
    """Offset of the goal's centre from the photo's centre, in cells."""
    right: float
    turn: float
    """Clockwise rotation of the photo against the goal's picture that aligns both, in degrees."""
    scale: float
    """Factor by which the goal is larger than its picture was said to be."""


class SightingCalibration(NamedTuple):
    """Weights of the log-odds that a sighting is the goal, one for each kind of evidence, and a constant."""

    score: float
    margin: float
    network: float
    """Weight of the network's log-probability that the aligned pair shows the same place."""
    constant: float

    def probability(self, sighting: Sighting, network: float) -> float:
        """Return the probability that a sighting is the goal, given the log-probability of the network."""
        odds = self.score * sighting.score + self.margin * sighting.margin + self.constant
        odds += self.network * max(network, LOWEST_LOG)
        return 1 / (1 + math.exp(-min(max(odds, -30.0), 30.0)))


Compare = Callable[[Image, Image], float]
"""A network: the log-probability that a photo and a goal, each (48, 48, 3), show the same place."""


class Verdict(NamedTuple):
    """Whether a photo shows the goal, and where."""

    probability: float
    """Probability that the photo shows the goal."""
    down: float
    """Offset of the goal's centre from the photo's centre, in cells; zero if the goal was not located."""
    right: float


class GoalViews:
    """A goal at several turns and scales.

    Args:
        goal: Picture of the goal at 48 px a cell, (H, W, 3) uint8.
        turn: Smallest and largest turn in degrees; (-180, 180) if the heading of the picture is unknown.
        scale: Smallest and largest scale.
    """

    def __init__(
        self, goal: Image, turn: tuple[float, float] = (-6.0, 6.0), scale: tuple[float, float] = (1.0, 1.0)
    ) -> None:
        self._goal = goal
        self.turns, self.scales = _turns(*turn), _scales(*scale)
        self._coarse = _Views(goal, [(angle, factor) for factor in self.scales for angle in self.turns])

    @cached_property
    def textured(self) -> bool:
        """False if the goal has too little structure to be located."""
        return self._coarse.textured

    def locate(self, photo: Image, seen: Mask) -> Sighting:
        """Find the goal in a photo.

        Args:
            photo: The photo at 48 px a cell, (H, W, 3) with even sides.
            seen: Pixels that the photo shows, (H, W).
        """
        features = _Photo(photo, seen)
        rough = self._coarse.align(features)
        steps = [(rough.turn + turn * TURN_STEP, rough.scale * SCALE_STEP**scale) for scale in FINE for turn in FINE]
        fine = _Views(self._goal, steps).align(features)
        return fine if fine.score > rough.score else rough

    def align(self, photo: Image, seen: Mask, sighting: Sighting) -> tuple[Image, Image]:
        """Cut photo and goal as a sighting aligns them, each a cell, (48, 48, 3), mirrored beyond what they show."""
        step = np.arange(CELL, dtype=np.float32) - (CELL - 1) / 2
        rows, cols = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
        shown = photo[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
        middle = [
            (side - 1) / 2 + offset * CELL - first
            for side, offset, first in zip(seen.shape, sighting[2:4], (rows[0], cols[0]), strict=True)
        ]
        straight = np.zeros((CELL, CELL), dtype=np.float32)
        ground = _sample(shown, middle[0] + step[:, None] + straight, middle[1] + step + straight)
        height, width = self._goal.shape[:2]
        cos, sin = (function(math.radians(sighting.turn)) / sighting.scale for function in (math.cos, math.sin))
        row = cos * step[:, None] - sin * step + (height - 1) / 2
        col = cos * step + sin * step[:, None] + (width - 1) / 2
        return ground, _sample(self._goal, row, col)


def judge(
    views: GoalViews,
    calibrations: Sequence[SightingCalibration],
    compare: Compare,
    photo: Image,
    seen: Mask,
    own: float,
) -> Verdict:
    """Combine the match of an agent with what the locator finds in the photo.

    Args:
        views: The goal.
        calibrations: Calibrations of the locator, of which the most confident one counts.
        compare: The network.
        photo: The photo around the cell, as in `GoalViews.locate`.
        seen: Pixels that the photo shows.
        own: Probability of a match that the agent computes from the cell alone.
    """
    if not (views.textured and seen.any()):
        return Verdict(own, 0.0, 0.0)
    sighting = views.locate(photo, seen)
    if sighting.score <= NOWHERE:
        return Verdict(own, 0.0, 0.0)
    network = compare(*views.align(photo, seen, sighting)) if any(one.network for one in calibrations) else 0.0
    located = max(one.probability(sighting, network) for one in calibrations)
    down, right = (sighting.down, sighting.right) if located >= LOCATED else (0.0, 0.0)
    return Verdict(max(own, located), down, right)


def _sample(image: Image, row: Floats, col: Floats) -> Image:
    """Interpolate an image (H, W, 3) at pixels (S, S), mirrored beyond its border."""
    height, width = image.shape[:2]
    row, col = _mirror(row, height), _mirror(col, width)
    top, left = np.minimum(row.astype(np.intp), height - 2), np.minimum(col.astype(np.intp), width - 2)
    below, beside = (row - top)[..., None], (col - left)[..., None]
    upper = image[top, left] * (1 - beside) + image[top, left + 1] * beside
    lower = image[top + 1, left] * (1 - beside) + image[top + 1, left + 1] * beside
    sampled: Image = (upper * (1 - below) + lower * below).round().astype(np.uint8)
    return sampled


def _mirror(place: Floats, length: int) -> Floats:
    """Mirror places into 0..length - 1."""
    period = 2 * (length - 1)
    folded = np.abs((place + length - 1) % period - (length - 1))
    return np.asarray(folded, dtype=np.float32)


class _Photo:
    """Features of a photo and their spectra, padded by half a view on each side."""

    def __init__(self, photo: Image, seen: Mask) -> None:
        features, valid = local_features((photo[None] / 255).astype(np.float32), seen[None])
        self.size = features.shape[2:]
        self.shape = tuple(_good_size(side + CANVAS // 2) for side in self.size)
        margin = ((0, 0), (0, 0), (CANVAS // 4, CANVAS // 4), (CANVAS // 4, CANVAS // 4))
        features, valid = np.pad(features, margin), np.pad(valid, margin)
        self.features = self.spectrum(features)
        self.energy = self.spectrum((features * features).sum(axis=1, keepdims=True))
        self.valid = self.spectrum(valid)

    def spectrum(self, maps: Floats) -> npt.NDArray[np.complex64]:
        return np.asarray(np.fft.rfft2(maps, s=self.shape), dtype=np.complex64)


class _Views:
    """Views of a goal at pairs of turn and scale."""

    def __init__(self, goal: Image, steps: Sequence[tuple[float, float]]) -> None:
        self.steps = steps
        views, seen = zip(*(_turned(goal, turn, scale) for turn, scale in steps), strict=True)
        self._features, self._valid = local_features(np.stack(views), np.stack(seen))
        self._spectra: dict[tuple[int, ...], tuple[Any, Any, Any]] = {}

    @property
    def textured(self) -> bool:
        """True if the features of the upright view are not zero nearly everywhere."""
        energy = (self._features[0] ** 2).sum(axis=0)
        return bool(energy[self._valid[0, 0] > 0].mean() > 0.3) if (self._valid[0] > 0).any() else False

    def align(self, photo: _Photo) -> Sighting:
        """Return the view and the shift that agree best with a photo."""
        views, masks, energies = self._spectra_for(photo)
        height, width = photo.size

        def correlate(a: Any, b: Any) -> Floats:
            maps = np.fft.irfft2((a * b).sum(axis=1), s=photo.shape)[:, : height + 1, : width + 1]
            return np.asarray(maps, dtype=np.float32)

        product = correlate(photo.features, views)
        energy = correlate(photo.energy, masks) * correlate(photo.valid, energies)
        overlap = correlate(photo.valid, masks) / np.maximum(self._valid.sum(axis=(1, 2, 3)), 1)[:, None, None]
        score = product / np.sqrt(np.maximum(energy, 1.0))
        score = np.where(overlap >= OVERLAP, score, NOWHERE)
        number, row, col = (int(part) for part in np.unravel_index(int(score.argmax()), score.shape))
        best = float(score[number, row, col])
        elsewhere = score.max(axis=0)
        elsewhere[
            max(0, row - NEIGHBOURHOOD) : row + NEIGHBOURHOOD + 1, max(0, col - NEIGHBOURHOOD) : col + NEIGHBOURHOOD + 1
        ] = -1.0
        turn, scale = self.steps[number]
        down, right = ((at - side / 2) * 2 / CELL for at, side in ((row, height), (col, width)))
        return Sighting(best, best - float(elsewhere.max()), down, right, turn, scale)

    def _spectra_for(self, photo: _Photo) -> tuple[Any, Any, Any]:
        """Return the conjugate spectra of features, masks and energies, (N, D or 1, ...)."""
        if photo.shape not in self._spectra:
            energy = (self._features * self._features).sum(axis=1, keepdims=True)
            self._spectra[photo.shape] = tuple(
                photo.spectrum(maps).conj() for maps in (self._features, self._valid, energy)
            )  # type: ignore[assignment]
        return self._spectra[photo.shape]


def local_features(images: Floats, seen: Mask) -> tuple[Floats, Floats]:
    """Compute features of images (N, H, W, 3) in [0, 1] where they are `seen` (N, H, W).

    Returns:
        Features (N, D, h, w), zero where nothing is seen, and what is seen at half the resolution, (N, 1, h, w).
    """
    known = seen[..., None].astype(np.float32)
    images = images * known
    grey = images.mean(axis=3)
    down, right = np.zeros_like(grey), np.zeros_like(grey)
    down[:, 1:-1], right[:, :, 1:-1] = grey[:, 2:] - grey[:, :-2], grey[:, :, 2:] - grey[:, :, :-2]
    inner = seen.copy()  # where all pixels of a difference are seen
    inner[:, 1:-1] &= seen[:, 2:] & seen[:, :-2]
    inner[:, :, 1:-1] &= seen[:, :, 2:] & seen[:, :, :-2]
    strength = np.hypot(down, right) * inner
    direction = np.arctan2(down, right)
    angles = np.pi / ORIENTATIONS * np.arange(ORIENTATIONS)
    edges = np.stack([np.maximum(np.cos(2 * (direction - angle)), 0) ** 2 * strength for angle in angles], axis=1)
    edges = _box(_halve(edges), 3)
    edges -= edges.mean(axis=1, keepdims=True)
    valid = (_halve(seen[:, None].astype(np.float32)) > 0.99).astype(np.float32)  # (N, 1, h, w)
    within = (_halve(inner[:, None].astype(np.float32)) > 0.5).astype(np.float32)
    edges *= within / np.maximum(_box(_halve(strength[:, None]), WINDOW), MIN_EDGE)
    small = _halve(np.moveaxis(images, 3, 1)) * valid
    count = np.maximum(_box(valid, WINDOW), 1e-3)
    detail = (small - _box(small, WINDOW) / count) * valid
    light = detail.mean(axis=1, keepdims=True)
    contrast = np.maximum(np.sqrt(_box(light * light, WINDOW) / count), MIN_CONTRAST)
    colours = COLOUR_WEIGHT * (detail[:, ::2] - light)
    return np.concatenate([light / contrast, colours / contrast, edges], axis=1).astype(np.float32), valid


def _turned(goal: Image, turn: float, scale: float) -> tuple[Floats, Mask]:
    """Return a goal turned clockwise by degrees and scaled, (CANVAS, CANVAS, 3) in [0, 1], and what it shows."""
    height, width = goal.shape[:2]
    step = np.arange(CANVAS, dtype=np.float32) + 0.5 - CANVAS / 2
    cos, sin = (function(math.radians(turn)) / scale for function in (math.cos, math.sin))
    col = cos * step + sin * step[:, None] + width / 2 - 0.5
    row = -sin * step + cos * step[:, None] + height / 2 - 0.5
    seen = (row >= 0) & (row <= height - 1) & (col >= 0) & (col <= width - 1)
    row, col = row.clip(0, height - 1.001), col.clip(0, width - 1.001)
    top, left = row.astype(np.intp), col.astype(np.intp)
    below, beside = (row - top)[..., None], (col - left)[..., None]
    values = goal / np.float32(255)
    upper = values[top, left] * (1 - beside) + values[top, left + 1] * beside
    lower = values[top + 1, left] * (1 - beside) + values[top + 1, left + 1] * beside
    return (upper * (1 - below) + lower * below).astype(np.float32), seen


def _turns(low: float, high: float) -> list[float]:
    """Return turns from low to high, at most `TURN_STEP` apart; a whole circle once."""
    if high - low >= 360 - 1e-6:
        return [low + TURN_STEP * step for step in range(round(360 / TURN_STEP))]
    return [float(turn) for turn in np.linspace(low, high, max(1, math.ceil((high - low) / TURN_STEP)) + 1)]


def _scales(low: float, high: float) -> list[float]:
    """Return scales from low to high, at most a factor of `SCALE_STEP` apart."""
    steps = math.ceil(math.log(high / low) / math.log(SCALE_STEP) - 1e-6)
    return [float(scale) for scale in np.geomspace(low, high, steps + 1)] if steps else [math.sqrt(low * high)]


def _halve(maps: Floats) -> Floats:
    """Average 2 x 2 pixels of maps (N, D, H, W)."""
    count, channels, height, width = maps.shape
    halved: Floats = maps.reshape(count, channels, height // 2, 2, width // 2, 2).mean(axis=(3, 5))
    return halved


def _box(maps: Floats, side: int) -> Floats:
    """Average maps (N, D, h, w) over a square window; at the border over the part of it inside."""
    for axis in (2, 3):
        length = maps.shape[axis]
        total = np.concatenate([np.zeros_like(maps.take([0], axis)), maps.cumsum(axis, dtype=np.float64)], axis)
        low = np.maximum(np.arange(length) - side // 2, 0)
        high = np.minimum(np.arange(length) + side // 2 + 1, length)
        shape = [1] * 4
        shape[axis] = length
        maps = ((total.take(high, axis) - total.take(low, axis)) / (high - low).reshape(shape)).astype(np.float32)
    return maps


def _good_size(size: int) -> int:
    """Return the smallest size from `size` on that has no prime factor above five."""
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1
