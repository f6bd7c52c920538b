"""A real server for tests of the game, in a thread of this process, and a plain HTTP client."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter, FastAPI

from airloc.areas.area import SearchArea
from airloc.game.app import listen, make_app, make_server
from airloc.game.baselines import Baselines
from airloc.game.lobby import FreeTable, PlayDesk
from airloc.game.middleware import Limits
from airloc.game.referee import Referee
from airloc.game.store import Store
from airloc.game.worker_pool import ThreadWorkerPool
from airloc.grid import MOVES, Cell, Grid
from airloc.task.world import World
from airloc.web import url_of

GUESTS = ExitStack()
"""Closes the pages that are open: they leave before their server does, or a last request meets a closed door."""

GENEROUS = Limits(rate=1e6, burst=10**6, stranger_rate=1e6, stranger_burst=10**6)


def noise_areas(count: int, grid: Grid, seed: int = 0) -> list[SearchArea]:
    """Areas of noise; no two patches are alike."""
    rng = np.random.default_rng(seed)
    return [SearchArea(f"noise_{n}", rng.integers(0, 256, (*grid.size, 3), dtype=np.uint8)) for n in range(count)]


def noise_world(count: int = 4, grid: str = "5x5", budget: int | None = None) -> World:
    shape = Grid.parse(grid)
    return World.build(noise_areas(count, shape), shape, budget, "per-distance", None)


def free_table(
    world: World | None = None, seconds: float = 60.0, agents: Sequence[str] = ("lawnmower",), **more: Any
) -> FreeTable:
    world = world or noise_world()
    worker_pool = ThreadWorkerPool({"play": world})
    return FreeTable(Referee(world, Store(), seconds, **more), Baselines(agents, worker_pool, "play"))


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve an application on loopback; gives its address."""
    with listen("127.0.0.1", 0, public=False) as taken:
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield url_of(taken)
        finally:
            GUESTS.close()
            server.should_exit = True
            thread.join(timeout=10)


@contextmanager
def playing(table: FreeTable, limits: Limits = GENEROUS, more: Sequence[APIRouter] = ()) -> Iterator[str]:
    """Serve free play at a table."""
    with running(make_app(PlayDesk(table), limits=limits, hosts=("127.0.0.1", "localhost"), more=more)) as url:
        yield url


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection that keeps its cookie."""

    def __init__(self, url: str) -> None:
        self._http = HTTPConnection(url.split("/")[2], timeout=20)
        self.cookie: str | None = None
        self.heard: list[Answer] = []

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Ask; `body` goes as JSON, bytes go as they are."""
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json", **({"Cookie": self.cookie} if self.cookie else {})}
        self._http.request(method, path, sent, {**given, **(headers or {})})
        response = self._http.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].split(";")[0]
        self.heard.append(answer)
        return answer

    def begin(self, kind: str = "free") -> Any:
        answer = self.ask("POST", "/api/games", {"kind": kind})
        assert answer.status == 201, answer
        return answer.json

    def move(self, game: str, turn: Any, move: Any) -> Answer:
        return self.ask("POST", f"/api/games/{game}/moves", {"turn": turn, "move": move})

    def close(self) -> None:
        self._http.close()


def pixels(text: str, side: int = 48) -> np.ndarray:
    """A patch as it came, as an array."""
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(side, side, 3)


def move_towards(position: Cell, goal: Cell) -> int:
    """A move of a shortest path that stays inside."""
    return MOVES.tolist().index([int(np.sign(goal[0] - position[0])), int(np.sign(goal[1] - position[1]))])


def move_away(position: Cell, goal: Cell, grid: Grid) -> int:
    """A move to a cell inside that is not the goal."""
    for number, (down, right) in enumerate(MOVES.tolist()):
        to = (position[0] + down, position[1] + right)
        if grid.contains(to) and to != goal:
            return number
    raise AssertionError("there is always another cell")
