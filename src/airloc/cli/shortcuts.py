"""`airloc analyse shortcuts` and `airloc analyse puzzles`: what agents and training puzzles owe to the pixels."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import DEFAULT_AGENT
from airloc.areas.area import SearchArea, crop_ground, cut_pieces, piece_size
from airloc.areas.registry import load_dataset
from airloc.cli.console import check_suffix, collect_areas, progress_bar, status, writable_outputs
from airloc.cli.options import AreaOptions, load_agents
from airloc.errors import AirlocError
from airloc.evaluation.conditions import CONDITIONS, Condition
from airloc.evaluation.scores import to_json
from airloc.evaluation.shortcuts import phase_preference, play_conditions, playable, shortcut_record
from airloc.files import write_atomically
from airloc.reports.shortcuts import shortcut_chart, shortcut_page, shortcut_table
from airloc.reports.tables import percent, percent_interval
from airloc.task.suites import generate
from airloc.training.block_probe import ProbeResult, PuzzleRecipe, probe_puzzles

CLAIM_FAILS = 1
"""Exit status of --strict if the claim fails."""


@dataclass(frozen=True, kw_only=True)
class Shortcuts(AreaOptions):
    """Play agents under conditions that carry no information about place: compression, resampling, mirrors and more."""

    agents: Positional[tuple[str, ...]] = (DEFAULT_AGENT,)
    """Names of agents, or checkpoint folders. All play the same episodes."""
    cut: int | None = None
    """Cut each image into pieces whose longer side has this many pixels. Default: an image is one area."""
    per_area: Annotated[int, arg(metavar="EPISODES")] = 1
    """Episodes per area and distance."""
    conditions: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Only the conditions whose names match a pattern such as 'jpeg-75*'. Repeatable. Default: all."""
    pairs: int = 200
    """Pairs of unrelated patches."""
    batch: int = 1024
    """Number of episodes played in parallel."""
    before: Annotated[Path | None, arg(metavar="OLD.json")] = None
    """The --json file of earlier weights, to show in --page too."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the numbers to this file."""
    page: Annotated[Path | None, arg(metavar="OUT.md")] = None
    """Write the table of all agents to this file, as Markdown."""
    chart: Annotated[Path | None, arg(metavar="OUT.svg")] = None
    """Write the chart of JPEG 75 to this file."""
    strict: bool = False
    """Exit with status 1 if the claim fails for an agent."""

    def check(self) -> None:
        """Check the options without reading any image."""
        _check_counts(cut=self.cut, per_area=self.per_area, pairs=self.pairs, batch=self.batch)
        check_suffix(self.chart, ".svg")
        self.chosen()
        super().check()

    def chosen(self) -> dict[str, Condition]:
        """Return the conditions to play."""
        for pattern in self.conditions:
            if not any(fnmatchcase(name, pattern) for name in CONDITIONS):
                raise AirlocError(f"There is no condition {pattern!r}", f"Conditions are: {', '.join(CONDITIONS)}")
        names = [name for name in CONDITIONS if any(fnmatchcase(name, each) for each in self.conditions or ("*",))]
        return playable(names, self.parsed_grid())

    def run(self) -> None:
        """Play the episodes under all conditions, compare, write and print."""
        self.check()
        before = None if self.before is None else _read_records(self.before)
        with writable_outputs(self.json, self.page, self.chart):
            records = self._play()
            if self.json is not None:
                write_atomically(self.json, to_json(records))
            if self.page is not None:
                write_atomically(self.page, shortcut_page(records, before))
            if self.chart is not None:
                write_atomically(self.chart, shortcut_chart(records))
        for record in records.values():
            Console().print(shortcut_table(record))
        if self.strict and not all(record["holds"] for record in records.values()):
            sys.exit(CLAIM_FAILS)

    def _play(self) -> dict[str, dict[str, Any]]:
        """Return the record of each agent."""
        agents = load_agents(list(dict.fromkeys(self.agents)), AgentOptions(seed=self.seed, device=self.device))
        grid, conditions, areas = self.parsed_grid(), self.chosen(), self._areas()
        names = [area.name for area in areas]
        suite = generate("per-distance", names, grid, per_area=self.per_area, seed=self.seed, budget=self.budget)
        total = len(suite) * (len(conditions) + 1) * len(agents)
        status(f"Playing {len(suite):,} episodes clean and under {len(conditions)} conditions")
        records = {}
        with progress_bar("playing", total) as advance:
            for agent in agents:
                outcomes = []
                for outcome in play_conditions(
                    agent,
                    suite,
                    areas,
                    conditions,
                    seed=self.seed,
                    batch=self.batch,
                    device=self.device,
                    on_batch=advance,
                ):
                    outcomes.append(outcome)
                    status(f"{agent.name}, {outcome.title}: {percent(outcome.score.value('success'))} %")
                preference = phase_preference(agent, areas, grid, pairs=self.pairs, seed=self.seed)
                records[agent.name] = shortcut_record(outcomes, preference)
        return records

    def _areas(self) -> list[SearchArea]:
        """Read the areas at their own resolution."""
        grid = self.parsed_grid()
        images = collect_areas(self.load().images())
        if self.cell_metres is not None:
            metres = (grid.rows * self.cell_metres, grid.cols * self.cell_metres)
            images = [cropped for image in images if (cropped := crop_ground(image, metres)) is not None]
        if self.cut is not None:
            images = [piece for image in images for piece in cut_pieces(image, piece_size(self.cut, grid))]
        if not images:
            raise AirlocError("No image is large enough for an area", "Use a smaller --cut or --cell-metres")
        return images


