"""What clients and the search server say to each other."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from airloc.task.rules import FALSE_ALARM_COST

Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]


class Message(BaseModel):
    """No fields but those named, no NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Place(Message):
    """A position in degrees of WGS 84."""

    lat: Latitude
    lon: Longitude


class NewSearch(Message):
    """What a search is begun with."""

    goal: Annotated[str, Field(min_length=1, max_length=24_000_000, description="JPEG or PNG in base64")]
    outline: Annotated[list[Place], Field(min_length=2, max_length=2000, description="corners; two of them are a box")]
    cell_m: Annotated[float, Field(gt=0, le=100_000, description="side of a cell in metres")] = 100.0
    gap_m: Annotated[float | None, Field(ge=0, le=100_000, description="a twelfth of a cell by default")] = None
    heading: Annotated[float, Field(ge=-360, le=360, description="compass direction of the grid's columns")] = 0.0
    start: Annotated[Place | None, Field(description="where to begin; the middle by default")] = None
    budget: Annotated[int | None, Field(ge=1, le=2048, description="moves; twice the longer side by default")] = None
    agent: Annotated[str | None, Field(max_length=64, description="who leads; the server's choice by default")] = None
    goal_width_m: Annotated[float | None, Field(gt=0, le=100_000, description="ground that the goal shows")] = None
    false_alarm_cost: Annotated[float, Field(ge=0, le=1e9, description="of a false alarm, in finds")] = FALSE_ALARM_COST
    detection: Annotated[float, Field(ge=0, le=1, description="of recognising the goal where it is shown")] = 0.9
    fov: Annotated[float, Field(ge=1, le=160, description="across the longer side of photos, in degrees")] = 73.7
    aspect: Annotated[float, Field(ge=1, le=4, description="longer over shorter side of photos")] = 4 / 3
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


class Waypoint(Message):
    """A cell and where it is."""

    row: int
    col: int
    lat: float
    lon: float


class SearchState(Message):
    """How a search stands."""

    id: str
    status: Literal["searching", "found", "spent", "cancelled"]
    next: Annotated[Waypoint | None, Field(description="where the next photo is wanted; null when the search is over")]
    declared: Annotated[Waypoint | None, Field(description="where the goal is, as far as the searcher can tell")]
    here: Annotated[float | None, Field(description="probability that the last photo shows the goal")]
    best: Annotated[Waypoint, Field(description="the most probable cell")]
    best_probability: float
    probability_of_success: Annotated[float, Field(description="that what was flown would have found the goal")]
    moves_left: int
    photos: Annotated[int, Field(description="photos that counted so far")]
    rows: int
    cols: int
    height_m: Annotated[float, Field(description="from which a photo shows a whole cell")]
    begun: str


class Observed(SearchState):
    """How a search stands after a photo."""

    photo: Annotated[Waypoint, Field(description="the cell that the photo was taken for")]
    taken: Annotated[
        Literal["used", "kept", "repeated"],
        Field(description="used: it was waited for; kept: of another cell, kept for later; repeated: seen before"),
    ]


class BeliefMap(Message):
    """The belief over the grid."""

    poa: Annotated[list[list[float]], Field(description="probability of area, row by row; zero where not searched")]
    pod: Annotated[list[list[float]], Field(description="probability of detection")]


class Names(Message):
    """Some searches."""

    searches: list[str]


class Health(Message):
    """That the server is there."""

    airloc: str


class Problem(Message):
    """What is wrong and what to do about it."""

    problem: str
    cure: str
