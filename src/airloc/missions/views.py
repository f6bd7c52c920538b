"""What the map shows of a search, as messages: the geometry, which stays, and the view, which every photo changes.

All places on the map are fractional rows and columns of the grid, so that the grid is upright whatever its heading:
the centre of the upper left cell is (0, 0).
"""

from collections import defaultdict
from typing import Annotated

import numpy as np
import shapely
from pydantic import Field
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.layout import Layout
from airloc.drawing.palette import heat, hex_of
from airloc.missions.messages import CandidatePhoto, Message, SearchState
from airloc.missions.orthophotos import MARGIN
from airloc.missions.plan import far_ports, point_of
from airloc.missions.service import ActiveSearch, PhotoArrival
from airloc.missions.settings import StoredSettings
from airloc.missions.vehicles import cell_location

COLOURS = 33
"""Number of colours of the probabilities."""
DIGITS = 6

Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
"""A fractional row and column, or a latitude and longitude."""


class SearchGeometry(Message):
    """The grid of a search on the ground."""

    id: str
    name: str | None
    created: Annotated[str, Field(description="time of creation in UTC, ISO 8601")]
    rows: int
    cols: int
    cell_m: Annotated[float, Field(description="side of a cell in metres")]
    pitch_m: Annotated[float, Field(description="distance between the centres of neighbouring cells in metres")]
    heading: Annotated[float, Field(description="compass direction of the columns, upwards")]
    outline: Annotated[list[list[Pair]], Field(description="rings of the outline, in rows and columns")]
    no_fly: Annotated[list[list[Pair]], Field(description="rings of the no-fly zones, in rows and columns")]
    home: Annotated[Pair | None, Field(description="where vehicles take off, in rows and columns")]
    landing: Annotated[Pair | None, Field(description="where vehicles land, in rows and columns")]
    frame: Annotated[
        list[float],
        Field(
            min_length=4,
            max_length=4,
            description="upper, left, lower and right end of the first view of the map, in rows and columns: the grid, "
            "and home and landing unless they are far away",
        ),
    ]
    positions: Annotated[list[list[Pair]], Field(description="latitude and longitude of the centres of all cells")]
    searchable: Annotated[list[list[bool]], Field(description="cells that are searched")]
    goal_text: Annotated[str | None, Field(description="description of the goal in words")]
    goal_pictured: Annotated[bool, Field(description="whether there is a picture of the goal")]
    colours: Annotated[list[str], Field(description="perceptually uniform colours, from probability 0 upwards")]
    margin: Annotated[float | None, Field(description="cells around the grid in the background image; null without")]


class PhotoView(CandidatePhoto):
    """A photo on the map."""

    received: Annotated[str | None, Field(description="time at which the server received it, in UTC, ISO 8601")]
    vehicle: Annotated[str, Field(description="vehicle that took the photo")]
    place: Annotated[Pair, Field(description="row and column at which the photo would show the goal")]


class Track(Message):
    """The photos of a vehicle in their order."""

    vehicle: str
    places: Annotated[list[Pair], Field(description="rows and columns of the camera")]


class Waypoint(Message):
    """Where a vehicle takes its next photo."""

    vehicle: str
    row: int
    col: int
    place: Annotated[Pair, Field(description="row and column of the camera, inside the fence")]


class SearchView(Message):
    """Everything that changes during a search."""

    state: SearchState
    photos: Annotated[list[PhotoView], Field(description="all photos, the one that looks most like the goal first")]
    tracks: list[Track]
    waypoints: Annotated[list[Waypoint], Field(description="the next photo of every vehicle that has one")]
    poa: Annotated[list[list[float]], Field(description="probability of area; zero outside the search area")]
    pod: Annotated[list[list[float]], Field(description="probability of detection")]


