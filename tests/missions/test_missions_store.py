"""The store keeps every search, refuses files that it cannot use, and never changes a damaged file."""

import base64
import json
import resource
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.photos import centre_crop, read_photo
from airloc.missions.recovery import recover_store
from airloc.missions.service import SearchService, valid_settings
from airloc.missions.store import PATCH_BYTES, SearchStore, StoredGlimpse, StoredSearch, StoreError
from field_server import SearchGround, client_of, create, fly, post

pytestmark = pytest.mark.long

SEARCH = StoredSearch("a", "2024-01-01T00:00:00+00:00", {"cell_m": 96.0}, bytes(PATCH_BYTES), False)
TREE_PAGES = {2, 5, 10, 13}
"""First byte of the pages of SQLite tables and indexes; other pages continue a long value."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, search_ground: SearchGround) -> bytes:
    """The bytes of a store with three searches of three photos each."""
    path = tmp_path_factory.mktemp("store") / "searches.sqlite"
    store = SearchStore(path)
    client = client_of(store)
    for _ in range(3):
        state = create(client, search_ground, (0, 3))
        for _ in range(3):
            state = post(client, search_ground, state).json()
    store.close()
    return path.read_bytes()


def page_size(data: bytes) -> int:
    return int.from_bytes(data[16:18], "big")


def pages(data: bytes) -> int:
    return len(data) // page_size(data)


def test_searches_and_glimpses_come_back_as_stored(tmp_path: Path):
    store = SearchStore(tmp_path / "a.sqlite")
    glimpse = StoredGlimpse(1, 2, 0.5, bytes(range(256)) * (PATCH_BYTES // 256))
    store.add(SEARCH)
    store.append("a", 0, glimpse)
    store.cancel("a")
    store.close()
    store = SearchStore(tmp_path / "a.sqlite")
    assert store.list_ids() == ["a"]
    assert store.find("a") == SEARCH._replace(cancelled=True)
    assert store.glimpses("a") == [glimpse]
    assert store.find("b") is None
    store.close()


def test_the_list_of_searches_has_names_and_counts_of_photos(tmp_path: Path):
    with closing(SearchStore(tmp_path / "a.sqlite")) as store:
        store.add(SEARCH._replace(id="b", created="2024-01-02", settings={"name": "<b>north & south</b>"}))
        store.add(SEARCH._replace(id="c", created="2024-01-01", settings={"name": 7}))
        store.append("b", 0, StoredGlimpse(0, 0, 1.0, bytes(PATCH_BYTES), received="2024-01-02T10:00:00+00:00"))
        store.cancel("c")
        assert store.summaries() == [
            ("b", "2024-01-02", "<b>north & south</b>", False, 1),
            ("c", "2024-01-01", None, True, 0),
        ]
        assert store.glimpses("b")[0].received == "2024-01-02T10:00:00+00:00"


def test_a_request_reads_the_picture_of_the_goal_once(tmp_path: Path, search_ground: SearchGround):
    class CountingStore(SearchStore):
        reads = 0

        def find(self, search: str) -> StoredSearch | None:
            self.reads += 1
            return super().find(search)

    with closing(CountingStore(tmp_path / "a.sqlite")) as store:
        client = client_of(store)
        path = f"/searches/{client.post('/searches', json=search_ground.request((0, 3))).json()['id']}"
        for method, rest in (
            ("GET", ""),
            ("GET", "/view"),
            ("POST", "/photos?lat=0&lon=0"),
            ("DELETE", ""),
            ("GET", ""),
        ):
            store.reads = 0
            answer = client.request(
                method, path + rest, content=search_ground.photo((0, 0)) if "photos" in rest else None
            )
            assert store.reads == 1, (method, rest)
        assert answer.json()["status"] == "cancelled"


def test_of_searches_begun_in_the_same_second_the_last_is_listed_first(tmp_path: Path):
    with closing(SearchStore(tmp_path / "a.sqlite")) as store:
        for name in ("m", "z", "a"):
            store.add(SEARCH._replace(id=name))
        assert store.list_ids() == [summary.id for summary in store.summaries()] == ["a", "z", "m"]


def test_a_search_whose_orthophoto_does_not_fit_on_the_disk_is_not_created(tmp_path: Path, search_ground: SearchGround):
    path, ground = tmp_path / "a.sqlite", search_ground.raster.path.read_bytes()
    with closing(SearchStore(path)) as store:
        client = client_of(store)
        request = search_ground.request((0, 3), map_tif=base64.b64encode(ground).decode())
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        for size in (len(ground) // 2, len(ground) + 10_000):  # of the temporary file that is read, and of the store
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
            try:
                refused = client.post("/searches", json=request)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert (refused.status_code, set(refused.json())) == (503, {"problem", "cure"})
        assert client.get("/searches").json()["searches"] == []
        assert client.post("/searches", json=request).status_code == 201, "the client sends it again"


VERSION_1 = """
CREATE TABLE searches (id TEXT PRIMARY KEY, begun TEXT NOT NULL, config TEXT NOT NULL, goal BLOB NOT NULL,
                       cancelled INTEGER NOT NULL DEFAULT 0);
