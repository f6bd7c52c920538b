"""Policy training: rollouts, returns, gradients and validation."""

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch

from airloc.agents.agent import privileged_moves, unvisited, visit
from airloc.agents.policy import VARIANTS, Policy
from airloc.areas.area import fit
from airloc.grid import Grid
from airloc.rollout import rollout as play
from airloc.task import rules
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.suites import all_pairs, per_distance
from airloc.training import reinforce
from airloc.training.features import FeatureTable, tabulate
from airloc.training.learner import Learner
from airloc.training.reinforce import (
    Episodes,
    PolicyConfig,
    Validation,
    reinforce_update,
    roll_out,
    sample_episodes,
)
from airloc.training.returns import normalise_by_group
from airloc.vision.position import PositionEncoding, encode_position
from untrained import GRID, Stage, untrained_airloc, untrained_encoder

pytestmark = pytest.mark.long

BUDGET = 10
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas[:3])


@pytest.fixture(scope="module")
def seen(toy_areas) -> dict[bool, FeatureTable]:
    """Features of the areas from an untrained encoder, with and without segmentation."""
    areas = np.stack([area.image for area in toy_areas[:3]])
    return {sem: tabulate(untrained_encoder(sem), areas, GRID, BUDGET, device=CPU) for sem in (True, False)}


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
    rollout = roll_out(agent.policy, seen[VARIANTS[name].sem_seg], of_suite(stage), BUDGET, sample=False)
    distance = np.abs(played.path[:, :-1] - stage.suite.goal[:, None]).max(axis=2)  # (B, T)
    assert np.array_equal(rollout.found[0].numpy(), played.found)
    assert np.array_equal(rollout.active[0].sum(dim=1).numpy(), played.steps)
    assert np.array_equal(rollout.distance[0].numpy(), distance)


@pytest.mark.parametrize(
    ("name", "reward"),
    [("airloc", None), ("airloc-priv", None), ("airloc", lambda found, before, after: 4 * found + before - after)],
)
def test_drawn_moves_are_played_by_the_rules_step_by_step(stage, seen, name, reward):
    torch.manual_seed(0)
    policy, features = Policy(VARIANTS[name], 2), seen[True]
    episodes = sample_episodes(features, 2, 50)
    rollout = roll_out(policy, features, episodes, BUDGET, sample=True, reward=reward)
    env = BatchEnv(stage.env.cells, BUDGET, reward=reward)
    area, start, goal = episodes.area.flatten(), *(celled(cells).flatten(0, 1) for cells in episodes[1:])
    position = env.reset(area, start, goal).position
    ended = found = torch.zeros(100, dtype=torch.bool)
    for step in range(BUDGET):
        assert torch.equal(rollout.active[..., step].flatten(), ~ended)
        assert torch.equal(rollout.distance[..., step].flatten(), (position - goal).abs().amax(dim=1))
        (_, position, _), rewards, found, ended = env.step(rollout.action[..., step].flatten())
        assert torch.equal(rollout.reward[..., step].flatten(), rewards)
        if name == "airloc-priv":
            assert rules.inside(position, GRID).all()
    assert ended.all()
    assert torch.equal(rollout.found.flatten(), found)
    assert 0 < int(found.sum()) < 100


def test_moves_are_sampled_with_their_probabilities(seen):
    """From one place, the frequencies of first moves approach their probabilities."""
    torch.manual_seed(0)
    many = 4000
    middle = torch.full((1, many), 12)
    episodes, policy = Episodes(middle * 0, middle, middle * 0), Policy(VARIANTS["airloc-no-residual"])
    rollout = roll_out(policy, seen[True], episodes, 1, sample=True)
    chances, counts = rollout.log_prob.detach().exp().flatten().unique(return_counts=True)
    assert len(chances) == 8
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-4)
    torch.testing.assert_close(counts / many, chances, rtol=0, atol=0.03)


def test_stacked_policies_act_as_each_would_alone(seen):
    torch.manual_seed(0)
    features, stacked = seen[True], Policy(VARIANTS["airloc"], 3)
    episodes = sample_episodes(features, 3, 20)
    together = roll_out(stacked, features, episodes, BUDGET, sample=False)
    for k in range(3):
        alone = Policy(VARIANTS["airloc"])
        alone.load_state_dict({name: tensor[[k]] for name, tensor in stacked.state_dict().items()})
        own = roll_out(alone, features, Episodes(*(part[[k]] for part in episodes)), BUDGET, sample=False)
        assert torch.equal(own.action[0], together.action[k])
        torch.testing.assert_close(own.log_prob[0], together.log_prob[k], rtol=1e-4, atol=1e-4)


def test_episodes_are_sampled_from_all_areas_and_all_pairs_of_different_cells(seen):
    torch.manual_seed(0)
    episodes = sample_episodes(seen[True], 2, 20_000)
    assert episodes.area.unique().tolist() == [0, 1, 2]
    assert (episodes.start != episodes.goal).all()
    assert len((episodes.start * 25 + episodes.goal).unique()) == 25 * 24


