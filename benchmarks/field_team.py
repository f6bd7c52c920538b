"""Time of one decision of a team on 100 x 100 cells, on one core: `OMP_NUM_THREADS=1 python -m benchmarks.field_team`.

A decision is a photo of one of five vehicles: the comparison with the goal, the belief and the next cell. The target
stands still, or walks; then all rounds so far are repeated in every decision.
"""

import os
import statistics
import time

import numpy as np
import torch

from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.missions.searcher import Glimpse
from airloc.missions.team import TeamSearcher
from airloc.task.cells import cut_patches
from airloc.task.motion import STILL, Motion

SIDE, DRONES, PHOTOS = 100, 5, 100
AIM_MS = 250


def run() -> list[tuple[str, str, str, str]]:
    torch.set_num_threads(1)
    rows = []
    for name, motion in (("target stands still", STILL), ("target walks", Motion(0.3))):
        planning, whole = measure(motion)
        measured = f"median {statistics.median(planning):.0f} ms, longest {max(planning):.0f} ms"
        what = f"planning, {SIDE} x {SIDE} cells, {DRONES} drones, {name}"
        rows.append((what, measured, f"{AIM_MS} ms", f"with the photo {statistics.median(whole):.0f} ms"))
    return rows


def measure(motion: Motion) -> tuple[list[float], list[float]]:
    """Return the milliseconds of planning, and of planning and comparing a photo, for each photo."""
    grid, small = Grid(SIDE, SIDE), Grid(10, 10)
    patches = cut_patches(next(iter(Synthetic(count=1, seed=3).areas(small))).image, small)
    corner = (SIDE - 1, SIDE - 1)
    search = TeamSearcher(
        make_agent("belief"), patches[0], grid, start=(50, 50), budget=400, motion=motion, threshold=1.0
    )
    for number in range(2, DRONES + 1):
        search.join(str(number), (SIDE * number // 7, corner[1] // number), 400)
    rng, planning, whole = np.random.default_rng(0), [], []
    for _ in range(PHOTOS):
        vehicle = search.next_to_arrive()
        assert vehicle is not None
        assert vehicle.next is not None
        began = time.perf_counter()
        search.observe(vehicle.next, Glimpse(patches[rng.integers(1, 100)]), check=False, vehicle=vehicle.name)
        whole.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        search._choose(vehicle, search._taken())
        planning.append(1000 * (time.perf_counter() - began))
    return planning, whole


if __name__ == "__main__":
    for row in run():
        print(" | ".join(row))
    print(f"{os.cpu_count()} cores, one used")
