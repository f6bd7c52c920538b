"""Helpers for tests of the game: a real server in a thread, an HTTP client, small studies, moves in the browser."""

import asyncio
import base64
import json
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fastapi import APIRouter, FastAPI

from airloc import web
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.game import (
    LOOPBACK_HOSTS,
    Baselines,
    Game,
    Limits,
    PlayLobby,
    PlayRoom,
    Store,
    Study,
    StudyConfig,
    StudyLobby,
    create_study,
    draw_games,
    make_app,
    study_routes,
)
from airloc.game.worker_pool import AgentCache
from airloc.grid import MOVES, Cell, Grid
from airloc.task.sampling import EpisodeSampler
from browser_pages import OPEN_PAGES

LETTERS = ("ArrowUp", "e", "ArrowRight", "c", "ArrowDown", "z", "ArrowLeft", "q")
"""Keys of the eight moves."""

NO_LIMITS = Limits(player_rate=1e6, player_burst=10**6, visitor_rate=1e6, visitor_burst=10**6)


class ThreadWorkerPool:
    """Runs jobs in a thread of this process, which saves the start of another one."""

    def __init__(self, samplers: Mapping[str, EpisodeSampler], agents: AgentCache | None = None) -> None:
        self._samplers, self._agents = samplers, agents or AgentCache()
        self._executor = ThreadPoolExecutor(1)

    async def run(self, job, sampler: str, *args: Any, **kwargs: Any) -> Any:
        future = self._executor.submit(job, self._samplers[sampler], self._agents, *args, **kwargs)
        return await asyncio.wrap_future(future)


def noise_areas(count: int, grid: Grid, seed: int = 0) -> list[SearchArea]:
    """Return areas of noise; no two patches are alike."""
    rng = np.random.default_rng(seed)
    return [SearchArea(f"noise_{n}", rng.integers(0, 256, (*grid.size, 3), dtype=np.uint8)) for n in range(count)]


def noise_sampler(count: int = 4, grid: str = "5x5", budget: int | None = None) -> EpisodeSampler:
    shape = Grid.parse(grid)
    return EpisodeSampler.build(noise_areas(count, shape), shape, budget, "per-distance", None)


def play_room(
    sampler: EpisodeSampler | None = None,
    seconds: float = 60.0,
    agents: Sequence[str] = ("lawnmower",),
    store: Store | None = None,
    **options: Any,
) -> PlayRoom:
    sampler = sampler or noise_sampler()
    baselines = Baselines(agents, ThreadWorkerPool({"play": sampler}), "play")
    return PlayRoom(sampler, store or Store(), seconds, baselines, **options)


class State(NamedTuple):
    """A state with a belief."""

    inner: object
    belief: torch.Tensor


