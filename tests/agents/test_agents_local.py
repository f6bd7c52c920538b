import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.agent import EpisodeBatch, select_action
from airloc.agents.airloc import LocalAgent
from airloc.agents.inference import optimize_for_inference
from airloc.grid import MOVES
from airloc.task.batch import Observation
from airloc.task.rules import inside
from untrained import GRID, Stage, untrained_encoder


def made_local(*, privileged: bool = False, sample: bool = False) -> LocalAgent:
    return LocalAgent("local", optimize_for_inference(untrained_encoder()), privileged, sample)


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


def test_local_follows_the_prior_of_every_pair(stage: Stage):
    agent, encoder = made_local(), untrained_encoder()
    path = stage.play(agent).path
    cells, area = stage.env.cells, torch.from_numpy(stage.suite.area)
    goal = encoder.preprocess(cells.patches(area, torch.from_numpy(stage.suite.goal)))
    with torch.inference_mode():
        _, prior = encoder.embedder(encoder.preprocess(cells.patches(area, torch.from_numpy(path[:, 0]))), goal)
    assert np.array_equal(path[:, 1], path[:, 0] + MOVES[prior.argmax(dim=1).numpy()])


def test_batched_play_equals_one_at_a_time(stage: Stage):
    agent = made_local(privileged=True)
    whole = stage.play(agent)
    for batch in (1, 5):
        assert np.array_equal(stage.play(agent, batch=batch).path, whole.path)


def test_priv_local_never_leaves_and_revisits_only_in_a_dead_end(stage: Stage):
    played = stage.play(made_local(privileged=True))
    assert inside(played.path, GRID).all()
    for path, steps in zip(played.path.tolist(), played.steps, strict=True):
        cells = [tuple(cell) for cell in path[: steps + 1]]
        for t in range(1, len(cells)):
            if cells[t] in cells[:t]:
                assert all(neighbour in cells[:t] for neighbour in GRID.neighbours(cells[t - 1]))


def test_local_does_leave_or_revisit(stage: Stage):
    plain, privileged = stage.play(made_local()), stage.play(made_local(privileged=True))
    assert not np.array_equal(plain.path, privileged.path)


def test_in_a_dead_end_only_the_outside_stays_forbidden():
    sampler = made_local(privileged=True, sample=True)
    picture = torch.randint(0, 256, (1, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    corner = Observation(picture, torch.tensor([(0, 0)]), torch.tensor([10]))
    moves = set()
    for seed in range(40):
        noise = torch.rand(1, 10, 8, generator=torch.Generator().manual_seed(seed))
        state = sampler.reset(EpisodeBatch(picture, GRID, 10, noise))._replace(
            visited=torch.ones(1, 5, 5, dtype=torch.bool)
        )
        moves.add(int(sampler.act(corner, state)[0]))
    assert moves <= {2, 3, 4}


def test_the_same_seed_draws_the_same_path_and_another_seed_another(stage: Stage):
    agent = made_local(sample=True)
    first = stage.play(agent)
    assert np.array_equal(first.path, stage.play(agent, batch=7).path)
    assert not np.array_equal(first.path, stage.play(agent, seed=4).path)
    assert not np.array_equal(first.path, stage.play(made_local()).path)


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
