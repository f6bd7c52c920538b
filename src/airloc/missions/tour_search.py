"""Large neighbourhood search that improves tours over a map of probabilities.

Each round removes a few strings of neighbouring cells from the tours, and inserts free cells nearby where they are
worth their way: slack induction by string removals (J. Christiaens and G. Vanden Berghe, Transportation Science 54,
2020). A change is kept if it gains, and with a falling probability if it loses. A length has a price in probability,
which rises while a tour is longer than its budget, so that probability and length are weighed against each other.

Lengths are Euclidean and in cells, from centre to centre.
"""

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airloc.grid import Cell

Floats = npt.NDArray[np.float64]

REACH = 2
"""A free cell is inserted next to a cell of a tour that is at most this many rows and columns away."""
ROUNDS_PER_CELL, MAX_ROUNDS = 16, 40_000
STRING = 14
"""Largest number of cells of a removed string."""
HOT, COLD = 0.3, 0.01
"""Temperature of the first and last round, in mean probabilities of a visited cell."""
SKIPPED = 0.02
"""Probability that a place for a cell is overlooked, so that a search does not repeat itself."""
PRICE_CHANGES, PRICE_STEP = 2000, 0.02
"""Number of times that prices change, and the largest relative change."""
END_SEEN, FAR_SEEN = 0.9, 0.91
"""Fraction of a cell that a drone films if it ends there, and if it comes from beyond `REACH`."""
NOTHING = -1


