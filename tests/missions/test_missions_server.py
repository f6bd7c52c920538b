"""The searcher over HTTP: whatever clients do, a search stays sound and goes on after a power cut."""

import base64
import io
import socket
import threading
from pathlib import Path

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from PIL import Image
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp

from airloc.errors import AirlocError
from airloc.missions.server import make_app
from airloc.missions.service import Searches
from airloc.missions.store import Store
from field_files import ground, write_projected
from field_server import HEADERS, Ground, Server

GOAL = (0, 3)


def one_colour() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 60), (90, 90, 90)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.fixture(scope="module")
def land(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(write_projected(tmp_path_factory.mktemp("land") / "land.tif", ground(9)))


@pytest.fixture
def app(tmp_path: Path) -> ASGIApp:
    return make_app(Searches(Store(tmp_path / "searches.sqlite"), "spiral"), HEADERS["Authorization"].split()[1])


@pytest.fixture
def client(app) -> TestClient:
    return TestClient(app, headers=HEADERS)


def begin(client, land: Ground, goal=GOAL, **options) -> dict:
    answer = client.post("/searches", json=land.request(goal, **options))
    assert answer.status_code == 201, answer.text
    return answer.json()


def post(client, land: Ground, state: dict, cell=None, **options):
    cell = cell or (state["next"]["row"], state["next"]["col"])
    query = land.place(cell) | options.pop("query", {})
    return client.post(f"/searches/{state['id']}/photos", params=query, content=options.pop("photo", land.photo(cell)))


def fly(client, land: Ground, state: dict) -> list[tuple[int, int]]:
    path = []
    while state["status"] == "searching":
        path.append((state["next"]["row"], state["next"]["col"]))
        answer = post(client, land, state)
        assert answer.status_code == 200, answer.text
        state = answer.json()
        assert state["taken"] == "used"
    return path


def test_a_search_is_flown_to_its_find(client, land: Ground):
    state = begin(client, land)
    assert state["next"]["lat"] == pytest.approx(
        land.place((state["next"]["row"], state["next"]["col"]))["lat"], abs=1e-7
    )
    path = fly(client, land, state)
    over = client.get(f"/searches/{state['id']}").json()
    assert path[-1] == GOAL
    assert (over["status"], over["declared"]["row"], over["declared"]["col"], over["next"]) == ("found", *GOAL, None)
    belief = client.get(f"/searches/{state['id']}/belief").json()
    assert sum(map(sum, belief["poa"])) == pytest.approx(1)
    unseen = next(cell for cell in land.layout.grid.cells() if cell not in path)
    assert post(client, land, state, unseen).status_code == 409


def test_several_searches_do_not_mix(client, land: Ground):
    first, second = begin(client, land, (0, 0)), begin(client, land, (3, 3))
    assert fly(client, land, second)[-1] == (3, 3)
    assert fly(client, land, first)[-1] == (0, 0)
    assert set(client.get("/searches").json()["searches"]) == {first["id"], second["id"]}


def test_photos_repeated_of_other_cells_and_unreadable_leave_the_search_sound(client, land: Ground):
    state = begin(client, land, (0, 0))
    unreadable = post(client, land, state, photo=b"\xff\xd8 half a photo")
    assert unreadable.status_code == 422
    assert "cannot be read" in unreadable.json()["problem"]
    used = post(client, land, state).json()
    again = post(client, land, state).json()
    assert (used["taken"], again["taken"]) == ("used", "repeated")
    assert {**used, "taken": ""} == {**again, "taken": ""}
    other = (3, 3) if (used["next"]["row"], used["next"]["col"]) != (3, 3) else (3, 2)
    kept = post(client, land, used, other).json()
    assert (kept["taken"], kept["next"]) == ("kept", used["next"])
    far = client.post(f"/searches/{state['id']}/photos", params={"lat": 0, "lon": 0}, content=land.photo((0, 0)))
    assert far.status_code == 422
    assert "nearest cell is at" in far.json()["cure"]
    path = fly(client, land, kept)
    assert other not in path
    assert path[-1] == (0, 0)


def test_a_photo_from_higher_up_and_aside_is_cut_to_its_cell(client, land: Ground):
    state = begin(client, land, GOAL, agent="lawnmower", aspect=1.0)
    photo = land.photo(GOAL, wider=2.0)
    answer = post(client, land, state, GOAL, photo=photo, query={"height_m": 2 * state["height_m"], "heading": 0})
    assert answer.json()["declared"] is not None
    assert answer.json()["here"] > 0.9
    low = post(client, land, begin(client, land), GOAL, query={"height_m": 1.0})
    assert low.status_code == 422
    assert "shows only" in low.json()["problem"]


def test_cancelling_ends_a_search_for_everybody(client, land: Ground):
    state = begin(client, land)
    assert client.delete(f"/searches/{state['id']}").json()["status"] == "cancelled"
    assert client.delete(f"/searches/{state['id']}").json()["status"] == "cancelled"
    assert post(client, land, state).status_code == 409
    assert client.get(f"/searches/{state['id']}").json()["next"] is None


def test_two_clients_on_one_search_count_every_photo_once(app, land: Ground):
    state = begin(TestClient(app, headers=HEADERS), land, (3, 3))
    taken: list[str] = []

    def work() -> None:
        mine = TestClient(app, headers=HEADERS)
        now = state
        while now["status"] == "searching":
            answer = post(mine, land, now)
            if answer.status_code == 409:
                break
            assert answer.status_code == 200, answer.text
            now = answer.json()
            taken.append(now["taken"])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    final = TestClient(app, headers=HEADERS).get(f"/searches/{state['id']}").json()
    assert final["status"] == "found"
    assert final["photos"] == sum(word != "repeated" for word in taken)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_without_the_token_nothing_is_told(app, headers):
    stranger = TestClient(app, headers=headers)
    for method, path in (
        ("GET", "/searches"),
        ("POST", "/searches"),
        ("GET", "/searches/x"),
        ("DELETE", "/searches/x"),
    ):
        answer = stranger.request(method, path)
        assert answer.status_code == 401
        assert "token" in answer.json()["problem"]
    assert stranger.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"goal": "?"}, "base64"),
        ({"goal": "AAAA"}, "goal's picture cannot be read"),
        ({"goal": one_colour()}, "shows nothing"),
        ({"agent": "/etc"}, "no agent"),
        ({"budget": 0}, "budget"),
        ({"cell_m": 1.0}, "cells"),
        ({"outline": [{"lat": 1, "lon": 1}, {"lat": 1, "lon": 1}]}, "no inside"),
        ({"start": {"lat": 0, "lon": 0}}, "outside what is searched"),
        ({"outline": [{"lat": 91, "lon": 1}]}, "outline"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_the_reason(client, land: Ground, change, said: str):
    answer = client.post("/searches", json=land.request(GOAL) | change)
    assert answer.status_code == 422
    assert said in answer.json()["problem"]
    assert client.get("/searches").json()["searches"] == []


CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance, content_type_conformance]


