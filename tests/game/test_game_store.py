"""What was acknowledged is there: after a restart, and after a kill -9 under load."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.errors import AirlocError
from airloc.game.app import listen
from airloc.game.match import Episode, RefusedError, replay
from airloc.game.referee import Referee
from airloc.game.store import Store
from airloc.game.study import Study
from airloc.task.batch import BatchEnv
from game_hall import Client, noise_world
from game_studies import joined, small_study

EPISODE = Episode(1, (0, 0), (4, 4))


def test_the_game_plays_in_step_with_the_tensor_environment():
    world, rng = noise_world(3, "4x5", budget=6), np.random.default_rng(0)
    env = BatchEnv(world.cells, world.budget)
    referee = Referee(world, Store(), 60.0)
    for _ in range(60):
        area, start, goal = world.sample(rng, 1)
        episode = Episode(int(area[0]), tuple(start[0].tolist()), tuple(goal[0].tolist()))
        game = referee.begin("p", episode)
        env.reset(*(torch.from_numpy(part) for part in (area, start, goal)))
        while game.ending is None:
            move = int(rng.integers(8))
            game = referee.move(game.id, "p", game.turn, move)
            step = env.step(torch.tensor([move]))
            assert list(game.position) == step.observation.position[0].tolist()
            assert (game.ending == "found", game.ending is not None) == (bool(step.found[0]), bool(step.ended[0]))
            seen = world.patches(np.array(episode.area), np.array(game.position))
            assert np.array_equal(seen, step.observation.patch[0].numpy())


def test_a_game_survives_in_the_file(tmp_path: Path):
    store = Store(tmp_path / "games.db")
    game = store.begin("somebody", EPISODE, 10, 60.0, slot=3)
    game = store.add_move(game, 4, 1.5, None)
    again = Store(tmp_path / "games.db").game(game.id)
    assert again == game
    assert (again.path, again.elapsed, again.slot) == (((0, 0), (1, 0)), 1.5, 3)


def test_the_file_is_its_owners_alone_and_journals_ahead(tmp_path: Path):
    store = Store(tmp_path / "games.db")
    assert stat.S_IMODE((tmp_path / "games.db").stat().st_mode) == 0o600
    assert store.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store.db.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_file_that_is_no_database_is_an_error_for_people(tmp_path: Path):
    (tmp_path / "text.db").write_text("this is a text, and a long one, that is no database at all" * 20)
    with pytest.raises(AirlocError, match="Give a file that airloc study create made"):
        Store(tmp_path / "text.db")


def test_the_clock_is_the_servers_and_stands_still_while_it_is_down(tmp_path: Path):
    now, world = [100.0], noise_world()
    referee = Referee(world, Store(tmp_path / "g.db"), 60.0, lambda: now[0])
    game = referee.begin("p", EPISODE)
    now[0] += 20
    referee.move(game.id, "p", 0, 3)
    now[0] += 15  # thought about, not recorded
    assert referee.seconds_left(referee.look(game.id, "p")) == 25
    referee.store.close()
    now[0] += 1000
    back = Referee(world, Store(tmp_path / "g.db"), 60.0, lambda: now[0])
    assert back.seconds_left(back.look(game.id, "p")) == 40, "goes on from the last move"
    now[0] += 39.9
    assert back.look(game.id, "p").ending is None
    now[0] += 0.2
    with pytest.raises(RefusedError, match="over"):
        back.move(game.id, "p", 1, 3)
    assert (back.look(game.id, "p").ending, back.look(game.id, "p").moves) == ("time", (3,))


def test_games_that_nobody_asks_about_end_by_time_too():
    now = [0.0]
    referee = Referee(noise_world(), Store(), 30.0, lambda: now[0])
    games = [referee.begin("p", EPISODE) for _ in range(3)]
    referee.forget(games[2].id)
    now[0] = 31.0
    referee.expire()
    assert [referee.store.game(game.id).ending for game in games[:2]] == ["time", "time"]
    assert referee.store.game(games[0].id).elapsed == 30.0


class Server:
    """`airloc study serve` as a process of its own."""

    def __init__(self, study: Path, port: int) -> None:
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
        """Kill it without warning; the process that its agents work in leaves by itself."""
        family = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        children = [Path("/proc", child) for child in Path(family).read_text().split()]
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)
        until = time.monotonic() + 20
        while any(child.exists() for child in children):
            assert time.monotonic() < until, "a process was left behind"
            time.sleep(0.05)


def free_port() -> int:
    with listen("127.0.0.1", 0, public=False) as taken:
        return taken.getsockname()[1]


def play_until_it_breaks(url: str, token: str, acknowledged: dict[str, list[int]]) -> None:
    """Play recorded games as fast as one may, and write down what the server has acknowledged."""
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


def test_after_a_kill_9_under_load_every_acknowledged_move_is_there_and_games_go_on(tmp_path: Path):
    path, crowd = tmp_path / "study.db", 16
    small_study(path, people=crowd, each=10, areas=24).store.close()
    port, acknowledged = free_port(), [{} for _ in range(crowd)]
    server = Server(path, port)
    people = Study(path).people()
    threads = [
        threading.Thread(target=play_until_it_breaks, args=(server.url, person.token, said))
        for person, said in zip(people, acknowledged, strict=True)
    ]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    server.kill()
    for thread in threads:
        thread.join(timeout=20)
    assert sum(len(moves) for said in acknowledged for moves in said.values()) > 100, "there was a load"

    again = Server(path, port)
    try:
        for person, said in zip(people, acknowledged, strict=True):
            check_what_is_left(again.url, person.token, said, Study(path))
    finally:
        again.kill()


def check_what_is_left(url: str, token: str, acknowledged: dict[str, list[int]], study: Study) -> None:
    """A participant comes back: nothing acknowledged is missing, and the game goes on."""
    client = joined(url, token)
    for game, moves in acknowledged.items():
        told, held = client.ask("GET", f"/api/games/{game}").json, study.store.game(game)
        # A move may have been made whose acknowledgement the kill cut off; none may be missing.
        assert list(held.moves[: len(moves)]) == moves
        assert len(held.moves) <= len(moves) + 1
        assert [tuple(cell) for cell in told["path"]] == list(replay(held.episode, held.moves, held.budget)[0])
    current = client.ask("GET", "/api/me").json["current"]
    if current is not None:
        turn = client.ask("GET", f"/api/games/{current}").json["turn"]
        assert client.move(current, turn, 0).status == 200, "it goes on where it was"
    client.close()
    study.store.close()
