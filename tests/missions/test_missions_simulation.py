"""Simulated searches: photos come from the image, only of cells flown to, and every photo is recorded."""

from pathlib import Path

import numpy as np
import pytest

from airloc.agents.registry import make_agent
from airloc.areas.layout import read_cell
from airloc.areas.raster import Raster
from airloc.missions.plan import SearchPlan, lay_out_search, start_search
from airloc.missions.simulation import SearchRecord, simulate
from field_files import ground, write_projected

GOAL = (1, 3)


@pytest.fixture(scope="module")
def raster(tmp_path_factory: pytest.TempPathFactory) -> Raster:
    path: Path = write_projected(tmp_path_factory.mktemp("simulation") / "ortho.tif", ground(5))
    return Raster(path)


def run(raster: Raster, *, truth=GOAL, goal=GOAL, **settings) -> SearchRecord:
    plan = SearchPlan(cell_m=96.0, **{"agent": "spiral", "budget": 40} | settings)
    layout = lay_out_search(plan, None, raster)
    search = start_search(plan, layout, read_cell(raster, layout, goal).pixels, make_agent(plan.agent))
    return simulate(search, raster, truth)


def test_a_simulation_ends_with_the_find(raster: Raster):
    record = run(raster)
    assert record.searcher.advice().declared == GOAL
    assert record.correct is True
    assert [photo.cell for photo in record.photos] == record.searcher.flown
    assert record.photos[-1].match_probability > 0.8
    assert np.all(np.diff([photo.pos for photo in record.photos]) > 0)
    assert record.photos[-1].belief is not None, "the last belief is kept"


def test_a_find_is_neither_right_nor_wrong_without_a_known_goal(raster: Raster):
    assert run(raster, truth=None).correct is None
    assert run(raster, truth=(0, 0)).correct is False


def test_a_search_that_the_budget_ends_declares_nothing(raster: Raster):
    record = run(raster, budget=1)
    assert len(record.photos) == 2
    assert record.searcher.status == "spent"
    assert record.correct is None


def test_progress_counts_every_photo(raster: Raster):
    plan = SearchPlan(cell_m=96.0, agent="spiral", budget=5)
    layout = lay_out_search(plan, None, raster)
    search = start_search(plan, layout, read_cell(raster, layout, (0, 0)).pixels, make_agent("spiral"))
    calls: list[int] = []
    record = simulate(search, raster, None, calls.append)
    assert sum(calls) == len(record.photos)
