"""A reproduction so small that it is done in seconds, with every part in it."""

from airloc.experiments.data import Preset, Sources
from airloc.experiments.graph import Task, in_order
from airloc.experiments.paper import Planner
from airloc.reports.outcomes import Setup

SIZES = {
    "segmenter_steps": 1,
    "embedder_steps": 2,
    "embedder_blocks": 1,
    "areas": 1,
    "episodes": 32,
    "batch": 8,
    "rate": 1e-3,
    "validate_every": 2,
}
TINY = Preset(SIZES, pictures=1, checked=1, worlds=2, most=2)


def planner(**sizes: float) -> Planner:
    preset = Preset({**SIZES, **sizes}, pictures=1, checked=1, worlds=2, most=2)
    return Planner(Sources(None, preset), preset, seeds=2)


def few_tasks(made_by: Planner) -> list[Task]:
    """A training and who plays after it: pictures, areas, embedder, policy and four scores."""
    setups = [Setup("airloc-no-sem-seg", "masa", "val", seed=seed) for seed in ("median", "1")]
    setups += [Setup(name, "masa", "val") for name in ("priv-random", "blind")]
    wanted = [made_by.score(setup) for setup in setups]
    return in_order([task for task in wanted if task is not None])


class Silent:
    """Watches without a word, and counts."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def begin(self, task: Task) -> None:
        self.now = task

    def say(self, words: str) -> None:
        del words

    def end(self, task: Task) -> None:
        self.done.append(task.kind)
