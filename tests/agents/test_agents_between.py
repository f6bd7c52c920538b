"""The belief for goals between cells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.agents.between import cell_belief, position_likelihood

sides = st.integers(1, 6)


def no_visits(rows: int, cols: int) -> np.ndarray:
    return np.zeros((1, rows, cols), dtype=np.bool_)


@given(sides, sides)
def test_a_uniform_prior_over_positions_is_uniform_over_cells(rows: int, cols: int):
    none = position_likelihood(np.zeros((1, rows, cols)))
    belief = cell_belief(none, np.zeros((1, rows, cols)), no_visits(rows, cols))
    assert belief == pytest.approx(np.full((1, rows, cols), 1 / (rows * cols)))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), sides, sides)
def test_a_belief_is_normalised_and_zero_in_visited_cells(seed: int, rows: int, cols: int):
    rng = np.random.default_rng(seed)
    visited = rng.random((2, rows, cols)) < 0.5
    likelihood = position_likelihood(20 * rng.standard_normal((2, rows, cols)))
    belief = cell_belief(likelihood, np.zeros((2, rows, cols)), visited)
    assert belief.sum(axis=(1, 2)) == pytest.approx(1)
    assert not belief[visited & ~visited.all(axis=(1, 2), keepdims=True)].any()


def test_a_position_between_cells_is_as_likely_as_the_mean_of_them():
    likelihood = np.log([[[0.8, 0.2], [0.4, 0.6]]])
    assert np.exp(position_likelihood(likelihood))[0] == pytest.approx(
        np.array([[0.8, 0.5, 0.2], [0.6, 0.5, 0.4], [0.4, 0.5, 0.6]])
    )


def test_glimpses_that_point_to_neighbouring_cells_agree_on_the_place_between_them():
    """One glimpse says column 1, the next one column 2: their product over cells excludes both."""
    cells = np.log(np.array([[[0.01, 0.97, 0.01, 0.01]], [[0.01, 0.01, 0.97, 0.01]]]))
    positions = position_likelihood(cells).sum(axis=0, keepdims=True)
    assert positions[0, 0].argmax() == 3, "half way between columns 1 and 2"
    belief = cell_belief(positions, np.zeros((1, 1, 4)), no_visits(1, 4))
    assert belief[0, 0, 1:3].sum() > 0.9
    product = np.exp(cells.sum(axis=0))[0]
    assert product[1] / product.sum() < 0.5


def test_a_goal_at_the_border_of_a_visited_cell_counts_for_the_open_cell():
    visited = no_visits(1, 3)
    visited[0, 0, 1] = True
    evidence = np.full((1, 1, 5), -50.0)
    evidence[0, 0, 1] = 0.0
    assert cell_belief(evidence, np.zeros((1, 1, 3)), visited)[0, 0] == pytest.approx([1, 0, 0], abs=1e-6)


def test_with_all_cells_visited_the_belief_is_uniform():
    belief = cell_belief(np.zeros((1, 3, 3)), np.zeros((1, 2, 2)), ~no_visits(2, 2))
    assert belief == pytest.approx(np.full((1, 2, 2), 0.25))


@given(st.integers(0, 2**32 - 1), sides, sides)
def test_before_the_first_glimpse_cells_have_their_prior(seed: int, rows: int, cols: int):
    prior = np.random.default_rng(seed).dirichlet(np.full(rows * cols, 0.5)).reshape(1, rows, cols) + 1e-30
    belief = cell_belief(np.zeros((1, 2 * rows - 1, 2 * cols - 1)), np.log(prior), no_visits(rows, cols))
    assert belief == pytest.approx(prior / prior.sum())


def test_a_cell_that_cannot_have_the_goal_gets_nothing_from_a_visited_one_beside_it():
    prior, visited = np.log(np.array([[[0.5, 0.5, 1e-30]]])), no_visits(1, 3)
    visited[0, 0, 1] = True
    belief = cell_belief(np.zeros((1, 1, 5)), prior, visited)
    assert belief[0, 0] == pytest.approx([1, 0, 0], abs=1e-20)
