"""AiRLoc in play on the CPU, eyes included: episodes a second in batches, milliseconds one at a time.

The shipped agent plays where its weights are installed, otherwise an untrained one, which makes more moves and is kept
inside, where there is something to see. The peer is the authors' published agent, which takes about 72 ms an episode
with segmentation on two cores.
"""

import torch

from airloc.agents.airloc import AirlocAgent
from airloc.agents.inference import optimize_for_inference
from airloc.agents.policy import Policy, Variant
from airloc.agents.pretrained import is_installed
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.vision.embedder import PatchEncoder
from benchmarks.timing import best_of

AREAS, ALONE = 256, 8
PEER_MS = 72.0


def run() -> list[tuple[str, str, str, str]]:
    grid = Grid(5, 5)
    areas = list(Synthetic(count=AREAS).areas(grid))
    names = [area.name for area in areas]
    agent = make_agent("airloc") if is_installed("airloc") else untrained_airloc()
    suite, few = suites.per_distance(names, grid), suites.per_distance(names[:ALONE], grid)
    env = BatchEnv(CellTable.from_areas(areas, grid), suite.budget)
    speed = len(suite) / best_of(lambda: rollout(agent, suite, env), runs=2)
    alone = rollout(agent, few, env, batch=1)
    alone_ms = 1000 * best_of(lambda: rollout(agent, few, env, batch=1), runs=3) / len(few)
    moves = alone.steps.mean()
    return [
        ("airloc in batches, episodes/s", f"{speed:,.0f}", "150", f"{speed * PEER_MS / 1000:.0f} x the authors'"),
        (
            f"airloc one at a time, ms an episode ({moves:.1f} moves)",
            f"{alone_ms:.1f}",
            "15 (about 6 moves)",
            f"{PEER_MS / alone_ms:.1f} x the authors'",
        ),
        ("airloc one at a time, ms a move", f"{alone_ms / moves:.2f}", "2.5", ""),
    ]


def untrained_airloc(seed: int = 0) -> AirlocAgent:
    torch.manual_seed(seed)
    variant = Variant(priv=True)
    return AirlocAgent("airloc", optimize_for_inference(PatchEncoder()), Policy(variant).requires_grad_(False))
