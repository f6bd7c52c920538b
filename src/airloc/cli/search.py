"""`airloc search`: rehearse a search over your own georeferenced image, and write its flight files."""

import re
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from tyro.conf import OmitArgPrefixes, UseAppendAction, arg

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.registry import DEFAULT_AGENT, make_agent
from airloc.areas.area import read_image
from airloc.cli.console import need, progress_bar, say, status, writable_outputs
from airloc.cli.flight import FlightOptions
from airloc.cli.tasks import ON_GROUND, check_options, given_options, is_place
from airloc.errors import AirlocError
from airloc.missions.flight import HEIGHT_LIMIT, Camera
from airloc.missions.units import (
    parse_drift,
    parse_duration,
    parse_length,
    parse_pixel,
    parse_position,
    parse_range,
    parse_speed,
)
from airloc.task.rules import FALSE_ALARM_COST

if TYPE_CHECKING:
    from airloc.areas.layout import Layout
    from airloc.areas.raster import Raster
    from airloc.missions.photos import Goal
    from airloc.missions.plan import FieldSearch, SearchPlan
    from airloc.missions.priors import PriorSource
    from airloc.missions.routes import ElevationModel
    from airloc.missions.session import Belief

Format = Literal["geojson", "kml", "gpx", "plan", "waypoints", "dji", "litchi", "kmz", "gpkg", "caltopo"]
USUAL_FORMATS: tuple[Format, ...] = ("geojson", "kml", "gpx", "plan", "waypoints")
PatternName = Literal["expanding-square", "sector", "creeping-line", "parallel-track", "best-blind"]
LONG_SEARCH = 60.0
"""Seconds left from which on a search says how long it takes."""


