"""Requests and responses of the search server, as pydantic models; `settings` has the request that creates a search."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from airloc.errors import AirlocError
from airloc.missions.team import FIRST
from airloc.task.rules import MAX_BUDGET

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
    start: Annotated[Position | None, Field(description="where it is launched; by default the start of the search")] = (
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
    home: Annotated[Position | None, Field(description="where vehicles take off; null for their first cell")]
    landing: Annotated[Position | None, Field(description="where they land; null for home")]
    vehicles: Annotated[list[VehicleState], Field(description="all vehicles; next and moves_left are of one of them")]
    created: Annotated[str, Field(description="time of creation in UTC, ISO 8601")]
    warnings: Annotated[list[str], Field(description="what may be wrong with the settings")]


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


class RequestError(AirlocError):
    """An invalid request, with its HTTP status."""

    def __init__(self, status: int, problem: str, cure: str) -> None:
        super().__init__(problem, cure)
        self.status = status


class Problem(Message):
    """An error: the problem and its cure."""

    problem: str
    cure: str


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of the errors of a route that can have these statuses."""
    reference = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}}
    # 422 defines the schema. A model for every status would double the time to create the application.
    return {status: {"model": Problem} if status == 422 else reference for status in statuses}