def geometry_of(active: ActiveSearch, background: bool) -> SearchGeometry:
    """Return the geometry of a search.

    Args:
        active: The search.
        background: Whether the server has an image of the ground.
    """
    layout, settings = active.field.layout, StoredSettings.model_validate(active.stored.settings)
    no_fly = active.field.plan.flight.no_fly
    cells = np.stack(np.meshgrid(*map(np.arange, layout.grid.shape), indexing="ij"), axis=-1)
    far = far_ports(active.field.plan, layout)
    ports = {
        name: None if port is None else _place(layout, port.lat, port.lon)
        for name, port in (("home", settings.home), ("landing", settings.landing))
    }
    corners = [[-0.5, -0.5], [layout.grid.rows - 0.5, layout.grid.cols - 0.5]]
    shown = corners + [port for name, port in ports.items() if port is not None and name not in far]
    return SearchGeometry(
        id=active.stored.id,
        name=settings.name,
        created=active.stored.created,
        rows=layout.grid.rows,
        cols=layout.grid.cols,
        cell_m=layout.cell_m,
        pitch_m=layout.pitch_m,
        heading=layout.heading,
        outline=_rings(layout, settings.shape()),
        no_fly=[] if no_fly is None else _rings(layout, no_fly),
        **ports,
        frame=[*np.min(shown, axis=0).tolist(), *np.max(shown, axis=0).tolist()],
        positions=np.round(layout.lat_lon(cells), 7).tolist(),
        searchable=layout.searchable.tolist(),
        goal_text=active.field.goal.text or None,
        goal_pictured=active.field.goal.pictured,
        colours=[hex_of((red, green, blue)) for red, green, blue in heat(np.linspace(0, 1, COLOURS)).tolist()],
        margin=MARGIN if background else None,
    )


def view_of(active: ActiveSearch, state: SearchState) -> SearchView:
    """Return the view of a search."""
    searcher, layout = active.field.searcher, active.field.layout
    photos = []
    for photo in searcher.candidates():
        arrival = active.arrivals[photo.number - 1]
        photos.append(
            PhotoView(
                **cell_location(layout, *photo.find[:2]).model_dump(),
                number=photo.number,
                match_probability=photo.find.probability,
                verdict=photo.verdict,
                received=arrival.received,
                vehicle=arrival.vehicle,
                place=list(photo.find.position),
            )
        )
    return SearchView(
        state=state,
        photos=photos,
        tracks=_tracks(active),
        waypoints=[
            Waypoint(vehicle=vehicle.id, row=cell.row, col=cell.col, place=[*active.field.place((cell.row, cell.col))])
            for vehicle in state.vehicles
            if (cell := vehicle.next) is not None
        ],
        poa=np.round(searcher.belief(), DIGITS).tolist(),
        pod=np.round(searcher.pod, DIGITS).tolist(),
    )


def _tracks(active: ActiveSearch) -> list[Track]:
    """Return one track for each vehicle, in the order of their first photos."""
    tracks: defaultdict[str, list[Pair]] = defaultdict(list)
    for photo, arrival in zip(active.field.searcher.photos, active.arrivals, strict=True):
        tracks[arrival.vehicle].append(_camera(active.field.layout, arrival) or list(photo.find.cell))
    return [Track(vehicle=vehicle, places=places) for vehicle, places in tracks.items()]


def _camera(layout: Layout, arrival: PhotoArrival) -> Pair | None:
    """Return the place of the camera, if it is known."""
    return None if arrival.position is None else _place(layout, arrival.position.lat, arrival.position.lon)


def _rings(layout: Layout, shape: MultiPolygon | Polygon) -> list[list[list[float]]]:
    """Return all rings of a geometry in (lon, lat) as places."""
    rings = shapely.get_rings(shapely.get_parts(shape))
    return [[_place(layout, lat, lon) for lon, lat in shapely.get_coordinates(ring).tolist()] for ring in rings]


def _place(layout: Layout, lat: float, lon: float) -> Pair:
    row, col = layout.grid_position(point_of(layout, (lat, lon)))
    return [round(row, 4), round(col, 4)]
