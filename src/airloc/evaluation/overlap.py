"""How well marked buildings match the true ones, from counts of pixels that can be added up exactly."""

from collections.abc import Iterable
from typing import NamedTuple


class Overlap(NamedTuple):
    """Pixels of the building class.

    >>> pooled([Overlap(1, 1, 0), Overlap(1, 0, 1)])
    Overlap(tp=2, fp=1, fn=1)
    """

    tp: int
    """Buildings that were marked."""
    fp: int
    """Marked, and no building."""
    fn: int
    """Buildings that were not marked."""

    @property
    def iou(self) -> float:
        """Intersection over union."""
        return self.tp / max(self.tp + self.fp + self.fn, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1)


def pooled(counts: Iterable[Overlap]) -> Overlap:
    """All counts as one."""
    return Overlap(*(sum(column) for column in zip(*counts, strict=True)))
