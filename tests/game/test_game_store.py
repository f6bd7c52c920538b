"""The store: acknowledged moves survive a restart, and a SIGKILL under load."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.game import Episode, Store, Study
from airloc.game.store import replay
from airloc.web import bind
from game_server import Client, joined, move_towards, serving_study, small_study

pytestmark = pytest.mark.long

EPISODE = Episode(1, (0, 0), (4, 4))


def test_a_game_survives_in_the_file(tmp_path: Path):
    store = Store(tmp_path / "games.db")
    game = store.create("somebody", EPISODE, 10, 60.0, slot=3)
    game = store.add_move(game, 4, 1.5, None)
    again = Store(tmp_path / "games.db").game(game.id)
    assert again == game
    assert (again.path, again.elapsed, again.slot) == (((0, 0), (1, 0)), 1.5, 3)


def test_a_file_of_an_earlier_version_keeps_its_games_and_takes_all_endings(tmp_path: Path):
    path = tmp_path / "games.db"
    store = Store(path)
    games = [store.add_move(store.create("p", EPISODE, 10, 60.0, slot), 4, 1.5, None) for slot in (2, 0, 1)]
    store.close()
    with sqlite3.connect(path) as old:
        old.execute("PRAGMA writable_schema = ON")
        old.execute("UPDATE sqlite_master SET sql = replace(sql, ?, '')", (", 'left', 'disconnected'",))
    old.close()
    again = Store(path)
    assert again.games_of("p") == games
    assert again.end(games[0], 2.0, "disconnected") == again.game(games[0].id)
    again.delete(games[1].id)
    assert again.db.execute("SELECT count(*) FROM moves").fetchone() == (2,), "moves still belong to their game"
    assert again.db.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_only_the_owner_can_read_the_file(tmp_path: Path):
    Store(tmp_path / "games.db")
    assert stat.S_IMODE((tmp_path / "games.db").stat().st_mode) == 0o600


def test_a_file_that_is_not_a_database_is_an_airloc_error_that_names_it(tmp_path: Path):
    (tmp_path / "text.db").write_text("this is a text, and a long one, that is no database at all" * 20)
    with pytest.raises(AirlocError, match=r"text\.db.*airloc study create"):
        Store(tmp_path / "text.db")


def test_soon_after_a_game_the_file_alone_holds_it(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1)
    with serving_study(study) as (url, _):
        client = joined(url, study.participants()[0].token)
        client.ask("POST", "/api/consent", {})
        client.ask("POST", "/api/practised")
        game, goal = client.begin("recorded"), study.episodes(1)[0].goal
        position, turn = tuple(game["position"]), 0
        while position != goal:
            position = tuple(client.move(game["game"], turn, move_towards(position, goal)).json["position"])
            turn += 1
        until = time.monotonic() + 10
        while True:
            shutil.copy(study.path, tmp_path / "copy.db")
            held = Study(tmp_path / "copy.db").store
            if [played.ending for played in held.recorded()] == ["found"]:
                break
            held.close()
            assert time.monotonic() < until, "the game is only in the write-ahead log"
            time.sleep(0.05)
        assert held.recorded() == study.store.recorded()
        client.close()


class Server:
    """`airloc study serve` in a process of its own."""

    def __init__(self, study: Path) -> None:
        port = free_port()
        command = [sys.executable, "-m", "airloc.cli.main", "study", "serve", str(study), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, "--agents", "lawnmower"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.url = f"http://127.0.0.1:{port}/"
        until = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < until
            try:
                Client(self.url).ask("GET", "/")
                return
            except OSError:
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server and wait for the end of its worker, which notices by itself."""
        children_file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = [Path("/proc", child) for child in children_file.read_text().split()]
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)
        until = time.monotonic() + 20
        while any(child.exists() for child in children):
            assert time.monotonic() < until, "the worker process is still there"
            time.sleep(0.05)


def free_port() -> int:
    with bind("127.0.0.1", 0) as bound:
        return bound.getsockname()[1]


def play_until_disconnected(url: str, token: str, acknowledged: dict[str, list[int]]) -> None:
    """Play recorded games as fast as the rate limit allows, and note every acknowledged move."""
    with suppress(OSError, HTTPException):
        client = joined(url, token)
        client.ask("POST", "/api/consent", {})
        client.ask("POST", "/api/practised")
        while True:
            begun = client.ask("POST", "/api/games", {"kind": "recorded"})
            assert begun.status == 201, begun
            game, ending, turn = begun.json["game"], None, 0
            acknowledged[game] = []
            while ending is None:
                time.sleep(0.05)
                move = (turn * 3 + len(acknowledged)) % 8
                answer = client.move(game, turn, move)
                assert answer.status == 200, answer
                acknowledged[game].append(move)
                ending, turn = answer.json["ending"], turn + 1


def count_moves(acknowledged: list[dict[str, list[int]]]) -> int:
    return sum(len(moves) for games in acknowledged for moves in list(games.values()))


def test_after_a_sigkill_under_load_no_acknowledged_move_is_missing_and_games_continue(tmp_path: Path):
    path, crowd = tmp_path / "study.db", 16
    small_study(path, people=crowd, each=10, areas=24).store.close()
    acknowledged: list[dict[str, list[int]]] = [{} for _ in range(crowd)]
    server = Server(path)
    people = Study(path).participants()
    threads = [
        threading.Thread(target=play_until_disconnected, args=(server.url, person.token, games))
        for person, games in zip(people, acknowledged, strict=True)
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 20
    while count_moves(acknowledged) < 100 and time.monotonic() < until:
        time.sleep(0.05)
    server.kill()
    for thread in threads:
        thread.join(timeout=20)
    assert count_moves(acknowledged) >= 100, "the server was under load"

    study = Study(path)
    with serving_study(study) as (url, _):
        for person, games in zip(people, acknowledged, strict=True):
            check_games(url, person.token, games, study)


def check_games(url: str, token: str, acknowledged: dict[str, list[int]], study: Study) -> None:
    """A participant returns: no acknowledged move is missing, and the game in progress continues."""
    client = joined(url, token)
    for game, moves in acknowledged.items():
        shown, stored = client.ask("GET", f"/api/games/{game}").json, study.store.game(game)
        # The kill may have cut off the response to a last move.
        assert list(stored.moves[: len(moves)]) == moves
        assert len(stored.moves) <= len(moves) + 1
        assert [tuple(cell) for cell in shown["path"]] == list(replay(stored.episode, stored.moves, stored.budget)[0])
    current = client.ask("GET", "/api/me").json["current"]
    if current is not None:
        turn = client.ask("GET", f"/api/games/{current}").json["turn"]
        assert client.move(current, turn, 0).status == 200
    client.close()
