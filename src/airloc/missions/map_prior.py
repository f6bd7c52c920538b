"""An orthophoto of another day as a source of the prior: the goal is matched against every cell before take-off.

Two kinds of evidence add up, in logarithms:

- The map around every cell is a photo. The locator finds the goal in it, the relation network compares both as they are
  aligned, and the calibration of the live searcher, which holds across days, gives the odds of a match. They count for
  the cell in which the locator places the goal; cells in which it is placed by no photo have the median odds.
- The relation network relates the glimpse of every cell to the goal, as in flight: it also says where the goal lies
  from there. Glimpses of one map err together, so that their sum counts little. It needs a known heading.

`WEIGHTS` were fitted to 120 goals in NAIP tiles without Claremont, with the map and the goal from two other years than
the flight: `python -m benchmarks.field_map --fit`. A cell without data on the map gets the mean weight of the others.

Legend: C cells, O offsets; glimpses are uint8 RGB (C, 48, 48, 3), weights are (C,) or (rows, cols).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.belief import offset_logits, prepare_goals
from airloc.agents.matching import SAME_PLACE, SIGHTING, comparison
from airloc.areas.layout import Layout, read_square
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid
from airloc.missions.photos import MIN_COVERAGE, SIDE, VIEW_SIDE, Goal
from airloc.vision.locator import NOWHERE
from airloc.vision.relation import RelationNetwork, offsets_from

Weights = npt.NDArray[np.float64]

WEIGHTS = (1.0, 0.11)
"""Weights of the odds of a match and of the relation network's logits in the log-weight of a cell."""
MAX_SIGHTINGS = 400
"""Cells in which the locator looks for the goal, the most probable ones by the relation network."""
CHUNK = 64
"""Glimpses that are related at once."""


@dataclass(frozen=True)
class MapPrior:
    """A georeferenced image of the area on another day, and the goal."""

    path: Path
    goal: Goal
    network: RelationNetwork
    """The network that compares goal and map."""

    def __str__(self) -> str:
        return f"the map {self.path}"

    def weights(self, layout: Layout) -> Weights:
        """Return the weight of every cell; their mean over the cells on the map is one."""
        cells = [(row, col) for row, col in np.argwhere(layout.searchable).tolist()]
        with Raster(self.path) as raster:
            if not raster.georeferenced or layout.plane is None:
                raise AirlocError(f"The map {self.path} or the area has no georeference", "Give GeoTIFF files")
            views = [read_square(raster, layout, cell, 2.0, VIEW_SIDE) for cell in cells]
        shown = [view.coverage >= MIN_COVERAGE for view in views]
        if not any(shown):
            raise AirlocError(f"The map {self.path} does not show the search area", "Give an orthophoto of the area")
        there = [cell for cell, here in zip(cells, shown, strict=True) if here]
        photos = [view.pixels for view, here in zip(views, shown, strict=True) if here]
        found = map_weights(self.network, self.goal, layout.grid, there, photos)
        weights = np.ones(layout.grid.shape)
        weights[tuple(np.transpose(there))] = found
        return weights


def map_weights(
    network: RelationNetwork,
    goal: Goal,
    grid: Grid,
    cells: Sequence[Cell],
    photos: Sequence[npt.NDArray[np.uint8]],
) -> Weights:
    """Return the likelihood of the goal in cells, (C,), with a mean of one.

    Args:
        network: The network that compares goal and map.
        goal: The goal.
        grid: The grid of cells.
        cells: The cells that the map shows.
        photos: What it shows around each: two cells wide, (96, 96, 3), black where there is no data.
    """
    related = np.zeros(len(cells)) if goal.turn is None else _relate(network, goal, grid, cells, photos)
    chosen = np.argsort(-related, kind="stable")[:MAX_SIGHTINGS].tolist()
    sightings = _sight(network, goal, grid, [cells[number] for number in chosen], [photos[number] for number in chosen])
    usual = float(np.median([odds for _, odds in sightings])) if sightings else 0.0
    best: dict[Cell, float] = {}
    for cell, chance in sightings:
        best[cell] = max(chance, best.get(cell, -math.inf))
    odds = np.array([best.get(cell, usual) for cell in cells])
    logs = WEIGHTS[0] * odds + WEIGHTS[1] * related
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.mean())


def _sight(
    network: RelationNetwork, goal: Goal, grid: Grid, cells: Sequence[Cell], photos: Sequence[npt.NDArray[np.uint8]]
) -> list[tuple[Cell, float]]:
    """Locate the goal in photos; return the cell of every sighting and its log-odds."""
    compare, views, found = comparison(network), goal.views(), []
    for cell, photo in zip(cells, photos, strict=True):
        seen = np.asarray(photo.any(axis=2))
        if not (views.textured and seen.any()):
            continue
        sighting = views.locate(photo, seen)
        if sighting.score > NOWHERE:
            likelihood = compare(*views.align(photo, seen, sighting))
            chance = SIGHTING.probability(sighting, likelihood)
            offset = np.array([sighting.down, sighting.right]) * grid.cell / grid.pitch
            row, col = np.floor(np.array(cell) + offset + 0.5).astype(int).clip(0, np.array(grid.shape) - 1).tolist()
            found.append(((row, col), math.log(chance / (1 - chance))))
    return found


@torch.inference_mode()
def _relate(
    network: RelationNetwork, goal: Goal, grid: Grid, cells: Sequence[Cell], photos: Sequence[npt.NDArray[np.uint8]]
) -> Weights:
    """Return the sum over all glimpses of the logits for the goal in each cell, (C,)."""
    edge = (VIEW_SIDE - SIDE) // 2
    glimpses = torch.from_numpy(np.stack([photo[edge:-edge, edge:-edge] for photo in photos]))
    positions = torch.tensor([list(cell) for cell in cells])
    patch = torch.from_numpy(goal.patch.copy())[None]
    total = torch.zeros(grid.count)
    for begin in range(0, len(cells), CHUNK):
        some = glimpses[begin : begin + CHUNK]
        cache = prepare_goals(patch.expand(len(some), -1, -1, -1).contiguous(), SAME_PLACE)
        logits, _ = offset_logits(network, some, cache)  # (chunk, O)
        total += logits.gather(1, offsets_from(positions[begin : begin + CHUNK], grid)).sum(dim=0)
    return np.asarray(total.double().numpy()[(positions[:, 0] * grid.cols + positions[:, 1]).numpy()])
