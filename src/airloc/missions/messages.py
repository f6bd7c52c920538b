"""Requests and responses of the search server, as pydantic models."""

import json
from typing import Annotated, Any, Literal

import shapely
from pydantic import BaseModel, ConfigDict, Field, field_validator
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.outline import read_outline
from airloc.missions.endurance import FlightSettings
from airloc.missions.flight import Camera
from airloc.missions.plan import SearchPlan
from airloc.missions.team import FIRST, MAX_VEHICLES
from airloc.task.rules import FALSE_ALARM_COST, MAX_BUDGET

__all__ = [
    "BeliefMap",
    "CandidateList",
    "CandidatePhoto",
    "CellLocation",
    "Health",
    "NewSearch",
    "NewVehicle",
    "PhotoOutcome",
    "PhotoPosition",
    "PhotoQuery",
    "PhotoResult",
    "Position",
    "Problem",
    "SearchList",
    "SearchSettings",
    "SearchState",
    "SearchSummary",
    "VehicleState",
    "Verdict",
]

VehicleId = Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
PhotoOutcome = Literal["used", "kept", "added", "repeated", "unusable"]


class Message(BaseModel):
    """Base of all messages: unknown fields and NaN are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Position(Message):
    """A position in degrees of WGS 84."""

    lat: Latitude
    lon: Longitude


class SearchSettings(Message):
    """Settings of a search; the store keeps them."""

    name: Annotated[str | None, Field(max_length=100, description="name of the search for people")] = None
    outline: Annotated[
        list[Position], Field(min_length=2, max_length=2000, description="corners of the search area; two are a box")
    ]
    cell_m: Annotated[float, Field(gt=0, le=100_000, description="side of a cell in metres")] = 100.0
    gap_m: Annotated[
        float | None, Field(ge=0, le=100_000, description="gap between cells; a twelfth of a cell by default")
    ] = None
    heading: Annotated[float, Field(ge=-360, le=360, description="compass direction of the grid's columns")] = 0.0
    margin_m: Annotated[
        float, Field(ge=0, le=100_000, description="metres that waypoints may lie outside the outline")
    ] = 0.0
    no_fly: Annotated[
        list[Annotated[list[Position], Field(min_length=3, max_length=2000)]],
        Field(max_length=200, description="zones that no waypoint lies in, each by its corners"),
    ] = []
    start: Annotated[
        Position | None, Field(description="position of the first photo; the centre of the grid by default")
    ] = None
    budget: Annotated[
        int | None, Field(ge=1, le=MAX_BUDGET, description="moves; twice the longer side of the grid by default")
    ] = None
    agent: Annotated[
        str | None, Field(max_length=64, description="name of an agent; the server's agent by default")
    ] = None
    goal_width_m: Annotated[
        float | None, Field(gt=0, le=100_000, description="width of the ground that the goal image shows")
    ] = None
    goal_width_max_m: Annotated[
        float | None, Field(gt=0, le=100_000, description="largest width of that ground, if it is not known exactly")
    ] = None
    goal_heading: Annotated[
        float | None,
        Field(ge=-360, le=360, description="compass direction of the goal image's upper edge; unknown by default"),
    ] = None
    footprint: Annotated[
        float, Field(ge=1, le=4, description="shorter side of the ground that a photo shows, in cells")
    ] = 4 / 3
    false_alarm_cost: Annotated[float, Field(ge=0, le=1e9, description="cost of a false alarm, in finds")] = (
        FALSE_ALARM_COST
    )
    goal_text: Annotated[
        str | None,
        Field(min_length=1, max_length=4000, description="description of the goal in English words"),
    ] = None
    goal_same_day: Annotated[bool, Field(description="the goal image is from the day of the flight")] = False
    detection: Annotated[
        float | None,
        Field(ge=0, le=1, description="probability of detection in a photo of the whole cell; measured by default"),
    ] = None
    fov: Annotated[
        float, Field(ge=1, le=160, description="field of view across the longer side of a photo, in degrees")
    ] = 73.7
    aspect: Annotated[float, Field(ge=1, le=4, description="longer side of a photo over its shorter side")] = 4 / 3
    seed: Annotated[int, Field(ge=0, le=2**31, description="random seed for agents that sample")] = 0
    prior: Annotated[
        dict[str, Any] | None,
        Field(description="GeoJSON of what is known: polygons with the property weight or poa; roads and trails"),
    ] = None
    prior_tif: Annotated[
        str | None, Field(max_length=6_000_000, description="GeoTIFF of probabilities in base64, such as prior.tif")
    ] = None
    lkp: Annotated[Position | None, Field(description="last known point of a lost person; needs subject")] = None
    subject: Annotated[
        str | None, Field(max_length=64, description="category of the lost person, such as hiker; needs lkp")
    ] = None
    drones: Annotated[
        int, Field(ge=1, le=MAX_VEHICLES, description="vehicles 1, 2, ... that begin the search, each with the budget")
    ] = 1
    launches: Annotated[
        list[Position], Field(max_length=MAX_VEHICLES - 1, description="launch positions of vehicles 2, 3, ...")
    ] = []
    walking_m_s: Annotated[
        float, Field(ge=0, le=50, description="walking speed of a target that moves, while vehicles fly 8 m/s")
    ] = 0.0
    drift_m_s: Annotated[float, Field(ge=0, le=50, description="speed of a target that drifts")] = 0.0
    drift_direction: Annotated[
        float, Field(ge=-360, le=360, description="compass direction that the target drifts to")
    ] = 0.0

    @field_validator("prior")
    @classmethod
    def _is_json(cls, prior: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            json.dumps(prior, allow_nan=False)  # the store keeps JSON
        except RecursionError:
            raise ValueError("the GeoJSON is nested too deeply") from None
        return prior

    def shape(self) -> MultiPolygon:
        """Return the outline as a geometry in (lon, lat)."""
        return read_outline(" ".join(f"{corner.lat!r},{corner.lon!r}" for corner in self.outline))

    def plan(self, default_agent: str) -> SearchPlan:
        """Return the plan of the search."""
        return SearchPlan(
            cell_m=self.cell_m,
            gap_m=self.gap_m,
            heading=self.heading,
            start=None if self.start is None else (self.start.lat, self.start.lon),
            budget=self.budget,
            agent=self.agent or default_agent,
            false_alarm_cost=self.false_alarm_cost,
            detection=self.detection,
            footprint=self.footprint,
            camera=Camera(self.fov, self.aspect),
            flight=FlightSettings(margin_m=self.margin_m, no_fly=_zones(self.no_fly)),
            seed=self.seed,
            drones=self.drones,
            launches=tuple((launch.lat, launch.lon) for launch in self.launches),
            walking=self.walking_m_s,
            drift=(self.drift_m_s, self.drift_direction),
        )


def _zones(zones: list[list[Position]]) -> MultiPolygon | Polygon | None:
    """Return no-fly zones as one geometry in (lon, lat)."""
    outlines = [read_outline(" ".join(f"{corner.lat!r},{corner.lon!r}" for corner in zone)) for zone in zones]
    return shapely.union_all(outlines) if outlines else None


class NewSearch(SearchSettings):
    """Request that creates a search."""

    goal: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=24_000_000,
            description="image of the goal, JPEG or PNG in base64; not needed with goal_text",
        ),
    ] = None


class PhotoQuery(Message):
    """Position and orientation of the camera when it took a photo, and whether the photo is checked."""

    lat: Annotated[
        Latitude | None,
        Field(description="latitude of the camera; by default all comes from the photo's EXIF and XMP"),
    ] = None
    lon: Annotated[Longitude | None, Field(description="longitude of the camera")] = None
    height_m: Annotated[
        float | None,
        Field(gt=0, le=20_000, description="height above ground; without it the photo's central square is the cell"),
    ] = None
    heading: Annotated[
        float | None,
        Field(ge=-360, le=360, description="compass direction of the photo's upper edge; the grid's by default"),
    ] = None
    vehicle: Annotated[VehicleId, Field(description="vehicle that took the photo")] = FIRST
    accept: Annotated[bool, Field(description="use the photo even if it is black, blurred or misexposed")] = False


class NewVehicle(Message):
    """Request of a vehicle to take part in a search, or to take part again after it has left."""

    id: Annotated[VehicleId, Field(description="name of the vehicle")]
    start: Annotated[Position | None, Field(description="where it is launched; the start of the search by default")] = (
        None
    )
    budget: Annotated[
        int | None, Field(ge=1, le=MAX_BUDGET, description="moves that it may fly; those of the search by default")
    ] = None


class PhotoPosition(PhotoQuery):
    """Position and orientation of the camera when it took a photo, as the store keeps them."""

    lat: Annotated[Latitude, Field(description="latitude of the camera")]
    lon: Annotated[Longitude, Field(description="longitude of the camera")]


class CellLocation(Message):
    """A cell and the position of its centre, or of the goal in the photo of the cell."""

    row: int
    col: int
    lat: float
    lon: float


class VehicleState(Message):
    """State of a vehicle of a search."""

    id: str
    next: Annotated[CellLocation | None, Field(description="cell to photograph next; null if there is none in reach")]
    route: Annotated[
        list[Position], Field(description="positions to fly through on the way there, so as not to leave the outline")
    ]
    position: Annotated[CellLocation, Field(description="cell of its last photo, or of its launch")]
    moves_left: Annotated[int, Field(description="moves left in its budget")]
    photos: Annotated[int, Field(description="photos of cells that it was sent to")]
    active: Annotated[bool, Field(description="false after it has left the search")]


class SearchState(Message):
    """State of a search."""

    id: str
    status: Literal["searching", "found", "spent", "cancelled"]
    next: Annotated[CellLocation | None, Field(description="cell to photograph next; null when the search has ended")]
    declared: Annotated[
        CellLocation | None, Field(description="cell of the photo that shows the goal; position of the goal's centre")
    ]
    match_probability: Annotated[float | None, Field(description="probability that the last new photo shows the goal")]
    best: Annotated[CellLocation, Field(description="cell with the highest probability of area")]
    best_probability: Annotated[float, Field(description="probability of area of that cell")]
    probability_of_success: Annotated[float, Field(description="probability that the flight so far finds the goal")]
    moves_left: Annotated[int, Field(description="moves left in the budget")]
    photos: Annotated[int, Field(description="number of photographed cells")]
    rows: int
    cols: int
    height_m: Annotated[float, Field(description="flight height from which a photo shows the footprint")]
    vehicles: Annotated[list[VehicleState], Field(description="all vehicles; next and moves_left are of one of them")]
    created: Annotated[str, Field(description="time of creation in UTC, ISO 8601")]


class PhotoResult(SearchState):
    """State of a search after a photo."""

    photo: Annotated[CellLocation, Field(description="cell below the camera")]
    outcome: Annotated[
        PhotoOutcome,
        Field(
            description="used: the next cell; kept: another cell; added: a further photo of a cell; repeated: the same "
            "photo again; unusable: black, blurred or misexposed, nothing has changed"
        ),
    ]
    number: Annotated[int | None, Field(description="number of the photo, from 1; null if it is unusable")]
    reason: Annotated[str | None, Field(description="why the photo is unusable, and what to do")]


class CandidatePhoto(CellLocation):
    """A photo, with the position at which it would show the goal."""

    number: Annotated[int, Field(description="number of the photo, from 1")]
    match_probability: Annotated[float, Field(description="probability that the photo shows the goal")]
    verdict: Annotated[bool | None, Field(description="verdict of a person; null if nobody has judged the photo")]


class CandidateList(Message):
    """All photos of a search: confirmed ones, then the others by match probability, then rejected ones."""

    candidates: list[CandidatePhoto]


class Verdict(Message):
    """The verdict of a person on a photo."""

    model_config = ConfigDict(strict=True)

    goal: Annotated[bool, Field(description="whether the photo shows the goal")]


class BeliefMap(Message):
    """Probabilities of all cells, row by row."""

    poa: Annotated[list[list[float]], Field(description="probability of area; zero outside the search area")]
    pod: Annotated[list[list[float]], Field(description="probability of detection")]


class SearchSummary(Message):
    """A search in the list of all searches."""

    id: str
    name: str | None
    created: Annotated[str, Field(description="time of creation in UTC, ISO 8601")]
    cancelled: bool
    photos: Annotated[int, Field(description="number of photos")]


class SearchList(Message):
    """All searches, newest first: their ids, and a summary of each."""

    searches: list[str]
    summaries: list[SearchSummary]


class Health(Message):
    """Version of a running server."""

    airloc: str


class Problem(Message):
    """An error: the problem and its cure."""

    problem: str
    cure: str
