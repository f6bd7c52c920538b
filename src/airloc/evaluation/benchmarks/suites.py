"""The benchmark suites of `suites.toml`, and the commands that evaluate an agent on each of them."""

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from airloc.areas import NameFilter
from airloc.errors import AirlocError, suggest

ROOT = "$AIRLOC_DATA"
"""The folder of all datasets in printed commands."""


@dataclass(frozen=True)
class PrepareSpec:
    """Arguments of `airloc data prepare`."""

    dataset: str
    """Name of the dataset."""
    cache: str
    """The folder that the command writes. Suites may share it."""
    folder: str = ""
    """Folder of the dataset under the data root; empty for procedural areas."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the dataset."""

    def arguments(self) -> list[str]:
        """Return the arguments after the options of the command itself."""
        words = ["--out", self.cache, self.dataset]
        if self.folder and self.folder != self.dataset:
            words += ["--path" if self.dataset == "folder" else "--root", f"{ROOT}/{self.folder}"]
        for name, value in self.options.items():
            words += _option(name, value)
        return words


@dataclass(frozen=True)
class SuiteSpec:
    """A benchmark suite: all arguments of an `airloc evaluate` command except the agent."""

    name: str
    title: str
    """Heading of the column."""
    description: str
    areas: str = ""
    """Folder of images under the data root, if nothing is prepared."""
    dataset: str = ""
    """Name of a dataset to play on instead."""
    prepare: PrepareSpec | None = None
    grid: str = "5x5"
    budget: int | None = None
    split: str = ""
    cell_metres: float | None = None
    names: NameFilter = field(default_factory=NameFilter)
    """Patterns of the area names."""
    texts: str | None = None
    """Name of the file of descriptions, without `.csv`, if goals are described in words."""
    pairs: bool = False
    """Whether the goal images are those of the same places on another day."""
    episodes: str = "per-distance"
    per_area: int | None = None
    equal_distances: bool = False
    change: str | None = None
    control: str | None = None
    flight_conditions: float | None = None
    """Strength of the flight conditions."""
    drones: int = 1
    """Number of drones."""
    moving: float = 0.0
    """Steps of the goal per move of a drone."""
    agents: NameFilter = field(default_factory=NameFilter)
    """Patterns of the agents that play the suite."""
    trained: NameFilter | None = None
    """Patterns of the agents that were trained on these areas."""

    @property
    def folder(self) -> str:
        """The folder that must exist under the data root; empty for procedural areas."""
        return self.areas or self.dataset if self.prepare is None else self.prepare.folder

    @property
    def dataset_folder(self) -> str:
        """The top folder of the dataset under the data root. The areas depend on its content."""
        return self.folder.split("/")[0]

    def trained_on_areas(self, agent: str) -> bool:
        """Return True if an agent was trained on the areas of this suite."""
        return self.trained is not None and self.trained.matches(agent)

    def prepare_command(self) -> list[str]:
        """Return the words of the command that prepares the areas; empty if none is needed."""
        if self.prepare is None:
            return []
        return ["airloc", "data", "prepare", *_option("grid", self.grid, "5x5"), *self.prepare.arguments()]

    def texts_command(self) -> list[str]:
        """Return the words of the command that describes the goals; empty if they have pictures."""
        if self.texts is None:
            return []
        words = ["airloc", "data", "captions", *_option("grid", self.grid, "5x5"), "--out", f"{self.texts}.csv"]
        if self.prepare is not None:
            return [*words, *self.prepare.arguments()[2:]]
        return [*words, self.dataset, *_option("split", self.split)]

    def evaluate_command(self, agent: str, seed: int = 0) -> list[str]:
        """Return the words of the command that evaluates an agent."""
        folder = f"{ROOT}/{self.areas}" if self.prepare is None else self.prepare.cache
        source = ["--dataset", self.dataset] if self.dataset else ["--areas", folder]
        words = ["airloc", "evaluate", agent, *source, *(["--pairs"] if self.pairs else [])]
        words += [*_option("split", self.split), *_option("grid", self.grid, "5x5"), *_option("budget", self.budget)]
        words += _option("cell_metres", self.cell_metres)
        words += [] if self.texts is None else ["--goal-texts", f"{self.texts}.csv"]
        words += [word for pattern in self.names.only for word in ("--only", pattern)]
        words += [word for pattern in self.names.without for word in ("--except", pattern)]
        words += [*_option("episodes", self.episodes, "per-distance"), *_option("per_area", self.per_area, 1)]
        words += ["--equal-distances"] if self.equal_distances else []
        words += [*_option("change", self.change), *_option("control", self.control)]
        words += [*_option("flight_conditions", self.flight_conditions), *_option("drones", self.drones, 1)]
        return [*words, *_option("moving", self.moving, 0.0), *_option("seed", seed, 0)]

    def commands(self, agent: str = "AGENT", seed: int = 0) -> list[str]:
        """Return the commands as typed in a shell."""
        commands = [self.prepare_command(), self.texts_command(), self.evaluate_command(agent, seed)]
        return [" ".join(map(_quote, words)) for words in commands if words]


@dataclass(frozen=True)
class SuiteGroup:
    """Suites that share one table."""

    title: str
    suites: tuple[SuiteSpec, ...]


def find_suites(names: Sequence[str]) -> tuple[SuiteSpec, ...]:
    """Return the suites of these names in the order of the file; all suites if there are no names.

    Raises:
        AirlocError: If there is no suite of a name.
    """
    known = [suite.name for suite in SUITES]
    for name in names:
        if name not in known:
            raise AirlocError(f"There is no suite {name!r}", suggest(name, known, "Suites"))
    return tuple(suite for suite in SUITES if not names or suite.name in names)


def _option(name: str, value: Any, default: Any = None) -> list[str]:
    """Return an option and its value as words; nothing if the value is empty or the default."""
    if value is None or value == "" or value == default:
        return []
    return [f"--{name.replace('_', '-')}", str(value)]


def _quote(word: str) -> str:
    """Quote a word for the shell, except for a variable that the shell replaces."""
    return word if word.startswith(ROOT) else shlex.quote(word)


def _groups() -> Iterator[SuiteGroup]:
    text = resources.files("airloc.evaluation.benchmarks").joinpath("suites.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["group"]:
        yield SuiteGroup(entry["title"], tuple(_suite(dict(suite)) for suite in entry["suite"]))


def _suite(entry: dict[str, Any]) -> SuiteSpec:
    """Make the suite of one entry. An unknown key raises TypeError."""
    prepare = entry.pop("prepare", None)
    trained = NameFilter(tuple(entry.pop("trained", ())), tuple(entry.pop("trained_without", ())))
    return SuiteSpec(
        prepare=None if prepare is None else _prepare(dict(prepare)),
        names=NameFilter(tuple(entry.pop("only", ())), tuple(entry.pop("except", ()))),
        agents=NameFilter(tuple(entry.pop("agents", ()))),
        trained=trained or None,
        **entry,
    )


def _prepare(entry: dict[str, Any]) -> PrepareSpec:
    return PrepareSpec(entry.pop("dataset"), entry.pop("cache"), entry.pop("folder", ""), entry)


GROUPS: tuple[SuiteGroup, ...] = tuple(_groups())
"""All suites in their groups, in the order of the file."""

SUITES: tuple[SuiteSpec, ...] = tuple(suite for group in GROUPS for suite in group.suites)
"""All suites."""
