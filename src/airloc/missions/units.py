"""Parse lengths, durations, speeds and positions: 100m, 18min, 8m/s, 59.33,18.06; name cells.

People count rows and columns from 1. Files for programs and the HTTP API count them from 0.
"""

import math
import re

from airloc.errors import AirlocError
from airloc.grid import Cell

METRIC = {"m": 1.0, "km": 1000.0, "ft": 0.3048}
PIXELS = {"px": 1.0}
ANGLE_MARKS = "\u00b0\u00ba'\u2032\u2019\"\u2033\u201d"
"""Marks of degrees, minutes and seconds."""
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


def parse_drift(text: str) -> tuple[float, float]:
    """Parse the speed of a drift and the compass direction that it goes to; return metres per second and degrees.

    >>> parse_drift("0.5m/s,90")
    (0.5, 90.0)
    """
    return _speed_and_direction(text, "drift", "0.5m/s,90")


def parse_wind(text: str) -> tuple[float, float]:
    """Parse the speed of a wind and the compass direction that it comes from; return metres per second and degrees.

    >>> parse_wind("18km/h,270")
    (5.0, 270.0)
    """
    return _speed_and_direction(text, "wind", "5m/s,270")


def parse_percentage(text: str) -> float:
    """Parse a percentage; return a fraction.

    >>> parse_percentage("20%")
    0.2
    """
    return _quantity(text, {"%": 0.01}, "percentage", "20%", allow_zero=True)


def _speed_and_direction(text: str, name: str, example: str) -> tuple[float, float]:
    """Parse a speed and a compass direction; `name` and `example` are for the error message."""
    speed, _, direction = text.partition(",")
    try:
        degrees = float(direction)
    except ValueError:
        degrees = math.nan
    if not math.isfinite(degrees):
        problem = f"The {name} {text!r} has no direction"
        raise AirlocError(problem, f"Give speed and compass direction in degrees, such as {example}")
    return parse_speed(speed), degrees


def parse_position(text: str) -> tuple[float, float]:
    r"""Parse a latitude and a longitude in degrees, in degrees and minutes, or in degrees, minutes and seconds.

    >>> parse_position("59.33, 18.06")
    (59.33, 18.06)
    >>> parse_position("59°20'24\"N 18°3'36\"E"), parse_position("N 33 51.5, W 70 40")
    ((59.34, 18.06), (33.858333333, -70.666666667))
    """
    lat, lon = _sexagesimal(text) if re.search(f"[NSEW{ANGLE_MARKS}]", text.upper()) else _pair(text)
    if not (abs(lat) <= 90 and abs(lon) <= 360):
        problem = f"{text!r} is not a position"
        raise AirlocError(problem, "Give latitude and longitude, such as 59.33,18.06 or 59°19'48\"N 18°3'36\"E")
    return lat, lon


def looks_like_position(text: str) -> bool:
    """Return True for text of digits, separators and the letters of hemispheres, which can only be a position."""
    return re.fullmatch(rf"[\d\s.,:NSEW{ANGLE_MARKS}+-]+", text.upper()) is not None


def format_cell(cell: Cell) -> str:
    """Return a cell as people count: rows and columns from 1.

    >>> format_cell((0, 4))
    'row 1, column 5'
    """
    return f"row {cell[0] + 1}, column {cell[1] + 1}"


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


def _sexagesimal(text: str) -> tuple[float, float]:
    """Parse two angles of up to three parts, each with the letter of its hemisphere before or after it."""
    separated = re.sub(f"[{ANGLE_MARKS},:]+", " ", text.upper())
    number = r"(\d+(?:\.\d+)?(?: +\d+(?:\.\d+)?){0,2})"
    match = re.fullmatch(rf" *(?:{number} *([NS]) *{number} *([EW])|([NS]) *{number} *([EW]) *{number}) *", separated)
    if match is None:
        return math.nan, math.nan
    lat, north, lon, east = match.group(1, 2, 3, 4) if match[1] else match.group(6, 5, 8, 7)
    return _angle(lat, negative=north == "S"), _angle(lon, negative=east == "W")


def _angle(text: str, *, negative: bool) -> float:
    """Return degrees, minutes and seconds in degrees; NaN if minutes or seconds are 60 or more."""
    degrees, *parts = (float(part) for part in text.split())
    if any(part >= 60 for part in parts):
        return math.nan
    total = degrees + sum(part / math.pow(60, power) for power, part in enumerate(parts, start=1))
    return round(-total if negative else total, 9)


def _quantity(text: str, units: dict[str, float], kind: str, example: str, *, allow_zero: bool = False) -> float:
    """Parse a positive number and a unit; the first unit is the default."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z/%]*)\s*", text.lower())
    unit = match[2] or next(iter(units)) if match else ""
    try:
        value = float(match[1]) * units[unit] if match else math.nan
    except (ValueError, KeyError):
        value = math.nan
    if not (0 < value < math.inf or (allow_zero and value == 0)):
        raise AirlocError(f"{text!r} is not a {kind}", f"Give it as in {example}; units are {', '.join(units)}")
    return value
