"""Settings of a search on the server: the request that creates a search, as pydantic models."""

import json
from typing import Annotated, Any

import shapely
from pydantic import Field, StringConstraints, field_validator
from shapely.geometry import MultiPolygon, Polygon

from airloc.areas.outline import outline_of
from airloc.missions.endurance import MAX_RESERVE, FlightSettings
from airloc.missions.flight import Camera
from airloc.missions.messages import Message, Position
from airloc.missions.plan import SearchPlan
from airloc.missions.team import MAX_VEHICLES
from airloc.task.rules import FALSE_ALARM_COST, MAX_BUDGET


class SearchSettings(Message):
    """Settings of a search; the store keeps them."""

    name: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True)] | None,
        Field(max_length=100, description="name of the search for people"),
    ] = None
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
        Field(max_length=200, description="zones that no waypoint lies in, each by its corners", default_factory=list),
    ]
    start: Annotated[
        Position | None, Field(description="position of the first photo; the centre of the grid by default")
    ] = None
    budget: Annotated[
        int | None, Field(ge=1, le=MAX_BUDGET, description="moves; twice the longer side of the grid by default")
    ] = None
    endurance_s: Annotated[
        float | None, Field(gt=0, le=1e6, description="flight time in seconds, instead of a budget; with the way home")
    ] = None
    speed_m_s: Annotated[float, Field(gt=0, le=200, description="airspeed of the vehicles")] = 8.0
    hover_s: Annotated[float, Field(ge=0, le=3600, description="seconds at each photo")] = 2.0
    home: Annotated[Position | None, Field(description="where vehicles take off; the first cell by default")] = None
    landing: Annotated[Position | None, Field(description="where vehicles land; home by default")] = None
    climb_m_s: Annotated[float, Field(gt=0, le=100, description="climb rate")] = 3.0
    descent_m_s: Annotated[float, Field(gt=0, le=100, description="descent rate")] = 2.0
    wind_m_s: Annotated[float, Field(ge=0, le=100, description="wind speed")] = 0.0
    wind_from: Annotated[float, Field(ge=-360, le=360, description="compass direction that the wind comes from")] = 0.0
    reserve: Annotated[
        float, Field(ge=0, le=MAX_RESERVE, description="fraction of the endurance that is kept in reserve")
    ] = 0.0
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
        list[Position],
        Field(max_length=MAX_VEHICLES - 1, description="launch positions of vehicles 2, 3, ...", default_factory=list),
    ]
    walking_m_s: Annotated[float, Field(ge=0, le=50, description="walking speed of a target that moves")] = 0.0
    roads: Annotated[
        dict[str, Any] | None,
        Field(description="GeoJSON of roads and trails, which a target that walks prefers; needs walking_m_s"),
    ] = None
    drift_m_s: Annotated[float, Field(ge=0, le=50, description="speed of a target that drifts")] = 0.0
    drift_direction: Annotated[
        float, Field(ge=-360, le=360, description="compass direction that the target drifts to")
    ] = 0.0

    match_map: Annotated[
        bool, Field(description="match the goal against the orthophoto, that of the request or of the server, at first")
    ] = False

    @field_validator("prior", "roads")
    @classmethod
    def _is_json(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            json.dumps(given, allow_nan=False)  # the store keeps JSON
        except RecursionError:
            raise ValueError("the GeoJSON is nested too deeply") from None
        return given

    def shape(self) -> MultiPolygon:
        """Return the outline as a geometry in (lon, lat)."""
        return _outline(self.outline)

    def plan(self, default_agent: str) -> SearchPlan:
        """Return the plan of the search."""
        return SearchPlan(
            cell_m=self.cell_m,
            gap_m=self.gap_m,
            heading=self.heading,
            start=_degrees(self.start),
            budget=self.budget,
            endurance=self.endurance_s,
            speed=self.speed_m_s,
            hover=self.hover_s,
            agent=self.agent or default_agent,
            false_alarm_cost=self.false_alarm_cost,
            detection=self.detection,
            footprint=self.footprint,
            camera=Camera(self.fov, self.aspect),
            flight=self._flight(),
            seed=self.seed,
            drones=self.drones,
            launches=tuple((launch.lat, launch.lon) for launch in self.launches),
            walking=self.walking_m_s,
            drift=(self.drift_m_s, self.drift_direction),
        )

    def _flight(self) -> FlightSettings:
        """Return how and where the vehicles fly."""
        return FlightSettings(
            home=_degrees(self.home),
            landing=_degrees(self.landing),
            margin_m=self.margin_m,
            no_fly=_zones(self.no_fly),
            climb=self.climb_m_s,
            descent=self.descent_m_s,
            wind=self.wind_m_s,
            wind_from=self.wind_from,
            reserve=self.reserve,
        )


def _degrees(position: Position | None) -> tuple[float, float] | None:
    return None if position is None else (position.lat, position.lon)


def _zones(zones: list[list[Position]]) -> MultiPolygon | Polygon | None:
    """Return no-fly zones as one geometry in (lon, lat)."""
    outlines = [_outline(zone, "the no-fly zone") for zone in zones]
    return shapely.union_all(outlines) if outlines else None


def _outline(corners: list[Position], name: str = "the outline") -> MultiPolygon:
    """Return the polygon with these corners, or the box with these two, in (lon, lat)."""
    return outline_of([(corner.lon, corner.lat) for corner in corners], name)


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
    map_tif: Annotated[
        str | None,
        Field(max_length=36_000_000, description="orthophoto of the area, a GeoTIFF in base64, for the live map"),
    ] = None


class StoredSettings(SearchSettings):
    """Settings of a search with what the server adds to them."""

    map_weights: Annotated[
        str | None, Field(description="weight of every cell by the match with the orthophoto: float64 in base64")
    ] = None
