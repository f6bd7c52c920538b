"""What the verbs that let agents play a suite have in common: on which areas, which episodes, and how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from tyro.conf import UseAppendAction, arg

from airloc.agents.agent import Agent
from airloc.agents.registry import AgentOptions, make_agent
from airloc.areas.area import SearchArea
from airloc.cli import evaluate
from airloc.evaluation.evaluate import check_device
from airloc.task.suites import Suite


@dataclass(frozen=True, kw_only=True)
class Playing:
    """On which areas and episodes agents play, and how."""

    areas: Path | None = None
    """Folder of pictures, each an area, or a prepared cache; 100 procedural areas unless given."""
    goals: Path | None = None
    """Folder to take the goals' pictures from: the same file name, or its pre_disaster/post_disaster partner."""
    episodes: str = "per-distance"
    """An episode file (.csv), per-distance, uniform, or all-pairs, weighed so that all distances count the same."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed; twice the longer side unless given."""
    split: str = ""
    """Only the areas that windows.csv beside the pictures puts into this split."""
    only: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Only the areas whose file names match a pattern such as 'santa-rosa-*'; may be given several times."""
    without: UseAppendAction[Annotated[tuple[str, ...], arg(name="except", metavar="PATTERN")]] = ()
    """Not the areas whose file names match a pattern; may be given several times."""
    cell_metres: float | None = None
    """Crop areas of known ground size so that each cell stands for this many metres."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    batch: int = 1024
    """Episodes played in step."""
    seed: int = 0
    """Decides the drawn episodes, every random choice and the bootstrap."""


class Ready(NamedTuple):
    """Everything needed to play."""

    agents: list[Agent]
    suite: Suite
    areas: list[SearchArea]
    goal_areas: list[SearchArea] | None


def prepare(options: Playing, names: Sequence[str], require: Callable[[Agent], None] = lambda agent: None) -> Ready:
    """Check what is cheap to check, make the agents, and read the areas and episodes.

    Args:
        options: What was asked for.
        names: Agents by name or checkpoint folder; each is made once.
        require: Refuses an agent that will not do, before anything is read.
    """
    asked = evaluate.Evaluate(
        agent="",
        areas=options.areas,
        goals=options.goals,
        episodes=options.episodes,
        grid=options.grid,
        budget=options.budget,
        split=options.split,
        only=options.only,
        without=options.without,
        cell_metres=options.cell_metres,
        equal_distances=options.episodes == "all-pairs",
        batch=options.batch,
        seed=options.seed,
    )
    evaluate.check(asked)
    check_device(options.device)
    makers = AgentOptions(seed=options.seed, device=options.device)
    agents = [make_agent(name, makers) for name in dict.fromkeys(names)]
    for agent in agents:
        require(agent)
    return Ready(agents, *evaluate.load(asked))
