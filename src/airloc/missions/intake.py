"""What clients send becomes parts of a search: goals, glimpses of the cell below a photo, sources of the prior.

Every error of a client is a `RequestError` with an HTTP status.
"""

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from airloc.areas.area import Pixels
from airloc.areas.features import Feature, parse_geojson
from airloc.areas.layout import Layout
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.exif import read_tags
from airloc.missions.messages import PhotoPosition, PhotoQuery, RequestError
from airloc.missions.orthophotos import StoredWeights, open_tiff
from airloc.missions.photos import (
    MIN_COVERAGE,
    SIDE,
    Goal,
    PhotoPose,
    centre_crop,
    crop_to_cell,
    crop_to_view,
    describe_goal,
    read_photo,
)
from airloc.missions.plan import FieldSearch, format_position, nearest_searchable, point_of, prepare_goal
from airloc.missions.priors import PriorSource, RasterPrior, feature_prior, last_known_point
from airloc.missions.searcher import Glimpse
from airloc.missions.session import Belief
from airloc.missions.settings import NewSearch, SearchSettings, StoredSettings
from airloc.missions.store import StoredGlimpse, StoredSearch

MAX_POSITIONS = 5000
"""Largest number of corners and points of a prior."""
MAX_RASTER_PIXELS = 16_000_000


def decode_goal(request: NewSearch) -> bytes:
    """Decode the file of the goal image of a request; empty if the goal is described in words alone."""
    if request.goal is None:
        if request.goal_text is None:
            raise RequestError(422, "The search has no goal", "Send a picture (goal) or a description (goal_text)")
        return b""
    return _decode(request.goal, "goal")


def decode_map(request: NewSearch) -> bytes | None:
    """Decode the orthophoto of a request, if it has one."""
    if request.match_map and request.goal is None:
        raise RequestError(
            422, "Only a picture of the goal can be matched with the orthophoto", "Send a picture (goal)"
        )
    return None if request.map_tif is None else _decode(request.map_tif, "map_tif")


