"""The worker process runs jobs, and is replaced when it dies."""

import asyncio
import os
import signal

import pytest

from airloc.agents.registry import make_agent
from airloc.game import Baselines, Episode, ProcessWorkerPool, RefusedError
from airloc.game.worker_pool import AgentCache, path_of, play_episode
from airloc.task.sampling import EpisodeSampler
from game_server import noise_sampler

pytestmark = pytest.mark.long

EPISODE = Episode(1, (4, 0), (1, 3))


def process_id(sampler: EpisodeSampler, agents: AgentCache) -> int:
    return os.getpid()


def test_jobs_run_in_another_process_that_is_replaced_when_it_dies():
    sampler = noise_sampler(2)

    async def work() -> None:
        worker_pool = ProcessWorkerPool({"play": sampler}, ["spiral"])
        (path,) = await Baselines(["spiral"], worker_pool, "play").paths(EPISODE)
        baselines = Baselines(["spiral"], worker_pool, "play")
        played = play_episode(make_agent("spiral"), sampler, EPISODE)
        assert (path.path, path.found) == (path_of(played), bool(played.found[0]))
        first = await worker_pool.run(process_id, "play")
        assert first != os.getpid()
        os.kill(first, signal.SIGKILL)
        with pytest.raises(RefusedError) as caught:
            await baselines.paths(EPISODE)
        assert caught.value.status == 503
        assert await worker_pool.run(process_id, "play") not in (first, os.getpid())
        assert await baselines.paths(EPISODE) == (path,), "a failure is not kept"
        worker_pool.close()

    asyncio.run(work())
