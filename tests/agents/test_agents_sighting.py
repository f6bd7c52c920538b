"""The judge of the field in episodes that end by declaration: a goal between the cells is located in the glimpse."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.matching import declaration_threshold, with_match
from airloc.agents.registry import make_agent
from airloc.agents.sighting import SightingMatcher
from airloc.areas.area import SearchArea
from airloc.areas.changes import GoalTransform, cut_goal, goal_centre
from airloc.areas.synthetic import Synthetic
from airloc.evaluation.controls import GoalChange
from airloc.evaluation.scores import evaluate
from airloc.grid import Cell, Grid
from airloc.task.batch import Observation
from airloc.task.suites import end_by_declaration, per_distance

pytestmark = pytest.mark.long

GRID, CELL = Grid(5, 5), (2, 2)


@pytest.fixture(scope="module")
def areas() -> list[SearchArea]:
    return list(Synthetic(count=4, seed=5).areas(GRID))


def glimpse(area: SearchArea, cell: Cell) -> Observation:
    patch = np.zeros((48, 48, 3), np.uint8)
    if GRID.contains(cell):
        left, top, right, bottom = GRID.box(cell)
        patch = np.ascontiguousarray(area.image[top:bottom, left:right])
    return Observation(torch.from_numpy(patch)[None], torch.tensor([cell]), torch.tensor([9]))


@dataclass
class Judged:
    """The match probabilities of cells, with the judge and without it."""

    area: SearchArea
    transform: GoalTransform
    heading_known: bool = True

    def matches(self, *cells: Cell, judged: bool = True) -> list[float]:
        return [probability for probability, _ in self.judgements(*cells, judged=judged)]

    def judgements(self, *cells: Cell, judged: bool = True) -> list[tuple[float, float]]:
        """Return the match probability of each cell, and how far the reported position is from the goal, in cells."""
        goal = torch.from_numpy(cut_goal(self.area.image, GRID, CELL, self.transform).copy())[None]
        agent = make_agent("lawnmower")
        matcher = SightingMatcher(agent, self.heading_known) if judged else with_match(agent)
        state = matcher.reset(EpisodeBatch(goal, GRID, 9, torch.zeros(1, 9, 8)))
        centre = (np.array(goal_centre(GRID, CELL, self.transform)) - GRID.cell / 2) / GRID.pitch
        found = []
        for cell in cells:
            probability, state = matcher.match(glimpse(self.area, cell), state)
            reported = getattr(state, "reported", torch.tensor([cell]))[0].numpy()
            found.append((float(probability), float(np.hypot(*(reported - centre)))))
        return found


@pytest.mark.parametrize(
    ("transform", "known"),
    [
        (GoalTransform(shift=(0.25, -0.2), upright=True), True),
        (GoalTransform(shift=(0.1, 0.25), rotation=130.0, scale=1.3, upright=True), True),
        (GoalTransform(shift=(-0.2, 0.2), rotation=-75.0, scale=0.8), False),
    ],
)
def test_a_goal_between_cells_is_recognised_where_it_lies(areas, transform: GoalTransform, known):
    case = Judged(areas[3], transform, known)
    around = [(1, 2), (2, 1), (2, 3), (3, 2), (3, 3)]
    assert case.matches(CELL, judged=False)[0] < 0.5
    probability, error = case.judgements(CELL)[0]
    assert probability > 0.8
    assert error < 0.1
    for probability, error in case.judgements(*around):
        assert probability < 0.5 or error < 0.5, "a neighbour that shows a part of the goal is not its place"


def test_a_glimpse_outside_the_area_shows_nothing_and_a_second_visit_is_judged_alike(areas: list[SearchArea]):
    outside, first, second = Judged(areas[1], GoalTransform(shift=(0.3, 0.3))).matches((-1, 2), CELL, CELL)
    assert outside < 0.5 < first == second


@pytest.mark.parametrize("name", ["lawnmower", "belief"])
def test_goals_anywhere_are_declared_by_every_agent_with_few_false_alarms(areas: list[SearchArea], name: str):
    """A belief agent that does not declare would fly the same path: what it declares it must have flown over."""
    suite = per_distance([area.name for area in areas], GRID, seed=1)
    change, agent = GoalChange("anywhere"), make_agent(name)
    told = evaluate(agent, suite, areas, change=change).log
    log = evaluate(agent, end_by_declaration(suite), areas, change=change, threshold=declaration_threshold(4.0)).log
    assert log.declared is not None
    assert log.found.mean() >= 0.6 * told.found.mean() > 0
    assert (log.declared & ~log.found).mean() <= 0.1


def test_goals_that_are_cells_are_declared_by_the_agent_alone(areas: list[SearchArea], monkeypatch):
    monkeypatch.setattr(SightingMatcher, "reset", None)
    suite = end_by_declaration(per_distance([areas[0].name], GRID))
    assert evaluate(make_agent("lawnmower"), suite, areas[:1], change=GoalChange("blur")).log.declared is not None
