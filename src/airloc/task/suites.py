"""Suites: named, versioned, hashed lists of episodes, generated from a seed or read from an episode file.

An episode is an area (an index into `Suite.areas`), a start, a goal and the budget of the suite. An episode file is a
CSV file with the header `area,start_row,start_col,goal_row,goal_col`; `area` is a file name in the folder of areas.

Legend: E episodes.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from airloc.errors import AirlocError, suggest
from airloc.grid import Cell, Grid
from airloc.seeding import stream
from airloc.task import priors
from airloc.task.motion import STILL, Motion, sample_walks
from airloc.task.rules import check_budget, check_integer

VERSION = 1
"""Part of every digest; raised when the same seed generates other episodes."""

HEADER = ("area", "start_row", "start_col", "goal_row", "goal_col")

MAX_DRONES = 16

Ints = npt.NDArray[np.int64]
Launch = Literal["apart", "together"]


@dataclass(frozen=True, slots=True, eq=False)
class Suite:
    """A list of episodes over named areas, with one grid and one budget."""

    name: str
    """Name of the suite: its kind, or its episode file."""
    grid: Grid
    budget: int
    areas: tuple[str, ...]
    """Names of the areas that the episodes refer to."""
    area: Ints
    """Index of the area of each episode, (E,)."""
    start: Ints
    """Start cells, (E, 2)."""
    goal: Ints
    """Goal cells, (E, 2)."""
    prior: priors.Prior | None = None
    """Distribution that the episodes were sampled from; None for an episode file."""
    weight: npt.NDArray[np.float64] = field(default_factory=lambda: np.ones(0))
    """Weight of each episode, (E,). Default: ones."""
    by_declaration: bool = False
    """True if episodes end by a declaration of the agent instead of by reaching the goal."""
    drones: int = 1
    """Number of drones. Each makes as many moves as the budget; the episode ends when one of them reaches the goal."""
    launch: Launch = "apart"
    """Where the drones start: `apart` in different random cells, `together` all in the start."""
    motion: Motion = STILL
    """How the goal moves. Its cell in the suite is the first one, which the goal patch shows."""

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if not 1 <= self.drones <= min(MAX_DRONES, self.grid.count - 1):
            most = min(MAX_DRONES, self.grid.count - 1)
            raise AirlocError(f"A team cannot have {self.drones} drones on {self.grid} cells", f"Use 1 to {most}")
        if self.is_variant and self.grid.moves == 4:
            raise AirlocError("Several drones and moving goals need eight moves", "Leave out --moves 4")
        if len(self.weight) == 0:
            object.__setattr__(self, "weight", np.ones(len(self)))

    def __len__(self) -> int:
        return len(self.area)

    @property
    def distance(self) -> Ints:
        """Distances from start to goal, which are the minimum numbers of moves, (E,)."""
        return self.grid.moves_between(self.start, self.goal)

    @property
    def digest(self) -> str:
        """SHA-256 of the episodes, weights, grid, budget and variant."""
        head = f"airloc suite {VERSION}\n{self.grid}\n{self.grid.cell} {self.grid.gap}\n{self.budget}\n"
        head += "" if self.grid.moves == 8 else f"{self.grid.moves} moves\n"
        head += "by declaration\n" if self.by_declaration else ""
        head += f"{self.drones} drones {self.launch}\n" if self.drones > 1 else ""
        head += f"{self.motion}\n" if self.motion else ""
        weights = np.asarray(self.weight / self.weight.sum(), dtype="<f8").tobytes()
        return hashlib.sha256(head.encode() + self.to_bytes() + weights).hexdigest()

    @property
    def is_variant(self) -> bool:
        """True if there are several drones or the goal moves."""
        return self.drones > 1 or bool(self.motion)

    def for_areas(self, areas: Sequence[str]) -> "Suite":
        """Return the episodes over these areas, with areas indexed in this order."""
        number = {name: index for index, name in enumerate(areas)}
        kept = np.array([self.areas[area] in number for area in self.area.tolist()], dtype=np.bool_)
        area = np.array([number[self.areas[area]] for area in self.area[kept].tolist()], dtype=np.int64)
        start, goal, weight = self.start[kept], self.goal[kept], self.weight[kept]
        return replace(self, areas=tuple(areas), area=area, start=start, goal=goal, weight=weight)

    def check_areas(self, names: Sequence[str]) -> None:
        """Raise an error unless areas with these names are the areas of the suite, in its order."""
        if tuple(names) != self.areas:
            raise AirlocError(
                f"The {len(names)} areas are not the {len(self.areas)} areas of the suite, in its order",
                "Use suite.for_areas([area.name for area in areas])",
            )

    def subset(self, numbers: Sequence[int]) -> "Suite":
        """Return the episodes with these indices, over the same areas."""
        kept = np.array(numbers, dtype=np.int64)
        area, start, goal = self.area[kept], self.start[kept], self.goal[kept]
        return replace(self, area=area, start=start, goal=goal, weight=self.weight[kept])

    def to_bytes(self) -> bytes:
        """Return the content of an episode file. File names that are not UTF-8 keep their bytes."""
        return self.csv().encode("utf-8", "surrogateescape")

    def csv(self) -> str:
        """Return the text of an episode file."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(HEADER)
        for area, start, goal in zip(self.area.tolist(), self.start.tolist(), self.goal.tolist(), strict=True):
            rows.writerow([self.areas[area], *start, *goal])
        return out.getvalue()


