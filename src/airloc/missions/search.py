"""A search tried out over an image that stands for the world: the agent sees only the cells it is sent to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Pixels
from airloc.areas.geotiff import Raster
from airloc.areas.layout import Layout, look
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.searcher import Glimpse, Searcher

FRAMES = 48
"""Beliefs that are kept of a search, about; fewer of a large grid, whose pictures take long to draw."""
LARGE, FEW = 2500, 12


class Photo(NamedTuple):
    """One photo of a search."""

    cell: Cell
    here: float
    """The probability that it shows the goal."""
    probability: float
    """The probability of area of the cell before the photo."""
    seen: float
    """Share of the cell that the image knows."""
    pos: float
    """The probability of success of the search so far."""
    belief: npt.NDArray[np.float32] | None
    """The belief after it, for some of the photos."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search that is over."""

    layout: Layout
    searcher: Searcher
    goal: Pixels
    """The goal's picture as the agent saw it, (48, 48, 3)."""
    photos: Sequence[Photo]
    truth: Cell | None
    """Where the goal is, where that is known."""

    @property
    def correct(self) -> bool | None:
        """Whether the declared cell is the true one; None where nobody knows or nothing was declared."""
        declared = self.searcher.advice().declared
        return None if self.truth is None or declared is None else declared == self.truth


def fly(raster: Raster, layout: Layout, searcher: Searcher, on_photo: Callable[[int], None]) -> list[Photo]:
    """Let the searcher search, photos cut from the image, until it declares the find or has spent its flight."""
    photos: list[Photo] = []
    stride = max(1, searcher.budget // (FRAMES if layout.grid.count <= LARGE else FEW))
    advice = searcher.advice()
    while (cell := advice.cell) is not None:
        view = look(raster, layout, cell)
        before = float(searcher.belief()[cell])
        advice = searcher.observe(cell, Glimpse(view.pixels, view.seen))
        keep = len(photos) % stride == 0 or advice.cell is None
        belief = searcher.belief().astype(np.float32) if keep else None
        photos.append(Photo(cell, advice.here or 0.0, before, view.seen, searcher.pos, belief))
        on_photo(1)
    return photos


def nearest_searchable(layout: Layout, point: npt.NDArray[np.float64]) -> Cell:
    """The searchable cell whose middle is nearest to a point of the plane."""
    cells = np.argwhere(layout.searchable)
    row, col = cells[int(np.linalg.norm(layout.place(cells) - point, axis=-1).argmin())].tolist()
    return row, col


def cell_of(layout: Layout, point: npt.NDArray[np.float64], what: str) -> Cell:
    """The searchable cell under a point of the plane.

    Raises:
        AirlocError: When there is none; it names the nearest one.
    """
    cell = layout.cell_at(point)
    if cell is not None and layout.searchable[cell]:
        return cell
    near = nearest_searchable(layout, point)
    away = float(np.linalg.norm(layout.place(near) - point))
    if layout.plane is None:
        place = "{:.0f},{:.0f}".format(*(layout.place(near) * (1, -1)))
    else:
        place = "{:.6f},{:.6f}".format(*layout.degrees(near))
    raise AirlocError(
        f"The {what} lies outside what is searched, {away:.0f} {layout.unit} from the nearest cell",
        f"Give a place inside; the nearest is {place}",
    )
