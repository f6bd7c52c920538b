"""Searches that begin with an orthophoto of another year: `python -m benchmarks.field_map`.

Prints the table of `docs/field.md`. Areas are NAIP tiles of Claremont: single ones under 5 x 5 cells, and mosaics of
four under 10 x 10. Of their three years one is flown over, one is the map, and the goal is from the third one or from
the day of the flight. Goals lie anywhere, with any (known) heading, up to 1.5 times as wide or narrow as a cell, with
light and compression of their own. A search succeeds if it reaches the cell of the goal, as in the task, within twice
the side of the grid in moves.

    --fit    print the weights of the map's evidence, fitted to the other cities
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize

from airloc.agents.agent import Agent
from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.areas.area import Pixels
from airloc.areas.naip import Naip
from airloc.areas.registry import load_dataset
from airloc.missions import map_prior
from airloc.missions.map_prior import map_weights
from airloc.missions.photos import crop_to_view
from airloc.missions.plan import nearest_cell
from airloc.missions.session import AgentSession
from benchmarks.field_anywhere import CELL_M, Pair, World, _interval, _square

CITY = "claremont"


class Scene(NamedTuple):
    """A goal in an area, and the map of the area."""

    world: World
    map: Pixels

    def prior(self, agent: BeliefAgent) -> np.ndarray:
        """Match the goal against the map."""
        grid = self.world.grid
        photos = [crop_to_view(self.map, CELL_M, self.world._pose(cell)).pixels for cell in grid.cells()]
        weights = map_weights(agent.network, self.world.goal, grid, list(grid.cells()), photos)
        return weights.reshape(grid.shape) / weights.sum()


def scenes(root: Path, count: int, side: int, *, held_out: bool, same_day: bool, seed: int = 0) -> Iterator[Scene]:
    """Draw scenes: of the city that is kept apart, or of the others."""
    naip = load_dataset("naip", root=root / "naip")
    assert isinstance(naip, Naip)
    places: dict[str, list] = {}
    for record in naip.scan():
        if record.place and record.name.startswith(CITY) == held_out:
            places.setdefault(record.place, []).append(record)
    whole = [sorted(records, key=lambda record: record.day) for records in places.values() if len(records) == 3]
    rng = np.random.default_rng(seed)
    for number in range(count):
        chosen = [whole[int(place)] for place in rng.permutation(len(whole))[: (side // 5) ** 2]]
        years = rng.permutation(3)
        flight, other, third = (
            _mosaic([_square(naip.read(records[int(year)]).image) for records in chosen]) for year in years
        )
        pair = Pair(flight, flight if same_day else third)
        yield Scene(World(pair, side, True, np.random.default_rng([seed, number])), other)


def _mosaic(tiles: list[Pixels]) -> Pixels:
    """Join 1 or 4 tiles to a square."""
    side = round(len(tiles) ** 0.5)
    return np.concatenate([np.concatenate(tiles[row * side : (row + 1) * side], axis=1) for row in range(side)])


def report(root: Path, count: int, side: int, same_day: bool) -> None:
    """Play the same searches flat, with the map, and blind; print a line each."""
    agents = {"blind": make_agent("blind"), "belief, flat start": make_agent("belief")}
    agent = agents["belief, with the map"] = agents["belief, flat start"]
    assert isinstance(agent, BeliefAgent)
    moves: dict[str, list[int | None]] = {name: [] for name in agents}
    ranks = []
    for scene in scenes(root, count, side, held_out=True, same_day=same_day):
        prior = scene.prior(agent)
        ranks.append(int((prior > prior[nearest_cell(scene.world.truth)]).sum()))
        for name, one in agents.items():
            moves[name].append(moves_to_goal(one, scene.world, prior if "map" in name else None))
    goal = "the day of the flight" if same_day else "a third year"
    for name, taken in moves.items():
        reached = np.array([number is not None for number in taken])
        low, high = _interval(reached)
        steps = np.mean([number for number in taken if number is not None])
        share = f"{100 * reached.mean():.1f} % [{low:.1f}, {high:.1f}] | {steps:.1f}"
        print(f"| {side} x {side}, goal of {goal} | {name} | {share} |", flush=True)
    first = ", ".join(f"{100 * np.mean(np.array(ranks) < top):.0f} % in the first {top}" for top in (1, 3, 5))
    print(f"The map ranks the cell of the goal: {first}", flush=True)


def moves_to_goal(agent: Agent, world: World, prior: np.ndarray | None) -> int | None:
    """Play the task from the middle of the grid; return the moves until the goal's cell, or None."""
    grid, truth = world.grid, nearest_cell(world.truth)
    budget = 2 * max(grid.shape)
    session = AgentSession(agent, world.goal, grid, (grid.rows // 2, grid.cols // 2), budget, 0, prior)
    while session.position != truth and not session.finished:
        at = session.position
        session.step(world.photo(at).pixels if grid.contains(at) else None)
    return session.moves if session.position == truth else None


def fit(root: Path, count: int) -> None:
    """Fit the weights of both kinds of evidence by the likelihood of the goal's cell."""
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    evidence, truths = [], []
    for scene in scenes(root, count, 5, held_out=False, same_day=False, seed=7):
        parts = []
        for weights in ((1.0, 0.0), (0.0, 1.0)):
            map_prior.WEIGHTS = weights
            parts.append(np.log(scene.prior(agent).ravel()))
        evidence.append(np.stack(parts, axis=-1))
        truths.append(scene.world.grid.index(nearest_cell(scene.world.truth)))
    inputs, index = np.stack(evidence), np.arange(len(truths))

    def loss(weights: np.ndarray) -> float:
        logs = inputs @ weights
        return float((np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1)) + logs.max(axis=1)
                      - logs[index, truths]).mean())  # fmt: skip

    found = minimize(loss, np.zeros(2)).x
    print(f"weights {found[0]:.2f}, {found[1]:.2f}: {loss(found):.2f} nats, {np.log(25):.2f} without a map")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--sides", nargs="+", type=int, default=[5, 10])
    parser.add_argument("--days", nargs="+", choices=["other", "same"], default=["other", "same"])
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    root = Path(os.environ["AIRLOC_DATA"])
    if options.fit:
        fit(root, options.searches)
        return
    print("| area | search | success | moves |\n|---|---|---|---|")
    for side in options.sides:
        for day in options.days:
            report(root, options.searches, side, day == "same")


if __name__ == "__main__":
    main()
