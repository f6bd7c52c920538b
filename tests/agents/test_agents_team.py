"""A team keeps one belief that sums to one, and never sends two drones to the same cell."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch
from airloc.agents.belief import BeliefAgent
from airloc.agents.registry import make_agent
from airloc.agents.team import TeamAgent
from airloc.grid import MOVES, Grid
from airloc.task.batch import Observation
from airloc.task.motion import Motion
from airloc.task.rules import inside

GRID = Grid(6, 7)


def belief_agent() -> BeliefAgent:
    agent = make_agent("belief")
    assert isinstance(agent, BeliefAgent)
    return agent


def play(team: TeamAgent, drones: int, rounds: int, seed: int) -> None:
    """Fly a team over random photos; check belief and positions in every round."""
    generator = torch.Generator().manual_seed(seed)
    goal, noise = torch.randint(0, 256, (2, 48, 48, 3), generator=generator), torch.zeros(2, rounds, 8)
    state = team.reset(EpisodeBatch(goal.byte(), GRID, rounds, noise))
    cells = torch.stack([torch.randperm(GRID.count, generator=generator)[:drones] for _ in range(2)])
    position = torch.stack([cells // GRID.cols, cells % GRID.cols], dim=-1)
    for made in range(rounds):
        patch = torch.randint(0, 256, (2, drones, 48, 48, 3), generator=generator).byte()
        left = torch.full((2,), rounds - made)
        action, state = team.act(Observation(patch, position, left), state)
        assert torch.allclose(state.belief.sum(dim=1), torch.ones(2), atol=1e-5)
        index = position[..., 0] * GRID.cols + position[..., 1]
        assert state.belief.gather(1, index).max() == 0
        position = position + torch.from_numpy(MOVES)[action]
        assert inside(position, GRID).all()
        assert all(len(set(map(tuple, cells.tolist()))) == drones for cells in position)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 4), st.sampled_from([0.0, 0.4, 1.5]), st.integers(0, 1000))
def test_the_belief_sums_to_one_and_drones_never_share_a_cell(drones: int, speed: float, seed: int):
    play(TeamAgent(belief_agent(), Motion(speed)), drones, 4, seed)


def test_one_drone_and_a_still_goal_are_played_as_by_the_agent_alone():
    agent, rounds = belief_agent(), 5
    generator = torch.Generator().manual_seed(3)
    goal = torch.randint(0, 256, (3, 48, 48, 3), generator=generator).byte()
    episodes = EpisodeBatch(goal, GRID, rounds, torch.zeros(3, rounds, 8))
    alone, team = agent.reset(episodes), TeamAgent(agent).reset(episodes)
    position = torch.tensor([[0, 0], [3, 3], [5, 6]])
    for made in range(rounds):
        patch = torch.randint(0, 256, (3, 48, 48, 3), generator=generator).byte()
        left = torch.full((3,), rounds - made)
        action, alone = agent.act(Observation(patch, position, left), alone)
        actions, team = TeamAgent(agent).act(Observation(patch[:, None], position[:, None], left), team)
        assert torch.equal(actions[:, 0], action)
        position = position + torch.from_numpy(MOVES)[action]


def test_the_belief_of_a_moving_target_returns_to_photographed_cells():
    team = TeamAgent(belief_agent(), Motion(0.5), blind=True)
    episodes = EpisodeBatch(torch.zeros(1, 48, 48, 3, dtype=torch.uint8), GRID, 3, torch.zeros(1, 3, 8))
    state = team.reset(episodes)
    for cell in ((2, 2), (2, 3)):
        patch = torch.zeros(1, 1, 48, 48, 3, dtype=torch.uint8)
        state = team.observe(Observation(patch, torch.tensor([[cell]]), torch.tensor([3])), state)
    belief = state.belief.view(GRID.shape)
    assert belief[2, 3] == 0
    assert 0 < belief[2, 2] < belief.mean()