def per_distance(
    areas: Sequence[str], grid: Grid, *, per_area: int = 1, seed: int = 0, budget: int | None = None
) -> Suite:
    """Sample episodes for each distance and area, as `priors.per_distance` defines."""
    rng = stream(seed, "suite", "per-distance", str(grid))
    distances = grid.distances()
    starts, goals = [], []
    for wanted in range(1, grid.max_distance + 1):
        at = distances == wanted
        chosen = rng.choice(np.flatnonzero(at.any(axis=1)), size=_episodes(areas, per_area))
        starts.append(chosen)
        goals.append(_uniform_in_rows(at[chosen], rng))
    area = np.repeat(np.arange(len(areas)), per_area * grid.max_distance)
    start, goal = np.stack(starts, axis=1).ravel(), np.stack(goals, axis=1).ravel()
    return _suite("per-distance", areas, grid, budget, area, start, goal, priors.per_distance(grid))


def far_pairs(
    areas: Sequence[str], grid: Grid, *, per_area: int = 5, seed: int = 0, budget: int | None = None
) -> Suite:
    """Sample episodes for each far distance and area, with the pair uniform over those at the distance.

    On a 5 x 5 grid with four moves, this is the protocol of the paper's successors: Manhattan distance 4 to 8.
    """
    rng = stream(seed, "suite", "far-pairs", str(grid), grid.moves)
    table = grid.distances()
    pairs = [np.argwhere(table == wanted) for wanted in priors.far_distances(grid)]
    drawn = [at[rng.integers(len(at), size=_episodes(areas, per_area))] for at in pairs]
    start, goal = np.stack(drawn, axis=1).reshape(-1, 2).T
    area = np.repeat(np.arange(len(areas)), per_area * len(pairs))
    return _suite("far-pairs", areas, grid, budget, area, start, goal, priors.far_pairs(grid))


def uniform(areas: Sequence[str], grid: Grid, *, per_area: int = 4, seed: int = 0, budget: int | None = None) -> Suite:
    """Sample episodes uniformly over all pairs of different cells."""
    rng = stream(seed, "suite", "uniform", str(grid))
    start = rng.integers(grid.count, size=_episodes(areas, per_area))
    goal = (start + rng.integers(1, grid.count, size=len(start))) % grid.count
    area = np.repeat(np.arange(len(areas)), per_area)
    return _suite("uniform", areas, grid, budget, area, start, goal, priors.uniform(grid))


def all_pairs(areas: Sequence[str], grid: Grid, *, budget: int | None = None, equal_distances: bool = False) -> Suite:
    """List all pairs of start and goal of every area.

    With `equal_distances`, the weights are the probabilities of `per_distance`, so that a score on this suite is the
    expectation of the score on that one, without sampling noise.
    """
    start, goal = (index.ravel() for index in np.nonzero(~np.eye(grid.count, dtype=bool)))
    prior = priors.per_distance(grid) if equal_distances else priors.uniform(grid)
    area = np.repeat(np.arange(len(areas)), len(start))
    suite = _suite("all-pairs", areas, grid, budget, area, np.tile(start, len(areas)), np.tile(goal, len(areas)), prior)
    if not equal_distances:
        return suite
    return replace(suite, weight=np.tile(prior[start, goal] * len(start), len(areas)))


GENERATED = ("per-distance", "all-pairs", "uniform", "far-pairs")
"""Kinds of suites that are generated from areas."""


def generate(
    kind: str,
    areas: Sequence[str],
    grid: Grid,
    *,
    per_area: int | None = None,
    equal_distances: bool = False,
    seed: int = 0,
    budget: int | None = None,
) -> Suite:
    """Generate a suite of a kind in `GENERATED`.

    `per_area` is the number of episodes per area, or per area and distance; by default that of the kind.
    `equal_distances` weights `all-pairs` so that every distance counts the same.
    """
    if kind == "all-pairs":
        return all_pairs(areas, grid, budget=budget, equal_distances=equal_distances)
    draw = {"per-distance": per_distance, "uniform": uniform, "far-pairs": far_pairs}.get(kind)
    if draw is None:
        raise AirlocError(f"There is no kind of suites {kind!r}", suggest(kind, GENERATED, "Kinds"))
    return draw(areas, grid, seed=seed, budget=budget, **({} if per_area is None else {"per_area": per_area}))


def end_by_declaration(suite: Suite) -> Suite:
    """Return the same episodes in the variant that ends by declaration, with another name and digest."""
    return replace(suite, name=f"{suite.name}, declared", by_declaration=True)


def with_drones(suite: Suite, drones: int, launch: Launch = "apart", moving: float = 0.0) -> Suite:
    """Return the same episodes in the variant with several drones, or with a goal that walks at a speed."""
    if drones == 1 and not moving:
        return suite
    return replace(suite, drones=drones, launch=launch, motion=Motion(moving))


