import dataclasses

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.airloc import AirlocAgent, LocalAgent, embed_pairs, encode_goals
from airloc.agents.inference import optimize_for_inference
from airloc.agents.policy import VARIANTS, Policy
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import MOVES
from airloc.task.batch import Observation
from airloc.task.rules import inside
from airloc.vision.position import encode_position
from untrained import GRID, Stage, untrained_airloc, untrained_encoder

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


@pytest.fixture(scope="module")
def small_stage(toy_areas) -> Stage:
    """Eight episodes, for tests that play one at a time."""
    return Stage(toy_areas[:2])


def begun(agent: AirlocAgent, stage: Stage) -> tuple[Observation, object]:
    """The first observation of the suite's episodes, and the agent's state before it."""
    area, start, goal = (torch.from_numpy(a) for a in (stage.suite.area, stage.suite.start, stage.suite.goal))
    observation = stage.env.reset(area, start, goal)
    noise = torch.rand(len(area), 10, 8, generator=torch.Generator().manual_seed(0))
    return observation, agent.reset(EpisodeBatch(stage.env.goal_patches(), GRID, 10, noise))


def test_batched_play_equals_one_at_a_time(small_stage: Stage):
    """The tests over all agents say so of every variant."""
    agent = untrained_airloc()
    whole = small_stage.play(agent)
    for batch in (1, 7):
        assert np.array_equal(small_stage.play(agent, batch=batch).path, whole.path)


@pytest.mark.parametrize("name", ["airloc", "airloc-no-residual", "airloc-no-prior", "airloc-no-sem-seg"])
def test_play_equals_the_units_applied_one_after_another(stage: Stage, name: str):
    agent, encoder = untrained_airloc(name), untrained_encoder(VARIANTS[name].sem_seg)
    observation, state = begun(agent, stage)
    goal = state.cache.goal
    memory = agent.policy.initial_state(len(goal))
    for _ in range(3):
        action, state = agent.act(observation, state)
        with torch.no_grad():
            c, u = encoder.embedder(encoder.preprocess(observation.patch), encoder.preprocess(goal))
            logits, memory = agent.policy((c + encode_position(observation.position))[None], u[None], memory)
        assert torch.equal(action, logits[0].argmax(dim=1))
        torch.testing.assert_close(state.prior, u, rtol=1e-4, atol=1e-3)
        observation = stage.env.step(action).observation


@pytest.mark.parametrize("name", ["airloc", "airloc-priv"])
def test_the_state_is_a_value(stage: Stage, name: str):
    agent = untrained_airloc(name)
    observation, state = begun(agent, stage)
    first, after = agent.act(observation, state)
    moved = stage.env.step(first).observation
    second, _ = agent.act(moved, after)
    again, after_again = agent.act(observation, state)
    assert torch.equal(first, again)
    assert torch.equal(second, agent.act(moved, after_again)[0])
    assert torch.equal(second, agent.act(moved, after)[0])


def test_variants_play_differently(stage: Stage):
    paths = {stage.play(untrained_airloc(name)).path.tobytes() for name in VARIANTS}
    assert len(paths) == len(VARIANTS)


def with_other_prior(agent: AirlocAgent) -> AirlocAgent:
    """Return the agent with another last layer of the embedder, which computes u."""
    encoder = untrained_encoder(agent.policy.variant.sem_seg)
    with torch.no_grad():
        encoder.embedder.prior.weight.neg_()
        encoder.embedder.prior.bias.add_(torch.arange(8.0))
    return dataclasses.replace(agent, encoder=optimize_for_inference(encoder))


def test_without_the_prior_its_layer_changes_nothing(small_stage: Stage):
    for name in ("airloc-no-prior", "airloc-no-prior-no-sem-seg-priv"):
        agent = untrained_airloc(name)
        assert np.array_equal(small_stage.play(agent).path, small_stage.play(with_other_prior(agent)).path)
    for name in ("airloc", "airloc-no-residual"):
        agent = untrained_airloc(name)
        assert not np.array_equal(small_stage.play(agent).path, small_stage.play(with_other_prior(agent)).path)


