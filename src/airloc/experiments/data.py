"""How much is computed: a look, a try, or all that the paper did."""

import csv
import io
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from airloc.areas.area import SearchArea
from airloc.areas.dubai import Dubai
from airloc.areas.folder import INDEX, MASKS, Folder, read_windows
from airloc.areas.masa import Masa
from airloc.areas.pairs import Names
from airloc.areas.prepared import write_prepared
from airloc.areas.registry import SOURCES, choose_source, load_pairs
from airloc.areas.synthetic import Synthetic
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError
from airloc.experiments.graph import Job, Task
from airloc.experiments.store import folder_digest
from airloc.files import save_png
from airloc.grid import Grid
from airloc.training.pipeline import PRESETS as TRAININGS
from airloc.training.pipeline import AirlocConfig

SIZES = (
    "segmenter_steps",
    "embedder_steps",
    "embedder_blocks",
    "areas",
    "episodes",
    "batch",
    "learning_rate",
    "validate_every",
)
"""The settings of a training that presets decide."""


@dataclass(frozen=True)
class Preset:
    """How much is computed."""

    training: Mapping[str, Any]
    """`SIZES` of the training."""
    pictures: int
    """Procedural pictures to train on, where there is no data."""
    checked: int
    """Procedural pictures to check training on."""
    worlds: int
    """Procedural areas to fly over."""
    most: int | None
    """Areas of real data to fly over, at most."""


def _sizes(config: AirlocConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in SIZES}


PRESETS: dict[str, Preset] = {
    "smoke": Preset(
        training={
            "segmenter_steps": 8,
            "embedder_steps": 40,
            "embedder_blocks": 4,
            "areas": 2,
            "episodes": 1024,
            "batch": 64,
            "learning_rate": 1e-3,
            "validate_every": 8,
        },
        pictures=4,
        checked=2,
        worlds=6,
        most=6,
    ),
    "fast": Preset(_sizes(TRAININGS["fast"]), pictures=60, checked=8, worlds=40, most=40),
    "paper": Preset(_sizes(TRAININGS["paper"]), pictures=832, checked=40, worlds=178, most=None),
}
"""`smoke`: minutes on two CPU cores, to see that everything runs; its numbers mean nothing. `fast`: trainings that two
cores can do. `paper`: the paper's numbers, for a GPU."""


# ---------- Where the data of the paper's experiments comes from: what a folder holds, or procedural stand-ins.
# ~

PLACES = {"masa": "masa", "dubai": "dubai", "xbd-pre": "xbd", "xbd-disaster": "xbd"}
"""The folder, under the root, of each role that data has in the paper."""

TITLES = {"masa": "Massachusetts", "dubai": "Dubai", "xbd-pre": "xBD-pre", "xbd-disaster": "xBD-disaster"}

STAND_INS: dict[str, dict[str, Any]] = {
    "masa": {},
    "dubai": {"regime": "desert"},
    "xbd-pre": {},
    "xbd-disaster": {"disaster": "burnt"},
}
"""What procedural areas stand for each role."""

SEEDS = {
    ("masa", "train"): 900,
    ("masa", "val"): 901,
    ("masa", "test"): 902,
    ("dubai", "test"): 903,
    ("xbd-pre", "train"): 904,
    ("xbd-pre", "val"): 905,
    ("xbd-disaster", "test"): 906,
}
"""Procedural worlds of each role and split; none are shared."""


