"""A drifting person searched by drones, in the environment DSSE, beside a greedy agent: `python -m benchmarks.dsse`.

DSSE is a PettingZoo environment; it pins an old matplotlib, so that `pip install --no-deps DSSE pettingzoo pygame
numba llvmlite` installs it. A person drifts from a known position; drones observe a map of probabilities that moves
and spreads with the current, and find the person by the action search in the same cell. The greedy agent flies to the
most probable cell of the map and searches there. Ours takes the first map as its prior; from then on its belief
follows the drift, diffuses, and loses the searched cells. Each drone flies to the cell with the most probability per
step that no other drone flies to.

Both agents play the same seeds. A search that does not find the person counts with all steps.
"""

import argparse
import contextlib
import io
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from airloc.agents.team import reach
from airloc.task.motion import Floats, Motion, diffuse

GRID, LIMIT, DRONES = 40, 200, (1, 4)
VECTORS = ((1.1, 1.0), (-0.5, 0.8), (0.4, -0.3))
"""Drifts of the current in metres per second, right and down."""
CELL_M, SPEED = 130.0, 10.0
SPREAD = 0.25
"""Steps of the target beside its drift, for each step of a drone."""
SEARCH = 8
ACTIONS = {(-1, 0): 0, (1, 0): 1, (0, -1): 2, (0, 1): 3, (-1, -1): 4, (1, -1): 5, (-1, 1): 6, (1, 1): 7, (0, 0): SEARCH}
"""Actions of DSSE by the signs of the way to the target, right and down."""

Decide = Callable[[dict[str, Any]], dict[str, int]]


def greedy(observations: dict[str, Any]) -> dict[str, int]:
    """Fly to the most probable cell of the map, and search there."""
    actions = {}
    for agent, (position, mass) in observations.items():
        row, col = np.unravel_index(mass.argmax(), mass.shape)
        actions[agent] = _towards(position, (int(col), int(row)))
    return actions


class TeamPolicy:
    """Searches with what earlier searches have ruled out."""

    def __init__(self, vector: tuple[float, float]) -> None:
        rate = CELL_M / SPEED / CELL_M  # cells of drift for each metre per second and step
        motion = Motion(SPREAD, (vector[1] * rate, vector[0] * rate))
        self._transition = motion.transition((GRID, GRID))
        self._belief: Floats | None = None

    def __call__(self, observations: dict[str, Any]) -> dict[str, int]:
        """Return the actions of all drones."""
        positions = {agent: (int(place[0]), int(place[1])) for agent, (place, _) in observations.items()}
        if self._belief is None:
            self._belief = np.asarray(next(iter(observations.values()))[1], dtype=np.float64)
        belief = self._belief.copy()
        away = {agent: _distances(place) for agent, place in positions.items()}
        actions: dict[str, int] = {}
        for agent, place in positions.items():
            others = [each for name, each in away.items() if name != agent]
            own = belief if not others else belief * reach(away[agent], np.min(others, axis=0))
            row, col = np.unravel_index((own / (away[agent] + 1)).argmax(), own.shape)
            actions[agent] = _towards(place, (int(col), int(row)))
            belief[row, col] = 0
        for agent, place in positions.items():
            if actions[agent] == SEARCH:
                self._belief[place[1], place[0]] = 0
        self._belief = diffuse(self._belief, self._transition)
        self._belief /= self._belief.sum()
        return actions


def _distances(place: tuple[int, int]) -> Any:
    row, col = np.indices((GRID, GRID))
    return np.maximum(np.abs(row - place[1]), np.abs(col - place[0]))


def _towards(place: tuple[int, int], target: tuple[int, int]) -> int:
    return ACTIONS[int(np.sign(target[0] - place[0])), int(np.sign(target[1] - place[1]))]


def play(drones: int, vector: tuple[float, float], seed: int, policy: Decide) -> tuple[bool, int]:
    """Play one search; return whether the person was found, and the steps."""
    from DSSE import DroneSwarmSearch

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (DSSE draws from it)
    with contextlib.redirect_stdout(io.StringIO()):
        env = DroneSwarmSearch(
            grid_size=GRID,
            vector=vector,
            timestep_limit=LIMIT,
            person_initial_position=(GRID // 2, GRID // 2),
            drone_amount=drones,
            drone_speed=SPEED,
            grid_cell_size=CELL_M,
            pre_render_time=5,
        )
        observations, _ = env.reset()
    for step in range(LIMIT):
        observations, _, ends, _, infos = env.step(policy(observations))
        if any(info["Found"] for info in infos.values()):
            return True, step + 1
        if any(ends.values()):
            break
    return False, LIMIT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=100, help="searches for each drift")
    searches = parser.parse_args().searches
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    for drones in DRONES:
        for name in ("greedy", "airloc"):
            played = [
                play(drones, vector, seed, greedy if name == "greedy" else TeamPolicy(vector))
                for vector in VECTORS
                for seed in range(searches)
            ]
            found, steps = np.array([each[0] for each in played]), np.array([each[1] for each in played])
            share, error = 100 * found.mean(), 196 * (found.mean() * (1 - found.mean()) / len(found)) ** 0.5
            print(f"{drones} drones, {name}: found {share:.1f} % ± {error:.1f}, steps {steps.mean():.1f}", flush=True)


if __name__ == "__main__":
    main()