def test_the_residual_adds_the_prior_to_the_decision():
    torch.manual_seed(0)
    full, without = Policy(VARIANTS["airloc"]), Policy(VARIANTS["airloc-no-residual"])
    without.load_state_dict(full.state_dict())
    c, u = torch.randn(1, 4, 256), torch.randn(1, 4, 8)
    torch.testing.assert_close(full(c, u, full.initial_state(4))[0], without(c, u, without.initial_state(4))[0] + u)


def test_privileges_hold_after_the_residual(stage: Stage):
    agent = untrained_airloc("airloc-priv")
    with torch.no_grad():
        agent.encoder.embedder.prior.bias[0] = 1e6  # u would always go north, out of the area
    played = stage.play(agent)
    assert inside(played.path, GRID).all()
    north = played.path[played.path[:, 0, 0] > 0]
    assert (north[:, 1, 0] == north[:, 0, 0] - 1).all()
    free = untrained_airloc("airloc")
    with torch.no_grad():
        free.encoder.embedder.prior.bias[0] = 1e6
    assert not inside(stage.play(free).path, GRID).all()


def test_in_a_dead_end_airloc_priv_only_stays_inside(stage: Stage):
    agent = untrained_airloc("airloc-priv", sample=True)
    observation, state = begun(agent, stage)
    state = state._replace(visited=torch.ones_like(state.visited))
    action, _ = agent.act(observation, state)
    assert inside(observation.position + torch.from_numpy(MOVES)[action], GRID).all()


def test_airloc_samples_the_same_path_for_the_same_seed(stage: Stage):
    agent = untrained_airloc(sample=True)
    first = stage.play(agent)
    assert np.array_equal(first.path, stage.play(agent, batch=5).path)
    assert not np.array_equal(first.path, stage.play(agent, seed=4).path)


def test_decisions_depend_on_glimpse_goal_and_position_alone():
    """On black areas all episodes from one start follow the same path, wherever their goal is."""
    black = [SearchArea(f"black {n}", np.zeros((*GRID.size, 3), dtype=np.uint8)) for n in range(12)]
    dark = Stage(black)
    played = dark.play(untrained_airloc())
    flown: dict[tuple[int, ...], list[list[int]]] = {}
    for path, steps in zip(played.path.tolist(), played.steps, strict=True):
        known = flown.setdefault(tuple(path[0]), path[: steps + 1])
        shared = min(len(known), steps + 1)
        assert known[:shared] == path[:shared]
        flown[tuple(path[0])] = max(known, path[: steps + 1], key=len)


def test_other_episodes_of_the_batch_have_no_effect(stage: Stage):
    agent = untrained_airloc()
    whole = stage.play(agent)
    alone = Stage(stage.areas[2:3])
    part = stage.suite.area == 2
    object.__setattr__(alone.suite, "start", stage.suite.start[part])
    object.__setattr__(alone.suite, "goal", stage.suite.goal[part])
    assert np.array_equal(alone.play(agent).path, whole.path[part])


def untrained_local(*, privileged: bool = False, sample: bool = False) -> LocalAgent:
    return LocalAgent("local", optimize_for_inference(untrained_encoder()), privileged, sample)


def test_local_follows_the_prior_of_every_pair(stage: Stage):
    agent, encoder = untrained_local(), untrained_encoder()
    path = stage.play(agent).path
    cells, area = stage.env.cells, torch.from_numpy(stage.suite.area)
    goal = encoder.preprocess(cells.patches(area, torch.from_numpy(stage.suite.goal)))
    with torch.inference_mode():
        _, prior = encoder.embedder(encoder.preprocess(cells.patches(area, torch.from_numpy(path[:, 0]))), goal)
    assert np.array_equal(path[:, 1], path[:, 0] + MOVES[prior.argmax(dim=1).numpy()])


