"""Rooms: games follow the rules of the task, and the clock is the server's."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.errors import AirlocError
from airloc.game import Episode, RefusedError, Store
from airloc.task.batch import BatchEnv
from game_server import noise_sampler, play_room

EPISODE = Episode(1, (0, 0), (4, 4))


def test_a_game_plays_in_step_with_the_tensor_environment():
    sampler, rng = noise_sampler(3, "4x5", budget=6), np.random.default_rng(0)
    env = BatchEnv(sampler.cells, sampler.budget)
    room = play_room(sampler)
    for _ in range(60):
        area, start, goal = sampler.sample(rng, 1)
        episode = Episode(int(area[0]), tuple(start[0].tolist()), tuple(goal[0].tolist()))
        game = room.begin("p", episode)
        env.reset(*(torch.from_numpy(part) for part in (area, start, goal)))
        while game.ending is None:
            move = int(rng.integers(8))
            game = room.move(game.id, "p", game.turn, move)
            step = env.step(torch.tensor([move]))
            assert list(game.position) == step.observation.position[0].tolist()
            assert (game.ending == "found", game.ending is not None) == (bool(step.found[0]), bool(step.ended[0]))
            patch = sampler.patches(np.array(episode.area), np.array(game.position))
            assert np.array_equal(patch, step.observation.patch[0].numpy())


def test_the_clock_stops_while_the_server_is_down(tmp_path: Path):
    now, sampler = [100.0], noise_sampler()
    room = play_room(sampler, store=Store(tmp_path / "g.db"), clock=lambda: now[0])
    game = room.begin("p", EPISODE)
    now[0] += 20
    room.move(game.id, "p", 0, 3)
    now[0] += 15  # no move, so not recorded
    assert room.seconds_left(room.game(game.id, "p")) == 25
    room.store.close()
    now[0] += 1000
    restarted = play_room(sampler, store=Store(tmp_path / "g.db"), clock=lambda: now[0])
    assert restarted.seconds_left(restarted.game(game.id, "p")) == 40, "continues from the last move"
    now[0] += 39.9
    assert restarted.game(game.id, "p").ending is None
    now[0] += 0.2
    with pytest.raises(RefusedError) as caught:
        restarted.move(game.id, "p", 1, 3)
    assert caught.value.reason == "over"
    assert (restarted.game(game.id, "p").ending, restarted.game(game.id, "p").moves) == ("time", (3,))


def test_the_clock_stops_while_nothing_can_be_recorded(tmp_path: Path):
    now = [100.0]
    room = play_room(store=Store(tmp_path / "g.db"), clock=lambda: now[0])
    game = room.begin("p", EPISODE)
    now[0] += 20
    room.move(game.id, "p", 0, 3)
    room.store.db.execute("PRAGMA query_only = ON")  # every write fails, as on a full disk
    now[0] += 50
    with pytest.raises(sqlite3.Error):
        room.game(game.id, "p")
    now[0] += 1000
    assert room.seconds_left(room.game(game.id, "p")) == 40, "continues from the last move"
    with pytest.raises(sqlite3.Error):
        room.move(game.id, "p", 1, 3)
    room.store.db.execute("PRAGMA query_only = OFF")
    now[0] += 39
    assert room.move(game.id, "p", 1, 4).moves == (3, 4)


def test_out_of_time_page_closed_and_connection_lost_are_told_apart():
    now = [0.0]
    room = play_room(seconds=30.0, clock=lambda: now[0])
    shown, closed, opened_again, silent, deleted = (room.begin("p", EPISODE).id for _ in range(5))
    room.delete(deleted)
    now[0] = 7.0
    room.move(silent, "p", 0, 3)
    room.leave(closed, "p")
    room.leave(opened_again, "p")
    room.game(opened_again, "p")
    now[0] = 31.0
    room.end_late_games()
    assert [room.store.game(game).ending for game in (shown, closed, silent)] == [None] * 3, "a page may still ask"
    assert room.game(shown, "p").ending == "time"
    now[0] = 41.0
    room.end_late_games()
    games = [room.store.game(game) for game in (shown, closed, opened_again, silent)]
    assert [game.ending for game in games] == ["time", "left", "disconnected", "disconnected"]
    assert [game.elapsed for game in games] == [30.0, 0.0, 0.0, 7.0], "of the others the last move is known"


def test_late_games_end_once_the_store_can_be_written_again(tmp_path: Path):
    now = [0.0]
    room = play_room(store=Store(tmp_path / "g.db"), clock=lambda: now[0])
    game = room.begin("p", EPISODE).id
    room.store.db.execute("PRAGMA query_only = ON")
    now[0] = 100.0
    with pytest.raises(sqlite3.Error):
        room.end_late_games()
    room.store.db.execute("PRAGMA query_only = OFF")
    room.end_late_games()
    assert room.store.game(game).ending == "disconnected"


@pytest.mark.parametrize("seconds", [float("nan"), 0.0, -1.0])
def test_a_time_limit_that_is_not_above_0_is_refused_before_any_game(seconds: float):
    with pytest.raises(AirlocError, match="--seconds"):
        play_room(seconds=seconds)


def test_a_player_sees_every_area_before_one_comes_again():
    room = play_room(noise_sampler(4, "2x2"))
    areas = [room.begin_random("p").episode.area for _ in range(8)]
    assert sorted(areas[:4]) == sorted(areas[4:]) == [0, 1, 2, 3]
