import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents import belief as belief_module
from airloc.agents.agent import EpisodeBatch
from airloc.agents.belief import BeliefAgent, BeliefState, log_prior, normalise, offset_logits, prepare_goals
from airloc.agents.matching import SamePlaceCalibration, similarity
from airloc.agents.planner import PLANNERS
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.scores import evaluate
from airloc.grid import Grid
from airloc.task import priors
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.rules import inside
from airloc.task.suites import all_pairs
from airloc.vision.offsets import ZERO_OFFSET
from airloc.vision.relation import RelationNetwork
from untrained import GRID, Stage, untrained_relation

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


@pytest.fixture(scope="module")
def agent() -> BeliefAgent:
    return BeliefAgent("belief", untrained_relation())


def begun(agent: BeliefAgent, stage: Stage) -> tuple[Observation, BeliefState]:
    """The first observation of the suite's episodes, and the agent's state before it."""
    area, start, goal = (torch.from_numpy(a) for a in (stage.suite.area, stage.suite.start, stage.suite.goal))
    observation = stage.env.reset(area, start, goal)
    noise = torch.rand(len(area), 10, 8, generator=torch.Generator().manual_seed(0))
    return observation, agent.reset(EpisodeBatch(stage.env.goal_patches(), GRID, 10, noise))


def flown(agent: BeliefAgent, stage: Stage) -> list[tuple[Observation, BeliefState]]:
    """Return observation and state at every step of the suite's episodes."""
    observation, state = begun(agent, stage)
    steps = []
    for _ in range(stage.suite.budget):
        action, state = agent.act(observation, state)
        steps.append((observation, state))
        observation = stage.env.step(action).observation
    return steps


def test_the_belief_sums_to_one_and_never_points_at_visited_cells(agent: BeliefAgent, stage: Stage):
    been = torch.zeros(len(stage.suite), GRID.count, dtype=torch.bool)
    for observation, state in flown(agent, stage):
        row, col = observation.position.unbind(1)
        been[torch.arange(len(been)), row * GRID.cols + col] = True
        assert torch.equal(state.visited, been)
        torch.testing.assert_close(state.belief.sum(dim=1), torch.ones(len(been)))
        assert (state.belief >= 0).all()
        assert (state.belief[been] == 0).all()
        assert ((state.match >= 0) & (state.match <= 1)).all()


def test_the_agent_stays_inside(agent: BeliefAgent, stage: Stage):
    for observation, _ in flown(agent, stage):
        assert inside(observation.position, GRID).all()


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("sample", [False, True])
def test_batched_play_equals_one_at_a_time_and_the_same_seed_gives_the_same_path(
    stage: Stage, agent: BeliefAgent, name: str, sample: bool
):
    playing, small = dataclasses.replace(agent, planner=PLANNERS[name], sample=sample), Stage(stage.areas[:1])
    whole = small.play(playing)
    for batch in (1, 3):
        assert np.array_equal(small.play(playing, batch=batch).path, whole.path)


def turned(areas: list[SearchArea]) -> list[SearchArea]:
    return [dataclasses.replace(area, image=np.rot90(area.image).copy()) for area in areas]


def test_rotated_areas_give_rotated_beliefs(agent: BeliefAgent, toy_areas):
    def beliefs(areas: list[SearchArea], path: list[tuple[int, int]], goal: tuple[int, int]) -> torch.Tensor:
        env = BatchEnv(CellTable.from_areas(areas, GRID), 10)
        everywhere = torch.arange(len(areas))
        env.reset(everywhere, torch.tensor([path[0]] * len(areas)), torch.tensor([goal] * len(areas)))
        state = agent.reset(EpisodeBatch(env.goal_patches(), GRID, 10, torch.zeros(len(areas), 10, 8)))
        for cell in path:
            observation = env.reset(everywhere, torch.tensor([cell] * len(areas)), torch.tensor([goal] * len(areas)))
            state = agent.observe(observation, state)
        return state.belief.view(-1, 5, 5)

    path, goal = [(2, 1), (3, 2), (3, 3)], (0, 4)
    straight = beliefs(toy_areas, path, goal)
    left = beliefs(turned(toy_areas), [(4 - col, row) for row, col in path], (4 - goal[1], goal[0]))
    torch.testing.assert_close(left, straight.rot90(1, (1, 2)), rtol=1e-3, atol=1e-5)


