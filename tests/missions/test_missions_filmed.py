"""Filmed flights stay in their range, find soon, and see the whole map if they can."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import KDTree

from airloc.missions.filmed import plan_filmed_flights, soonest_leg

WIDTH = 2.2
"""Width of the film in cells."""


@pytest.fixture(autouse=True)
def _short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airloc.missions.tour_search.ROUNDS_PER_CELL", 2)


def hills(seed: int) -> np.ndarray:
    """Return a map with three hills of probability, which sums to one."""
    rng, (row, col) = np.random.default_rng(seed), np.indices((30, 34))
    places = rng.random((3, 2)) * (30, 34)
    mass = sum(np.exp(-((row - y) ** 2 + (col - x) ** 2) / 30) for y, x in places)
    return mass / mass.sum()


def seen(mass: np.ndarray, paths: list[np.ndarray]) -> float:
    """Return the probability of the cells whose centres are filmed."""
    points = np.concatenate(
        [a + np.linspace(0, 1, 9)[:, None] * (b - a) for path in paths for a, b in itertools.pairwise(path)]
    )
    cells = np.moveaxis(np.indices(mass.shape), 0, -1)
    return float(mass[KDTree(points).query(cells)[0] <= WIDTH / 2].sum())


def length(path: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


@pytest.mark.parametrize("drones", [1, 3])
def test_flights_stay_in_their_range_and_begin_at_their_starts(drones: int):
    starts = [(15, 17), (0, 0), (29, 33)][:drones]
    paths = plan_filmed_flights(hills(1), starts, [60.0] * drones, width=WIDTH, discount=0.97)
    assert [tuple(path[0]) for path in paths] == starts
    assert all(length(path) <= 60 + 1e-6 for path in paths)


def test_a_flight_sees_more_than_tracks_of_the_same_length_over_the_middle():
    mass = hills(2)
    path = plan_filmed_flights(mass, [(15, 17)], [150.0], width=WIDTH, discount=0.97)
    tracks = np.array(
        [(row, col) for k, row in enumerate(np.arange(8, 22, WIDTH)) for col in (8, 26)[:: 1 - 2 * (k % 2)]]
    )
    assert length(tracks) == pytest.approx(150, rel=0.2)
    assert seen(mass, path) > 1.2 * seen(mass, [tracks])


def test_drones_with_enough_range_film_the_whole_map():
    paths = plan_filmed_flights(hills(3), [(15, 17)] * 3, [400.0] * 3, width=WIDTH, discount=0.97)
    assert seen(np.ones((30, 34)), paths) == 30 * 34


def test_the_soonest_leg_flies_to_the_nearest_hot_spot_first():
    mass = np.full((21, 21), 1e-6)
    mass[10, 14], mass[10, 2] = 1.0, 1.0
    leg = soonest_leg(mass, (10, 10), 20, radius=1.0, discount=0.9)
    assert len(leg) == 21
    assert any(math.dist(cell, (10, 14)) <= 1 for cell in leg[:5])
    assert all(max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1 for a, b in itertools.pairwise(leg))