@dataclass(frozen=True)
class SearchOptions:
    """Rehearse a search over a georeferenced image, observing only the cells flown over; write flight files."""

    out: Path
    """Output folder."""
    area: Path | None = None
    """Image to search: GeoTIFF, cloud-optimised GeoTIFF or any other format that GDAL reads."""
    goal: Annotated[str | None, arg(metavar="IMAGE|LAT,LON")] = None
    """Image of the goal, or the position of the goal on the image; not needed with --goal-text."""
    goal_text: Annotated[str | None, arg(metavar="TEXT")] = None
    """Description of the goal in English, such as 'houses with red roofs beside a pond', instead of an image or besides
    it. Directions are those of the grid."""
    photos: Path | None = None
    """Folder of photos to rank by how much they look like the goal, instead of an image to search."""
    track: Path | None = None
    """Track of an actual flight (.gpx, .tlog, .bin, or a folder of photos): write what it has seen of --within."""
    height: str | None = None
    """Height above ground of a track that does not have its own; that of the footprint by default."""
    within: Annotated[str | None, arg(metavar="FILE|CORNERS")] = None
    """Outline of the search area: a .geojson or .kml file, or corners 'lat,lon lat,lon ...' (two are a box)."""
    cell: str | None = None
    """Side of a cell; 100m by default, 48px if the image has no georeference."""
    gap: str | None = None
    """Gap between cells; a twelfth of the cell by default."""
    heading: float = 0.0
    """Compass direction of the grid's columns in degrees."""
    start: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Position of the first photo; the centre by default. In pixels x,y if the image has no georeference."""
    budget: int | None = None
    """Moves that the vehicle may fly; twice the longer side of the grid by default."""
    prior: tyro.conf.UseAppendAction[Annotated[tuple[str, ...], arg(metavar="FILE")]] = ()
    """What is known about the place of the goal: a raster of probabilities, or polygons (with the property weight or
    poa), roads and trails as .geojson, .kml or .kmz. May be repeated: sources multiply."""
    lkp: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """Last known point of a lost person; needs --subject."""
    subject: str | None = None
    """Category of the lost person, such as hiker: sets the distances from the last known point."""
    map: Path | None = None
    """Orthophoto of the area from another day: the goal is matched against it before take-off."""
    endurance: str | None = None
    """Flight time instead of a budget, such as 18min; includes a reserve for the flight home."""
    speed: str = "8m/s"
    """Speed of the vehicle."""
    hover: str = "2s"
    """Time at each photo."""
    agent: str = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    goal_width: str | None = None
    """Width of the ground that the goal image shows, such as 60m, or a range, such as 50m-80m; one cell by default. A
    place on the map is a square of this width."""
    goal_heading: float | None = None
    """Compass direction of the upper edge of the goal image in degrees, 0 for north; unknown by default, and that of
    the grid for a place on the map."""
    goal_same_day: bool = False
    """The goal image is from the day of the flight, which raises the probability of detection."""
    truth: Annotated[str | None, arg(metavar="LAT,LON")] = None
    """True position of the goal, to verify the find; the search does not use it."""
    false_alarm_cost: float = FALSE_ALARM_COST
    """Cost of a false alarm, in finds; sets the match probability from which a find is declared."""
    detection: float | None = None
    """Probability of detection (POD) in a photo that shows the whole cell; by default as measured for the cost of false
    alarms, the day and the heading of the goal."""
    footprint: float = 4 / 3
    """Shorter side of the ground that a photo shows, in cells; sets the flight height."""
    fov: float = 73.7
    """Field of view of the camera across the longer side of a photo, in degrees."""
    aspect: float = 4 / 3
    """Longer side of a photo divided by its shorter side."""
    formats: tuple[Format, ...] = ()
    """Formats of the flight files; by default geojson, kml, gpx, plan and waypoints."""
    patterns: tuple[PatternName, ...] = ()
    """Search patterns to plan with the same budget, to write as flights and to compare the search with."""
    sweep: bool = False
    """Also write a sweep of the most probable cells after the search, for a vehicle without an onboard computer."""
    crs: str | None = None
    """Coordinate reference system of an image that has none, such as EPSG:32633."""
    bands: tuple[int, int, int] | None = None
    """Numbers of the red, green and blue bands, if the image does not mark them."""
    seed: int = 0
    """Random seed for agents that sample, and for the walk of a target that moves."""
    flight: OmitArgPrefixes[FlightOptions] = field(default_factory=FlightOptions)
    """How and where drones fly."""
    sorties: int = 1
    """Flights of each drone: when the goal is not found, the search goes on with new batteries."""
    drones: int = 1
    """Number of drones that search together, each with the whole budget or endurance."""
    launch: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="LAT,LON")]] = ()
    """Launch position of the second and each further drone; the start by default. Repeatable."""
    moving: str | None = None
    """Walking speed of a target that moves, such as 1.2m/s; the goal image shows where it was at first."""
    roads: Path | None = None
    """Roads and trails, which a target that walks prefers: lines as .geojson, .kml or .kmz. Slopes count with --dem."""
    drift: Annotated[str | None, arg(metavar="SPEED,DIRECTION")] = None
    """Drift of the target, such as 0.5m/s,90 for a drift to the east."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc search`."""
    options = tyro.cli(SearchOptions, args=arguments, prog="airloc search")
    need("field", "rasterio", "pyproj", "shapely", *(["pyogrio"] if "gpkg" in options.formats else []))
    run(options, arguments)


def run(options: SearchOptions, arguments: Sequence[str]) -> None:
    """Rehearse a search over an image, rank photos, or compute the coverage of a track."""
    from airloc.cli import coverage, photos

    given = given_options(arguments)
    check_options(options, given)
    if options.track is not None:
        coverage.run(options, options.track)
    elif options.photos is not None:
        photos.run(options, options.photos)
    elif options.area is None or (options.goal is None and options.goal_text is None):
        cure = "Give --area and --goal or --goal-text, or --photos and --goal"
        raise AirlocError("The image or the goal is missing", cure)
    else:
        rehearse(options, options.area, given, shlex.join(["airloc", "search", *arguments]))


def rehearse(options: SearchOptions, area: Path, given: set[str], made_by: str) -> None:
    """Check the input, simulate the search, write the output folder and print the outcome."""
    from airloc.areas.raster import Raster
    from airloc.missions.outputs import PAGE, write_search
    from airloc.missions.report import compare_patterns, summary
    from airloc.missions.simulation import simulate, with_patterns

    if re.match(r"[a-z0-9]{2,}:/", str(area)):
        raise AirlocError(f"The image {area} is not a local file", "Download it first")
    progress = Console(stderr=True)
    with Raster(area, crs=options.crs, bands=options.bands) as raster:
        dem = options.flight.elevation_model()
        with progress.status("planning the search"):
            search, truth = _start(options, given, raster, dem)
        most_photos = search.searcher.most_photos * options.sorties * search.searcher.part_count
        with writable_outputs(options.out / PAGE):
            with progress_bar("searching", most_photos) as advance:
                record = simulate(search, raster, truth, _announce_duration(advance, most_photos))
            record = with_patterns(record, options.patterns)
            if not any(photo.coverage for photo in record.photos):
                _warn(f"{options.area} has no data along the flight: the search observed nothing")
            _warn_if_too_long(search)
            with progress.status("drawing and writing the output"):
                formats = options.formats or USUAL_FORMATS
                written = write_search(
                    options.out, record, raster, formats=formats, sweep=options.sweep, made_by=made_by, dem=dem
                )
    print(summary(record))
    if record.patterns:
        print(compare_patterns(record))
    say(f"{len(written)} files in {options.out.resolve()}")


