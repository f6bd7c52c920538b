"""Files of goal texts are read with clear errors, and environments observe the description of the goal."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.goal_texts import TEXT_SHAPE, GoalText, read_goal_texts, texts_of, write_goal_texts
from airloc.task.suites import per_distance

GRID = Grid(2, 2)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_written_is_read_again(tmp_path: Path):
    rows = [
        ("a, b.jpg", (0, 1), GoalText('a "pond", trees\nand a road', ((0, 1), (1, 1)))),
        ("ü.jpg", (1, 0), GoalText("")),
    ]
    path = write(tmp_path / "texts.csv", write_goal_texts(rows))
    assert read_goal_texts(path, GRID) == {(area, cell): text for area, cell, text in rows}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "no header"),
        ("area,text\n", "no header"),
        ("area,goal_row,goal_col,text\na.jpg,0\n", "line 2"),
        ("area,goal_row,goal_col,text\na.jpg,x,0,pond\n", "line 2"),
        ("area,goal_row,goal_col,text\na.jpg,5,0,pond\n", "outside the 2x2 grid"),
        ("area,goal_row,goal_col,text,fits\na.jpg,0,0,pond,0:0 9:9\n", "outside the 2x2 grid"),
        ('area,goal_row,goal_col,text\na.jpg,0,0,"pond\n', "Cannot read"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: str, problem: str):
    with pytest.raises(AirlocError, match=problem):
        read_goal_texts(write(tmp_path / "texts.csv", content), GRID)


def test_goals_without_a_text_are_named():
    suite = per_distance(["a.jpg"], GRID, seed=0)
    with pytest.raises(AirlocError, match=r"1 of 1 goals have no text, such as cell \(\d, \d\) of 'a.jpg'"):
        texts_of(suite, {})


def test_cells_that_fit_are_known_only_if_all_texts_name_them():
    suite = per_distance(["a.jpg"], GRID, seed=0, per_area=2)
    known = {("a.jpg", cell): GoalText("pond", (cell, (0, 0))) for cell in GRID.cells()}
    fits = texts_of(suite, known).fits
    assert fits is not None
    assert fits[:, 0].all()
    assert texts_of(suite, {goal: text._replace(fits=()) for goal, text in known.items()}).fits is None


def table(areas: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.1, 0.1, (areas, GRID.count, *TEXT_SHAPE)).astype(np.float32)


def test_environments_observe_the_description_and_no_picture_of_the_goal():
    areas, texts = list(Synthetic(count=2, seed=1).areas(GRID)), table(2)
    env = gym.make("airloc/Search-v0", areas=areas, grid="2x2", goal_texts=texts)
    observation, _ = env.reset(seed=0, options={"area": areas[1].name, "start": (0, 0), "goal": (1, 1)})
    assert env.observation_space.contains(observation)
    assert np.array_equal(observation["goal_text"], texts[1, 3])
    assert not observation["goal"].any()
    vector = gym.make_vec("airloc/Search-v0", num_envs=2, areas=areas, grid="2x2", goal_texts=texts, goal_pictures=True)
    start, goal = np.array([[0, 0], [0, 0]]), np.array([[1, 1], [0, 1]])
    batch, _ = vector.reset(seed=0, options={"area": np.array([1, 0]), "start": start, "goal": goal})
    assert np.array_equal(batch["goal_text"], texts[[1, 0], [3, 1]])
    assert batch["goal"].any()
    assert vector.observation_space.contains(batch)


def test_tables_of_another_shape_and_flips_are_refused():
    areas = list(Synthetic(count=1, seed=1).areas(GRID))
    with pytest.raises(AirlocError, match="goal texts have shape"):
        gym.make("airloc/Search-v0", areas=areas, grid="2x2", goal_texts=table(3))
    with pytest.raises(AirlocError, match="Flipped areas"):
        gym.make("airloc/Search-v0", areas=areas, grid="2x2", goal_texts=table(1), flips=True)