@dataclass(frozen=True)
class Sources:
    """The data of a reproduction."""

    root: Path | None
    """The folder of datasets; None for procedural areas."""
    preset: Preset

    def __post_init__(self) -> None:
        if self.root is None:
            return
        if not self.root.is_dir():
            raise AirlocError(
                f"There is no data folder {self.root}", "Check --data, or leave it out for procedural areas"
            )
        if not any(self.has(role) for role in PLACES):
            raise AirlocError(
                f"The data folder {self.root} holds none of {', '.join(sorted(set(PLACES.values())))}",
                "Run `airloc data list` to see what is there, or leave --data out for procedural areas",
            )

    def has(self, role: str) -> bool:
        """Whether there is data for a role."""
        return self.root is None or (self.root / PLACES[role]).is_dir()

    def require(self, role: str, what: str) -> None:
        """Refuse to go on without the data of a role.

        Raises:
            AirlocError: When it is not there.
        """
        if not self.has(role):
            raise AirlocError(
                f"{what} needs {TITLES[role]}, and there is no folder {PLACES[role]!r} in {self.root}",
                f"Run `airloc data fetch {PLACES[role]}`, or ask for another table or figure",
            )

    def pictures(self, role: str) -> Task:
        """The task that gathers pictures to train on."""
        settings: dict[str, Any]
        name = f"pictures of {TITLES[role]}"
        if self.root is None:
            parts = {"train": self.preset.pictures, "val": self.preset.checked}
            splits = {split: {"seed": SEEDS[role, split], "count": count} for split, count in parts.items()}
            return Task("pictures", name, {"of": "synthetic", "splits": splits, **STAND_INS[role]})
        folder = self.root / PLACES[role]
        settings = {"of": self._kind(role), "data": _digest(folder)}
        if settings["of"] != "windows":
            settings["splits"] = {"train": {"count": None}, "val": {"count": 40}}
        if settings["of"] == "xbd":
            settings["subset"] = "pre"
        return Task("pictures", name, settings, source=folder)

    def areas(self, role: str, split: str, grid: str) -> Task:
        """The task that gathers areas to fly over."""
        name = f"areas of {TITLES[role]} ({split}), {grid}"
        settings: dict[str, Any] = {"split": split, "grid": grid}
        if self.root is None:
            worlds = {"of": "synthetic", "seed": SEEDS[role, split], "count": self.preset.worlds, **STAND_INS[role]}
            return Task("areas", name, settings | worlds)
        folder, kind = self.root / PLACES[role], self._kind(role)
        settings |= {"of": kind, "count": self.preset.most, "data": _digest(folder)}
        if kind == "windows":
            settings["split"] = self._window_split(folder, split)
        if kind == "xbd":
            settings["subset"] = "disaster"
        return Task("areas", name, settings, source=folder)

    def remarks(self) -> list[str]:
        """What differs from the paper's data."""
        if self.root is None:
            return [
                "The areas are procedural ones that stand for the paper's data: the figures show that everything runs, "
                "and nothing about the paper."
            ]
        said = []
        if self.has("masa") and self._kind("masa") == "windows":
            said.append(
                "Massachusetts: windows of its tiles, not the paper's 832 + 178 + 178 areas. Where there is no test "
                "split, the windows to validate on stand for the paper's test set too."
            )
        if self.has("dubai"):
            said.append("Dubai: the areas that the loader finds (154 of 5 x 5 in the whole set), not the paper's 196.")
        if self.has("xbd-disaster"):
            said.append("xBD: the pictures that are there, not all of the paper's 902 (pre) and 1303 (disaster).")
        missing = sorted({TITLES[role] for role in PLACES if not self.has(role)})
        return said + ([f"Not there: {', '.join(missing)}."] if missing else [])

    def _kind(self, role: str) -> str:
        """How the data of a role is read."""
        assert self.root is not None
        place = PLACES[role]
        return "windows" if place == "masa" and (self.root / place / INDEX).is_file() else place

    @staticmethod
    def _window_split(folder: Path, split: str) -> str:
        """The split of windows for one of the paper: those to validate on where there are none to test."""
        there = {window.split for window in _windows(folder).values()}
        return split if split in there else "val"


def _windows(folder: Path) -> Mapping[str, Any]:
    return read_windows(folder / "images" if (folder / "images").is_dir() else folder)


@lru_cache
def _digest(folder: Path) -> str:
    return folder_digest(folder)


# ---------- Tasks that gather data: pictures to train on, and areas to fly over.
# ~
# ~ They alone read the user's data; all others build on their results, which can be sent to any machine.

PICTURES = "pictures"
"""The set, under the folder of a result, that training reads."""

CELL_METRES = 100.0

Item = TypeVar("Item")

Row: TypeAlias = tuple[str, str, str, str]
"""Picture, mask, metres of its side, split."""

RAW = {"masa": Grid(5, 5, 100, 0), "xbd": Grid(4, 4, 128, 0), "synthetic": Grid(7, 7)}
"""Grids under which areas to train on are cut: at the data's own 1 m a pixel, at 512 px, and of 672 m."""


def gather_pictures(job: Job) -> None:
    """Write pictures to train on, with masks and an index that names splits and ground sizes."""
    folder = job.out / PICTURES
    if job.settings["of"] == "windows":
        _copy_windows(_source(job), folder)
        return
    rows: list[Row] = []
    for split, part in job.settings["splits"].items():
        settings = {**job.settings, "split": split, **part}
        for area in spread(list(read_areas(settings, job.source, RAW[job.settings["of"]])), part["count"]):
            name = f"{len(rows):05d}.png"
            save_png(area.image, folder / "images" / name)
            if area.mask is not None:
                save_png(area.mask.astype(np.uint8) * 255, folder / MASKS / name)
            side = "" if area.ground_m is None else f"{area.ground_m[1]:g}"
            rows.append((name, name if area.mask is not None else "", side, split))
            job.say(f"{len(rows)} pictures")
    _write_index(folder, rows)


def gather_areas(job: Job) -> None:
    """Write areas to fly over, cut and fitted to a grid."""
    grid = Grid.parse(job.settings["grid"])
    areas = spread(list(read_areas(job.settings, job.source, grid)), job.settings["count"])
    if not areas:
        raise AirlocError(f"The data in {job.source} holds no area of {grid} cells", "Give larger pictures")
    write_prepared(iter(areas), grid, job.out, source=job.settings)


