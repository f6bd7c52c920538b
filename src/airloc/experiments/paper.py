"""From the paper's tables and figures to tasks: what has to be computed for what is asked."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from airloc.agents.policy import VARIANTS
from airloc.agents.pretrained import is_installed
from airloc.agents.registry import AIRLOC_AGENTS, CHECKPOINTS, available_agents
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import PROTOCOL, TABLES, Table, table
from airloc.experiments.data import Preset, Sources
from airloc.experiments.graph import Task, in_order
from airloc.experiments.play import EPISODES, SCORE
from airloc.experiments.store import Store, weights_digest
from airloc.experiments.training import METRICS
from airloc.reports.outcomes import Curve, Outcome, Setup

Weights = Literal["trained", "shipped"]

DISTANCES, EXAMPLES = 3, (2, *range(4, 20))
"""The paper's figures that can be made again: success by distance, and the many that show searches."""

PAPER_AGENTS = frozenset(row.agent for each in TABLES for row in each.rows)

TRAINABLE: dict[str, str] = {name: CHECKPOINTS[name] for name in AIRLOC_AGENTS if CHECKPOINTS[name] in VARIANTS}
"""The paper's agents that are trained, each with the variant whose weights it takes; all others come as they are."""

SEARCHERS = ("airloc", "priv-local")
"""Whose searches the paper shows side by side."""


@dataclass(frozen=True)
class Asked:
    """Which of the paper's tables and figures are wanted."""

    tables: tuple[int, ...] = ()
    figures: tuple[int, ...] = ()
    protocol: bool = False
    """The successors' protocol too."""

    @classmethod
    def everything(cls) -> "Asked":
        """All of it."""
        return cls(tuple(each.number for each in TABLES), (DISTANCES, *EXAMPLES), protocol=True)

    def __post_init__(self) -> None:
        for number in self.tables:
            table(number)
        for number in self.figures:
            if number not in (DISTANCES, *EXAMPLES):
                raise AirlocError(
                    f"Figure {number} of the paper is none that can be made again",
                    "Ask for 3 (success by distance), or for 2 or 4 to 19 (searches)",
                )

    def needs(self) -> Iterator[tuple[str, str]]:
        """What is asked for, each with the data that it cannot be made without."""
        for number in self.tables:
            yield f"Table {number}", table(number).data
        for number in self.figures:
            yield f"Figure {number}", "masa" if number in (2, DISTANCES, *range(6, 10)) else "xbd-disaster"


@dataclass(frozen=True)
class Planner:
    """Makes the tasks."""

    sources: Sources
    preset: Preset
    seeds: int = 5
    """Policies trained of each variant."""
    seed: int = 0
    """Decides weights and draws."""
    weights: Weights = "trained"

    def plan(self, asked: Asked) -> "Plan":
        """Give everything that has to be computed."""
        scores: dict[Setup, Task] = {}
        for setup in dict.fromkeys(self._wanted(asked)):
            task = self.score(setup) if self.sources.has(setup.data) else None
            if task is not None:
                scores[setup] = task
        if not scores:
            raise AirlocError("There is nothing to compute", "Ask for a table whose data is there")
        return Plan(asked, scores)

    def score(self, setup: Setup) -> Task | None:
        """The task that scores a setup; None where its agent cannot be had."""
        settings: dict[str, Any] = {
            "agent": setup.agent,
            "suite": setup.suite,
            "grid": setup.grid,
            "moves": setup.moves,
            "seed": self.seed,
        }
        inputs = {"areas": self.sources.areas(setup.data, setup.split, setup.grid)}
        if setup.agent not in TRAINABLE:
            settings["weights"] = weights_digest(setup.agent)
        elif self.weights == "shipped":
            name = _shipped_name(setup)
            if name is None:
                return None
            settings |= {"agent": name, "weights": weights_digest(name)}
        else:
            place = 0 if setup.seed == "median" else int(setup.seed)
            if place >= self.seeds or not self.sources.has(setup.trained_on):
                return None
            settings["place"] = place
            inputs["policy"] = self.policy(TRAINABLE[setup.agent], setup.trained_on)
        trained = f", trained on {setup.trained_on}" if "policy" in inputs else ""
        name = f"{setup.agent} ({setup.seed} seed{trained}) on {setup.data} {setup.split}, {setup.grid}, {setup.suite}"
        return Task("score", name, settings, inputs)

    def policy(self, variant: str, trained_on: str) -> Task:
        """The task that trains the policies of a variant."""
        pictures, embedder = self.sources.pictures(trained_on), self._embedder(variant, trained_on)
        settings = {**self.preset.training, "variant": variant, "seeds": self.seeds, "seed": self.seed}
        return Task("policy", f"{variant} on {trained_on}", settings, {"pictures": pictures, "embedder": embedder})

    def _embedder(self, variant: str, trained_on: str) -> Task:
        base = "airloc" if VARIANTS[variant].sem_seg else "airloc-no-sem-seg"
        sizes = {name: self.preset.training[name] for name in ("segmenter_steps", "embedder_steps", "embedder_blocks")}
        inputs = {"pictures": self.sources.pictures(trained_on)}
        if VARIANTS[variant].sem_seg:
            inputs["segmenter"] = self._segmenter()
        return Task("embedder", f"{base} on {trained_on}", {**sizes, "variant": base, "seed": self.seed}, inputs)

    def _segmenter(self) -> Task:
        """As in the paper, trained on Massachusetts whatever follows; on what is there where that is absent."""
        role = "masa" if self.sources.has("masa") else "xbd-pre"
        steps = self.preset.training["segmenter_steps"]
        settings = {"segmenter_steps": steps, "variant": "airloc", "seed": self.seed}
        return Task("segmenter", f"on {role}", settings, {"pictures": self.sources.pictures(role)})

    def _wanted(self, asked: Asked) -> Iterator[Setup]:
        for number in asked.tables:
            each = table(number)
            yield from (Setup.of(each, row) for row in each.rows if row.seed != "average")
            yield from self._ours(each)
        if DISTANCES in asked.figures:
            yield from self._by_distance()
        if set(EXAMPLES) & set(asked.figures):
            yield from _examples()
        if asked.protocol:
            yield from self._protocol()

    def _ours(self, each: Table) -> Iterator[Setup]:
        """Agents that the paper does not have, beside its own."""
        for grid in dict.fromkeys(row.grid for row in each.rows):
            yield from (Setup(name, each.data, each.split, grid) for name in our_agents())

    def _by_distance(self) -> Iterator[Setup]:
        for grid in ("5x5", "7x7"):
            for name in ("airloc", "airloc-no-residual", "airloc-no-prior", "priv-local", *our_agents()):
                yield Setup(name, "masa", "val", grid)

    def _protocol(self) -> Iterator[Setup]:
        for suite in ("far-pairs", "uniform"):
            for name in ("airloc", "airloc-priv", "priv-local", "local", "priv-random", *our_agents()):
                yield Setup(name, "masa", "val", PROTOCOL.grid, suite=suite, moves=PROTOCOL.moves)


