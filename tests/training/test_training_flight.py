import numpy as np
import pytest
import torch
from airloc.training.lstm import Tape

from airloc.agents.policy import VARIANTS, Policy
from airloc.grid import Grid
from airloc.rollout import rollout
from airloc.task import rules
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import all_pairs
from airloc.training import reinforce as flight_module
from airloc.training.features import Features, tabulate
from airloc.training.reinforce import Episodes, Validation, draw_episodes, fly
from untrained import GRID, Stage, untrained_airloc, untrained_encoder

BUDGET = 10
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas[:3])


@pytest.fixture(scope="module")
def seen(toy_areas) -> dict[bool, Features]:
    """What made eyes say of the areas, with and without segmentation."""
    pictures = np.stack([area.image for area in toy_areas[:3]])
    return {sem: tabulate(untrained_encoder(sem), pictures, GRID, BUDGET, device=CPU) for sem in (True, False)}


def of_suite(stage: Stage) -> Episodes:
    suite = stage.suite
    return Episodes(torch.from_numpy(suite.area)[None], numbered(suite.start)[None], numbered(suite.goal)[None])


def numbered(cells: np.ndarray) -> torch.Tensor:
    """Cells (..., 2) as numbers."""
    return torch.from_numpy(cells[..., 0] * GRID.cols + cells[..., 1])


def celled(numbers: torch.Tensor) -> torch.Tensor:
    """Numbers as cells (..., 2)."""
    return torch.stack([numbers // GRID.cols, numbers % GRID.cols], dim=-1)


@pytest.mark.parametrize(
    "name",
    [
        "airloc",
        "airloc-priv",
        "airloc-no-residual",
        "airloc-no-prior-priv",
        "airloc-no-sem-seg",
        "airloc-no-residual-no-sem-seg-priv",
    ],
)
def test_the_most_probable_moves_are_those_of_the_agent_played(stage, seen, name):
    agent = untrained_airloc(name)
    played = stage.play(agent)
    flight = fly(agent.policy, seen[VARIANTS[name].sem_seg], of_suite(stage), BUDGET, sample=False)
    distance = np.abs(played.path[:, :-1] - stage.suite.goal[:, None]).max(axis=2)  # (B, T)
    assert np.array_equal(flight.found[0].numpy(), played.found)
    assert np.array_equal(flight.flying[0].sum(dim=1).numpy(), played.steps)
    assert np.array_equal(flight.distance[0].numpy(), distance)


@pytest.mark.parametrize("name", ["airloc", "airloc-priv"])
def test_drawn_moves_are_played_by_the_rules_step_by_step(stage, seen, name):
    torch.manual_seed(0)
    policy, features = Policy(VARIANTS[name], 2), seen[True]
    episodes = draw_episodes(features, 2, 50)
    flight = fly(policy, features, episodes, BUDGET, sample=True)
    env = BatchEnv(stage.env.cells, BUDGET)
    area, start, goal = episodes.area.flatten(), *(celled(cells).flatten(0, 1) for cells in episodes[1:])
    position = env.reset(area, start, goal).position
    ended = found = torch.zeros(100, dtype=torch.bool)
    for step in range(BUDGET):
        assert torch.equal(flight.flying[..., step].flatten(), ~ended)
        assert torch.equal(flight.distance[..., step].flatten(), (position - goal).abs().amax(dim=1))
        (_, position, _), reward, found, ended = env.step(flight.action[..., step].flatten())
        assert torch.equal(flight.reward[..., step].flatten(), reward)
        if name == "airloc-priv":
            assert rules.inside(position, GRID).all()
    assert ended.all()
    assert torch.equal(flight.found.flatten(), found)
    assert 0 < int(found.sum()) < 100


def test_log_probabilities_are_those_of_moves_drawn_that_often(seen):
    """Flown often from one place, first moves come as often as their probabilities say."""
    torch.manual_seed(0)
    many = 4000
    middle = torch.full((1, many), 12)
    episodes, tape, policy = Episodes(middle * 0, middle, middle * 0), Tape(), Policy(VARIANTS["airloc-no-residual"])
    flight = fly(policy, seen[True], episodes, 1, sample=True, tape=tape)
    chances, counts = tape.log_prob(policy, flight.action).detach().exp().flatten().unique(return_counts=True)
    assert len(chances) == 8
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-4)
    torch.testing.assert_close(counts / many, chances, rtol=0, atol=0.03)


def test_several_policies_fly_as_each_would_alone(seen):
    torch.manual_seed(0)
    features, stacked, tape = seen[True], Policy(VARIANTS["airloc"], 3), Tape()
    episodes = draw_episodes(features, 3, 20)
    shared_jitter = fly(stacked, features, episodes, BUDGET, sample=False, tape=tape)
    log_prob = tape.log_prob(stacked, shared_jitter.action)
    for k in range(3):
        alone, own = Policy(VARIANTS["airloc"]), Tape()
        alone.load_state_dict({name: tensor[[k]] for name, tensor in stacked.state_dict().items()})
        flight = fly(alone, features, Episodes(*(part[[k]] for part in episodes)), BUDGET, sample=False, tape=own)
        assert torch.equal(flight.action[0], shared_jitter.action[k])
        torch.testing.assert_close(own.log_prob(alone, flight.action)[0], log_prob[k], rtol=1e-4, atol=1e-4)


def test_episodes_are_drawn_from_all_areas_and_pairs_with_start_and_goal_apart(seen):
    torch.manual_seed(0)
    episodes = draw_episodes(seen[True], 2, 20_000)
    assert episodes.area.unique().tolist() == [0, 1, 2]
    assert (episodes.start != episodes.goal).all()
    assert len((episodes.start * 25 + episodes.goal).unique()) == 25 * 24


def test_validation_is_the_success_of_the_agent_on_all_pairs_at_equal_distances(stage, seen, toy_areas):
    agent = untrained_airloc()
    suite = all_pairs([area.name for area in toy_areas[:3]], GRID, equal_distances=True)
    played = rollout(agent, suite, BatchEnv(CellTable.of(toy_areas[:3], GRID), BUDGET))
    expected = np.average(played.found, weights=suite.weight)
    assert float(Validation(seen[True], 1).success(agent.policy, BUDGET)) == pytest.approx(expected, abs=1e-5)
    assert float(Validation(seen[True], 1).weight.sum()) == pytest.approx(1.0, abs=1e-5)


def test_a_validation_is_the_same_however_many_areas_are_flown_at_once(seen, monkeypatch):
    torch.manual_seed(0)
    policy, validation, success = Policy(VARIANTS["airloc"], 2), Validation(seen[True], 2), []
    for at_once in (1, 2400, 10**6):
        monkeypatch.setattr(flight_module, "AT_ONCE", at_once)
        success.append(validation.success(policy, 3))
    assert success[0].shape == (2,)
    assert (success[0] > 0).all()
    for other in success[1:]:
        torch.testing.assert_close(other, success[0], rtol=0, atol=1e-6)


def test_small_grids_fly_far_outside_without_falling_off_the_table():
    grid = Grid(1, 3)
    pictures = np.zeros((1, *grid.size, 3), dtype=np.uint8)
    features = tabulate(untrained_encoder(), pictures, grid, 6, device=CPU)
    policy = Policy(VARIANTS["airloc"])
    for corner in range(8):
        with torch.no_grad():
            policy.offset.zero_()
            policy.offset[..., corner] = 1e6  # straight away in one direction
            fly(policy, features, draw_episodes(features, 1, 30), 6, sample=True)
