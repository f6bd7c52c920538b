"""Scores as records: the JSON of the `evaluate` contract, and trajectories as JSON lines."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from airloc.agents.agent import Agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.controls import CONTROLS, Change, changed_goals
from airloc.evaluation.intervals import Bootstrap, Interval, discordant, paired_difference
from airloc.evaluation.metrics import Metric, blind_optimum, blind_optimum_is_exact, metrics
from airloc.rollout import GoalPictures, Trajectories, play
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


@dataclass(frozen=True, slots=True)
class Score:
    """How an agent did on a suite."""

    agent: str
    suite: Suite
    played: Trajectories
    metrics: Mapping[str, Metric]
    bootstrap: Bootstrap

    @classmethod
    def of(cls, agent: str, suite: Suite, played: Trajectories, sources: Sequence[str], seed: int = 0) -> "Score":
        """Score trajectories; `sources` names the tile of each area of the suite, which the bootstrap resamples."""
        clusters = [sources[area] for area in suite.area.tolist()]
        return cls(agent, suite, played, metrics(suite, played), Bootstrap(clusters, seed))

    def value(self, metric: str) -> float | None:
        """A metric over all episodes."""
        return self.metrics[metric].value()

    def interval(self, metric: str) -> Interval:
        """The 95 % interval of a metric."""
        return self.bootstrap.interval(self.metrics[metric])

    def by_distance(self) -> dict[int, tuple[float | None, Interval]]:
        """Success and its interval for every start-to-goal distance of the suite."""
        distance = self.suite.distance
        strata = {int(d): self.metrics["success"].where(distance == d) for d in np.unique(distance)}
        return {d: (metric.value(), self.bootstrap.interval(metric)) for d, metric in strata.items()}

    @property
    def runtime_ms(self) -> float:
        """Wall time of acting per episode."""
        return 1000 * self.played.seconds / len(self.suite)

    def record(self, *, timing: bool = True) -> dict[str, Any]:
        """The score as the record of the `evaluate` contract."""
        suite, strata = self.suite, self.by_distance()
        return {
            "agent": self.agent,
            "episodes": len(suite),
            "areas": len(np.unique(suite.area)),
            **{name: metric.value() for name, metric in self.metrics.items()},
            "runtime_ms": self.runtime_ms if timing else None,
            "success_by_distance": {str(distance): value for distance, (value, _) in strata.items()},
            "ci95": {name: list(self.interval(name)) for name in self.metrics},
            "success_by_distance_ci95": {str(distance): list(interval) for distance, (_, interval) in strata.items()},
            "blind_optimum": blind_optimum(suite),
            "blind_optimum_exact": blind_optimum_is_exact(suite),
            "clusters": self.bootstrap.clusters,
            "grid": str(suite.grid),
            "budget": suite.budget,
            "moves": suite.grid.moves,
            "suite": {"name": suite.name, "sha256": suite.digest},
        }


def compare(first: Score, second: Score) -> dict[str, Any]:
    """The record of a paired comparison: `first` minus `second` on the same episodes."""
    only_first, only_second = discordant(first.played.found, second.played.found)
    return {
        "agent": second.agent,
        "success": second.value("success"),
        "found_by_first_only": only_first,
        "found_by_second_only": only_second,
        "metrics": paired_difference(first.metrics, second.metrics, first.bootstrap),
    }


def to_json(record: Mapping[str, Any]) -> str:
    """Write a record so that equal records are equal bytes; NaN is refused."""
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def trajectory_lines(score: Score) -> str:
    """One JSON object a line and episode: area, start, goal, found, steps and the path."""
    suite, played = score.suite, score.played
    lines = []
    for number in range(len(suite)):
        steps = int(played.steps[number])
        line = {
            "area": suite.areas[suite.area[number]],
            "start": suite.start[number].tolist(),
            "goal": suite.goal[number].tolist(),
            "distance": int(suite.distance[number]),
            "found": bool(played.found[number]),
            "steps": steps,
            "path": played.path[number, : steps + 1].tolist(),
        }
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


# ---------- From an agent, areas and a suite to a score.
# ~


def evaluate(
    agent: Agent,
    areas: Sequence[SearchArea],
    suite: Suite,
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    control: str | None = None,
    change: Change | None = None,
    threshold: float = 0.5,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> Score:
    """Play a suite and score it.

    Args:
        agent: Who searches.
        areas: The areas, numbered as in the suite.
        suite: The episodes.
        goal_areas: Other pictures of the same ground to take the goals from, one for each area.
        control: Swap the goal's picture: a name in `CONTROLS`.
        change: Let the goals' pictures differ from what the flight sees.
        threshold: In a suite that ends by declaration, the probability from which on the goal is declared.
        seed: Decides every random choice, and the bootstrap.
        batch: Episodes in step.
        device: Where the areas are kept.
        on_batch: Called with the number of episodes just played.
    """
    cells = CellTable.of(areas, suite.grid, device)
    goal_cells = None if goal_areas is None else CellTable.of(goal_areas, suite.grid, device)
    env = BatchEnv(cells, suite.budget, goal_cells, by_declaration=suite.by_declaration)
    goals: GoalPictures | None = None
    if change is not None:
        goals = changed_goals(change, suite, goal_areas or areas, control=control, seed=seed, device=device)
    elif control is not None:
        goals = _control(control)(suite, goal_cells or cells, seed)
    played = play(agent, suite, env, seed=seed, batch=batch, goals=goals, threshold=threshold, on_batch=on_batch)
    return Score.of(agent.name, suite, played, [area.source for area in areas], seed)


def check_device(name: str) -> str:
    """Give the device's name back if this machine has it."""
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise AirlocError(f"Cannot use the device {name!r}: {reason}", "Use --device cpu") from None
    return name


def _control(name: str) -> Callable[..., GoalPictures]:
    if name not in CONTROLS:
        raise AirlocError(f"There is no control {name!r}", f"Use one of {', '.join(CONTROLS)}")
    return CONTROLS[name]
