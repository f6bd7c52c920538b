import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.agent import (
    AgentState,
    EpisodeBatch,
    belief_of,
    logits_of,
    privileged_moves,
    select_action,
    unvisited,
    visit,
)
from airloc.agents.registry import make_agent
from airloc.grid import Grid
from airloc.task.batch import Observation


def test_moves_are_drawn_with_softmax_probabilities():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5, -torch.inf, 0.0, 0.0])
    noise = torch.rand(200_000, 8, generator=torch.Generator().manual_seed(0))
    drawn = select_action(logits.expand(len(noise), 8), noise).bincount(minlength=8) / len(noise)
    torch.testing.assert_close(drawn, logits.softmax(dim=0), rtol=0, atol=0.005)


@given(st.integers(0, 7))
def test_a_forbidden_move_is_never_drawn(only: int):
    logits = torch.full((1, 8), -torch.inf)
    logits[0, only] = -50.0
    assert int(select_action(logits, torch.full((1, 8), 0.5))) == int(select_action(logits)) == only


def test_privileged_moves_in_a_dead_end_forbid_the_outside_alone():
    grid = Grid(3, 3)
    visited = torch.ones(1, 3, 3, dtype=torch.bool)
    corner = privileged_moves(torch.tensor([(0, 0)]), visited, grid)[0]
    assert corner.tolist() == [False, False, True, True, True, False, False, False]


def test_privileged_moves_avoid_visited_cells_while_there_is_another_way():
    grid = Grid(3, 3)
    visited = visit(unvisited(1, grid, torch.device("cpu")), torch.tensor([(0, 1)]), grid)
    allowed = privileged_moves(torch.tensor([(0, 0)]), visited, grid)[0]
    assert allowed.tolist() == [False, False, False, True, True, False, False, False]


def test_far_outside_every_move_is_allowed():
    grid = Grid(3, 3)
    far = torch.tensor([(-5, 9)])
    assert privileged_moves(far, unvisited(1, grid, torch.device("cpu")), grid).all()
    assert not visit(unvisited(1, grid, torch.device("cpu")), far, grid).any()


@pytest.mark.parametrize(
    ("name", "belief", "logits"),
    [("random", None, None), ("belief-greedy", (2, 25), None), ("airloc", None, (2, 8)), ("local", None, (2, 8))],
)
def test_states_offer_a_belief_or_logits_if_the_agent_has_them(name: str, belief, logits):
    agent, patches = make_agent(name), torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8)
    state = agent.reset(EpisodeBatch(patches, Grid(5, 5), 10, torch.rand(2, 10, 8)))
    _, state = agent.act(Observation(patches, torch.tensor([[2, 2], [0, 4]]), torch.tensor([10, 10])), state)
    found = [None if part is None else tuple(part.shape) for part in (belief_of(state), logits_of(state))]
    assert found == [belief, logits]


def test_a_state_with_both_attributes_implements_the_protocol():
    class State:
        belief = torch.ones(1, 4)
        logits = None

    assert isinstance(State(), AgentState)
