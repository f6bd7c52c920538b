"""`airloc data`: list, download, prepare and show datasets."""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from airloc.areas import Dataset, Status, all_datasets, data_root, list_datasets, load_dataset
from airloc.areas.download import Progress, Timeouts
from airloc.areas.prepared import check_free, write_prepared
from airloc.cli.console import PICTURES, check_suffix, say
from airloc.drawing.sheet import contact_sheet, draw_grid
from airloc.errors import AirlocError
from airloc.files import check_writable, save_picture, write_atomically
from airloc.grid import Grid
from airloc.task.goal_texts import describe_areas, write_goal_texts

MIN_TILE = 16
MAX_SHEET_PIXELS = 100_000_000
"""Largest contact sheet, in pixels."""

if TYPE_CHECKING:
    AnyDataset: TypeAlias = Dataset
    FetchName: TypeAlias = str
else:
    _KINDS = all_datasets()
    AnyDataset = reduce(operator.or_, (Annotated[kind, tyro.conf.subcommand(name)] for name, kind in _KINDS.items()))
    FetchName = Literal[tuple(name for name, kind in _KINDS.items() if kind.location_option == "root")]


@dataclass(frozen=True)
class List:
    """List the datasets that are present, their number of areas, and the difference from the paper."""

    root: Path | None = None
    """Folder of all datasets; $AIRLOC_DATA if not given."""

    def run(self) -> None:
        """Print the table."""
        root = self.root or data_root()
        table = Table("dataset", "found", "areas of 5x5", "paper", "difference", title=f"Data in {escape(str(root))}")
        notes = []
        with Console(stderr=True).status("counting areas"):
            for status in list_datasets(root):
                table.add_row(*map(escape, _row(status)))
                notes.append(_note(status))
        Console().print(table)
        print("\n".join(notes))


@dataclass(frozen=True)
class Fetch:
    """Download a dataset, or print where to get it. An interrupted download resumes when it is run again."""

    dataset: tyro.conf.Positional[FetchName]
    """The dataset."""
    root: Path | None = None
    """Folder to write to; the dataset's name under $AIRLOC_DATA if not given."""
    mirror: str = ""
    """Address to download from; the dataset's own site if not given."""
    timeout: float = Timeouts.timeout
    """Seconds to wait for a server that sends nothing."""
    attempts: int = Timeouts.attempts
    """Attempts in a row without a new byte before giving up."""
    pause: float = Timeouts.pause
    """Seconds before the second attempt; doubled before each further one."""

    def run(self) -> None:
        """Download with a progress bar."""
        timeouts = Timeouts(self.timeout, self.attempts, self.pause)
        dataset = load_dataset(self.dataset, root=self.root)
        if dataset.obtain:
            dataset.download()  # raises an error that says where to get the data
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[at]}"))
        with ProgressBar(*columns, console=Console(stderr=True)) as bar:
            files = bar.add_task("files", total=None, at="listing")
            progress = Progress(
                listed=lambda count: bar.update(files, total=count),
                bytes=lambda name, done, total: bar.update(files, at=_bytes(name, done, total)),
                file=lambda name: bar.advance(files),
            )
            result = dataset.download(mirror=self.mirror, timeouts=timeouts, progress=progress)
        say(f"{dataset.location}: {result.new} files downloaded, {result.kept} present already")


