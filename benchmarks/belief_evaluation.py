"""The belief searcher in play on the CPU: episodes a second in batches on all threads, milliseconds a move on one core.

The floor of a move is what the relation network alone takes to encode one new glimpse.
"""

import torch

from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.rollout import play
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from benchmarks.timing import best_of

AREAS, ALONE = 64, 6


def run() -> list[tuple[str, str, str, str]]:
    grid = Grid(5, 5)
    areas = list(Synthetic(count=AREAS).areas(grid))
    names = [area.name for area in areas]
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    suite, few = suites.per_distance(names, grid), suites.per_distance(names[:ALONE], grid)
    env = BatchEnv(CellTable.of(areas, grid), suite.budget)
    speed = len(suite) / best_of(lambda: play(agent, suite, env), runs=2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    moves = int(play(agent, few, env, batch=1).steps.sum())
    move_ms = 1000 * best_of(lambda: play(agent, few, env, batch=1), runs=3) / moves
    glimpse = torch.randint(0, 256, (1, 48, 48, 3), dtype=torch.uint8)
    with torch.inference_mode():
        floor_ms = 1000 * best_of(lambda: agent.network.look(glimpse), runs=20)
    torch.set_num_threads(threads)
    return [
        ("belief in batches, one episode per distance, episodes/s", f"{speed:,.0f}", "100", ""),
        (
            "belief one at a time on one core, ms a move (the goal's encoding shared out)",
            f"{move_ms:.1f}",
            "10",
            f"{move_ms / floor_ms:.2f} of encoding one glimpse",
        ),
    ]