@dataclass(frozen=True)
class Plan:
    """What is to be computed."""

    asked: Asked
    scores: dict[Setup, Task] = field(repr=False)
    """The task that scores each setup."""

    @property
    def tasks(self) -> list[Task]:
        """All tasks, each after its inputs."""
        return in_order(self.scores.values())

    @property
    def policies(self) -> list[Task]:
        """The tasks that train policies."""
        return [task for task in self.tasks if task.kind == "policy"]


def our_agents() -> list[str]:
    """The agents that can be had here and are not the paper's."""
    return [name for name in available_agents() if name not in PAPER_AGENTS and "xbd" not in name]


def _examples() -> Iterable[Setup]:
    places = (("masa", "test", "5x5"), ("dubai", "test", "5x5"), ("xbd-disaster", "test", "7x7"))
    return (Setup(name, *place) for place in places for name in SEARCHERS)


def _shipped_name(setup: Setup) -> str | None:
    """The shipped agent of a setup; None where there is none."""
    name = setup.agent if setup.trained_on == "masa" else f"{setup.agent}-xbd-research"
    return name if setup.seed == "median" and name in AIRLOC_AGENTS and is_installed(CHECKPOINTS[name]) else None


# ---------- From results in a store to what reports are made from.
# ~


def outcomes(plan: Plan, store: Store) -> dict[Setup, Outcome]:
    """How every setup of a plan went; those whose agent could not play are left out."""
    found = {setup: _outcome(setup, task, store) for setup, task in plan.scores.items()}
    return {setup: outcome for setup, outcome in found.items() if outcome is not None}


def declined(plan: Plan, store: Store) -> list[str]:
    """Why agents could not play, each once."""
    records = (json.loads((store.place(task) / SCORE).read_bytes()) for task in plan.scores.values())
    return list(dict.fromkeys(f"{record['declined']}." for record in records if record["score"] is None))


def curves(plan: Plan, store: Store) -> list[Curve]:
    """How every training of policies went."""
    return [_curve(task, store) for task in plan.policies]


def _outcome(setup: Setup, task: Task, store: Store) -> Outcome | None:
    folder = store.place(task)
    record = json.loads((folder / SCORE).read_bytes())
    if record["score"] is None:
        return None
    return Outcome(
        setup=setup,
        score=record["score"],
        agreement=record["agreement"],
        calibration=record["calibration"],
        tiles=record["tiles"],
        episodes=folder / EPISODES,
        areas=store.place(task.inputs["areas"]),
    )


def _curve(task: Task, store: Store) -> Curve:
    lines = (store.place(task) / METRICS).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    batch, variant = task.settings["batch"], task.settings["variant"]
    return Curve(
        agent=variant,
        trained_on=task.name.removeprefix(f"{variant} on "),
        steps=tuple((entry["step"] + 1) * batch for entry in entries),
        success=tuple(entry["val_success"] for entry in entries),
    )