def test_evidence_is_the_sum_of_prior_and_offset_logits(agent: BeliefAgent, stage: Stage):
    observation, state = begun(agent, stage)
    goal = state.cache.goal
    with torch.inference_mode():
        first = agent.network.relate(
            agent.network.encode_patches(observation.patch), agent.network.encode_patches(goal)
        )
        alike = similarity(observation.patch, goal)
        first[:, ZERO_OFFSET] += agent.calibration.weight * (alike - agent.calibration.midpoint)
    after = agent.observe(observation, state)
    start, offset = observation.position[0].tolist(), first[0]
    for cell in GRID.cells():
        row, col = cell[0] - start[0], cell[1] - start[1]
        expected = (
            offset[(row + 4) * 9 + col + 4]
            + log_prior("per-distance", observation.position[:1], GRID)[0][GRID.index(cell)]
        )
        assert float(after.evidence[0, GRID.index(cell)]) == pytest.approx(float(expected), abs=1e-3)


def test_the_likelihood_power_applies_to_the_glimpses_and_not_to_the_prior(agent: BeliefAgent, stage: Stage):
    for power in (0.5, 1.0):
        _, state = flown(dataclasses.replace(agent, likelihood_power=power), stage)[2]
        likelihood = state.evidence - state.prior
        torch.testing.assert_close(state.belief, normalise(state.prior + power * likelihood, state.visited))
    assert agent.likelihood_power < 1


def test_a_second_visit_adds_no_evidence(agent: BeliefAgent, stage: Stage):
    observation, state = begun(agent, stage)
    once = agent.observe(observation, state)
    twice = agent.observe(observation, once)
    assert torch.equal(once.evidence, twice.evidence)
    assert torch.equal(once.belief, twice.belief)


def test_match_and_act_relate_a_glimpse_once(agent: BeliefAgent, stage: Stage, monkeypatch):
    observation, state = begun(agent, stage)
    probability, kept = agent.match(observation, state)
    calls: list[int] = []
    monkeypatch.setattr(agent.network, "relate", lambda *pair: calls.append(1))
    _, after = agent.act(observation, kept)
    assert not calls
    assert torch.equal(after.match, probability)
    assert kept.step == state.step
    assert torch.equal(kept.evidence, state.evidence)


def test_the_last_cell_is_not_a_match_for_lack_of_others(agent: BeliefAgent, stage: Stage):
    _, state = begun(agent, stage)
    count = len(stage.suite)
    for cell in GRID.cells():
        position = torch.tensor([cell] * count)
        state = agent.observe(Observation(grey(count), position, torch.full((count,), 10)), state)
    assert (state.match < 0.5).all()


def test_the_similarity_changes_the_match_and_no_path(agent: BeliefAgent, stage: Stage):
    without = dataclasses.replace(agent, calibration=SamePlaceCalibration(1.0, 0.0, 0.0))
    with_similarity = dataclasses.replace(agent, calibration=SamePlaceCalibration(1.0, 50.0, 0.2))
    for (_, similar), (_, plain) in zip(flown(with_similarity, stage), flown(without, stage), strict=True):
        assert torch.equal(similar.visited, plain.visited)
        torch.testing.assert_close(similar.belief, plain.belief)
    observation, state = begun(agent, stage)
    goal = observation._replace(patch=state.cache.goal, position=torch.tensor([[2, 2]] * len(stage.suite)))
    similar, plain = (who.observe(goal, begun(who, stage)[1]).match for who in (with_similarity, without))
    assert (similar > plain).all(), "similarity raises the probability of the goal itself"


def test_without_memory_only_the_last_glimpse_and_visited_cells_count(agent: BeliefAgent, stage: Stage):
    memoryless = dataclasses.replace(agent, memory=False)
    steps = flown(memoryless, stage)
    _, second = steps[1]
    assert not torch.allclose(second.belief, normalise(second.evidence, second.visited))
    assert (second.belief[second.visited] == 0).all()


def grey(count: int, value: int = 128) -> torch.Tensor:
    return torch.full((count, 48, 48, 3), value, dtype=torch.uint8)


@pytest.mark.parametrize("value", [0, 128, 255])
def test_a_uniform_goal_leaves_the_prior(agent: BeliefAgent, stage: Stage, value: int):
    observation, _ = begun(agent, stage)
    count = len(stage.suite)
    state = agent.reset(EpisodeBatch(grey(count, value), GRID, 10, torch.zeros(count, 10, 8)))
    action, state = agent.act(observation, state)
    prior = log_prior("per-distance", observation.position, GRID)
    torch.testing.assert_close(state.belief, normalise(prior, state.visited))
    assert action.shape == (count,)


def test_black_glimpses_leave_the_prior(agent: BeliefAgent, stage: Stage):
    observation, state = begun(agent, stage)
    blind = agent.observe(observation._replace(patch=grey(len(stage.suite), 0)), state)
    torch.testing.assert_close(
        blind.belief, normalise(log_prior("per-distance", observation.position, GRID), blind.visited)
    )


def test_on_a_black_area_it_searches_nearly_as_well_as_blind(agent: BeliefAgent):
    black = SearchArea("black", np.zeros((*GRID.size, 3), dtype=np.uint8))
    record = evaluate(agent, all_pairs(["black"], GRID, equal_distances=True), [black]).record()
    assert record["success"] > record["blind_optimum"] - 0.06, "the planner expects that glimpses reveal goals"