def test_validation_is_the_success_of_the_agent_on_all_pairs_at_equal_distances(stage, seen, toy_areas):
    agent = untrained_airloc()
    suite = all_pairs([toy_areas[0].name], GRID, equal_distances=True)
    played = play(agent, suite, BatchEnv(CellTable.from_areas(toy_areas[:1], GRID), BUDGET))
    expected = np.average(played.found, weights=suite.weight)
    features = replace(seen[True], areas=1)
    assert float(Validation(features, 1).success(agent.policy, BUDGET)) == pytest.approx(expected, abs=1e-5)
    assert float(Validation(features, 1).weight.sum()) == pytest.approx(1.0, abs=1e-5)


def test_the_papers_validation_is_one_fixed_episode_for_each_distance_and_area(stage, seen):
    agent = untrained_airloc()
    validation = Validation(seen[True], 1, "episodes")
    assert len(validation.weight) == 3 * 4
    suite = per_distance([area.name for area in stage.areas], GRID)
    assert np.array_equal(celled(validation.episodes.goal), suite.goal)
    played = play(agent, suite, stage.env)
    assert float(validation.success(agent.policy, BUDGET)) == pytest.approx(played.found.mean(), abs=1e-6)


@pytest.mark.parametrize("encoding", [PositionEncoding(), PositionEncoding("printed", "raw")])
def test_on_a_larger_grid_the_agent_reads_the_positions_of_its_training(encoding, toy_areas):
    large = Grid(6, 6)
    areas = [fit(area, large) for area in toy_areas[:2]]
    agent = replace(untrained_airloc(), position_encoding=encoding)
    images = np.stack([area.image for area in areas])
    features = tabulate(agent.encoder, images, large, 12, device=CPU, training_grid=GRID, position=encoding)
    suite = per_distance([area.name for area in areas], large)
    played = play(agent, suite, BatchEnv(CellTable.from_areas(areas, large), 12))
    cells = ((each[:, 0] * large.cols + each[:, 1])[None] for each in (suite.start, suite.goal))
    episodes = Episodes(*(torch.from_numpy(column) for column in (suite.area[None], *cells)))
    rollout = roll_out(agent.policy, features, episodes, 12, sample=False)
    assert np.array_equal(rollout.active[0].sum(dim=1).numpy(), played.steps)


