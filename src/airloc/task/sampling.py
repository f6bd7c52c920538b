"""Samples episodes over areas and cuts their patches: what the NumPy environments and the game share."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from airloc.areas.area import Pixels, SearchArea, fit
from airloc.areas.dataset import Dataset
from airloc.areas.registry import load_dataset
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid, MoveCount
from airloc.task import priors
from airloc.task.anywhere import GoalsAnywhere
from airloc.task.cells import CellTable, cell_tables
from airloc.task.photos import FlightConditions, Role
from airloc.task.rules import check_budget, check_integer, inside

Ints = npt.NDArray[np.int64]

DEFAULT_AREAS = 64
"""Number of procedural areas of an environment without areas."""


Areas: TypeAlias = Sequence[SearchArea] | Dataset | str | Path | None
"""Areas of an environment: a list, a dataset, or the name or path of one. None: procedural areas."""


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeSampler:
    """Areas on a grid, and the distribution from which their episodes are sampled."""

    names: tuple[str, ...]
    images: tuple[Pixels, ...]
    grid: Grid
    budget: int
    cells: CellTable
    tables: Mapping[Role, Pixels]
    """Patches of glimpses and of goals in all variants, and a black one at the end, (V * A * n + 1, S, S, 3)."""
    prior: priors.Prior
    """Distribution of starts and goals."""
    pair_sampler: priors.PairSampler

    @classmethod
    def build(
        cls,
        areas: Areas,
        grid: Grid | str,
        budget: int | None,
        prior: str,
        distance: int | None,
        moves: MoveCount | None = None,
        flight: FlightConditions | None = None,
        goals: GoalsAnywhere | None = None,
    ) -> "EpisodeSampler":
        """Fit areas (by default procedural ones) to a grid and prepare the sampling of episodes.

        Raises:
            AirlocError: If an argument is invalid; the message names it.
        """
        grid = _grid(grid, moves)
        pairs = _prior(prior, distance, grid)
        budget = check_budget(grid.default_budget if budget is None else budget)
        if not isinstance(flight, FlightConditions | None):
            problem = f"The argument flight = {flight!r} is not valid"
            raise AirlocError(problem, "Use flight=FlightConditions(), or None for exact cells")
        if not isinstance(goals, GoalsAnywhere | None):
            problem = f"The argument goals = {goals!r} is not valid"
            raise AirlocError(problem, "Use goals=GoalsAnywhere(), or None for goals that are cells")
        fitted = [fit(area, grid) for area in _read_areas(areas, grid)]
        cells, goal_cells = cell_tables(fitted, grid, flight=flight, goals=goals)
        return cls(
            names=tuple(area.name for area in fitted),
            images=tuple(area.image for area in fitted),
            grid=grid,
            budget=budget,
            cells=cells,
            tables={"glimpse": cells.array, "goal": goal_cells.array},
            prior=pairs,
            pair_sampler=priors.PairSampler(pairs, grid),
        )

    def patches(self, area: Ints, position: Ints, variant: Ints | int = 0, role: Role = "glimpse") -> Pixels:
        """Return the patches at positions (..., 2) of areas (...): (..., S, S, 3), black outside."""
        return np.asarray(self.tables[role][self.cells.rows(area + variant * len(self.names), position)])

    def sample_variants(self, rng: np.random.Generator, count: int) -> Ints:
        """Sample variants of the photos (count,). A single variant needs no random number."""
        variants = self.cells.areas // len(self.names)
        return np.zeros(count, dtype=np.int64) if variants == 1 else rng.integers(variants, size=count)

    def image(self, area: int) -> Pixels:
        """Return the whole image of an area."""
        return self.images[area]

    def sample(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints, Ints]:
        """Sample areas (count,), starts (count, 2) and goals (count, 2)."""
        area = rng.integers(len(self.names), size=count)
        return area, *self.pair_sampler.sample(rng, count)

    def check_episodes(self, count: int, area: Any, start: Any, goal: Any) -> tuple[Ints, Ints, Ints]:
        """Return episodes as arrays: indices of areas (count,), starts (count, 2) and goals (count, 2).

        Raises:
            AirlocError: If an episode is invalid, or there is another number of them.
        """
        shapes = (count,), (count, 2), (count, 2)
        try:
            areas, starts, goals = (
                np.broadcast_to(np.asarray(part, dtype=np.int64), shape)
                for part, shape in zip((area, start, goal), shapes, strict=True)
            )
        except (TypeError, ValueError) as error:
            raise AirlocError(
                f"The reset options do not fit {count} environments: {error}",
                "Use an area, a start and a goal for each environment, or one of each for all",
            ) from error
        good = (areas >= 0) & (areas < len(self.names)) & inside(starts, self.grid) & inside(goals, self.grid)
        valid = good & (starts != goals).any(axis=-1)
        if not valid.all():
            raise AirlocError(
                f"{np.size(valid) - int(valid.sum())} of {np.size(valid)} episodes are invalid",
                f"Use areas 0 to {len(self.names) - 1}, and starts and different goals inside the {self.grid} grid",
            )
        return areas, starts, goals

    def sample_one(self, rng: np.random.Generator, options: dict[str, Any]) -> tuple[int, Ints, Ints]:
        """Sample one episode; `options` may fix area, start, goal and distance."""
        unknown = options.keys() - {"area", "start", "goal", "distance"}
        if unknown:
            raise AirlocError(
                f"Unknown reset options: {', '.join(sorted(unknown))}", "Use area, start, goal and distance only"
            )
        area = int(rng.integers(len(self.names)))
        if "area" in options:
            area = self._area_number(options["area"])
        pair_sampler = self.pair_sampler
        if options.keys() & {"start", "goal", "distance"}:
            pair_sampler = priors.PairSampler(self._conditional_prior(options), self.grid)
        (start,), (goal,) = pair_sampler.sample(rng, 1)
        return area, start, goal

    def _conditional_prior(self, options: dict[str, Any]) -> priors.Prior:
        """Return the prior given a start, a goal or a distance. Two fixed cells ignore the prior."""
        start, goal, distance = (options.get(what) for what in ("start", "goal", "distance"))
        prior = self.prior if distance is None else _prior("", distance, self.grid)
        if start is not None and goal is not None:
            prior = priors.uniform(self.grid)
        chosen = np.ones_like(prior)
        if start is not None:
            chosen *= self._is_cell(start)[:, None]
        if goal is not None:
            chosen *= self._is_cell(goal)[None, :]
        if not (prior * chosen).any():
            raise AirlocError(
                f"No episode has the start {start}, the goal {goal} and the distance {distance}",
                "Use a different start and goal, and a distance that they allow",
            )
        return prior * chosen

    def _area_number(self, area: int | str) -> int:
        if isinstance(area, str):
            if area in self.names:
                return self.names.index(area)
        elif 0 <= check_integer("area", area) < len(self.names):
            return area
        raise AirlocError(f"There is no area {area!r}", f"Use a name or a number from 0 to {len(self.names) - 1}")

    def _is_cell(self, cell: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return the mask of one cell, (count,)."""
        try:
            row, col = map(operator.index, cell)
        except (TypeError, ValueError) as error:
            raise AirlocError(f"{cell!r} is not a cell", "Use its row and column, as in (0, 3)") from error
        if not self.grid.contains((row, col)):
            raise AirlocError(f"The cell {(row, col)} is outside the {self.grid} grid", "Use a cell inside")
        return np.asarray(np.arange(self.grid.count) == self.grid.index((row, col)))


