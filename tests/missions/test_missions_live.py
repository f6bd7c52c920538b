"""The routes of the map: the session, what they show of a search, its events over HTTP, and hostile requests."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image
from starlette.types import ASGIApp

from airloc.missions.plan import point_of
from airloc.missions.server import make_app
from airloc.missions.service import SearchService
from airloc.missions.store import SearchStore
from airloc.web import SECURITY_HEADERS
from field_files import ground, write_geographic
from field_server import HEADERS, TOKEN, SearchGround, ServerProcess, create, encode_png, fly, post, server_thread

pytestmark = pytest.mark.long

GOAL = (0, 3)


@pytest.fixture
def app(tmp_path: Path, search_ground: SearchGround) -> ASGIApp:
    return make_app(SearchService(SearchStore(tmp_path / "a.sqlite"), "spiral"), TOKEN, search_ground.raster)


@pytest.fixture
def client(app: ASGIApp) -> TestClient:
    return TestClient(app, headers=HEADERS)


class Watcher:
    """A client that follows the events of a search."""

    def __init__(self, client: httpx.Client, search: str, stack: ExitStack) -> None:
        response = stack.enter_context(client.stream("GET", f"/searches/{search}/events"))
        assert response.headers["content-type"].startswith("text/event-stream")
        self._lines: Iterator[str] = response.iter_lines()

    def next_view(self) -> dict[str, Any]:
        return json.loads(next(line for line in self._lines if line.startswith("data: ")).removeprefix("data: "))


def test_the_cookie_of_a_session_replaces_the_token(app: ASGIApp):
    browser = TestClient(app)
    refused = browser.post("/session", json={"token": "a guess of mine"})
    assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
    assert browser.get("/searches").status_code == 401
    accepted = browser.post("/session", json={"token": f" {TOKEN}\n"})
    assert accepted.status_code == 204
    cookie = accepted.headers["set-cookie"].lower()
    assert [part for part in ("httponly", "samesite=strict") if part not in cookie] == []
    assert TOKEN not in cookie
    assert browser.get("/searches").status_code == 200
    assert browser.delete("/session").status_code == 204
    assert browser.get("/searches").status_code == 401


def test_the_cookie_of_another_token_is_refused(app: ASGIApp, tmp_path: Path):
    other = TestClient(make_app(SearchService(SearchStore(tmp_path / "b.sqlite"), "spiral"), "another token"))
    other.post("/session", json={"token": "another token"})
    assert other.get("/searches").status_code == 200
    assert TestClient(app, cookies=dict(other.cookies)).get("/searches").status_code == 401


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_a_page_of_another_site_changes_nothing(app: ASGIApp, search_ground: SearchGround, headers: dict[str, str]):
    browser = TestClient(app)
    browser.post("/session", json={"token": TOKEN})
    state = create(browser, search_ground, GOAL)
    refused = browser.delete(f"/searches/{state['id']}", headers=headers)
    assert refused.status_code == 403
    assert set(refused.json()) == {"problem", "cure"}
    assert browser.get(f"/searches/{state['id']}").json()["status"] == "searching"


def test_every_response_has_the_security_headers(client: TestClient):
    for path in ("/", "/static/map.css", "/searches", "/static/none"):
        assert SECURITY_HEADERS.items() <= client.get(path).headers.items(), path


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/%2e%2e/server.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..%5cserver.py",
        "%00",
        "",
    ],
)
def test_only_static_files_are_served(tmp_path: Path, path: str):
    with server_thread(tmp_path / "a.sqlite") as url, closing(httpx.Client()) as client:
        request = client.build_request("GET", url)
        request.url = request.url.copy_with(raw_path=f"/static/{path}".encode())
        response = client.send(request)
    assert response.status_code in (404, 405), response.text[:80]
    assert set(response.json()) == {"problem", "cure"}


def test_hostile_requests_are_refused_without_a_server_error(client: TestClient, search_ground: SearchGround):
    search = post(client, search_ground, create(client, search_ground, GOAL)).json()["id"]
    paths = [f"/searches/{name}/{rest}" for name in ("%00", "%ff", "a" * 3000) for rest in ("map", "events", "goal")]
    numbers = ("99999999999999999999", "-1", "0", "1e3", "0x1", "9" * 5000, "%00")
    paths += [f"/searches/{search}/photos/{number}/{rest}" for number in numbers for rest in ("cell", "thumbnail")]
    assert {client.get(path).status_code for path in paths} <= {400, 404, 422}
    bodies = [
        b"[" * 1_000_000,
        b"\xff",
        b"null",
        b'{"token": 1e999}',
        b'{"token": "\\ud800"}',
        b'{"token": "' + bytes(2000) + b'"}',
    ]
    for body in bodies:
        response = client.post("/session", content=body, headers={"content-type": "application/json", "host": "["})
        assert (response.status_code in (400, 422), set(response.json())) == (True, {"problem", "cure"})
    assert TestClient(client.app, headers={"cookie": b"airloc-80=\xff;;=="}).get("/searches").status_code == 401


def test_the_map_has_the_grid_the_outline_and_the_positions_of_the_cells(
    client: TestClient, search_ground: SearchGround
):
    state = create(client, search_ground, GOAL, name="North ridge", heading=0)
    shown = client.get(f"/searches/{state['id']}/map").json()
    layout = search_ground.layout
    assert (shown["name"], shown["rows"], shown["cols"], shown["heading"]) == ("North ridge", *layout.grid.shape, 0)
    assert shown["positions"][1][2] == pytest.approx(layout.lat_lon((1, 2)).tolist(), abs=1e-6)
    (ring,) = shown["outline"]
    corners = [layout.grid_position(point_of(layout, (lat, lon))) for lat, lon in search_ground.corners]
    assert np.array(ring).min(axis=0) == pytest.approx(np.array(corners).min(axis=0), abs=1e-3)
    assert np.array(ring).max(axis=0) == pytest.approx(np.array(corners).max(axis=0), abs=1e-3)
    assert all(len(colour) == 7 and colour[0] == "#" for colour in shown["colours"])
    turned = client.get(f"/searches/{create(client, search_ground, GOAL, heading=30)['id']}/map").json()
    assert turned["heading"] == 30
    assert turned["positions"][0][1][0] < turned["positions"][0][0][0], "to the right is south of east"


def test_a_far_home_or_landing_gives_a_warning_and_stays_outside_the_first_view_of_the_map(
    client: TestClient, search_ground: SearchGround
):
    near, (lat, lon) = search_ground.position((6, 1)), search_ground.layout.lat_lon((0, 0)).tolist()
    bottom, right = (side - 0.5 for side in search_ground.layout.grid.shape)
    for landing, warnings in (
        (near, []),
        ({"lat": lon, "lon": lat}, ["The landing is 6103 km from the search area; latitude comes first"]),
    ):
        state = create(client, search_ground, GOAL, home=near, landing=landing)
        assert state["warnings"] == warnings
        shown = client.get(f"/searches/{state['id']}/map").json()
        assert shown["frame"] == pytest.approx([-0.5, -0.5, 6, right], abs=1e-3)
    antipode = {"lat": -lat, "lon": lon - 180}
    state = create(client, search_ground, GOAL, home=antipode)
    assert "20" in state["warnings"][0]
    assert client.get(f"/searches/{state['id']}/map").json()["frame"] == [-0.5, -0.5, bottom, right]


def test_the_view_has_the_probabilities_the_photos_and_the_track_and_survives_a_restart(
    tmp_path: Path, search_ground: SearchGround
):
    with closing(SearchStore(tmp_path / "b.sqlite")) as store:
        client = TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)
        state = create(client, search_ground, GOAL)
        path = fly(client, search_ground, state)
        client.post(f"/searches/{state['id']}/photos/1/verdict", json={"goal": False})
        view = client.get(f"/searches/{state['id']}/view").json()
    assert sum(map(sum, view["poa"])) == pytest.approx(1, abs=1e-4)
    assert view["photos"][0]["match_probability"] == max(photo["match_probability"] for photo in view["photos"])
    assert view["photos"][-1]["verdict"] is False
    assert all(photo["received"].endswith("+00:00") for photo in view["photos"])
    (track,) = view["tracks"]
    assert [tuple(map(round, place)) for place in track["places"]] == path
    with closing(SearchStore(tmp_path / "b.sqlite")) as store:
        client = TestClient(make_app(SearchService(store, "spiral"), TOKEN), headers=HEADERS)
        assert client.get(f"/searches/{state['id']}/view").json() == view


def test_images_of_a_search_are_reduced(client: TestClient, search_ground: SearchGround):
    state = create(client, search_ground, GOAL)
    large = np.asarray(Image.open(io.BytesIO(search_ground.photo(GOAL))).resize((1500, 1000)))
    assert post(client, search_ground, state, GOAL, encode_png(large)).status_code == 200
    for path, kind, size in [
        ("photos/1/thumbnail", "jpeg", (480, 320)),
        ("photos/1/cell", "png", (48, 48)),
        ("goal", "jpeg", (96, 96)),
        ("background", "webp", (1200, 1200)),
    ]:
        response = client.get(f"/searches/{state['id']}/{path}")
        assert response.headers["content-type"] == f"image/{kind}", path
        assert Image.open(io.BytesIO(response.content)).size == size
    for missing in ("photos/2/thumbnail", "photos/0/cell", "photos/-1/cell"):
        response = client.get(f"/searches/{state['id']}/{missing}")
        assert (response.status_code, set(response.json())) == (404, {"problem", "cure"}), missing


def test_the_page_shows_photos_as_sent_and_those_that_browsers_do_not_show_as_jpeg(
    client: TestClient, search_ground: SearchGround
):
    photo = search_ground.photo(GOAL)
    tiff = io.BytesIO()
    Image.open(io.BytesIO(photo)).resize((1500, 1000)).save(tiff, "TIFF")
    for sent, kind, size in ((photo, "png", (96, 96)), (tiff.getvalue(), "jpeg", (1500, 1000))):
        state = create(client, search_ground, GOAL)
        assert post(client, search_ground, state, GOAL, sent).status_code == 200
        path = f"/searches/{state['id']}/photos/1"
        shown = client.get(f"{path}/image")
        assert shown.headers["content-type"] == f"image/{kind}"
        assert Image.open(io.BytesIO(shown.content)).size == size
        assert (shown.content == sent) == (kind == "png")
        assert client.get(path).content == sent
        assert client.get(f"{path[:-1]}2/image").status_code == 404


def test_a_search_outside_the_orthophoto_has_no_background(tmp_path: Path, search_ground: SearchGround):
    elsewhere = SearchGround(write_geographic(tmp_path / "b.tif", ground(9), lon=100.0))
    app = make_app(SearchService(SearchStore(tmp_path / "a.sqlite"), "spiral"), TOKEN, elsewhere.raster)
    client = TestClient(app, headers=HEADERS)
    state = create(client, search_ground, GOAL)
    assert client.get(f"/searches/{state['id']}/map").json()["margin"] is None
    response = client.get(f"/searches/{state['id']}/background")
    assert (response.status_code, "--map" in response.json()["cure"]) == (404, True)


def test_watchers_see_the_same_views_of_a_flight_and_of_verdicts(tmp_path: Path, search_ground: SearchGround):
    with ExitStack() as stack:
        url = stack.enter_context(server_thread(tmp_path / "a.sqlite"))
        client = stack.enter_context(httpx.Client(base_url=url, headers=HEADERS, timeout=30))
        state = create(client, search_ground, GOAL)
        watchers = [Watcher(client, state["id"], stack) for _ in range(3)]
        assert {json.dumps(watcher.next_view()) for watcher in watchers} == {
            json.dumps(client.get(f"/searches/{state['id']}/view").json())
        }
        while state["status"] == "searching":
            state = post(client, search_ground, state).json()
            views = [watcher.next_view() for watcher in watchers]
            assert views[0] == views[1] == views[2]
            assert views[0]["state"]["next"] == state["next"]
        client.post(f"/searches/{state['id']}/photos/{state['number']}/verdict", json={"goal": False})
        assert watchers[2].next_view()["state"]["status"] != "found"
        client.delete(f"/searches/{state['id']}")
        assert watchers[0].next_view()["state"]["declared"] is None
        assert watchers[0].next_view()["state"]["status"] == "cancelled"


def test_a_server_that_stops_ends_the_streams_of_its_watchers(tmp_path: Path, search_ground: SearchGround):
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(headers=HEADERS, timeout=30))
        with server_thread(tmp_path / "a.sqlite") as url:
            client.base_url = httpx.URL(url)
            watcher = Watcher(client, create(client, search_ground, GOAL)["id"], stack)
            watcher.next_view()
        with pytest.raises(StopIteration):
            watcher.next_view()


def test_the_events_of_an_unknown_search_are_an_error(client: TestClient):
    assert client.get("/searches/none/events").status_code == 404


def test_killing_the_server_with_watchers_and_three_vehicles_loses_nothing(tmp_path: Path, search_ground: SearchGround):
    """Every acknowledged photo is in the view of the next server, and the next waypoint is the same."""
    store = tmp_path / "a.sqlite"
    server = ServerProcess(store)
    state = create(server.client, search_ground, GOAL, drones=3)
    acknowledged: list[dict[str, Any]] = []

    def watch() -> None:
        with ExitStack() as stack:
            stack.enter_context(pytest.raises((httpx.HTTPError, StopIteration)))
            watcher = Watcher(server.client, state["id"], stack)
            while True:
                watcher.next_view()

    def fly_vehicle(vehicle: dict[str, Any]) -> None:
        with ExitStack() as stack:
            stack.enter_context(pytest.raises(httpx.HTTPError))
            own = state | {"next": vehicle["next"]}
            while True:
                own = post(server.client, search_ground, own, vehicle=vehicle["id"]).json()
                acknowledged.append(own)
                if len(acknowledged) == 4:
                    server.process.kill()

    threads = [threading.Thread(target=watch) for _ in range(5)]
    threads += [threading.Thread(target=fly_vehicle, args=(vehicle,)) for vehicle in state["vehicles"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    server.kill()
    views = []
    for _ in range(2):
        with ExitStack() as stack:
            url = stack.enter_context(server_thread(store))
            client = stack.enter_context(httpx.Client(base_url=url, headers=HEADERS, timeout=30))
            views.append(Watcher(client, state["id"], stack).next_view())
    assert views[0] == views[1]
    assert views[0]["state"]["status"] == "searching"
    assert all(vehicle["next"] for vehicle in views[0]["state"]["vehicles"])
    kept = {(photo["number"], photo["row"], photo["col"]) for photo in views[0]["photos"]}
    assert {(one["number"], one["photo"]["row"], one["photo"]["col"]) for one in acknowledged} <= kept
    assert len(acknowledged) >= 4
