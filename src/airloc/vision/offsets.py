"""Offsets from a glimpse to a goal in cells, their indices, and how a quarter turn rotates them.

The relation network encodes a pair of patches in four frames, each rotated by another quarter turn. In each frame it
predicts the offsets of one sector only. The four sectors together cover all offsets but zero, so that a rotated pair
gives rotated predictions by construction.

This module needs NumPy alone: `airloc export` copies it into the runner of an exported agent.

Legend: R radius, O offsets, the near ones in row-major order before the rings, J offsets of a sector, K = 4 rotations.
"""

from functools import lru_cache
from typing import Any

import numpy as np

RADIUS = 4
"""Largest offset that is distinguished exactly, in cells."""
RINGS = (5, 7, 10)
"""Smallest distances of the rings beyond the radius, in cells. In a ring only the direction is distinguished."""
NUM_NEAR = (2 * RADIUS + 1) ** 2
"""Number of offsets up to the radius."""
ZERO_OFFSET = NUM_NEAR // 2
"""Index of the zero offset: glimpse and goal are the same place."""
SECTOR = (
    *((0, row, col) for col in range(1, RADIUS + 1) for row in range(1 - col, col + 1)),
    *((ring, row, RADIUS) for ring in range(1, len(RINGS) + 1) for row in range(1 - RADIUS, RADIUS + 1)),
)
"""Offsets that are predicted in one frame, as (ring, row, col): east, south-east and what lies behind them. Ring 0
holds the near offsets; in the others row and col are scaled down to the radius."""
NUM_ROTATIONS = 4
NUM_OFFSETS = 1 + NUM_ROTATIONS * len(SECTOR)

_PERIMETER = {
    (row, col): place
    for place, (row, col) in enumerate(
        (row, col)
        for row in range(-RADIUS, RADIUS + 1)
        for col in range(-RADIUS, RADIUS + 1)
        if max(abs(row), abs(col)) == RADIUS
    )
}


def offset_index(row: int, col: int) -> int:
    """Return the index of an offset. An offset beyond the radius is one of the 32 directions of its ring.

    >>> offset_index(0, 0) == ZERO_OFFSET, offset_index(0, 5) == offset_index(0, 6)
    (True, True)
    >>> offset_index(-8, 4) == offset_index(-9, 4)
    True
    """
    length = max(abs(row), abs(col))
    if length <= RADIUS:
        return _index(0, row, col)
    ring = sum(length >= start for start in RINGS)
    return _index(ring, round(row * RADIUS / length), round(col * RADIUS / length))


def _index(ring: int, row: int, col: int) -> int:
    """Return the index of a near offset (ring 0), or of a direction of a ring."""
    if ring == 0:
        return (row + RADIUS) * (2 * RADIUS + 1) + col + RADIUS
    return NUM_NEAR + (ring - 1) * len(_PERIMETER) + _PERIMETER[row, col]


def rotate_offset(row: int, col: int, quarters: int) -> tuple[int, int]:
    """Rotate an offset counter-clockwise by quarter turns, as `torch.rot90` rotates an image.

    >>> rotate_offset(0, 1, 1), rotate_offset(1, 1, 1), rotate_offset(2, 1, 4)
    ((-1, 0), (-1, 1), (2, 1))
    """
    for _ in range(quarters % NUM_ROTATIONS):
        row, col = -col, row
    return row, col


def sector_positions() -> list[int]:
    """Return, for each offset but zero, its position among the predictions of all frames, (O - 1,) in 0..K J - 1."""
    positions = {
        _index(ring, *rotate_offset(row, col, -rotation)): rotation * len(SECTOR) + place
        for rotation in range(NUM_ROTATIONS)
        for place, (ring, row, col) in enumerate(SECTOR)
    }
    return [positions[offset] for offset in range(NUM_OFFSETS) if offset != ZERO_OFFSET]


def mirrored_offsets() -> list[int]:
    """Return the index of every offset in an image that is flipped left to right, (O,)."""
    steps = range(-RINGS[-1], RINGS[-1] + 1)
    mirrored = {offset_index(row, col): offset_index(row, -col) for row in steps for col in steps}
    return [mirrored[index] for index in range(NUM_OFFSETS)]


@lru_cache(maxsize=16)
def offset_table(reach: int) -> Any:
    """Return the indices of all offsets shorter than `reach`, int64 (2 reach - 1, 2 reach - 1).

    The offset (row, col) is at `[row + reach - 1, col + reach - 1]`.
    """
    steps = range(1 - reach, reach)
    return np.array([[offset_index(row, col) for col in steps] for row in steps])
