"""The best paths that look at nothing: which cells to fly over when only a prior over goals is known.

From a start, a path of `budget` king's moves collects the weight of every cell it visits, once. Paths are extended
move by move, all together; two that stand on the same cell and have visited the same set are one state with a count.
A state is dropped when even the heaviest cells still in reach would not lift it to the best path known. When nothing
else had to be dropped, the result is the exact optimum and holds every optimal path; otherwise the widest beam allowed
gives a proven lower bound, since every path found can be flown, and the optimum where no path at all could collect
more. The work is bounded, so that no grid or budget keeps anybody waiting: about 20 seconds for all starts of a grid.

Legend: K states, n cells (row-major numbers), W 64-bit words of a visited set.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from airloc.grid import Cell, Grid

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

WIDTHS = (2048, 16384)
"""Widths of the first beams; what they find lets the last search drop all that cannot be better."""
STATES = 16_000_000
"""States that the last searches may keep, from all starts of a grid together: enough to hold all paths on 7 x 7."""
CELLS_IN_KEY = 58
"""Up to so many cells, a visited set and the number of a cell go into one word; for more, a beam has to do."""
BEAM = 50_000_000
"""Width of that beam, times cells, moves and starts: a few seconds for all starts together."""
CELLS_GUIDED = 256
"""Up to so many cells a beam is guided by what is still in reach; for more, that takes too long."""
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
    complete: bool
    """Whether these are all of the optimal paths."""
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
    search = _Search(grid, budget, grid.index(start), weights)
    if grid.count > CELLS_IN_KEY:
        return search.beams()
    best = search.sweep(WIDTHS[0], known=0.0)
    states = STATES // max(10, _starts(grid)) // max(1, budget // grid.default_budget)
    for width, more in ((WIDTHS[1], 0), (WIDTHS[0], states)):
        if best.complete:
            break
        found = search.sweep(width, best.value, more)
        best = found if found.complete or found.value > best.value else best
    return best


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the best paths from one start."""

    grid: Grid
    budget: int
    start: int
    weights: Floats

    def beams(self) -> BestPaths:
        """Give the better of the greedy and the guided beam, as wide as the grid allows."""
        width = max(16, BEAM // (self.grid.count * self.budget * _starts(self.grid)))
        found = [self.sweep(width, known=None)]
        if self.grid.count <= CELLS_GUIDED:
            found.append(self.sweep(8 * width, found[0].value))
        return max(found, key=lambda paths: paths.value)

    def sweep(self, width: int, known: float | None, states: int = 0) -> BestPaths:
        """Extend all paths together, keeping at most `width` states, or more while `states` are left to look at.

        States that cannot reach the value `known` are dropped; None drops and ranks by what is collected alone.
        """
        layers = [self._first()]
        complete = known is not None
        for left in range(self.budget - 1, -1, -1):
            layer = _merge(_extend(layers[-1], self.grid, self.weights), self.grid.count)
            hope = layer.value if known is None else _upper_bound(layer, self.grid, self.weights, left)
            if known is not None:
                promising = hope >= known - TIE
                layer, hope = layer.take(promising), hope[promising]
            if not len(hope):
                return self._result(layers[:1], complete=False)
            states -= len(hope)
            most = max(width, states)
            if len(hope) > most:
                complete = False
                layer = layer.take(np.argpartition(-(layer.value + hope), most)[:most])
            layers.append(layer)
        return self._result(layers, complete)

    def _first(self) -> _Layer:
        """The one state before the first move."""
        visited = np.zeros((1, -(-self.grid.count // 64)), dtype=np.uint64)
        visited[0, self.start // 64] = np.uint64(1) << np.uint64(self.start % 64)
        return _Layer(np.array([self.start]), visited, np.zeros(1), np.ones(1))

    def _result(self, layers: list[_Layer], complete: bool) -> BestPaths:
        """Collect the best of the last states."""
        last = layers[-1]
        value = float(last.value.max(initial=0.0))
        final = last.take(last.value >= value - TIE)
        shares = np.array([_has(final.visited, cell) @ final.paths for cell in range(self.grid.count)])
        root = float(_upper_bound(layers[0], self.grid, self.weights, self.budget)[0])
        exact = complete or value >= root - TIE
        complete = complete or value >= float(self.weights.sum()) - TIE  # all of them visit every cell that counts
        return BestPaths(value, exact, complete, shares / max(final.paths.sum(), TIE), tuple(layers), self.grid)


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


def _merge(layer: _Layer, count: int) -> _Layer:
    """Make one state of those that stand on the same cell and have visited the same set.

    Only the proportions of the numbers of paths are kept, which grow beyond all bounds.
    """
    if count <= CELLS_IN_KEY:
        key = layer.visited[:, 0] | layer.cell.astype(np.uint64) << np.uint64(CELLS_IN_KEY)
        order = np.argsort(key)
        key = key[order]
        new = np.concatenate([[True], key[1:] != key[:-1]])
    else:
        order = np.lexsort((layer.cell, *layer.visited.T))
        cell, visited = layer.cell[order], layer.visited[order]
        new = np.concatenate([[True], (cell[1:] != cell[:-1]) | (visited[1:] != visited[:-1]).any(axis=1)])
    merged = layer.take(order[new])
    paths = np.add.reduceat(layer.paths[order], np.flatnonzero(new))
    return _Layer(merged.cell, merged.visited, merged.value, paths / paths.max())


def _upper_bound(layer: _Layer, grid: Grid, weights: Floats, left: int) -> Floats:
    """What a state could collect at most: the heaviest unvisited cells in reach, one a move."""
    reach = _distances(grid) <= left
    hope, moves = layer.value.copy(), np.full(len(layer.cell), min(left, grid.count), dtype=np.int16)
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


def _starts(grid: Grid) -> int:
    """From how many cells searches differ; the others are their mirror images."""
    rows, cols = -(-grid.rows // 2), -(-grid.cols // 2)
    return rows * (rows + 1) // 2 if grid.rows == grid.cols else rows * cols


@lru_cache(maxsize=4)
def _distances(grid: Grid) -> Ints:
    return grid.distances()


@lru_cache(maxsize=4)
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
