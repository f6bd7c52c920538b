"""Where a drone took a photo: position, height, heading, gimbal and field of view from EXIF and XMP.

| maker  | position                        | height                | heading and gimbal pitch               |
|--------|---------------------------------|-----------------------|----------------------------------------|
| DJI    | `GpsLatitude`, `GpsLongitude`   | `RelativeAltitude`    | `GimbalYawDegree`, `GimbalPitchDegree` |
| Autel  | the same                        | `RelativeAltitude`    | the same, or `Camera:Yaw`              |
| Parrot | EXIF                            | `AboveGroundAltitude` | `CameraYawDegree`, `CameraPitchDegree` |
| Skydio | `Latitude`, `Longitude`         | `RelativeAltitude`    | `CameraOrientationNED`: `Yaw`, `Pitch` |
| others | EXIF                            |                       | EXIF `GPSImgDirection`                 |

XMP fields are found by their name in any namespace. The absolute height of EXIF is above sea level and is not used.
What is missing or damaged is None: metadata never makes a photo unreadable.
"""

import io
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from PIL import ExifTags, Image

from airloc.areas.features import parse_xml

MAX_XMP = 1_000_000
"""Largest XMP packet that is parsed, in bytes."""
FILM_DIAGONAL = 43.27
"""Diagonal of 35 mm film in millimetres, to which equivalent focal lengths refer."""
MAX_PITCH = -60.0
"""Pitch of the gimbal above which a photo is oblique: its scale differs from place to place."""
NAMES = {
    "lat": ("GpsLatitude", "GPSLatitude", "Latitude"),
    "lon": ("GpsLongitude", "GpsLongtitude", "GPSLongitude", "GPSLongtitude", "Longitude"),
    "height": ("RelativeAltitude", "AboveGroundAltitude"),
    "heading": ("GimbalYawDegree", "CameraYawDegree", "CameraOrientationNED:Yaw", "FlightYawDegree", "Camera:Yaw"),
    "pitch": ("GimbalPitchDegree", "CameraPitchDegree", "CameraOrientationNED:Pitch"),
}
"""XMP fields by meaning, the first that is present counts; `parent:field` is a field of a structure."""


class PhotoTags(NamedTuple):
    """What a photo says about its camera; None where it says nothing."""

    position: tuple[float, float] | None = None
    """Latitude and longitude of the camera."""
    height_m: float | None = None
    """Metres above the take-off point or the ground."""
    heading: float | None = None
    """Compass direction of the upper edge of the photo in degrees."""
    pitch: float | None = None
    """Pitch of the gimbal in degrees, -90 straight down."""
    fov: float | None = None
    """Field of view across the longer side in degrees."""

    @property
    def oblique(self) -> bool:
        """True if the photo was not taken straight down."""
        return self.pitch is not None and self.pitch > MAX_PITCH


def read_tags(data: bytes) -> PhotoTags:
    """Read the tags of a photo from its file."""
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as image:
            exif, size = image.getexif(), image.size
            gps, camera = exif.get_ifd(ExifTags.IFD.GPSInfo), exif.get_ifd(ExifTags.IFD.Exif)
            packet = image.info.get("xmp") or exif.get(ExifTags.Base.XMLPacket) or b""
    except Exception:  # Pillow raises errors of many kinds for damaged metadata
        return PhotoTags()
    fields = dict(_xmp_fields(packet if isinstance(packet, bytes) else str(packet).encode()))
    found = {meaning: _first(fields, names) for meaning, names in NAMES.items()}
    heading = found["heading"] if found["heading"] is not None else _number(gps.get(ExifTags.GPS.GPSImgDirection))
    height, pitch = found["height"], found["pitch"]
    return PhotoTags(
        _valid_position(found["lat"], found["lon"]) or _exif_position(gps),
        height_m=height if height is not None and 0 < height <= 20_000 else None,
        heading=None if heading is None or abs(heading) > 360 else heading % 360,
        pitch=None if pitch is None or abs(pitch) > 180 else pitch,
        fov=_field_of_view(_number(camera.get(ExifTags.Base.FocalLengthIn35mmFilm)), size),
    )


def _xmp_fields(packet: bytes) -> Iterator[tuple[str, str]]:
    """Yield the fields of an XMP packet: by their name, and by the name of their parent and their own."""
    if not packet or len(packet) > MAX_XMP:
        return
    try:
        root = parse_xml(packet.strip(b"\0 \r\n\t"))
    except ValueError:
        return
    for parent in root.iter():
        named = list(parent.attrib.items())
        named += [(child.tag, child.text) for child in parent if child.text and isinstance(child.tag, str)]
        for key, value in named:
            structure = "Camera" if "/camera/" in key.lower() else _local(parent.tag)
            yield f"{structure}:{_local(key)}", value
            yield _local(key), value


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _first(fields: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    """Return the first of the named fields that is a number."""
    numbers = (_number(fields.get(name)) for name in names)
    return next((number for number in numbers if number is not None), None)


def _number(value: Any) -> float | None:
    """Return a number, which XMP writes as +74.90 or as 149/2."""
    if value is None:
        return None
    try:
        above, _, below = str(value).strip().partition("/")
        number = float(above) / float(below) if below else float(above)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def on_earth(lat: float, lon: float) -> bool:
    """Return True for a position on Earth, except 0,0, which devices without a fix write."""
    return abs(lat) <= 90 and abs(lon) <= 180 and (lat, lon) != (0, 0)


def _valid_position(lat: float | None, lon: float | None) -> tuple[float, float] | None:
    return None if lat is None or lon is None or not on_earth(lat, lon) else (lat, lon)


def _exif_position(gps: Mapping[int, Any]) -> tuple[float, float] | None:
    """Return the position of EXIF's degrees, minutes and seconds."""
    tags, angles = ExifTags.GPS, []
    for degrees, side in ((tags.GPSLatitude, tags.GPSLatitudeRef), (tags.GPSLongitude, tags.GPSLongitudeRef)):
        try:
            parts = [_number(part) for part in gps[degrees]]
            sign = -1 if str(gps.get(side, "")).strip("\0 ").upper() in ("S", "W") else 1
        except (KeyError, TypeError):
            return None
        if not parts or any(part is None for part in parts):
            return None
        angles.append(sign * sum((part or 0.0) / math.pow(60, power) for power, part in enumerate(parts)))
    return _valid_position(*angles)


def _field_of_view(focal: float | None, size: tuple[int, int]) -> float | None:
    """Return the field of view across the longer side of a photo of a focal length in 35 mm equivalent."""
    if focal is None or not 4 <= focal <= 2000 or min(size) < 1:
        return None
    longer = FILM_DIAGONAL * max(size) / math.hypot(*size)
    return math.degrees(2 * math.atan(longer / (2 * focal)))
