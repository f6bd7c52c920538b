"""The picture that explains changed goals: what the flight sees of a cell, beside pictures of it as a goal."""

from airloc.areas.area import Pixels
from airloc.areas.changes import CHANGES, View, take
from airloc.areas.synthetic import generate
from airloc.drawing.sheet import contact_sheet
from airloc.grid import Cell, Grid
from airloc.seeding import stream

PLACES: tuple[tuple[str, Cell], ...] = (("city", (1, 2)), ("suburb", (3, 1)), ("coast", (2, 3)), ("rural", (0, 0)))
"""Regimes of the procedural world, and the cell of each that is shown; the last one lies in a corner."""


def changes_sheet(seed: int = 0, tile: int = 112) -> Pixels:
    """Draw a row for every change: four procedural cells, each beside its changed picture.

    Args:
        seed: Decides the places and what is drawn.
        tile: Side of each picture on the sheet, in pixels.
    """
    grid = Grid()
    images = {regime: generate(seed, size=grid.size, regime=regime).image for regime, _ in PLACES}
    pictures, captions = [], []
    for name, change in CHANGES.items():
        for regime, cell in PLACES:
            view = change(stream(seed, "sheet", name, regime), 1.0)
            pictures += [take(images[regime], grid, cell, shown) for shown in (View(), view)]
            captions += ["the cell", name]
    return contact_sheet(pictures, captions, columns=2 * len(PLACES), tile=tile)
