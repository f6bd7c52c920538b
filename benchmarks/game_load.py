"""200 people play at once, about a move per second each: the latency of moves and endings, and whether a move is lost.

`airloc study serve` runs in a process of its own on a study in a file. The players are loopback connections that open
their links within five seconds, give consent, play game after game, and wait for every ending as the page does: the
last move reveals the goal, then the page loads the whole area and the player's progress. They look at it for two
seconds and ask for the path of the agent meanwhile. Halfway through, the study is copied. The reference is the latency
of a small static file.
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
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from airloc.areas.area import SearchArea
from airloc.game import Participant, Study, StudyConfig, create_study, draw_games
from airloc.grid import Grid
from airloc.web import bind

PLAYERS, SECONDS, AREAS = 200, 25.0, 60
ARRIVAL_SECONDS = 5.0
"""Time within which all players open their links."""
LOOK_SECONDS = 2.0
"""Time that a player looks at an ending."""


@dataclass
class Load:
    """Measurements of one run."""

    moves: list[float] = field(default_factory=list)
    """Latency of every move in seconds."""
    files: list[float] = field(default_factory=list)
    """Latency of every request for a small file in seconds."""
    acknowledged: dict[str, list[int]] = field(default_factory=dict)
    endings: list[float] = field(default_factory=list)
    """Time in seconds from every last move to everything that the page shows of the ending, except agents."""
    agents: list[float] = field(default_factory=list)
    """Time in seconds until the agents' paths were there, of the endings whose player saw them."""
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    """Acknowledged moves that are missing from the file afterwards."""
    lost_in_copy: int = 0
    """Moves that were acknowledged before the study was copied and are missing from the copy."""


class Connection:
    """A keep-alive connection with its cookie."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self._port = port
        self.cookie = cookie

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request; return status and body."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n{self.cookie}"
        self._writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if "set-cookie" in headers:
            self.cookie = f"Cookie: {headers['set-cookie'].split(';')[0]}\r\n"
        return int(lines[0].split()[1]), await self._reader.readexactly(int(headers["content-length"]))


async def look_at_ending(connection: Connection, game: str, began: float, load: Load) -> None:
    """Load the ending of a game, and ask for the agents' paths as often as the page does until it is time to go on."""
    for path in (f"/api/games/{game}/area.png", "/api/me"):
        status, body = await connection.ask("GET", path)
        if status != 200:
            load.errors.append(f"{path}: {status} {body[:80]!r}")
    load.endings.append(time.perf_counter() - began)
    until, pause, status = time.perf_counter() + LOOK_SECONDS, 0.3, 202
    while status == 202 and time.perf_counter() + pause < until:
        await asyncio.sleep(pause)
        status, _ = await connection.ask("GET", f"/api/games/{game}/agents")
        pause *= 1.5
    if status == 200:
        load.agents.append(time.perf_counter() - began)
    await asyncio.sleep(max(0.0, until - time.perf_counter()))


async def play(port: int, person: Participant, load: Load, until: float) -> None:
    """Play like a person, a move after 0.5 to 1.5 seconds."""
    dice = random.Random(person.number)
    await asyncio.sleep(dice.uniform(0, ARRIVAL_SECONDS))
    connection = Connection(port)
    await connection.open()
    await connection.ask("GET", f"/join/{person.token}")
    await connection.ask("POST", "/api/consent", {})
    await connection.ask("POST", "/api/practised", {})
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
            if ending is None:
                await asyncio.sleep(max(0.0, dice.uniform(0.5, 1.5) - (time.perf_counter() - began)))
            else:
                await look_at_ending(connection, game, began, load)


async def fetch(port: int, load: Load, count: int) -> None:
    """Request a small static file again and again, as a reference."""
    connection = Connection(port)
    await connection.open()
    for _ in range(count):
        began = time.perf_counter()
        await connection.ask("GET", "/static/icon.svg")
        load.files.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)


def measure(players: int = PLAYERS, seconds: float = SECONDS) -> Load:
    """Serve, play, kill the server, and check that every acknowledged move is in the file."""
    load = Load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        study = make_study(path, players)
        with bind("127.0.0.1", 0) as bound:
            port = bound.getsockname()[1]
        command = [sys.executable, "-m", "airloc.cli.main", "study", "serve", str(path), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            asyncio.run(_crowd(port, study, load, seconds))
        finally:
            server.kill()
            server.wait()
        load.lost = _count_missing(study, load.acknowledged)
        study.store.close()
    return load


def _count_missing(study: Study, acknowledged: dict[str, list[int]]) -> int:
    """Return how many moves a study does not hold."""
    missing = 0
    for game, moves in acknowledged.items():
        held = study.store.game(game)
        missing += len(moves) if held is None else sum(a != b for a, b in zip_longest(moves, held.moves[: len(moves)]))
    return missing


async def _copy(study: Study, load: Load, seconds: float) -> None:
    """Copy the study after some seconds."""
    await asyncio.sleep(seconds)
    acknowledged = {game: list(moves) for game, moves in load.acknowledged.items()}
    copy = study.path.with_name("copy.db")
    await asyncio.to_thread(study.backup, copy)
    load.lost_in_copy = _count_missing(Study(copy), acknowledged)


async def _crowd(port: int, study: Study, load: Load, seconds: float) -> None:
    while True:
        try:
            await fetch(port, load, 200)
            break
        except OSError:
            await asyncio.sleep(0.1)
    until = time.monotonic() + seconds
    players = [play(port, person, load, until) for person in study.participants()]
    await asyncio.gather(_copy(study, load, seconds / 2), *players)


def make_study(path: Path, players: int) -> Study:
    grid, rng = Grid(5, 5), np.random.default_rng(0)
    areas = [SearchArea(f"{n}", rng.integers(0, 256, (*grid.size, 3), dtype=np.uint8)) for n in range(AREAS + 2)]
    games = draw_games([area.name for area in areas[:AREAS]], grid, players, 2, seed=0)
    return create_study(path, StudyConfig(), areas[:AREAS], areas[AREAS:], games)


def percentile(seconds: list[float], share: float) -> float:
    """Return a percentile in milliseconds."""
    return 1000 * float(np.percentile(seconds, share))


def run() -> list[tuple[str, str, str, str]]:
    load = measure()
    median = statistics.median(load.moves)
    ratio = f"{median / statistics.median(load.files):.1f} x a small file (medians)"
    lost = f"{load.lost} of {len(load.moves)}, {len(load.errors)} errors"
    return [
        (f"latency of a move with {PLAYERS} players, ms, median", f"{1000 * median:.1f}", "", ratio),
        (
            f"latency of a move with {PLAYERS} players, ms, 99th percentile",
            f"{percentile(load.moves, 99):.1f}",
            "50",
            "",
        ),
        (f"latency of a move with {PLAYERS} players, ms, maximum", f"{1000 * max(load.moves):.1f}", "", ""),
        (
            f"time to an ending with {PLAYERS} players, ms, median",
            f"{percentile(load.endings, 50):.1f}",
            "",
            f"{len(load.endings)} games finished",
        ),
        (
            f"time to an ending with {PLAYERS} players, ms, 99th percentile",
            f"{percentile(load.endings, 99):.1f}",
            "200",
            f"{len(load.agents)} of them with the agent's path within {LOOK_SECONDS:.0f} s",
        ),
        ("acknowledged moves lost", lost, "0", f"{load.lost_in_copy} in a copy"),
    ]
