"""Planned sweeps: what holds for any belief, and where a sweep flies."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.missions.sweep import path_length, plan_sweep

BELIEFS = st.integers(1, 8).flatmap(
    lambda rows: st.integers(2, 8).flatmap(
        lambda cols: st.lists(st.floats(0.001, 1), min_size=rows * cols, max_size=rows * cols).map(
            lambda flat: np.array(flat).reshape(rows, cols) / sum(flat)
        )
    )
)


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


def test_a_sweep_flies_to_the_most_probable_cells():
    belief = np.full((9, 9), 1e-4)
    belief[6:9, 6:9] = 1.0
    belief /= belief.sum()
    plan = plan_sweep(belief, np.ones((9, 9), dtype=bool), (0, 0), 14)
    assert sum(belief[cell] for cell in plan) > 0.99


def test_a_sweep_of_a_uniform_belief_wastes_no_move():
    plan = plan_sweep(np.full((6, 6), 1 / 36), np.ones((6, 6), dtype=bool), (0, 0), 35)
    assert len(plan) == 36
