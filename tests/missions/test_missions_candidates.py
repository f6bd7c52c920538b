"""Photos as candidates for the goal: useless ones are refused, all are ranked, and people confirm or reject them."""

import io
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from airloc.agents.registry import make_agent
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.missions.photos import Goal, View, find_flaw
from airloc.missions.plan import SearchPlan, format_position, lay_out_search, start_search
from airloc.missions.recovery import recover_store
from airloc.missions.report import candidates_page
from airloc.missions.searcher import Glimpse, Searcher, UnusablePhotoError
from airloc.missions.simulation import simulate
from airloc.missions.store import PATCH_BYTES, SearchStore, StoredGlimpse, StoredSearch, StoredVerdict
from field_files import ground, write_projected
from field_server import HEADERS, SearchGround, client_of, create, encode_png, fly, post, server_thread

pytestmark = pytest.mark.long

GRID = Grid(5, 5)
WHOLE = np.ones((96, 96), dtype=bool)
FLAWS = {
    "black": lambda view: view // 20,
    "underexposed": lambda view: np.clip(view - np.percentile(view.max(axis=2), 70), 0, 255).astype(np.uint8),
    "overexposed": lambda view: np.clip(view.astype(int) * 4 + 100, 0, 255).astype(np.uint8),
    "blurred": lambda view: np.asarray(Image.fromarray(view).filter(ImageFilter.GaussianBlur(4))),
}


def searcher(patches: np.ndarray, agent: str = "spiral", threshold: float = 0.8) -> Searcher:
    """A search for cell (4, 4), from the middle."""
    return Searcher(make_agent(agent), patches[24], GRID, start=(2, 2), budget=30, threshold=threshold)


def glimpse(patches: np.ndarray, cell) -> Glimpse:
    return Glimpse(patches[GRID.index(cell)])


def brighter(pixels: np.ndarray) -> np.ndarray:
    return np.clip(pixels.astype(int) + 3, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_useless_photo_is_recognised_and_a_good_one_is_not(areas, flaw: str):
    for area in areas:
        view = area.image[80:176, 80:176]
        assert find_flaw(View(view, WHOLE)) is None
        assert find_flaw(View(FLAWS[flaw](view), WHOLE)) == flaw


def test_ground_without_structure_and_parts_that_are_not_seen_are_no_flaw():
    water = np.full((96, 96, 3), (40, 60, 80), dtype=np.uint8)
    assert find_flaw(View(water, WHOLE)) is None
    assert find_flaw(View(np.zeros_like(water), ~WHOLE)) is None


def test_a_useless_photo_changes_nothing_and_its_cell_may_be_photographed_again(patches):
    search = searcher(patches)
    before = search.advice()
    with pytest.raises(UnusablePhotoError, match="row 3, column 3 is black"):
        search.observe((2, 2), Glimpse(np.zeros((48, 48, 3), dtype=np.uint8)))
    assert search.advice() == before
    assert search.observe((2, 2), glimpse(patches, (2, 2))).next_cell != (2, 2)


def test_a_second_better_photo_of_a_cell_declares_the_find(patches):
    search = searcher(patches)
    noise = np.random.default_rng(0).integers(0, 255, (48, 48, 3), dtype=np.uint8)
    poor = Glimpse(np.where(np.arange(48)[:, None, None] < 30, noise, patches[24]))
    assert search.observe((4, 4), poor).status == "searching"
    advice = search.observe((4, 4), glimpse(patches, (4, 4)))
    assert advice.declared is not None
    assert advice.declared.cell == (4, 4)
    assert [photo.number for photo in search.candidates()] == [2, 1]
    assert search.pod[4, 4] == search.detection, "two photos of a cell miss the same goals"


@pytest.mark.parametrize("agent", ["spiral", "belief"])
def test_rejecting_the_declared_photo_withdraws_the_find_and_the_search_goes_on(patches, agent: str):
    search = searcher(patches, agent)
    search.observe((2, 2), glimpse(patches, (2, 2)))
    assert search.observe((4, 4), glimpse(patches, (4, 4))).status == "found"
    assert search.belief()[4, 4] > 0.8
    advice = search.judge(2, False)
    assert (advice.status, advice.declared) == ("searching", None)
    assert advice.next_cell is not None
    assert search.belief()[4, 4] < 0.01
    assert search.candidates()[-1].number == 2
    confirmed = search.judge(1, True)
    assert confirmed.declared is not None
    assert confirmed.declared.cell == confirmed.best == (2, 2)
    assert search.judge(1, False).next_cell == advice.next_cell, "a person may change their mind"


def test_a_verdict_on_no_photo_is_an_error(patches):
    search = searcher(patches)
    for number in (0, 1, -1):
        with pytest.raises(AirlocError, match=f"no photo {number}"):
            search.judge(number, True)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 24), st.booleans(), st.integers(0, 30)), max_size=12))
