"""Searches over recorded photos: what every agent decides, to be compared with the record in `missions/decisions.json`.

After a change of decisions that is intended, such as new weights, record them again and read the difference:

    python tests/field_decisions.py
    git diff tests/missions/decisions.json

Agents compute in full precision, so that the record does not depend on the CPU.
"""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.missions.searcher import Glimpse, Searcher
from airloc.task.cells import cut_patches

GRID = Grid(5, 5)
RECORD = Path(__file__).parent / "missions" / "decisions.json"
AGENTS = ("belief", "airloc", "lawnmower", "random", "spiral")
GOALS = ((1, 3), (4, 0))
"""The goal in each area."""
NAMES = [f"{agent}-{area}-{part}" for area in range(len(GOALS)) for agent in AGENTS for part in ("whole", "outlined")]
"""Agent, number of the area, and whether the whole area or only a part of it may be searched."""


def search(name: str) -> dict[str, Any]:
    """Search as an agent decides, and return the cells, the match probabilities and the end."""
    agent, number, part = name.split("-")
    searchable = np.ones(GRID.shape, dtype=bool)
    if part == "outlined":
        searchable[0] = searchable[:, -1] = False
    patches, goal = _patches(int(number)), GOALS[int(number)]
    options = {"searchable": searchable, "threshold": 0.8, "seed": 3}
    flight = Searcher(_agent(agent), patches[GRID.index(goal)], GRID, start=(2, 2), budget=30, **options)
    probabilities = []
    while (cell := flight.advice().next_cell) is not None:
        advice = flight.observe(cell, Glimpse(patches[GRID.index(cell)]))
        probabilities.append(advice.match_probability)
        if len(flight.flown) == 2 and advice.status == "searching":
            flight.observe((3, 1), Glimpse(patches[GRID.index((3, 1))], 0.7))
    return {
        "goal": list(goal),
        "status": flight.status,
        "flown": [list(cell) for cell in flight.flown],
        "match_probability": [round(float(probability), 6) for probability in probabilities],
    }


@functools.cache
def _agent(name: str) -> Agent:
    return make_agent(name, AgentOptions(full_precision=True))


@functools.cache
def _patches(area: int) -> np.ndarray:
    return cut_patches(list(Synthetic(count=len(GOALS), seed=5).areas(GRID))[area].image, GRID)


def main() -> None:
    """Record the decisions."""
    lines = (f" {json.dumps(name)}: {json.dumps(search(name))}" for name in NAMES)
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
