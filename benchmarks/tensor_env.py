"""Steps per second of the tensor environment with observations, against a bare gather of the same patches."""

import numpy as np
import torch

from airloc.grid import Grid
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from benchmarks.timing import best_of

AREAS, EPISODES = 400, 4096


def run() -> list[tuple[str, str, str, str]]:
    grid = Grid(5, 5)
    images = list(np.random.default_rng(0).integers(0, 256, (AREAS, *grid.size, 3), dtype=np.uint8))
    cells = CellTable(images, grid)
    suite = suites.uniform([str(n) for n in range(AREAS)], grid, per_area=1 + EPISODES // AREAS)
    area, start, goal = (torch.from_numpy(array[:EPISODES]) for array in (suite.area, suite.start, suite.goal))
    env = BatchEnv(cells, suite.budget)
    actions = torch.randint(8, (suite.budget, EPISODES), generator=torch.Generator().manual_seed(0))
    rows = torch.randint(cells.array.shape[0], (EPISODES,), generator=torch.Generator().manual_seed(1))
    table = torch.from_numpy(cells.array.reshape(len(cells.array), -1))

    def play() -> None:
        env.reset(area, start, goal)
        for action in actions:
            env.step(action)

    def gather() -> None:
        for _ in range(suite.budget + 1):
            table.index_select(0, rows)

    steps = suite.budget * EPISODES
    speed, floor = steps / best_of(play), (steps + EPISODES) / best_of(gather)
    return [
        ("tensor environment, steps/s", f"{speed:,.0f}", "200,000 or half a bare gather", f"{speed / floor:.2f}"),
        ("bare gather, patches/s", f"{floor:,.0f}", "", "1"),
    ]
