"""Reads how every suite is made, and tells the commands that make its figures."""

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from typing import Any

from airloc.areas.pairs import Names
from airloc.errors import AirlocError

ROOT = "$AIRLOC_DATA"
"""What the folder of all datasets is called in commands."""

PLACED = {"dubai": "root", "masa": "root", "xbd": "root", "folder": "path"}
"""The option of each source that names its folder."""


@dataclass(frozen=True)
class Prepare:
    """What `airloc data prepare` is told."""

    source: str
    """A name of `airloc.areas.registry.SOURCES`."""
    cache: str
    """The folder that is written, in commands; suites may share it."""
    place: str = ""
    """Its folder under the data folder; empty for procedural areas."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the source."""


@dataclass(frozen=True)
class Recipe:
    """How a suite is made: what an `airloc evaluate` command says but for the agent."""

    name: str
    title: str
    """The column's heading."""
    what: str
    """One sentence about it."""
    areas: str = ""
    """Folder of pictures under the data folder, where nothing is prepared."""
    prepare: Prepare | None = None
    grid: str = "5x5"
    budget: int | None = None
    split: str = ""
    cell_metres: float | None = None
    names: Names = field(default_factory=Names)
    """Which of the areas."""
    goals: bool = False
    """Whether the goals' pictures are those from before a disaster, in the same folder."""
    episodes: str = "per-distance"
    per_area: int | None = None
    equal_distances: bool = False
    change: str | None = None
    control: str | None = None
    agents: Names = field(default_factory=Names)
    """Who takes part."""
    trained: Names | None = None
    """Who was trained on these very areas."""

    @property
    def place(self) -> str:
        """The folder under the data folder that has to be there; empty where areas are procedural."""
        return self.areas if self.prepare is None else self.prepare.place

    @property
    def dataset(self) -> str:
        """The folder of the dataset, on whose content the areas depend."""
        return self.place.split("/")[0]

    def has_trained(self, agent: str) -> bool:
        """Whether an agent was trained on these very areas."""
        return self.trained is not None and self.trained.wants(agent)

    def prepare_words(self, root: str = ROOT, caches: str = "") -> list[str]:
        """The command that prepares the areas, word by word; empty where pictures are read as they are.

        Args:
            root: The folder of all datasets.
            caches: What stands before the name of the prepared folder.
        """
        if self.prepare is None:
            return []
        words = ["airloc", "data", "prepare", *_option("grid", self.grid, "5x5")]
        words += ["--out", caches + self.prepare.cache, self.prepare.source]
        if self.prepare.place and (root != ROOT or self.prepare.place != self.prepare.source):
            words += [f"--{PLACED[self.prepare.source]}", f"{root}/{self.prepare.place}"]
        for name, value in self.prepare.options.items():
            words += _option(name, value)
        return words

    def evaluate_words(self, agent: str, root: str = ROOT, caches: str = "", seed: int = 0) -> list[str]:
        """The command that scores an agent, word by word."""
        folder = f"{root}/{self.areas}" if self.prepare is None else caches + self.prepare.cache
        words = ["airloc", "evaluate", agent, "--areas", folder, *(["--goals", folder] if self.goals else [])]
        words += [*_option("split", self.split), *_option("grid", self.grid, "5x5"), *_option("budget", self.budget)]
        words += _option("cell_metres", self.cell_metres)
        words += [word for pattern in self.names.only for word in ("--only", pattern)]
        words += [word for pattern in self.names.without for word in ("--except", pattern)]
        words += [*_option("episodes", self.episodes, "per-distance"), *_option("per_area", self.per_area, 1)]
        words += ["--equal-distances"] if self.equal_distances else []
        words += [*_option("change", self.change), *_option("control", self.control), *_option("seed", seed, 0)]
        return words

    def commands(self, agent: str = "AGENT", seed: int = 0) -> list[str]:
        """The commands as they are typed."""
        told = [self.prepare_words(), self.evaluate_words(agent, seed=seed)]
        return [" ".join(map(_quoted, words)) for words in told if words]


@dataclass(frozen=True)
class Group:
    """Suites that stand side by side in one table."""

    title: str
    recipes: tuple[Recipe, ...]


def find(names: Sequence[str]) -> tuple[Recipe, ...]:
    """Give the recipes of these names, in the order of the file; all of them where none is named.

    Raises:
        AirlocError: When there is no suite of a name.
    """
    known = [recipe.name for recipe in RECIPES]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}? Suites" if near else "Suites"
            raise AirlocError(f"There is no suite {name!r}", f"{hint} are: {', '.join(known)}")
    return tuple(recipe for recipe in RECIPES if not names or recipe.name in names)


def _option(name: str, value: Any, default: Any = None) -> list[str]:
    """An option with its value as words; nothing where the value is the default or there is none."""
    if value is None or value == "" or value == default:
        return []
    return [f"--{name.replace('_', '-')}", str(value)]


def _quoted(word: str) -> str:
    """A word as it is typed; what the shell is to put in stays as it is."""
    return word if word.startswith(ROOT) else shlex.quote(word)


def _groups() -> Iterator[Group]:
    text = resources.files("airloc.evaluation.benchmarks").joinpath("suites.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["group"]:
        yield Group(entry["title"], tuple(_recipe(dict(suite)) for suite in entry["suite"]))


def _recipe(entry: dict[str, Any]) -> Recipe:
    """Make the recipe of one entry; a key that nobody knows is a TypeError here, before anything is computed."""
    prepare = entry.pop("prepare", None)
    trained = Names(tuple(entry.pop("trained", ())), tuple(entry.pop("trained_except", ())))
    return Recipe(
        prepare=None if prepare is None else _prepare(dict(prepare)),
        names=Names(tuple(entry.pop("only", ())), tuple(entry.pop("except", ()))),
        agents=Names(tuple(entry.pop("agents", ()))),
        trained=trained or None,
        **entry,
    )


def _prepare(entry: dict[str, Any]) -> Prepare:
    return Prepare(entry.pop("source"), entry.pop("cache"), entry.pop("in", ""), entry)


GROUPS: tuple[Group, ...] = tuple(_groups())
"""All suites in their groups, in order."""

RECIPES: tuple[Recipe, ...] = tuple(recipe for group in GROUPS for recipe in group.recipes)
"""All suites."""
