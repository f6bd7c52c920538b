"""Episodes a second of `priv-random`, from areas in memory to trajectories."""

import numpy as np

from airloc.agents.registry import make_agent
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from benchmarks.timing import best_of

AREAS = 100


def run() -> list[tuple[str, str, str, str]]:
    grid = Grid(5, 5)
    images = list(np.random.default_rng(0).integers(0, 256, (AREAS, *grid.size, 3), dtype=np.uint8))
    suite = suites.uniform([str(n) for n in range(AREAS)], grid, per_area=100)
    env = BatchEnv(CellTable(images, grid), suite.budget)
    agent = make_agent("priv-random")
    speed = len(suite) / best_of(lambda: rollout(agent, suite, env))
    return [("priv-random, episodes/s", f"{speed:,.0f}", "5,000", f"{speed / 5000:.1f} x the aim")]
