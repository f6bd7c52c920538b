"""`airloc search --photos`: rank a folder of photos by how much they look like the goal."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import make_agent
from airloc.areas.area import read_image
from airloc.cli.console import plural, progress_bar, say, status, writable_outputs
from airloc.errors import AirlocError
from airloc.missions.flight import Camera
from airloc.missions.units import looks_like_position, parse_length, parse_range

if TYPE_CHECKING:
    from airloc.cli.search import SearchOptions
    from airloc.missions.photos import Goal

DEFAULT_CELL = 100.0
MAX_WARNINGS = 5
"""Unreadable photos that are named one by one."""


def run(options: "SearchOptions", folder: Path) -> None:
    """Rank the photos of a folder, write the ranking and print the best one."""
    from airloc.missions.ranking import list_photos, rank_photos, write_ranking

    camera, photos = Camera(options.fov, options.aspect), list_photos(folder)
    goal, cell_m = _goal(options)
    agent = make_agent(options.agent, AgentOptions(seed=options.seed))
    with writable_outputs(options.out / "candidates.html"):
        with progress_bar("comparing", len(photos)) as advance:
            ranked, unreadable = rank_photos(photos, goal, cell_m, camera, agent, on_photo=advance)
        _name_unreadable(unreadable)
        if not ranked:
            raise AirlocError(f"None of the {len(photos)} photos in {folder} can be compared", "Give other photos")
        written = write_ranking(options.out, goal, ranked)
    best = ranked[0]
    place = "" if best.position is None else " at {:.6f},{:.6f}".format(*best.position)
    probability = f"confidence {100 * best.probability:.0f} %"
    say(f"{plural(len(ranked), 'photo')} compared. The most alike is {best.path.name}{place}, {probability}.")
    say(f"{len(written)} files in {options.out.resolve()}")


def _goal(options: "SearchOptions") -> "tuple[Goal, float]":
    """Return the goal and the side of a cell, which is the goal's width unless it is given."""
    from airloc.missions.photos import is_uniform, make_goal

    if options.goal is None or looks_like_position(options.goal):
        raise AirlocError("Photos are compared with an image of the goal", "Give --goal goal.jpg")
    widths = None if options.goal_width is None else parse_range(options.goal_width, georeferenced=True)
    if options.cell is not None:
        cell_m = parse_length(options.cell, georeferenced=True)
    else:
        cell_m = DEFAULT_CELL if widths is None else math.sqrt(widths[0]) * math.sqrt(widths[1])
    goal = make_goal(
        read_image(Path(options.goal)), cell_m, widths, options.goal_heading, same_day=options.goal_same_day
    )
    if is_uniform(goal.picture):
        raise AirlocError(f"The goal image {options.goal} has a single colour", "Give a photo of the place")
    return goal, cell_m


def _name_unreadable(unreadable: "Sequence[tuple[Path, str]]") -> None:
    for path, reason in unreadable[:MAX_WARNINGS]:
        status(f"airloc: {path.name} is left out: {reason}")
    if len(unreadable) > MAX_WARNINGS:
        status(f"airloc: {len(unreadable) - MAX_WARNINGS} more photos are left out")
