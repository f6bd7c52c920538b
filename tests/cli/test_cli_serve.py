"""`airloc serve` announces its address and token, continues searches after a crash, and checks its input first."""

import socket
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from airloc.missions.server import make_app
from airloc.missions.service import SearchService
from airloc.missions.store import SearchStore
from field_files import ground, write_projected
from field_server import HEADERS, TOKEN, SearchGround, ServerProcess, create, fly, post

pytestmark = pytest.mark.long

GOAL = (0, 3)


@pytest.fixture(scope="module")
def search_ground(tmp_path_factory: pytest.TempPathFactory) -> SearchGround:
    return SearchGround(write_projected(tmp_path_factory.mktemp("ground") / "ground.tif", ground(9)))


def test_a_search_continues_after_the_server_is_killed(tmp_path: Path, search_ground: SearchGround):
    """The server also generates a token, and a stalled request does not block other requests."""
    store = tmp_path / "searches.sqlite"
    server = ServerProcess(store)
    try:
        assert httpx.get(f"{server.url}/searches").status_code == 401
        host, port = server.url.removeprefix("http://").split(":")
        stalled = [socket.create_connection((host, int(port))) for _ in range(2)]
        stalled[0].sendall(b"GET /searches HTTP/1.1\r\nHost: x\r\n")
        stalled[1].sendall(b"POST /searches HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        whole = fly(server.client, search_ground, create(server.client, search_ground, GOAL, agent="airloc"))
        state = create(server.client, search_ground, GOAL, agent="airloc")
        path = []
        for _ in range(len(whole) // 2 or 1):
            path.append((state["next"]["row"], state["next"]["col"]))
            state = post(server.client, search_ground, state).json()
    finally:
        server.kill()
    restarted = TestClient(make_app(SearchService(SearchStore(store), "spiral"), TOKEN), headers=HEADERS)
    again = restarted.get(f"/searches/{state['id']}").json()
    assert again == {key: state[key] for key in again}
    assert path + fly(restarted, search_ground, again) == whole


@pytest.mark.parametrize(
    ("token", "options", "fact"),
    [
        ("short", (), "AIRLOC_TOKEN"),
        ("a long token", ("--agent", "nobody"), "nobody"),
        ("a long token", ("--token-file", "missing.txt"), "missing.txt"),
        ("a long token", ("--port", 70000), "70000"),
        ("a long token", ("--map", "missing.tif"), "missing.tif"),
        ("a long token", ("--map", __file__), "test_cli_serve.py"),
    ],
)
def test_bad_input_creates_no_store(airloc, tmp_path: Path, monkeypatch, token: str, options, fact: str):
    monkeypatch.setenv("AIRLOC_TOKEN", token)
    store = tmp_path / "folder" / "searches.sqlite"
    assert airloc("serve", "--store", store, *options).refused(fact)
    assert not store.parent.exists()


@pytest.mark.parametrize("options", [("--store",), ("--store", "old.sqlite", "--recover")])
def test_a_folder_that_does_not_exist_is_refused_and_not_created(airloc, tmp_path: Path, monkeypatch, options):
    monkeypatch.setenv("AIRLOC_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    SearchStore(tmp_path / "old.sqlite").close()
    assert airloc("serve", "--port", 0, "--agent", "spiral", *options, "nosuch/x.sqlite").refused("nosuch'")
    assert list(tmp_path.iterdir()) == [tmp_path / "old.sqlite"]


def test_a_port_in_use_is_an_error_before_the_store_is_created(airloc, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("AIRLOC_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        assert airloc("serve", "--store", tmp_path / "s.sqlite", "--port", port).refused(str(port), "--port")
    assert not (tmp_path / "s.sqlite").exists()


def test_a_file_that_is_no_store_or_is_damaged_is_refused_and_unchanged(airloc, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("AIRLOC_TOKEN", TOKEN)
    text = tmp_path / "text.sqlite"
    text.write_text("only text " * 1000)
    assert airloc("serve", "--port", 0, "--store", text).refused("text.sqlite", "--store")
    damaged = tmp_path / "damaged.sqlite"
    SearchStore(damaged).close()
    data = bytearray(damaged.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    damaged.write_bytes(data)
    assert airloc("serve", "--port", 0, "--store", damaged).refused("damaged.sqlite", "--recover")
    assert damaged.read_bytes() == bytes(data)


@pytest.mark.parametrize(("verb", "extra"), [("search", "field"), ("serve", "field")])
def test_a_missing_extra_is_named_with_its_command(airloc, tmp_path: Path, monkeypatch, verb: str, extra: str):
    monkeypatch.setattr("airloc.cli.console.find_spec", lambda name: None)
    options = {"search": ("--area", "a.tif", "--goal", "b.jpg", "--out", tmp_path / "out"), "serve": ()}[verb]
    assert airloc(verb, *options).refused(f"pip install 'airloc[{extra}]'")
