"""The search server: whatever clients send, a search stays consistent, and errors have a problem and a cure."""

import base64
import io
import threading
from pathlib import Path

import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from PIL import Image
from rasterio.io import MemoryFile
from rasterio.transform import from_origin
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp

from airloc.missions import feed, server, service
from airloc.missions.flight import great_circle_distance
from airloc.missions.server import make_app
from airloc.missions.service import SearchService
from airloc.missions.store import SearchStore
from drone_photos import dji, jpeg
from field_files import write_tiff
from field_server import HEADERS, TOKEN, SearchGround, create, encode_png, fly, post

pytestmark = pytest.mark.long

GOAL = (0, 3)
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance, content_type_conformance]
EXAMPLES = 4
"""Generated requests per operation."""


@pytest.fixture
def app(tmp_path: Path) -> ASGIApp:
    return make_app(SearchService(SearchStore(tmp_path / "searches.sqlite"), "spiral"), TOKEN)


@pytest.fixture
def client(app: ASGIApp) -> TestClient:
    return TestClient(app, headers=HEADERS)


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """The client of a server without searches, for tests that create none."""
    store = SearchStore(tmp_path_factory.mktemp("shared") / "searches.sqlite")
    return TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)


def looking_east(photo: bytes) -> str:
    """The photo of a camera whose upper edge points east, in base64."""
    return base64.b64encode(encode_png(np.rot90(np.asarray(Image.open(io.BytesIO(photo)))))).decode()


@pytest.mark.parametrize("heading", [None, 0])
def test_a_search_is_flown_to_its_find(client: TestClient, search_ground: SearchGround, heading: int | None):
    state = create(client, search_ground, GOAL, goal_heading=heading)
    first = search_ground.position((state["next"]["row"], state["next"]["col"]))
    assert state["next"]["lat"] == pytest.approx(first["lat"], abs=1e-7)
    assert state["match_probability"] is None
    path = fly(client, search_ground, state)
    end = client.get(f"/searches/{state['id']}").json()
    assert path[-1] == GOAL
    assert (end["status"], end["declared"]["row"], end["declared"]["col"], end["next"]) == ("found", *GOAL, None)
    assert end["match_probability"] > 0.8
    belief = client.get(f"/searches/{state['id']}/belief").json()
    assert sum(map(sum, belief["poa"])) == pytest.approx(1)
    unseen = next(cell for cell in search_ground.layout.grid.cells() if cell not in path)
    assert post(client, search_ground, state, unseen).status_code == 409


def test_several_searches_do_not_mix(client: TestClient, search_ground: SearchGround):
    first, second = create(client, search_ground, (0, 0)), create(client, search_ground, (3, 3))
    assert fly(client, search_ground, second)[-1] == (3, 3)
    assert fly(client, search_ground, first)[-1] == (0, 0)
    assert set(client.get("/searches").json()["searches"]) == {first["id"], second["id"]}


def test_repeated_unexpected_and_unreadable_photos_keep_the_search_consistent(
    client: TestClient, search_ground: SearchGround
):
    state = create(client, search_ground, (0, 0))
    unreadable = post(client, search_ground, state, photo=b"\xff\xd8 half a photo")
    assert unreadable.status_code == 422
    used = post(client, search_ground, state).json()
    again = post(client, search_ground, state).json()
    assert (used["outcome"], again["outcome"]) == ("used", "repeated")
    assert {**used, "outcome": ""} == {**again, "outcome": ""}
    other = (3, 3) if (used["next"]["row"], used["next"]["col"]) != (3, 3) else (3, 2)
    kept = post(client, search_ground, used, other).json()
    assert (kept["outcome"], kept["next"]) == ("kept", used["next"])
    far = post(client, search_ground, state, lat=0, lon=0)
    assert far.status_code == 422
    assert "59." in far.json()["cure"], "the cure has the position of the nearest cell"
    path = fly(client, search_ground, kept)
    assert other not in path
    assert path[-1] == (0, 0)


def test_a_photo_outside_the_outline_is_refused(client: TestClient, search_ground: SearchGround):
    layout = search_ground.layout
    corners = layout.lat_lon([(0, 0), (3, 0), (3, 3)]).tolist()
    outline = [{"lat": lat, "lon": lon} for lat, lon in corners]
    state = create(client, search_ground, (3, 0), outline=outline, cell_m=60.0)
    (top, _), (_, right) = corners[0], corners[2]
    refused = post(client, search_ground, state, lat=top, lon=right)
    assert refused.status_code == 422
    assert "outside the search area" in refused.json()["problem"]
    assert client.get(f"/searches/{state['id']}").json()["photos"] == 0


