"""The process that agents work in: does its jobs, and is replaced when it dies."""

import asyncio
import os
import signal

import pytest

from airloc.agents.registry import make_agent
from airloc.game.baselines import Baselines, fly, path_of, play_one
from airloc.game.match import Episode, RefusedError
from airloc.game.worker_pool import AgentPool, ProcessWorkerPool
from airloc.task.world import World
from game_hall import noise_world

EPISODE = Episode(1, (4, 0), (1, 3))


def process_of(world: World, pool: AgentPool) -> int:
    return os.getpid()


def test_jobs_are_done_in_another_process_which_is_replaced_when_it_dies():
    world = noise_world(2)

    async def work() -> None:
        worker_pool = ProcessWorkerPool({"play": world}, ["spiral"])
        (flight,) = await Baselines(["spiral"], worker_pool, "play").flights(EPISODE)
        played = play_one(make_agent("spiral"), world, EPISODE)
        assert (flight.path, flight.found) == (path_of(played), bool(played.found[0]))
        first = await worker_pool.run(process_of, "play")
        assert first != os.getpid()
        os.kill(first, signal.SIGKILL)
        with pytest.raises(RefusedError, match="ask again"):
            await worker_pool.run(fly, "play", ("spiral",), EPISODE)
        assert await worker_pool.run(process_of, "play") not in (first, os.getpid())
        assert await worker_pool.run(fly, "play", ("spiral",), EPISODE) == (flight,)
        worker_pool.close()

    asyncio.run(work())
