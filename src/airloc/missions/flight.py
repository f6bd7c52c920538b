"""A flight over cells: how high, what the camera shows, which commands the autopilot gets.

The camera looks straight down. Its field of view is across the longer side of the picture; the flight is as high as it
takes for the shorter side to show a whole cell.

Legend: positions are (lat, lon) in degrees of WGS 84, heights are metres above the start.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from airloc.areas.layout import Layout
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.task.rules import MAX_BUDGET

USUAL_CEILING = 120.0
"""Metres above ground that many countries allow without a permit."""

# Commands and frames of the MAVLink common message set.
WAYPOINT, RETURN, TAKEOFF, TAKE_PICTURE = 16, 20, 22, 2000
FRAME_GLOBAL, FRAME_MISSION, FRAME_RELATIVE = 0, 2, 3


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that looks straight down."""

    fov: float = 73.7
    """Field of view across the longer side of the picture, in degrees."""
    aspect: float = 4 / 3
    """Longer side over shorter side."""

    def __post_init__(self) -> None:
        if not (1 <= self.fov <= 160 and 1 <= self.aspect <= 4):
            problem = f"A camera with {self.fov:g} degrees and an aspect of {self.aspect:g} is none"
            raise AirlocError(problem, "Give a field of view from 1 to 160 degrees, and an aspect from 1 to 4")

    def footprint(self, height: float) -> tuple[float, float]:
        """Metres of ground on the longer and the shorter side of a picture."""
        longer = 2 * height * math.tan(math.radians(self.fov) / 2)
        return longer, longer / self.aspect

    def height_for(self, cell_m: float) -> float:
        """The height from which the shorter side shows a whole cell.

        >>> round(Camera(fov=90, aspect=1).height_for(100), 6)
        50.0
        """
        return cell_m * self.aspect / (2 * math.tan(math.radians(self.fov) / 2))


class Waypoint(NamedTuple):
    """Where a photo is to be taken."""

    lat: float
    lon: float
    cell: Cell
    probability: float
    """The probability of area of the cell."""


@dataclass(frozen=True, slots=True)
class Flight:
    """Waypoints at one height."""

    name: str
    waypoints: Sequence[Waypoint]
    height: float
    speed: float
    hover: float
    """Seconds at each waypoint, for the photo."""
    home: tuple[float, float]
    """Where the flight begins and ends."""

    @property
    def metres(self) -> float:
        """Length of the flight over the ground, from home and back."""
        stops = [self.home, *((point.lat, point.lon) for point in self.waypoints), self.home]
        return sum(metres_between(a, b) for a, b in pairwise(stops))

    @property
    def seconds(self) -> float:
        """How long it takes, with the climb and the descent at 2 m/s left out."""
        return self.metres / self.speed + self.hover * len(self.waypoints)


class Item(NamedTuple):
    """One command of a mission, in MAVLink's terms."""

    command: int
    frame: int
    params: tuple[float, float, float, float]
    lat: float
    lon: float
    height: float


def mission_items(flight: Flight) -> list[Item]:
    """The commands of a flight: take off, fly to each waypoint and take a picture, return."""
    items = [Item(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), *flight.home, flight.height)]
    for number, point in enumerate(flight.waypoints, start=1):
        items.append(Item(WAYPOINT, FRAME_RELATIVE, (flight.hover, 0, 0, 0), point.lat, point.lon, flight.height))
        items.append(Item(TAKE_PICTURE, FRAME_MISSION, (0, 0, 1, number), 0, 0, 0))
    return [*items, Item(RETURN, FRAME_MISSION, (0, 0, 0, 0), 0, 0, 0)]


def budget_for(layout: Layout, start: Cell, endurance: float, speed: float, hover: float) -> int:
    """Moves that a flight time allows, the way home included, even if every move were diagonal.

    Args:
        layout: The grid on the ground.
        start: Where the flight begins.
        endurance: Seconds in the air.
        speed: Metres a second.
        hover: Seconds at each photo.

    Raises:
        AirlocError: When the time is too short for one move.
    """
    layout.flat_map()  # a speed over pixels means nothing
    leg = math.sqrt(2) * layout.pitch_m
    far = max(math.dist(layout.place(start), corner) for corner in layout.frame())

    def needed(moves: int) -> float:
        return (moves * leg + min(moves * leg, far)) / speed + hover * (moves + 1)

    moves = 0
    while moves < MAX_BUDGET and needed(moves + 1) <= endurance:
        moves += 1
    if moves == 0:
        raise AirlocError(
            f"In {endurance:g} s at {speed:g} m/s the vehicle cannot fly one cell of {layout.cell_m:g} m and come back",
            "Give more time or speed, or smaller cells",
        )
    return moves


def metres_between(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres between two places on a sphere of the Earth's mean radius; right to half a percent."""
    lat_a, lon_a, lat_b, lon_b = map(math.radians, (*a, *b))
    square = math.sin((lat_b - lat_a) / 2) ** 2
    square += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(min(1.0, math.sqrt(square)))
