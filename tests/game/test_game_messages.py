"""During a game no response depends on the goal's cell or on a patch that was not visited.

The tests compare areas that agree in what the player may know, the image of the goal and the visited patches, and
differ in everything else: every byte of every response must be the same.
"""

import base64
import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest

from airloc.areas.area import SearchArea
from airloc.game import Episode, lobby, store
from airloc.grid import Cell, Grid
from airloc.task.cells import cut_patches
from airloc.task.sampling import EpisodeSampler
from game_server import Client, pixels, play_room, playing

GRID = Grid(5, 5)
START: Cell = (2, 2)
MOVES = (0, 1, 5, 3, 3)
VISITED: tuple[Cell, ...] = ((2, 2), (1, 2), (0, 3), (1, 2), (2, 3), (3, 4))


def sampler_with(goal: Cell, seed: int) -> EpisodeSampler:
    """Return a sampler whose visited patches and goal are always the same; everything else depends on the seed."""
    shared, own = np.random.default_rng(7), np.random.default_rng(seed)
    image = own.integers(0, 256, (*GRID.size, 3), dtype=np.uint8)
    for cell in (*dict.fromkeys(VISITED), goal):
        left, top, right, bottom = GRID.box(cell)
        image[top:bottom, left:right] = shared.integers(0, 256, (48, 48, 3), dtype=np.uint8)
    return EpisodeSampler.build([SearchArea(f"secret_{seed}", image)], GRID, 10, "per-distance", None)


@pytest.fixture
def counted_tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace random tokens by a count, because they are the only difference that two runs may have."""

    def restart() -> None:
        names = (f"token-{number:032d}" for number in itertools.count())
        for module in (lobby, store):
            monkeypatch.setattr(module.secrets, "token_urlsafe", lambda size: next(names))

    restart()
    return restart


def transcript(sampler: EpisodeSampler, goal: Cell) -> tuple[list[tuple[int, dict[str, str], bytes]], Client]:
    """Play the moves, request everything at every turn, and return all responses."""
    room = play_room(sampler, clock=lambda: 5.0)
    with playing(room) as url:
        client = Client(url)
        client.ask("GET", "/")
        client.ask("GET", "/api/me")
        player = client.cookie.split("=")[1]
        game = room.begin(player, Episode(0, START, goal)).id
        for turn, move in enumerate(MOVES):
            for path in ("", "/agents", "/area.png", "/moves", "/area", "/goal.png"):
                client.ask("GET", f"/api/games/{game}{path}")
            client.ask("GET", "/api/me")
            client.move(game, turn, move)
            client.move(game, turn, move)  # repeated
            client.move(game, turn + 3, move)  # out of turn
            client.move(game, turn, 9)
        client.ask("GET", f"/api/games/{game}")
        assert room.store.game(game).ending is None, "the game is in progress"
        client.close()
    return [(status, _without_port(headers), body) for status, headers, body in client.answers], client


def _without_port(headers: dict[str, str]) -> dict[str, str]:
    """Return headers without the port in the name of the cookie, which differs between two servers."""
    return {name: re.sub(r"airloc-\d+", "airloc", value) for name, value in headers.items()}


def test_every_response_is_the_same_byte_for_byte_wherever_the_goal_is(counted_tokens):
    transcripts = []
    for seed, goal in enumerate([(4, 0), (0, 0), (4, 4), (1, 1), (2, 4)]):
        counted_tokens()
        transcripts.append(transcript(sampler_with(goal, seed), goal)[0])
    assert len(transcripts[0]) == 2 + 11 * len(MOVES) + 1
    for other in transcripts[1:]:
        assert other == transcripts[0]


def test_responses_hold_the_visited_patches_and_no_others():
    goal = (4, 0)
    sampler = sampler_with(goal, 1)
    answers, client = transcript(sampler, goal)
    patches = cut_patches(sampler.image(0), GRID)
    said = b"".join(body for _, _, body in answers)
    for cell in GRID.cells():
        shown = base64.b64encode(patches[GRID.index(cell)].tobytes()) in said
        assert shown == (cell in VISITED or cell == goal), cell
        assert patches[GRID.index(cell)].tobytes() not in said
    states = [answer.json for answer in client.answers if b'"patches"' in answer.body]
    assert np.array_equal(pixels(states[-1]["goal"]), patches[GRID.index(goal)])
    assert [tuple(cell) for cell in states[-1]["path"]] == list(VISITED)
    assert not re.search(rb"secret_|goal_row|distance", said), "neither the area's name nor the distance"


def test_responses_of_one_kind_have_one_size():
    sizes: dict[str, set[int]] = {"state": set(), "move": set()}
    for seed, goal in enumerate([(4, 0), (3, 4)]):  # never found, and found by the last move
        room = play_room(sampler_with(goal, seed))
        with playing(room) as url:
            client = Client(url)
            client.ask("GET", "/api/me")
            game = room.begin(client.cookie.split("=")[1], Episode(0, START, goal)).id
            for turn, move in enumerate(MOVES):
                sizes["state"].add(len(client.ask("GET", f"/api/games/{game}").body))
                sizes["move"] |= {len(client.move(game, turn, move).body), len(client.move(game, turn, move).body)}
            sizes["state"].add(len(client.ask("GET", f"/api/games/{game}").body))
            sizes["state"].add(len(client.ask("POST", "/api/games", {}).body))
            client.close()
    assert [len(some) for some in sizes.values()] == [1, 1], sizes


def test_a_find_and_a_miss_run_the_same_statements():
    statements = []
    for goal in ((1, 2), (4, 4)):  # the first move finds it, or does not
        room = play_room(sampler_with(goal, 3))
        game = room.begin("player", Episode(0, START, goal))
        ran: list[str] = []
        room.store.db.set_trace_callback(ran.append)
        after = room.move(game.id, "player", 0, 0)
        assert (after.ending == "found") == (goal == (1, 2))
        statements.append([re.sub(r"'[^']*'|NULL|\b\d[\d.e+-]*", "?", line) for line in ran])
    assert statements[0] == statements[1]


def test_the_reveal_is_refused_during_a_game():
    room = play_room()
    with playing(room) as url:
        client = Client(url)
        game = client.begin()["game"]
        for path in ("agents", "area.png"):
            answer = client.ask("GET", f"/api/games/{game}/{path}")
            assert (answer.status, answer.json["error"]) == (409, "in-progress")
        client.close()
