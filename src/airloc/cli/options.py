"""Options shared by the verbs that play: which areas, which episodes, and how."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tyro.conf import UseAppendAction, arg

from airloc.agents.agent import Agent, AgentOptions, check_device
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.dataset import Dataset
from airloc.areas.prepared import Prepared
from airloc.areas.records import NameFilter
from airloc.areas.registry import all_datasets, find_kind, load_dataset
from airloc.cli.console import collect_areas, progress_bar
from airloc.errors import AirlocError
from airloc.evaluation.scores import Score, evaluate
from airloc.grid import Grid
from airloc.task.photos import FlightConditions
from airloc.task.priors import check_size
from airloc.task.rules import check_budget
from airloc.task.suites import GENERATED, Suite, generate, read_suite

MAX_PER_AREA = 10_000
PROCEDURAL_AREAS = 100
"""Number of procedural areas when no others are named."""


@dataclass(frozen=True, kw_only=True)
class AreaOptions:
    """The areas and the grid laid on them."""

    areas: Path | None = None
    """Folder of images, one area each, or a prepared dataset. Default: 100 procedural areas."""
    dataset: str | None = None
    """Name of a dataset in $AIRLOC_DATA, such as masa, instead of --areas."""
    subset: str = ""
    """Subset of a dataset that has several, such as disaster or all of xbd. Default: that of the dataset."""
    split: str = ""
    """Use only the areas that windows.csv, beside the images, assigns to this split."""
    only: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Use only the areas whose file names match a pattern such as 'santa-rosa-*'. Repeatable."""
    without: UseAppendAction[Annotated[tuple[str, ...], arg(name="except", metavar="PATTERN")]] = ()
    """Leave out the areas whose file names match a pattern. Repeatable."""
    cell_metres: float | None = None
    """Crop areas of known ground size so that a cell is this many metres wide."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Maximum number of moves. Default: twice the longer side of the grid."""
    device: str = "cpu"
    """Device to compute on, such as cpu or cuda."""
    seed: int = 0
    """Random seed for procedural areas, episodes, agents and the bootstrap."""

    def parsed_grid(self) -> Grid:
        """Return the grid."""
        return Grid.parse(self.grid)

    def check(self) -> None:
        """Check the options without reading any image."""
        if self.areas is not None and self.dataset is not None:
            raise AirlocError("--areas and --dataset both name the areas", "Use one of them")
        if self.areas is not None and not self.areas.is_dir():
            raise AirlocError(f"There is no folder {self.areas}", "Check the path")
        if self.dataset is not None and find_kind(self.dataset) is None:
            names = ", ".join(all_datasets())
            raise AirlocError(f"There is no dataset {self.dataset!r}", f"Use one of {names}, or --areas with a folder")
        check_size(self.parsed_grid())
        if self.budget is not None:
            check_budget(self.budget)
        check_device(self.device)
        self.load()

    def load(self, **options: Any) -> Dataset:
        """Return the dataset of the areas, with further options of `load_dataset`."""
        source: str | Path = self.dataset or self.areas or "synthetic"
        if source == "synthetic":
            options = {"count": PROCEDURAL_AREAS, "seed": self.seed, **options}
        if self.subset:
            options["subset"] = self.subset
        return load_dataset(
            source,
            split=self.split,
            cell_metres=self.cell_metres,
            only=self.only,
            without=self.without,
            **options,
        )


@dataclass(frozen=True, kw_only=True)
class PlayOptions(AreaOptions):
    """The areas, the episodes, and how agents play them."""

    goals: Path | None = None
    """Folder to take the goal patches from: the same file name, or its pre_disaster/post_disaster partner."""
    pairs: bool = False
    """Take the goal patches from another day: from the earliest image of each place, as in xbd and naip."""
    episodes: str = "per-distance"
    """Episode file (.csv), or per-distance, all-pairs, uniform or far-pairs."""
    per_area: Annotated[int | None, arg(metavar="EPISODES")] = None
    """Episodes per area. Default: 1 per distance (per-distance), 5 per distance (far-pairs), 4 (uniform)."""
    moves: Literal[8, 4] = 8
    """8: the king's moves. 4: north, east, south and west within a closed border."""
    flight_conditions: Annotated[float | None, arg(metavar="STRENGTH")] = None
    """Glimpses and goals are photos, each with its own position, heading, height, light and compression. 1 is usual."""
    batch: int = 1024
    """Number of episodes played in parallel."""

    def parsed_grid(self) -> Grid:
        """Return the grid with its number of moves."""
        return Grid.parse(self.grid, moves=self.moves)

    def weighs_distances(self) -> bool:
        """Return True if all pairs are weighted so that every distance counts the same."""
        return self.episodes == "all-pairs"

    def described_areas(self) -> set[str] | None:
        """Return the names of the areas whose goals are described in words; None if goals have pictures."""
        return None

    def check(self) -> None:
        """Check the options without reading any image."""
        if self.batch < 1:
            raise AirlocError(f"A batch of {self.batch} episodes is empty", "Use --batch 1 or more")
        self.flight()
        if self.per_area is not None:
            self._check_per_area(self.per_area)
        if self.episodes not in GENERATED and not Path(self.episodes).exists():
            raise AirlocError(
                f"There is no episode file {self.episodes}", f"Check the path, or use one of {', '.join(GENERATED)}"
            )
        if self.goals is not None and self.areas is None:
            cure = "Add --areas, or use --pairs for the days of a dataset"
            raise AirlocError("--goals needs the folder of the areas that the goals belong to", cure)
        if self.pairs and self.goals is not None:
            raise AirlocError("--goals and --pairs both name the goal images", "Use one of them")
        if self.pairs and self.areas is None and self.dataset is None:
            raise AirlocError("--pairs needs images of two days", "Add --dataset, such as --dataset naip, or --areas")
        super().check()

    def flight(self) -> FlightConditions | None:
        """Return the flight conditions, whose photos depend on the seed."""
        return None if self.flight_conditions is None else FlightConditions(self.flight_conditions, self.seed)

    def _check_per_area(self, per_area: int) -> None:
        if self.episodes not in GENERATED or self.episodes == "all-pairs":
            raise AirlocError(f"--episodes {self.episodes} is a fixed list of episodes", "Leave out --per-area")
        if not 1 <= per_area <= MAX_PER_AREA:
            raise AirlocError(f"--per-area {per_area} is out of range", f"Use 1 to {MAX_PER_AREA:,}")


