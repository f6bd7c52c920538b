"""`airloc search --track`: what an actual flight has seen of a search area, how well, and what is left to fly."""

from pathlib import Path
from typing import TYPE_CHECKING

from airloc.agents.matching import declaration_threshold
from airloc.cli.console import plural, say, status, writable_outputs
from airloc.errors import AirlocError
from airloc.missions.flight import Camera
from airloc.missions.units import parse_length

if TYPE_CHECKING:
    from airloc.cli.search import SearchOptions

DEFAULT_CELL = "100m"


def run(options: "SearchOptions", track: Path) -> None:
    """Compute the coverage of a track, write it and print it."""
    from airloc.areas.layout import lay_out_outline
    from airloc.areas.outline import read_outline
    from airloc.missions.coverage import cover, read_track, seen_ground, write_coverage

    if options.within is None:
        raise AirlocError("The coverage of a track needs the outline of the search", "Give --within")
    camera, cell_m = Camera(options.fov, options.aspect), parse_length(options.cell or DEFAULT_CELL, georeferenced=True)
    layout = lay_out_outline(read_outline(options.within), cell_m, heading=options.heading)
    height = camera.height_for(options.footprint * cell_m)
    if options.height is not None:
        height = parse_length(options.height, georeferenced=True)
    detection = _detection(options)
    flown = read_track(track)
    if flown.left_out:
        status(f"airloc: {plural(flown.left_out, 'photo')} without a position or not taken straight down: left out")
    coverage = cover(layout, seen_ground(flown, layout.require_plane(), camera, height), detection)
    with writable_outputs(options.out / "coverage.tif"):
        written = write_coverage(options.out, coverage)
    area = sum(part.area for part in coverage.left)
    say(
        f"Seen: {100 * coverage.share:.0f} % of the search area, POD {100 * coverage.share * detection:.0f} %. "
        f"Left: {area:.0f} m2 in {plural(len(coverage.left), 'part')}."
    )
    say(f"{len(written)} files in {options.out.resolve()}")


def _detection(options: "SearchOptions") -> float:
    """Return the POD of a photo of a whole cell: the given one or the measured one."""
    from airloc.missions.detection import measured_pod

    if options.detection is None:
        threshold, known = declaration_threshold(options.false_alarm_cost), options.goal_heading is not None
        return measured_pod(threshold, same_day=options.goal_same_day, heading_known=known)
    if not 0 <= options.detection <= 1:
        raise AirlocError(f"The detection {options.detection} is not a probability", "Give a number from 0 to 1")
    return options.detection