@dataclass(frozen=True)
class Prepare:
    """Write a dataset's areas to a memory-mapped folder, for training and evaluation that start at once."""

    dataset: AnyDataset
    """The dataset."""
    out: Path
    """Folder to write."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    overwrite: bool = False
    """Replace prepared areas that are in the folder."""

    def run(self) -> None:
        """Write with a counter."""
        grid = Grid.parse(self.grid)
        check_free(self.out, self.overwrite)
        columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} areas"), TextColumn("{task.fields[at]}"))
        with ProgressBar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("areas", total=None, at="")
            prepared = write_prepared(
                self.dataset.areas(grid),
                grid,
                self.out,
                source={"name": self.dataset.name, **asdict(self.dataset)},
                overwrite=self.overwrite,
                on_area=lambda area: bar.update(task, advance=1, at=escape(area.name)),
            )
        masks = sum(entry["mask"] is not None for entry in prepared.entries)
        say(f"{self.out}: {len(prepared)} areas for a grid of {grid}, {masks} with masks")


@dataclass(frozen=True)
class Show:
    """Write a contact sheet of a dataset's first areas, with the grid drawn over them."""

    dataset: AnyDataset
    """The dataset."""
    out: Path = Path("sheet.png")
    """File to write, PNG or JPEG by its suffix."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    limit: int = 24
    """Largest number of areas."""
    columns: int = 6
    """Areas per row."""
    tile: int = 256
    """Side of each area on the sheet in pixels."""
    plain: bool = False
    """Leave out the grid."""

    def run(self) -> None:
        """Draw and write."""
        grid = Grid.parse(self.grid)
        if self.columns < 1:
            raise AirlocError(f"A sheet of {self.columns} columns shows nothing", "Give --columns of 1 or more")
        check_suffix(self.out, *PICTURES)
        _check_sheet("areas", self.limit, self.limit, self.tile)
        check_writable(self.out)
        with Console(stderr=True).status("reading areas"):
            areas = list(itertools.islice(self.dataset.areas(grid), self.limit))
        images = [area.image if self.plain else draw_grid(area.image, grid) for area in areas]
        sheet = contact_sheet(images, [area.name for area in areas], columns=self.columns, tile=self.tile)
        save_picture(sheet, self.out)
        say(f"{self.out}: {len(areas)} areas on a grid of {grid}")


@dataclass(frozen=True)
class Photos:
    """Write a contact sheet of photos in flight conditions: one cell of each of a dataset's first areas, in a row."""

    dataset: AnyDataset
    """The dataset."""
    out: Path = Path("photos.png")
    """File to write, PNG or JPEG by its suffix."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    strengths: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Strengths of the flight conditions, each with a glimpse and a goal."""
    limit: int = 6
    """Largest number of areas."""
    tile: int = 128
    """Side of each photo on the sheet in pixels."""

    def run(self) -> None:
        """Draw and write."""
        from airloc.reports.searches import photos_sheet  # PyTorch takes a moment, and only photos need it
        from airloc.task.photos import ROLES, check_strength

        grid = Grid.parse(self.grid)
        for strength in self.strengths:
            check_strength(strength)
        check_suffix(self.out, *PICTURES)
        _check_sheet("photos", self.limit, self.limit * (1 + len(ROLES) * len(self.strengths)), self.tile)
        check_writable(self.out)
        with Console(stderr=True).status("reading areas"):
            areas = list(itertools.islice(self.dataset.areas(grid), self.limit))
        save_picture(photos_sheet(areas, grid, self.strengths, tile=self.tile), self.out)
        say(f"{self.out}: photos of {len(areas)} cells")


@dataclass(frozen=True)
class Captions:
    """Write a description in words for every cell of the areas whose land cover is known, as goals for evaluation."""

    dataset: AnyDataset
    """The dataset."""
    out: Path = Path("texts.csv")
    """CSV file to write: area, goal_row, goal_col, text, and the cells that the text fits."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    detail: Literal["vague", "plain", "detailed"] = "detailed"
    """How much the descriptions say."""
    wrong: bool = False
    """Write one clause of every description about another cell."""
    text_seed: int = 0
    """Random seed of the words."""

    def run(self) -> None:
        """Write with a counter."""
        grid = Grid.parse(self.grid)
        check_writable(self.out)
        with Console(stderr=True).status("describing cells"):
            rows = describe_areas(self.dataset, grid, detail=self.detail, wrong=self.wrong, seed=self.text_seed)
        write_atomically(self.out, write_goal_texts(rows))
        say(f"{self.out}: {len(rows)} descriptions of cells in {len({area for area, _, _ in rows})} areas")


def main(arguments: Sequence[str]) -> None:
    """Run `airloc data`."""
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.CascadeSubcommandArgs)
    command: List | Fetch | Prepare | Show | Photos | Captions = tyro.extras.subcommand_cli_from_dict(
        {"list": List, "fetch": Fetch, "prepare": Prepare, "show": Show, "photos": Photos, "captions": Captions},
        args=arguments,
        prog="airloc data",
        description="List, download, prepare and show datasets.",
        config=config,
    )
    command.run()


def _check_sheet(what: str, limit: int, tiles: int, tile: int) -> None:
    """Refuse a sheet that cannot be drawn, before anything is read."""
    if limit < 1 or tile < MIN_TILE:
        raise AirlocError(
            f"A sheet with --limit {limit} and --tile {tile} shows nothing",
            f"Give --limit of 1 or more, and --tile of {MIN_TILE} or more",
        )
    if tiles * tile**2 > MAX_SHEET_PIXELS:
        raise AirlocError(
            f"A sheet of {tiles} {what} of {tile} x {tile} px is larger than "
            f"{MAX_SHEET_PIXELS // 1_000_000} million pixels",
            "Give a smaller --tile, or a smaller --limit",
        )


def _row(status: Status) -> tuple[str, ...]:
    """Return one row of the table."""
    compared = status.state == "published layout" and status.expected
    differences = ", ".join(f"{gap:+d} {split}" for split, gap in status.differences.items())
    return (
        status.name,
        status.state,
        _counts(status.areas),
        _counts(status.expected),
        differences or ("none" if compared else ""),
    )


def _note(status: Status) -> str:
    """Return the location of a dataset, and the command that shows or gets it."""
    parts = [f"`airloc data show {status.command}`" if status.command else "", status.remark]
    return f"{status.name} ({status.location}): {'; '.join(part for part in parts if part)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _bytes(name: str, done: int, total: int | None) -> str:
    return f"{escape(name)} {done / 1e6:.1f}" + (f"/{total / 1e6:.1f} MB" if total else " MB")
