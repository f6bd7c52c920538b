"""Play suites with several drones or with a goal that moves.

An agent that keeps a belief guides all drones by one belief (`airloc.agents.team`). Any other agent guides each drone
as if it were alone. In one round every drone makes a move, then the goal makes its own. An episode ends when a drone
and the goal are in the same cell after a round.

Legend: E episodes, B of a batch, K drones, T budget, C cells, S side of a cell in pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, EpisodeBatch
from airloc.agents.belief import BeliefAgent
from airloc.agents.planner import Planner
from airloc.agents.registry import make_agent
from airloc.agents.team import TeamAgent
from airloc.errors import AirlocError
from airloc.rollout import AgentClock, GoalPatches, RolloutLog, agent_noise
from airloc.seeding import derive
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.rules import moves_on
from airloc.task.suites import Suite, goal_walks, launch_cells

Ints = npt.NDArray[np.int64]


def play_variant(
    agent: Agent,
    suite: Suite,
    env: BatchEnv,
    *,
    goal_patches: GoalPatches | None = None,
    seed: int = 0,
    batch: int = 1024,
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> RolloutLog:
    """Play all episodes of a suite with several drones or a moving goal; the arguments are those of `rollout`.

    The path in the log is that of the drone that reaches the goal, or of the one that ends nearest to it.
    """
    if suite.by_declaration:
        raise AirlocError("Teams and moving goals do not declare finds", "Leave out the cost of a false alarm")
    player = team_player(agent, suite)
    starts, goals = launch_cells(suite), goal_walks(suite)
    rounds = []
    for first in range(0, len(suite), batch):
        these = slice(first, min(first + batch, len(suite)))
        rounds.append(_play(player, suite, env, these, starts[these], goals[these], goal_patches, seed))
        on_batch(these.stop - these.start)
    team, found, steps = (np.concatenate(part) for part in zip(*(played[:3] for played in rounds), strict=True))
    seconds = sum(played.seconds for played in rounds)
    every = np.arange(len(suite))
    last = goals[every, steps]
    nearest = suite.grid.moves_between(team[:, :, -1], last[:, None]).argmin(axis=1)
    return RolloutLog(player.name, suite, team[every, nearest], found, steps, seconds, team=team, last_goal=last)


def blind_team_success(suite: Suite) -> float:
    """Return the success of a team that plans from the prior alone: a lower bound of the best blind paths."""
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    agent = replace(agent, planner=Planner(at_side=0.0, at_corner=0.0))
    black = CellTable([np.zeros((*suite.grid.size, 3), dtype=np.uint8)], suite.grid)
    unseen = replace(suite, area=np.zeros_like(suite.area))
    starts, goals = launch_cells(suite), goal_walks(suite)
    team = TeamAgent(agent, suite.motion, blind=True)
    found = [
        _play(team, unseen, BatchEnv(black, suite.budget), these, starts[these], goals[these], None, 0).found
        for these in (slice(first, min(first + 1024, len(suite))) for first in range(0, len(suite), 1024))
    ]
    return float(np.average(np.concatenate(found), weights=suite.weight))


class _Played(NamedTuple):
    team: Ints
    found: npt.NDArray[np.bool_]
    steps: Ints
    seconds: float


@dataclass(frozen=True, eq=False)
class _Independent:
    """Guides every drone as if it were alone: an episode of its own, with random numbers of its own."""

    agent: Agent
    drones: int

    @property
    def name(self) -> str:
        return self.agent.name

    def reset(self, episodes: EpisodeBatch) -> Any:
        goal = episodes.goal.repeat_interleave(self.drones, dim=0)
        return self.agent.reset(EpisodeBatch(goal, episodes.grid, episodes.budget, episodes.noise))

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        left = observation.moves_left.repeat_interleave(self.drones)
        flat = Observation(observation.patch.flatten(0, 1), observation.position.flatten(0, 1), left)
        action, state = self.agent.act(flat, state)
        return action.view(-1, self.drones), state


def team_player(agent: Agent, suite: Suite) -> TeamAgent | _Independent:
    """Return what guides the drones of a suite."""
    if isinstance(agent, TeamAgent):
        return agent
    return TeamAgent(agent, suite.motion) if isinstance(agent, BeliefAgent) else _Independent(agent, suite.drones)


@torch.inference_mode()
def _play(
    player: TeamAgent | _Independent,
    suite: Suite,
    env: BatchEnv,
    these: slice,
    starts: Ints,
    goals: Ints,
    goal_patches: GoalPatches | None,
    seed: int,
) -> _Played:
    """Play some episodes in parallel."""
    device = env.cells.device
    area, position, walk = (torch.from_numpy(part).to(device) for part in (suite.area[these], starts, goals))
    if goal_patches is None:
        patch = env.goal_cells.patches(area, walk[:, 0])
    else:
        patch = goal_patches(torch.arange(these.start, these.stop, device=device))
    independent = suite.drones if isinstance(player, _Independent) else 1
    seeds = [seed, *(derive(seed, "drone", drone) for drone in range(1, independent))]
    noise = np.stack([agent_noise(one, these, suite.budget) for one in seeds], axis=1)  # (B, drones, T, 8)
    every = area.repeat_interleave(suite.drones)
    found, steps = torch.zeros_like(area, dtype=torch.bool), torch.zeros_like(area)
    team, clock = [position], AgentClock(device)
    with clock:
        drawn = torch.from_numpy(noise).to(device).flatten(0, 1)
        state = player.reset(EpisodeBatch(patch, suite.grid, suite.budget, drawn))
    for made in range(suite.budget):
        glimpses = env.cells.patches(every, position.flatten(0, 1))
        glimpses = glimpses.view(len(area), suite.drones, *glimpses.shape[1:])
        with clock:
            left = torch.full_like(area, suite.budget - made)
            action, state = player.act(Observation(glimpses, position, left), state)
        position = torch.where(found[:, None, None], position, position + moves_on(device)[action])
        steps = steps + ~found
        found = found | (position == walk[:, made + 1, None]).all(dim=-1).any(dim=-1)
        team.append(position)
        if found.all():
            break
    team += team[-1:] * (suite.budget + 1 - len(team))
    return _Played(torch.stack(team, dim=2).cpu().numpy(), found.cpu().numpy(), steps.cpu().numpy(), clock.seconds)
