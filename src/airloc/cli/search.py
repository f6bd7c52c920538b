"""`airloc search`: try a search over your own georeferenced image, and take the flight files with you."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import tyro
from rich.console import Console
from tyro.conf import arg

from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import DEFAULT_AGENT, AgentOptions, make_agent
from airloc.areas.area import Pixels
from airloc.areas.images import read_image
from airloc.cli.console import bar, need, promised
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.units import metres_a_second, place, read_length, seconds
from airloc.task.rules import FALSE_ALARM_COST, check_budget

if TYPE_CHECKING:
    from airloc.areas.geotiff import Points, Raster
    from airloc.areas.layout import Layout
    from airloc.missions.search import Search

SMALL_GOAL = 24
"""Pixels of a goal's picture below which it is said to be small."""
Format = Literal["geojson", "kml", "gpx", "plan", "waypoints"]
ALL_FORMATS: tuple[Format, ...] = ("geojson", "kml", "gpx", "plan", "waypoints")


@dataclass(frozen=True)
class SearchOptions:
    """Search an image that stands for the world, seeing only the cells flown over; write flight files and a page."""

    area: Path
    """The image: GeoTIFF, cloud-optimised GeoTIFF or any other that GDAL reads."""
    goal: Annotated[str, arg(metavar="PICTURE|LAT,LON")]
    """A picture of the goal, or a place on the image whose cell is then the goal."""
    out: Path
    """The folder to write to."""
    within: Annotated[str | None, arg(metavar="FILE|CORNERS")] = None
    """Search only here: a .geojson or .kml file, or corners as 'lat,lon lat,lon ...' (two of them are a box)."""
    cell: str | None = None
    """Side of a cell, such as 100m; 48 pixels where the image has no georeference."""
    gap: str | None = None
    """From one cell to the next; a twelfth of the cell unless given."""
    heading: float = 0.0
    """Compass direction of the grid's columns in degrees."""
    start: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Where the flight begins; the middle unless given. In pixels x,y where the image has no georeference."""
    budget: int | None = None
    """Moves that may be flown; twice the longer side of the grid unless given."""
    endurance: str | None = None
    """Flight time instead of a budget, such as 18min; the way home is kept in reserve."""
    speed: str = "8m/s"
    """Speed of flight."""
    hover: str = "2s"
    """Time at each photo."""
    agent: str = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    goal_width: str | None = None
    """Width of the ground that the goal's picture shows, such as 60m; a cell unless given."""
    truth: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Where the goal is, to judge the find; the search does not use it."""
    false_alarm_cost: float = FALSE_ALARM_COST
    """Declare the find where that pays, a false alarm costing this many finds."""
    detection: float = 0.9
    """Probability of recognising the goal in a photo that shows it; for the probability of success."""
    fov: float = 73.7
    """Field of view of the camera across the longer side of its pictures, in degrees."""
    aspect: float = 4 / 3
    """Longer over shorter side of its pictures."""
    formats: tuple[Format, ...] = ()
    """Which flight files to write; all unless given."""
    sweep: bool = False
    """Also write a planned sweep of the most probable cells, for a vehicle that cannot think on board."""
    crs: str | None = None
    """The projection of an image that does not name its own, such as EPSG:32633."""
    bands: tuple[int, int, int] | None = None
    """Numbers of the red, green and blue band, where the image does not say."""
    seed: int = 0
    """Decides the choices of agents that draw."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc search`."""
    options = tyro.cli(SearchOptions, args=arguments, prog="airloc search")
    need("field", "rasterio", "pyproj", "shapely")
    run(options, shlex.join(["airloc", "search", *arguments]))


def run(options: SearchOptions, made_by: str) -> None:
    """Search, write and show."""
    from airloc.areas.geotiff import Raster
    from airloc.missions.flight import Camera
    from airloc.missions.outputs import PAGE, write_search
    from airloc.missions.page import verdict

    _check(options)
    camera = Camera(options.fov, options.aspect)
    with promised([options.out / PAGE]), Raster(options.area, crs=options.crs, bands=options.bands) as raster:
        search = _search(options, raster)
        with Console(stderr=True).status("drawing and writing"):
            written = write_search(
                options.out,
                search,
                raster,
                camera=camera,
                speed=metres_a_second(options.speed),
                hover=seconds(options.hover, zero=True),
                formats=options.formats or ALL_FORMATS,
                sweep=options.sweep,
                made_by=made_by,
            )
    console = Console()
    console.print(verdict(search), soft_wrap=True, highlight=False, markup=False)
    console.print(f"{len(written)} files in {options.out.resolve()}", soft_wrap=True, highlight=False, markup=False)


def _check(options: SearchOptions) -> None:
    """Refuse what makes no sense before anything is read."""
    if re.match(r"[a-z0-9]{2,}:/", str(options.area)):
        raise AirlocError(f"The image {options.area} is no file on this machine", "Download it first")
    if options.budget is not None:
        check_budget(options.budget)
        if options.endurance is not None:
            raise AirlocError("A budget of moves and a flight time were both given", "Give one of them")
    metres_a_second(options.speed)
    seconds(options.hover, zero=True)
    declaration_threshold(options.false_alarm_cost)