def launch_cells(suite: Suite) -> Ints:
    """Return the first cells of all drones, (E, K, 2): the start, and those of the others by `Suite.launch`.

    Drones that start apart start in different random cells that are not the goal.
    """
    if suite.drones == 1 or suite.launch == "together":
        return np.repeat(suite.start[:, None], suite.drones, axis=1)
    order = stream(0, "launch", suite.digest).random((len(suite), suite.grid.count))
    every = np.arange(len(suite))
    for cells in (suite.start, suite.goal):
        order[every, cells[:, 0] * suite.grid.cols + cells[:, 1]] = 2.0  # after all others
    others = np.argsort(order, axis=1)[:, : suite.drones - 1]
    return np.concatenate([suite.start[:, None], np.stack(np.divmod(others, suite.grid.cols), axis=-1)], axis=1)


def goal_walks(suite: Suite) -> Ints:
    """Return the cell of the goal before the first and after every round, (E, T + 1, 2)."""
    rng = stream(0, "walk", suite.digest)
    return sample_walks(rng, suite.motion, suite.grid.shape, suite.goal, suite.budget)


def _uniform_in_rows(allowed: npt.NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """Sample one allowed column in each row, uniformly."""
    nth = rng.integers(allowed.sum(axis=1))
    drawn: Ints = (np.cumsum(allowed, axis=1) > nth[:, None]).argmax(axis=1)
    return drawn


def _episodes(areas: Sequence[str], per_area: int) -> int:
    """Return the number of episodes, or raise an error if an area has none."""
    if check_integer("per_area", per_area) < 1:
        raise AirlocError(f"An area cannot have {per_area} episodes", "Use 1 or more")
    return len(areas) * per_area


def _suite(
    name: str,
    areas: Sequence[str],
    grid: Grid,
    budget: int | None,
    area: Ints,
    start: Ints,
    goal: Ints,
    prior: priors.Prior,
) -> Suite:
    """Build a suite from row-major indices of cells."""
    if not areas:
        raise AirlocError("A suite needs areas, and there are none", "Use at least one area")
    cells = np.array(list(grid.cells()), dtype=np.int64)
    budget = grid.default_budget if budget is None else budget
    return Suite(name, grid, budget, tuple(areas), area, cells[start], cells[goal], prior)


def read_suite(path: Path, grid: Grid, *, budget: int | None = None) -> Suite:
    """Read an episode file. The areas of the suite have the order of their first appearance.

    Raises:
        AirlocError: If the file is broken; the message names the file and the line.
    """
    rows = [_read_row(row, line, path, grid) for line, row in _read_lines(path)]
    if not rows:
        raise AirlocError(f"The episode file {path} has no episodes", "Add at least one row below the header")
    numbers: dict[str, int] = {}
    area = [numbers.setdefault(name, len(numbers)) for name, _, _ in rows]
    return Suite(
        name=path.name,
        grid=grid,
        budget=grid.default_budget if budget is None else budget,
        areas=tuple(numbers),
        area=np.array(area, dtype=np.int64),
        start=np.array([start for _, start, _ in rows], dtype=np.int64),
        goal=np.array([goal for _, _, goal in rows], dtype=np.int64),
    )


def read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file with their line numbers, without empty lines."""
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file, strict=True)
        return [(reader.line_num, row) for row in reader if row]


def _read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows below the header of an episode file with their line numbers."""
    try:
        rows = read_csv(path)
    except FileNotFoundError:
        raise AirlocError(f"There is no episode file {path}", "Check the path") from None
    except (OSError, ValueError, csv.Error) as error:
        raise AirlocError(f"Cannot read the episode file {path}: {error}", "Use a CSV file in UTF-8") from error
    if not rows or tuple(name.strip() for name in rows[0][1]) != HEADER:
        raise AirlocError(f"The episode file {path} has no header", f"Make its first line {','.join(HEADER)}")
    return rows[1:]


def _read_row(row: list[str], line: int, path: Path, grid: Grid) -> tuple[str, Cell, Cell]:
    """Parse one episode and check it against the grid."""
    where = f"line {line} of the episode file {path}"
    try:
        name, (start_row, start_col, goal_row, goal_col) = row[0], (int(text) for text in row[1:])
    except ValueError:
        raise AirlocError(
            f"Cannot read {where}: {','.join(row)[:80]!r} is not an area and four integers",
            f"Write it as {','.join(HEADER)}",
        ) from None
    start, goal = (start_row, start_col), (goal_row, goal_col)
    for what, cell in (("start", start), ("goal", goal)):
        if not grid.contains(cell):
            raise AirlocError(
                f"The {what} {cell} in {where} is outside the {grid} grid",
                f"Use rows 0 to {grid.rows - 1} and columns 0 to {grid.cols - 1}, or another --grid",
            )
    if start == goal:
        raise AirlocError(f"Start and goal are both {start} in {where}", "Use different cells")
    return name, start, goal
