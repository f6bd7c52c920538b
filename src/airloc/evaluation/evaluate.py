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
from airloc.evaluation.controls import CONTROLS, GoalChange, changed_goals
from airloc.evaluation.intervals import Bootstrap, Interval, discordant, paired_difference
from airloc.evaluation.metrics import Metric, blind_optimum, blind_optimum_is_exact, metrics
from airloc.rollout import GoalPatches, Recorder, RolloutLog, rollout
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of an agent on a suite."""

    log: RolloutLog
    metrics: Mapping[str, Metric]
    bootstrap: Bootstrap

    @classmethod
    def of(cls, log: RolloutLog, areas: Sequence[SearchArea], seed: int = 0) -> "Score":
        """Score a rollout over these areas; the bootstrap resamples their source tiles."""
        return cls(log, metrics(log), Bootstrap.over(log.suite, areas, seed))

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self.log.agent

    @property
    def suite(self) -> Suite:
        """The episodes."""
        return self.log.suite

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
        return 1000 * self.log.seconds / len(self.suite)

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
    only_first, only_second = discordant(first.log.found, second.log.found)
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
    suite, log = score.suite, score.log
    lines = []
    for number in range(len(suite)):
        steps = int(log.steps[number])
        line = {
            "area": suite.areas[suite.area[number]],
            "start": suite.start[number].tolist(),
            "goal": suite.goal[number].tolist(),
            "distance": int(suite.distance[number]),
            "found": bool(log.found[number]),
            "steps": steps,
            "path": log.path[number, : steps + 1].tolist(),
        }
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


# ---------- From an agent, areas and a suite to a score.
# ~


def evaluate(
    agent: Agent,
    suite: Suite,
    areas: Sequence[SearchArea],
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    control: str | None = None,
    change: GoalChange | None = None,
    threshold: float = 0.5,
    record: Sequence[Recorder] = (),
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> Score:
    """Play a suite and score it.

    Args:
        agent: The agent.
        suite: The episodes.
        areas: The areas in the order of the suite.
        goal_areas: Other images of the same places to cut the goal patches from, one per area.
        control: Replace the goal patches: a name in `CONTROLS`.
        change: Alter the goal patches.
        threshold: Match probability from which on the agent declares the goal, in a suite that ends by declaration.
        record: Quantities to record; they are in `score.log.recorded`.
        seed: Random seed for the agent's noise, controls, changes and the bootstrap.
        batch: Number of episodes played in parallel.
        device: Device for the areas.
        on_batch: Called with the number of episodes after every batch.
    """
    goal_patches: GoalPatches | None = None
    if change is not None:
        goal_patches = changed_goals(change, suite, goal_areas or areas, control=control, seed=seed, device=device)
    elif control is not None:
        goal_patches = _control(control)(suite, CellTable.of(goal_areas or areas, suite.grid, device), seed)
    log = rollout(
        agent,
        suite,
        areas,
        record=record,
        goal_areas=goal_areas,
        goal_patches=goal_patches,
        threshold=threshold,
        seed=seed,
        batch=batch,
        device=device,
        on_batch=on_batch,
    )
    return Score.of(log, areas, seed)


def check_device(name: str) -> str:
    """Give the device's name back if this machine has it."""
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise AirlocError(f"Cannot use the device {name!r}: {reason}", "Use --device cpu") from None
    return name


def _control(name: str) -> Callable[..., GoalPatches]:
    if name not in CONTROLS:
        raise AirlocError(f"There is no control {name!r}", f"Use one of {', '.join(CONTROLS)}")
    return CONTROLS[name]
