"""Lengths, times, speeds and places as people write them: 100m, 18min, 8m/s, 59.33,18.06."""

import math
import re

from airloc.errors import AirlocError

GROUND = {"m": 1.0, "km": 1000.0, "ft": 0.3048}
PIXELS = {"px": 1.0}
TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0}
SPEEDS = {"m/s": 1.0, "km/h": 1 / 3.6, "kn": 1852 / 3600, "mph": 0.44704}


def read_length(text: str, *, georeferenced: bool, zero: bool = False) -> float:
    """Read a length on an image: in metres, or in pixels where it has no georeference; a bare number is in either.

    >>> read_length("0.5 km", georeferenced=True), read_length("48px", georeferenced=False)
    (500.0, 48.0)
    """
    value = _quantity(text, GROUND | PIXELS, "length", "100m", zero=zero)
    unit = text.strip().lower().lstrip("0123456789.e-+ ")
    if georeferenced and unit in PIXELS:
        problem = f"The length {text} is in pixels, and the image has a georeference"
        raise AirlocError(problem, "Write it in metres, such as 100m")
    if not georeferenced and unit in GROUND:
        problem = f"The length {text} is one on the ground, and the image has no georeference"
        raise AirlocError(problem, "Write it in pixels, such as 48px, or georeference the image")
    return value


def seconds(text: str, *, zero: bool = False) -> float:
    """Read a time.

    >>> seconds("18min"), seconds("45s")
    (1080.0, 45.0)
    """
    return _quantity(text, TIMES, "time", "18min", zero=zero)


def metres_a_second(text: str) -> float:
    """Read a speed.

    >>> metres_a_second("8m/s"), round(metres_a_second("36km/h"), 6)
    (8.0, 10.0)
    """
    return _quantity(text, SPEEDS, "speed", "8m/s")


def place(text: str) -> tuple[float, float]:
    """Read a latitude and a longitude.

    >>> place("59.33, 18.06")
    (59.33, 18.06)
    """
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        lat = lon = math.nan
    if not (abs(lat) <= 90 and abs(lon) <= 360):
        raise AirlocError(f"{text!r} is no place", "Write latitude and longitude in degrees, such as 59.33,18.06")
    return lat, lon


def _quantity(text: str, units: dict[str, float], what: str, example: str, *, zero: bool = False) -> float:
    """Read a number above zero, or zero where that is one, with a unit; a bare number is in the first one."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z/]*)\s*", text.lower())
    unit = match[2] or next(iter(units)) if match else ""
    try:
        value = float(match[1]) * units[unit] if match else math.nan
    except (ValueError, KeyError):
        value = math.nan
    if not (0 < value < math.inf or (zero and value == 0)):
        raise AirlocError(f"{text!r} is no {what}", f"Write it as in {example}, in one of {', '.join(units)}")
    return value
