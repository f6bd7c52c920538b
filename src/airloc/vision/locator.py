"""Where in a photo is the goal? Correlation of learned features over shift, turn and scale.

The goal is turned and scaled in steps, and every view is correlated with the photo at all shifts. The features
(`airloc.vision.feature_map`) are learned from pairs of days, so that they stay where seasons, light and damage change
the ground. Only pixels that both images show are compared, so that a goal may lie partly outside the photo, and a
turned goal has no corners. The verifier compares the features of the best alignment, and a promising one is refined
with finer steps. The network of an agent, which relates whole patches, may have the last word (`judge`): it compares
goal and photo as they were aligned.

This file needs NumPy alone: `airloc export` copies it, so that a vehicle without PyTorch locates goals in the same way.

Legend: 48 px are the side of a cell, in goals and photos alike. H, W height and width of an image, h, w = H / 4, W / 4,
N views, D features, T = 18 side of a view's features.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.vision.feature_map import STRIDE, FeatureMap
from airloc.vision.turning import sample_mirrored

Floats = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

CELL = 48
"""Pixels along the side of a cell."""
CANVAS = 72
"""Pixels along the side of a view. A goal that shows more than one and a half cells is cropped."""
VIEW = CANVAS // STRIDE
"""Features along the side of a view."""
OVERLAP = 0.4
"""Smallest fraction of a view that must lie in the photo."""
NEIGHBOURHOOD = 3
"""Features around the best alignment that do not count as elsewhere."""
BORDER = 8
"""Pixels around the part that a photo shows that are encoded with it."""
MIN_STRUCTURE = 0.012
"""Standard deviation of a goal at half its resolution, in units of the full range, below which it has no structure."""
FLAT_STD = 1.5
"""Standard deviation of an image's values, of 255, below which it shows nothing: black, fog, a uniform colour."""
TURN_STEP, SCALE_STEP = 9.0, 1.12
"""Steps of turns in degrees and of scales, before they are refined."""
FINE = ((-1 / 3, 0.0), (1 / 3, 0.0), (0.0, -1 / 3), (0.0, 1 / 3))
"""Turns and scales of the refinement, in units of the steps above."""
PROMISING = -3.0
"""Log-odds of the verifier from which on an alignment is refined."""
NOWHERE = -1.0
"""Score of alignments that show too little of the goal."""
LOWEST_LOG = -12.0
"""Lowest log-probability of the network that counts."""
LOCATED = 0.1
"""Probability of a sighting from which on its position counts."""


class Sighting(NamedTuple):
    """The alignment of goal and photo that agrees best."""

    score: float
    """Agreement of the features, -1 to 1."""
    margin: float
    """Score minus the best score elsewhere in the photo."""
    down: float
    """Offset of the goal's centre from the photo's centre, in cells."""
    right: float
    turn: float
    """Clockwise rotation of the photo against the goal's picture that aligns both, in degrees."""
    scale: float
    """Factor by which the goal is larger than its picture was said to be."""
    verified: float = 0.0
    """Log-odds of the verifier that the aligned pair shows the same place."""
    beyond: bool = False
    """The goal agrees better at the border of the photo: it may lie beside it."""