def _warn_if_too_long(search: "FieldSearch") -> None:
    """Warn if the flight takes longer than the endurance, because its legs fly around corners of the outline."""
    from airloc.missions.routes import make_flight

    plan, searcher = search.plan, search.searcher
    if plan.endurance is None or search.fence is None:
        return
    seconds = make_flight(search, searcher.flown, "", searcher.prior).seconds
    if seconds > plan.endurance * (1 - plan.flight.reserve):
        around = "its legs fly around corners of the outline; give a larger --margin or --reserve"
        _warn(f"the flight takes {seconds / 60:.1f} min, longer than the endurance without its reserve: {around}")


def _announce_duration(advance: Callable[[int], None], total: int) -> Callable[[int], None]:
    """Return a function that advances the progress, and says how long a search of minutes takes."""
    started, count, announced = time.monotonic(), 0, 0

    def step(done: int) -> None:
        nonlocal count, announced
        count += done
        advance(done)
        spent = time.monotonic() - started
        if spent > 5 * 2**announced and count < total:
            announced += 1
            left = spent / count * (total - count)
            if left > LONG_SEARCH:
                status(f"airloc: {count} of at most {total} photos, about {left / 60:.0f} min left at most")

    return step


def _start(
    options: SearchOptions, given: set[str], raster: "Raster", dem: "ElevationModel | None"
) -> "tuple[FieldSearch, tuple[float, float] | None]":
    """Build the search, and locate the goal on the grid if it is known; print warnings if the input is valid."""
    from airloc.areas.outline import read_outline
    from airloc.missions.plan import far_ports, lay_out_search, start_search

    warnings = [] if raster.georeferenced else [_without_georeference(options, given)]
    if not raster.bands_marked:
        meaning = "red, green, blue" if len(raster.bands) == 3 else "grey"
        taken = f"band {', '.join(map(str, raster.bands))} as {meaning}; --bands chooses others"
        warnings.append(f"{options.area} does not mark its colours: {taken}")
    if raster.collared:
        warnings.append(f"{options.area} marks no nodata: its black collar is not searched")
    plan = make_plan(options, georeferenced=raster.georeferenced)
    outline = None if options.within is None else read_outline(options.within)
    layout = lay_out_search(plan, outline, raster)
    goal, truth = _goal(options, raster, layout, warnings)
    agent = make_agent(options.agent, AgentOptions(seed=options.seed))
    sources, ease = prior_sources(options, goal, agent), _ease(options, layout, dem)
    search = start_search(plan, layout, goal, agent, sources, ease)
    if (parts := search.searcher.part_count) > 1:
        warnings.append(f"the search area has {parts} unconnected parts: each is a sortie of its own")
    if search.layout.plane is not None and search.height_m > HEIGHT_LIMIT:
        limit = f"the {HEIGHT_LIMIT:.0f} m that many countries allow; smaller cells or a larger --fov lower it"
        warnings.append(f"the flight height is {search.height_m:.0f} m, above {limit}")
    for warning in [*warnings, *far_ports(search.plan, search.layout).values()]:
        _warn(warning)
    return search, truth


def _ease(options: SearchOptions, layout: "Layout", dem: "ElevationModel | None") -> "Belief | None":
    """Return how easily a target that walks moves in each cell, by roads and slopes."""
    from airloc.areas.features import SUFFIXES, read_features
    from airloc.missions.terrain import walking_ease

    if options.moving is None:
        return None
    if options.roads is not None and options.roads.suffix.lower() not in SUFFIXES:
        raise AirlocError(f"The road file {options.roads} is not a map", f"Give a file with {', '.join(SUFFIXES)}")
    return walking_ease(layout, [] if options.roads is None else read_features(options.roads, "road file"), dem)


