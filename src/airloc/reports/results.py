"""The result of an evaluation: one agent on one suite.

A result is a folder with two files. All tables and figures are made from them.

    score.json      record      the metrics in the JSON of `airloc evaluate`; null if the agent cannot play the suite
                    declined    why the agent cannot play; null otherwise
                    seed        seed of the episodes, the agent and the bootstrap
                    agreement   agreement with the exploitation prior by distance, where it was recorded
                    calibration calibration of the belief, where it was recorded
    episodes.npz    one row per episode, in the order of the suite; see `Episodes`

Legend: E episodes, A areas, T budget.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloc.areas.area import SearchArea
from airloc.evaluation.benchmarks.paper import Setup
from airloc.evaluation.metrics import Bootstrap, Interval, Metric
from airloc.evaluation.scores import Score, to_json
from airloc.files import write_atomically

SCORE, EPISODES = "score.json", "episodes.npz"


@dataclass(frozen=True, eq=False)
class Episodes:
    """The episodes of a suite as an agent played them."""

    areas: npt.NDArray[np.str_]
    """Names of the areas, (A,)."""
    tiles: npt.NDArray[np.str_]
    """The tile that each area was cut from, which the bootstrap resamples, (A,)."""
    area: npt.NDArray[np.int64]
    """Index of the area of each episode, (E,)."""
    start: npt.NDArray[np.int64]
    """Start cells, (E, 2)."""
    goal: npt.NDArray[np.int64]
    """Goal cells, (E, 2)."""
    distance: npt.NDArray[np.int64]
    """Start-to-goal distances, (E,)."""
    weight: npt.NDArray[np.float64]
    """Weights of the episodes, (E,)."""
    found: npt.NDArray[np.bool_]
    """Whether the goal was found, (E,)."""
    steps: npt.NDArray[np.int64]
    """Moves made, (E,)."""
    path: npt.NDArray[np.int64]
    """Visited cells, (E, T + 1, 2). The last cell is repeated after the end."""

    @classmethod
    def of(cls, score: Score, areas: Sequence[SearchArea]) -> "Episodes":
        """Collect the episodes of a score over these areas."""
        suite, log = score.suite, score.log
        return cls(
            areas=np.array([area.name for area in areas]),
            tiles=np.array([area.source for area in areas]),
            area=suite.area,
            start=suite.start,
            goal=suite.goal,
            distance=suite.distance,
            weight=suite.weight,
            found=log.found,
            steps=log.steps,
            path=log.path,
        )

    @classmethod
    def load(cls, path: Path) -> "Episodes":
        """Read the file `episodes.npz`."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{each.name: arrays[each.name] for each in fields(cls)})

    def save(self, path: Path) -> None:
        """Write the file `episodes.npz`."""
        np.savez_compressed(path, **{each.name: getattr(self, each.name) for each in fields(self)})

    def __len__(self) -> int:
        return len(self.area)

    def bootstrap(self, seed: int) -> Bootstrap:
        """Return the bootstrap over the tiles of the episodes."""
        return Bootstrap([str(self.tiles[area]) for area in self.area], seed)

    def success(self, distances: Sequence[int] = ()) -> Metric:
        """Return the success at some start-to-goal distances, or over all of them."""
        weight = self.weight * np.isin(self.distance, distances) if distances else self.weight
        return Metric(weight * self.found, weight)

    def record(self, number: int) -> dict[str, Any]:
        """Return one episode as JSON values."""
        steps = int(self.steps[number])
        return {
            "area": str(self.areas[self.area[number]]),
            "start": self.start[number].tolist(),
            "goal": self.goal[number].tolist(),
            "distance": int(self.distance[number]),
            "found": bool(self.found[number]),
            "steps": steps,
            "path": self.path[number, : steps + 1].tolist(),
        }


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """How an agent did on a suite."""

    agent: str
    record: Mapping[str, Any]
    """The JSON of `airloc evaluate`."""
    folder: Path
    """The folder that holds `episodes.npz`."""
    seed: int = 0
    agreement: Mapping[str, Any] | None = None
    """Agreement with the exploitation prior by distance, if the agent has a prior."""
    calibration: Mapping[str, Any] | None = None
    """Calibration of the belief, if the agent has a belief."""
    areas: Path | None = None
    """Prepared folder of the areas."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Digests of the data and weights, and the key of the result."""

    @property
    def success(self) -> float:
        """Fraction of goals found."""
        return float(self.record["success"])

    @property
    def interval(self) -> Interval:
        """95 % interval of the success."""
        low, high = self.record["ci95"]["success"]
        return low, high

    @cached_property
    def episodes(self) -> Episodes:
        """All episodes."""
        return Episodes.load(self.folder / EPISODES)

    def success_at(self, distances: Sequence[int]) -> list[float]:
        """Return the success at each of some distances; the overall success if there are none."""
        if not distances:
            return [self.success]
        return [float(self.record["success_by_distance"][str(distance)]) for distance in distances]

    def minus(self, other: "EvaluationResult", distances: Sequence[int] = ()) -> tuple[float, Interval]:
        """Return the paired difference in success on the same episodes, and its 95 % interval."""
        first, second = (result.episodes.success(distances) for result in (self, other))
        difference = (first.value() or 0.0) - (second.value() or 0.0)
        return difference, self.episodes.bootstrap(self.seed).difference(first, second)


PaperResults = Mapping[Setup, EvaluationResult]
"""Results of the paper's evaluations."""

SuiteResults = Mapping[tuple[str, str], EvaluationResult]
"""Results by the names of agent and suite."""


def save_result(
    folder: Path,
    score: Score,
    areas: Sequence[SearchArea],
    *,
    seed: int,
    extra: Mapping[str, Any],
    agreement: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
) -> None:
    """Write the result of an evaluation. `extra` adds entries to the record, such as the change of the goal images."""
    record = {**score.record(), **extra}
    _write(folder, record=record, declined=None, seed=seed, agreement=agreement, calibration=calibration)
    Episodes.of(score, areas).save(folder / EPISODES)


def save_declined(folder: Path, reason: str, *, seed: int) -> None:
    """Write the result of an agent that cannot play the suite."""
    _write(folder, record=None, declined=reason, seed=seed, agreement=None, calibration=None)


def load_result(
    folder: Path, agent: str, areas: Path | None = None, provenance: Mapping[str, str] | None = None
) -> EvaluationResult | None:
    """Read a result, or return None if the agent declined to play."""
    found = json.loads((folder / SCORE).read_bytes())
    if found["record"] is None:
        return None
    return EvaluationResult(
        agent, found["record"], folder, found["seed"], found["agreement"], found["calibration"], areas, provenance or {}
    )


def load_reason(folder: Path) -> str | None:
    """Return why the agent declined to play; None if it played."""
    reason: str | None = json.loads((folder / SCORE).read_bytes())["declined"]
    return reason


def _write(folder: Path, **entries: Any) -> None:
    write_atomically(folder / SCORE, to_json(entries))


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Validation success during a training."""

    agent: str
    trained_on: str
    episodes: tuple[int, ...]
    """Training episodes of each seed."""
    success: tuple[float, ...]
    """Mean validation success over the seeds."""