def read_areas(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    """Read the areas of a split of some data under a grid."""
    return READERS[settings["of"]](settings, source, grid)


def _synthetic(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    del source
    disaster = settings.get("disaster")
    areas = Synthetic(settings["count"], settings["seed"], settings.get("regime"), disaster).areas(grid)
    return (area for area in areas if disaster is None or area.name.endswith("post_disaster"))


def _windows_gathering(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    assert source is not None
    return Folder(_pictures_of(source), split=settings["split"], cell_metres=CELL_METRES).areas(grid)


def _xbd(settings: Mapping[str, Any], source: Path | None, grid: Grid) -> Iterator[SearchArea]:
    """Pictures of xBD; of those to train on every tenth is set aside to check training on."""
    areas = Xbd(source, subset=settings["subset"]).areas(grid)
    if settings["subset"] == "disaster":
        return areas
    return (area for number, area in enumerate(areas) if (number % 10 == 9) == (settings["split"] == "val"))


READERS: dict[str, Callable[[Mapping[str, Any], Path | None, Grid], Iterator[SearchArea]]] = {
    "synthetic": _synthetic,
    "windows": _windows_gathering,
    "masa": lambda settings, source, grid: Masa(source, split=settings["split"]).areas(grid),
    "dubai": lambda settings, source, grid: Dubai(source).areas(grid),
    "xbd": _xbd,
}
"""How each kind of data is read."""


def spread(found: Sequence[Item], count: int | None) -> list[Item]:
    """All of what was found, or so many of them, evenly spread."""
    if count is None or len(found) <= count:
        return list(found)
    return [found[int(number)] for number in np.linspace(0, len(found) - 1, count).round()]


def _copy_windows(source: Path, folder: Path) -> None:
    """Copy the windows to train and to validate on, with their masks, under the names that they have."""
    pictures = _pictures_of(source)
    rows: list[Row] = []
    (folder / "images").mkdir(parents=True)
    (folder / MASKS).mkdir()
    for name, window in sorted(read_windows(pictures).items()):
        if window.split not in ("train", "val") or not (pictures / name).is_file():
            continue
        shutil.copyfile(pictures / name, folder / "images" / name)
        if window.mask is not None:
            shutil.copyfile(window.mask, folder / MASKS / window.mask.name)
        side = "" if window.side_m is None else f"{window.side_m:g}"
        rows.append((name, window.mask.name if window.mask else "", side, window.split))
    _write_index(folder, rows)


def _write_index(folder: Path, rows: list[Row]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("image", "mask", "side_m", "split"), *rows])
    (folder / INDEX).write_text(text.getvalue(), encoding="utf-8")


def _pictures_of(source: Path) -> Path:
    return source / "images" if (source / "images").is_dir() else source


def _source(job: Job) -> Path:
    assert job.source is not None
    return job.source


# ---------- Tasks that read what a suite is flown over: its areas and, where those are others, the pictures of its goals.
# ~
# ~ Areas are read by the same functions as `airloc data prepare` and `airloc evaluate` read them, so that a suite here is
# ~ the suite of its command.

AREAS, GOALS = "areas", "goals"
"""The prepared folders under the folder of a result."""


def gather_ground(job: Job) -> None:
    """Write the areas of a suite, and the pictures that its goals are taken from."""
    grid = Grid.parse(job.settings["grid"])
    flown, shown = _read(job, grid)
    kept = spread(range(len(flown)), job.settings["most"])
    _write(flown, kept, grid, job.out / AREAS, job)
    if shown is not None:
        _write(shown, kept, grid, job.out / GOALS, job)


def _read(job: Job, grid: Grid) -> tuple[list[SearchArea], list[SearchArea] | None]:
    """The areas and, where they are others, the pictures of the goals, one for each."""
    settings, where = job.settings, job.source
    if settings["prepare"] is not None:
        where = _prepare(settings["prepare"], job.source, grid, job.run / "cache")
    assert where is not None
    names = Names(tuple(settings["only"]), tuple(settings["except"]))
    if settings["goals"]:
        return load_pairs(where, where, grid, split=settings["split"], cell_metres=settings["cell_metres"], names=names)
    source = choose_source(where, split=settings["split"], cell_metres=settings["cell_metres"], names=names)
    return list(source.areas(grid)), None


def _prepare(told: dict[str, Any], source: Path | None, grid: Grid, cache: Path) -> Path:
    """Do what `airloc data prepare` is told."""
    options = told["options"] if source is None else {**told["options"], told["placed"]: source}
    write_prepared(SOURCES[told["source"]](**options).areas(grid), grid, cache, source=told, overwrite=True)
    return cache


def _write(areas: Sequence[SearchArea], kept: Sequence[int], grid: Grid, out: Path, job: Job) -> None:
    job.say(f"{len(kept)} areas")
    write_prepared((areas[number] for number in kept), grid, out, source=dict(job.settings))