def prior_sources(options: SearchOptions, goal: "Goal", agent: Agent) -> "list[PriorSource]":
    """Open what is known about the place of the goal."""
    from airloc.agents.sighting import matching_network
    from airloc.missions.map_prior import MapPrior
    from airloc.missions.priors import last_known_point, read_prior

    point = None if options.lkp is None else parse_position(options.lkp)
    sources = [*(read_prior(text) for text in options.prior), *last_known_point(point, options.subject)]
    return sources if options.map is None else [*sources, MapPrior(options.map, goal, matching_network(agent))]


def make_plan(options: SearchOptions, *, georeferenced: bool) -> "SearchPlan":
    """Parse the options into the plan of the search."""
    from airloc.missions.plan import SearchPlan

    cell = options.cell if options.cell is not None else "100m" if georeferenced else "48px"
    gap = options.gap
    return SearchPlan(
        cell_m=parse_length(cell, georeferenced=georeferenced),
        gap_m=None if gap is None else parse_length(gap, georeferenced=georeferenced, allow_zero=True),
        heading=options.heading,
        start=None if options.start is None else _position(options.start, georeferenced),
        budget=options.budget,
        endurance=None if options.endurance is None else parse_duration(options.endurance),
        speed=parse_speed(options.speed),
        hover=parse_duration(options.hover, allow_zero=True),
        agent=options.agent,
        false_alarm_cost=options.false_alarm_cost,
        detection=options.detection,
        footprint=options.footprint,
        camera=Camera(options.fov, options.aspect),
        flight=options.flight.settings(),
        seed=options.seed,
        drones=options.drones,
        sorties=options.sorties,
        launches=tuple(_position(text, georeferenced) for text in options.launch),
        walking=0.0 if options.moving is None else parse_speed(options.moving),
        drift=(0.0, 0.0) if options.drift is None else parse_drift(options.drift),
    )


def _goal(
    options: SearchOptions, raster: "Raster", layout: "Layout", warnings: list[str]
) -> "tuple[Goal, tuple[float, float] | None]":
    """Return the goal, and its row and column on the grid if they are known; append to the warnings."""
    from airloc.missions.photos import describe_goal, description_warnings

    pictured, truth = _pictured_goal(options, raster, layout, warnings)
    if options.goal_text is None:
        assert pictured is not None
        return pictured, truth
    goal = describe_goal(options.goal_text, pictured)
    warnings.extend(description_warnings(options.goal_text, layout.heading))
    return goal, truth


def _pictured_goal(
    options: SearchOptions, raster: "Raster", layout: "Layout", warnings: list[str]
) -> "tuple[Goal | None, tuple[float, float] | None]":
    """Return the goal from its image, if there is one, and its place if it is known; append to the warnings."""
    from airloc.missions.plan import point_of, prepare_goal, read_goal, searchable_cell

    known = raster.georeferenced

    def on_grid(text: str, name: str) -> tuple[float, float]:
        position = _position(text, known)
        searchable_cell(layout, position, name)  # raises if it is outside
        return layout.grid_position(point_of(layout, position))

    truth = None if options.truth is None else on_grid(options.truth, "true position")
    if options.goal is None:
        return None, truth
    widths = None if options.goal_width is None else parse_range(options.goal_width, georeferenced=known)
    if is_place(options.goal):
        if truth is not None:
            raise AirlocError("--goal is a position and --truth another one of the same goal", "Leave out --truth")
        truth = on_grid(options.goal, "goal")
        prepared = read_goal(raster, layout, truth, widths, options.goal_heading)
    else:
        prepared = prepare_goal(
            read_image(Path(options.goal)), layout, widths, options.goal_heading, same_day=options.goal_same_day
        )
    warnings.extend(prepared.warnings)
    return prepared.goal, truth


def _position(text: str, georeferenced: bool) -> tuple[float, float]:
    return parse_position(text) if georeferenced else parse_pixel(text)


def _without_georeference(options: SearchOptions, given: set[str]) -> str:
    """Return the warning about an image without georeference.

    Raises:
        AirlocError: If an option needs a georeference.
    """
    needing = [f"--{name}" for name in ON_GROUND if name in given]
    if needing:
        raise AirlocError(
            f"The image {options.area} has no georeference, which is needed for {', '.join(needing)}",
            "Georeference it, for example with gdal_translate -a_srs EPSG:... -a_ullr west north east south",
        )
    return f"{options.area} has no georeference: lengths are in pixels, and no flight files are written"


def _warn(message: str) -> None:
    status(f"airloc: {message}")