def test_a_photo_without_a_position_in_the_request_has_its_own(client: TestClient, search_ground: SearchGround):
    state = create(client, search_ground, GOAL, aspect=1.0)
    pixels = np.asarray(Image.open(io.BytesIO(search_ground.photo(GOAL, scale=4 / 3))))
    lat, lon = search_ground.position(GOAL).values()
    url = f"/searches/{state['id']}/photos"
    found = client.post(url, content=jpeg(pixels, dji(lat, lon, state["height_m"], 0.0))).json()
    assert (found["photo"]["row"], found["photo"]["col"], found["status"]) == (*GOAL, "found")
    state = create(client, search_ground, GOAL)
    url = f"/searches/{state['id']}/photos"
    for data, query, fact in (
        (encode_png(pixels), {}, "no position"),
        (encode_png(pixels), {"lat": lat}, "only one of lat and lon"),
        (jpeg(pixels, dji(lat, lon, 80.0, 0.0, pitch=-20.0)), {}, "pitch of -20"),
    ):
        refused = client.post(url, content=data, params=query)
        assert (refused.status_code, fact in refused.json()["problem"]) == (422, True)
    assert client.get(f"/searches/{state['id']}").json()["photos"] == 0


def test_a_spent_search_goes_on_with_a_new_battery_also_after_a_restart(tmp_path: Path, search_ground: SearchGround):
    def open_server() -> tuple[SearchStore, TestClient]:
        store = SearchStore(tmp_path / "searches.sqlite")
        return store, TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)

    store, client = open_server()
    state = create(client, search_ground, GOAL, budget=2, false_alarm_cost=1e6)
    first = fly(client, search_ground, state)
    spent = client.get(f"/searches/{state['id']}").json()
    assert (spent["status"], spent["next"]) == ("spent", None)
    url = f"/searches/{state['id']}/vehicles"
    sortie = client.post(url, json={"id": "1", "budget": 4}).json()
    assert (sortie["status"], sortie["moves_left"]) == ("searching", 4)
    assert client.post(url, json={"id": "1", "budget": 4}).status_code == 409, "it is in the air"
    now = post(client, search_ground, sortie).json()
    store.close()
    store, client = open_server()
    again = client.get(f"/searches/{state['id']}").json()
    assert {**again, "match_probability": 0} == {name: now[name] for name in again} | {"match_probability": 0}
    second = fly(client, search_ground, again)
    assert not set(first) & set(second)
    assert client.get(f"/searches/{state['id']}").json()["status"] == "spent"
    store.close()


def test_photos_are_uploaded_by_a_form_too(client: TestClient, search_ground: SearchGround):
    state = create(client, search_ground, GOAL)
    cell = state["next"]["row"], state["next"]["col"]
    url, where = f"/searches/{state['id']}/photos", search_ground.position(cell)
    file = ("a.png", search_ground.photo(cell), "image/png")
    sent = client.post(url, params=where, files={"photo": file})
    assert (sent.status_code, sent.json()["outcome"]) == (200, "used")
    assert post(client, search_ground, state, cell).json()["outcome"] == "repeated"
    assert client.get(f"{url}/1").content == search_ground.photo(cell)
    empty = client.post(url, params=where, files={"photo": (None, "no file")})
    assert (empty.status_code, "no file" in empty.json()["problem"]) == (422, True)
    two = client.post(url, params=where, files=[("a", file), ("b", file)])
    assert two.status_code == 422
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post(url, params=where, content=b"\r\n--", headers=kind).status_code == 422


def test_a_photo_from_a_larger_height_is_cropped_to_its_cell(client: TestClient, search_ground: SearchGround):
    state = create(client, search_ground, GOAL, agent="lawnmower", aspect=1.0)
    photo = search_ground.photo(GOAL, scale=2.0)
    height_m = 2 * state["height_m"] / (4 / 3)  # the height of the search gives a footprint of 4/3 cells
    response = post(client, search_ground, state, GOAL, photo, height_m=height_m, heading=0).json()
    assert response["declared"] is not None
    assert response["match_probability"] > 0.9
    low = post(client, search_ground, create(client, search_ground, GOAL), GOAL, height_m=1.0)
    assert low.status_code == 422
    assert "0 %" in low.json()["problem"]


