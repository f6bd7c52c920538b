"""Whatever clients send, a game on the server equals the rules replayed over the acknowledged moves."""

import asyncio
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.game import Baselines
from airloc.game.worker_pool import AgentPath
from airloc.grid import MOVES
from airloc.task import rules
from game_server import Client, move_towards, noise_sampler, play_room, playing

ROOM = play_room(noise_sampler(3, "3x4", budget=5))

ACTIONS = st.one_of(
    st.tuples(st.just("move"), st.integers(0, 7)),
    st.tuples(st.just("turn"), st.integers(-2, 9), st.integers(0, 7)),
    st.tuples(
        st.just("body"),
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [
                    {},
                    [],
                    None,
                    {"turn": 0},
                    {"move": 1},
                    {"turn": "0", "move": 1},
                    {"turn": 0, "move": 8},
                    {"turn": 0, "move": -1},
                    {"turn": 0.0, "move": 1},
                    {"turn": True, "move": 1},
                    {"turn": 0, "move": None},
                    {"turn": 0, "move": 1, "goal": [0, 0]},
                    {"turn": 10**30, "move": 1},
                ]
            ),
        ),
    ),
    st.tuples(st.just("huge"), st.integers(2100, 200_000)),
    st.tuples(st.just("stranger"), st.integers(0, 7)),
    st.tuples(
        st.just("peek"),
        st.sampled_from(["agents", "area.png", "goal", "moves", "../games", "%2e%2e/x", "\u0394"]),
    ),
    st.tuples(st.just("look")),
    st.tuples(st.just("leave")),
    st.tuples(st.just("method"), st.sampled_from(["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])),
)


@dataclass
class Model:
    """The same game, kept by the rules alone."""

    position: np.ndarray
    goal: np.ndarray
    budget: int
    moves: list[int] = field(default_factory=list)
    over: bool = False

    def move(self, action: int) -> None:
        out = rules.move(
            self.position, np.array(len(self.moves)), self.goal, np.array(action), moves=MOVES, budget=self.budget
        )
        self.moves.append(action)
        self.position, self.over = out.position, bool(out.found | out.truncated)


@pytest.fixture(scope="module")
def url():
    with playing(ROOM) as url:
        yield url


@settings(max_examples=40, deadline=None)
@given(actions=st.lists(ACTIONS, min_size=1, max_size=25))
def test_hostile_clients_cannot_make_the_game_differ_from_the_rules(url: str, actions: list[tuple]):
    client, stranger = Client(url), Client(url)
    game = client.begin()["game"]
    stranger.begin()
    held = ROOM.store.game(game)
    model = Model(np.array(held.episode.start), np.array(held.episode.goal), held.budget)
    for kind, *details in actions:
        answer = send(kind, details, client, stranger, game, model)
        assert answer.status < 500
        now = ROOM.store.game(game)
        assert list(now.moves) == model.moves
        assert now.position == tuple(model.position.tolist())
        assert (now.ending is not None) == model.over
    client.close()
    stranger.close()


def send(kind: str, details: list, client: Client, stranger: Client, game: str, model: Model):
    """Send one request, apply it to the model, and check the status."""
    where, turn = f"/api/games/{game}", len(model.moves)
    if kind in ("move", "turn"):
        claimed, action = (turn, *details) if kind == "move" else details
        answer = client.move(game, claimed, action)
        legal = claimed == turn and not model.over
        assert answer.status == (200 if legal else 422 if claimed < 0 else 409)
        if legal:
            model.move(action)
            assert answer.json["position"] == model.position.tolist()
            assert answer.json["turn"] == len(model.moves)
    elif kind == "body":
        answer = client.ask("POST", f"{where}/moves", details[0])
        assert answer.status == 422
    elif kind == "huge":
        answer = client.ask("POST", f"{where}/moves", b" " * details[0])
        assert answer.status == 413
        client.close()
    elif kind == "stranger":
        answer = stranger.move(game, turn, details[0])
        assert answer.status == 404
    elif kind == "peek":
        path = f"{where}/{details[0]}".encode().decode("ascii", "ignore") if details[0].isascii() else f"{where}/%CE%94"
        answer = client.ask("GET", path)
        if not model.over:
            assert 400 <= answer.status < 500
    elif kind == "leave":
        answer = client.ask("POST", f"{where}/leave")
        assert (answer.status, stranger.ask("POST", f"{where}/leave").status) == (204, 404)
    elif kind == "look":
        answer = client.ask("GET", where)
        assert answer.status == 200
        assert answer.json["path"][-1] == model.position.tolist()
    else:
        answer = client.ask(details[0], f"{where}/moves")
        assert answer.status in (404, 405)
    return answer


def test_of_moves_sent_at_the_same_time_one_is_made(url: str):
    for _ in range(10):
        first = Client(url)
        game = first.begin()["game"]
        clients = [first, *(Client(url) for _ in range(5))]
        for client in clients:
            client.cookie = first.cookie
        gate, answers = threading.Barrier(len(clients)), []

        def shoot(client: Client, gate=gate, game=game, answers=answers) -> None:
            gate.wait()
            answers.append(client.move(game, 0, 0))

        threads = [threading.Thread(target=shoot, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409, 409]
        assert ROOM.store.game(game).moves == (0,)
        for client in clients:
            client.close()


def test_any_number_of_players_play_at_once(url: str):
    clients = [Client(url) for _ in range(40)]
    games = [client.begin()["game"] for client in clients]
    for turn in range(3):
        for client, game in zip(clients, games, strict=True):
            client.move(game, turn, 2 * turn)
    for client, game in zip(clients, games, strict=True):
        held = ROOM.store.game(game)
        assert list(held.moves) == [0, 2, 4][: held.turn]
        assert held.turn == 3 or held.ending == "found"
        client.close()


class StuckWorkerPool:
    """A worker pool whose agents do not finish before they are released."""

    def __init__(self) -> None:
        self.release = threading.Event()

    async def run(self, job, sampler: str, *args, **kwargs):
        while not self.release.is_set():
            await asyncio.sleep(0.01)
        return (AgentPath("spiral", ((0, 0), (0, 1)), True),)


def test_the_last_move_reveals_everything_but_the_agents_for_whom_nobody_waits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("airloc.game.routes._AGENTS_SECONDS", 0.05)
    room, pool = play_room(noise_sampler(2, "3x3")), StuckWorkerPool()
    room.baselines = Baselines(["spiral"], pool, "play")
    with playing(room) as url:
        client = Client(url)
        state, answer = client.begin(), None
        where, episode = f"/api/games/{state['game']}", room.store.game(state["game"]).episode
        assert state["reveal"] is None
        while answer is None or answer["reveal"] is None:
            game = room.store.game(state["game"])
            answer = client.move(game.id, game.turn, move_towards(game.position, game.episode.goal)).json
        reveal = answer["reveal"]
        assert (reveal["ending"], reveal["agents"]) == ("found", None)
        assert (tuple(reveal["start"]), tuple(reveal["goal"])) == (episode.start, episode.goal)
        assert len(reveal["path"]) == reveal["distance"] + 1
        assert client.ask("GET", reveal["image"]).body.startswith(b"\x89PNG")
        assert client.ask("GET", where).json["reveal"] == reveal, "also for a page that reloads"
        waiting = client.ask("GET", f"{where}/agents")
        assert (waiting.status, waiting.json) == (202, {"agents": None})
        pool.release.set()
        monkeypatch.setattr("airloc.game.routes._AGENTS_SECONDS", 5.0)
        done = client.ask("GET", f"{where}/agents")
        path = {"agent": "spiral", "path": [[0, 0], [0, 1]], "found": True}
        assert (done.status, done.json) == (200, {"agents": [path]})
        client.close()