def test_any_photos_and_verdicts_keep_a_search_consistent(patches, events):
    search = searcher(patches)
    for number, goal, photo in events:
        cell = GRID.cell_of(number)
        if search.status == "searching":
            search.observe(cell, glimpse(patches, cell))
        if photo <= len(search.photos) and photo:
            search.judge(photo, goal)
        belief = search.belief()
        assert belief.sum() == pytest.approx(1)
        assert belief.min() >= 0
        assert (search.status == "found") == (search.advice().declared is not None)
        declared = search.advice().declared
        assert declared is None or any(p.find.cell == declared.cell and p.verdict is not False for p in search.photos)


def test_the_page_of_candidates_shows_the_goal_and_every_photo_in_the_order_of_their_probability(tmp_path: Path):
    image, plan = ground(4), SearchPlan(cell_m=96.0, budget=6)
    patch = image[156:204, 156:204]
    with Raster(write_projected(tmp_path / "ortho.tif", image)) as raster:
        search = start_search(plan, lay_out_search(plan, None, raster), Goal(patch, patch), make_agent("spiral"))
        text = candidates_page(simulate(search, raster))
    photos = search.searcher.photos
    assert len(photos) > 1
    assert text.count("data:image/") == len(photos) + 1
    shown = [float(number) for number in re.findall(r"confidence ([\d.]+) %", text)]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == len(photos)
    best = search.searcher.candidates()[0].find
    place = format_position(search.layout, best.position)
    assert f"{place} (row {best.cell[0] + 1}, column {best.cell[1] + 1})" in text


@pytest.mark.parametrize("pictured", [True, False])
def test_the_page_of_candidates_quotes_a_goal_in_words(tmp_path: Path, pictured: bool):
    image, plan = ground(4), SearchPlan(cell_m=96.0, budget=2)
    patch = image[156:204, 156:204] if pictured else np.zeros((48, 48, 3), dtype=np.uint8)
    goal = Goal(patch, patch, text="red roofs <beside> a pond")
    with Raster(write_projected(tmp_path / "ortho.tif", image)) as raster:
        layout = lay_out_search(plan, None, raster)
        record = simulate(start_search(plan, layout, replace(goal, text=""), make_agent("spiral")), raster)
    text = candidates_page(replace(record, search=record.search._replace(goal=goal)))
    assert "red roofs &lt;beside&gt; a pond" in text
    assert text.count("data:image/") == len(record.searcher.photos) + pictured


def verdict(client: httpx.Client, search: str, number: object, goal: object):
    return client.post(f"/searches/{search}/photos/{number}/verdict", json={"goal": goal})


def test_the_server_asks_for_a_useless_photo_again_and_takes_it_if_told(tmp_path: Path, search_ground: SearchGround):
    client = client_of(SearchStore(tmp_path / "a.sqlite"))
    state = create(client, search_ground, (0, 3))
    black = encode_png(np.zeros((96, 96, 3), dtype=np.uint8))
    refused = post(client, search_ground, state, photo=black).json()
    assert (refused["outcome"], refused["number"], refused["next"]) == ("unusable", None, state["next"])
    assert "is black" in refused["reason"]
    assert refused["photos"] == 0
    taken = post(client, search_ground, state, photo=black, accept=True).json()
    assert (taken["outcome"], taken["number"], taken["reason"]) == ("used", 1, None)
    first = (state["next"]["row"], state["next"]["col"])
    added = post(client, search_ground, taken, first).json()
    assert (added["outcome"], added["number"], added["photos"]) == ("added", 2, 1)
    again = post(client, search_ground, taken, first).json()
    assert {**added, "outcome": ""} == {**again, "outcome": ""}
    assert again["outcome"] == "repeated"


def test_photos_are_ranked_and_come_back_as_sent(tmp_path: Path, search_ground: SearchGround):
    client = client_of(SearchStore(tmp_path / "a.sqlite"))
    state = create(client, search_ground, (0, 3))
    assert client.get(f"/searches/{state['id']}/candidates").json() == {"candidates": []}
    path = fly(client, search_ground, state)
    ranked = client.get(f"/searches/{state['id']}/candidates").json()["candidates"]
    assert sorted(photo["number"] for photo in ranked) == list(range(1, len(path) + 1))
    probabilities = [photo["match_probability"] for photo in ranked]
    assert probabilities == sorted(probabilities, reverse=True)
    assert (ranked[0]["row"], ranked[0]["col"], ranked[0]["verdict"]) == (0, 3, None)
    for photo in ranked[:3]:
        response = client.get(f"/searches/{state['id']}/photos/{photo['number']}")
        assert response.content == search_ground.photo((photo["row"], photo["col"]))
        assert response.headers["content-type"] == "image/png"


def test_a_jpeg_comes_back_as_a_jpeg(tmp_path: Path, search_ground: SearchGround):
    client = client_of(SearchStore(tmp_path / "a.sqlite"))
    state = create(client, search_ground, (0, 3))
    buffer = io.BytesIO()
    Image.open(io.BytesIO(search_ground.photo((2, 2)))).save(buffer, "JPEG")
    post(client, search_ground, state, (2, 2), buffer.getvalue())
    response = client.get(f"/searches/{state['id']}/photos/1")
    assert (response.headers["content-type"], response.content) == ("image/jpeg", buffer.getvalue())


