"""Search a folder of photos: rank them by how much they look like the goal.

Every photo is compared with the goal at all places, by the same judge as the photos of a live search. What a photo
shows is cut into overlapping views, two cells wide. If the photo has height and field of view, its scale is known; if
not, its shorter side is taken to be the footprint of a search, 4/3 cells.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from airloc.agents.agent import Agent
from airloc.agents.matching import SIGHTING, comparison
from airloc.agents.pretrained import pretrained_locator
from airloc.agents.sighting import matching_network
from airloc.areas.area import Pixels
from airloc.areas.layout import axes_of
from airloc.areas.raster import Plane
from airloc.errors import AirlocError
from airloc.files import write_atomically, write_json
from airloc.missions.exif import PhotoTags, read_tags
from airloc.missions.flight import Camera, feature, feature_collection
from airloc.missions.photos import SIDE, Goal, PhotoPose, View, crop_to_view, find_flaw, read_photo
from airloc.missions.report import ranking_page
from airloc.missions.searcher import Candidate, Find, Glimpse
from airloc.vision.locator import GoalViews, judge

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp")
MAX_BYTES = 200_000_000
MAX_VIEWS = 400
"""Views of one photo; larger photos are refused, because the cell is too small for them."""
FOOTPRINT = 4 / 3
"""Shorter side of a photo of unknown scale, in cells."""


PlacedView: TypeAlias = tuple[View, npt.NDArray[np.float64]]
"""A view of a photo, and its middle in metres right of and above that of the photo."""


class RankedPhoto(NamedTuple):
    """A photo of a folder."""

    path: Path
    tags: PhotoTags
    probability: float
    """Probability that the photo shows the goal."""
    view: View
    """The part of the photo that looks most like the goal, two cells wide, north up if the heading is known."""
    offset: tuple[float, float]
    """Place of the goal in the view, in cells down and to the right of its middle."""
    position: tuple[float, float] | None
    """Latitude and longitude of that place; those of the camera if the scale or the heading is unknown. They are not
    exact if the photo is oblique."""


def list_photos(folder: Path) -> list[Path]:
    """Return the photos of a folder in the order of their names.

    Raises:
        AirlocError: If there is no such folder, or no photo in it.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    except OSError as error:
        raise AirlocError(f"Cannot read the folder {folder}: {error.strerror}", "Give a folder of photos") from None
    if not files:
        raise AirlocError(f"The folder {folder} has no photos", f"Give a folder with files {', '.join(SUFFIXES)}")
    return files


def rank_photos(
    paths: Sequence[Path],
    goal: Goal,
    cell_m: float,
    camera: Camera,
    agent: Agent,
    *,
    on_photo: Callable[[int], None] = lambda count: None,
) -> tuple[list[RankedPhoto], list[tuple[Path, str]]]:
    """Rank photos, the one most like the goal first.

    Args:
        paths: The photos.
        goal: The goal at the scale of the cells; its turn is the compass direction of its upper edge.
        cell_m: Side of a cell in metres.
        camera: Field of view of photos that do not have their own.
        agent: Agent whose network compares the photos; that of `belief` if it has none.
        on_photo: Called with 1 after every photo.

    Returns:
        The ranked photos, and those that cannot be read or are black, under- or overexposed, with the reason.
    """
    known, unknown = goal.views(), GoalViews(goal.picture, pretrained_locator(), (-180.0, 180.0), goal.scale)
    compare = comparison(matching_network(agent))
    ranked, unreadable = [], []
    for path in paths:
        try:
            photo, tags = _read(path)
            placed = _exposed(_views(photo, tags, cell_m, camera))
            turned = unknown if tags.heading is None else known
            verdicts = [judge(turned, SIGHTING, compare, *view, 0.0) for view, _ in placed]
            (view, middle), verdict = max(zip(placed, verdicts, strict=True), key=lambda pair: pair[1].probability)
            place = _position(tags, middle + cell_m * np.array([verdict.right, -verdict.down]))
            ranked.append(RankedPhoto(path, tags, verdict.probability, view, (verdict.down, verdict.right), place))
        except AirlocError as error:
            unreadable.append((path, error.problem))
        on_photo(1)
    return sorted(ranked, key=lambda photo: -photo.probability), unreadable


