"""The best paths that look at nothing: which cells to fly over when only a prior over goals is known.

From a start, a path of `budget` king's moves collects the weight of every cell it visits, once. Paths are extended
move by move, all together; two that stand on the same cell and have visited the same set are one state with a count.
A state is dropped when even the heaviest cells still in reach would not lift it to the best path known. When nothing
else had to be dropped, the result is the exact optimum and holds every optimal path; otherwise the widest beam allowed
gives a proven lower bound, since every path found can be flown.

Legend: K states, n cells (row-major numbers), W 64-bit words of a visited set.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airloc.grid import Cell, Grid

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

FIRST_WIDTH = 2048
WORK = 4e8
"""Bound on states x cells x moves for grids of up to 64 cells: enough to end exactly on 5 x 5 and 7 x 7."""
WORK_LARGE = 2e7
"""The same for larger grids, where an exact end is out of reach and a beam has to do."""
TIE = 1e-12
"""Weights closer than this are equal."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """All states after some number of moves."""

    cell: Ints
    """Where they stand, (K,)."""
    visited: Words
    """What they have visited, (K, W)."""
    value: Floats
    """The weight collected, (K,)."""
    paths: Floats
    """How many paths lead there, (K,)."""

    def take(self, index: npt.NDArray[np.bool_] | Ints) -> "_Layer":
        return _Layer(self.cell[index], self.visited[index], self.value[index], self.paths[index])


@dataclass(frozen=True, slots=True)
class BestPaths:
    """The optimal paths from one start, or the best known ones."""

    value: float
    """The weight that each of them collects: its probability of success, if the weights sum to one."""
    exact: bool
    """Whether it is proven that no path collects more."""
    share: Floats
    """For each cell the share of the paths that visit it, (n,)."""
    _layers: tuple[_Layer, ...]
    _grid: Grid

    def draw(self, rng: np.random.Generator) -> list[Cell]:
        """Draw one of the paths uniformly, as cells from the start on."""
        layer = self._layers[-1]
        chosen = layer.take(layer.value >= self.value - TIE)
        state = chosen.take(np.array([_pick(chosen.paths, rng)]))
        path = [int(state.cell[0])]
        for layer in reversed(self._layers[:-1]):
            before = layer.take(_leads_to(layer, state, self._grid))
            state = before.take(np.array([_pick(before.paths, rng)]))
            path.append(int(state.cell[0]))
        return [self._grid.cell_of(number) for number in reversed(path)]


def best_paths(grid: Grid, budget: int, start: Cell, weights: Floats) -> BestPaths:
    """Search for the paths from `start` that collect most of `weights` (n,) in `budget` moves."""
    work = WORK if grid.count <= 64 else WORK_LARGE
    limit = max(FIRST_WIDTH, int(work / (grid.count * budget)))
    width = FIRST_WIDTH
    best = _sweep(grid, budget, grid.index(start), weights, width, known=0.0)
    while not best.exact and width < limit:
        width = min(8 * width, limit)
        found = _sweep(grid, budget, grid.index(start), weights, width, best.value)
        best = found if found.exact or found.value > best.value else best
    return best


def _sweep(grid: Grid, budget: int, start: int, weights: Floats, width: int, known: float) -> BestPaths:
    """Extend all paths together, at most `width` states at a time."""
    words = -(-grid.count // 64)
    visited = np.zeros((1, words), dtype=np.uint64)
    visited[0, start // 64] = np.uint64(1) << np.uint64(start % 64)
    layers = [_Layer(np.array([start]), visited, np.zeros(1), np.ones(1))]
    exact = True
    for left in range(budget - 1, -1, -1):
        layer = _merge(_extend(layers[-1], grid, weights))
        hope = _upper_bound(layer, grid, weights, left)
        promising = hope >= known - TIE
        layer, hope = layer.take(promising), hope[promising]
        if len(hope) > width:
            exact = False
            layer = layer.take(np.argpartition(-(layer.value + hope), width)[:width])
        layers.append(layer)
    last = layers[-1]
    value = float(last.value.max(initial=0.0))
    final = last.take(last.value >= value - TIE)
    shares = np.array([_has(final.visited, cell) @ final.paths for cell in range(grid.count)])
    return BestPaths(value, exact, shares / max(final.paths.sum(), 1.0), tuple(layers), grid)


def _extend(layer: _Layer, grid: Grid, weights: Floats) -> _Layer:
    """Make every move that stays inside from every state."""
    neighbours = _neighbours(grid)[layer.cell]  # (K, 8)
    state, direction = np.nonzero(neighbours >= 0)
    cell = neighbours[state, direction]
    visited = layer.visited[state]
    fresh = ~_has(visited, cell)
    row = np.arange(len(cell))
    visited[row, cell // 64] |= np.uint64(1) << (cell % 64).astype(np.uint64)
    return _Layer(cell, visited, layer.value[state] + weights[cell] * fresh, layer.paths[state])


def _merge(layer: _Layer) -> _Layer:
    """Make one state of those that stand on the same cell and have visited the same set."""
    order = np.lexsort((layer.cell, *layer.visited.T))
    cell, visited = layer.cell[order], layer.visited[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (cell[1:] != cell[:-1]) | (visited[1:] != visited[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    paths = np.add.reduceat(layer.paths[order], first)
    return _Layer(cell[first], visited[first], layer.value[order][first], paths)


def _upper_bound(layer: _Layer, grid: Grid, weights: Floats, left: int) -> Floats:
    """What a state could collect at most: the heaviest unvisited cells in reach, one a move."""
    reach = grid.distances() <= left
    hope, moves = layer.value.copy(), np.full(len(layer.cell), left, dtype=np.int8)
    for cell in np.argsort(-weights, kind="stable").tolist():
        if weights[cell] <= 0 or not moves.any():
            break
        take = reach[cell][layer.cell] & ~_has(layer.visited, cell) & (moves > 0)
        hope += weights[cell] * take
        moves -= take
    return hope


def _leads_to(layer: _Layer, state: _Layer, grid: Grid) -> npt.NDArray[np.bool_]:
    """Which states of a layer become `state` by one move, (K,)."""
    cell = int(state.cell[0])
    without = state.visited[0].copy()
    without[cell // 64] &= ~(np.uint64(1) << np.uint64(cell % 64))
    same = (layer.visited == state.visited[0]).all(axis=1)
    fewer = (layer.visited == without).all(axis=1)
    return np.asarray((same | fewer) & (_neighbours(grid)[cell] == layer.cell[:, None]).any(axis=1))


def _neighbours(grid: Grid) -> Ints:
    """Numbers of the neighbours of each cell, (n, 8), -1 where there are fewer."""
    table = np.full((grid.count, 8), -1)
    for cell in grid.cells():
        near = [grid.index(neighbour) for neighbour in grid.neighbours(cell)]
        table[grid.index(cell), : len(near)] = near
    return table


def _has(visited: Words, cell: Ints | int) -> npt.NDArray[np.bool_]:
    """Whether sets (K, W) hold a cell, or each its own of cells (K,): (K,)."""
    if isinstance(cell, int):
        return np.asarray(visited[:, cell // 64] & (np.uint64(1) << np.uint64(cell % 64)) != 0)
    word = visited[np.arange(len(visited)), cell // 64]
    return np.asarray(word & (np.uint64(1) << (cell % 64).astype(np.uint64)) != 0)


def _pick(weights: Floats, rng: np.random.Generator) -> int:
    """Draw a number in proportion to weights."""
    return int(rng.choice(len(weights), p=weights / weights.sum()))
