"""Optimal paths without observations, for a known prior over goals: branch and bound over sets of visited cells.

From a start, a path of `budget` moves collects the weight of every cell it visits, once. All paths are extended move by
move. Two paths that end in the same cell and have visited the same set of cells are one state with a count. A state is
dropped if an upper bound, the heaviest unvisited cells in reach, is below the best known path. If no other state is
dropped, the result is the exact optimum and contains every optimal path. Otherwise a beam search gives a lower bound,
because every path that it finds can be flown; it is the optimum if it equals the upper bound at the start. The work is
limited to about 20 seconds for all starts of a grid.

Legend: K states, n cells (row-major indices), W 64-bit words of a visited set.
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
"""Widths of the first beams. Their results let the last search drop all states that cannot be better."""
_STATES = 16_000_000
"""Number of states of the last searches from all starts of a grid: enough for all paths on 7 x 7."""
_CELLS_IN_KEY = 58
"""Largest grid for which a visited set and the index of a cell fit into one word. Larger grids use beams alone."""
_BEAM = 50_000_000
"""Width of that beam, times cells, moves and starts: a few seconds for all starts."""
_CELLS_GUIDED = 256
"""Largest grid for which the upper bound guides the beam. For larger grids it takes too long."""
_TIE = 1e-12
"""Weights with a smaller difference are equal."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """All states after the same number of moves."""

    cell: Ints
    """Current cells, (K,)."""
    visited: Words
    """Sets of visited cells, (K, W)."""
    value: Floats
    """Collected weights, (K,)."""
    paths: Floats
    """Relative numbers of paths to each state, (K,)."""

    def take(self, index: npt.NDArray[np.bool_] | Ints) -> "_Layer":
        return _Layer(self.cell[index], self.visited[index], self.value[index], self.paths[index])


@dataclass(frozen=True, slots=True)
class BestPaths:
    """The optimal paths from one start, or the best known ones."""

    value: float
    """Weight that each path collects: its probability of success, if the weights sum to one."""
    exact: bool
    """Whether no path can collect more."""
    complete: bool
    """Whether these are all optimal paths."""
    share: Floats
    """Fraction of the paths that visit each cell, (n,)."""
    _layers: tuple[_Layer, ...]
    _grid: Grid

    def draw(self, rng: np.random.Generator) -> list[Cell]:
        """Draw one of the paths uniformly; return its cells, beginning with the start."""
        layer = self._layers[-1]
        chosen = layer.take(layer.value >= self.value - _TIE)
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
    if grid.count > _CELLS_IN_KEY:
        return search.beams()
    best = search.sweep(WIDTHS[0], known=0.0)
    states = _STATES // max(10, _starts(grid)) // max(1, budget // grid.default_budget)
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
        """Return the better result of the greedy and the guided beam, as wide as the grid allows."""
        width = max(16, _BEAM // (self.grid.count * self.budget * _starts(self.grid)))
        found = [self.sweep(width, known=None)]
        if self.grid.count <= _CELLS_GUIDED:
            found.append(self.sweep(8 * width, found[0].value))
        return max(found, key=lambda paths: paths.value)

    def sweep(self, width: int, known: float | None, states: int = 0) -> BestPaths:
        """Extend all paths move by move and keep at most `width` states, or more while the total is below `states`.

        States whose upper bound is below `known` are dropped. None ranks states by their collected weight alone.
        """
        layers = [self._first()]
        complete = known is not None
        for left in range(self.budget - 1, -1, -1):
            layer = _merge(_extend(layers[-1], self.grid, self.weights), self.grid.count)
            bound = layer.value if known is None else _upper_bound(layer, self.grid, self.weights, left)
            if known is not None:
                promising = bound >= known - _TIE
                layer, bound = layer.take(promising), bound[promising]
            if not len(bound):
                return self._result(layers[:1], complete=False)
            states -= len(bound)
            most = max(width, states)
            if len(bound) > most:
                complete = False
                layer = layer.take(np.argpartition(-(layer.value + bound), most)[:most])
            layers.append(layer)
        return self._result(layers, complete)

    def _first(self) -> _Layer:
        """Return the state before the first move."""
        visited = np.zeros((1, -(-self.grid.count // 64)), dtype=np.uint64)
        visited[0, self.start // 64] = np.uint64(1) << np.uint64(self.start % 64)
        return _Layer(np.array([self.start]), visited, np.zeros(1), np.ones(1))

    def _result(self, layers: list[_Layer], complete: bool) -> BestPaths:
        """Return the best of the last states."""
        last = layers[-1]
        value = float(last.value.max(initial=0.0))
        final = last.take(last.value >= value - _TIE)
        shares = np.array([_has(final.visited, cell) @ final.paths for cell in range(self.grid.count)])
        root = float(_upper_bound(layers[0], self.grid, self.weights, self.budget)[0])
        exact = complete or value >= root - _TIE
        complete = complete or value >= float(self.weights.sum()) - _TIE  # every path visits all cells with weight
        return BestPaths(value, exact, complete, shares / max(final.paths.sum(), _TIE), tuple(layers), self.grid)


def _extend(layer: _Layer, grid: Grid, weights: Floats) -> _Layer:
    """Return the states after every move inside the grid from every state."""
    neighbours = _neighbours(grid)[layer.cell]  # (K, 8)
    state, direction = np.nonzero(neighbours >= 0)
    cell = neighbours[state, direction]
    visited = layer.visited[state]
    fresh = ~_has(visited, cell)
    row = np.arange(len(cell))
    visited[row, cell // 64] |= np.uint64(1) << (cell % 64).astype(np.uint64)
    return _Layer(cell, visited, layer.value[state] + weights[cell] * fresh, layer.paths[state])


def _merge(layer: _Layer, count: int) -> _Layer:
    """Merge states with the same cell and the same visited set.

    The numbers of paths are kept up to a factor, because they grow without bounds.
    """
    if count <= _CELLS_IN_KEY:
        key = layer.visited[:, 0] | layer.cell.astype(np.uint64) << np.uint64(_CELLS_IN_KEY)
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
    """Return an upper bound of each state's final weight: the heaviest unvisited cells in reach, one for each move."""
    reach = _distances(grid) <= left
    bound, moves = layer.value.copy(), np.full(len(layer.cell), min(left, grid.count), dtype=np.int16)
    for cell in np.argsort(-weights, kind="stable").tolist():
        if weights[cell] <= 0 or not moves.any():
            break
        take = reach[cell][layer.cell] & ~_has(layer.visited, cell) & (moves > 0)
        bound += weights[cell] * take
        moves -= take
    return bound


