"""Scores of agents on suites, and their JSON records."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloc.agents.agent import Agent
from airloc.agents.matching import MatchingAgent, with_match
from airloc.agents.sighting import MAX_BATCH, SightingMatcher, match_any_heading
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.controls import CONTROLS, GoalChange, changed_goals, check_flight, goal_centres
from airloc.evaluation.metrics import (
    RESAMPLES,
    Bootstrap,
    Interval,
    Metric,
    blind_optimum,
    blind_optimum_is_exact,
    discordant,
    metrics,
    paired_difference,
)
from airloc.evaluation.texts import DescribedGoals, check_reader, fitting_metric
from airloc.evaluation.variants import play_variant
from airloc.rollout import GoalPatches, Recorder, RolloutLog, check_play, rollout
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.photos import FlightConditions
from airloc.task.suites import Suite


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of an agent on a suite."""

    log: RolloutLog
    metrics: Mapping[str, Metric]
    bootstrap: Bootstrap

    @classmethod
    def of(
        cls, log: RolloutLog, areas: Sequence[SearchArea], seed: int = 0, described: DescribedGoals | None = None
    ) -> "Score":
        """Score a rollout over these areas; the bootstrap resamples their source tiles."""
        fitting = {} if described is None else fitting_metric(log, described.texts)
        return cls(log, {**metrics(log), **fitting}, Bootstrap.over(log.suite, areas, seed))

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self.log.agent

    @property
    def suite(self) -> Suite:
        """The episodes."""
        return self.log.suite

    def value(self, metric: str) -> float | None:
        """Return a metric over all episodes."""
        return self.metrics[metric].value()

    def interval(self, metric: str) -> Interval:
        """Return the 95 % interval of a metric."""
        return self.bootstrap.interval(self.metrics[metric])

    def by_distance(self) -> dict[int, tuple[float | None, Interval]]:
        """Return success and its interval for every distance from start to goal."""
        distance = self.suite.distance
        strata = {int(d): self.metrics["success"].where(distance == d) for d in np.unique(distance)}
        return {d: (metric.value(), self.bootstrap.interval(metric)) for d, metric in strata.items()}

    @property
    def runtime_ms(self) -> float:
        """Wall time in the agent per episode, in milliseconds."""
        return 1000 * self.log.seconds / len(self.suite)

    def record(self, *, timing: bool = True) -> dict[str, Any]:
        """Return the JSON values that `airloc evaluate` writes; without timing, `runtime_ms` is None."""
        suite = self.suite
        return {
            "agent": self.agent,
            "episodes": len(suite),
            "areas": len(np.unique(suite.area)),
            **self.agent_record(timing=timing),
            "blind_optimum": blind_optimum(suite),
            "blind_optimum_exact": blind_optimum_is_exact(suite),
            "clusters": self.bootstrap.clusters,
            "resamples": RESAMPLES,
            "grid": str(suite.grid),
            "budget": suite.budget,
            "moves": suite.grid.moves,
            "drones": suite.drones,
            "moving": suite.motion.speed,
            "suite": {"name": suite.name, "sha256": suite.digest},
        }

    def agent_record(self, *, timing: bool = True) -> dict[str, Any]:
        """Return the JSON values that differ between agents on the same episodes."""
        strata = self.by_distance()
        return {
            "agent": self.agent,
            **{name: metric.value() for name, metric in self.metrics.items()},
            "runtime_ms": self.runtime_ms if timing else None,
            "success_by_distance": {str(distance): value for distance, (value, _) in strata.items()},
            "ci95": {name: list(self.interval(name)) for name in self.metrics},
            "success_by_distance_ci95": {str(distance): list(interval) for distance, (_, interval) in strata.items()},
        }


