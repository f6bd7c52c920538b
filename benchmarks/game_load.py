"""Two hundred people play at once, each a move a second: how long a move's answer takes, and whether any is lost.

A study in a file, served by `airloc study serve` in a process of its own; the players are connections on loopback that
open their link, agree, play one game after the other and look at every ending, where the agent's path is computed. The
floor is the same number of requests for a small file of the page.
"""

import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from airloc.areas.area import SearchArea
from airloc.game.app import bind
from airloc.game.study import Person, Study, StudyConfig, create_study, draw_games
from airloc.grid import Grid

PLAYERS, SECONDS, AREAS = 200, 25.0, 60


@dataclass
class Load:
    """What was measured."""

    moves: list[float] = field(default_factory=list)
    """Seconds of every move's answer."""
    files: list[float] = field(default_factory=list)
    """Seconds of every small file's answer."""
    acknowledged: dict[str, list[int]] = field(default_factory=dict)
    endings: int = 0
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    """Acknowledged moves that are not in the file afterwards."""


class Connection:
    """A client's connection, kept open, with its cookie."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self._port = port
        self.cookie = cookie

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Ask; gives the status and the body."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n{self.cookie}"
        self._writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if "set-cookie" in headers:
            self.cookie = f"Cookie: {headers['set-cookie'].split(';')[0]}\r\n"
        return int(lines[0].split()[1]), await self._reader.readexactly(int(headers["content-length"]))


async def look(port: int, cookie: str, game: str, load: Load) -> None:
    """Look at the ending of a game while the next one is played already."""
    connection = Connection(port, cookie)
    await connection.open()
    await connection.ask("GET", f"/api/games/{game}/reveal")
    await connection.ask("GET", f"/api/games/{game}/area.png")
    load.endings += 1


async def play(port: int, person: Person, load: Load, until: float, looking: asyncio.TaskGroup) -> None:
    """Play like a person, a move a second."""
    dice = random.Random(person.number)
    connection = Connection(port)
    await connection.open()
    await connection.ask("GET", f"/join/{person.token}")
    await connection.ask("POST", "/api/consent", {})
    await connection.ask("POST", "/api/practised", {})
    await asyncio.sleep(dice.random())
    while time.monotonic() < until:
        status, body = await connection.ask("POST", "/api/games", {"kind": "recorded"})
        if status != 201:
            load.errors.append(f"begin: {status} {body[:80]!r}")
            return
        game, ending, turn = json.loads(body)["game"], None, 0
        moves = load.acknowledged.setdefault(game, [])
        while ending is None and time.monotonic() < until:
            move, began = dice.randrange(8), time.perf_counter()
            status, body = await connection.ask("POST", f"/api/games/{game}/moves", {"turn": turn, "move": move})
            load.moves.append(time.perf_counter() - began)
            if status != 200:
                load.errors.append(f"move: {status} {body[:80]!r}")
                return
            moves.append(move)
            ending, turn = json.loads(body)["ending"], turn + 1
            await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))
        if ending is not None:
            looking.create_task(look(port, connection.cookie, game, load))


async def fetch(port: int, load: Load, count: int) -> None:
    """The floor: a small file, one request after the other at the same pace."""
    connection = Connection(port)
    await connection.open()
    for _ in range(count):
        began = time.perf_counter()
        await connection.ask("GET", "/static/icon.svg")
        load.files.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)


def measure(players: int = PLAYERS, seconds: float = SECONDS) -> Load:
    """Serve, play, kill the server, and look whether everything is there."""
    load = Load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        study = make_study(path, players)
        with bind("127.0.0.1", 0, public=False) as taken:
            port = taken.getsockname()[1]
        command = [sys.execuroom, "-m", "airloc.cli.main", "study", "serve", str(path), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            asyncio.run(_crowd(port, study.participants(), load, seconds))
        finally:
            server.kill()
            server.wait()
        for game, moves in load.acknowledged.items():
            held = study.store.game(game)
            load.lost += len(moves) if held is None else sum(a != b for a, b in zip(moves, held.moves, strict=True))
        study.store.close()
    return load


async def _crowd(port: int, people: list[Person], load: Load, seconds: float) -> None:
    while True:
        try:
            await fetch(port, load, 200)
            break
        except OSError:
            await asyncio.sleep(0.1)
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as looking:
        await asyncio.gather(*(play(port, person, load, until, looking) for person in people))


def make_study(path: Path, players: int) -> Study:
    grid, rng = Grid(5, 5), np.random.default_rng(0)
    areas = [SearchArea(f"{n}", rng.integers(0, 256, (*grid.size, 3), dtype=np.uint8)) for n in range(AREAS + 2)]
    games = draw_games([area.name for area in areas[:AREAS]], grid, players, 2, seed=0)
    return create_study(path, StudyConfig(), areas[:AREAS], areas[AREAS:], games)


def percentile(seconds: list[float], share: float) -> float:
    """A percentile in milliseconds."""
    return 1000 * float(np.percentile(seconds, share))


def run() -> list[tuple[str, str, str, str]]:
    load = measure()
    median = statistics.median(load.moves)
    ratio = f"{median / statistics.median(load.files):.1f} x a small file (medians)"
    lost = f"{load.lost} of {len(load.moves)}, {len(load.errors)} errors"
    return [
        (f"a move of {PLAYERS} players, ms, 50 %", f"{1000 * median:.1f}", "", ratio),
        (f"a move of {PLAYERS} players, ms, 99 %", f"{percentile(load.moves, 99):.1f}", "50", ""),
        (f"a move of {PLAYERS} players, ms, longest", f"{1000 * max(load.moves):.1f}", "", ""),
        ("moves lost", lost, "0", f"{load.endings} games ended"),
    ]
