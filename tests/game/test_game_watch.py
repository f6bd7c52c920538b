"""Watching agents: recording changes nothing, links are checked, the queue is short."""

import io
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from airloc.agents.registry import make_agent
from airloc.game import Episode, WatchService, watch_routes
from airloc.game.watch import record_search
from airloc.game.worker_pool import AgentCache, path_of, play_episode
from airloc.grid import MOVES
from game_server import Believer, Client, ThreadWorkerPool, noise_sampler, play_room, playing
from untrained import untrained_airloc

SAMPLER = noise_sampler(3)
EPISODE = Episode(1, (4, 0), (1, 3))
SEARCH = "area=noise_1&start=4,0&goal=1,3"


@pytest.mark.parametrize("name", ["random", "blind", "priv-local", "airloc"])
def test_a_recorded_agent_moves_as_it_does_unrecorded(name: str):
    agent = make_agent(name)
    record = record_search(agent, SAMPLER, EPISODE)
    played = play_episode(agent, SAMPLER, EPISODE)
    assert (record.path, record.found) == (path_of(played), bool(played.found[0]))
    assert len(record.steps) == len(record.path) - 1


def test_airloc_makes_the_move_of_the_highest_recorded_probability():
    record = record_search(untrained_airloc("airloc"), SAMPLER, EPISODE)
    moves = np.diff(np.array(record.path), axis=0)
    for step, move in zip(record.steps, moves, strict=True):
        assert step.belief is None
        assert sum(step.move_probabilities) == pytest.approx(1, abs=1e-3)
        assert MOVES[int(np.argmax(step.move_probabilities))].tolist() == move.tolist()


def test_forbidden_moves_have_probability_0():
    record = record_search(untrained_airloc("airloc-priv"), SAMPLER, EPISODE)
    below_or_left = record.steps[0].move_probabilities[4:8]
    assert below_or_left == [0, 0, 0, 0], "the start is the lower left corner"


def test_a_belief_is_recorded_cell_by_cell():
    record = record_search(Believer(SAMPLER.grid), SAMPLER, EPISODE)
    assert len(record.steps[0].belief) == 25
    assert sum(record.steps[0].belief) == pytest.approx(1, abs=1e-2)
    assert record.steps[-1].belief[8] > record.steps[0].belief[8]
    assert record.steps[0].move_probabilities is None


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    agents = AgentCache({"lawnmower": Believer(SAMPLER.grid)})
    routes = watch_routes(WatchService(SAMPLER, ThreadWorkerPool({"watch": SAMPLER}, agents)), ["lawnmower", "spiral"])
    with playing(play_room(), routers=[routes]) as url:
        client = Client(url)
        yield client
        client.close()


def test_searches_side_by_side_are_a_gif_with_one_frame_per_step(client: Client):
    answer = client.ask("GET", f"/api/watch/search.gif?{SEARCH}&agents=lawnmower,spiral")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/gif")
    image = Image.open(io.BytesIO(answer.body))
    longest = max(len(record_search(make_agent(name), SAMPLER, EPISODE).path) for name in ("lawnmower", "spiral"))
    assert image.n_frames == longest
    assert image.width > 2 * 256


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("area=none&start=4,0&goal=1,3&agent=spiral", 404),
        ("area=noise_1&start=4,0&goal=4,0&agent=spiral", 422),
        ("area=noise_1&start=5,0&goal=1,3&agent=spiral", 422),
        ("area=noise_1&start=-1,0&goal=1,3&agent=spiral", 422),
        ("area=noise_1&start=4,0&goal=1,3&agent=../../etc", 404),
        ("area=noise_1&start=4,0&goal=1,3&agent=", 422),
        ("area=noise_1&start=4,0&goal=1,3", 422),
    ],
)
def test_an_invalid_search_is_refused(client: Client, query: str, status: int):
    answer = client.ask("GET", f"/api/watch/search?{query}")
    assert answer.status == status
    assert set(answer.json) == {"error", "message"}


def test_spectators_beyond_the_queue_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("airloc.game.watch.MAX_QUEUE", 0)
    assert client.ask("GET", f"/api/watch/search?{SEARCH}&agent=spiral").status == 503
    assert client.ask("GET", "/api/watch").status == 200