def evaluate(
    agent: Agent,
    suite: Suite,
    areas: Sequence[SearchArea],
    *,
    goal_areas: Sequence[SearchArea] | None = None,
    control: str | None = None,
    change: GoalChange | None = None,
    described: DescribedGoals | None = None,
    flight: FlightConditions | None = None,
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
        described: Describe the goals in words.
        flight: Glimpses and goals are photos, each with its own errors. Cannot be combined with a change.
        threshold: Match probability from which on the agent declares the goal, in a suite that ends by declaration.
        record: Quantities to record; they are in `score.log.recorded`.
        seed: Random seed for the agent's noise, controls, changes and the bootstrap.
        batch: Number of episodes played in parallel.
        device: Device for the areas.
        on_batch: Called with the number of episodes after every batch.

    Raises:
        AirlocError: If the arguments do not fit each other, or as for `rollout`.
    """
    check_play(suite, batch, device)
    suite.check_areas([area.name for area in areas])
    if flight is not None:
        check_flight(change)
        areas, goal_areas = flight.apply(areas, goal_areas, suite.grid)
    goal_patches: GoalPatches | None = None
    if change is not None:
        goal_patches = changed_goals(change, suite, goal_areas or areas, control=control, seed=seed, device=device)
    elif control is not None:
        goal_patches = _control(control)(suite, CellTable.from_areas(goal_areas or areas, suite.grid, device), seed)
    words: dict[str, Any] = {}
    if described is not None:
        check_reader(agent)
        words = described.inputs(suite, seed)
        goal_patches = words.pop("goal_patches", goal_patches)
    if suite.is_variant:
        env = BatchEnv.from_areas(areas, suite.grid, suite.budget, goal_areas=goal_areas, device=device)
        played = play_variant(agent, suite, env, goal_patches=goal_patches, seed=seed, batch=batch, on_batch=on_batch)
        return Score.of(played, areas, seed)
    matcher = _matcher(suite, change)
    log = rollout(
        agent,
        suite,
        areas,
        record=record,
        goal_areas=goal_areas,
        goal_patches=goal_patches,
        **words,
        matcher=matcher,
        goal_centres=None if change is None or matcher is with_match else goal_centres(change, suite, seed=seed),
        threshold=threshold,
        seed=seed,
        batch=min(batch, MAX_BATCH) if matcher is match_any_heading else batch,
        device=device,
        on_batch=on_batch,
    )
    return Score.of(log, areas, seed, described)


def _matcher(suite: Suite, change: GoalChange | None) -> Callable[[Agent], MatchingAgent]:
    """Return what lets agents declare goals: the judge of the field if goals lie anywhere."""
    if change is None or not suite.by_declaration:
        return with_match
    return {"anywhere": SightingMatcher, "any-heading": match_any_heading}.get(change.name, with_match)


def compare(first: Score, second: Score, *, timing: bool = True) -> dict[str, Any]:
    """Return the JSON values of a paired comparison on the same episodes.

    The metrics and intervals are those of `second`. The entries of `metrics` are the differences, `first` minus
    `second`.
    """
    only_first, only_second = discordant(first.log.found, second.log.found)
    return {
        **second.agent_record(timing=timing),
        "found_by_first_only": only_first,
        "found_by_second_only": only_second,
        "metrics": paired_difference(first.metrics, second.metrics, first.bootstrap),
    }


def images_digest(areas: Sequence[SearchArea]) -> str:
    """Return the SHA-256 of the names and the pixels of areas, in their order."""
    digest = hashlib.sha256()
    for area in areas:
        digest.update(f"{area.name}\0{area.image.shape}\0".encode("utf-8", "surrogateescape"))
        digest.update(np.ascontiguousarray(area.image).data)
    return digest.hexdigest()


def to_json(record: Mapping[str, Any]) -> str:
    """Return a record as JSON text. NaN is an error."""
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def trajectory_lines(score: Score) -> str:
    """Return one line of JSON per episode: area, start, goal, distance, found, steps and path."""
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
        if log.team is not None and log.last_goal is not None:
            line |= {"team": log.team[number, :, : steps + 1].tolist(), "last_goal": log.last_goal[number].tolist()}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def _control(name: str) -> Callable[..., GoalPatches]:
    if name not in CONTROLS:
        raise AirlocError(f"There is no control {name!r}", f"Use one of {', '.join(CONTROLS)}")
    return CONTROLS[name]