def test_goals_of_another_size_are_resampled_with_a_warning(agent: BeliefAgent, stage: Stage):
    observation, state = begun(agent, stage)
    large = state.cache.goal.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    with pytest.warns(UserWarning, match=r"96 x 96.*48 x 48"):
        resampled = agent.reset(EpisodeBatch(large, GRID, 10, torch.zeros(len(large), 10, 8)))
    assert resampled.cache.goal.shape == state.cache.goal.shape
    uniform = torch.full((1, 20, 30, 3), 77, dtype=torch.uint8)
    with pytest.warns(UserWarning, match="20 x 30"):
        assert (agent.reset(EpisodeBatch(uniform, GRID, 10, torch.zeros(1, 10, 8))).cache.goal == 77).all()
    assert agent.act(observation, resampled)[0].shape == (len(large),)


def test_cells_of_another_size_are_refused_with_the_cure(agent: BeliefAgent, stage: Stage):
    observation, state = begun(agent, stage)
    with pytest.raises(AirlocError, match=r"48 x 48.*32 x 32"):
        agent.act(observation._replace(patch=observation.patch[:, :32, :32]), state)


@given(
    rows=st.integers(1, 8),
    cols=st.integers(2, 8),
    moves=st.sampled_from([4, 8]),
    prior=st.sampled_from(["per-distance", "uniform"]),
)
@settings(max_examples=40, deadline=None)
def test_priors_equal_the_tasks_own_given_the_start(rows: int, cols: int, moves: int, prior: str):
    grid = Grid(rows, cols, moves=moves)
    joint = torch.from_numpy(priors.PRIORS[prior](grid))
    expected = joint / joint.sum(dim=1, keepdim=True)
    mine = log_prior(prior, torch.tensor(list(grid.cells())), grid).softmax(dim=1)
    torch.testing.assert_close(mine.double(), expected, rtol=1e-4, atol=1e-5)


def test_a_grid_of_100_by_100_cells_works(agent: BeliefAgent):
    grid = Grid(100, 100)
    generator = torch.Generator().manual_seed(0)
    patch, goal = torch.randint(0, 256, (2, 1, 48, 48, 3), dtype=torch.uint8, generator=generator)
    state = agent.reset(EpisodeBatch(goal, grid, 200, torch.zeros(1, 200, 8)))
    observation = Observation(patch, torch.tensor([[50, 7]]), torch.tensor([200]))
    action, state = agent.act(observation, state)
    assert state.belief.shape == (1, 10_000)
    assert float(state.belief.sum()) == pytest.approx(1, abs=1e-4)
    assert 0 <= int(action) < 8


ALONE = SamePlaceCalibration(scale=1.0, weight=0.0, midpoint=0.0)
"""The network without the similarity."""


@pytest.fixture(scope="module")
def network() -> RelationNetwork:
    return untrained_relation()


@pytest.fixture(scope="module")
def cells() -> torch.Tensor:
    return torch.randint(0, 256, (7, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("chunk", [1, 2, 32])
@torch.inference_mode()
def test_cached_logits_equal_the_network_for_any_chunk(network, cells, chunk, monkeypatch):
    monkeypatch.setattr(belief_module, "CHUNK", chunk)
    glimpses, goals = cells[[0, 1, 2, 2, 0]], cells[[3, 4, 3, 5, 3]]
    logits, _ = offset_logits(network, glimpses, prepare_goals(goals, ALONE))
    expected = network.relate(network.encode_patches(glimpses), network.encode_patches(goals))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_patches_that_episodes_share_are_encoded_once(network, cells, monkeypatch):
    sizes: list[int] = []
    encode = network.encode_patches
    monkeypatch.setattr(network, "encode_patches", lambda patches: sizes.append(len(patches)) or encode(patches))
    _, cache = offset_logits(network, cells[[0, 1, 1]], prepare_goals(cells[[2, 2, 0]], ALONE))
    assert sum(sizes) == 3
    offset_logits(network, cells[[2, 0, 4]], cache)
    assert sum(sizes) == 4


@torch.inference_mode()
def test_a_single_episode_keeps_only_the_encoding_of_its_goal_and_encodes_nothing_twice(network, cells, monkeypatch):
    cache = prepare_goals(cells[:1], ALONE)
    for number in (1, 2, 3):
        _, cache = offset_logits(network, cells[number : number + 1], cache)
        assert list(cache.encodings.rows) == cache.goal_keys.tolist()
    monkeypatch.setattr(network, "encode_patches", lambda patches: pytest.fail("the pair is cached"))
    offset_logits(network, cells[2:3], cache)