def _read(path: Path) -> tuple[Pixels, PhotoTags]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AirlocError(f"The photo {path.name} is larger than {MAX_BYTES // 1_000_000} MB", "Send a smaller one")
        data = path.read_bytes()
    except OSError as error:
        raise AirlocError(f"Cannot read the photo {path.name}: {error.strerror}", "Check it") from error
    return read_photo(data, f"photo {path.name}"), read_tags(data)


def _views(photo: Pixels, tags: PhotoTags, cell_m: float, camera: Camera) -> Iterator[PlacedView]:
    """Yield overlapping views of a photo, two cells wide."""
    height, width = photo.shape[:2]
    if tags.height_m is None:
        scale = FOOTPRINT * cell_m / min(width, height)
        ground = width * scale, height * scale
    else:
        ground = camera.with_fov(tags.fov).footprint_of(photo, tags.height_m)
    heading = tags.heading or 0.0
    up, right = axes_of(heading)
    steps = [max(1, math.ceil(side / cell_m) - 1) for side in ground]
    if steps[0] * steps[1] > MAX_VIEWS:
        problem = f"it shows {ground[0]:.0f} x {ground[1]:.0f} m, too much for cells of {cell_m:g} m"
        raise AirlocError(problem, "Give larger cells")
    places = [((np.arange(count) + 1) / (count + 1) - 0.5) * side for count, side in zip(steps, ground, strict=True)]
    for x in places[0].tolist():
        for y in places[1].tolist():
            middle = x * right + y * up
            right_m, up_m = (-middle).tolist()
            yield crop_to_view(photo, cell_m, PhotoPose(ground[0], right_m, up_m, heading)), middle


def _exposed(views: Iterable[PlacedView]) -> list[PlacedView]:
    """Return the views that show anything; blurred ones too, because a flight that is over cannot take them again.

    Raises:
        AirlocError: If all views are black, underexposed or overexposed.
    """
    checked = [(find_flaw(placed[0]), placed) for placed in views]
    usable = [placed for flaw, placed in checked if flaw in (None, "blurred")]
    if not usable:
        raise AirlocError(f"it is {checked[0][0]}", "Give another photo")
    return usable


def _position(tags: PhotoTags, offset: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the position at an offset from the camera in metres east and north, or else that of the camera."""
    if tags.position is None or tags.height_m is None or tags.heading is None:
        return tags.position
    lat, lon = Plane(*tags.position).to_degrees(offset).tolist()
    return lat, lon


def write_ranking(folder: Path, goal: Goal, ranked: Sequence[RankedPhoto]) -> list[Path]:
    """Write the ranking as a page, as JSON and as GeoJSON; return the paths, the page first."""
    captioned = [
        (Candidate(number, Glimpse(photo.view.pixels, 1.0, photo.view), _find(photo)), _caption(photo))
        for number, photo in enumerate(ranked, start=1)
    ]
    listed = [_to_json(photo, number) for number, photo in enumerate(ranked, start=1)]
    points = [feature("Point", [entry["lon"], entry["lat"]], **entry) for entry in listed if entry["lat"] is not None]
    page = ranking_page(goal, captioned, SIDE, "north up where the heading is known")
    return [
        write_atomically(folder / "candidates.html", page),
        write_json(folder / "candidates.json", {"candidates": listed}),
        write_atomically(folder / "candidates.geojson", feature_collection(points)),
    ]


def _find(photo: RankedPhoto) -> Find:
    return Find((0, 0), photo.offset, photo.probability)


def _caption(photo: RankedPhoto) -> str:
    """Return file, position and probability of a photo as text."""
    place = "no position" if photo.position is None else "{:.6f},{:.6f}".format(*photo.position)
    slanted = ", taken obliquely" if photo.tags.oblique else ""
    return f"{photo.path.name}: {place}{slanted}, confidence {100 * photo.probability:.1f} %"


def _to_json(photo: RankedPhoto, number: int) -> dict[str, Any]:
    lat, lon = photo.position or (None, None)
    return {
        "rank": number,
        "file": photo.path.name,
        "match_probability": photo.probability,
        "lat": lat,
        "lon": lon,
        "height_m": photo.tags.height_m,
        "heading": photo.tags.heading,
        "oblique": photo.tags.oblique,
    }
