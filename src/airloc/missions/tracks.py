"""Where a flight went: GPX tracks, MAVLink logs (.tlog, .bin, .log) and folders of photos become footprints.

A log that records when photos were taken counts only those; any other track counts as if it was filmed throughout. The
heading of a track is not known: what a photo shows in any heading counts, a disc as wide as its shorter side.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import shapely
from shapely.geometry import LineString, MultiPolygon, Point, Polygon

from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.missions.exif import STEEPEST, read_tags
from airloc.missions.flight import Camera
from airloc.missions.ranking import list_photos

__all__ = ["Pose", "Track", "read_track", "seen_ground"]

MAX_GPX = 50_000_000
MIN_HEIGHT = 1.0
"""Height in metres below which a vehicle stands on the ground."""
MAX_GAP = 500.0
"""Metres between two points of a track above which the vehicle was not recorded between them."""
LOGS = (".tlog", ".bin", ".log")
POINTS = {"trkpt", "rtept", "wpt"}


class Pose(NamedTuple):
    """A camera that looks straight down."""

    lat: float
    lon: float
    height_m: float | None = None
    """Metres above ground."""
    heading: float | None = None
    fov: float | None = None


class Track(NamedTuple):
    """The poses of a flight."""

    poses: Sequence[Pose]
    photos: bool
    """The poses are those of photos; otherwise they are points of a path."""
    left_out: int = 0
    """Photos without a position, or not taken straight down."""


def read_track(path: Path) -> Track:
    """Read a track: a GPX file, a MAVLink log, or a folder of photos.

    Raises:
        AirlocError: If it cannot be read, or has no position.
    """
    if path.is_dir():
        track = _read_photos(path)
    elif path.suffix.lower() == ".gpx":
        track = Track(_read_gpx(path), photos=False)
    elif path.suffix.lower() in LOGS:
        track = _read_log(path)
    else:
        raise AirlocError(f"{str(path)!r} is not a track", f"Give a .gpx file, a log ({', '.join(LOGS)}) or a folder")
    if not track.poses:
        raise AirlocError(f"The track {path} has no position", "Give the track of a flight")
    return track


def seen_ground(track: Track, plane: Plane, camera: Camera, height_m: float) -> MultiPolygon | Polygon:
    """Return the ground that a flight has seen, in the plane.

    Args:
        track: The flight.
        plane: The plane.
        camera: The camera, for photos without a field of view of their own.
        height_m: Height above ground of poses that do not have their own.
    """
    points = plane.from_degrees([(pose.lat, pose.lon) for pose in track.poses])
    sides = [_footprint(pose, camera, height_m) for pose in track.poses]
    if track.photos:
        shapes = [
            _rectangle(point, longer, shorter, pose.heading)
            for point, pose, (longer, shorter) in zip(points, track.poses, sides, strict=True)
        ]
        return shapely.union_all(shapes)
    discs = [Point(point).buffer(shorter / 2) for point, (_, shorter) in zip(points, sides, strict=True)]
    legs = [
        LineString([a, b]).buffer(min(first, second) / 2)
        for (a, (_, first)), (b, (_, second)) in pairwise(zip(points, sides, strict=True))
        if 0 < np.linalg.norm(a - b) <= MAX_GAP
    ]
    return shapely.union_all([*discs, *legs])


def _footprint(pose: Pose, camera: Camera, height_m: float) -> tuple[float, float]:
    own = camera if pose.fov is None else Camera(min(160.0, max(1.0, pose.fov)), camera.aspect)
    height = height_m if pose.height_m is None else pose.height_m
    return own.footprint(height) if height >= MIN_HEIGHT else (0.0, 0.0)


def _rectangle(point: Any, longer: float, shorter: float, heading: float | None) -> Polygon:
    """Return the footprint of a photo, whose upper edge is a longer side; a disc if its heading is unknown."""
    if heading is None:
        return Point(point).buffer(shorter / 2)
    turn = np.radians(heading)
    right, up = np.array([np.cos(turn), -np.sin(turn)]), np.array([np.sin(turn), np.cos(turn)])
    corners = [(-1, 1), (1, 1), (1, -1), (-1, -1)]
    return Polygon([point + x * longer / 2 * right + y * shorter / 2 * up for x, y in corners])


def _read_photos(folder: Path) -> Track:
    tags = [read_tags(_read(path)) for path in list_photos(folder)]
    usable = [one for one in tags if one.located and (one.pitch is None or one.pitch <= STEEPEST)]
    poses = [Pose(one.lat or 0.0, one.lon or 0.0, one.height_m, one.heading, one.fov) for one in usable]
    return Track(poses, photos=True, left_out=len(tags) - len(usable))


def _read_gpx(path: Path) -> list[Pose]:
    data = _read(path)
    if len(data) > MAX_GPX or re.search(rb"<!(DOCTYPE|ENTITY)", data, re.IGNORECASE):
        raise AirlocError(f"The track {path} is not a plain GPX file", "Export it again")
    try:
        root = ElementTree.fromstring(data)
        nodes = [node for node in root.iter() if node.tag.rpartition("}")[2] in POINTS]
        places = [(float(node.attrib["lat"]), float(node.attrib["lon"])) for node in nodes]
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise AirlocError(f"The track {path} is not GPX: {error}", "Export it again as GPX") from error
    return [Pose(lat, lon) for lat, lon in places if _on_earth(lat, lon)]


def _read_log(path: Path) -> Track:
    """Read a MAVLink telemetry log or an ArduPilot dataflash log."""
    from pymavlink import mavutil

    _read(path, 1)  # raises an error if there is no such file
    flown: list[Pose] = []
    taken: list[Pose] = []
    try:
        log = mavutil.mavlink_connection(str(path), dialect="ardupilotmega")
        while (message := log.recv_match(type=list(_PARSERS))) is not None:
            kind = message.get_type()
            pose = _PARSERS[kind](message)
            if _on_earth(pose.lat, pose.lon):
                (flown if kind in ("GLOBAL_POSITION_INT", "POS") else taken).append(pose)
        log.close()
    except AirlocError:
        raise
    except Exception as error:  # the readers of pymavlink raise errors of many kinds for damaged logs
        if not flown and not taken:
            raise AirlocError(f"Cannot read the log {path}: {error}", "Give a .tlog or .bin file") from error
    return Track(taken or flown, photos=bool(taken))


_PARSERS = {
    "GLOBAL_POSITION_INT": lambda at: Pose(at.lat / 1e7, at.lon / 1e7, at.relative_alt / 1000),
    "CAMERA_IMAGE_CAPTURED": lambda at: Pose(at.lat / 1e7, at.lon / 1e7, at.relative_alt / 1000),
    "CAMERA_FEEDBACK": lambda at: Pose(at.lat / 1e7, at.lng / 1e7, at.alt_rel, at.yaw),
    "POS": lambda at: Pose(at.Lat, at.Lng, at.RelHomeAlt),
    "CAM": lambda at: Pose(at.Lat, at.Lng, at.RelAlt, getattr(at, "Y", None)),
}
"""Messages with positions: those of photos, and those of the path, in MAVLink and in dataflash logs."""


def _on_earth(lat: float, lon: float) -> bool:
    return abs(lat) <= 90 and abs(lon) <= 180 and (lat, lon) != (0, 0)


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise AirlocError(f"Cannot read {path}: {error.strerror}", "Check the path and its permissions") from None