class Believer:
    """Moves as the lawnmower and puts more belief on cell 8 with every move."""

    name = "lawnmower"

    def __init__(self, grid: Grid) -> None:
        self._agent, self._count = make_agent("lawnmower"), grid.count

    def reset(self, episodes):
        return State(self._agent.reset(episodes), torch.full((len(episodes.goal), self._count), 1 / self._count))

    def act(self, observation, state):
        action, inner = self._agent.act(observation, state.inner)
        belief = state.belief * 0.7
        belief[:, 8] += 0.3
        return action, State(inner, belief)


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve an application on loopback; yield its URL."""
    with web.bind("127.0.0.1", 0) as bound:
        server = web.make_server(app, max_connections=2000)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield web.url_of(bound)
        finally:
            OPEN_PAGES.close()
            server.should_exit = True
            thread.join(timeout=10)


@contextmanager
def playing(room: PlayRoom, limits: Limits = NO_LIMITS, routers: Sequence[APIRouter] = ()) -> Iterator[str]:
    """Serve free play in a room; yield the URL."""
    with running(make_app(PlayLobby(room), limits=limits, hosts=LOOPBACK_HOSTS, routers=routers)) as url:
        yield url


class Answer(NamedTuple):
    """A response."""

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
        self.answers: list[Answer] = []

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a request; `body` is sent as JSON, bytes are sent as they are."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        default = {"Content-Type": "application/json", **({"Cookie": self.cookie} if self.cookie else {})}
        self._http.request(method, path, content, {**default, **(headers or {})})
        response = self._http.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].split(";")[0]
        self.answers.append(answer)
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
    """Decode a patch of a response."""
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(side, side, 3)


def cell_after(position: Cell, move: int) -> Cell:
    return position[0] + int(MOVES[move][0]), position[1] + int(MOVES[move][1])


def move_towards(position: Cell, goal: Cell) -> int:
    """Return a move of a shortest path inside the area."""
    return MOVES.tolist().index([int(np.sign(goal[0] - position[0])), int(np.sign(goal[1] - position[1]))])


def move_away(position: Cell, goal: Cell, grid: Grid) -> int:
    """Return a move to a cell inside the area that is not the goal."""
    return next(m for m in range(8) if grid.contains(to := cell_after(position, m)) and to != goal)


def small_study(
    path: Path, *, people: int = 2, each: int = 1, areas: int = 12, grid: str = "3x3", seconds: float = 60.0
) -> Study:
    """Create a study on areas of noise."""
    shape = Grid.parse(grid)
    shown = noise_areas(areas, shape)
    games = draw_games([area.name for area in shown], shape, people, each, seed=0)
    config = StudyConfig(grid, shape.default_budget, seconds, 0)
    return create_study(path, config, shown, noise_areas(2, shape, seed=99), games)


def lobby_of(study: Study, agents: Sequence[str] = ()) -> StudyLobby:
    """Open the lobby of a study with agents in this process."""
    samplers = study.samplers()
    return StudyLobby.open(study, samplers, ThreadWorkerPool(samplers), agents)


@contextmanager
def serving_study(study: Study, agents: Sequence[str] = ()) -> Iterator[tuple[str, StudyLobby]]:
    """Serve a study; yield the URL and the lobby."""
    lobby = lobby_of(study, agents)
    with running(make_app(lobby, limits=NO_LIMITS, routers=[study_routes(lobby)])) as url:
        yield url, lobby


def joined(url: str, token: str) -> Client:
    """Return the client of a participant who has opened the personal link."""
    client = Client(url)
    assert client.ask("GET", f"/join/{token}").status == 303
    return client


def take_part(study: Study, lobby: StudyLobby, seed: int = 0, skill: float = 0.5) -> None:
    """Let every participant play all games, some better and some worse."""
    dice = random.Random(seed)
    for person in study.participants():
        lobby.give_consent(person.token, dice.randint(14, 42), dice.choice(["man", "woman", None]))
        lobby.end_practice(person.token)
        while lobby.stage(person.token) == "games":
            room, game = lobby.begin(person.token, recorded=True)
            while game.ending is None:
                move = move_towards(game.position, game.episode.goal) if dice.random() < skill else dice.randrange(8)
                game = room.move(game.id, person.token, game.turn, move)


def game_of(page: Any, room: PlayRoom) -> Game:
    """Return the latest game of the player in the browser, as the server stores it."""
    player = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"].startswith("airloc"))
    game = room.store.latest(player)
    assert game is not None
    return game


def start_game(page: Any) -> None:
    """Begin a game on the page."""
    page.click("#start")
    page.wait_for_selector("#game:not([hidden])")


def click_move(page: Any, room: PlayRoom, move: int, tap: bool = False) -> None:
    """Click the cell of a move, and wait until the server has made it and the page shows it."""
    game = game_of(page, room)
    cell = page.locator("#board .cell").nth(room.sampler.grid.index(cell_after(game.position, move)))
    cell.tap() if tap else cell.click()
    wait_for_turn(page, room, game.turn + 1)


def wait_for_turn(page: Any, room: PlayRoom, turn: int) -> None:
    """Wait until the server has reached a turn and the page shows it, or the end of the game."""
    until = time.monotonic() + 10
    while game_of(page, room).turn < turn:
        assert time.monotonic() < until, "the move did not arrive"
        time.sleep(0.01)
    shown = """turn => document.querySelector("#ending:not([hidden])")
        || [...document.querySelectorAll("#board .here b")].some(number => number.textContent === turn)"""
    page.wait_for_function(shown, arg=str(turn))


def win(page: Any, room: PlayRoom, keys: Sequence[str] = (), **options: Any) -> int:
    """Click along a shortest path to the end, or press the keys of its moves; return the number of moves."""
    moves = 0
    while (game := game_of(page, room)).ending is None:
        move = move_towards(game.position, game.episode.goal)
        if keys:
            page.keyboard.press(keys[move])
            wait_for_turn(page, room, game.turn + 1)
        else:
            click_move(page, room, move, **options)
        moves += 1
    page.wait_for_selector("#ending:not([hidden])")
    return moves
