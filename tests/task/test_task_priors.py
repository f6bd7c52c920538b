import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import priors

grids = st.builds(Grid, st.integers(1, 6), st.integers(2, 6))


@given(grids, st.sampled_from(sorted(priors.PRIORS)))
def test_every_prior_sums_to_one_and_never_starts_on_the_goal(grid: Grid, name: str):
    prior = priors.PRIORS[name](grid)
    assert prior.sum() == pytest.approx(1)
    assert np.diagonal(prior).max() == 0
    assert prior.min() >= 0


@given(grids)
def test_per_distance_gives_every_distance_the_same_weight(grid: Grid):
    for prior in (priors.per_distance(grid), priors.pairs_per_distance(grid)):
        for distance in range(1, grid.max_distance + 1):
            assert prior[grid.distances() == distance].sum() == pytest.approx(1 / grid.max_distance)


def test_per_distance_draws_the_start_uniformly_over_cells_that_have_the_distance():
    grid = Grid(5, 5)
    far = priors.at_distance(grid, 4)
    border = [grid.index(cell) for cell in grid.cells() if 0 in cell or 4 in cell]
    assert np.allclose(far.sum(axis=1)[border], 1 / 16)
    corner, edge = far[grid.index((0, 0))], far[grid.index((0, 2))]
    assert corner.max() == pytest.approx(1 / 16 / 9)
    assert edge.max() == pytest.approx(1 / 16 / 5)


def test_the_sampler_draws_in_proportion_to_the_prior():
    grid = Grid(3, 4)
    prior = priors.per_distance(grid)
    starts, goals = priors.PairSampler(prior, grid).sample(np.random.default_rng(0), 200_000)
    drawn = np.zeros_like(prior)
    np.add.at(drawn, (starts @ [4, 1], goals @ [4, 1]), 1 / 200_000)
    assert np.abs(drawn - prior).max() < 0.002


def test_a_distance_that_no_pair_has_is_refused():
    with pytest.raises(AirlocError, match="from 1 to 4"):
        priors.at_distance(Grid(5, 5), 5)
