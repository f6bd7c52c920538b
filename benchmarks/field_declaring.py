"""What agents declare, and what they would have found had they been told: `python -m benchmarks.field_declaring`.

Prints the tables of `docs/field.md`: Massachusetts (validation windows, 100 m a cell) and xBD without hurricane
Michael, from $AIRLOC_DATA, one episode per distance. Every suite is flown once in silence; where a flight would have
ended by declaration, at any cost of a false alarm, follows from what was said on the way.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airloc.agents.agent import Agent
from airloc.agents.matching import SimilarityMatcher, declaration_threshold
from airloc.agents.registry import make_agent
from airloc.cli.options import PlayOptions, load_episodes
from airloc.rollout import MATCH, RolloutLog, rollout

COSTS = (1, 4)
AGENTS = ("belief", "belief, judged by likeness", "airloc", "airloc-no-sem-seg-priv", "priv-local", "blind")
FEWER = AGENTS[:3]


def main() -> None:
    torch.set_num_threads(1)
    root = Path(os.environ["AIRLOC_DATA"])
    xbd = root / "xbd" / "images"
    michael = ("hurricane-michael_*",)
    sets = {
        "Massachusetts, the same day": (
            PlayOptions(areas=root / "masa" / "images", split="val", cell_metres=100.0),
            AGENTS,
        ),
        "xBD, the same day": (PlayOptions(areas=xbd, only=("*_post_disaster*",), without=michael), FEWER),
        "xBD, before the disaster": (PlayOptions(areas=xbd, goals=xbd, without=michael), FEWER),
    }
    for title, (options, names) in sets.items():
        suite, areas, goal_areas = load_episodes(options)
        print(f"\n{title}, {len(suite)} episodes")
        print("| agent | found when told | " + " | ".join(f"cost {cost}" for cost in COSTS) + " |")
        print("|---|---|" + "---|" * len(COSTS))
        for name in names:
            silent = replace(suite, by_declaration=True)
            how: dict[str, Any] = {"goal_areas": goal_areas, "record": [MATCH], "threshold": math.inf}
            log = rollout(agent_of(name), silent, areas, **how)
            print(f"| {name} | " + " | ".join(columns(log)) + " |", flush=True)


def agent_of(name: str) -> Agent:
    agent = make_agent(name.split(",")[0])
    return SimilarityMatcher(agent) if "likeness" in name else agent


def columns(log: RolloutLog) -> Iterator[str]:
    """Found when told, and for each cost found, false alarms and missed, in percent."""
    is_goal = (log.path == log.suite.goal[:, None]).all(axis=2)
    yield f"{is_goal.any(axis=1).mean():.1%}"
    for cost in COSTS:
        told = log.recorded[MATCH] >= declaration_threshold(cost)
        found = told.any(axis=1) & is_goal[np.arange(len(told)), told.argmax(axis=1)]
        wrong = told.any(axis=1) & ~found
        yield f"{100 * found.mean():.1f} / {100 * wrong.mean():.1f} / {100 * (~told.any(axis=1)).mean():.1f} %"


if __name__ == "__main__":
    main()
