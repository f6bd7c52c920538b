"""Finds and false alarms of agents that declare the find: `python -m benchmarks.field_declaring`.

Prints the tables of `docs/field.md`: Massachusetts (validation windows, 100 m per cell) and xBD without hurricane
Michael, from $AIRLOC_DATA, one episode per distance. Every suite is played once without declarations. The outcome with
declarations, at any cost of a false alarm, follows from the match probabilities along the path.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from airloc.agents.agent import Agent
from airloc.agents.matching import SimilarityMatcher, declaration_threshold
from airloc.agents.registry import make_agent
from airloc.cli.options import PlayOptions, load_episodes
from airloc.rollout import MATCH, RolloutLog, rollout

COSTS = (1, 4)
AGENTS = ("belief", "belief, by similarity", "airloc", "airloc-no-sem-seg-priv", "priv-local", "blind")
XBD_AGENTS = (*AGENTS[:3], "belief-any-day")


def main() -> None:
    torch.set_num_threads(1)
    root = Path(os.environ["AIRLOC_DATA"])
    masa, xbd = root / "masa" / "images", root / "xbd" / "images"
    michael = ("hurricane-michael_*",)
    sets = {
        "Massachusetts, the same day": (PlayOptions(areas=masa, split="val", cell_metres=100.0), AGENTS),
        "xBD, the same day": (PlayOptions(areas=xbd, only=("*_post_disaster*",), without=michael), XBD_AGENTS),
        "xBD, before the disaster": (PlayOptions(areas=xbd, goals=xbd, without=michael), XBD_AGENTS),
    }
    for title, (options, names) in sets.items():
        suite, areas, goal_areas = load_episodes(options)
        suite = replace(suite, by_declaration=True)
        print(f"\n{title}, {len(suite)} episodes")
        print("| agent | success | " + " | ".join(f"cost {cost}" for cost in COSTS) + " |")
        print("|---|---|" + "---|" * len(COSTS))
        for name in names:
            log = rollout(
                make_named_agent(name), suite, areas, goal_areas=goal_areas, record=[MATCH], threshold=math.inf
            )
            print(f"| {name} | " + " | ".join(columns(log)) + " |", flush=True)


def make_named_agent(name: str) -> Agent:
    agent = make_agent(name.split(",")[0])
    return SimilarityMatcher(agent) if "by similarity" in name else agent


def columns(log: RolloutLog) -> Iterator[str]:
    """Yield the success, and for each cost the rates of finds, false alarms and misses, in percent."""
    is_goal = (log.path == log.suite.goal[:, None]).all(axis=2)
    yield f"{is_goal.any(axis=1).mean():.1%}"
    for cost in COSTS:
        declared = log.recorded[MATCH] >= declaration_threshold(cost)
        found = declared.any(axis=1) & is_goal[np.arange(len(declared)), declared.argmax(axis=1)]
        wrong = declared.any(axis=1) & ~found
        missed = ~declared.any(axis=1)
        yield f"{100 * found.mean():.1f} / {100 * wrong.mean():.1f} / {100 * missed.mean():.1f} %"


if __name__ == "__main__":
    main()