def improve_tours(
    mass: Floats, tours: Sequence[Sequence[Cell]], budgets: Sequence[float], *, filmed: bool, seed: int = 0
) -> list[list[Cell]]:
    """Return tours of about the same lengths as the budgets that collect more probability.

    Args:
        mass: Probability of each cell, (rows, cols).
        tours: Cells of each tour; the first one stays.
        budgets: Length of each tour, in cells. The result may be a few cells longer or shorter.
        filmed: The way is filmed, one cell wide, so that a turn misses the outer corner of its cell. Otherwise a photo
            shows each cell.
        seed: Random seed.
    """
    search = _Search(mass, tours, budgets, filmed, random.Random(seed))
    rounds = min(ROUNDS_PER_CELL * len(search.cells), MAX_ROUNDS)
    worth = search.worth()
    mean = worth / max(1, sum(map(len, tours)))
    for number in range(rounds if worth > 0 else 0):
        search.play(temperature=mean * HOT * (COLD / HOT) ** (number / rounds))
        if number % max(1, rounds // PRICE_CHANGES) == 0:
            search.adapt_prices()
    return search.graph.paths()


class _Graph:
    """Tours as linked lists over the cells of a padded grid, numbered row by row; `NOTHING` is before and after them.

    Plain lists: a round touches a few cells one by one, for which arrays are slow.
    """

    def __init__(self, mass: Floats, tours: Sequence[Sequence[Cell]], filmed: bool) -> None:
        padded = np.pad(mass, REACH + 1)
        self.cols = int(padded.shape[1])
        self.value: list[float] = padded.ravel().tolist()
        self.row, self.col = (axis.ravel().tolist() for axis in np.indices(padded.shape))
        self.starts = list(range(padded.size, padded.size + len(tours)))  # several tours may start in the same cell
        for path in tours:
            self.value.append(0.0)
            self.row.append(path[0][0] + REACH + 1)
            self.col.append(path[0][1] + REACH + 1)
        self.after, self.before, self.owner = ([NOTHING] * len(self.value) for _ in range(3))
        steps = [
            (row, col) for row in range(-REACH, REACH + 1) for col in range(-REACH, REACH + 1) if (row, col) != (0, 0)
        ]
        self.around = [row * self.cols + col for row, col in sorted(steps, key=lambda step: math.hypot(*step))]
        self._seen = {
            (before[0] * self.cols + before[1], after[0] * self.cols + after[1]): fraction
            for (before, after), fraction in (seen_fractions(steps) if filmed else {}).items()
        }
        self._filmed = filmed
        for number, path in enumerate(tours):
            at = self.starts[number]
            self.owner[at] = number
            for node in map(self._node, path[1:]):
                if self.owner[node] == NOTHING:
                    self.insert(node, at)
                    at = node

    def _node(self, cell: Cell) -> int:
        return (cell[0] + REACH + 1) * self.cols + cell[1] + REACH + 1

    def paths(self) -> list[list[Cell]]:
        """Return the cells of all tours in order."""
        paths = []
        for node in self.starts:
            path = list[Cell]()
            while node != NOTHING:
                path.append((self.row[node] - REACH - 1, self.col[node] - REACH - 1))
                node = self.after[node]
            paths.append(path)
        return paths

    def starts_near(self, node: int) -> list[int]:
        """Return the starts of tours within reach of a cell."""
        row, col = self.row[node], self.col[node]
        return [
            start
            for start in self.starts
            if abs(self.row[start] - row) <= REACH and abs(self.col[start] - col) <= REACH
        ]

    def away(self, a: int, b: int) -> float:
        """Return the distance of two cells; zero if one of them is `NOTHING`."""
        if a == NOTHING or b == NOTHING:
            return 0.0
        return math.hypot(self.row[a] - self.row[b], self.col[a] - self.col[b])

    def seen(self, before: int, node: int, after: int) -> float:
        """Return the fraction of a cell that is seen on the way from one cell to another."""
        if not self._filmed:
            return 1.0
        if before == NOTHING or after == NOTHING:
            return END_SEEN
        return self._seen.get((before - node, after - node), FAR_SEEN)

    def worth(self, node: int) -> float:
        """Return the probability that is seen in a cell of a tour; zero for starts and for `NOTHING`, the last one."""
        return self.value[node] and self.value[node] * self.seen(self.before[node], node, self.after[node])

    def remove(self, node: int) -> tuple[float, float]:
        """Remove a cell from its tour; return the changes of probability and length."""
        a, b = self.before[node], self.after[node]
        lost = self.worth(a) + self.worth(node) + self.worth(b)
        longer = self.away(a, b) - self.away(a, node) - self.away(node, b)
        self.after[a], self.owner[node] = b, NOTHING
        if b != NOTHING:
            self.before[b] = a
        return self.worth(a) + self.worth(b) - lost, longer

    def insert(self, node: int, a: int) -> tuple[float, float]:
        """Insert a cell after another one; return the changes of probability and length."""
        b = self.after[a]
        lost = self.worth(a) + self.worth(b)
        self.after[a], self.before[node], self.after[node], self.owner[node] = node, a, b, self.owner[a]
        if b != NOTHING:
            self.before[b] = node
        longer = self.away(a, node) + self.away(node, b) - self.away(a, b)
        return self.worth(a) + self.worth(node) + self.worth(b) - lost, longer

    def gain(self, node: int, a: int, price: float, least: float) -> float:
        """Return the gain of inserting a cell after another one, or `least` if it is not more than that."""
        b, value = self.after[a], self.value
        longer = self.away(a, node) + self.away(node, b) - self.away(a, b)
        if 1.1 * value[node] - price * longer <= least:  # neighbours gain little by a turn less
            return least
        before, beyond = self.before[a], NOTHING if b == NOTHING else self.after[b]
        seen = value[node] * self.seen(a, node, b) - price * longer
        seen += value[a] * (self.seen(before, a, node) - self.seen(before, a, b))
        if b != NOTHING:
            seen += value[b] * (self.seen(node, b, beyond) - self.seen(a, b, beyond))
        return max(seen, least)


class _Change(NamedTuple):
    """A cell that was inserted into or removed from a tour, after another one."""

    node: int
    at: int
    inserted: bool


class _Search:
    """The state of the search: tours, their lengths and prices."""

    def __init__(
        self,
        mass: Floats,
        tours: Sequence[Sequence[Cell]],
        budgets: Sequence[float],
        filmed: bool,
        rng: random.Random,
    ) -> None:
        self.graph, self._rng, self._budgets = _Graph(mass, tours, filmed), rng, [max(each, 1e-9) for each in budgets]
        self._fixed = set(self.graph.starts)
        self.cells = [node for node, value in enumerate(self.graph.value) if value > 0]
        self._lengths = [sum(math.dist(a, b) for a, b in pairwise(path)) for path in self.graph.paths()]
        self._prices = [self._first_price(mass)] * len(tours)
        self._changes = list[_Change]()

    def _first_price(self, mass: Floats) -> float:
        """Return what a cell of length is worth: as much as the least probable cell in reach of all budgets."""
        ranked = np.sort(mass[mass > 0])[::-1]
        if not len(ranked):
            return 0.0
        # More than half of what tours collect is too much for the last cell.
        rate = self.worth() / max(1.0, sum(self._lengths))
        return min(float(ranked[min(int(sum(self._budgets)), len(ranked) - 1)]), rate / 2)

    def worth(self) -> float:
        """Return the probability that the tours collect."""
        return sum(self.graph.worth(node) for node in self.cells if self.graph.owner[node] != NOTHING)

    def play(self, temperature: float) -> None:
        """Play one round: remove strings, insert cells, keep or undo the change."""
        graph, self._changes = self.graph, []
        longer, seed = [0.0] * len(self._prices), self._rng.choice(self.cells)
        nearby = [seed, *(seed + step for step in graph.around)]
        gained = self._ruin(nearby, longer)
        removed = [change.node for change in self._changes]
        free = [node for node in nearby if graph.owner[node] == NOTHING and graph.value[node] > 0]
        gained += self._recreate(list(dict.fromkeys([*removed, *free])), longer)
        gained -= sum(price * length for price, length in zip(self._prices, longer, strict=True))
        if gained >= 0 or self._rng.random() < math.exp(gained / temperature):
            self._lengths = [length + more for length, more in zip(self._lengths, longer, strict=True)]
        else:
            self._undo()

    def adapt_prices(self) -> None:
        """Raise the price of length for tours above their budgets, lower it below."""
        for number, (length, budget) in enumerate(zip(self._lengths, self._budgets, strict=True)):
            excess = max(-1.0, min(1.0, 20 * (length / budget - 1)))
            self._prices[number] *= math.exp(PRICE_STEP * excess)

    def _ruin(self, nearby: list[int], longer: list[float]) -> float:
        """Remove up to two strings of cells nearby; add to the lengths, and return the change of probability."""
        graph, rng = self.graph, self._rng
        visited = [node for node in nearby if graph.owner[node] != NOTHING]
        if not visited:
            return 0.0
        count, gained = 1 + int(rng.random() * STRING), 0.0
        back = int(rng.random() * count)
        for node in (visited[0], rng.choice(visited)):
            if graph.owner[node] == NOTHING:  # gone with the first string
                continue
            for _ in range(back):
                if graph.before[node] == NOTHING:
                    break
                node = graph.before[node]
            for _ in range(count):
                if node == NOTHING:
                    break
                onward = graph.after[node]
                if node not in self._fixed:
                    gained += self._apply(_Change(node, graph.before[node], inserted=False), longer)
                node = onward
        return gained

    def _recreate(self, free: list[int], longer: list[float]) -> float:
        """Insert free cells where they gain most; add to the lengths, and return the change of probability."""
        graph, gained, order = self.graph, 0.0, self._rng.random()
        if order < 0.4:
            free.sort(key=lambda node: -graph.value[node])
        elif order > 0.6:  # else as they were removed
            self._rng.shuffle(free)
        for _ in range(2):  # a cell that had no neighbour may have one now
            rest = []
            for node in free:
                at = self._best_place(node)
                if at == NOTHING:
                    rest.append(node)
                else:
                    gained += self._apply(_Change(node, at, inserted=True), longer)
            free = rest
        return gained

    def _best_place(self, node: int) -> int:
        """Return the cell of a tour after which a cell gains most; `NOTHING` if it does not gain anywhere."""
        graph, random_ = self.graph, self._rng.random
        best, place = 0.0, NOTHING
        for neighbour in (*graph.starts_near(node), *(node + step for step in graph.around)):
            owner = graph.owner[neighbour]
            if owner == NOTHING or random_() < SKIPPED:
                continue
            for at in (neighbour, graph.before[neighbour]):
                if at != NOTHING:
                    gain = graph.gain(node, at, self._prices[owner], best)
                    if gain > best:
                        best, place = gain, at
        return place

    def _apply(self, change: _Change, longer: list[float]) -> float:
        node, at, inserted = change
        owner = self.graph.owner[at]
        gained, length = self.graph.insert(node, at) if inserted else self.graph.remove(node)
        longer[owner] += length
        self._changes.append(change)
        return gained

    def _undo(self) -> None:
        for node, at, inserted in reversed(self._changes):
            if inserted:
                self.graph.remove(node)
            else:
                self.graph.insert(node, at)


def seen_fractions(steps: list[Cell], fine: int = 24) -> dict[tuple[Cell, Cell], float]:
    """Return the fraction of a cell that a film one cell wide shows, by the steps to the cells before and after it."""
    x, y = np.meshgrid(*[(np.arange(fine) + 0.5) / fine - 0.5] * 2, indexing="ij")

    def film(step: Cell) -> npt.NDArray[np.bool_]:
        length = math.hypot(*step)
        right, down = step[0] / length, step[1] / length
        along = np.clip(x * right + y * down, 0, length)
        return np.hypot(x - along * right, y - along * down) <= 0.5

    films = {step: film(step) for step in steps}
    return {(a, b): float((films[a] | films[b]).mean()) for a in steps for b in steps}
