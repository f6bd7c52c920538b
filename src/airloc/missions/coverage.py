"""Coverage of a search area by an actual flight: what was seen, how well, and what is left to fly.

GPX tracks, MAVLink logs (.tlog, .bin, .log) and folders of photos become footprints. A log that records when photos
were taken counts only those; any other track counts as if it was filmed throughout. The heading of a track is not
known: what a photo shows in any heading counts, a disc as wide as its shorter side.

`coverage.tif` has one pixel per cell: the fraction of the cell that was seen, and the probability of detection (POD),
that fraction times the POD of a photo of a whole cell. `left.geojson` has the polygons that were not seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import LineString, MultiPolygon, Point, Polygon, mapping

from airloc.areas.features import parse_xml
from airloc.areas.layout import Layout, axes_of, fraction_inside
from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.files import write_atomically, write_json
from airloc.missions.exif import on_earth, read_tags
from airloc.missions.flight import Camera, feature, feature_collection
from airloc.missions.outputs import write_cells
from airloc.missions.ranking import list_photos

MAX_GPX = 50_000_000
MIN_HEIGHT = 1.0
"""Height in metres below which a vehicle stands on the ground."""
MAX_GAP = 500.0
"""Metres between two points of a track above which the vehicle was not recorded between them."""
LOGS = (".tlog", ".bin", ".log")
POINTS = {"trkpt", "rtept", "wpt"}
MIN_PART = 0.02
"""Area of the smallest polygon that is worth flying again, in cells."""


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


@dataclass(frozen=True, eq=False)
class Coverage:
    """What a flight has seen of a search area."""

    layout: Layout
    seen: MultiPolygon | Polygon
    """Ground inside the outline that was seen, in the plane."""
    left: Sequence[Polygon]
    """Ground inside the outline that was not seen, the largest part first."""
    fraction: npt.NDArray[np.float64]
    """Fraction of each cell inside the outline that was seen, (rows, cols)."""
    detection: float
    """POD of a photo that shows a whole cell."""

    @property
    def pod(self) -> npt.NDArray[np.float64]:
        """Probability of detection of each cell, (rows, cols)."""
        return self.fraction * self.detection

    @property
    def share(self) -> float:
        """Fraction of the search area that was seen."""
        assert self.layout.region is not None
        return float(self.seen.area / self.layout.region.area)


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


def cover(layout: Layout, seen: MultiPolygon | Polygon, detection: float) -> Coverage:
    """Return the coverage of a search area by the ground that a flight has seen.

    Args:
        layout: The grid on the outline.
        seen: The ground, in the plane of the layout.
        detection: POD of a photo that shows a whole cell.
    """
    assert layout.region is not None
    inside, cells = seen.intersection(layout.region), layout.polygons()
    wanted = fraction_inside(cells, layout.region, layout.cell_m**2)
    found = fraction_inside(cells, inside, layout.cell_m**2) if inside.area else np.zeros(len(cells))
    fraction = np.divide(found, wanted, out=np.zeros(len(cells)), where=wanted > 0).clip(0, 1)
    smallest = MIN_PART * layout.cell_m**2
    parts = [
        part
        for part in shapely.get_parts(layout.region.difference(inside.buffer(1e-6)))
        if part.geom_type == "Polygon" and part.area >= smallest
    ]
    left = sorted(parts, key=lambda part: -part.area)
    return Coverage(layout, inside, left, fraction.reshape(layout.grid.shape), detection)


def write_coverage(folder: Path, coverage: Coverage) -> list[Path]:
    """Write the coverage as GeoTIFF, the seen and the unseen ground as GeoJSON, and a summary; return the paths."""
    bands = {"coverage": coverage.fraction, "POD": coverage.pod}
    return [
        write_cells(folder / "coverage.tif", coverage.layout, bands),
        write_atomically(folder / "left.geojson", _geojson(coverage.layout, coverage.left)),
        write_atomically(folder / "seen.geojson", _geojson(coverage.layout, shapely.get_parts(coverage.seen))),
        write_json(folder / "coverage.json", _summary(coverage)),
    ]


def _footprint(pose: Pose, camera: Camera, height_m: float) -> tuple[float, float]:
    height = height_m if pose.height_m is None else pose.height_m
    return camera.with_fov(pose.fov).footprint(height) if height >= MIN_HEIGHT else (0.0, 0.0)


def _rectangle(point: Any, longer: float, shorter: float, heading: float | None) -> Polygon:
    """Return the footprint of a photo, whose upper edge is a longer side; a disc if its heading is unknown."""
    if heading is None:
        return Point(point).buffer(shorter / 2)
    up, right = axes_of(heading)
    corners = [(-1, 1), (1, 1), (1, -1), (-1, -1)]
    return Polygon([point + x * longer / 2 * right + y * shorter / 2 * up for x, y in corners])


def _read_photos(folder: Path) -> Track:
    tags = [read_tags(_read(path)) for path in list_photos(folder)]
    poses = [
        Pose(*one.position, one.height_m, one.heading, one.fov)
        for one in tags
        if one.position is not None and not one.oblique
    ]
    return Track(poses, photos=True, left_out=len(tags) - len(poses))


def _read_gpx(path: Path) -> list[Pose]:
    data = _read(path)
    if len(data) > MAX_GPX:
        raise AirlocError(f"The track {path} is larger than {MAX_GPX / 1e6:.0f} MB", "Simplify it first")
    try:
        root = parse_xml(data)
        nodes = [node for node in root.iter() if node.tag.rpartition("}")[2] in POINTS]
        places = [(float(node.attrib["lat"]), float(node.attrib["lon"])) for node in nodes]
    except (KeyError, ValueError) as error:
        raise AirlocError(f"The track {path} is not GPX: {error}", "Export it again as GPX") from error
    return [Pose(lat, lon) for lat, lon in places if on_earth(lat, lon)]


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
            if on_earth(pose.lat, pose.lon):
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


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise AirlocError(f"Cannot read {path}: {error.strerror}", "Check the path and its permissions") from None


def _summary(coverage: Coverage) -> dict[str, Any]:
    assert coverage.layout.region is not None
    return {
        "area_m2": coverage.layout.region.area,
        "seen_m2": coverage.seen.area,
        "coverage": coverage.share,
        "detection": coverage.detection,
        "pod": coverage.share * coverage.detection,
        "left_m2": sum(part.area for part in coverage.left),
        "left_parts": len(coverage.left),
    }


def _geojson(layout: Layout, parts: Sequence[Polygon]) -> str:
    """Return polygons of the plane as GeoJSON."""
    plane, features = layout.require_plane(), []
    for part in parts:
        if part.geom_type == "Polygon":
            in_degrees = shapely.transform(part, lambda points: plane.to_degrees(points)[:, ::-1].round(9))
            features.append(feature("Polygon", mapping(in_degrees)["coordinates"], area_m2=part.area))
    return feature_collection(features)
