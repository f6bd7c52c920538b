"""Controls and changes of goal patches."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.changes import CHANGES, GoalTransform, goal_centre
from airloc.errors import AirlocError
from airloc.evaluation.controls import GoalChange, changed_goals, goal_centres, wrong_goal
from airloc.evaluation.scores import evaluate
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.cells import CellTable
from airloc.task.photos import FlightConditions
from airloc.task.suites import Suite, per_distance

GRID = Grid(5, 5)


class Onlooker:
    """Keeps the goal patches that it receives, and flies north."""

    name = "onlooker"

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def reset(self, episodes: EpisodeBatch) -> None:
        self.seen.append(episodes.goal)

    def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
        return torch.zeros(len(observation.patch), dtype=torch.int64), state


@pytest.fixture(scope="module")
def suite(toy_areas: list[SearchArea]) -> Suite:
    return per_distance([area.name for area in toy_areas], GRID)


def shown(areas: list[SearchArea], suite: Suite, **options: object) -> np.ndarray:
    onlooker = Onlooker()
    evaluate(onlooker, suite, areas, **options)  # type: ignore[arg-type]
    return torch.cat(onlooker.seen).numpy()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CHANGES)
def test_changes_depend_on_the_seed_and_not_on_the_batch_size(toy_areas, suite, name: str):
    first, *others = (shown(toy_areas, suite, change=GoalChange(name), batch=batch) for batch in (1024, 7, 1))
    assert all(np.array_equal(first, other) for other in others)
    assert not np.array_equal(first, shown(toy_areas, suite))
    again = np.array_equal(first, shown(toy_areas, suite, change=GoalChange(name), seed=1))
    assert again is (name == "coarse"), "only the coarse change is not random"


def test_a_changed_goal_does_not_depend_on_other_episodes(toy_areas, suite):
    every = shown(toy_areas, suite, change=GoalChange("all"))
    chosen = [4, 1, 2]
    part = suite.for_areas([suite.areas[area] for area in chosen])
    picked = shown([toy_areas[area] for area in chosen], part, change=GoalChange("all"))
    assert np.array_equal(picked, every[np.isin(suite.area, chosen)])


def test_without_strength_goals_are_the_cells(toy_areas, suite):
    for name in CHANGES:
        assert np.array_equal(shown(toy_areas, suite, change=GoalChange(name, 0.0)), shown(toy_areas, suite))


def test_changes_apply_to_other_images_of_the_same_places(toy_areas, suite):
    darker = [SearchArea(area.name, area.image // 2) for area in toy_areas]
    from_other = shown(toy_areas, suite, goal_areas=darker, change=GoalChange("coarse"))
    assert np.array_equal(from_other, shown(darker, suite, change=GoalChange("coarse")))
    assert not np.array_equal(from_other, shown(toy_areas, suite, change=GoalChange("coarse")))


def test_a_wrong_goal_is_changed_like_a_right_one(toy_areas, suite):
    wrong = wrong_goal(suite, CellTable.from_areas(toy_areas, GRID), 0)(torch.arange(len(suite))).numpy()
    assert np.array_equal(shown(toy_areas, suite, change=GoalChange("all", 0.0), control="wrong-goal"), wrong)
    changed = shown(toy_areas, suite, change=GoalChange("all"), control="wrong-goal")
    assert all((one != other).any() for one, other in zip(changed, wrong, strict=True))


def test_the_mean_goal_cannot_be_changed(toy_areas, suite):
    with pytest.raises(AirlocError, match="--control wrong-goal"):
        changed_goals(GoalChange("blur"), suite, toy_areas, control="mean-goal")


def test_a_change_does_not_affect_agents_without_vision(toy_areas, suite):
    plain, changed = (
        evaluate(make_agent("priv-random"), suite, toy_areas, change=change) for change in (None, GoalChange("all"))
    )
    assert np.array_equal(plain.log.path, changed.log.path)


def test_file_names_that_are_not_utf_8_work_too(toy_areas):
    odd = [SearchArea("b\udcffd.png", toy_areas[0].image)]
    assert shown(odd, per_distance(["b\udcffd.png"], GRID), change=GoalChange("turned")).shape == (4, 48, 48, 3)


def test_changes_have_known_names_and_strengths():
    for wrong in (("haze", 1.0), ("blur", 2.0)):
        with pytest.raises(AirlocError):
            GoalChange(*wrong)


def test_in_flight_conditions_goals_are_photos_that_do_not_depend_on_the_batch_size(toy_areas, suite):
    flight = FlightConditions(seed=3)
    first, *others = (shown(toy_areas, suite, flight=flight, batch=batch) for batch in (1024, 7, 1))
    assert all(np.array_equal(first, other) for other in others)
    photographed = flight.photograph(toy_areas, GRID, "goal")
    assert np.array_equal(first, shown(photographed, suite))
    darker = [replace(area, image=area.image // 2) for area in toy_areas]
    from_other = shown(toy_areas, suite, goal_areas=darker, flight=flight)
    assert np.array_equal(from_other, shown(flight.photograph(darker, GRID, "goal"), suite))


def test_controls_use_photos_in_flight_conditions(toy_areas, suite):
    flight = FlightConditions()
    photographed = CellTable.from_areas(flight.photograph(toy_areas, GRID, "goal"), GRID)
    wrong = wrong_goal(suite, photographed, 0)(torch.arange(len(suite))).numpy()
    assert np.array_equal(shown(toy_areas, suite, flight=flight, control="wrong-goal"), wrong)


def test_a_change_cannot_be_combined_with_flight_conditions(toy_areas, suite):
    with pytest.raises(AirlocError, match="both alter the goal"):
        shown(toy_areas, suite, flight=FlightConditions(), change=GoalChange("blur"))


@pytest.mark.parametrize("name", ["anywhere", "any-heading"])
def test_the_centres_of_goals_lie_in_their_cells_and_are_those_of_the_patches(toy_areas, suite, name: str):
    change = GoalChange(name)
    centres = goal_centres(change, suite, seed=3)
    assert float((centres - torch.from_numpy(suite.goal)).abs().max()) <= 0.5
    assert torch.equal(goal_centres(GoalChange(name, 0.0), suite), torch.from_numpy(suite.goal).float())
    at = GoalTransform(shift=(0.25, -0.25))
    assert goal_centre(suite.grid, (1, 1), at) == (suite.grid.pitch + 24 + 12, suite.grid.pitch + 24 - 12)
