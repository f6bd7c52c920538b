"""Results of the paper's evaluations, written by hand."""

from pathlib import Path
from typing import Any

import numpy as np

from airloc.evaluation.benchmarks.paper import Setup
from airloc.reports.results import EPISODES, Episodes, EvaluationResult

VAL = ("masa", "val")


def record(success: float, low: float = 0.0, high: float = 1.0, **by_distance: float) -> dict[str, Any]:
    """The record of an evaluation; success at distance 3 is `d3`."""
    strata = {name.removeprefix("d"): value for name, value in by_distance.items()} or {
        str(distance): success for distance in (1, 2, 3, 4)
    }
    metrics = ("success", "steps", "step_ratio", "step_ratio_table", "residual_distance")
    return {
        "success": success,
        "steps": 6.04,
        "step_ratio": 1.7,
        "step_ratio_table": 1.49,
        "residual_distance": None,
        "runtime_ms": 3.0,
        "episodes": 712,
        "grid": "5x5",
        "success_by_distance": strata,
        "success_by_distance_ci95": {distance: [0.0, 1.0] for distance in strata},
        "ci95": {name: [None, None] for name in metrics} | {"success": [low, high], "step_ratio_table": [1.4, 1.45]},
        "blind_optimum": 0.521,
    }


def results(*entries: tuple[Setup, dict[str, Any]]) -> dict[Setup, EvaluationResult]:
    """Results without episodes."""
    return {setup: EvaluationResult(setup.agent, found, Path("none")) for setup, found in entries}


def episodes(found: dict[int, list[bool]], paths: list[int] | None = None) -> Episodes:
    """Episodes as listed by distance, each in an area of its own; `paths` are the columns they end in."""
    distance = np.array([each for each, hits in found.items() for _ in hits])
    count, names = len(distance), [f"{number}" for hits in found.values() for number in range(len(hits))]
    cells = np.zeros((count, 2), dtype=np.int64)
    path = np.zeros((count, 2, 2), dtype=np.int64)
    path[:, 1, 1] = paths or 1
    return Episodes(
        areas=np.array(names),
        tiles=np.array(names),
        area=np.arange(count),
        start=cells,
        goal=cells + 1,
        distance=distance,
        weight=np.ones(count),
        found=np.array([hit for hits in found.values() for hit in hits]),
        steps=np.ones(count, dtype=np.int64),
        path=path,
    )


def played(setup: Setup, found: dict[int, list[bool]], folder: Path) -> EvaluationResult:
    """A result with the episodes as listed by distance."""
    strata = {f"d{distance}": sum(hits) / len(hits) for distance, hits in found.items()}
    place = folder / setup.agent
    place.mkdir()
    episodes(found).save(place / EPISODES)
    return EvaluationResult(setup.agent, record(0.5, **strata), place)
