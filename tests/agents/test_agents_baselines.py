import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents.baselines import lawnmower, moves_along, spiral
from airloc.agents.registry import CHECKPOINTS, available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.grid import Grid, distance
from airloc.rollout import RolloutLog, rollout
from airloc.task import suites
from airloc.task.batch import BatchEnv
from airloc.task.cells import CellTable
from airloc.task.rules import inside

pytestmark = pytest.mark.long

grids = st.builds(Grid, st.integers(1, 7), st.integers(2, 7), st.just(2), st.just(0))


def play_blank(name: str, grid: Grid, *, areas: int = 300, seed: int = 0) -> tuple[suites.Suite, RolloutLog]:
    """Play on black areas, with cells of 2 px for agents without a network."""
    tiny = grid if name in CHECKPOINTS else Grid(grid.rows, grid.cols, 2, 0)
    suite = suites.per_distance([str(n) for n in range(areas)], tiny, seed=seed)
    env = BatchEnv(CellTable([np.zeros((*tiny.size, 3), dtype=np.uint8)] * areas, tiny), suite.budget)
    return suite, rollout(make_agent(name), suite, env, seed=seed)


@pytest.mark.parametrize("name", available_agents())
def test_every_agent_plays_legal_episodes_on_any_grid(name: str):
    for grid in (Grid(5, 5), Grid(2, 3), Grid(1, 4)):
        suite, played = play_blank(name, grid, areas=2)
        jumps = np.abs(np.diff(played.path, axis=1)).max(axis=2)
        assert jumps.max() <= 1
        assert np.array_equal((played.path[:, -1] == suite.goal).all(axis=1), played.found)
        assert (played.steps[~played.found] == suite.budget).all()
        assert (played.steps >= suite.distance)[played.found].all()


@pytest.mark.parametrize("name", available_agents())
def test_the_same_seed_gives_the_same_path_in_any_batch(name: str, toy_areas: list[SearchArea]):
    grid = Grid(5, 5)
    areas, agent = toy_areas[:1], make_agent(name)
    suite = suites.per_distance([area.name for area in areas], grid)
    env = BatchEnv(CellTable.from_areas(areas, grid), suite.budget)
    assert len(suite) == 4
    whole, three_and_one = (rollout(agent, suite, env, seed=7, batch=batch).path for batch in (4, 3))
    assert np.array_equal(three_and_one, whole)


def test_other_seeds_give_other_random_paths():
    paths = [play_blank("random", Grid(5, 5), areas=5, seed=0)[1].path]
    suite, _ = play_blank("random", Grid(5, 5), areas=5)
    env = BatchEnv(CellTable([np.zeros((10, 10, 3), dtype=np.uint8)] * 5, suite.grid), suite.budget)
    paths.append(rollout(make_agent("random"), suite, env, seed=1).path)
    assert not np.array_equal(*paths)


def test_priv_random_finds_about_41_percent_on_5x5():
    _, played = play_blank("priv-random", Grid(5, 5), areas=5000)
    assert played.found.mean() == pytest.approx(0.41, abs=0.012)


def test_blind_finds_its_optimum_of_52_percent_on_5x5():
    _, played = play_blank("blind", Grid(5, 5), areas=5000)
    assert played.found.mean() == pytest.approx(0.521, abs=0.012)


def test_no_baseline_beats_the_blind_optimum():
    for name in ("random", "priv-random", "lawnmower", "spiral"):
        _, played = play_blank(name, Grid(5, 5), areas=2000)
        assert played.found.mean() < 0.521 + 0.02


def test_priv_random_never_leaves_and_revisits_only_in_a_dead_end():
    grid = Grid(4, 4)
    suite, played = play_blank("priv-random", grid, areas=500)
    for path, steps in zip(played.path.tolist(), played.steps, strict=True):
        cells = [tuple(cell) for cell in path[: steps + 1]]
        assert all(grid.contains(cell) for cell in cells)
        for t in range(1, len(cells)):
            if cells[t] in cells[:t]:
                assert all(neighbour in cells[:t] for neighbour in grid.neighbours(cells[t - 1]))
    assert suite.budget == 8


def test_random_does_leave_the_area():
    _, played = play_blank("random", Grid(3, 3), areas=50)
    assert not inside(played.path, Grid(3, 3)).all()


@given(grids, st.integers(0, 48), st.sampled_from([lawnmower, spiral]))
def test_plans_fly_neighbouring_cells_inside_and_cover_the_grid_in_time(grid: Grid, number: int, plan):
    start = grid.cell_of(number % grid.count)
    path = plan(grid, 6 * grid.count, start)
    assert path[0] == start
    assert len(moves_along(path)) == 6 * grid.count
    assert all(grid.contains(cell) for cell in path)
    assert set(path) == set(grid.cells())


def test_the_lawnmower_sweeps_lines_from_the_nearest_corner():
    assert lawnmower(Grid(3, 3), 9, (1, 1)) == [
        (1, 1), (0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip


def test_the_spiral_is_the_expanding_square():
    assert spiral(Grid(5, 5), 9, (2, 2)) == [
        (2, 2), (1, 2), (1, 3), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1), (1, 1), (0, 1),
    ]  # fmt: skip


def test_plans_are_within_reach_of_the_start():
    for start in Grid(5, 5).cells():
        path = lawnmower(Grid(5, 5), 10, start)
        assert all(distance(path[t], start) <= t for t in range(11))
