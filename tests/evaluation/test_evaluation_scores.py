"""Scores, controls and records of `evaluate`."""

import json

import numpy as np
import pytest
import torch

from airloc.agents import blind
from airloc.agents.agent import EpisodeBatch
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.controls import mean_goal, wrong_goal
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.evaluation.scores import compare, evaluate, to_json, trajectory_lines
from airloc.grid import Grid
from airloc.task import suites
from airloc.task.batch import Observation
from airloc.task.cells import CellTable

GRID = Grid(5, 5)


class Seer:
    """Knows all areas: finds every goal by the shortest path if it receives the right goal patch."""

    name = "seer"

    def __init__(self, areas: list[SearchArea]) -> None:
        cells = CellTable.from_areas(areas, GRID).array[:-1]
        self.places = {patch.tobytes(): GRID.cell_of(n % GRID.count) for n, patch in enumerate(cells)}

    def reset(self, episodes: EpisodeBatch) -> torch.Tensor:
        cells = [self.places.get(patch.numpy().tobytes(), (0, 0)) for patch in episodes.goal]
        return torch.tensor(cells)

    def act(self, observation: Observation, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        from airloc.agents.baselines import MOVE_NUMBER

        step = torch.sign(state - observation.position).tolist()
        return torch.tensor([MOVE_NUMBER.get((row, col), 0) for row, col in step]), state


@pytest.fixture(scope="module")
def suite(toy_areas: list[SearchArea]) -> suites.Suite:
    return suites.per_distance([area.name for area in toy_areas], GRID)


def test_a_perfect_agent_scores_perfectly(toy_areas: list[SearchArea], suite: suites.Suite):
    record = evaluate(Seer(toy_areas), suite, toy_areas).record()
    assert record["success"] == 1
    assert record["steps"] == 2.5
    assert record["step_ratio"] == record["step_ratio_table"] == 1
    assert record["residual_distance"] is None
    assert record["ci95"]["success"] == [1, 1]
    assert record["ci95"]["residual_distance"] == [None, None]


@pytest.mark.parametrize("control", ["wrong-goal", "mean-goal"])
def test_controls_take_the_eyes_of_an_agent_that_looks(toy_areas, suite, control: str):
    assert evaluate(Seer(toy_areas), suite, toy_areas, control=control).value("success") < 0.6


def test_controls_change_nothing_for_an_agent_that_does_not_look(toy_areas, suite):
    plain, swapped = (
        evaluate(make_agent("priv-random"), suite, toy_areas, control=control) for control in (None, "wrong-goal")
    )
    assert np.array_equal(plain.log.path, swapped.log.path)


def test_goals_may_come_from_other_pictures_of_the_same_ground(toy_areas, suite):
    darker = [SearchArea(area.name, area.image // 2) for area in toy_areas]
    assert evaluate(Seer(darker), suite, toy_areas, goal_areas=darker).value("success") == 1
    assert evaluate(Seer(toy_areas), suite, toy_areas, goal_areas=darker).value("success") < 0.6


def test_a_wrong_goal_comes_from_another_area(toy_areas, suite):
    cells = CellTable.from_areas(toy_areas, GRID)
    shown = wrong_goal(suite, cells, 0)(torch.arange(len(suite))).numpy()
    of_area = [{patch.tobytes() for patch in cells.array[25 * n : 25 * n + 25]} for n in range(6)]
    assert all(patch.tobytes() not in of_area[area] for patch, area in zip(shown, suite.area, strict=True))
    with pytest.raises(AirlocError, match="at least two"):
        wrong_goal(suites.per_distance(["x"], GRID), CellTable.from_areas(toy_areas[:1], GRID), 0)


def test_a_mean_goal_is_the_same_for_all(toy_areas, suite):
    shown = mean_goal(suite, CellTable.from_areas(toy_areas, GRID), 0)(torch.arange(4))
    assert shown.shape == (4, 48, 48, 3)
    assert (shown == shown[0]).all()


def test_the_record_has_every_key_of_the_contract_and_is_plain_json(toy_areas, suite):
    record = json.loads(to_json(evaluate(make_agent("random"), suite, toy_areas).record()))
    for key in ("success", "steps", "step_ratio", "step_ratio_table", "residual_distance"):
        assert key in record
        assert len(record["ci95"][key]) == 2
    assert (record["agent"], record["episodes"], record["areas"]) == ("random", 24, 6)
    assert set(record["success_by_distance"]) == {"1", "2", "3", "4"}
    assert record["runtime_ms"] > 0
    assert record["blind_optimum"] == pytest.approx(0.5211, abs=1e-4)


def test_without_timing_the_same_seed_gives_the_same_bytes(toy_areas, suite):
    texts = {to_json(evaluate(make_agent("random"), suite, toy_areas).record(timing=False)) for _ in range(2)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["runtime_ms"] is None


def test_areas_of_one_tile_are_one_cluster(toy_areas, suite):
    tiled = [SearchArea(area.name, area.image, tile=f"tile {n // 2}") for n, area in enumerate(toy_areas)]
    assert evaluate(make_agent("random"), suite, tiled).record()["clusters"] == 3


def test_blind_optimum_is_in_expectation_for_generated_suites_and_exact_for_lists(toy_areas):
    names = [area.name for area in toy_areas]
    drawn = suites.per_distance(names, GRID)
    listed = suites.Suite("file", GRID, 10, drawn.areas, drawn.area, drawn.start, drawn.goal)
    pairs = suites.all_pairs(names, GRID, equal_distances=True)
    assert blind_optimum(drawn) == pytest.approx(0.52114, abs=1e-5)
    assert blind_optimum(pairs) == pytest.approx(0.52114, abs=1e-5)
    assert blind_optimum(suites.uniform(names, GRID)) == pytest.approx(10 / 24, abs=1e-9)
    assert blind_optimum_is_exact(drawn)
    flights = [evaluate(make_agent("blind"), listed, toy_areas).value("success")]
    for seed in range(1, 60):
        from airloc.agents.registry import AgentOptions

        flights.append(evaluate(make_agent("blind", AgentOptions(seed)), listed, toy_areas).value("success"))
    assert np.mean(flights) == pytest.approx(blind_optimum(listed), abs=0.03)


def test_a_floor_counts_as_proven_only_for_all_starts_and_all_paths_that_it_is_a_mean_of():
    grid = Grid(8, 8)
    exact = {start: blind.is_exact(grid, 4, [start]) for start in grid.cells()}
    assert blind_optimum_is_exact(suites.per_distance(["a"], grid, budget=4)) == all(exact.values())
    line = suites.per_distance(["a"], Grid(1, 60), budget=20)
    listed = suites.Suite("file", line.grid, 20, line.areas, line.area, line.start, line.goal)
    complete = blind.is_complete(line.grid, 20, [(0, int(col)) for col in line.start[:, 1]])
    assert blind_optimum_is_exact(listed) == complete


def test_a_paired_comparison_counts_who_found_what(toy_areas, suite):
    seer, random = (evaluate(agent, suite, toy_areas) for agent in (Seer(toy_areas), make_agent("random")))
    record = compare(seer, random)
    assert record["found_by_second_only"] == 0
    assert record["found_by_first_only"] == int((~random.log.found).sum())
    low, high = record["metrics"]["success"]["ci95"]
    assert 0 < low <= record["metrics"]["success"]["difference"] <= high


def test_trajectory_lines_replay_to_the_same_result(toy_areas, suite):
    score = evaluate(make_agent("priv-random"), suite, toy_areas)
    lines = [json.loads(line) for line in trajectory_lines(score).splitlines()]
    assert len(lines) == 24
    for line, found in zip(lines, score.log.found, strict=True):
        assert line["path"][0] == line["start"]
        assert len(line["path"]) == line["steps"] + 1
        assert (line["path"][-1] == line["goal"]) == found == line["found"]


def test_an_unknown_control_is_refused(toy_areas, suite):
    with pytest.raises(AirlocError, match="wrong-goal"):
        evaluate(make_agent("random"), suite, toy_areas, control="no-goal")


def test_finds_false_alarms_and_misses_sum_to_one(toy_areas: list[SearchArea], suite: suites.Suite):
    score = evaluate(make_agent("lawnmower"), suites.end_by_declaration(suite), toy_areas, threshold=0.02)
    parts = [score.value(name) for name in ("success", "false_alarms", "missed")]
    assert sum(parts) == pytest.approx(1)
    assert parts[0] > 0
    assert parts[2] > 0
