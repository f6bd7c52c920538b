"""`airloc data`: what data is there, fetching it, preparing it for training, looking at it."""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from airloc.areas import DATASETS, Dataset, Status, data_root, list_datasets, load_dataset
from airloc.areas.download import MASA_URL, Timeouts
from airloc.areas.prepared import check_free, write_prepared
from airloc.drawing.sheet import contact_sheet, draw_grid
from airloc.errors import AirlocError
from airloc.files import save_picture
from airloc.grid import Grid

if TYPE_CHECKING:
    Source: TypeAlias = Dataset
else:
    Source = reduce(operator.or_, (Annotated[kind, tyro.conf.subcommand(name)] for name, kind in DATASETS.items()))


@dataclass(frozen=True)
class List:
    """Say which datasets are there, how many areas they give, and how that differs from the paper."""

    root: Path | None = None
    """The folder of all datasets; $AIRLOC_DATA if not given."""

    def run(self) -> None:
        """Print the table."""
        root = self.root or data_root()
        table = Table("dataset", "found", "areas of 5x5", "paper", "difference", title=f"Data in {escape(str(root))}")
        notes = []
        with Console(stderr=True).status("counting areas"):
            for found in list_datasets(root):
                table.add_row(*map(escape, _row(found)))
                notes.append(_note(found))
        console = Console()
        console.print(table)
        for note in notes:
            console.print(note, highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Fetch:
    """Download a dataset, or say where it is had; run again, it goes on where it broke off."""

    dataset: tyro.conf.Positional[str]
    """The dataset."""
    root: Path | None = None
    """The folder to write to; the dataset's name under $AIRLOC_DATA if not given."""
    mirror: str = MASA_URL
    """Where the files of masa are."""
    timeout: float = Timeouts.timeout
    """Seconds to wait for a server that sends nothing."""
    attempts: int = Timeouts.attempts
    """Tries in a row without a new byte before giving up."""
    pause: float = Timeouts.pause
    """Seconds before the second try; doubled before each further one."""

    def run(self) -> None:
        """Download with a progress bar."""
        dataset = load_dataset(self.dataset, root=self.root or data_root() / self.dataset)
        root = dataset.location
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[at]}"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            files = bar.add_task("files", total=None, at="")
            fetched = dataset.download(
                mirror=self.mirror,
                timeouts=Timeouts(self.timeout, self.attempts, self.pause),
                on_listed=lambda count: bar.update(files, total=count),
                on_bytes=lambda name, done, total: bar.update(files, at=_bytes(name, done, total)),
                on_file=lambda name: bar.advance(files),
            )
        Console().print(f"{root}: {fetched.new} files fetched, {fetched.kept} there already", highlight=False)


@dataclass(frozen=True)
class Prepare:
    """Write a source's areas as a compact, memory-mapped folder, so that training starts in a second."""

    source: Source
    """Where the areas come from."""
    out: Path
    """The folder to write."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    overwrite: bool = False
    """Replace prepared areas that are there already."""

    def run(self) -> None:
        """Write with a counter."""
        grid = Grid.parse(self.grid)
        check_free(self.out, self.overwrite)
        columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} areas"), TextColumn("{task.fields[at]}"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("areas", total=None, at="")
            prepared = write_prepared(
                self.source.areas(grid),
                grid,
                self.out,
                source=_describe(self.source),
                overwrite=self.overwrite,
                on_area=lambda area: bar.update(task, advance=1, at=escape(area.name)),
            )
        masks = sum(entry["mask"] is not None for entry in prepared.entries)
        Console().print(
            f"{self.out}: {len(prepared)} areas for a grid of {grid}, {masks} with masks", highlight=False, markup=False
        )


@dataclass(frozen=True)
class Show:
    """Write a contact sheet of a source's first areas, with the grid laid over them."""

    source: Source
    """Where the areas come from."""
    out: Path = Path("sheet.png")
    """The picture to write, PNG or JPEG by its name."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    limit: int = 24
    """At most this many areas."""
    columns: int = 6
    """Areas in a row."""
    tile: int = 256
    """Side of each area on the sheet in pixels."""
    plain: bool = False
    """Without the grid."""

    def run(self) -> None:
        """Draw and write."""
        grid = Grid.parse(self.grid)
        areas = list(itertools.islice(self.source.areas(grid), max(0, self.limit)))
        if not areas:
            raise AirlocError("There is no area to show", "Ask for a --limit of 1 or more, or for another source")
        images = [area.image if self.plain else draw_grid(area.image, grid) for area in areas]
        sheet = contact_sheet(images, [area.name for area in areas], columns=self.columns, tile=self.tile)
        save_picture(sheet, self.out)
        Console().print(f"{self.out}: {len(areas)} areas on a grid of {grid}", highlight=False, markup=False)


Command: TypeAlias = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Fetch, tyro.conf.subcommand("fetch")]
    | Annotated[Prepare, tyro.conf.subcommand("prepare")]
    | Annotated[Show, tyro.conf.subcommand("show")]
)


def main(args: Sequence[str]) -> None:
    """Run `airloc data` with the arguments that follow these words."""
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.CascadeSubcommandArgs)
    command: List | Fetch | Prepare | Show = tyro.cli(
        Command,
        args=list(args),
        prog="airloc data",
        description="What data is there, fetching it, preparing it for training, looking at it.",
        config=config,
    )
    command.run()


def _row(found: Status) -> tuple[str, ...]:
    """Return one row of the table."""
    return (
        found.name,
        found.state,
        _counts(found.areas),
        _counts(found.expected),
        ", ".join(f"{gap:+d} {split}" for split, gap in found.differences.items())
        or ("none" if found.state == "published layout" and found.expected else ""),
    )


def _note(found: Status) -> str:
    """Return where a dataset was looked for, and the command that reads or gets it."""
    parts = [f"`airloc data show {found.command}`" if found.command else "", found.remark]
    return f"{found.name} ({found.location}): {'; '.join(part for part in parts if part)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _bytes(name: str, done: int, total: int | None) -> str:
    return f"{escape(name)} {done / 1e6:.1f}" + (f"/{total / 1e6:.1f} MB" if total else " MB")


def _describe(source: Dataset) -> dict[str, Any]:
    """Return the name and the options of a dataset, for the index of prepared areas."""
    return {"name": source.name, **asdict(source)}
