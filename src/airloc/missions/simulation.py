"""Simulate a field search over an orthoimage: the searcher observes only the cells that it flies to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Pixels
from airloc.areas.layout import Layout, read_cell
from airloc.areas.raster import Raster
from airloc.grid import Cell
from airloc.missions.plan import FieldSearch
from airloc.missions.searcher import Glimpse, Searcher

__all__ = ["PhotoRecord", "SearchRecord", "simulate"]

MAX_FRAMES, MAX_FRAMES_LARGE = 48, 12
"""Approximate number of beliefs to keep, and the number for a large grid, which takes longer to draw."""
LARGE_GRID = 2500
"""Number of cells above which a grid is large."""


class PhotoRecord(NamedTuple):
    """One photo of a search."""

    cell: Cell
    match_probability: float
    """Probability that the photo shows the goal."""
    poa: float
    """Probability of area (POA) of the cell before the photo."""
    coverage: float
    """Fraction of the cell that has image data."""
    pos: float
    """Probability of success (POS) of the search so far."""
    belief: npt.NDArray[np.float32] | None
    """Belief after the photo, (rows, cols), for some of the photos."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchRecord:
    """A finished search."""

    search: FieldSearch
    photos: Sequence[PhotoRecord]
    truth: Cell | None
    """Cell of the goal, if it is known."""

    @property
    def layout(self) -> Layout:
        """The grid on the ground."""
        return self.search.layout

    @property
    def searcher(self) -> Searcher:
        """The searcher after the last photo."""
        return self.search.searcher

    @property
    def goal(self) -> Pixels:
        """Goal patch, (48, 48, 3)."""
        return self.search.goal

    @property
    def correct(self) -> bool | None:
        """True if the declared cell is the goal; None if the goal is unknown or nothing was declared."""
        declared = self.searcher.advice().declared
        return None if self.truth is None or declared is None else declared == self.truth


def simulate(
    search: FieldSearch,
    raster: Raster,
    truth: Cell | None = None,
    on_photo: Callable[[int], None] = lambda count: None,
) -> SearchRecord:
    """Fly a search to its end, with photos cropped from an image.

    Args:
        search: The search, before its first photo.
        raster: The image.
        truth: Cell of the goal, if it is known; the search does not use it.
        on_photo: Called with 1 after every photo.
    """
    searcher, layout = search.searcher, search.layout
    photos: list[PhotoRecord] = []
    stride = max(1, searcher.budget // (MAX_FRAMES if layout.grid.count <= LARGE_GRID else MAX_FRAMES_LARGE))
    advice = searcher.advice()
    while (cell := advice.next_cell) is not None:
        view = read_cell(raster, layout, cell)
        poa = float(searcher.belief()[cell])
        advice = searcher.observe(cell, Glimpse(view.pixels, view.coverage))
        keep = len(photos) % stride == 0 or advice.next_cell is None
        belief = searcher.belief().astype(np.float32) if keep else None
        photos.append(PhotoRecord(cell, advice.match_probability or 0.0, poa, view.coverage, searcher.pos, belief))
        on_photo(1)
    return SearchRecord(search, photos, truth)
