"""Plan the paper's tables and figures as tasks, and read their results."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from airloc.agents.policy import VARIANTS
from airloc.agents.pretrained import is_installed
from airloc.agents.registry import AIRLOC_AGENTS, CHECKPOINTS, available_agents, weight_hashes
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import PAPER_AGENTS, SUCCESSOR_PROTOCOL, TABLES, Setup, table
from airloc.experiments.datasets import AREAS_FOLDER
from airloc.experiments.evaluation import evaluation_task
from airloc.experiments.graph import Task, topological_order, weights_digest
from airloc.experiments.paper_data import PaperData
from airloc.experiments.store import Store
from airloc.experiments.training import EMBEDDER, POLICY, SEGMENTER
from airloc.reports.figures import CHARTED_VARIANTS, SEARCH_AGENTS, SEARCH_PLACES
from airloc.reports.results import EvaluationResult, LearningCurve, load_reason, load_result
from airloc.training.pipeline import EMBEDDER_OPTIONS, SEGMENTER_OPTIONS
from airloc.training.runs import METRICS

Weights = Literal["trained", "encoders", "shipped"]
"""Train everything, train policies on the shipped segmentation units and embedders, or train nothing."""

DISTANCE_FIGURE, SEARCH_FIGURES = 3, (2, *range(4, 20))
"""The figures that can be reproduced: success by distance, and those that show searches."""

TRAINED_VARIANTS: dict[str, str] = {name: CHECKPOINTS[name] for name in AIRLOC_AGENTS if CHECKPOINTS[name] in VARIANTS}
"""The paper's agents that are trained, each with the variant whose weights it uses."""


@dataclass(frozen=True)
class Selection:
    """Which tables and figures of the paper to reproduce.

    Raises:
        AirlocError: If a table or figure does not exist or cannot be reproduced.
    """

    tables: tuple[int, ...] = ()
    figures: tuple[int, ...] = ()
    successors: bool = False
    """Also evaluate under the successors' protocol."""

    @classmethod
    def everything(cls) -> "Selection":
        """Select all tables and figures and the successors' protocol."""
        return cls(tuple(each.number for each in TABLES), (DISTANCE_FIGURE, *SEARCH_FIGURES), successors=True)

    def __post_init__(self) -> None:
        for number in self.tables:
            table(number)
        for number in self.figures:
            if number not in (DISTANCE_FIGURE, *SEARCH_FIGURES):
                raise AirlocError(
                    f"Figure {number} of the paper cannot be reproduced",
                    "Use 3 (success by distance), or 2 or 4 to 19 (searches)",
                )

    def required_data(self) -> Iterator[tuple[str, str]]:
        """Iterate over the selected tables and figures, each with the dataset that it requires."""
        for number in self.tables:
            yield f"Table {number}", table(number).data
        for number in self.figures:
            yield f"Figure {number}", "masa" if number in (2, DISTANCE_FIGURE, *range(6, 10)) else "xbd-disaster"


@dataclass(frozen=True)
class PaperPlanner:
    """Makes the tasks of a selection."""

    data: PaperData
    seeds: int = 5
    """Policies to train of each variant."""
    seed: int = 0
    """Random seed for initial weights, episodes and sampling."""
    weights: Weights = "trained"
    _digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def plan(self, selection: Selection) -> "PaperPlan":
        """Return the tasks of a selection.

        Raises:
            AirlocError: If none of the required datasets is present.
        """
        evaluations: dict[Setup, Task] = {}
        for setup in dict.fromkeys(_setups(selection, other_agents())):
            task = self.evaluation(setup) if self.data.has(setup.data) else None
            if task is not None:
                evaluations[setup] = task
        if not evaluations:
            raise AirlocError("There is nothing to compute", "Choose a table whose dataset is present")
        return PaperPlan(evaluations)

    def evaluation(self, setup: Setup) -> Task | None:
        """Return the evaluation task of a setup, or None if its agent is not available."""
        agent, policy, rank = setup.agent, None, 0
        if setup.agent in TRAINED_VARIANTS and self.weights == "shipped":
            shipped = _shipped_name(setup)
            if shipped is None:
                return None
            agent = shipped
        elif setup.agent in TRAINED_VARIANTS:
            rank = 0 if setup.seed == "median" else int(setup.seed)
            if rank >= self.seeds or not self.data.has(setup.trained_on):
                return None
            policy = self.policy(TRAINED_VARIANTS[setup.agent], setup.trained_on)
        trained = f", trained on {setup.trained_on}" if policy else ""
        place = f"{setup.data} {setup.split}, {setup.grid}, {setup.episodes}"
        return evaluation_task(
            f"{setup.agent} ({setup.seed} seed{trained}) on {place}",
            agent,
            self.data.areas(setup.data, setup.split, setup.grid),
            grid=setup.grid,
            moves=setup.moves,
            episodes=setup.episodes,
            weights="" if policy else self._weights_digest(agent),
            policy=policy,
            seed_rank=rank,
            seed=self.seed,
            full_precision=True,
            analyses=True,
        )

    def policy(self, variant: str, trained_on: str) -> Task:
        """Return the task that trains the policies of a variant."""
        inputs = {"images": self.data.images(trained_on)}
        settings = {**self._training, **self._mix(trained_on), "variant": variant, "seeds": self.seeds}
        settings["seed"] = self.seed
        if self.weights == "encoders":
            shipped = _base(variant) if trained_on == "masa" else f"{_base(variant)}-xbd-research"
            settings |= {"encoder": shipped, "weights": weight_hashes(shipped)}
        else:
            inputs["embedder"] = self._embedder(variant, trained_on)
        return Task(POLICY, f"{variant} on {trained_on}", settings, inputs)

    def _weights_digest(self, agent: str) -> str:
        """Return the digest of the weights of an agent, computed once."""
        if agent not in self._digests:
            self._digests[agent] = weights_digest(agent)
        return self._digests[agent]

    @property
    def _training(self) -> dict[str, Any]:
        return dict(self.data.preset.training)

    def _mix(self, trained_on: str) -> dict[str, Any]:
        """Return the setting of the data to train on, if it is more than the images of the role."""
        data = self.data.training_data(trained_on)
        return {"data": data} if data else {}

    def _options(self, names: tuple[str, ...], trained_on: str) -> dict[str, Any]:
        """Return the settings of a stage."""
        options = {name: self._training[name] for name in names if name in self._training}
        return {**options, **self._mix(trained_on), "seed": self.seed}

    def _embedder(self, variant: str, trained_on: str) -> Task:
        base = _base(variant)
        inputs = {"images": self.data.images(trained_on)}
        if VARIANTS[variant].sem_seg:
            inputs["segmenter"] = self._segmenter()
        settings = {**self._options(EMBEDDER_OPTIONS, trained_on), "variant": base}
        return Task(EMBEDDER, f"{base} on {trained_on}", settings, inputs)

    def _segmenter(self) -> Task:
        """Return the segmenter task: on Massachusetts as in the paper, or on xBD if that is absent."""
        role = "masa" if self.data.has("masa") else "xbd-pre"
        settings = {**self._options(SEGMENTER_OPTIONS, role), "variant": "airloc"}
        return Task(SEGMENTER, f"on {role}", settings, {"images": self.data.images(role)})


