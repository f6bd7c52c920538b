"""Pictures of a search over its ground: the belief, the path, the animation.

Legend: Pixels: uint8 RGB (H, W, 3); a belief is (rows, cols).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.areas.area import Pixels
from airloc.drawing.canvas import Frame
from airloc.drawing.heatmap import draw_belief
from airloc.drawing.trajectory import draw_trajectory
from airloc.grid import Cell, Grid
from airloc.missions.search import Search

SIDE, GIF_SIDE = 1000, 480
"""Longest side of pictures in pixels, about."""
DARK = 0.3
"""How bright cells are left that are not searched."""


class Painter:
    """Draws one search at one size.

    Args:
        search: The search.
        ground: The image under the whole grid, as `overview` reads it.
        side: Longest side in pixels, about.
    """

    def __init__(self, search: Search, ground: Pixels, side: int = SIDE) -> None:
        self._search = search
        layout = search.layout
        pitch = max(3, side // max(layout.grid.shape))
        gap = max(1, round(pitch * layout.gap_m / layout.pitch_m))
        self._grid = Grid(*layout.grid.shape, cell=pitch - gap, gap=gap)
        size = self._grid.size[::-1]
        self._ground = np.asarray(Image.fromarray(ground).resize(size, Image.Resampling.LANCZOS))

    def belief(
        self, belief: npt.NDArray[np.floating], seen: Sequence[Cell], top: float, position: Cell | None = None
    ) -> Pixels:
        """Draw a belief, with what was seen of the ground."""
        drawn = draw_belief(
            self._ground,
            self._grid,
            belief,
            position=position,
            goal=self._search.truth,
            visited=seen,
            top=top,
            scale=1,
            margin=0,
        )
        return self._shade(drawn)

    def path(self) -> Pixels:
        """Draw the cells in the order of the photos."""
        flown = self._search.searcher.flown
        declared = self._search.searcher.advice().declared
        goal = self._search.truth if self._search.truth is not None else declared
        return self._shade(
            draw_trajectory(self._ground, self._grid, flown, goal, scale=1, dim_unvisited=True, margin=0)
        )

    def frames(self) -> list[Pixels]:
        """Draw the beliefs that were kept, in order, all of one size."""
        photos = self._search.photos
        kept = [number for number, photo in enumerate(photos) if photo.belief is not None]
        top = max(0.02, *(float(photos[number].belief.max()) for number in kept))  # type: ignore[union-attr]
        cells = [photo.cell for photo in photos]
        return [
            self.belief(photos[number].belief, cells[: number + 1], min(1.0, top), cells[number])  # type: ignore[arg-type]
            for number in kept
        ]

    def _shade(self, drawn: Pixels) -> Pixels:
        """Show cells that are not searched as dark ground."""
        shaded = drawn.copy()
        frame = Frame.around(self._grid, (), 1, 0)
        for row, col in np.argwhere(~self._search.layout.searchable).tolist():
            part = frame.part((row, col))
            shaded[part] = (DARK * self._ground[part]).astype(np.uint8)
        return shaded