@dataclass(frozen=True, kw_only=True)
class Puzzles:
    """Predict directions in training puzzles from block boundaries alone: a linear probe, which should find little."""

    datasets: Positional[tuple[str, ...]] = ("masa", "naip")
    """Datasets in $AIRLOC_DATA."""
    images: int = 80
    """Images of each dataset, evenly spaced; every other one is for the test."""
    puzzles: int = 200
    """Puzzles of 3 x 3 cells to fit to, and as many to test on."""
    recipe: PuzzleRecipe = field(default_factory=PuzzleRecipe)
    """Augmentations of the training, to compare with plain crops."""
    seed: int = 0
    """Random seed of the puzzles."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the accuracies to this file."""

    def run(self) -> None:
        """Probe plain crops and training puzzles of every dataset, write and print."""
        _check_counts(images=self.images, puzzles=self.puzzles)
        with writable_outputs(self.json):
            found = {name: self._probe(name) for name in self.datasets}
            if self.json is not None:
                records = {name: {kind: each.record() for kind, each in kinds.items()} for name, kinds in found.items()}
                write_atomically(self.json, to_json(records))
        table = Table("Dataset", "Puzzles", "Directions named %", "95 %", "Pairs")
        for name, kinds in found.items():
            for kind, each in kinds.items():
                table.add_row(name, kind, percent(each.accuracy), percent_interval(each.ci95), f"{each.pairs:,}")
        table.add_row("chance", "", "12.5", style="italic")
        Console().print(table)

    def _probe(self, name: str) -> Mapping[str, ProbeResult]:
        dataset = load_dataset(name)
        records = dataset.records()
        step = max(1, len(records) // self.images)
        images = [dataset.read(record) for record in records[::step][: self.images]]
        status(f"Probing {self.puzzles} puzzles of {len(images)} images of {name}")
        exact, augmented = (
            replace(self.recipe, augmentation=replace(self.recipe.augmentation, exact_probability=probability))
            for probability in (1.0, 0.0)
        )
        kinds = {
            "plain crops": None,
            "training": self.recipe,
            "training, exact areas": exact,
            "training, augmented areas": augmented,
        }
        return {
            kind: probe_puzzles(images, areas=self.puzzles, recipe=recipe, seed=self.seed)
            for kind, recipe in kinds.items()
        }


def _check_counts(**counts: int | None) -> None:
    """Raise an error for an option, by its name, that is less than 1."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise AirlocError(f"--{name.replace('_', '-')} {count} is out of range", "Use 1 or more")


def _read_records(path: Path) -> dict[str, Any]:
    """Read a file that --json wrote."""
    try:
        records: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AirlocError(f"Cannot read {path}: {error}", "Name a file that --json wrote") from error
    if not isinstance(records, dict) or not all("conditions" in each for each in records.values()):
        raise AirlocError(f"{path} is not a record of shortcuts", "Name a file that --json wrote")
    return records