@dataclass(frozen=True)
class PaperPlan:
    """The evaluations of a selection."""

    evaluations: dict[Setup, Task] = field(repr=False)

    @property
    def tasks(self) -> list[Task]:
        """All tasks, each after its inputs."""
        return topological_order(self.evaluations.values())

    def results(self, store: Store) -> dict[Setup, EvaluationResult]:
        """Read the results of all evaluations, except those that the agent declined."""
        found = {}
        for setup, task in self.evaluations.items():
            areas = store.result_folder(task.inputs["areas"]) / AREAS_FOLDER
            result = load_result(store.result_folder(task), setup.agent, areas)
            if result is not None:
                found[setup] = result
        return found

    def declined(self, store: Store) -> list[str]:
        """Return why agents declined to play, as sentences without repetition."""
        reasons = (load_reason(store.result_folder(task)) for task in self.evaluations.values())
        return list(dict.fromkeys(f"{reason}." for reason in reasons if reason is not None))

    def learning_curves(self, store: Store) -> list[LearningCurve]:
        """Read the learning curves of the trained policies, as far as they are in the store."""
        policies = [task for task in self.tasks if task.kind is POLICY]
        return [_learning_curve(task, store) for task in policies if (store.result_folder(task) / METRICS).is_file()]


def other_agents() -> list[str]:
    """Return the available agents that are not in the paper."""
    return [name for name in available_agents() if name not in PAPER_AGENTS and "xbd" not in name]


def _setups(selection: Selection, others: list[str]) -> Iterator[Setup]:
    """Iterate over the evaluations of a selection for the agents of the paper and others, with repetitions."""
    for number in selection.tables:
        each = table(number)
        yield from (Setup.of(each, row) for row in each.rows if row.seed != "average")
        for grid in dict.fromkeys(row.grid for row in each.rows):
            yield from (Setup(name, each.data, each.split, grid) for name in others)
    if DISTANCE_FIGURE in selection.figures:
        for grid in ("5x5", "7x7"):
            for name in (*CHARTED_VARIANTS, "priv-local", *others):
                yield Setup(name, "masa", "val", grid)
    if set(SEARCH_FIGURES) & set(selection.figures):
        for data, grid, _, _ in SEARCH_PLACES:
            yield from (Setup(name, data, "test", grid) for name in SEARCH_AGENTS)
    if selection.successors:
        grid, moves = SUCCESSOR_PROTOCOL.grid, SUCCESSOR_PROTOCOL.moves
        for episodes in ("far-pairs", "uniform"):
            for name in ("airloc", "airloc-priv", "priv-local", "local", "priv-random", *others):
                yield Setup(name, "masa", "val", grid, episodes=episodes, moves=moves)


def _base(variant: str) -> str:
    """Return the variant whose segmentation unit and embedder a variant shares."""
    return "airloc" if VARIANTS[variant].sem_seg else "airloc-no-sem-seg"


def _shipped_name(setup: Setup) -> str | None:
    """Return the shipped agent of a setup, or None if there is none."""
    name = setup.agent if setup.trained_on == "masa" else f"{setup.agent}-xbd-research"
    return name if setup.seed == "median" and name in AIRLOC_AGENTS and is_installed(CHECKPOINTS[name]) else None


def _learning_curve(task: Task, store: Store) -> LearningCurve:
    lines = (store.result_folder(task) / METRICS).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    batch, variant = task.settings["batch"], task.settings["variant"]
    return LearningCurve(
        agent=variant,
        trained_on=task.name.removeprefix(f"{variant} on "),
        episodes=tuple((entry["step"] + 1) * batch for entry in entries),
        success=tuple(entry["val_success"] for entry in entries),
    )