class SightingCalibration(NamedTuple):
    """Weights of the log-odds that a sighting is the goal, one for each kind of evidence, and a constant."""

    score: float
    margin: float
    verified: float
    network: float
    """Weight of the network's log-probability that the aligned pair shows the same place."""
    constant: float

    def probability(self, sighting: Sighting, network: float) -> float:
        """Return the probability that a sighting is the goal, given the log-probability of the network."""
        odds = self.score * sighting.score + self.margin * sighting.margin + self.verified * sighting.verified
        odds += self.network * max(network, LOWEST_LOG) + self.constant
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
        features: The features to compare.
        turn: Smallest and largest turn in degrees; (-180, 180) if the heading of the picture is unknown.
        scale: Smallest and largest scale.
    """

    def __init__(
        self,
        goal: Image,
        features: FeatureMap,
        turn: tuple[float, float] = (-6.0, 6.0),
        scale: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        self._goal, self._features = goal, features
        self.turns, self.scales = _turns(*turn), _scales(*scale)
        self._coarse = _Views(goal, features, [(angle, factor) for factor in self.scales for angle in self.turns])
        self._fine: dict[tuple[float, float], _Views] = {}

        self.textured = has_structure(goal)
        """False if the goal has too little structure to be located."""

    def locate(self, photo: Image, seen: Mask) -> Sighting:
        """Find the goal in a photo.

        Args:
            photo: The photo at 48 px a cell, (H, W, 3) with sides that are multiples of four.
            seen: Pixels that the photo shows, (H, W).
        """
        if not seen.any() or photo[seen].std(axis=0).max() < FLAT_STD:
            return Sighting(NOWHERE, 0.0, 0.0, 0.0, 0.0, 1.0)
        encoded = _Photo(photo, seen, self._features)
        rough = self._coarse.align(encoded)
        if rough.score <= NOWHERE or rough.verified < PROMISING:
            return rough
        fine = self._refined(rough.turn, rough.scale).align(encoded, rough)
        return fine if fine.score > rough.score else rough

    def _refined(self, turn: float, scale: float) -> "_Views":
        """Return views around a turn and a scale, which are kept for further photos."""
        if (turn, scale) not in self._fine:
            steps = [(turn + angle * TURN_STEP, scale * SCALE_STEP**factor) for angle, factor in FINE]
            self._fine[turn, scale] = _Views(self._goal, self._features, steps)
        return self._fine[turn, scale]

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
        ground = sample_mirrored(shown, middle[0] + step[:, None] + straight, middle[1] + step + straight)
        height, width = self._goal.shape[:2]
        cos, sin = (function(math.radians(sighting.turn)) / sighting.scale for function in (math.cos, math.sin))
        row = cos * step[:, None] - sin * step + (height - 1) / 2
        col = cos * step + sin * step[:, None] + (width - 1) / 2
        return ground, sample_mirrored(self._goal, row, col)


def has_structure(goal: Image) -> bool:
    """Return False if a picture (H, W, 3) has too little structure to be located."""
    height, width = (side // 2 * 2 for side in goal.shape[:2])
    grey = goal[:height, :width].mean(axis=2).reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    return bool(grey.std() / 255 > MIN_STRUCTURE)


def judge(
    views: GoalViews,
    calibration: SightingCalibration,
    compare: Compare,
    photo: Image,
    seen: Mask,
    own: float,
) -> Verdict:
    """Combine the match of an agent with what the locator finds in the photo.

    Args:
        views: The goal.
        calibration: Calibration of the locator.
        compare: The network.
        photo: The photo around the cell, as in `GoalViews.locate`.
        seen: Pixels that the photo shows.
        own: Probability of a match that the agent computes from the cell alone.
    """
    if not (views.textured and seen.any()):
        return Verdict(own, 0.0, 0.0)
    sighting = views.locate(photo, seen)
    if sighting.score <= NOWHERE or sighting.beyond:
        return Verdict(own, 0.0, 0.0)
    network = compare(*views.align(photo, seen, sighting)) if calibration.network else 0.0
    located = calibration.probability(sighting, network)
    down, right = (sighting.down, sighting.right) if located >= LOCATED else (0.0, 0.0)
    return Verdict(max(own, located), down, right)


class _Photo:
    """Features of a photo and their spectra, padded by half a view on each side."""

    def __init__(self, photo: Image, seen: Mask, features: FeatureMap, border: int = BORDER) -> None:
        rows, cols = (_extent(np.asarray(seen.any(axis=axis)), border) for axis in (1, 0))
        shown, known = photo[rows, cols], seen[rows, cols]
        maps, valid = features.encode((shown[None] / 255).astype(np.float32), known[None])
        self.size = maps.shape[2:]
        self.origin = tuple(part.start - side / 2 for part, side in zip((rows, cols), seen.shape, strict=True))
        """Corner of the encoded part relative to the centre of the photo, in pixels."""
        self.shape = tuple(_good_size(side + VIEW) for side in self.size)
        margin = ((0, 0), (0, 0), (VIEW // 2, VIEW // 2), (VIEW // 2, VIEW // 2))
        self.maps, self.seen = np.pad(maps, margin), np.pad(valid, margin)
        self.features = self.spectrum(self.maps)
        self.energy = self.spectrum((self.maps * self.maps).sum(axis=1, keepdims=True))
        self.valid = self.spectrum(self.seen)

    def spectrum(self, maps: Floats) -> npt.NDArray[np.complex64]:
        return np.asarray(np.fft.rfft2(maps, s=self.shape), dtype=np.complex64)

    def window(self, row: int, col: int) -> tuple[Floats, Floats]:
        """Return the features (D, T, T) and what is seen (1, T, T) below a view at a shift."""
        part = (0, slice(None), slice(row, row + VIEW), slice(col, col + VIEW))
        return self.maps[part], self.seen[part]


class _Views:
    """Views of a goal at pairs of turn and scale."""

    def __init__(self, goal: Image, features: FeatureMap, steps: Sequence[tuple[float, float]]) -> None:
        self.steps, self._network = steps, features
        encoded = [features.encode(view[None], seen[None]) for view, seen in (_turned(goal, *step) for step in steps)]
        self._features, self._valid = (np.concatenate(parts) for parts in zip(*encoded, strict=True))
        self._spectra: dict[tuple[int, ...], tuple[Any, Any, Any]] = {}

    def align(self, photo: _Photo, near: Sighting | None = None) -> Sighting:
        """Return the view and the shift that agree best with a photo, or that agree best near an earlier sighting."""
        score = self._scores(photo)
        inside = _inside(score > NOWHERE)
        inner, border = np.where(inside, score, NOWHERE), np.where(inside, NOWHERE, score)
        allowed = inner if near is None else _only_near(inner, near, photo)
        number, row, col = (int(part) for part in np.unravel_index(int(allowed.argmax()), score.shape))
        best = float(allowed[number, row, col])
        if best <= NOWHERE:
            return Sighting(NOWHERE, 0.0, 0.0, 0.0, 0.0, 1.0)
        beyond = bool(border.max() > inner.max())
        inner[_around(row, col)] = NOWHERE
        margin = best - float(max(inner.max(), border.max()))
        turn, scale = self.steps[number]
        peak = _peak(score[number, :, col], row), _peak(score[number, row], col)
        down, right = ((start + STRIDE * at) / CELL for start, at in zip(photo.origin, peak, strict=True))
        verified = self._network.verify(self._features[number], self._valid[number], *photo.window(row, col))
        return Sighting(best, margin, down, right, turn, scale, verified, beyond)

    def _scores(self, photo: _Photo) -> Floats:
        """Return the normalised cross-correlation of all views with a photo at all shifts, (N, h + 1, w + 1)."""
        views, masks, energies = self._spectra_for(photo)
        height, width = photo.size

        def correlate(a: Any, b: Any) -> Floats:
            maps = np.fft.irfft2((a * b).sum(axis=1), s=photo.shape)[:, : height + 1, : width + 1]
            return np.asarray(maps, dtype=np.float32)

        energy = np.maximum(correlate(photo.energy, masks), 0) * np.maximum(correlate(photo.valid, energies), 0)
        overlap = correlate(photo.valid, masks) / np.maximum(self._valid.sum(axis=(1, 2, 3)), 1)[:, None, None]
        score = correlate(photo.features, views) / np.sqrt(np.maximum(energy, 1e-3))
        return np.where(overlap >= OVERLAP, score, np.float32(NOWHERE))

    def _spectra_for(self, photo: _Photo) -> tuple[Any, Any, Any]:
        """Return the conjugate spectra of features, masks and energies, (N, D or 1, ...)."""
        if photo.shape not in self._spectra:
            energy = (self._features * self._features).sum(axis=1, keepdims=True)
            self._spectra[photo.shape] = tuple(
                photo.spectrum(maps).conj() for maps in (self._features, self._valid, energy)
            )  # type: ignore[assignment]
        return self._spectra[photo.shape]


def _only_near(score: Floats, sighting: Sighting, photo: _Photo) -> Floats:
    """Return scores (N, R, C) in the neighbourhood of a sighting, `NOWHERE` elsewhere."""
    row, col = (
        round((CELL * offset - start) / STRIDE)
        for offset, start in zip((sighting.down, sighting.right), photo.origin, strict=True)
    )
    near = np.full_like(score, NOWHERE)
    near[_around(row, col)] = score[_around(row, col)]
    return near


def _around(row: int, col: int) -> tuple[slice, slice, slice]:
    """Return the shifts of all views in the neighbourhood of one."""
    rows, cols = (slice(max(0, at - NEIGHBOURHOOD), max(0, at + NEIGHBOURHOOD + 1)) for at in (row, col))
    return slice(None), rows, cols


def _inside(shown: Mask) -> Mask:
    """Return the shifts (N, R, C) whose neighbours show enough of the goal, too.

    Where they do not, agreement may still grow beyond: a goal beside the photo, along a road that runs through both.
    """
    inside = shown.copy()
    for axis in (1, 2):
        for step in (-1, 1):
            inside &= np.roll(shown, step, axis=axis)
    inside[:, [0, -1]] = inside[:, :, [0, -1]] = False
    return inside


def _extent(seen: npt.NDArray[np.bool_], border: int) -> slice:
    """Return the part of a line that is seen, with a border, in whole features."""
    first, last = np.flatnonzero(seen)[[0, -1]]
    start = max(0, int(first) - border) // STRIDE * STRIDE
    stop = min(len(seen), -(-(int(last) + 1 + border) // STRIDE) * STRIDE)
    return slice(start, stop)


def _peak(line: Floats, at: int) -> float:
    """Return the place of the maximum between the values around it, by a parabola."""
    if not 0 < at < len(line) - 1 or min(line[at - 1], line[at + 1]) <= NOWHERE:
        return float(at)
    before, here, after = (float(value) for value in line[at - 1 : at + 2])
    curvature = before - 2 * here + after
    return at + (before - after) / (2 * curvature) if curvature < 0 else float(at)


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
