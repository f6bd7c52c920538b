"""Errors of request fields: the name in the form and in the request, the value, and what is allowed."""

import json
import re
from importlib.resources import files

import pytest
from fastapi.testclient import TestClient

from airloc.missions.refusals import FORM_LABELS
from airloc.missions.settings import NewSearch
from airloc.missions.store import SearchStore
from field_server import SearchGround, client_of, create

STATIC = files("airloc.missions") / "static"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(SearchStore(tmp_path_factory.mktemp("store") / "a.sqlite"))


@pytest.mark.parametrize(
    ("change", "problem", "cure"),
    [
        ({"drones": 99}, '"Drones" (drones) is 99', "Give a number from 1 to 16"),
        ({"drones": 1.5}, '"Drones" (drones) is 1.5', "Give a whole number from 1 to 16"),
        ({"cell_m": 0}, '"Side of a segment" (cell_m) is 0', "Give a number above 0 and up to 100000"),
        (
            {"goal_heading": "north"},
            "\"Compass direction of its upper edge\" (goal_heading) is 'north'",
            "Give a number from -360 to 360",
        ),
        (
            {"outline": [{"lat": 591, "lon": 15}] * 2},
            '"Corners" (outline.0.lat) is 591',
            "Give a number from -90 to 90",
        ),
        ({"outline": []}, '"Corners" (outline) has 0 entries', "Give at least 2"),
        ({"name": "n" * 101}, '"Name" (name) is too long', "Give at most 100 characters"),
        ({"goal": "A" * 24_000_001}, '"Picture of the goal" (goal) is too long', "Send a file of at most 18 MB"),
        ({"prior": []}, '"Likely places" (prior) is not valid', "Give a JSON object"),
        (
            {"match_map": "perhaps"},
            "\"Look for the goal on the orthophoto before take-off\" (match_map) is 'perhaps'",
            "Give true or false",
        ),
        ({"footprint": 0.5}, "footprint is 0.5", "Give a number from 1 to 4"),
        ({"nothing": 1}, "There is no field nothing", "Leave it out; GET /openapi.json describes the request"),
        ({"n\x1b" * 90: 1}, None, "Leave it out; GET /openapi.json describes the request"),
    ],
)
def test_an_invalid_field_of_a_search_is_named_as_in_the_form_with_its_value_and_what_is_allowed(
    client: TestClient, search_ground: SearchGround, change, problem: str | None, cure: str
):
    body = json.dumps(search_ground.request((0, 3)) | change)
    refused = client.post("/searches", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 422
    assert refused.json() == {"problem": problem or refused.json()["problem"], "cure": cure}
    assert len(refused.json()["problem"]) < 200


def test_invalid_requests_of_programs_are_named_by_their_fields(client: TestClient, search_ground: SearchGround):
    request = search_ground.request((0, 3))
    del request["outline"]
    path = f"/searches/{create(client, search_ground, (0, 3))['id']}"
    for address, body, problem, cure in (
        ("/searches", request, '"Corners" (outline) is missing', "Give it; GET"),
        ("/searches", [], "not the JSON object", "GET /openapi.json"),
        (f"{path}/vehicles", {"id": "a b"}, "id is 'a b'", "Use only letters, digits, - and _"),
        (f"{path}/photos?height_m=-1", None, "height_m is '-1'", "Give a number above 0 and up to 20000"),
        (f"{path}/photos?lat=95&lon=0", None, "lat is '95'", "Give a number from -90 to 90"),
        (f"{path}/photos/one/verdict", {"goal": True}, "number is 'one'", "Give a valid integer"),
        (f"{path}/photos/1/verdict", {"goal": "yes"}, "goal is 'yes'", "Give true or false"),
    ):
        refused = client.post(address, json=body)
        assert (refused.status_code, set(refused.json())) == (422, {"problem", "cure"})
        assert problem in refused.json()["problem"]
        assert refused.json()["cure"].startswith(cure)


def test_every_field_that_the_form_sends_has_the_name_that_the_form_shows():
    desk, page = ((STATIC / name).read_text(encoding="utf-8") for name in ("desk.js", "index.html"))
    request = re.search(r"const request = \{(.*?)\n  \};", desk, re.DOTALL)
    assert request
    assert set(re.findall(r"^    (\w+):", request[1], re.MULTILINE)) == set(FORM_LABELS) <= set(NewSearch.model_fields)
    shown = re.findall(r"<label[^>]*>\s*(?:or |<input[^>]*> )?([^<]+)", page)
    assert [label for label in FORM_LABELS.values() if not any(text.startswith(label) for text in shown)] == []
