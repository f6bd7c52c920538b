"""From an agent, areas and a suite to a score."""

from collections.abc import Callable, Sequence

import torch

from airloc.agents.agent import Agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.changed import Change, changed_goals
from airloc.evaluation.controls import CONTROLS
from airloc.evaluation.records import Score
from airloc.rollout import GoalPictures, play
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import Suite


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
