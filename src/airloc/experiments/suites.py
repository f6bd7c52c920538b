"""From suites and agents to tasks, and from their results to what the page of all agents is made from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from airloc.agents.registry import AIRLOC_AGENTS, BELIEF_AGENTS, available_agents
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import PLACED, Recipe
from airloc.experiments.graph import CODE, Task, code_digest, in_order
from airloc.experiments.play import TRIAL_EPISODES, TRIAL_SCORE
from airloc.experiments.store import Store, folder_digest, weights_digest
from airloc.reports.suites import Skipped, Trial


@dataclass(frozen=True)
class TrialPlan:
    """What is to be played, and what cannot be."""

    trials: dict[tuple[str, str], Task]
    """The task of each agent and suite, by their names."""
    skipped: tuple[Skipped, ...]
    recipes: tuple[Recipe, ...]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, each after its inputs."""
        return in_order(self.trials.values())

    def results(self, store: Store) -> list[Trial]:
        """How everybody did, once all tasks are done."""
        recipes = {recipe.name: recipe for recipe in self.recipes}
        return [_trial(agent, recipes[suite], task, store) for (agent, suite), task in self.trials.items()]


def plan_trials(
    recipes: Sequence[Recipe], agents: Sequence[str], root: Path | None, *, seed: int = 0, most: int | None = None
) -> TrialPlan:
    """Give everything that has to be computed; suites whose data is not there are skipped.

    Args:
        recipes: The suites.
        agents: Names of the agents.
        root: The folder of all datasets; None where there is none.
        seed: Decides the drawn episodes and every random choice.
        most: How many areas of each suite to play at most; None for all of them.
    """
    if root is not None and not root.is_dir():
        raise AirlocError(f"There is no data folder {root}", "Check --data, or leave it out for procedural areas")
    skipped = tuple(Skipped(recipe, why) for recipe in recipes if (why := _absent(recipe, root)))
    missing = {skip.recipe.name for skip in skipped}
    there = [recipe for recipe in recipes if recipe.name not in missing]
    data = {name: folder_digest(root / name) for name in {recipe.dataset for recipe in there} if root and name}
    weights = {agent: weights_digest(agent) for agent in agents}
    trials = {}
    for recipe in there:
        ground = _ground(recipe, root, data.get(recipe.dataset, ""), most)
        for agent in filter(recipe.agents.wants, agents):
            trials[agent, recipe.name] = _play(agent, weights[agent], recipe, ground, seed)
    if not trials:
        whys = "; ".join(dict.fromkeys(skip.why for skip in skipped)) or "none of these agents plays these suites"
        raise AirlocError(f"There is nothing to play: {whys}", "Run `airloc data list` to see what data is there")
    return TrialPlan(trials, skipped, tuple(recipes))


def choose_agents(patterns: Sequence[str]) -> list[str]:
    """Give the agents that can be had here and match one of the patterns, those that learned most first.

    Raises:
        AirlocError: When no agent matches a pattern.
    """
    known = available_agents()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise AirlocError(f"No agent is called {pattern!r}", f"Agents are: {', '.join(known)}")
    chosen = [name for name in known if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]
    kinds = [[name for name in chosen if name in kind] for kind in (BELIEF_AGENTS, AIRLOC_AGENTS)]
    return [*kinds[0], *kinds[1], *reversed([name for name in chosen if name not in kinds[0] + kinds[1]])]


def _absent(recipe: Recipe, root: Path | None) -> str:
    """Why a suite cannot be played; empty where it can."""
    if not recipe.place:
        return ""
    if root is None:
        return f"it needs the dataset {recipe.dataset!r}, and no data folder is named"
    return "" if (root / recipe.place).is_dir() else f"there is no folder {recipe.place!r} in the data folder"


def _ground(recipe: Recipe, root: Path | None, data: str, most: int | None) -> Task:
    """The task that reads what a suite is flown over; suites over the same areas share it."""
    told: dict[str, Any] | None = None
    if recipe.prepare is not None:
        told = {"source": recipe.prepare.source, "options": dict(recipe.prepare.options)}
        told["placed"] = PLACED.get(recipe.prepare.source)
    settings = {
        "data": data,
        "place": recipe.place,
        "prepare": told,
        "grid": recipe.grid,
        "split": recipe.split,
        "cell_metres": recipe.cell_metres,
        "only": list(recipe.names.only),
        "except": list(recipe.names.without),
        "goals": recipe.goals,
        "most": most,
    }
    source = root / recipe.place if root is not None and recipe.place else None
    return Task("ground", f"areas of {recipe.name}", settings, source=source)


def _play(agent: str, weights: str, recipe: Recipe, ground: Task, seed: int) -> Task:
    settings = {
        "agent": agent,
        "weights": weights,
        "grid": recipe.grid,
        "budget": recipe.budget,
        "episodes": recipe.episodes,
        "per_area": recipe.per_area,
        "equal_distances": recipe.equal_distances,
        "change": recipe.change,
        "control": recipe.control,
        "seed": seed,
    }
    return Task("trial", f"{agent} on {recipe.name}", settings, {"ground": ground})


def _trial(agent: str, recipe: Recipe, task: Task, store: Store) -> Trial:
    folder = store.place(task)
    record = json.loads((folder / TRIAL_SCORE).read_bytes())
    made_from = {
        "data": task.inputs["ground"].settings["data"],
        "weights": task.settings["weights"],
        "code": code_digest(CODE[task.kind]),
        "result": task.label,
    }
    return Trial(agent, recipe, record, folder / TRIAL_EPISODES, made_from)