def test_local_plays_the_same_in_any_batch(small_stage: Stage):
    agent = untrained_local(privileged=True)
    whole = small_stage.play(agent)
    for batch in (1, 5):
        assert np.array_equal(small_stage.play(agent, batch=batch).path, whole.path)


def test_priv_local_never_leaves_and_revisits_only_in_a_dead_end(stage: Stage):
    played = stage.play(untrained_local(privileged=True))
    assert inside(played.path, GRID).all()
    for path, steps in zip(played.path.tolist(), played.steps, strict=True):
        cells = [tuple(cell) for cell in path[: steps + 1]]
        for t in range(1, len(cells)):
            if cells[t] in cells[:t]:
                assert all(neighbour in cells[:t] for neighbour in GRID.neighbours(cells[t - 1]))


def test_local_does_leave_or_revisit(stage: Stage):
    plain, privileged = stage.play(untrained_local()), stage.play(untrained_local(privileged=True))
    assert not np.array_equal(plain.path, privileged.path)


def test_in_a_dead_end_priv_local_only_stays_inside():
    sampler = untrained_local(privileged=True, sample=True)
    patch = torch.randint(0, 256, (1, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    corner = Observation(patch, torch.tensor([(0, 0)]), torch.tensor([10]))
    moves = set()
    for seed in range(40):
        noise = torch.rand(1, 10, 8, generator=torch.Generator().manual_seed(seed))
        state = sampler.reset(EpisodeBatch(patch, GRID, 10, noise))._replace(
            visited=torch.ones(1, 5, 5, dtype=torch.bool)
        )
        moves.add(int(sampler.act(corner, state)[0]))
    assert moves <= {2, 3, 4}


def test_local_samples_the_same_path_for_the_same_seed(stage: Stage):
    agent = untrained_local(sample=True)
    first = stage.play(agent)
    assert np.array_equal(first.path, stage.play(agent, batch=7).path)
    assert not np.array_equal(first.path, stage.play(agent, seed=4).path)
    assert not np.array_equal(first.path, stage.play(untrained_local()).path)


@torch.inference_mode()
def test_cached_embeddings_equal_the_embedder_on_every_pair():
    encoder = untrained_encoder()
    optimised = optimize_for_inference(encoder)
    cells = torch.randint(0, 256, (6, 48, 48, 3), dtype=torch.uint8)
    goal = cells[[0, 1, 2, 2]]
    cache = encode_goals(optimised, goal)
    for step in ([3, 3, 3, 3], [0, 1, 2, 3], [4, 5, 4, 5], [3, 3, 0, 1]):
        patch = cells[step]
        embedding, prior, cache = embed_pairs(optimised, patch, cache)
        direct = encoder.embedder(encoder.preprocess(patch), encoder.preprocess(goal))
        torch.testing.assert_close(embedding, direct[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(prior, direct[1], rtol=1e-4, atol=1e-4)
    assert len(cache.goals.rows) == 3
    assert len(cache.glimpses.rows) == 6


@torch.inference_mode()
def test_every_patch_of_a_batch_is_segmented_once(monkeypatch):
    encoder, sizes = optimize_for_inference(untrained_encoder()), []
    preprocess = encoder.preprocess
    monkeypatch.setattr(encoder, "preprocess", lambda patches: (sizes.append(len(patches)), preprocess(patches))[1])
    cells = torch.randint(0, 256, (5, 48, 48, 3), dtype=torch.uint8)
    cache = encode_goals(encoder, cells[[0, 0, 1]])
    for step in ([2, 3, 2], [0, 1, 4], [4, 4, 0]):
        _, _, cache = embed_pairs(encoder, cells[step], cache)
    assert sum(sizes) == 5


def test_an_encoder_in_training_mode_and_cells_of_another_size_are_refused():
    goal = torch.zeros(1, 48, 48, 3, dtype=torch.uint8)
    with pytest.raises(ValueError, match="eval"):
        encode_goals(untrained_encoder().train(), goal)
    with pytest.raises(AirlocError, match=r"48 x 48.*24 x 24"):
        encode_goals(untrained_encoder(), goal[:, ::2, ::2])