def _grid(grid: Grid | str, moves: MoveCount | None) -> Grid:
    """Return the grid of an environment."""
    if not isinstance(grid, Grid | str):
        raise AirlocError(f"The argument grid = {grid!r} is not a grid", 'Use a Grid, or text such as "5x5"')
    parsed = Grid.parse(grid) if isinstance(grid, str) else grid
    return parsed if moves is None else replace(parsed, moves=moves)


def _read_areas(areas: Areas, grid: Grid) -> Sequence[SearchArea]:
    """Return the areas that the argument `areas` of an environment stands for."""
    if areas is None:
        return _procedural_areas(grid)
    source = load_dataset(areas) if isinstance(areas, str | Path) else areas
    if isinstance(source, Dataset):
        return list(source.areas(grid))
    listed = list(source) if isinstance(source, Iterable) else [source]
    if wrong := [type(each).__name__ for each in listed if not isinstance(each, SearchArea)]:
        raise AirlocError(
            f"The argument areas holds {wrong[0]}, not search areas",
            "Use a list of SearchArea, a dataset of load_dataset, or the name or path of one",
        )
    return listed


@lru_cache(maxsize=4)
def _procedural_areas(grid: Grid) -> tuple[SearchArea, ...]:
    """Return the procedural areas of an environment without areas; they are made once."""
    return tuple(Synthetic(count=DEFAULT_AREAS).areas(grid))


def _prior(name: str, distance: int | None, grid: Grid) -> priors.Prior:
    if distance is not None:
        return priors.at_distance(grid, check_integer("distance", distance))
    if name not in priors.PRIORS:
        raise AirlocError(f"There is no prior {name!r}", f"Use one of {', '.join(priors.PRIORS)}")
    return priors.PRIORS[name](grid)