def test_a_cancelled_search_accepts_no_photos(client: TestClient, search_ground: SearchGround):
    state = create(client, search_ground, GOAL)
    assert client.delete(f"/searches/{state['id']}").json()["status"] == "cancelled"
    assert client.delete(f"/searches/{state['id']}").json()["status"] == "cancelled"
    assert post(client, search_ground, state).status_code == 409
    assert client.get(f"/searches/{state['id']}").json()["next"] is None


def test_concurrent_clients_of_one_search_count_every_photo_once(app: ASGIApp, search_ground: SearchGround):
    state = create(TestClient(app, headers=HEADERS), search_ground, (3, 3))
    outcomes: list[str] = []

    def work() -> None:
        own, now = TestClient(app, headers=HEADERS), state
        while now["status"] == "searching":
            response = post(own, search_ground, now)
            if response.status_code == 409:
                break
            assert response.status_code == 200, response.text
            now = response.json()
            outcomes.append(now["outcome"])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end = TestClient(app, headers=HEADERS).get(f"/searches/{state['id']}").json()
    assert end["status"] == "found"
    assert end["photos"] == sum(outcome != "repeated" for outcome in outcomes)


def test_a_search_that_left_the_memory_is_rebuilt_from_the_store(
    client: TestClient, search_ground: SearchGround, monkeypatch
):
    monkeypatch.setattr(service, "MAX_IN_MEMORY", 1)
    state = create(client, search_ground, GOAL, agent="airloc", goal_heading=None)
    state = post(client, search_ground, state).json()
    create(client, search_ground, (0, 0))
    rebuilt = client.get(f"/searches/{state['id']}").json()
    assert rebuilt == {key: state[key] for key in rebuilt}


def test_a_restart_before_every_photo_changes_neither_waypoints_nor_the_declared_position(
    tmp_path: Path, search_ground: SearchGround
):
    """The goal lies between four cells, its picture is turned, and it is located in the whole photos."""
    place = (0.6, 0.4)
    known = {"goal": looking_east(search_ground.photo(place)), "goal_heading": 90, "aspect": 1.0, "agent": "belief"}

    def states(restart: bool) -> list[dict]:
        path = tmp_path / f"{restart}.sqlite"
        store = SearchStore(path)
        client = TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)
        state = client.post("/searches", json=search_ground.request(place) | known).json()
        seen = [state]
        while state["status"] == "searching":
            if restart:
                store.close()
                store = SearchStore(path)
                client = TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)
                assert client.get(f"/searches/{state['id']}").json()["next"] == state["next"]
            cell = state["next"]["row"], state["next"]["col"]
            photo = search_ground.photo(cell, scale=4 / 3)
            state = post(client, search_ground, state, cell, photo, height_m=state["height_m"], heading=0).json()
            seen.append(state)
        store.close()
        return [{key: state[key] for key in state if key not in ("id", "created")} for state in seen]

    plain = states(restart=False)
    assert len(plain) > 5
    assert states(restart=True) == plain
    lat, lon = search_ground.layout.lat_lon(place).tolist()
    declared = plain[-1]["declared"]
    assert great_circle_distance((declared["lat"], declared["lon"]), (lat, lon)) < 8


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_only_the_page_its_sign_in_and_the_health_check_work_without_the_token(app: ASGIApp, headers):
    stranger = TestClient(app, headers=headers)
    paths = stranger.get("/openapi.json").json()["paths"]
    requests = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    for method, path in requests:
        response = stranger.request(method, path.replace("{search}", "x").replace("{number}", "1"))
        if path not in ("/health", "/session"):
            assert response.status_code == 401, path
            assert "Authorization: Bearer" in response.json()["cure"]
    assert [stranger.get(path).status_code for path in ("/health", "/", "/static/desk.js")] == [200, 200, 200]


def large_tiff() -> bytes:
    """Return a GeoTIFF of many pixels and few bytes."""
    with MemoryFile() as memory:
        options = {"driver": "GTiff", "width": 4001, "height": 4000, "count": 1, "dtype": "uint8", "SPARSE_OK": True}
        with memory.open(**options, crs="EPSG:4326", transform=from_origin(14, 60, 1e-3, 1e-3)):
            pass
        return bytes(memory.getbuffer())


