"""Planned sweeps: what holds for any belief, and where a sweep flies."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.registry import make_agent
from airloc.areas.layout import Layout
from airloc.areas.raster import Raster
from airloc.grid import Grid
from airloc.missions.flight import great_circle_distance
from airloc.missions.outputs import write_search
from airloc.missions.photos import Goal
from airloc.missions.plan import SearchPlan, lay_out_search, start_search
from airloc.missions.simulation import simulate
from airloc.missions.sweep import extend_sweep, path_length, plan_sweep
from field_files import ground, write_projected

BELIEFS = st.integers(1, 8).flatmap(
    lambda rows: st.integers(2, 8).flatmap(
        lambda cols: st.lists(st.floats(0.001, 1), min_size=rows * cols, max_size=rows * cols).map(
            lambda flat: np.array(flat).reshape(rows, cols) / sum(flat)
        )
    )
)


@pytest.mark.no_cover  # tracing makes the search of tours ten times as slow
@settings(max_examples=50, deadline=None)
@given(BELIEFS, st.integers(1, 30), st.data())
def test_a_sweep_stays_within_budget_and_outline_and_repeats_no_cell(belief, budget: int, data):
    flags = data.draw(st.lists(st.booleans(), min_size=belief.size, max_size=belief.size))
    searchable = np.array(flags).reshape(belief.shape)
    searchable[0, 0] = True
    plan = plan_sweep(belief, searchable, (0, 0), budget)
    assert plan[0] == (0, 0)
    assert path_length(plan) <= budget
    assert len(set(plan)) == len(plan)
    assert all(searchable[cell] for cell in plan)


@pytest.mark.no_cover
def test_a_sweep_flies_to_the_most_probable_cells():
    belief = np.full((9, 9), 1e-4)
    belief[6:9, 6:9] = 1.0
    belief /= belief.sum()
    plan = plan_sweep(belief, np.ones((9, 9), dtype=bool), (0, 0), 14)
    assert sum(belief[cell] for cell in plan) > 0.99


def test_a_sweep_of_a_uniform_belief_wastes_no_move():
    plan = plan_sweep(np.full((6, 6), 1 / 36), np.ones((6, 6), dtype=bool), (0, 0), 35)
    assert len(plan) == 36


@settings(max_examples=20, deadline=None)
@given(BELIEFS, st.floats(30, 900))
def test_an_extended_sweep_spends_the_endurance_and_keeps_the_flight_home(belief, endurance: float):
    layout = Layout(Grid(*belief.shape), 90.0, 10.0, 30.0, (0.0, 0.0), None, np.ones(belief.shape, dtype=bool))

    def seconds(path) -> float:
        stops = layout.centres([*path, path[0]])
        return float(np.linalg.norm(np.diff(stops, axis=0), axis=1).sum() / 10 + 2 * len(path))

    plan = extend_sweep([(0, 0)], belief, layout, endurance=endurance, speed=10, hover=2)
    assert seconds(plan) <= endurance + 1e-6
    assert len(set(plan)) == len(plan)
    assert all(seconds([*plan, cell]) > endurance - 1e-6 for cell in layout.grid.cells() if cell not in plan)


def test_a_sweep_spends_the_whole_budget_while_a_cell_is_in_reach():
    belief = np.zeros((7, 7))
    belief[0, 6] = 1.0
    assert path_length(plan_sweep(belief, np.ones((7, 7), dtype=bool), (0, 0), 20)) == 20


def test_a_sweep_is_planned_on_the_belief_after_the_search_and_spends_the_endurance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("airloc.missions.outputs.SIDE", 100)
    monkeypatch.setattr("airloc.missions.outputs.GIF_SIDE", 50)
    image, agent, plan = ground(6), make_agent("belief"), SearchPlan(cell_m=96.0, endurance=271.2)
    sweeps = []
    with Raster(write_projected(tmp_path / "ortho.tif", image)) as raster:
        for row, col in ((0, 0), (5, 5)):
            patch = image[row * 52 :, col * 52 :][:48, :48]
            search = start_search(plan, lay_out_search(plan, None, raster), Goal(patch, patch), agent)
            record = simulate(search, raster, (row, col))
            write_search(tmp_path / "out", record, raster, formats=("geojson",), sweep=True, made_by="airloc search")
            shapes = json.loads((tmp_path / "out" / "sweep.geojson").read_text())["features"]
            points = [
                shape["geometry"]["coordinates"][1::-1] for shape in shapes if shape["geometry"]["type"] == "Point"
            ]
            metres = sum(great_circle_distance(a, b) for a, b in pairwise([*points, points[0]]))
            up_and_down = search.height_m / plan.flight.climb + search.height_m / plan.flight.descent
            assert 220 < metres / plan.speed + plan.hover * len(points) + up_and_down < 272.2
            plane, belief = record.layout.require_plane(), record.searcher.belief()
            cells = [record.layout.cell_at(plane.from_degrees(tuple(point))) for point in points]
            sweeps.append((cells, belief))
    (first, after_first), (second, after_second) = sweeps
    assert first != second
    for own, other, belief in ((first, second, after_first), (second, first, after_second)):
        assert sum(belief[cell] for cell in own) >= sum(belief[cell] for cell in other) - 1e-12
        assert sum(belief[cell] for cell in own) > len(own) * belief.mean()