CREATE TABLE glimpses (search TEXT NOT NULL REFERENCES searches (id), number INTEGER NOT NULL, row INTEGER NOT NULL,
                       col INTEGER NOT NULL, seen REAL NOT NULL, pixels BLOB NOT NULL, PRIMARY KEY (search, number));
PRAGMA user_version = 1;
"""
"""Schema of stores of version 1, which kept neither pictures nor photos."""


def write_version_1(path: Path, ground: SearchGround, goal: Cell, flown: list[Cell]) -> None:
    """Write the store of an earlier server with one search."""
    config = {
        "outline": [{"lat": lat, "lon": lon} for lat, lon in ground.corners], "cell_m": 96.0, "gap_m": None,
        "heading": 0.0, "start": None, "budget": 40, "agent": "spiral", "goal_width_m": None, "false_alarm_cost": 4.0,
        "detection": 0.9, "fov": 73.7, "aspect": 4 / 3, "seed": 0,
    }  # fmt: skip

    def patch(cell: Cell) -> bytes:
        return centre_crop(read_photo(ground.photo(cell))).tobytes()

    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(VERSION_1)
        file.execute("INSERT INTO searches VALUES ('a', '2024-01-01', ?, ?, 0)", (json.dumps(config), patch(goal)))
        for number, cell in enumerate(flown):
            file.execute("INSERT INTO glimpses VALUES ('a', ?, ?, ?, 1.0, ?)", (number, *cell, patch(cell)))


def test_searches_of_a_store_of_version_1_go_on(tmp_path: Path, search_ground: SearchGround):
    store = SearchStore(tmp_path / "new.sqlite")
    client = client_of(store)
    path = fly(client, search_ground, create(client, search_ground, (0, 3), goal_heading=0))
    store.close()
    write_version_1(tmp_path / "old.sqlite", search_ground, (0, 3), path[:3])
    assert recover_store(tmp_path / "old.sqlite", tmp_path / "recovered.sqlite") == (1, 3)
    SearchStore(tmp_path / "old.sqlite").close()  # upgrades the file
    for name in ("old.sqlite", "recovered.sqlite"):
        store = SearchStore(tmp_path / name)
        client = client_of(store)
        state = client.get("/searches/a").json()
        assert state["photos"] == 3
        assert fly(client, search_ground, state) == path[3:]
        assert client.get("/searches/a").json()["declared"] is not None
        assert [glimpse.photo is None for glimpse in store.glimpses("a")] == [True] * 3 + [False] * (len(path) - 3)
        store.close()


def test_a_search_with_damaged_pictures_goes_on_with_its_patches(tmp_path: Path, stored: bytes, search_ground):
    path = tmp_path / "searches.sqlite"
    path.write_bytes(stored)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE searches SET picture = x'00'")
        file.execute("UPDATE glimpses SET photo = x'ffd8' WHERE number = 0")
        file.execute("UPDATE glimpses SET position = '{' WHERE number = 1")
    store = SearchStore(path)
    client = client_of(store)
    state = client.get(f"/searches/{store.list_ids()[0]}").json()
    assert state["photos"] == 3
    assert fly(client, search_ground, state)[-1] == (0, 3)
    store.close()


@pytest.mark.parametrize("damage", [b"\xa5", b"\x00"], ids=["noise", "zeros"])
def test_a_store_with_a_damaged_page_is_refused_with_a_cure_and_stays_as_it_is(
    tmp_path: Path, stored: bytes, damage: bytes
):
    size, path = page_size(stored), tmp_path / "damaged.sqlite"
    tables = [page for page in range(1, pages(stored)) if stored[page * size] in TREE_PAGES]
    chosen = range(1, pages(stored)) if damage == b"\xa5" else tables  # zeros in pixels are black pixels
    assert len(tables) >= 4
    for page in chosen:
        damaged = bytearray(stored)
        damaged[page * size : (page + 1) * size] = damage * size
        path.write_bytes(damaged)
        with pytest.raises(StoreError) as error:
            SearchStore(path)
        assert str(path) in error.value.problem
        assert "--recover" in error.value.cure
        assert path.read_bytes() == bytes(damaged)


def test_no_store_that_opens_makes_the_server_fail(tmp_path: Path, stored: bytes):
    size, path = page_size(stored), tmp_path / "damaged.sqlite"
    for page in range(0, pages(stored), 24):
        damaged = bytearray(stored)
        damaged[page * size + 8 : page * size + 200] = bytes(range(192))
        path.write_bytes(damaged)
        try:
            store = SearchStore(path)
        except AirlocError:
            continue
        client = client_of(store)
        searches = client.get("/searches").json()["searches"]
        assert len(searches) == 3
        assert {client.get(f"/searches/{search}").status_code for search in searches} == {200}
        store.close()


NUMBERS = [("searches", "cancelled"), *(("glimpses", name) for name in ("number", "row", "col", "seen"))]
OBJECTS = [("searches", "config"), ("glimpses", "position")]
COLUMNS = [*NUMBERS, *OBJECTS, *(("searches", name) for name in ("id", "begun", "goal", "picture"))]
COLUMNS += [("glimpses", name) for name in ("pixels", "photo")]


@pytest.mark.parametrize(
    ("value", "columns"), [("-1", COLUMNS), ("99999", NUMBERS), ("'x'", COLUMNS), ("'{}'", OBJECTS)], ids=str
)
def test_a_store_with_a_damaged_value_is_refused_before_listening_or_served(
    tmp_path: Path, stored: bytes, value: str, columns: list[tuple[str, str]]
):
    path = tmp_path / "changed.sqlite"
    for table, name in columns:
        path.write_bytes(stored)
        with closing(sqlite3.connect(path)) as file, file:
            (changed,) = file.execute("SELECT id FROM searches WHERE rowid = 1").fetchone()
            file.execute(f"UPDATE OR IGNORE {table} SET {name} = {value} WHERE rowid = 1")
        try:
            store = SearchStore(path)
        except StoreError:
            continue
        with suppress(StoreError):
            SearchService(store, "spiral").check_store()
            client = client_of(store)
            searches = client.get("/searches").json()["searches"]
            assert client.get(f"/searches/{changed}").status_code in (200, 404), (table, name)
            assert len(searches) == 3
        store.close()


def test_a_search_with_invalid_settings_is_refused_and_the_others_are_recovered(tmp_path: Path, stored: bytes):
    path, target = tmp_path / "changed.sqlite", tmp_path / "recovered.sqlite"
    path.write_bytes(stored)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE searches SET config = json_set(config, '$.cell_m', -5) WHERE rowid = 1")
    store = SearchStore(path)
    with pytest.raises(StoreError, match=r"damaged.*invalid values"):
        SearchService(store, "spiral").check_store()
    store.close()
    assert recover_store(path, target, valid_settings) == (2, 6)
    store = SearchStore(target)
    SearchService(store, "spiral").check_store()
    store.close()


def test_a_truncated_store_is_refused(tmp_path: Path, stored: bytes):
    path = tmp_path / "short.sqlite"
    path.write_bytes(stored[: len(stored) // 2])
    with pytest.raises(StoreError, match=r"short\.sqlite"):
        SearchStore(path)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("UPDATE searches SET config = '{' WHERE rowid = 1", (2, 6)),
        ("UPDATE searches SET goal = x'00' WHERE rowid = 1", (2, 6)),
        ("UPDATE glimpses SET pixels = x'00' WHERE rowid = 1", (3, 8)),
    ],
)
def test_a_store_with_an_invalid_row_is_refused_and_the_others_are_recovered(
    tmp_path: Path, stored: bytes, change: str, left: tuple[int, int]
):
    path = tmp_path / "changed.sqlite"
    path.write_bytes(stored)
    with sqlite3.connect(path) as file:
        file.execute(change)
    file.close()
    with pytest.raises(StoreError, match=r"changed\.sqlite"):
        SearchStore(path)
    assert recover_store(path, tmp_path / "recovered.sqlite") == left


def test_the_readable_searches_of_a_damaged_store_are_recovered_and_continue(
    tmp_path: Path, stored: bytes, search_ground: SearchGround
):
    size, path = page_size(stored), tmp_path / "damaged.sqlite"
    recovered = {}
    for page in range(1, pages(stored), 8):
        damaged = bytearray(stored)
        damaged[page * size : (page + 1) * size] = b"\xa5" * size
        path.write_bytes(damaged)
        target = tmp_path / f"recovered-{page}.sqlite"
        try:
            recovered[page] = recover_store(path, target)
        except StoreError:
            assert not target.exists()
            continue
        assert path.read_bytes() == bytes(damaged)
        store = SearchStore(target)
        client = client_of(store)
        state = client.get(f"/searches/{store.list_ids()[0]}").json()
        assert post(client, search_ground, state).json()["outcome"] == "used"
        store.close()
    assert sum(searches >= 2 and photos >= 8 for searches, photos in recovered.values()) >= 5


def test_recovery_does_not_overwrite_a_file_and_names_a_missing_one(tmp_path: Path):
    SearchStore(tmp_path / "a.sqlite").close()
    with pytest.raises(StoreError, match=r"a\.sqlite"):
        recover_store(tmp_path / "b.sqlite", tmp_path / "a.sqlite")
    with pytest.raises(StoreError, match=r"b\.sqlite"):
        recover_store(tmp_path / "b.sqlite", tmp_path / "c.sqlite")
    with pytest.raises(StoreError, match=r"a\.sqlite"):
        recover_store(tmp_path / "a.sqlite", tmp_path / "c.sqlite")
    assert not (tmp_path / "c.sqlite").exists()


def test_damage_while_the_server_runs_is_a_response_with_a_cure(tmp_path: Path, stored: bytes):
    path = tmp_path / "searches.sqlite"
    path.write_bytes(stored)
    store = SearchStore(path)
    client = client_of(store)
    store.close()  # every statement fails from now on, as on a disk that fails
    response = client.get("/searches")
    assert response.status_code == 503
    assert str(path) in response.json()["problem"]
    assert response.json()["cure"]


def test_only_the_owner_can_read_a_store(tmp_path: Path):
    SearchStore(tmp_path / "s.sqlite").close()
    assert stat.S_IMODE((tmp_path / "s.sqlite").stat().st_mode) == 0o600


def test_only_one_server_at_a_time_opens_a_store(tmp_path: Path):
    first = SearchStore(tmp_path / "a.sqlite")
    with pytest.raises(StoreError, match=r"a\.sqlite") as error:
        SearchStore(tmp_path / "a.sqlite")
    assert "--store" in error.value.cure
    first.close()
    SearchStore(tmp_path / "a.sqlite").close()


def test_another_file_is_not_taken_for_a_store(tmp_path: Path):
    (tmp_path / "text.sqlite").write_text("no database, but long enough for one" * 40)
    with pytest.raises(StoreError, match=r"text\.sqlite"):
        SearchStore(tmp_path / "text.sqlite")
    with sqlite3.connect(tmp_path / "other.sqlite") as file:
        file.execute("CREATE TABLE notes (text TEXT)")
    file.close()
    with pytest.raises(StoreError, match=r"other\.sqlite"):
        SearchStore(tmp_path / "other.sqlite")
