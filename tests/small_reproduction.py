"""A reproduction that takes seconds and has every kind of task."""

from airloc.evaluation.benchmarks.paper import Setup
from airloc.experiments.graph import Task, topological_order
from airloc.experiments.paper import PaperPlanner
from airloc.experiments.paper_data import PaperData, Preset

TRAINING = {
    "segmenter_steps": 1,
    "embedder_steps": 2,
    "embedder_pairs": 4,
    "areas": 1,
    "episodes": 16,
    "batch": 8,
    "learning_rate": 1e-3,
    "validate_every": 2,
}


def tiny_preset(**training: float) -> Preset:
    return Preset({**TRAINING, **training}, training_images=1, validation_images=1, areas=2, area_limit=2, threads=1)


TINY = tiny_preset()


def planner(seeds: int = 2, **training: float) -> PaperPlanner:
    return PaperPlanner(PaperData(None, tiny_preset(**training)), seeds=seeds)


def few_tasks(made_by: PaperPlanner) -> list[Task]:
    """One training and the evaluations of its seeds and of two baselines."""
    setups = [Setup("airloc-no-sem-seg", "masa", "val", seed=seed) for seed in ("median", "1")]
    setups += [Setup(name, "masa", "val") for name in ("priv-random", "blind")]
    found = [made_by.evaluation(setup) for setup in setups]
    return topological_order([task for task in found if task is not None])


class RecordedProgress:
    """Records the kinds of the finished tasks."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def started(self, task: Task) -> None:
        self.current = task

    def message(self, text: str) -> None:
        del text

    def finished(self, task: Task) -> None:
        self.done.append(task.kind.name)