def test_verdicts_survive_a_restart_between_photos(tmp_path: Path, search_ground: SearchGround):
    with server_thread(tmp_path / "a.sqlite") as url, httpx.Client(base_url=url, headers=HEADERS, timeout=30) as client:
        search = create(client, search_ground, (0, 3))
        flown = fly(client, search_ground, search)
        assert client.get(f"/searches/{search['id']}").json()["status"] == "found"
        opened = verdict(client, search["id"], len(flown), False).json()
        assert (opened["status"], opened["declared"]) == ("searching", None)
        assert post(client, search_ground, opened).json()["outcome"] == "used"
        confirmed = verdict(client, search["id"], 1, True).json()
        assert (confirmed["status"], confirmed["declared"]["row"], confirmed["declared"]["col"]) == ("found", *flown[0])
        addresses = [f"/searches/{search['id']}{part}" for part in ("", "/candidates", "/belief", "/photos/2")]
        before = [client.get(address).content for address in addresses]
    with server_thread(tmp_path / "a.sqlite") as url, httpx.Client(base_url=url, headers=HEADERS, timeout=30) as client:
        assert [client.get(address).content for address in addresses] == before
        ranked = client.get(addresses[1]).json()["candidates"]
        assert (ranked[0]["verdict"], ranked[-1]["verdict"]) == (True, False)


@pytest.mark.parametrize("number", [0, -1, 2, 10**30])
def test_a_photo_that_does_not_exist_is_an_error_of_the_described_form(
    tmp_path: Path, search_ground: SearchGround, number: int
):
    client = client_of(SearchStore(tmp_path / "a.sqlite"))
    state = create(client, search_ground, (0, 3))
    post(client, search_ground, state)
    for response in (
        client.get(f"/searches/{state['id']}/photos/{number}"),
        verdict(client, state["id"], number, True),
    ):
        assert response.status_code == 404
        assert "no photo" in response.json()["problem"]


def test_a_verdict_given_twice_changes_nothing_and_an_invalid_one_is_refused(
    tmp_path: Path, search_ground: SearchGround
):
    store = SearchStore(tmp_path / "a.sqlite")
    client = client_of(store)
    state = create(client, search_ground, (0, 3))
    post(client, search_ground, state)
    first = verdict(client, state["id"], 1, False).json()
    assert verdict(client, state["id"], 1, False).json() == first
    assert len(store.verdicts(state["id"])) == 1
    for goal in (None, "yes", 1, 0.5, [True]):
        assert verdict(client, state["id"], 1, goal).status_code == 422
    assert verdict(client, "missing", 1, True).status_code == 404
    assert verdict(client, state["id"], "x", True).status_code == 422
    client.delete(f"/searches/{state['id']}")
    assert verdict(client, state["id"], 1, True).status_code == 409
    assert client.get(f"/searches/{state['id']}/photos/1").status_code == 200, "the photos stay"


def test_recovery_keeps_the_verdicts_on_the_photos_that_are_left(tmp_path: Path):
    store = SearchStore(tmp_path / "a.sqlite")
    store.add(StoredSearch("a", "2024-01-01T00:00:00+00:00", {"cell_m": 96.0}, bytes(PATCH_BYTES), False))
    for number in range(4):
        store.append("a", number, StoredGlimpse(0, number, 1.0, bytes(PATCH_BYTES)))
    verdicts = [StoredVerdict(2, False, 2), StoredVerdict(3, False, 3), StoredVerdict(4, True, 4)]
    for given_verdict in verdicts:
        store.append_verdict("a", given_verdict)
    assert store.verdicts("a") == verdicts
    store.close()
    with sqlite3.connect(tmp_path / "a.sqlite") as file:
        file.execute("UPDATE glimpses SET pixels = x'00' WHERE number = 1")
    file.close()
    assert recover_store(tmp_path / "a.sqlite", tmp_path / "b.sqlite") == (1, 3)
    store = SearchStore(tmp_path / "b.sqlite")
    assert store.verdicts("a") == [StoredVerdict(2, False, 2), StoredVerdict(3, True, 3)]
    store.close()


def test_a_store_of_the_first_version_takes_verdicts(tmp_path: Path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(
            "CREATE TABLE searches (id TEXT PRIMARY KEY, begun TEXT NOT NULL, config TEXT NOT NULL, goal BLOB NOT NULL,"
            "cancelled INTEGER NOT NULL DEFAULT 0);"
            "CREATE TABLE glimpses (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL,"
            "row INTEGER NOT NULL, col INTEGER NOT NULL, seen REAL NOT NULL, pixels BLOB NOT NULL,"
            "PRIMARY KEY (search, number)); PRAGMA user_version = 1;"
        )
        file.execute("INSERT INTO searches VALUES ('a', '2024', '{}', zeroblob(6912), 0)")
        file.execute("INSERT INTO glimpses VALUES ('a', 0, 0, 0, 1.0, zeroblob(6912))")
    file.close()
    store = SearchStore(path)
    store.append_verdict("a", StoredVerdict(1, False, 1))
    assert store.verdicts("a") == [StoredVerdict(1, False, 1)]
    assert store.photo("a", 1) is None
    store.close()
