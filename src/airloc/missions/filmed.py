"""Flights of several drones that film the ground on their way, over a map of probabilities finer than the film is wide.

Each drone first flies the leg that finds soonest, found by a beam search on the cells of the map. The rest of its range
goes to a tour over cells as wide as the film. If the drones can film the whole map, they fly parallel tracks instead.

Legend: positions are rows and columns of the map, fractional between the centres of its cells; W paths of a beam, F
cells of a footprint, P positions of a path.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from airloc.grid import MOVES, Cell
from airloc.missions.tours import parallel_tracks, plan_tours

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEG_END = 0.2
"""Discount at which the first leg ends: from there on, it counts more how much is found than how soon."""
LOOK = 0.6
"""Probability that one look at a cell finds, on the first leg: a second look at a likely place is worth something."""
BEAM = 64
"""Number of paths that the beam search keeps."""
SPACINGS = (1.0, 0.9, 0.8)
"""Distances between parallel tracks that are tried, in widths of the film; close tracks leave no corner out."""
FINE = 10
"""Parts into which a cell of the map is cut, along each side, to share it among the cells of a tour."""


def plan_filmed_flights(
    mass: Floats, starts: Sequence[Cell], budgets: Sequence[float], *, width: float, discount: float, seed: int = 0
) -> list[Floats]:
    """Return the path of each drone, (P, 2), so that the team finds soon and sees as much probability as it can.

    Args:
        mass: Probability of each cell of the map, (rows, cols).
        starts: Cell in which each drone starts.
        budgets: Largest length of each path, in cells of the map.
        width: Width of the film, in cells of the map.
        discount: Factor by which a find loses value with each cell that is flown before it.
        seed: Random seed of the tours.
    """
    legs, left = list[Floats](), mass.copy()
    steps = int(np.log(LEG_END) / np.log(discount))
    for start, budget in zip(starts, budgets, strict=True):
        leg = soonest_leg(left, start, min(steps, int(budget / 2)), radius=width / 2, discount=discount)
        legs.append(np.array(leg, dtype=np.float64))
        _see(left, legs[-1], width / 2)
    spare = [budget - _length(leg) for leg, budget in zip(legs, budgets, strict=True)]
    ends = [leg[-1] for leg in legs]
    tours = _complete(mass, ends, spare, width) or _tours(left, ends, spare, width, seed)
    flights = zip(legs, tours, budgets, strict=True)
    return [_cut(np.concatenate([leg, tour]), budget) for leg, tour, budget in flights]


def _tours(left: Floats, ends: list[Floats], spare: list[float], width: float, seed: int) -> list[Floats]:
    """Return tours over cells as wide as the film, from the ends of the first legs on."""
    wide = _Wide(left.shape, width)
    budgets = [max(0.0, length / width - 1) for length in spare]
    paths = plan_tours(wide.gather(left), [wide.cell_at(end) for end in ends], budgets, filmed=True, seed=seed)
    return [wide.centres(path[1:]) for path in paths]


def _complete(mass: Floats, ends: list[Floats], spare: list[float], width: float) -> list[Floats] | None:
    """Return the closest parallel tracks over the whole map that the drones can fly; None if there are none."""
    best = None
    for spacing in SPACINGS:
        wide = _Wide(mass.shape, spacing * width)
        whole = wide.gather(mass)
        whole = whole + np.roll(whole, 1, axis=1) + np.roll(whole, -1, axis=1)  # tracks end outside: corners are seen
        tracks = [wide.centres(path[1:]) for path in parallel_tracks(whole, [wide.cell_at(end) for end in ends])]
        ways = [np.concatenate([end[None], track]) for end, track in zip(ends, tracks, strict=True)]
        if all(_length(way) <= length for way, length in zip(ways, spare, strict=True)):
            best = tracks
    return best


class _Wide:
    """A grid of wider cells around the middle of a map, with a cell more at each border."""

    def __init__(self, shape: tuple[int, ...], width: float) -> None:
        self._width = width
        self._sides = tuple(2 + int(np.ceil(side / width)) for side in shape)
        self._middle = (np.array(shape) - 1) / 2

    def cell_at(self, position: Floats) -> Cell:
        """Return the cell at a position of the map."""
        row, col = self._cells(position).tolist()
        return row, col

    def centres(self, cells: Sequence[Cell]) -> Floats:
        """Return the positions of cells on the map, (P, 2)."""
        centre: Floats = (
            np.array(cells, dtype=np.float64).reshape(-1, 2) + 0.5 - np.array(self._sides) / 2
        ) * self._width
        return centre + self._middle

    def gather(self, mass: Floats) -> Floats:
        """Return the probability of the wider cells, each cell of the map shared by area."""
        whole = np.zeros(self._sides)
        positions = np.moveaxis(np.indices(mass.shape), 0, -1).astype(np.float64)
        parts = (np.arange(FINE) + 0.5) / FINE - 0.5
        for shift in np.stack(np.meshgrid(parts, parts), axis=-1).reshape(-1, 2):
            np.add.at(whole, tuple(np.moveaxis(self._cells(positions + shift), -1, 0)), mass / FINE**2)
        return whole

    def _cells(self, positions: Floats) -> Ints:
        return np.floor((positions - self._middle) / self._width + np.array(self._sides) / 2).astype(np.int64)


def _see(left: Floats, path: Floats, radius: float) -> None:
    """Clear the cells of a map that are seen from the positions of a path."""
    cells = np.moveaxis(np.indices(left.shape), 0, -1)
    for position in path:
        left[np.linalg.norm(cells - position, axis=-1) <= radius] = 0


def _length(path: Floats) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _cut(path: Floats, length: float) -> Floats:
    """Return the beginning of a path of some length."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    if along[-1] <= length:
        return path
    end = [np.interp(length, along, path[:, axis]) for axis in (0, 1)]
    return np.concatenate([path[along < length], [end]])