def _leads_to(layer: _Layer, state: _Layer, grid: Grid) -> npt.NDArray[np.bool_]:
    """Return which states of a layer become `state` by one move, (K,)."""
    cell = int(state.cell[0])
    without = state.visited[0].copy()
    without[cell // 64] &= ~(np.uint64(1) << np.uint64(cell % 64))
    same = (layer.visited == state.visited[0]).all(axis=1)
    fewer = (layer.visited == without).all(axis=1)
    return np.asarray((same | fewer) & (_neighbours(grid)[cell] == layer.cell[:, None]).any(axis=1))


def _starts(grid: Grid) -> int:
    """Return the number of starts that are not mirror images of each other."""
    rows, cols = -(-grid.rows // 2), -(-grid.cols // 2)
    return rows * (rows + 1) // 2 if grid.rows == grid.cols else rows * cols


@lru_cache(maxsize=4)
def _distances(grid: Grid) -> Ints:
    return grid.distances()


@lru_cache(maxsize=4)
def _neighbours(grid: Grid) -> Ints:
    """Return the indices of the neighbours of each cell, (n, 8), filled up with -1."""
    table = np.full((grid.count, 8), -1)
    for cell in grid.cells():
        near = [grid.index(neighbour) for neighbour in grid.neighbours(cell)]
        table[grid.index(cell), : len(near)] = near
    return table


def _has(visited: Words, cell: Ints | int) -> npt.NDArray[np.bool_]:
    """Return whether sets (K, W) contain a cell, or each its own of cells (K,): (K,)."""
    if isinstance(cell, int):
        return np.asarray(visited[:, cell // 64] & (np.uint64(1) << np.uint64(cell % 64)) != 0)
    word = visited[np.arange(len(visited)), cell // 64]
    return np.asarray(word & (np.uint64(1) << (cell % 64).astype(np.uint64)) != 0)


def _pick(weights: Floats, rng: np.random.Generator) -> int:
    """Draw an index in proportion to weights."""
    return int(rng.choice(len(weights), p=weights / weights.sum()))