LARGE_TIFF = large_tiff()


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"goal": "?"}, "base64"),
        ({"goal": "AAAA"}, "goal image"),
        ({"goal": base64.b64encode(encode_png(np.full((60, 60, 3), 90, np.uint8))).decode()}, "goal image"),
        ({"agent": "/etc"}, "/etc"),
        ({"budget": 0}, "budget"),
        ({"budget": 5000}, "budget"),
        ({"cell_m": 2.5}, "20000"),
        ({"outline": [{"lat": 1, "lon": 1}, {"lat": 1, "lon": 1}]}, "1"),
        ({"outline": [{"lat": n % 3, "lon": n % 2} for n in range(400)]}, "crosses itself"),
        ({"no_fly": [[{"lat": 1, "lon": 1}] * 3]}, "no-fly zone"),
        ({"start": {"lat": 0, "lon": 0}}, "start"),
        ({"goal_heading": 400}, "goal_heading"),
        ({"goal_heading": "north"}, "goal_heading"),
        ({"goal_width_m": 0}, "goal_width_m"),
        ({"goal_width_m": 80, "goal_width_max_m": 50}, "goal_width_max_m"),
        ({"goal_width_max_m": 50}, "goal_width_max_m"),
        ({"goal_width_m": 80, "goal_width_max_m": 800}, "800 m"),
        ({"goal_width_m": 5000}, "5000 m"),
        ({"goal_width_m": 2}, "2 m"),
        ({"goal_width_m": 1e-300}, "1e-300 m"),
        ({"footprint": 0.5}, "footprint"),
        ({"outline": [{"lat": 91, "lon": 1}]}, "outline"),
        ({"unknown": 1}, "unknown"),
        ({"prior": {"type": "Point", "coordinates": [15, 59]}}, "neither a polygon nor a line"),
        ({"prior": {"type": "Polygon", "coordinates": "none"}}, "without valid coordinates"),
        ({"prior": {"type": "LineString", "coordinates": [[15, 59]] * 6000}}, "5000 positions"),
        ({"prior": []}, "prior"),
        ({"prior_tif": "?"}, "prior_tif is not valid base64"),
        ({"prior_tif": "AAAA"}, "not a GeoTIFF"),
        ({"prior_tif": base64.b64encode(b"II*\0 damaged").decode()}, "prior_tif"),
        ({"prior_tif": base64.b64encode(b"<VRTDataset rasterXSize='9' rasterYSize='9'/>").decode()}, "not a GeoTIFF"),
        ({"prior_tif": base64.b64encode(LARGE_TIFF).decode()}, "4001 x 4000 pixels"),
        ({"lkp": {"lat": 59, "lon": 15}}, "needed together"),
        ({"subject": "hiker"}, "needed together"),
        ({"lkp": {"lat": 59, "lon": 15}, "subject": "pirate"}, "pirate"),
    ],
)
def test_an_invalid_request_creates_no_search(shared_client, search_ground: SearchGround, change, fact: str):
    response = shared_client.post("/searches", json=search_ground.request(GOAL) | change)
    assert response.status_code == 422
    assert set(response.json()) == {"problem", "cure"}
    assert fact in response.json()["problem"]
    assert len(response.json()["problem"]) < 300
    assert shared_client.get("/searches").json()["searches"] == []


def test_a_name_of_spaces_is_no_name(client: TestClient, search_ground: SearchGround):
    for name in (" North ridge ", " \t\n"):
        create(client, search_ground, GOAL, name=name)
    assert [one["name"] for one in client.get("/searches").json()["summaries"]] == ["", "North ridge"]