def test_normalised_rewards_have_no_mean_at_any_distance_and_only_single_steps_vary(seen, monkeypatch):
    torch.manual_seed(0)
    config = PolicyConfig(normalise="rewards", gamma=0.0, batch=400)
    losses, rollouts = [], []

    def recorded(*arguments, **options):
        rollouts.append(roll_out(*arguments, **options))
        return rollouts[-1]

    monkeypatch.setattr(reinforce, "roll_out", recorded)
    reinforce_update(Policy(VARIANTS["airloc"]), SimpleNamespace(step=losses.append), seen[True], config)
    (rollout,) = rollouts
    active = rollout.active[0]
    near = active & (rollout.distance[0] == 1)
    found = rollout.reward[0][near] == 2
    share = float(found.float().mean())
    scaled = torch.where(found, (1 - share), -share) / (share * (1 - share)) ** 0.5
    expected = -(rollout.log_prob[0][near] * scaled).sum() / active.sum()
    assert losses[0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_a_validation_is_the_same_for_any_number_of_areas_at_once(seen, monkeypatch):
    torch.manual_seed(0)
    policy, validation, success = Policy(VARIANTS["airloc"], 2), Validation(seen[True], 2), []
    for at_once in (301, 2400, 10**6):
        monkeypatch.setattr(reinforce, "VALIDATION_BATCH", at_once)
        success.append(validation.success(policy, 3))
    assert success[0].shape == (2,)
    assert (success[0] > 0).all()
    for other in success[1:]:
        torch.testing.assert_close(other, success[0], rtol=0, atol=1e-6)


def test_small_grids_fly_far_outside_without_falling_off_the_table():
    grid = Grid(1, 3)
    areas = np.zeros((1, *grid.size, 3), dtype=np.uint8)
    features = tabulate(untrained_encoder(), areas, grid, 6, device=CPU)
    policy = Policy(VARIANTS["airloc"])
    for corner in range(8):
        with torch.no_grad():
            policy.offset.zero_()
            policy.offset[..., corner] = 1e6  # straight away in one direction
            roll_out(policy, features, sample_episodes(features, 1, 30), 6, sample=True)


class Reference(NamedTuple):
    """The steps of the reference rollout, each (T, K, B), and its outcome."""

    action: torch.Tensor
    log_prob: torch.Tensor
    reward: torch.Tensor
    active: torch.Tensor
    distance: torch.Tensor
    found: torch.Tensor


def reference_rollout(policy: Policy, features: FeatureTable, episodes: Episodes, noise: torch.Tensor) -> Reference:
    """Roll out with the rules of the task and the privileged moves of agents, step by step."""
    area, position, goal = episodes.area, *(celled(cell) for cell in episodes[1:])
    memory, steps = policy.initial_state(area.shape[1]), torch.zeros_like(area)
    active, visited = torch.ones_like(area, dtype=torch.bool), unvisited(area.numel(), GRID, area.device)
    record = []
    for chance in noise:
        cell = torch.where(rules.inside(position, GRID), position[..., 0] * GRID.cols + position[..., 1], GRID.count)
        pair = features.table[(area * (GRID.count + 1) + cell) * GRID.count + episodes.goal]
        logits, memory = policy(pair[..., :256] + encode_position(position), pair[..., 256:], memory)
        if policy.variant.priv:
            visited = visit(visited, position.flatten(0, 1), GRID)
            allowed = privileged_moves(position.flatten(0, 1), visited, GRID)
            logits = logits.masked_fill(~allowed.view_as(logits), -1e9)
        action = (logits.detach() + chance).argmax(dim=2)
        log_prob = logits.log_softmax(dim=2).gather(2, action[..., None])[..., 0]
        out = rules.move(position, steps, goal, action, moves=rules.moves_on(area.device), budget=BUDGET)
        record.append((action, log_prob, out.reward * active, active, (position - goal).abs().amax(dim=2)))
        position = torch.where(active[..., None], out.position, position)
        steps, active = out.steps, active & ~out.found
    return Reference(*(torch.stack(column) for column in zip(*record, strict=True)), ~active)


def reference_loss(rollout: Reference) -> torch.Tensor:
    returns = [rollout.reward[-1].float()]
    for earlier in reversed(rollout.reward[:-1].unbind()):
        returns.append(earlier + 0.9 * returns[-1])
    value, group, active, log_prob = (
        column.transpose(0, 1).flatten(1)
        for column in (torch.stack(returns[::-1]), rollout.distance, rollout.active.float(), rollout.log_prob)
    )
    advantage = normalise_by_group(value, group, active, GRID.max_distance + BUDGET + 1)
    return -((log_prob * advantage * active).sum(dim=1) / active.sum(dim=1)).sum()


@pytest.mark.parametrize("name", ["airloc", "airloc-priv", "airloc-no-residual", "airloc-no-prior-priv"])
def test_a_rollout_and_the_gradient_of_an_update_are_those_of_the_reference(seen, name, monkeypatch):
    torch.manual_seed(0)
    policies, batch, features = 2, 40, seen[True]
    policy = Policy(VARIANTS[name], policies)
    episodes = sample_episodes(features, policies, batch)
    before = torch.get_rng_state()
    rollout = roll_out(policy, features, episodes, BUDGET, sample=True)
    torch.set_rng_state(before)
    noise = -torch.empty(BUDGET, policies, batch, 8).exponential_().log()
    expected = reference_rollout(policy, features, episodes, noise)

    on = rollout.active  # steps after the end do not count
    assert 0 < int(rollout.found.sum()) < rollout.found.numel()
    assert torch.equal(rollout.action[on], expected.action.permute(1, 2, 0)[on])
    for column in ("reward", "active", "distance"):
        assert torch.equal(getattr(rollout, column), getattr(expected, column).permute(1, 2, 0)), column
    assert torch.equal(rollout.found, expected.found)
    torch.testing.assert_close(rollout.log_prob[on], expected.log_prob.permute(1, 2, 0)[on], rtol=1e-4, atol=1e-5)

    names, parameters = zip(*policy.named_parameters(), strict=True)
    wanted = dict(zip(names, torch.autograd.grad(reference_loss(expected), parameters), strict=True))
    torch.set_rng_state(before)
    monkeypatch.setattr(reinforce, "sample_episodes", lambda *_: episodes)
    learner = Learner(policy, 0.0)
    reinforce_update(policy, learner, features, PolicyConfig(variant=policy.variant, seeds=policies, batch=batch))
    for parameter, gradient in wanted.items():
        assert gradient.abs().max() > 0
        torch.testing.assert_close(getattr(policy, parameter).grad, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["airloc", "airloc-no-prior-priv"])
def test_on_a_gpu_log_probabilities_and_gradients_are_those_of_a_cpu(seen, name):
    torch.manual_seed(0)
    fast, slow = Policy(VARIANTS[name], 2).cuda(), Policy(VARIANTS[name], 2)
    slow.load_state_dict(fast.state_dict())
    episodes = sample_episodes(seen[True], 2, 30)
    found = []
    for policy, device in ((slow, "cpu"), (fast, "cuda")):
        here = Episodes(*(part.to(device) for part in episodes))
        rollout = roll_out(policy, moved(seen[True], device), here, BUDGET, sample=False)
        gradients = torch.autograd.grad(rollout.log_prob.sum(), list(policy.parameters()))
        found.append([rollout.action, rollout.log_prob, *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.cpu(), rtol=1e-2, atol=1e-2)


def moved(features: FeatureTable, device: str) -> FeatureTable:
    return FeatureTable(
        features.grid, features.areas, features.table.to(device), features.positions.to(device), features.reach
    )
