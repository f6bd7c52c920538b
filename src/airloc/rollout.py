"""Play a suite with an agent, batch by batch, and give the trajectories.

Legend: E episodes of the suite, B of a batch, T budget.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.matching import MatchingAgent, with_match
from airloc.errors import AirlocError
from airloc.seeding import derive
from airloc.task.batch import BatchEnv
from airloc.task.suites import Suite

GoalPictures = Callable[[torch.Tensor], torch.Tensor]
"""Gives the goals' pictures (B, S, S, 3) of the episodes with these numbers (B,)."""

ACTIONS = 8


class DiagonalError(AirlocError):
    """An agent flies diagonally where the task has four moves: its score would be of another game."""


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """What an agent did in every episode of a suite."""

    path: npt.NDArray[np.int64]
    """Cells from the start on, (E, T + 1, 2); after the end the last one is repeated."""
    found: npt.NDArray[np.bool_]
    """Whether the goal was reached; in the variant that ends by declaration, declared where it is, (E,)."""
    steps: npt.NDArray[np.int64]
    """Moves made; the budget where the goal was not reached, (E,)."""
    seconds: float
    """Wall time spent in the agent."""
    declared: npt.NDArray[np.bool_] | None = None
    """Whether the goal was declared, rightly where it was found, (E,); None where arriving is enough."""


def play(
    agent: Agent,
    suite: Suite,
    env: BatchEnv,
    *,
    seed: int = 0,
    batch: int = 1024,
    goals: GoalPictures | None = None,
    threshold: float = 0.5,
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> Trajectories:
    """Play all episodes of a suite.

    Args:
        agent: Who searches.
        suite: The episodes; areas are numbered as in the environment.
        env: The environment, with the suite's budget and way to end.
        seed: What every random choice follows from, whatever the batch.
        batch: Episodes in step.
        goals: Other pictures of the goals than the environment's own.
        threshold: In a suite that ends by declaration, the probability from which on the goal is declared.
        on_batch: Called with the number of episodes just played.
    """
    path = np.empty((len(suite), suite.budget + 1, 2), dtype=np.int64)
    found = np.empty(len(suite), dtype=np.bool_)
    steps = np.empty(len(suite), dtype=np.int64)
    declared = np.zeros(len(suite), dtype=np.bool_)
    player = with_match(agent)
    seconds = 0.0
    for first in range(0, len(suite), batch):
        these = slice(first, min(first + batch, len(suite)))
        played = _play_batch(player, suite, env, these, seed, goals, threshold)
        path[these], found[these], steps[these], declared[these] = (part.cpu().numpy() for part in played[:4])
        seconds += played.seconds
        on_batch(these.stop - these.start)
    return Trajectories(path, found, steps, seconds, declared if suite.by_declaration else None)


class _Played(NamedTuple):
    """What an agent did in the episodes of a batch."""

    path: torch.Tensor
    found: torch.Tensor
    steps: torch.Tensor
    declared: torch.Tensor
    seconds: float


@torch.inference_mode()
def _play_batch(
    agent: MatchingAgent,
    suite: Suite,
    env: BatchEnv,
    these: slice,
    seed: int,
    goals: GoalPictures | None,
    threshold: float,
) -> _Played:
    """Play some episodes in step."""
    device = env.cells.device
    area, start, goal = (torch.from_numpy(array[these]).to(device) for array in (suite.area, suite.start, suite.goal))
    observation = env.reset(area, start, goal)
    numbers = torch.arange(these.start, these.stop, device=device)
    pictures = env.goal_patches() if goals is None else goals(numbers)
    noise = torch.from_numpy(_noise(seed, these, suite.budget)).to(device)
    found = declared = torch.zeros_like(area, dtype=torch.bool)
    path = [observation.position]
    clock = _Clock(device)
    with clock:
        state = agent.reset(EpisodeBatch(pictures, suite.grid, suite.budget, noise))
    ended = found
    while True:
        if suite.by_declaration:
            with clock:
                here, state = agent.match(observation, state)
            said = env.declare(here >= threshold)
            found, declared, ended = found | said.found, declared | said.found | said.false_alarm, said.ended
        if ended.all():
            break
        with clock:
            action, state = agent.act(observation, state)
        _check_moves(agent, action, suite)
        observation, _, reached, ended = env.step(action)
        found = found | reached
        path.append(observation.position)
    path += path[-1:] * (suite.budget + 1 - len(path))
    return _Played(torch.stack(path, dim=1), found, suite.budget - observation.moves_left, declared, clock.seconds)


def _check_moves(agent: MatchingAgent, action: torch.Tensor, suite: Suite) -> None:
    """Refuse an agent that flies diagonally where the task has four moves."""
    if suite.grid.moves == 4 and bool((action % 2 != 0).any()):
        raise DiagonalError(
            f"The agent {agent.name!r} moves diagonally, and the task has four moves",
            "Let it choose among airloc.agents.agent.task_moves, or play it with eight",
        )


def _noise(seed: int, these: slice, budget: int) -> npt.NDArray[np.float32]:
    """The uniform numbers of some episodes, (B, T, 8): a window of one stream, so that batches do not matter."""
    per_episode = budget * ACTIONS
    bits = np.random.Philox(key=derive(seed, "noise"))
    bits.advance(these.start * per_episode // 4)  # a Philox step gives four numbers, and 8 actions fill two
    numbers = np.random.Generator(bits).random((these.stop - these.start, budget, ACTIONS))
    # Cut to 24 bits, which a float32 holds exactly, so that no number is rounded up to one.
    return (np.floor(numbers * 2.0**24) / 2.0**24).astype(np.float32)


class _Clock:
    """Adds up the wall time spent inside it, waiting for the device."""

    def __init__(self, device: torch.device) -> None:
        self.seconds = 0.0
        self._cuda = device.type == "cuda"

    def __enter__(self) -> None:
        self._wait()
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._wait()
        self.seconds += time.perf_counter() - self._began

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()