def test_what_is_known_begins_the_belief_and_survives_a_restart(tmp_path: Path, search_ground: SearchGround):
    layout = search_ground.layout
    corners = layout.lat_lon([(1.5, -0.5), (1.5, 3.5), (3.5, 3.5), (3.5, -0.5)])[:, ::-1].tolist()
    shape = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    prior = {"type": "Feature", "properties": {"weight": 0}, "geometry": shape}
    raster = write_tiff(tmp_path / "p.tif", np.ones((9, 9, 1)), from_origin(14, 60, 0.5, 0.5), "EPSG:4326")
    known = {"prior": prior, "prior_tif": base64.b64encode(raster.read_bytes()).decode()}
    known |= {"lkp": search_ground.position((0, 3)), "subject": "child-1-3", "agent": "belief"}
    path, answers = tmp_path / "store.sqlite", []
    for _ in range(2):
        store = SearchStore(path)
        client = TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)
        if not answers:
            state = create(client, search_ground, (0, 3), **known)
            state = post(client, search_ground, state).json()
        answers.append([client.get(f"/searches/{state['id']}{part}").json() for part in ("", "/belief")])
        store.close()
    assert answers[0] == answers[1]
    poa = np.array(answers[0][1]["poa"])
    assert poa.sum() == pytest.approx(1)
    assert (poa[2:4, :4] == 0).all()


def test_a_goal_of_known_heading_and_a_range_of_widths_is_found(client: TestClient, search_ground: SearchGround):
    wide = {"goal": looking_east(search_ground.photo(GOAL, scale=1.25)), "goal_heading": 90}
    widths = {"goal_width_m": 100, "goal_width_max_m": 150}
    state = client.post("/searches", json=search_ground.request(GOAL) | wide | widths).json()
    assert fly(client, search_ground, state)[-1] == GOAL
    assert client.get(f"/searches/{state['id']}").json()["status"] == "found"


def test_a_body_that_is_not_text_is_an_error_of_the_described_form(client: TestClient):
    response = client.post("/searches", content=b"\xff\xfe{", headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert set(response.json()) == {"problem", "cure"}


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("POST", "/searches", "request with all its files"),
        ("POST", "/searches/a/photos", "photo"),
        ("PUT", "/searches/a/orthophoto", "orthophoto"),
    ],
)
def test_the_error_of_a_body_over_the_limit_names_what_was_sent_and_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, sent: str
):
    monkeypatch.setattr(server, "MAX_BYTES", 500_000)
    searches = SearchService(SearchStore(tmp_path / "searches.sqlite"), "spiral")
    response = TestClient(make_app(searches, TOKEN), headers=HEADERS).request(method, path, content=bytes(500_001))
    assert response.status_code == 413
    assert response.json() == {"problem": f"The {sent} is larger than 0.5 MB", "cure": "Reduce it to at most 0.5 MB"}


def test_the_openapi_description_names_every_field(client: TestClient):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert {"match_probability", "next", "declared"} <= set(schemas["SearchState"]["properties"])
    assert {"photo", "outcome", "match_probability"} <= set(schemas["PhotoResult"]["properties"])
    assert set(schemas["Problem"]["properties"]) == {"problem", "cure"}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_the_server_conforms_to_its_openapi_description(app: ASGIApp, search_ground: SearchGround, mode, monkeypatch):
    """No generated request makes the server fail or respond with something that is not described."""
    monkeypatch.setattr(feed, "STREAM_SECONDS", 0.05)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    client = TestClient(app, headers=HEADERS)
    state = create(client, search_ground, GOAL)
    search = post(client, search_ground, state).json()["id"]
    statuses: dict[str, set[int]] = {}

    def call(case: schemathesis.Case) -> None:
        response = case.call_and_validate(headers=HEADERS, checks=CHECKS)
        statuses.setdefault(f"{case.method} {case.path}", set()).add(response.status_code)

    def call_for_existing_search(case: schemathesis.Case) -> None:
        case.path_parameters["search"] = search
        call(case)

    bounded = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    for result in schema.get_all_operations():
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and not (operation.path_parameters or operation.body):
            continue
        cases = operation.as_strategy(generation_mode=mode)
        bounded(given(cases)(call))()
        if "{search}" in operation.path:
            bounded(given(cases)(call_for_existing_search))()
    described = client.get("/openapi.json").json()["paths"]
    invalid = mode is GenerationMode.NEGATIVE
    assert set(statuses) == {
        f"{method.upper()} {path}"
        for path, methods in described.items()
        for method, operation in methods.items()
        if not invalid or "{" in path or "requestBody" in operation
    }
    if mode is GenerationMode.POSITIVE:
        read = ("", "/belief", "/candidates", "/map", "/view", "/events", "/goal")
        assert [path for path in read if 200 not in statuses[f"GET /searches/{{search}}{path}"]] == []
