"""Suites: reproducible episodes, digests and episode files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import priors, suites
from airloc.task.suites import end_by_declaration, far_pairs, read_suite, uniform

NAMES = tuple(f"area {n}.png" for n in range(40))
HEADER = "area,start_row,start_col,goal_row,goal_col\n"


def test_per_distance_has_one_episode_for_every_area_and_distance():
    suite = suites.per_distance(NAMES, Grid(5, 5))
    assert len(suite) == 160
    assert np.array_equal(suite.area, np.repeat(np.arange(40), 4))
    assert np.array_equal(suite.distance, np.tile([1, 2, 3, 4], 40))


def test_more_episodes_an_area_are_drawn_at_every_distance():
    suite = suites.per_distance(NAMES, Grid(5, 5), per_area=3)
    assert np.array_equal(suite.area, np.repeat(np.arange(40), 12))
    assert np.array_equal(suite.distance, np.tile([1, 2, 3, 4], 120))
    pairs = np.concatenate([suite.start, suite.goal], axis=1).reshape(40, 3, 16)
    assert len(np.unique(pairs.reshape(120, 16), axis=0)) > 100, "they differ"


def test_suites_are_generated_by_the_name_of_their_kind():
    grid = Grid(3, 3)
    for kind in suites.GENERATED:
        assert suites.generate(kind, NAMES, grid, seed=2).name == kind
    assert suites.generate("uniform", NAMES, grid).digest == suites.uniform(NAMES, grid).digest
    assert len(suites.generate("uniform", NAMES, grid, per_area=2)) == 80
    assert suites.generate("all-pairs", NAMES, grid, equal_distances=True).weight.std() > 0


def test_an_unknown_kind_and_an_impossible_number_of_episodes_are_refused():
    with pytest.raises(AirlocError, match="Did you mean 'per-distance'"):
        suites.generate("per-distances", NAMES, Grid(3, 3))
    for kind in ("per-distance", "uniform", "far-pairs"):
        for count in (0, -1, 1.5):
            with pytest.raises(AirlocError, match=r"per_area|episodes"):
                suites.generate(kind, NAMES, Grid(5, 5, moves=8), per_area=count)


def test_paper_counts_of_episodes_follow_from_its_counts_of_areas():
    for areas, episodes in ((178, 712), (196, 784), (1303, 5212)):
        assert len(suites.per_distance([str(n) for n in range(areas)], Grid(5, 5))) == episodes


@given(st.builds(Grid, st.integers(1, 5), st.integers(2, 5)), st.integers(0, 5))
def test_starts_and_goals_lie_in_the_grid_and_differ(grid: Grid, seed: int):
    for suite in (
        suites.per_distance(NAMES[:3], grid, seed=seed),
        suites.uniform(NAMES[:3], grid, seed=seed),
        suites.all_pairs(NAMES[:3], grid),
    ):
        assert all(grid.contains(cell) for cell in map(tuple, np.vstack([suite.start, suite.goal]).tolist()))
        assert suite.distance.min() >= 1


def test_all_pairs_lists_every_pair_once():
    suite = suites.all_pairs(NAMES[:2], Grid(5, 5))
    assert len(suite) == 2 * 25 * 24
    assert len({tuple(row) for row in np.hstack([suite.area[:, None], suite.start, suite.goal]).tolist()}) == 1200


def test_weights_of_all_pairs_make_it_the_expectation_of_per_distance():
    grid = Grid(5, 5)
    suite = suites.all_pairs(NAMES[:2], grid, equal_distances=True)
    assert suite.weight.mean() == pytest.approx(1)
    weight = np.zeros((25, 25))
    np.add.at(weight, (suite.start @ [5, 1], suite.goal @ [5, 1]), suite.weight / len(suite))
    assert np.allclose(weight, priors.per_distance(grid))


def test_the_same_seed_draws_the_same_suite_and_another_seed_another():
    one, same, other = (suites.per_distance(NAMES, Grid(5, 5), seed=seed) for seed in (1, 1, 2))
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_generated_suites_do_not_change_between_releases():
    assert suites.per_distance(("a", "b"), Grid(5, 5)).digest.startswith("098e4bf756e556d8")


def test_the_digest_depends_on_budget_and_weights():
    plain = suites.all_pairs(("a",), Grid(5, 5))
    assert plain.digest != suites.all_pairs(("a",), Grid(5, 5), budget=9).digest
    assert plain.digest != suites.all_pairs(("a",), Grid(5, 5), equal_distances=True).digest


def test_no_areas_give_no_suite():
    with pytest.raises(AirlocError, match="at least one area"):
        suites.per_distance([], Grid(5, 5))


def test_a_saved_suite_is_read_back_the_same(tmp_path: Path):
    names = ('with "quotes", commas.png', "ünï cödé.jpg", "plain.png")
    suite = suites.per_distance(names, Grid(4, 6), seed=3, budget=7)
    (tmp_path / "suite.csv").write_text(suite.csv(), encoding="utf-8")
    back = read_suite(tmp_path / "suite.csv", Grid(4, 6), budget=7)
    assert back.digest == suite.digest
    assert back.areas == names
    assert back.prior is None


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ("a.png,0,0,5,0\n", r"goal \(5, 0\).*line 2.*5x5"),
        ("a.png,-1,0,0,0\n", "start"),
        ("a.png,1,1,2,2\nb.png,1,1,1,1\n", r"\(1, 1\).*line 3"),
        ("a.png,1,1,2\n", "line 2"),
        ("a.png,1,1,2,2,9\n", "line 2"),
        ("a.png,1,one,2,2\n", "line 2"),
        ('a.png,1,"1,2,2\n', "episodes.csv"),
        ("", "episodes.csv"),
    ],
)
def test_a_broken_episode_file_is_refused_with_its_line(tmp_path: Path, rows: str, facts: str):
    path = tmp_path / "episodes.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(AirlocError, match=facts):
        read_suite(path, Grid(5, 5))


def test_a_missing_headerless_or_binary_episode_file_is_refused(tmp_path: Path):
    with pytest.raises(AirlocError, match=r"none\.csv"):
        read_suite(tmp_path / "none.csv", Grid(5, 5))
    (tmp_path / "headless.csv").write_text("a.png,0,0,1,1\n")
    with pytest.raises(AirlocError, match="header"):
        read_suite(tmp_path / "headless.csv", Grid(5, 5))
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    with pytest.raises(AirlocError, match="header"):
        read_suite(tmp_path / "binary.csv", Grid(5, 5))


def test_a_byte_order_mark_and_empty_lines_do_no_harm(tmp_path: Path):
    path = tmp_path / "episodes.csv"
    path.write_bytes(b"\xef\xbb\xbf" + HEADER.encode() + b"\na.png,0,0,1,1\r\n\r\n")
    assert len(read_suite(path, Grid(5, 5))) == 1


def test_a_suite_over_some_areas_keeps_their_episodes():
    suite = suites.all_pairs(["a", "b", "c"], Grid(2, 2), equal_distances=True)
    part = suite.for_areas(["c", "a"])
    assert part.areas == ("c", "a")
    assert [part.areas[area] for area in part.area] == ["a"] * 12 + ["c"] * 12
    assert np.array_equal(part.goal[12:], suite.goal[24:])
    assert np.array_equal(part.weight, np.delete(suite.weight, np.s_[12:24]))
    assert suite.for_areas(suite.areas).digest == suite.digest


FOUR = Grid(5, 5, moves=4)


def test_far_pairs_has_five_episodes_per_area_and_distance_with_uniform_pairs():
    suite = far_pairs([f"a{n}" for n in range(400)], FOUR)
    assert (suite.budget, len(suite)) == (10, 400 * 25)
    assert np.unique(suite.distance, return_counts=True)[1].tolist() == [2000] * 5
    assert set(suite.distance.tolist()) == {4, 5, 6, 7, 8}
    corner_to_corner = suite.start[suite.distance == 8]
    assert {tuple(cell) for cell in corner_to_corner.tolist()} == {(0, 0), (0, 4), (4, 0), (4, 4)}
    at_four = suite.distance == 4
    centre = (suite.start[at_four] == 2).all(axis=1).mean()
    assert centre == pytest.approx(4 / (FOUR.distances() == 4).sum(), abs=0.01)


def test_the_digest_depends_on_the_moves_and_the_variant():
    eight, four = uniform(["a"], Grid(5, 5)), uniform(["a"], FOUR)
    assert eight.csv() == four.csv() == end_by_declaration(eight).csv()
    assert len({eight.digest, four.digest, end_by_declaration(eight).digest}) == 3
    assert eight.digest == "dbb5394ce70ed9ead5232e93d1476dbb368c6d4c77738ad8792dd3f8789e5d1d"
