"""What a world shows: the same at every resolution, regimes that differ, masks that are exact, pairs that match."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.areas.synthetic import DISASTERS, REGIMES
from airloc.areas.synthetic import generate as generate_anew
from airloc.areas.synthetic.lots import block_sides, draw_houses
from airloc.areas.synthetic.plan import draw_plan
from airloc.areas.synthetic.regimes import Use
from airloc.areas.synthetic.render import place_boxes

Numbers = npt.NDArray[np.float64]

generate = cache(generate_anew)
"""Several tests look at the same areas."""


def mask_of(area: SearchArea) -> npt.NDArray[np.bool_]:
    assert area.mask is not None
    return area.mask


def grey(area: SearchArea) -> Numbers:
    return np.asarray(area.image.mean(axis=2))


def share_of_blue(area: SearchArea) -> float:
    red, _, blue = area.image.astype(int).transpose(2, 0, 1)
    return float((blue > red + 8).mean())


@pytest.mark.parametrize("regime", REGIMES)
def test_the_same_world_shows_at_every_resolution(regime: str) -> None:
    coarse, fine = generate(4, (96, 128), 2.0, regime), generate(4, (288, 384), 2.0 / 3, regime)
    shrunk = np.asarray(Image.fromarray(fine.image).resize((128, 96), Image.Resampling.BOX)).mean(axis=2)
    assert np.corrcoef(shrunk.ravel(), grey(coarse).ravel())[0, 1] > 0.75
    built = Image.fromarray(mask_of(fine).astype(np.uint8) * 255).resize((128, 96), Image.Resampling.BOX)
    assert ((np.asarray(built) >= 128) ^ mask_of(coarse)).mean() < 0.03


BUILT = ("city", "suburb", "rural")


def test_regimes_are_built_up_as_their_names_say() -> None:
    built = {regime: np.mean([mask_of(generate(seed, regime=regime)) for seed in range(6)]) for regime in BUILT}
    assert built["city"] > 0.15
    assert built["city"] > built["suburb"] > built["rural"]
    assert 0.03 < built["suburb"] < 0.25
    assert built["rural"] < 0.06


def test_a_coast_has_a_sea_and_a_desert_has_sand() -> None:
    areas = {regime: [generate(seed, regime=regime) for seed in range(5)] for regime in ("coast", "rural", "desert")}
    assert np.mean([share_of_blue(area) for area in areas["coast"]]) > 0.12
    assert np.mean([share_of_blue(area) for area in areas["rural"]]) < 0.1
    desert = np.mean([area.image.mean(axis=(0, 1)) for area in areas["desert"]], axis=0)
    assert desert[0] > desert[1] > desert[2]
    assert desert.mean() > 20 + np.mean([area.image.mean() for area in areas["rural"]])


@pytest.mark.parametrize("regime", REGIMES)
def test_images_have_the_contrast_of_aerial_photographs(regime: str) -> None:
    area = generate(12, regime=regime)
    assert 50 < area.image.mean() < 200
    assert 15 < grey(area).std() < 70
    # No patch of a cell's size is flat: there is texture everywhere.
    cells = grey(area)[:240, :240].reshape(5, 48, 5, 48).std(axis=(1, 3))
    assert cells.min() > 2.0


def test_the_mask_is_exactly_where_the_boxes_of_buildings_are() -> None:
    plan = draw_plan(3, "suburb", (256.0, 256.0))
    boxes = place_boxes(plan)
    houses = boxes[boxes.buildings]
    mask = mask_of(generate(3, (512, 512), 0.5, "suburb"))
    y, x = (np.indices((512, 512)) + 0.5) * 0.5 - 128.0
    inside = np.zeros((512, 512), dtype=np.bool_)
    outside = np.ones((512, 512), dtype=np.bool_)
    for n in range(len(houses)):
        dx, dy = x - houses.x[n], y - houses.y[n]
        u = np.abs(dx * houses.cos[n] + dy * houses.sin[n]) - houses.length[n] / 2
        v = np.abs(dy * houses.cos[n] - dx * houses.sin[n]) - houses.width[n] / 2
        inside |= np.maximum(u, v) < -0.5
        outside &= np.maximum(u, v) > 0.5
    assert mask[inside].all()
    assert not mask[outside].any()


def test_roofs_stand_out_from_what_surrounds_them() -> None:
    for seed in range(3):
        area = generate(seed, regime="suburb")
        mask = mask_of(area)
        ring = np.zeros_like(mask)
        ring[3:-3, 3:-3] = mask[6:, 3:-3] | mask[:-6, 3:-3] | mask[3:-3, 6:] | mask[3:-3, :-6]
        ring &= ~mask
        assert grey(area)[mask].mean() > grey(area)[ring].mean() + 8


@pytest.mark.parametrize("regime", REGIMES)
def test_no_building_stands_on_a_road_or_in_water(regime: str) -> None:
    for seed in range(4):
        plan = draw_plan(seed, regime, (512.0, 512.0))
        boxes = place_boxes(plan)
        # Machines stand on roofs and sheds in gardens: all of them must be off the road.
        survey = plan.survey(*boxes[boxes.buildings].points(4))
        assert (survey.road < 0).all()
        assert (survey.clear > 0).all()


@pytest.mark.parametrize("regime", REGIMES)
def test_houses_stand_on_blocks_for_houses_and_farms_on_fields(regime: str) -> None:
    plan = draw_plan(202, regime, (512.0, 512.0))
    houses, _ = draw_houses(plan, block_sides(plan))
    assert len(houses) > 0
    uses = plan.uses.take(plan.survey(houses.x, houses.y).place.block)
    assert set(uses.tolist()) <= {int(Use.HOUSES), int(Use.ROWS), int(Use.FIELD)}


@pytest.mark.parametrize("regime", ["suburb", "desert"])
def test_no_two_houses_of_different_lots_share_their_middle(regime: str) -> None:
    plan = draw_plan(2, regime, (512.0, 512.0))
    houses, _ = draw_houses(plan, block_sides(plan))
    main = houses[houses.length > houses.width]
    gaps = np.hypot(main.x[:, None] - main.x, main.y[:, None] - main.y) + 99 * np.eye(len(main))
    assert gaps.min() > 3.0


@pytest.mark.parametrize("disaster", DISASTERS)
@pytest.mark.parametrize("regime", ["city", "coast"])
def test_a_disaster_changes_the_image_and_keeps_the_mask(regime: str, disaster: str) -> None:
    before, after = generate(6, regime=regime), generate(6, regime=regime, disaster=disaster)
    np.testing.assert_array_equal(mask_of(before), mask_of(after))
    changed = np.abs(before.image.astype(int) - after.image.astype(int)).mean()
    assert changed > 8
    # It is still the same place: more alike than two places are.
    other = generate(7, regime=regime)
    alike = np.corrcoef(grey(before).ravel(), grey(after).ravel())[0, 1]
    assert alike > 0.15 + np.corrcoef(grey(before).ravel(), grey(other).ravel())[0, 1]


def test_fire_darkens_and_floods_turn_brown() -> None:
    def mean_colour(disaster: str | None) -> Numbers:
        areas = [generate(seed, (128, 128), 4.0, "suburb", disaster) for seed in range(5)]
        return np.asarray(np.mean([area.image.mean(axis=(0, 1)) for area in areas], axis=0))

    before, burnt, flooded = (mean_colour(disaster) for disaster in (None, "burnt", "flooded"))
    assert burnt.mean() < before.mean() - 8
    assert flooded[0] - flooded[2] > before[0] - before[2] + 3
    assert flooded[0] - flooded[1] > before[0] - before[1] + 3
