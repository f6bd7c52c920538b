"""The belief agent as the grid grows: milliseconds of one core a move, one episode at a time and in batches.

It is the CPU's time, so that other work on the machine counts for little. The peer of every grid is 5 x 5. Procedural
areas, the task's budgets; the goal's encoding is shared out over the moves.
"""

import time

import torch

from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from benchmarks.timing import best_of

SIDES = (5, 7, 10, 15)
AREAS, ALONE = 4, 4
"""Areas that are played in batches, and episodes that are played one at a time."""


def run() -> list[tuple[str, str, str, str]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    measured = {side: measure(side) for side in SIDES}
    torch.set_num_threads(threads)
    rows = []
    for side, times in measured.items():
        for way, ms, peer in zip(("one at a time", "in batches"), times, measured[SIDES[0]], strict=True):
            aim = "10" if way == "one at a time" else ""
            what = f"belief on {side} x {side}, {way} on one core, ms a move"
            rows.append((what, f"{ms:.1f}", aim, f"{ms / peer:.2f} of 5 x 5"))
    return rows


def measure(side: int) -> tuple[float, float]:
    """Milliseconds a move on side x side cells: one episode at a time, and in batches."""
    grid = Grid(side, side)
    areas = list(Synthetic(count=AREAS).areas(grid))
    suite = suites.per_distance([area.name for area in areas], grid)
    few = suite.subset([int(place * (grid.max_distance - 1) / (ALONE - 1)) for place in range(ALONE)])
    env, agent = BatchEnv(CellTable.from_areas(areas, grid), suite.budget), make_agent("belief")

    def ms_a_move(part: suites.Suite, batch: int) -> float:
        moves = int(rollout(agent, part, env, batch=batch).steps.sum())
        return 1000 * best_of(lambda: rollout(agent, part, env, batch=batch), runs=2, clock=time.process_time) / moves

    return ms_a_move(few, 1), ms_a_move(suite, 1024)


if __name__ == "__main__":
    for what, ms, _, ratio in run():
        print(f"{what}: {ms} ({ratio})")
