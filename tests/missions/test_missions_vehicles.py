"""Vehicles join, photograph and leave over HTTP; a server that ends at once loses nothing of their search."""

import shutil
from pathlib import Path

import pytest

from field_server import HEADERS, SearchGround, create, post, server_thread

pytest.importorskip("fastapi")
import httpx


def vehicles(state: dict) -> dict[str, dict]:
    return {vehicle["id"]: vehicle for vehicle in state["vehicles"]}


def cell(location: dict) -> tuple[int, int]:
    return location["row"], location["col"]


def photograph(client: httpx.Client, ground: SearchGround, state: dict, vehicle: str) -> dict:
    """Let a vehicle photograph its next cell; return the state."""
    response = post(client, ground, state, cell(vehicles(state)[vehicle]["next"]), vehicle=vehicle)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
def client(tmp_path: Path):
    with (
        server_thread(tmp_path / "searches.db") as url,
        httpx.Client(base_url=url, headers=HEADERS, timeout=30) as client,
    ):
        yield client


def test_vehicles_have_their_own_next_cells_and_budgets(client: httpx.Client, search_ground: SearchGround):
    launch = search_ground.position((3, 3))
    state = create(client, search_ground, (3, 0), drones=2, launches=[launch], budget=6)
    assert cell(vehicles(state)["2"]["next"]) == (3, 3)
    result = photograph(client, search_ground, state, "2")
    assert (result["outcome"], cell(result["next"])) == ("used", cell(vehicles(result)["2"]["next"]))
    assert vehicles(result)["1"]["next"] == vehicles(state)["1"]["next"]
    assert vehicles(result)["2"]["photos"] == 1
    other = post(client, search_ground, result, cell(result["next"]), vehicle="1").json()
    assert other["outcome"] == "kept"
    assert len({cell(each["next"]) for each in other["vehicles"]}) == 2


def test_a_vehicle_joins_and_leaves(client: httpx.Client, search_ground: SearchGround):
    state = create(client, search_ground, (0, 0))
    where = f"/searches/{state['id']}/vehicles"
    joined = client.post(where, json={"id": "north-1", "budget": 4}).json()
    assert vehicles(joined)["north-1"]["moves_left"] == 4
    assert cell(joined["next"]) == cell(vehicles(joined)["north-1"]["next"])
    assert client.post(where, json={"id": "north-1"}).status_code == 409
    assert client.post(where, json={"id": "no spaces"}).status_code == 422
    assert client.post(where, json={"id": "far", "start": {"lat": 0, "lon": 0}}).status_code == 422
    assert post(client, search_ground, state, (0, 1), vehicle="unknown").status_code == 404
    left = client.delete(f"{where}/north-1").json()
    assert (vehicles(left)["north-1"]["active"], vehicles(left)["north-1"]["next"]) == (False, None)
    assert client.delete(f"{where}/north-1").status_code == 404
    assert client.delete(f"{where}/1").status_code == 422  # the only one


def test_a_moving_target_is_found_when_a_person_confirms_it(client: httpx.Client, search_ground: SearchGround):
    state = create(client, search_ground, (1, 1), walking_m_s=1.0, drift_m_s=0.5, drift_direction=90)
    result = post(client, search_ground, state, (1, 1)).json()
    assert result["status"] == "searching"
    belief = client.get(f"/searches/{state['id']}/belief").json()["poa"]
    assert sum(map(sum, belief)) == pytest.approx(1)
    found = client.post(f"/searches/{state['id']}/photos/1/verdict", json={"goal": True}).json()
    assert (found["status"], cell(found["declared"])) == ("found", (1, 1))


def test_the_files_of_a_server_with_three_vehicles_have_everything_at_any_moment(
    client: httpx.Client, tmp_path: Path, search_ground: SearchGround
):
    """Another server starts from copies of the files while the first one runs, as after a kill."""
    state = create(client, search_ground, (3, 3), drones=2, budget=8, agent="belief", detection=0.5)
    where = f"/searches/{state['id']}"
    state = client.post(f"{where}/vehicles", json={"id": "late", "budget": 5}).json()
    for vehicle in ("1", "2", "late", "2", "1"):
        if state["status"] == "searching":
            state = photograph(client, search_ground, state, vehicle)
    client.post(f"{where}/photos/1/verdict", json={"goal": False})
    client.delete(f"{where}/vehicles/2")
    before = client.get(where).json(), client.get(f"{where}/belief").json()
    (tmp_path / "copy").mkdir()
    for path in tmp_path.glob("searches.db*"):
        shutil.copy(path, tmp_path / "copy")
    with (
        server_thread(tmp_path / "copy" / "searches.db") as url,
        httpx.Client(base_url=url, headers=HEADERS, timeout=30) as other,
    ):
        assert (other.get(where).json(), other.get(f"{where}/belief").json()) == before
