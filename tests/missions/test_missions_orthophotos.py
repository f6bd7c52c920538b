"""The server flies from a home with an endurance, matches goals with orthophotos, and shows those that people send."""

import base64
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from rasterio.io import MemoryFile

from airloc.agents.registry import make_agent
from airloc.missions.orthophotos import match_map
from airloc.missions.settings import StoredSettings
from airloc.missions.store import SearchStore
from field_files import ground, write_projected, write_tiff
from field_server import SearchGround, client_of, create, fly, post

pytestmark = pytest.mark.long

GOAL = (0, 3)


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return client_of(SearchStore(tmp_path / "searches.sqlite"))


def test_an_endurance_with_wind_and_reserve_allows_fewer_moves_and_vehicles_join_with_their_own(
    client: TestClient, search_ground: SearchGround
):
    south = search_ground.position((3, 1))
    options = {"budget": None, "endurance_s": 240.0, "speed_m_s": 12.0, "hover_s": 1.0, "home": south}
    calm = create(client, search_ground, GOAL, **options)
    windy = create(client, search_ground, GOAL, **options, wind_m_s=5.0, wind_from=270.0, reserve=0.2)
    assert calm["moves_left"] > windy["moves_left"] > 0
    assert calm["home"] == pytest.approx(south)
    assert client.get(f"/searches/{calm['id']}/map").json()["home"] == pytest.approx([3, 1], abs=1e-3)
    joined = client.post(f"/searches/{windy['id']}/vehicles", json={"id": "2", "start": search_ground.position((2, 1))})
    assert joined.status_code == 200
    assert 0 < joined.json()["moves_left"] <= windy["moves_left"]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"budget": None, "endurance_s": 5.0}, "endurance"),
        ({"endurance_s": 600.0}, "budget"),
        ({"budget": None, "endurance_s": 600.0, "wind_m_s": 9.0}, "wind"),
        ({"roads": {"type": "Point", "coordinates": [15, 59]}, "walking_m_s": 1.0}, "no line"),
        ({"match_map": True}, "no orthophoto"),
        ({"map_tif": base64.b64encode(b"GIF89a").decode()}, "not a GeoTIFF"),
        ({"map_tif": "%%"}, "base64"),
        ({"goal": None, "goal_text": "a red roof", "match_map": True}, "picture"),
    ],
)
def test_an_invalid_setting_is_one_sentence_and_creates_no_search(
    client: TestClient, search_ground: SearchGround, change, fact: str
):
    response = client.post("/searches", json=search_ground.request(GOAL) | change)
    assert response.status_code == 422
    assert fact in response.json()["problem"]
    assert client.get("/searches").json()["searches"] == []


def test_a_goal_is_matched_with_the_orthophoto_and_a_restart_without_it_goes_on(
    tmp_path: Path, search_ground: SearchGround, monkeypatch: pytest.MonkeyPatch
):
    ortho, path = search_ground.raster.path, tmp_path / "a.sqlite"
    store = SearchStore(path)
    client = client_of(store, orthophoto=ortho)
    options = {"goal_heading": 0.0, "goal_width_m": 96.0}
    state = create(client, search_ground, GOAL, match_map=True, **options)
    assert (state["best"]["row"], state["best"]["col"]) == GOAL
    flat = create(client, search_ground, GOAL, **options)
    assert flat["best_probability"] < 0.1 < state["best_probability"]
    before = post(client, search_ground, state).json()["next"]
    store.close()
    store = SearchStore(path)
    client = client_of(store)
    assert client.get(f"/searches/{state['id']}").json()["next"] == before
    sent = base64.b64encode(ortho.read_bytes()).decode()
    own = create(client, search_ground, GOAL, match_map=True, map_tif=sent, **options)
    assert own["best_probability"] == pytest.approx(state["best_probability"])
    assert client.get(f"/searches/{own['id']}/background").headers["content-type"] == "image/webp"
    store.close()


def test_an_orthophoto_that_is_sent_later_is_shown_and_kept(
    tmp_path: Path, client: TestClient, search_ground: SearchGround
):
    state = create(client, search_ground, GOAL)
    path = f"/searches/{state['id']}"
    assert client.get(f"{path}/map").json()["margin"] is None
    elsewhere = write_projected(tmp_path / "far.tif", ground(2), resolution=0.001)
    plain = write_tiff(tmp_path / "plain.tif", ground(2), None, None)
    for file, fact in ((elsewhere, "does not show"), (plain, "georeference")):
        response = client.put(f"{path}/orthophoto", content=file.read_bytes())
        assert (response.status_code, fact in response.json()["problem"]) == (422, True)
    huge = {"driver": "GTiff", "width": 40_000, "height": 40_000, "count": 1, "dtype": "uint8", "sparse_ok": True}
    with MemoryFile() as memory:
        memory.open(**huge, tiled=True, blockxsize=4096, blockysize=4096).close()
        claims = client.put(f"{path}/orthophoto", content=bytes(memory.getbuffer()))
    assert (claims.status_code, "megapixels" in claims.json()["cure"]) == (422, True)
    cut = search_ground.raster.path.read_bytes()
    assert client.put(f"{path}/orthophoto", content=cut[: len(cut) // 2]).status_code == 422
    assert client.put(f"{path}/orthophoto", content=cut).status_code == 200
    assert client.get(f"{path}/map").json()["margin"] is not None
    assert client.get(f"{path}/background").status_code == 200


def test_the_next_sortie_flies_in_the_part_that_is_left_also_after_a_restart(
    tmp_path: Path, search_ground: SearchGround
):
    (south, west), (north, east) = search_ground.corners
    wall = west + 0.62 * (east - west), west + 0.64 * (east - west)
    zone = [
        {"lat": lat, "lon": lon}
        for lat, lon in ((south, wall[0]), (north, wall[0]), (north, wall[1]), (south, wall[1]))
    ]
    store = SearchStore(tmp_path / "a.sqlite")
    client = client_of(store)
    state = create(client, search_ground, GOAL, no_fly=[zone], false_alarm_cost=1e6)
    first = fly(client, search_ground, state)
    sortie = client.post(f"/searches/{state['id']}/vehicles", json={"id": "1"}).json()
    assert sortie["status"] == "searching"
    assert {col for _, col in first} < {0, 1, 2, 3}
    assert sortie["next"]["col"] not in {col for _, col in first}
    store.close()
    store = SearchStore(tmp_path / "a.sqlite")
    client = client_of(store)
    assert client.get(f"/searches/{state['id']}").json()["next"] == sortie["next"]
    store.close()


def test_the_weights_of_a_map_are_stored_exactly(search_ground: SearchGround):
    from airloc.agents.sighting import matching_network
    from airloc.missions.intake import prior_sources
    from airloc.missions.map_prior import MapPrior
    from airloc.missions.photos import read_photo
    from airloc.missions.plan import prepare_goal

    agent, layout = make_agent("spiral"), search_ground.layout
    goal = prepare_goal(read_photo(search_ground.photo(GOAL)), layout, None, 0.0).goal
    stored = match_map(search_ground.raster, goal, agent, layout)
    settings = StoredSettings(outline=[{"lat": 1, "lon": 1}, {"lat": 2, "lon": 2}], map_weights=stored)
    (source,) = prior_sources(settings)
    weights = MapPrior(search_ground.raster.path, goal, matching_network(agent)).weights(layout)
    assert np.array_equal(source.weights(layout), weights)