def _decode(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(422, f"The {name} is not valid base64", "Encode the bytes of the file in base64") from None


def prior_sources(settings: StoredSettings) -> list[PriorSource]:
    """Return what a client knows about the place of the goal."""
    sources: list[PriorSource] = []
    if settings.prior is not None:
        sources.append(feature_prior(_features(settings.prior, "prior"), "prior"))
    if settings.prior_tif is not None:
        sources.append(_RasterFile(_decode(settings.prior_tif, "prior_tif")))
    if settings.map_weights is not None:
        sources.append(StoredWeights(settings.map_weights))
    point = None if settings.lkp is None else (settings.lkp.lat, settings.lkp.lon)
    return [*sources, *last_known_point(point, settings.subject)]


def road_features(settings: SearchSettings) -> list[Feature]:
    """Return the roads and trails that a client knows."""
    return [] if settings.roads is None else _features(settings.roads, "roads")


def _features(given: dict[str, Any], name: str) -> list[Feature]:
    features = parse_geojson(given, name)
    if sum(len(ring) for feature in features for ring in feature.rings) > MAX_POSITIONS:
        raise RequestError(422, f"The {name} has more than {MAX_POSITIONS} positions", "Simplify it first")
    return features


@dataclass(frozen=True)
class _RasterFile:
    """The content of a raster file that a client has sent."""

    content: bytes

    def __str__(self) -> str:
        return "prior_tif"

    def weights(self, layout: Layout) -> Belief:
        """Return the mean of the raster over every cell."""
        with open_tiff(self.content, "prior_tif", MAX_RASTER_PIXELS) as raster:
            return RasterPrior(raster.path).weights(layout)


def _pictured_goal(settings: SearchSettings, picture: bytes, layout: Layout) -> Goal:
    """Prepare the goal of a search from its image file."""
    low, high = settings.goal_width_m, settings.goal_width_max_m
    if high is not None and (low is None or high < low):
        raise RequestError(422, "goal_width_max_m is not larger than goal_width_m", "Give both, the smaller one first")
    widths = None if low is None else (low, high or low)
    image = read_photo(picture, "goal image")
    return prepare_goal(image, layout, widths, settings.goal_heading, same_day=settings.goal_same_day).goal


def stored_goal(settings: SearchSettings, stored: StoredSearch, layout: Layout) -> Goal:
    """Return the goal of a search; its patch alone if the store has no readable picture of it."""
    pictured = None if stored.picture == b"" else _stored_picture(settings, stored, layout)
    if settings.goal_text is None and pictured is not None:
        return pictured
    return describe_goal(settings.goal_text or "", pictured)


def _stored_picture(settings: SearchSettings, stored: StoredSearch, layout: Layout) -> Goal:
    """Return the goal of a search from its picture."""
    if stored.picture is None:  # a store of version 1, in which goals were aligned with the grid
        return Goal(_patch(stored.goal), _patch(stored.goal))
    try:
        return _pictured_goal(settings, stored.picture, layout)
    except AirlocError:
        if not stored.goal:  # a new search
            raise
        turn = None if settings.goal_heading is None else 0.0
        return Goal(_patch(stored.goal), _patch(stored.goal), turn, same_day=settings.goal_same_day)


def camera_position(query: PhotoQuery, photo: bytes) -> PhotoPosition:
    """Return the position of the camera: that of the request, or else that of the photo's EXIF and XMP."""
    if query.lat is not None and query.lon is not None:
        return PhotoPosition.model_validate(query.model_dump())
    if query.lat is not None or query.lon is not None:
        raise RequestError(422, "The position has only one of lat and lon", "Give both, or neither")
    tags = read_tags(photo)
    if tags.position is None:
        problem = "The photo has no position in its EXIF and XMP"
        raise RequestError(422, problem, "Give the position of the camera as lat and lon")
    if tags.oblique and not query.accept:
        problem = f"The gimbal had a pitch of {tags.pitch:.0f} degrees, so that the photo does not show the cell below"
        raise RequestError(422, problem, "Point the camera straight down, or post the photo with accept=true")
    lat, lon = tags.position
    height = tags.height_m if query.height_m is None else query.height_m
    heading = tags.heading if query.heading is None else query.heading
    changes = {"lat": lat, "lon": lon, "height_m": height, "heading": heading}
    return PhotoPosition.model_validate(query.model_dump() | changes)


def cell_below(layout: Layout, position: PhotoPosition) -> Cell:
    """Return the cell below the camera."""
    point = point_of(layout, (position.lat, position.lon))
    cell = layout.cell_at(point) if np.isfinite(point).all() else None
    if cell is None or not layout.searchable[cell]:
        nearest = nearest_searchable(layout, np.nan_to_num(point))
        away = float(np.linalg.norm(layout.centres(nearest) - point))
        problem = f"The photo was taken outside the search area, {away:.0f} m from the centre of the nearest cell"
        cure = f"Photograph the search area; the nearest cell is at {format_position(layout, nearest)}"
        raise RequestError(422, problem, cure)
    return cell


def crop_photo(search: FieldSearch, cell: Cell, photo: Pixels, position: PhotoPosition) -> Glimpse:
    """Crop a photo to its cell."""
    if position.height_m is None:
        return Glimpse(centre_crop(photo))
    layout = search.layout
    row, col = layout.grid_position(point_of(layout, (position.lat, position.lon)))
    pose = PhotoPose(
        width_m=search.plan.camera.footprint_of(photo, position.height_m)[0],
        right_m=(col - cell[1]) * layout.pitch_m,
        up_m=(cell[0] - row) * layout.pitch_m,
        rotation=0.0 if position.heading is None else position.heading - layout.heading,
    )
    pixels, coverage = crop_to_cell(photo, layout.cell_m, pose)
    centred = search.place(cell) == cell  # a cell at the edge of a fence is photographed from its own edge
    if coverage < (MIN_COVERAGE if centred else MIN_COVERAGE / 2):
        problem = f"The photo shows only {100 * coverage:.0f} % of the cell below"
        raise RequestError(422, problem, "Fly higher, or closer to the centre of the cell")
    return Glimpse(pixels, coverage, crop_to_view(photo, layout.cell_m, pose))


def stored_glimpse(search: FieldSearch, stored: StoredGlimpse) -> Glimpse:
    """Return a stored glimpse, with the view of its photo if that is stored and readable."""
    view, position = None, stored_position(stored)
    if stored.photo is not None and position is not None:
        with suppress(AirlocError):  # a damaged photo; the glimpse remains
            view = crop_photo(search, (stored.row, stored.col), read_photo(stored.photo), position).view
    return Glimpse(_patch(stored.pixels), stored.coverage, view)


def stored_position(stored: StoredGlimpse) -> PhotoPosition | None:
    """Return the position of a stored photo if it is stored and readable."""
    with suppress(ValidationError):
        return None if stored.position is None else PhotoPosition.model_validate_json(stored.position)
    return None


def _patch(data: bytes) -> Pixels:
    return np.frombuffer(data, dtype=np.uint8).reshape(SIDE, SIDE, 3)
