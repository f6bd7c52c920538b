"""What is wrong with a field of a request and what is allowed, in words that people and programs understand."""

from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from airloc.errors import printable
from airloc.missions.messages import Message, NewVehicle, PhotoQuery, Position
from airloc.missions.settings import NewSearch

FORM_LABELS = {
    "name": "Name",
    "outline": "Corners",
    "goal": "Picture of the goal",
    "goal_text": "Description of the goal",
    "cell_m": "Side of a segment",
    "budget": "Moves of a drone",
    "endurance_s": "flight time",
    "drones": "Drones",
    "goal_width_m": "Ground that the picture shows",
    "goal_heading": "Compass direction of its upper edge",
    "start": "Start",
    "home": "Home",
    "speed_m_s": "Speed",
    "wind_m_s": "Wind",
    "wind_from": "Wind from",
    "reserve": "Reserve",
    "heading": "Compass direction of the grid",
    "no_fly": "No-fly zones",
    "goal_same_day": "The picture is from the day of the flight",
    "lkp": "Last known point",
    "subject": "Category of the lost person",
    "prior": "Likely places",
    "map_tif": "Orthophoto of the area",
    "match_map": "Look for the goal on the orthophoto before take-off",
}
"""Names of the fields of a new search in the form of the live map."""
FILES = ("goal", "map_tif", "prior_tif")
"""Fields that hold a file in base64."""
MODELS: dict[str, type[Message]] = {"searches": NewSearch, "vehicles": NewVehicle, "photos": PhotoQuery}
"""What a request holds, by the end of its path."""
ALLOWED = {
    "greater_than": "Give a number above {gt:.10g}",
    "greater_than_equal": "Give a number of at least {ge:.10g}",
    "less_than_equal": "Give a number of at most {le:.10g}",
    "string_too_short": "Give at least {min_length} characters",
    "string_too_long": "Give at most {max_length} characters",
    "string_pattern_mismatch": "Use only letters, digits, - and _",
    "too_short": "Give at least {min_length}",
    "too_long": "Give at most {max_length}",
    "dict_type": "Give a JSON object",
    "model_attributes_type": "Give a JSON object",
    "bool_type": "Give true or false",
    "bool_parsing": "Give true or false",
}
"""What is allowed instead of a value, by the type of the error."""
LONGEST = 60
"""Characters of names and values in a message."""
DESCRIBED = "GET /openapi.json describes the request"


def explain(error: Mapping[str, Any], path: str) -> tuple[str, str]:
    """Return problem and cure of an invalid request.

    Args:
        error: An error of the request's validation, as pydantic describes it.
        path: Path of the request.
    """
    where, kind = [str(part) for part in error["loc"][1:]], error["type"]
    if kind == "json_invalid" or not where:
        return "The body of the request is not the JSON object that it needs", DESCRIBED
    name, model = printable(".".join(where))[:LONGEST], MODELS.get(path.rpartition("/")[2], Message)
    if kind == "extra_forbidden":
        return f"There is no field {name}", f"Leave it out; {DESCRIBED}"
    field = f'"{FORM_LABELS[where[0]]}" ({name})' if model is NewSearch and where[0] in FORM_LABELS else name
    if kind == "missing":
        return f"{field} is missing", f"Give it; {DESCRIBED}"
    fields = model.model_fields | Position.model_fields
    return f"{field} {_fault(error)}", _allowed(error, where[-1], fields.get(where[-1]))


def _fault(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value."""
    kind, value = error["type"], error["input"]
    if kind in ("too_short", "too_long"):
        return f"has {error['ctx']['actual_length']} entries"
    shown = printable(repr(value)) if isinstance(value, bool | int | float | str) else ""
    if 0 < len(shown) <= LONGEST:
        return f"is {shown}"
    return "is too long" if kind == "string_too_long" else "is not valid"


def _allowed(error: Mapping[str, Any], name: str, field: FieldInfo | None) -> str:
    """Return what a field may be: the whole range of a number, if it is known."""
    kind, message = error["type"], str(error["msg"])
    if kind == "string_too_long" and name in FILES:
        return f"Send a file of at most {error['ctx']['max_length'] * 3 / 4e6:g} MB"
    bounds = [] if field is None else field.metadata
    limits = {key: getattr(each, key) for each in bounds for key in ("gt", "ge", "le") if hasattr(each, key)}
    if len(limits) == 2:
        low = f"above {limits['gt']:.10g} and up" if "gt" in limits else f"from {limits['ge']:.10g}"
        whole = "whole number" if kind.startswith("int") else "number"
        return f"Give a {whole} {low} to {limits['le']:.10g}"
    if kind in ALLOWED:
        return ALLOWED[kind].format(**error.get("ctx", {}))
    allowed = message.removeprefix("Value error, ").removeprefix("Input should be ").partition(",")[0]
    return f"Give {allowed}" if message.startswith("Input should be ") else f"{allowed[:1].upper()}{allowed[1:]}"