def soonest_leg(mass: Floats, start: Cell, steps: int, *, radius: float, discount: float) -> list[Cell]:
    """Return the path that collects the most probability, discounted by its length, under a moving footprint.

    Args:
        mass: Probability of each cell, (rows, cols).
        start: First cell.
        steps: Number of moves.
        radius: Radius of the footprint in cells.
        discount: Factor for each cell of length.
    """
    rows, cols = mass.shape
    reach = int(np.ceil(radius))
    around = np.moveaxis(np.indices((2 * reach + 1, 2 * reach + 1)) - reach, 0, -1).reshape(-1, 2)
    around = around[np.hypot(*around.T) <= radius]  # (F, 2)
    padded = np.pad(mass, reach).ravel()
    offsets = around[:, 0] * (cols + 2 * reach) + around[:, 1]
    lengths = np.hypot(*MOVES.T)
    position = np.array([start])
    missed = np.ones((1, len(padded)))  # probability that no look so far has found what is in a cell
    missed[0, _index(position, reach, cols)[:, None] + offsets] *= 1 - LOOK
    value, length, parents = np.zeros(1), np.zeros(1), list[tuple[Ints, Ints]]()
    for _ in range(steps):
        target = position[:, None] + MOVES  # (W, 8, 2)
        inside = ((target >= 0) & (target < (rows, cols))).all(axis=-1)
        state, move = np.nonzero(inside)
        seen = _index(target[state, move], reach, cols)[:, None] + offsets
        gain = LOOK * (padded[seen] * missed[state[:, None], seen]).sum(axis=1)
        far = length[state] + lengths[move]
        total = value[state] + gain * discount**far
        order = np.argsort(-total, kind="stable")
        _, first = np.unique(_index(target[state, move], reach, cols)[order], return_index=True)
        kept = order[np.sort(first)][:BEAM]  # the best path to each cell
        position, value, length = target[state[kept], move[kept]], total[kept], far[kept]
        missed = missed[state[kept]]
        missed[np.arange(len(kept))[:, None], seen[kept]] *= 1 - LOOK
        parents.append((state[kept], position))
    best, path = int(value.argmax()), list[Cell]()
    for state, position in reversed(parents):
        row, col = position[best].tolist()
        path.append((row, col))
        best = int(state[best])
    return [start, *reversed(path)]


def _index(cells: Ints, reach: int, cols: int) -> Ints:
    """Return the indices of cells (..., 2) in the padded map, (...)."""
    index: Ints = (cells[..., 0] + reach) * (cols + 2 * reach) + cells[..., 1] + reach
    return index
