"""Tasks that read what a suite is flown over: its areas and, where those are others, the pictures of its goals.

Areas are read by the same functions as `airloc data prepare` and `airloc evaluate` read them, so that a suite here is
the suite of its command.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airloc.areas.area import SearchArea
from airloc.areas.choose import choose_source, load_pairs
from airloc.areas.names import Names
from airloc.areas.prepared import write_prepared
from airloc.areas.registry import SOURCES
from airloc.grid import Grid
from airloc.reproduce.gathering import spread
from airloc.reproduce.job import Job

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
