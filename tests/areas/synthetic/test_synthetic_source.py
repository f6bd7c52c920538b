"""Procedural areas: names, sizes, determinism, pairs and errors."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.area import SearchArea
from airloc.areas.synthetic import DISASTERS, REGIMES, Synthetic, generate
from airloc.errors import AirlocError
from airloc.grid import Grid


def digest(area: SearchArea) -> str:
    assert area.mask is not None
    return hashlib.sha256(area.image.tobytes() + area.mask.tobytes()).hexdigest()


@pytest.mark.parametrize("regime", REGIMES)
def test_same_seed_gives_the_same_bytes(regime: str) -> None:
    assert digest(generate(5, regime=regime)) == digest(generate(5, regime=regime))


def test_a_fresh_process_gives_the_same_bytes() -> None:
    code = (
        "import hashlib; from airloc.areas.synthetic import generate; generate(8, (40, 40)); a = generate(9);"
        "print(hashlib.sha256(a.image.tobytes() + a.mask.tobytes()).hexdigest())"
    )
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == digest(generate(9))


def test_other_seeds_give_other_scenes() -> None:
    assert len({digest(generate(seed, (64, 64), regime="city")) for seed in range(6)}) == 6


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    height=st.integers(1, 150),
    width=st.integers(1, 150),
    metres_per_px=st.floats(0.15, 9.0),
    regime=st.sampled_from(REGIMES),
    disaster=st.sampled_from([None, *DISASTERS]),
)
def test_any_size_and_resolution_gives_a_complete_area(
    seed: int, height: int, width: int, metres_per_px: float, regime: str, disaster: str | None
) -> None:
    area = generate(seed, (height, width), metres_per_px, regime, disaster)
    assert area.image.shape == (height, width, 3)
    assert area.image.dtype == np.uint8
    assert area.image.flags.c_contiguous
    assert area.mask is not None
    assert area.mask.shape == (height, width)
    assert area.mask.dtype == np.bool_
    assert area.ground_m == pytest.approx((height * metres_per_px, width * metres_per_px))


def test_names_contain_regime_and_seed() -> None:
    assert generate(7, (32, 32), regime="city").name == "synthetic_city_000007"
    assert generate(7, (32, 32), regime="city", disaster="burnt").name == (
        "synthetic-city-burnt_00000007_post_disaster"
    )


def test_a_seed_without_regime_draws_one_and_all_occur() -> None:
    drawn = {generate(seed, (2, 2)).name.split("_")[1] for seed in range(40)}
    assert drawn == set(REGIMES)


def test_areas_fit_the_grid_exactly() -> None:
    grid = Grid(3, 5)
    areas = list(Synthetic(count=3, seed=1).areas(grid))
    assert [area.image.shape[:2] for area in areas] == [grid.size] * 3
    assert areas[0].ground_m == pytest.approx((2.0 * grid.size[0], 2.0 * grid.size[1]))
    assert len({area.name for area in areas}) == 3


def test_finer_cells_show_the_same_ground() -> None:
    coarse, fine = (
        next(Synthetic(count=1).areas(grid)) for grid in (Grid(3, 3, cell=24, gap=2), Grid(3, 3, cell=48, gap=4))
    )
    assert coarse.ground_m == fine.ground_m


def test_different_seeds_share_no_world() -> None:
    grid = Grid(1, 2)
    first, second = ({area.name for area in Synthetic(count=4, seed=seed).areas(grid)} for seed in (0, 1))
    assert not first & second


def test_a_named_area_can_be_made_again_from_its_number() -> None:
    area = next(Synthetic(count=1, seed=3, regime="coast").areas(Grid(2, 2)))
    again = generate(int(area.name.split("_")[-1]), Grid(2, 2).size, regime="coast")
    assert digest(again) == digest(area)


def test_pairs_are_named_as_xbd_names_them_and_share_a_tile() -> None:
    areas = list(Synthetic(count=2, regime="suburb", disaster="debris").areas(Grid(2, 2)))
    assert [area.name for area in areas] == [
        "synthetic-suburb-debris_00000000_pre_disaster",
        "synthetic-suburb-debris_00000000_post_disaster",
        "synthetic-suburb-debris_00000001_pre_disaster",
        "synthetic-suburb-debris_00000001_post_disaster",
    ]
    assert areas[0].source == areas[1].source != areas[2].source


def test_any_disaster_draws_all_of_them_and_a_world_keeps_its_own() -> None:
    names = [area.name for area in Synthetic(count=12, regime="rural", disaster="any").areas(Grid(1, 2))]
    assert {name.split("_")[0].rsplit("-", 1)[1] for name in names} == set(DISASTERS)
    assert [name.replace("pre_", "post_") for name in names[::2]] == names[1::2]
    assert [area.name for area in Synthetic(count=1, regime="rural", disaster="any").areas(Grid(2, 2))] == names[:2]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"regime": "moon"}, "suburb"),
        ({"disaster": "meteor"}, "flooded"),
        ({"size": (0, 64)}, "1 px or more"),
        ({"size": (64, -1)}, "1 px or more"),
        ({"metres_per_px": 0.0}, "above 0"),
        ({"metres_per_px": float("nan")}, "above 0"),
        ({"size": (4000, 10), "metres_per_px": 10.0}, "pixels"),
    ],
)
def test_impossible_options_are_refused_with_a_cure(wrong: dict[str, object], word: str) -> None:
    with pytest.raises(AirlocError) as refusal:
        generate(0, **wrong)  # type: ignore[arg-type]
    assert word in refusal.value.cure


def test_a_dataset_without_areas_is_refused() -> None:
    with pytest.raises(AirlocError, match="0 areas"):
        Synthetic(count=0)


def test_images_are_areas_of_seven_by_seven_cells() -> None:
    dataset = Synthetic(count=2, regime="coast")
    images, areas = list(dataset.images()), list(dataset.areas(Grid(7, 7)))
    assert [digest(image) for image in images] == [digest(area) for area in areas]
    assert [digest(dataset.read(record)) for record in dataset.records()] == [digest(image) for image in images]


def test_pairs_show_a_world_after_and_before_a_disaster() -> None:
    dataset = Synthetic(count=2, regime="city", disaster="burnt")
    before_and_after = list(dataset.areas(Grid(2, 2)))
    for (area, goal), before, after in zip(
        dataset.pairs(Grid(2, 2)), before_and_after[::2], before_and_after[1::2], strict=True
    ):
        assert (area.name, goal.name) == (after.name, before.name)
        assert (digest(area), digest(goal)) == (digest(after), digest(before))


def test_the_first_of_a_million_scenes_comes_at_once() -> None:
    assert next(Synthetic(count=1_000_000).areas(Grid(1, 2))).image.shape == (*Grid(1, 2).size, 3)
