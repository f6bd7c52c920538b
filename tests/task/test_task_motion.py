"""A moving target keeps its probability, moves at the speed it is given, and stays in the area."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.task.motion import STILL, Motion, diffuse, sample_walks

speeds = st.floats(0, 3)
drifts = st.tuples(st.floats(-3, 3), st.floats(-3, 3))
shapes = st.tuples(st.integers(1, 7), st.integers(2, 7))


@settings(max_examples=60, deadline=None)
@given(speeds, drifts, shapes, st.integers(0, 2**32 - 1))
def test_a_transition_conserves_probability_on_any_ground(
    speed: float, drift: tuple[float, float], shape: tuple[int, int], seed: int
):
    rng = np.random.default_rng(seed)
    ease = rng.random(shape) * (rng.random(shape) < 0.7)
    for ground in (None, ease):
        transition = Motion(speed, drift).transition(shape, ground)
        assert transition.data.min() >= -1e-12
        assert np.allclose(transition.sum(axis=1), 1)
        belief = rng.dirichlet(np.ones(shape[0] * shape[1])).reshape(shape)
        assert diffuse(belief, transition).sum() == pytest.approx(1)


def test_a_target_that_stands_still_stays():
    belief = np.eye(4)
    assert not STILL
    assert np.array_equal(diffuse(belief, STILL.transition((4, 4))), belief)


def test_a_drift_moves_the_mean_by_its_velocity_away_from_the_border():
    belief = np.zeros((21, 21))
    belief[10, 10] = 1
    for _ in range(3):
        belief = diffuse(belief, Motion(drift=(-0.5, 1.25)).transition((21, 21)))
    row, col = (np.indices(belief.shape) * belief).sum(axis=(1, 2))
    assert (row, col) == pytest.approx((10 - 1.5, 10 + 3.75))


def test_a_walker_takes_its_speed_in_steps_and_never_enters_a_closed_cell():
    ease = np.ones((9, 9))
    ease[:, 5] = 0
    belief = np.zeros((9, 9))
    belief[4, 3] = 1
    one = diffuse(belief, Motion(0.4).transition((9, 9), ease))
    assert one[4, 3] == pytest.approx(0.6)
    for _ in range(20):
        one = diffuse(one, Motion(0.4).transition((9, 9), ease))
    assert one[:, 5:].sum() == 0


def test_a_walker_prefers_the_road():
    ease = np.full((7, 7), 0.1)
    ease[3] = 1
    belief = np.zeros((7, 7))
    belief[3, 3] = 1
    walked = diffuse(belief, Motion(1.0).transition((7, 7), ease))
    assert walked[3].sum() > 0.7


def test_sampled_walks_follow_the_transition():
    start = np.full((4000, 2), 3)
    walks = sample_walks(np.random.default_rng(0), Motion(0.5), (7, 7), start, 2)
    assert walks.shape == (4000, 3, 2)
    belief = np.zeros((7, 7))
    belief[3, 3] = 1
    for made in range(3):
        counts = np.zeros((7, 7))
        np.add.at(counts, tuple(walks[:, made].T), 1 / 4000)
        assert np.abs(counts - belief).max() < 0.03
        belief = diffuse(belief, Motion(0.5).transition((7, 7)))


@pytest.mark.parametrize("motion", [{"speed": -0.1}, {"speed": 11}, {"speed": float("nan")}, {"drift": (0, 99)}])
def test_an_impossible_speed_is_refused(motion: dict[str, object]):
    with pytest.raises(AirlocError, match="cannot"):
        Motion(**motion)  # type: ignore[arg-type]
