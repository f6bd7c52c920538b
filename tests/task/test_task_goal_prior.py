"""The distribution of goals for a start, against the tables of priors."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.grid import Grid
from airloc.task import goal_prior, priors

grids = st.builds(Grid, st.integers(1, 6), st.integers(2, 6), moves=st.sampled_from([4, 8]))


@given(grids)
def test_the_per_distance_prior_is_the_mean_over_distances_bit_for_bit(grid: Grid):
    strata = sum(priors.at_distance(grid, distance) for distance in range(1, grid.max_distance + 1))
    assert np.array_equal(priors.per_distance(grid), strata / grid.max_distance)


def test_weights_of_goals_in_worked_numbers():
    weights = goal_prior.goal_weights((0, 0), 2, 3).reshape(2, 3)
    # At distance 1 there are 3 goals and 6 starts; at distance 2 there are 2 goals and 4 starts.
    np.testing.assert_allclose(weights, [[0, 1 / 18, 1 / 8], [1 / 18, 1 / 18, 1 / 8]])


@pytest.mark.parametrize("kind", goal_prior.GOAL_PRIORS)
def test_the_start_is_a_goal_only_where_it_may_be_one(kind: str):
    probability = goal_prior.goal_prior(kind, (1, 2), 4, 5).astype(float)
    probability /= probability.sum()
    assert (probability[1 * 5 + 2] > 1e-6) == (kind == "anywhere")
    assert (np.delete(probability, 1 * 5 + 2) > 1e-3).all()


def test_an_unknown_prior_is_refused():
    with pytest.raises(ValueError, match="'nowhere'"):
        goal_prior.goal_prior("nowhere", (0, 0), 2, 2)


def test_the_module_can_be_copied_without_airloc():
    tree = ast.parse(Path(goal_prior.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any((module or "").startswith("airloc") for module in imported)