def test_a_body_that_is_no_text_is_refused_as_the_interface_says(client):
    answer = client.post("/searches", content=b"\xff\xfe{", headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"problem", "cure"}
    for path in client.get("/openapi.json").json()["paths"].values():
        for verb, operation in path.items():
            assert "400" in operation["responses"] or "requestBody" not in operation, verb


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as described", "otherwise"])
def test_the_interface_holds_what_it_describes(app, land: Ground, mode: GenerationMode):
    """No input, as described or not, makes the server fail or answer with what is not described."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    search = begin(TestClient(app, headers=HEADERS), land)["id"]
    statuses: dict[str, set[int]] = {}

    def call(case: schemathesis.Case) -> None:
        answer = case.call_and_validate(headers=HEADERS, checks=CHECKS)
        statuses.setdefault(f"{case.method} {case.path}", set()).add(answer.status_code)

    def call_for_real_search(case: schemathesis.Case) -> None:
        case.path_parameters["search"] = search
        call(case)

    fixed = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    for operation in schema.get_all_operations():
        described = operation.ok()
        if mode is GenerationMode.NEGATIVE and not (described.path_parameters or described.body):
            continue
        cases = described.as_strategy(generation_mode=mode)
        fixed(given(cases)(call))()
        if "{search}" in described.path:
            fixed(given(cases)(call_for_real_search))()
    assert len(statuses) == (7 if mode is GenerationMode.POSITIVE else 5)
    if mode is GenerationMode.POSITIVE:
        assert 200 in statuses["GET /searches/{search}"]


def test_a_search_goes_on_after_a_power_cut(tmp_path: Path, land: Ground):
    server = Server(tmp_path / "searches.sqlite")
    try:
        uncut = begin(server.client, land, agent="airloc")
        whole = fly(server.client, land, uncut)
        state = begin(server.client, land, agent="airloc")
        path = []
        for _ in range(len(whole) // 2 or 1):
            path.append((state["next"]["row"], state["next"]["col"]))
            state = post(server.client, land, state).json()
        server.kill()
        server = Server(tmp_path / "searches.sqlite")
        again = server.client.get(f"/searches/{state['id']}").json()
        assert {key: again[key] for key in again} == {key: state[key] for key in again}
        assert path + fly(server.client, land, again) == whole
    finally:
        server.kill()


def test_a_request_that_never_ends_does_not_hold_the_others_up(tmp_path: Path, land: Ground, monkeypatch):
    server = Server(tmp_path / "searches.sqlite")
    try:
        host, port = server.url.removeprefix("http://").split(":")
        for start in (
            b"GET /searches HTTP/1.1\r\nHost: x\r\n",
            b"POST /searches HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
        ):
            hanging = socket.create_connection((host, int(port)))
            hanging.sendall(start)
        state = begin(server.client, land)
        assert state["status"] == "searching"
        hanging.close()
    finally:
        server.kill()


def test_one_server_at_a_time_uses_a_store_and_no_other_file_is_taken_for_one(tmp_path: Path):
    first = Store(tmp_path / "a.sqlite")
    with pytest.raises(AirlocError, match="another server"):
        Store(tmp_path / "a.sqlite")
    first.close()
    (tmp_path / "b.sqlite").write_text("no database at all, but long enough to look like one" * 40)
    with pytest.raises(AirlocError, match="Cannot open the store"):
        Store(tmp_path / "b.sqlite")
