"""Plan the evaluation of agents on benchmark suites as tasks, and read their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from airloc.agents.registry import AIRLOC_AGENTS, BELIEF_AGENTS, available_agents
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import SuiteSpec
from airloc.experiments.datasets import AREAS_FOLDER, areas_task
from airloc.experiments.evaluation import evaluation_task
from airloc.experiments.graph import Task, folder_digest, topological_order, weights_digest
from airloc.experiments.store import Store
from airloc.reports.results import SuiteResults, load_result
from airloc.reports.suites import SkippedSuite


@dataclass(frozen=True)
class SuitePlan:
    """The evaluations of agents on suites."""

    evaluations: dict[tuple[str, str], Task]
    """The task of each agent and suite, by their names."""
    skipped: tuple[SkippedSuite, ...]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, each after its inputs."""
        return topological_order(self.evaluations.values())

    def results(self, store: Store) -> SuiteResults:
        """Read the results of all evaluations."""
        found = {}
        for (agent, suite), task in self.evaluations.items():
            areas = task.inputs["areas"]
            provenance = {
                "data": areas.settings["data"],
                "weights": task.settings["weights"],
                "version": f"{task.kind.name} {task.kind.version}, {areas.kind.name} {areas.kind.version}",
                "result": task.label,
            }
            folder = store.result_folder(areas) / AREAS_FOLDER
            result = load_result(store.result_folder(task), agent, folder, provenance)
            if result is not None:
                found[agent, suite] = result
        return found


def plan_suites(
    suites: Sequence[SuiteSpec], agents: Sequence[str], root: Path | None, *, seed: int = 0, limit: int | None = None
) -> SuitePlan:
    """Return the evaluations of agents on suites, and the suites whose data is absent.

    Args:
        suites: The suites.
        agents: Names of the agents.
        root: The folder of all datasets; None if there is none.
        seed: Random seed for episodes, agents and bootstrap.
        limit: Use at most this many areas of each suite, evenly spaced.

    Raises:
        AirlocError: If the data root does not exist, or there is nothing to evaluate.
    """
    if root is not None and not root.is_dir():
        raise AirlocError(f"There is no data folder {root}", "Check --data, or omit it for procedural areas")
    skipped = tuple(SkippedSuite(suite, reason) for suite in suites if (reason := _reason_absent(suite, root)))
    absent = {skip.suite.name for skip in skipped}
    present = [suite for suite in suites if suite.name not in absent]
    folders = {suite.dataset_folder for suite in present if suite.dataset_folder}
    data = {folder: folder_digest(root / folder) for folder in folders if root is not None}
    weights = {(agent, texts): weights_digest(agent, texts=texts) for agent in agents for texts in (False, True)}
    evaluations = {}
    for suite in present:
        areas = _areas(suite, root, data.get(suite.dataset_folder, ""), limit)
        for agent in filter(suite.agents.matches, agents):
            evaluations[agent, suite.name] = _evaluation(
                agent, weights[agent, suite.texts is not None], suite, areas, seed
            )
    if not evaluations:
        reasons = "; ".join(dict.fromkeys(skip.reason for skip in skipped)) or "none of these agents plays these suites"
        raise AirlocError(f"There is nothing to evaluate: {reasons}", "Run `airloc data list` to see the present data")
    return SuitePlan(evaluations, skipped)


def choose_agents(patterns: Sequence[str]) -> list[str]:
    """Return the available agents that match one of the patterns, trained agents first.

    Raises:
        AirlocError: If no agent matches a pattern.
    """
    known = available_agents()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise AirlocError(f"There is no agent {pattern!r}", f"Agents are: {', '.join(known)}")
    chosen = [name for name in known if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]
    trained = [name for names in (BELIEF_AGENTS, AIRLOC_AGENTS) for name in chosen if name in names]
    return [*trained, *reversed([name for name in chosen if name not in trained])]


def _reason_absent(suite: SuiteSpec, root: Path | None) -> str:
    """Return why the data of a suite is absent; empty if it is present."""
    if not suite.folder:
        return ""
    if root is None:
        return f"it needs the dataset {suite.dataset_folder!r}, and no data folder is given"
    return "" if (root / suite.folder).is_dir() else f"there is no folder {suite.folder!r} in the data folder"


def _areas(suite: SuiteSpec, root: Path | None, data: str, limit: int | None) -> Task:
    """Return the areas task of a suite. Suites with the same areas share its key."""
    return areas_task(
        f"areas of {suite.name}",
        suite.grid,
        dataset=suite.dataset if suite.prepare is None else suite.prepare.dataset,
        source=root / suite.folder if root is not None and suite.folder else None,
        folder=suite.folder,
        options={} if suite.prepare is None else suite.prepare.options,
        data=data,
        split=suite.split,
        cell_metres=suite.cell_metres,
        only=suite.names.only,
        without=suite.names.without,
        pairs=suite.pairs,
        texts=suite.texts is not None,
        limit=limit,
    )


def _evaluation(agent: str, weights: str, suite: SuiteSpec, areas: Task, seed: int) -> Task:
    return evaluation_task(
        f"{agent} on {suite.name}",
        agent,
        areas,
        grid=suite.grid,
        budget=suite.budget,
        episodes=suite.episodes,
        per_area=suite.per_area,
        equal_distances=suite.equal_distances,
        change=suite.change,
        control=suite.control,
        flight_conditions=suite.flight_conditions,
        drones=suite.drones,
        moving=suite.moving,
        weights=weights,
        seed=seed,
    )
