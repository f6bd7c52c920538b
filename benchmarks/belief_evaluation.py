"""The belief agent in play on the CPU: episodes a second in batches on all threads, milliseconds a move on one core.

It plays as it does by default, with bfloat16 where the CPU has instructions for that, and in full precision. The floor
of a move is what the relation network alone takes to encode one new glimpse.
"""

from functools import partial

import torch

from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import AgentOptions, make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from benchmarks.timing import best_of_each

AREAS, ALONE = 64, 6
PRECISIONS = {"": False, ", in full precision": True}


def run() -> list[tuple[str, str, str, str]]:
    grid = Grid(5, 5)
    areas = list(Synthetic(count=AREAS).areas(grid))
    names = [area.name for area in areas]
    agents = [_agent(exact) for exact in PRECISIONS.values()]
    suite, few = suites.per_distance(names, grid), suites.per_distance(names[:ALONE], grid)
    env = BatchEnv(CellTable.from_areas(areas, grid), suite.budget)
    batches = best_of_each([partial(rollout, agent, suite, env) for agent in agents], runs=3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    singles = best_of_each([partial(rollout, agent, few, env, batch=1) for agent in agents], runs=6)
    floors = best_of_each([partial(_look, agent) for agent in agents], runs=40)
    rows = []
    for agent, what, batch, single, floor in zip(agents, PRECISIONS, batches, singles, floors, strict=True):
        move = single / int(rollout(agent, few, env, batch=1).steps.sum())
        rows += [
            (
                f"belief in batches, one episode per distance{what}, episodes/s",
                f"{len(suite) / batch:,.0f}",
                "" if what else "100",
                f"{batches[1] / batch:.2f} of full precision",
            ),
            (
                f"belief one at a time on one core{what}, ms a move (the goal's encoding shared out)",
                f"{1000 * move:.1f}",
                "" if what else "10",
                f"{move / floor:.2f} of encoding one glimpse",
            ),
        ]
    torch.set_num_threads(threads)
    return rows


def _agent(exact: bool) -> BeliefAgent:
    agent = make_agent("belief", AgentOptions(full_precision=exact))
    assert isinstance(agent, BeliefAgent)
    return agent


@torch.inference_mode()
def _look(agent: BeliefAgent) -> None:
    agent.network.encode_patches(torch.full((1, 48, 48, 3), 100, dtype=torch.uint8))
