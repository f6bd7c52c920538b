"""Flight planning: camera footprint, flight height, endurance, and the MAVLink commands of a flight.

The camera looks straight down. Its field of view is across the longer side of a photo. The flight height is the height
from which the shorter side of a photo covers a whole cell.

Legend: positions are (lat, lon) in degrees of WGS 84; heights are metres above the take-off point.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.task.rules import MAX_BUDGET

if TYPE_CHECKING:
    from airloc.areas.layout import Layout

__all__ = [
    "Camera",
    "Flight",
    "MissionItem",
    "Waypoint",
    "budget_from_endurance",
    "great_circle_distance",
    "mission_items",
]

HEIGHT_LIMIT = 120.0
"""Metres above ground that many countries allow without a permit."""
EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in metres."""

# Commands (MAV_CMD) and frames (MAV_FRAME) of the MAVLink common message set.
WAYPOINT, RETURN, TAKEOFF, TAKE_PHOTO = 16, 20, 22, 2000
FRAME_GLOBAL, FRAME_MISSION, FRAME_RELATIVE = 0, 2, 3


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that looks straight down.

    Raises:
        AirlocError: If the field of view or the aspect ratio is out of range.
    """

    fov: float = 73.7
    """Field of view across the longer side of a photo, in degrees."""
    aspect: float = 4 / 3
    """Longer side of a photo divided by its shorter side."""

    def __post_init__(self) -> None:
        if not (1 <= self.fov <= 160 and 1 <= self.aspect <= 4):
            problem = f"The camera has a field of view of {self.fov:g} degrees and an aspect ratio of {self.aspect:g}"
            raise AirlocError(problem, "Give a field of view from 1 to 160 degrees and an aspect ratio from 1 to 4")

    def footprint(self, height: float) -> tuple[float, float]:
        """Return the longer and the shorter side of the footprint in metres."""
        longer = 2 * height * math.tan(math.radians(self.fov) / 2)
        return longer, longer / self.aspect

    def height_for(self, cell_m: float) -> float:
        """Return the height from which the shorter side of the footprint is one cell.

        >>> round(Camera(fov=90, aspect=1).height_for(100), 6)
        50.0
        """
        return cell_m * self.aspect / (2 * math.tan(math.radians(self.fov) / 2))


class Waypoint(NamedTuple):
    """Position at which the vehicle takes a photo."""

    lat: float
    lon: float
    cell: Cell
    poa: float
    """Probability of area (POA) of the cell before the flight."""


@dataclass(frozen=True, slots=True)
class Flight:
    """Waypoints at one height."""

    name: str
    waypoints: Sequence[Waypoint]
    height: float
    speed: float
    """Speed in metres per second."""
    hover: float
    """Seconds at each waypoint, for the photo."""
    home: tuple[float, float]
    """Position of take-off and landing."""

    @property
    def metres(self) -> float:
        """Length of the flight in metres, from home and back."""
        stops = [self.home, *((point.lat, point.lon) for point in self.waypoints), self.home]
        return sum(great_circle_distance(a, b) for a, b in pairwise(stops))

    @property
    def seconds(self) -> float:
        """Duration of the flight in seconds, without climb and descent."""
        return self.metres / self.speed + self.hover * len(self.waypoints)


class MissionItem(NamedTuple):
    """One MAVLink mission item."""

    command: int
    frame: int
    params: tuple[float, float, float, float]
    lat: float
    lon: float
    height: float


def mission_items(flight: Flight) -> list[MissionItem]:
    """Return the mission of a flight: take off, fly to each waypoint and take a photo, return to launch."""
    items = [MissionItem(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), *flight.home, flight.height)]
    for number, point in enumerate(flight.waypoints, start=1):
        hover = (flight.hover, 0, 0, 0)
        items.append(MissionItem(WAYPOINT, FRAME_RELATIVE, hover, point.lat, point.lon, flight.height))
        items.append(MissionItem(TAKE_PHOTO, FRAME_MISSION, (0, 0, 1, number), 0, 0, 0))
    return [*items, MissionItem(RETURN, FRAME_MISSION, (0, 0, 0, 0), 0, 0, 0)]


def budget_from_endurance(layout: "Layout", start: Cell, endurance: float, speed: float, hover: float) -> int:
    """Return the budget of moves that an endurance allows.

    The budget assumes that every move is diagonal, and keeps the flight home in reserve.

    Args:
        layout: The grid on the ground.
        start: Cell of take-off and landing.
        endurance: Flight time in seconds.
        speed: Speed in metres per second.
        hover: Seconds at each photo.

    Raises:
        AirlocError: If the endurance is too short for one move, or the layout has no georeference.
    """
    layout.require_plane()  # raises an error if lengths are in pixels
    leg = math.sqrt(2) * layout.pitch_m
    farthest = max(math.dist(layout.centres(start), corner) for corner in layout.frame())

    def needed(moves: int) -> float:
        return (moves * leg + min(moves * leg, farthest)) / speed + hover * (moves + 1)

    moves = 0
    while moves < MAX_BUDGET and needed(moves + 1) <= endurance:
        moves += 1
    if moves == 0:
        raise AirlocError(
            f"An endurance of {endurance:g} s at {speed:g} m/s does not reach the next cell of {layout.cell_m:g} m "
            "and back",
            "Give a longer endurance, a higher speed or smaller cells",
        )
    return moves


def great_circle_distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the distance of two positions in metres on a sphere, accurate to half a percent."""
    lat_a, lon_a, lat_b, lon_b = map(math.radians, (*a, *b))
    square = math.sin((lat_b - lat_a) / 2) ** 2
    square += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(square)))
