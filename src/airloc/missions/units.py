"""Parse lengths, durations, speeds and positions from the command line: 100m, 18min, 8m/s, 59.33,18.06."""

import math
import re

from airloc.errors import AirlocError

__all__ = ["parse_duration", "parse_length", "parse_pixel", "parse_position", "parse_range", "parse_speed"]

METRIC = {"m": 1.0, "km": 1000.0, "ft": 0.3048}
PIXELS = {"px": 1.0}
TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0}
SPEEDS = {"m/s": 1.0, "km/h": 1 / 3.6, "kn": 1852 / 3600, "mph": 0.44704}


def parse_length(text: str, *, georeferenced: bool, allow_zero: bool = False) -> float:
    """Parse a length on an image, in metres, or in pixels if the image has no georeference.

    A number without a unit is in the unit of the image.

    >>> parse_length("0.5 km", georeferenced=True), parse_length("48px", georeferenced=False)
    (500.0, 48.0)

    Raises:
        AirlocError: If the text is not a length, or its unit does not fit the image.
    """
    value = _quantity(text, METRIC | PIXELS, "length", "100m", allow_zero=allow_zero)
    unit = text.strip().lower().lstrip("0123456789.e-+ ")
    if georeferenced and unit in PIXELS:
        problem = f"The length {text} is in pixels, but the image has a georeference"
        raise AirlocError(problem, "Give it in metres, such as 100m")
    if not georeferenced and unit in METRIC:
        problem = f"The length {text} is in {unit}, but the image has no georeference"
        raise AirlocError(problem, "Give it in pixels, such as 48px, or georeference the image")
    return value


def parse_range(text: str, *, georeferenced: bool) -> tuple[float, float]:
    """Parse a length, or a range of lengths, on an image; return the smallest and the largest.

    A range may name its unit once.

    >>> parse_range("60m", georeferenced=True), parse_range("50-80m", georeferenced=True)
    ((60.0, 60.0), (50.0, 80.0))

    Raises:
        AirlocError: If the text is not a length or a range, or its unit does not fit the image.
    """
    parts = re.fullmatch(r"([\d.]+(?:e-?\d+)?)\s*([a-df-z]*)\s*-\s*([\d.e-]+\s*([a-z]*))", text.strip().lower())
    low, high = (f"{parts[1]}{parts[2] or parts[4]}", parts[3]) if parts else (text, text)
    bounds = tuple(parse_length(part, georeferenced=georeferenced) for part in (low, high))
    if bounds[0] > bounds[1]:
        raise AirlocError(f"The range {text} is empty", "Give the smaller length first, such as 50m-80m")
    return bounds[0], bounds[1]


def parse_duration(text: str, *, allow_zero: bool = False) -> float:
    """Parse a duration; return seconds.

    >>> parse_duration("18min"), parse_duration("45s")
    (1080.0, 45.0)
    """
    return _quantity(text, TIMES, "duration", "18min", allow_zero=allow_zero)


def parse_speed(text: str) -> float:
    """Parse a speed; return metres per second.

    >>> parse_speed("8m/s"), round(parse_speed("36km/h"), 6)
    (8.0, 10.0)
    """
    return _quantity(text, SPEEDS, "speed", "8m/s")


def parse_position(text: str) -> tuple[float, float]:
    """Parse a latitude and a longitude.

    >>> parse_position("59.33, 18.06")
    (59.33, 18.06)
    """
    lat, lon = _pair(text)
    if not (abs(lat) <= 90 and abs(lon) <= 360):
        problem = f"{text!r} is not a position"
        raise AirlocError(problem, "Give latitude and longitude in degrees, such as 59.33,18.06")
    return lat, lon


def parse_pixel(text: str) -> tuple[float, float]:
    """Parse a pixel (x right, y down).

    >>> parse_pixel("120,80")
    (120.0, 80.0)
    """
    x, y = _pair(text)
    if not (math.isfinite(x) and math.isfinite(y)):
        raise AirlocError(f"{text!r} is not a pixel of the image", "Give it as x,y, such as 120,80")
    return x, y


def _pair(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        return math.nan, math.nan
    return first, second


def _quantity(text: str, units: dict[str, float], kind: str, example: str, *, allow_zero: bool = False) -> float:
    """Parse a positive number and a unit; the first unit is the default."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z/]*)\s*", text.lower())
    unit = match[2] or next(iter(units)) if match else ""
    try:
        value = float(match[1]) * units[unit] if match else math.nan
    except (ValueError, KeyError):
        value = math.nan
    if not (0 < value < math.inf or (allow_zero and value == 0)):
        raise AirlocError(f"{text!r} is not a {kind}", f"Give it as in {example}; units are {', '.join(units)}")
    return value
