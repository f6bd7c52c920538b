"""Goals in words are checked and controlled, and a find of any cell that fits counts besides the one meant."""

import numpy as np
import pytest

from airloc.agents.registry import make_agent
from airloc.errors import AirlocError
from airloc.evaluation.texts import DescribedGoals, check_reader, check_texts, fitting_metric
from airloc.grid import Grid
from airloc.rollout import RolloutLog
from airloc.task.goal_texts import SuiteTexts
from airloc.task.suites import Suite

GRID = Grid(2, 2)


def suite_of(*episodes: tuple[int, tuple[int, int], tuple[int, int]]) -> Suite:
    """Episodes of area, start and goal."""
    area, start, goal = (np.array(part) for part in zip(*episodes, strict=True))
    return Suite("some", GRID, 2, ("a.jpg", "b.jpg"), area, start, goal)


SUITE = suite_of((0, (0, 0), (0, 1)), (0, (0, 0), (1, 1)), (1, (0, 0), (1, 0)))


def test_what_descriptions_of_a_suite_lack_is_said_once_with_the_number_of_goals():
    texts = SuiteTexts(["", "Häuser mit roten Dächern neben einem Teich", "Fly north\x07 and land beside the pond"])
    warnings = check_texts(SUITE, texts)
    assert [warning.partition(" (")[2] for warning in warnings] == ["1 of 3 goals)"] * 4
    wanted = ("without words", "English", "Control characters", "instruction")
    assert all(word in warning for word, warning in zip(wanted, warnings, strict=True))
    assert check_texts(SUITE, SuiteTexts(["a pond"] * 3)) == []


def test_a_description_that_is_too_long_is_refused_with_its_area_and_cell():
    with pytest.raises(AirlocError, match=r"10,000 words, and the most is 200 \(cell \(1, 1\) of 'a.jpg'\)"):
        check_texts(SUITE, SuiteTexts(["a pond", "pond " * 10_000, "a road"]))


def test_a_wrong_text_is_of_another_area_and_no_text_is_empty():
    texts = SuiteTexts(["a pond", "a road", "the sea"])
    right, wrong, none = (
        DescribedGoals(texts, control=control).inputs(SUITE, seed=0)["goal_texts"]
        for control in (None, "wrong-text", "no-text")
    )
    assert np.array_equal(wrong[:2], right[[2, 2]])
    assert np.array_equal(wrong[2], right[0]) or np.array_equal(wrong[2], right[1])
    assert not none.any()
    with pytest.raises(AirlocError, match="only one"):
        DescribedGoals(texts, control="wrong-text").inputs(suite_of((0, (0, 0), (0, 1))), seed=0)


def test_true_text_knows_which_cells_fit_and_needs_them():
    fits = np.zeros((3, GRID.count), dtype=np.bool_)
    fits[:, 3] = True
    prior = DescribedGoals(SuiteTexts(["x"] * 3, fits), control="true-text").inputs(SUITE, seed=0)["goal_prior"]
    assert prior.argmax(dim=1).tolist() == [3, 3, 3]
    with pytest.raises(AirlocError, match="needs the cells that fit"):
        DescribedGoals(SuiteTexts(["x"] * 3), control="true-text").inputs(SUITE, seed=0)


def test_a_path_to_another_cell_that_fits_is_a_find_of_one_that_fits_but_the_start_is_none():
    path = np.array([[[0, 0], [1, 0], [1, 0]], [[0, 0], [0, 1], [0, 1]], [[0, 0], [0, 1], [1, 1]]])
    fits = np.array([[1, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0]], dtype=np.bool_)
    log = RolloutLog("x", SUITE, path, np.array([False] * 3), np.array([2] * 3))
    assert fitting_metric(log, SuiteTexts(["x"] * 3, fits))["found_fitting"].value() == pytest.approx(1 / 3)
    assert fitting_metric(log, SuiteTexts(["x"] * 3)) == {}


@pytest.mark.parametrize("name", ["airloc", "local"])
def test_an_agent_that_needs_a_picture_reads_no_descriptions(name: str):
    with pytest.raises(AirlocError, match="reads no descriptions"):
        check_reader(make_agent(name))