def _search(options: SearchOptions, raster: "Raster") -> "Search":
    """Lay the grid out, and search."""
    from airloc.areas.layout import lay_out
    from airloc.areas.outline import read_outline
    from airloc.missions.flight import budget_for
    from airloc.missions.search import Search, cell_of, fly, nearest_searchable
    from airloc.missions.searcher import Searcher

    known = raster.georeferenced
    cell_m = read_length(options.cell or ("100m" if known else "48px"), georeferenced=known)
    gap_m = None if options.gap is None else read_length(options.gap, georeferenced=known, zero=True)
    _say_pixels(options, raster)
    outline = None if options.within is None else read_outline(options.within)
    layout = lay_out(raster, outline, cell_m, gap_m=gap_m, heading=options.heading)
    goal, truth = _goal(options, raster, layout)
    if options.start is None:
        start = nearest_searchable(layout, layout.place([(side - 1) / 2 for side in layout.grid.shape]))
    else:
        start = cell_of(layout, _point(options.start, layout), "start")
    budget = layout.grid.default_budget if options.budget is None else options.budget
    if options.endurance is not None:
        time, speed = seconds(options.endurance), metres_a_second(options.speed)
        budget = budget_for(layout, start, time, speed, seconds(options.hover, zero=True))
    searcher = Searcher(
        make_agent(options.agent, AgentOptions(seed=options.seed)),
        goal,
        layout.grid,
        start=start,
        budget=budget,
        searchable=layout.searchable,
        threshold=declaration_threshold(options.false_alarm_cost),
        detection=options.detection,
        seed=options.seed,
    )
    with bar("searching", min(budget + 1, int(layout.searchable.sum()))) as advance:
        photos = fly(raster, layout, searcher, advance)
    if not any(photo.seen for photo in photos):
        _say(f"{options.area} has no data where it was flown over: nothing could be seen")
    return Search(layout, searcher, goal, photos, truth)


def _goal(options: SearchOptions, raster: "Raster", layout: "Layout") -> tuple[Pixels, Cell | None]:
    """The picture of the goal as a patch, and its cell where that is known."""
    from airloc.areas.layout import look
    from airloc.missions.photos import goal_patch
    from airloc.missions.search import cell_of

    truth = None if options.truth is None else cell_of(layout, _point(options.truth, layout), "true place")
    if not Path(options.goal).exists() and not any(letter.isalpha() for letter in options.goal):
        truth = cell_of(layout, _point(options.goal, layout), "goal")
        return look(raster, layout, truth).pixels, truth
    width = None if options.goal_width is None else read_length(options.goal_width, georeferenced=raster.georeferenced)
    picture = read_image(Path(options.goal))
    patch = goal_patch(picture, layout.cell_m, width)
    _say_goal(picture, patch, layout, width)
    return patch, truth


def _say_goal(picture: Pixels, patch: Pixels, layout: "Layout", width: float | None) -> None:
    """Tell of a goal's picture, of a known width or of a cell, that will hardly be recognised."""
    from airloc.missions.photos import shows_nothing

    tall, wide = picture.shape[:2]
    if width is not None and width < layout.cell_m:
        _say(f"the goal's picture shows less than a cell ({width:g} {layout.unit}); smaller cells may do better")
    if min(tall, wide) < SMALL_GOAL:
        _say(f"the goal's picture is only {wide} x {tall} px")
    elif width is not None and wide * layout.cell_m / width < SMALL_GOAL:
        _say(
            f"a cell is only {wide * layout.cell_m / width:.0f} px of the goal's picture, {width:g} {layout.unit} wide"
        )
    if shows_nothing(patch):
        _say("the goal's picture shows nothing that could be recognised: it is of one colour")


def _point(text: str, layout: "Layout") -> "Points":
    """A place in the plane: from degrees, or from pixels (right, down) where there is no georeference."""
    if layout.plane is not None:
        return layout.plane.from_degrees(place(text))
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise AirlocError(f"{text!r} is no pixel of the image", "Write it as x,y, such as 120,80") from None
    return np.array([x, -y])


def _say_pixels(options: SearchOptions, raster: "Raster") -> None:
    """An image without a georeference is searched in pixels, unless flight files are asked for."""
    if raster.georeferenced:
        return
    wanted = [*options.formats, *(["sweep"] if options.sweep else []), *(["endurance"] if options.endurance else [])]
    if wanted:
        raise AirlocError(
            f"The image {options.area} has no georeference, which {', '.join(wanted)} needs",
            "Georeference it, for example with gdal_translate -a_srs EPSG:... -a_ullr west north east south",
        )
    _say(f"{options.area} has no georeference: lengths are in pixels, and no flight files are written")


def _say(remark: str) -> None:
    print(f"airloc: {remark}", file=sys.stderr)
