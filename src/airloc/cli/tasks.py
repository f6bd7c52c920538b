"""Which options of `airloc search` have an effect in which of its tasks; one that has none is refused.

The tasks are a rehearsal over `--area`, ranking `--photos` and the coverage of a `--track`.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from airloc.errors import AirlocError
from airloc.missions.units import looks_like_position

if TYPE_CHECKING:
    from airloc.cli.search import SearchOptions

PHOTOS = {"out", "photos", "goal", "goal-width", "goal-heading", "cell", "agent", "fov"}
"""Options of `--photos`."""
COVERAGE = {"out", "track", "within", "height", "cell", "heading", "footprint", "fov", "aspect"}
COVERAGE |= {"detection", "false-alarm-cost", "goal-heading", "goal-same-day"}
"""Options of `--track`."""
OTHERS_ONLY = {"photos", "track", "height"}
"""Options that `--area` does not have."""
NEEDED = {
    "area": {
        "goal-width": ("goal",),
        "goal-heading": ("goal",),
        "goal-same-day": ("goal",),
        "map": ("goal",),
        "margin": ("within", "no-fly"),
        "reserve": ("endurance",),
        "roads": ("moving",),
    }
}
"""For each task, options that have no effect unless one of others is given."""
REPLACED = {
    "area": {"goal-same-day": "detection"},
    "track": {
        "footprint": "height",
        "false-alarm-cost": "detection",
        "goal-heading": "detection",
        "goal-same-day": "detection",
    },
}
"""For each task, options that have no effect if another one is given."""
ON_GROUND: tuple[str, ...] = ("formats", "sweep", "endurance", "speed", "hover", "fov", "moving", "drift", "roads")
ON_GROUND += ("home", "landing", "margin", "no-fly", "climb", "descent", "wind", "reserve", "dem")
"""Options of `--area` that need its georeference."""


def given_options(words: Sequence[str]) -> set[str]:
    """Return the names of the options on a command line.

    >>> sorted(given_options(["--goal_width=60m", "--no-sweep", "--no-fly", "zone.kml"]))
    ['goal-width', 'no-fly', 'sweep']
    """
    names = {word[2:].partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}
    return {name if name == "no-fly" else name.removeprefix("no-") for name in names}


def is_place(goal: str) -> bool:
    """Return True if a goal is a place on the area, False if it is the file of an image."""
    return not Path(goal).exists() and looks_like_position(goal)


def check_options(options: "SearchOptions", given: set[str]) -> None:
    """Refuse options that were given and have no effect in the task of a search.

    Raises:
        AirlocError: If there is one, or several tasks are given.
    """
    tasks = [name for name in ("area", "photos", "track") if name in given]
    if len(tasks) > 1:
        named = " and ".join(f"--{name}" for name in tasks)
        raise AirlocError(f"{named} are different tasks", "Give one of them")
    everything = {field.name.replace("_", "-") for part in (options, options.flight) for field in fields(part)}
    has = {"area": everything - OTHERS_ONLY, "photos": PHOTOS, "track": COVERAGE}
    for task in tasks:
        for name in sorted(given & everything):
            _check_option(name, task, given, [f"--{other}" for other, known in has.items() if name in known])
    if "area" in tasks and "goal-same-day" in given and options.goal is not None and is_place(options.goal):
        problem = "--goal-same-day has no effect if --goal is a place, whose image is that of the --area"
        raise AirlocError(problem, "Leave it out, or give an image of the goal")


def _check_option(name: str, task: str, given: set[str], belongs: Sequence[str]) -> None:
    """Raise an error if an option of some tasks has no effect in one task beside the other options."""
    if f"--{task}" not in belongs:
        problem = f"--{name} belongs to {' and '.join(belongs)}, and has no effect with --{task}"
        raise AirlocError(problem, "Leave it out")
    needed, replaced = NEEDED.get(task, {}).get(name, ()), REPLACED.get(task, {}).get(name)
    if needed and not given.intersection(needed):
        others = " or ".join(f"--{other}" for other in needed)
        raise AirlocError(f"--{name} has no effect with --{task} without {others}", f"Give {others}, or leave it out")
    if replaced in given:
        raise AirlocError(f"--{name} has no effect with --{task} and --{replaced}", "Give only one of them")