class Episodes(NamedTuple):
    """A suite and the areas it refers to, in its order."""

    suite: Suite
    areas: list[SearchArea]
    goal_areas: list[SearchArea] | None


def load_episodes(options: PlayOptions) -> Episodes:
    """Read or generate the episodes, read exactly the areas they need, and photograph them in flight conditions."""
    episodes, flight = _load_episodes(options), options.flight()
    if flight is None:
        return episodes
    return Episodes(episodes.suite, *flight.apply(episodes.areas, episodes.goal_areas, episodes.suite.grid))


def _load_episodes(options: PlayOptions) -> Episodes:
    """Read or generate the episodes, and read exactly the areas they need."""
    grid = options.parsed_grid()
    if options.episodes in GENERATED:
        areas, goal_areas = _with_texts(options, *_read_areas(options, grid))
        suite = generate(
            options.episodes,
            [area.name for area in areas],
            grid,
            per_area=options.per_area,
            equal_distances=options.weighs_distances(),
            seed=options.seed,
            budget=options.budget,
        )
        return Episodes(suite, areas, goal_areas)
    path = Path(options.episodes)
    suite = read_suite(path, grid, budget=options.budget)
    suite = suite.for_areas(NameFilter(options.only, options.without).select(suite.areas, path))
    areas, goal_areas = _read_areas(options, grid, suite.areas)
    index = {area.name: number for number, area in enumerate(areas)}
    missing = [name for name in suite.areas if name not in index]
    if options.split:
        suite = suite.for_areas([name for name in suite.areas if name in index])
    elif missing:
        raise AirlocError(
            f"The episode file {path} names the area {missing[0]!r}, which is not among the areas",
            "Use --areas with the folder that holds it",
        )
    order = [index[name] for name in suite.areas]
    return Episodes(suite, [areas[i] for i in order], goal_areas and [goal_areas[i] for i in order])


def _read_areas(
    options: PlayOptions, grid: Grid, names: tuple[str, ...] | None = None
) -> tuple[list[SearchArea], list[SearchArea] | None]:
    """Read the areas, or those with these names, and the areas of their goals if they are others."""
    if options.pairs:
        return _unzip(options.load(names=names).pairs(grid))
    if options.goals is None:
        return collect_areas(options.load(names=names).areas(grid)), None
    if options.areas is not None and Prepared.detect(options.goals) and not Prepared.detect(options.areas):
        raise AirlocError(
            f"{options.goals} holds prepared areas, but {options.areas} does not", "Prepare both folders, or neither"
        )
    return _unzip(options.load(goals=options.goals, names=names).pairs(grid))


def _with_texts(
    options: PlayOptions, areas: list[SearchArea], goal_areas: list[SearchArea] | None
) -> tuple[list[SearchArea], list[SearchArea] | None]:
    """Return the areas whose goals are described, if goals are described in words; otherwise all areas."""
    named = options.described_areas()
    if named is None:
        return areas, goal_areas
    kept = [number for number, area in enumerate(areas) if area.name in named]
    if not kept:
        raise AirlocError(
            f"The goal texts describe none of the {len(areas)} areas, such as {areas[0].name!r}",
            "Write them with `airloc data captions` for the same dataset",
        )
    return [areas[number] for number in kept], goal_areas and [goal_areas[number] for number in kept]


def _unzip(pairs: Iterator[tuple[SearchArea, SearchArea]]) -> tuple[list[SearchArea], list[SearchArea]]:
    """Read pairs of areas into two lists."""
    read = list(pairs)
    return [area for area, _ in read], [goal for _, goal in read]


def load_agents(
    names: Sequence[str], options: AgentOptions, require: Callable[[Agent], None] = lambda agent: None
) -> list[Agent]:
    """Make agents by name or checkpoint folder; `require` raises an error for an agent that does not fit."""
    if not names or not all(name.strip() for name in names):
        raise AirlocError("The name of the agent is missing", "Name an agent, such as belief, or a checkpoint folder")
    agents = [make_agent(name, options) for name in names]
    for agent in agents:
        require(agent)
    return agents


def score_agents(agents: Sequence[Agent], suite: Suite, areas: Sequence[SearchArea], *, seed: int = 0) -> list[Score]:
    """Let agents play the same episodes, and return their scores, the best last."""
    with progress_bar("playing", len(suite) * len(agents)) as advance:
        scores = [evaluate(agent, suite, areas, seed=seed, on_batch=advance) for agent in agents]
    return sorted(scores, key=lambda score: score.value("success") or 0.0)
