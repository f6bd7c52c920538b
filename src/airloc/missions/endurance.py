"""How long flights take: speed in wind, climb and descent, reserve, and the budget of moves that an endurance allows.

Legend: points are (x, y) in metres of the layout's plane, x east and y north; positions are (lat, lon) in degrees.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.task.rules import MAX_BUDGET

if TYPE_CHECKING:
    from shapely.geometry import MultiPolygon, Polygon

    from airloc.areas.layout import Layout
    from airloc.areas.raster import Plane, Points

MIN_CLIMB, MAX_CLIMB = 0.01, 100.0
"""Smallest and largest climb and descent rates, in metres per second."""
MAX_RESERVE = 0.9
"""Largest fraction of the endurance that may be kept in reserve."""


@dataclass(frozen=True, slots=True)
class FlightSettings:
    """How and where a vehicle flies.

    Raises:
        AirlocError: If a setting is out of range.
    """

    home: tuple[float, float] | None = None
    """Position of take-off; the first cell if None."""
    landing: tuple[float, float] | None = None
    """Position of landing; home if None."""
    margin_m: float = 0.0
    """Metres that the vehicle may fly outside the outline."""
    no_fly: "MultiPolygon | Polygon | None" = None
    """Zones that the vehicle does not enter, in (lon, lat)."""
    climb: float = 3.0
    """Climb rate in metres per second."""
    descent: float = 2.0
    """Descent rate in metres per second."""
    wind: float = 0.0
    """Wind speed in metres per second."""
    wind_from: float = 0.0
    """Compass direction that the wind comes from, in degrees."""
    reserve: float = 0.0
    """Fraction of the endurance that is kept in reserve."""

    def __post_init__(self) -> None:
        if not (MIN_CLIMB <= self.climb <= MAX_CLIMB and MIN_CLIMB <= self.descent <= MAX_CLIMB):
            problem = f"A climb rate of {self.climb:g} m/s and a descent rate of {self.descent:g} m/s are not valid"
            raise AirlocError(problem, f"Give rates from {MIN_CLIMB:g} to {MAX_CLIMB:g} m/s")
        if not (0 <= self.wind < math.inf and math.isfinite(self.wind_from)):
            problem = f"A wind of {self.wind:g} m/s from {self.wind_from:g} degrees is not valid"
            raise AirlocError(problem, "Give a speed and the compass direction that the wind comes from")
        if not 0 <= self.reserve <= MAX_RESERVE:
            problem = f"A reserve of {100 * self.reserve:g} % is not valid"
            raise AirlocError(problem, f"Give a reserve from 0 to {100 * MAX_RESERVE:g} %")

    def ends(self, plane: "Plane", first: "Points") -> "tuple[Points, Points]":
        """Return the points of take-off and landing in the plane, for a flight whose first photo is at a point."""
        home = first if self.home is None else plane.from_degrees(self.home)
        return home, home if self.landing is None else plane.from_degrees(self.landing)


def ground_speed(speed: float, settings: FlightSettings, east: float, north: float) -> float:
    """Return the speed over ground along a direction, for a vehicle of an airspeed that holds its track in the wind.

    >>> ground_speed(8.0, FlightSettings(wind=3.0, wind_from=0.0), 0.0, 1.0)
    5.0

    Raises:
        AirlocError: If the wind is as fast as the vehicle.
    """
    if settings.wind >= speed:
        problem = f"A wind of {settings.wind:g} m/s is as fast as the vehicle, {speed:g} m/s"
        raise AirlocError(problem, "Wait for less wind, or fly faster")
    track, towards = math.atan2(east, north), math.radians(settings.wind_from) + math.pi
    along = settings.wind * math.cos(towards - track)
    across = settings.wind * math.sin(towards - track)
    return math.sqrt(speed**2 - across**2) + along


def usable_seconds(endurance: float, settings: FlightSettings, height: float) -> float:
    """Return the seconds of an endurance that are left for the flight at its height."""
    return endurance * (1 - settings.reserve) - height / settings.climb - height / settings.descent


def budget_from_endurance(
    layout: "Layout",
    start: Cell,
    endurance: float,
    speed: float,
    hover: float,
    settings: FlightSettings,
    height: float,
) -> int:
    """Return the budget of moves that an endurance allows.

    The budget assumes that every move is diagonal and against the wind, and keeps the flight home in reserve.

    Args:
        layout: The grid on the ground.
        start: Cell of the first photo.
        endurance: Flight time in seconds.
        speed: Airspeed in metres per second.
        hover: Seconds at each photo.
        settings: How and where the vehicle flies.
        height: Flight height in metres.

    Raises:
        AirlocError: If the endurance is too short for one move, or the layout has no georeference.
    """
    plane = layout.require_plane()  # raises an error if lengths are in pixels
    first = layout.centres(start)
    home, landing = settings.ends(plane, first)
    slowest = speed - settings.wind if settings.wind < speed else ground_speed(speed, settings, 0, 1)
    leg, away = math.sqrt(2) * layout.pitch_m, math.dist(first, landing)
    farthest = max(math.dist(landing, corner) for corner in layout.frame())
    usable = usable_seconds(endurance, settings, height)

    def needed(moves: int) -> float:
        metres = math.dist(home, first) + moves * leg + min(away + moves * leg, farthest)
        return metres / slowest + hover * (moves + 1)

    moves = 0
    while moves < MAX_BUDGET and needed(moves + 1) <= usable:
        moves += 1
    if moves == 0:
        raise AirlocError(
            f"An endurance of {endurance:g} s at {speed:g} m/s does not reach the next cell of {layout.cell_m:g} m "
            "and back",
            "Give a longer endurance, a higher speed or smaller cells",
        )
    return moves
