"""Captions say what the land cover shows, fit their own cell, and know nothing that the source does not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.areas.captions import (
    Cover,
    cell_facts,
    describe_cells,
    from_building_mask,
    from_classes,
    sentences,
    write_caption,
)
from airloc.areas.captions.facts import AROUND
from airloc.areas.synthetic import Synthetic
from airloc.areas.synthetic.source import REGIMES
from airloc.grid import Grid

GRID = Grid(3, 3)
ALL = frozenset(Cover) - {Cover.UNKNOWN}


def facts_of(classes: np.ndarray, known: frozenset[Cover] = ALL, colour: tuple[int, int, int] = (90, 90, 90)):
    image = np.full((*classes.shape, 3), colour, dtype=np.uint8)
    return cell_facts(from_classes(classes, known, image, GRID.cell), GRID)


def ground(cover: Cover = Cover.GRASS) -> np.ndarray:
    return np.full(GRID.size, cover, dtype=np.uint8)


def test_a_road_has_the_sides_by_which_it_leaves_the_cell():
    classes = ground()
    classes[:, 10:16] = Cover.ROAD  # along the western edge of the first column
    classes[20:26, 104:] = Cover.ROAD  # from west to east in the last cell of the first row
    facts = facts_of(classes)
    assert (facts[0]["road"], facts[0]["road at"]) == ("NS", "W")
    assert facts[2]["road"] == "EW"
    assert facts[1]["road"] == "none"


def test_water_covers_shares_of_cells_and_lies_beside_others():
    classes = ground()
    classes[:, 104:] = Cover.SEA
    facts = facts_of(classes)
    assert (facts[5]["water"], facts[5]["water kind"]) == ("all", "sea")
    assert facts[4]["E"] == "water"
    assert facts[5]["W"] == "open"
    assert "E" not in facts[3]


def test_buildings_are_counted_with_their_place_and_colour():
    classes = ground()
    for row, col in ((2, 2), (2, 20), (20, 2), (17, 17)):
        classes[row : row + 8, col : col + 8] = Cover.BUILDING
    facts = facts_of(classes, colour=(165, 100, 80))
    assert (facts[0]["buildings"], facts[0]["roofs"], facts[0]["building size"]) == ("few", "red", "small")
    assert facts[0]["buildings at"] == "NW"
    assert facts[0]["open at"] == "SE"
    assert facts[1]["buildings"] == "0"


def test_a_building_mask_gives_facts_about_buildings_alone():
    mask = np.zeros(GRID.size, dtype=bool)
    mask[5:30, 5:40] = True
    facts = cell_facts(from_building_mask(mask, np.zeros((*GRID.size, 3), np.uint8), GRID.cell), GRID)
    assert set(facts[0]) <= {
        "buildings",
        "building size",
        "buildings at",
        "roofs",
        "hall at",
        "open at",
        "sparser",
        *AROUND,
    }
    assert write_caption(facts[4], np.random.default_rng(0)).text, "even an empty cell is described"


@pytest.mark.parametrize("regime", REGIMES)
def test_captions_of_procedural_cells_fit_their_cell(regime: str):
    grid = Grid(4, 4)
    ((_, land),) = Synthetic(count=1, seed=3, regime=regime).land_covers(grid)
    facts = cell_facts(land, grid, np.random.default_rng(0))
    described = list(describe_cells(land, grid, np.random.default_rng(0)))
    assert [cell for cell, _, _ in described] == list(grid.cells())
    for (cell, caption, fits), here in zip(described, facts, strict=True):
        assert caption.text
        assert caption.fits(here)
        assert cell in fits
        assert caption.facts.items() <= here.items()


def test_land_cover_shows_the_buildings_of_the_image():
    grid = Grid()
    ((area, land),) = Synthetic(count=1, seed=0, regime="city").land_covers(grid)
    assert area.mask is not None
    coarse = area.mask.reshape(128, 2, 128, 2).mean(axis=(1, 3)) > 0.5
    built = land.classes == Cover.BUILDING
    assert (coarse & built).sum() / (coarse | built).sum() > 0.8


def test_a_wrong_clause_is_about_another_cell():
    here, other = {"trees": "all"}, {"trees": "none"}
    caption = write_caption(here, np.random.default_rng(0), wrong=other)
    assert caption.facts == {"trees": "none"}
    assert not caption.fits(here)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["vague", "plain", "detailed"]))
def test_more_detail_states_more(seed: int, detail):
    facts = {"buildings": "few", "building size": "small", "road": "NS", "road at": "C", "trees": "some", "pool": "yes"}
    caption = write_caption(facts, np.random.default_rng(seed), detail)
    most = {"vague": 2, "plain": 4, "detailed": 8}[detail]
    assert 0 < len(caption.text) < 400
    assert caption.facts.items() <= facts.items()
    assert len({topic.removesuffix(" at").replace("building size", "buildings") for topic in caption.facts}) <= most


def test_a_landmark_in_a_neighbour_is_a_fact_of_the_cells_around_it():
    classes = ground()
    classes[60:90, 60:90] = Cover.BUILDING  # a hall in the middle cell
    facts = facts_of(classes)
    around = {0: "SE", 1: "S", 2: "SW", 3: "E", 5: "W", 6: "NE", 7: "N", 8: "NW"}
    assert {cell: facts[cell].get(f"by {side}") for cell, side in around.items()} == dict.fromkeys(around, "hall")
    assert not any(topic.startswith("by ") for topic in facts[4])
    assert (facts[1]["denser"], facts[4]["sparser"]) == ("S", "N")


def test_cover_two_cells_away_is_a_fact_where_it_differs():
    classes = ground()
    classes[:, 104:] = Cover.SEA
    facts = facts_of(classes)
    assert facts[3]["far E"] == "water"
    assert "far E" not in facts[4]
    assert "far W" not in facts[5]  # grass, as in the next cell


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"by NE": "railway"}, ("railway", "north-east")),
        ({"far W": "trees"}, ("west",)),
        ({"denser": "S"}, ("south",)),
        ({"sparser": "E"}, ("east",)),
    ],
)
def test_what_lies_around_is_said_in_words(facts: dict[str, str], words: tuple[str, ...]):
    for seed in range(8):
        caption = write_caption(facts, np.random.default_rng(seed))
        assert caption.facts == facts
        assert all(word in caption.text.lower() for word in words)


def test_cells_at_the_border_have_facts_about_what_may_lie_beyond_it():
    classes = ground()
    classes[:, 52:100] = Cover.SEA  # the middle column
    image = np.zeros((*classes.shape, 3), dtype=np.uint8)
    land = from_classes(classes, ALL, image, GRID.cell)
    inside, both = cell_facts(land, GRID), cell_facts(land, GRID, np.random.default_rng(0))
    assert "W" not in inside[3]
    assert (both[3]["W"], both[3]["E"], both[5]["E"]) == ("water", "water", "water")


def test_no_side_of_a_procedural_cell_is_left_out_more_often_at_the_border():
    rng, sides = np.random.default_rng(0), np.zeros((2, 2))
    for _, land in Synthetic(count=12, seed=3).land_covers(Grid()):
        for (_, col), facts in zip(Grid().cells(), cell_facts(land, Grid(), rng), strict=True):
            border = int(col == 0)
            sides[border] += any(topic in facts for topic in ("W", "by W", "far W", "beyond W")), 1
    rates = sides[:, 0] / sides[:, 1]
    assert rates[1] == pytest.approx(rates[0], abs=0.15)


@pytest.mark.parametrize(
    "clause", ["west of dense housing", "next to fields on the east", "treeless", "densely built up"]
)
def test_a_clause_that_names_no_object_follows_no_words_that_need_one(clause: str):
    rng = np.random.default_rng(0)
    openings = [start.strip().lower() for start in sentences._STARTS if start]
    needing = [f"{word} {clause}" for word in ("with", "beside", "and next to", "road next to", *openings)]
    needing += [f"{clause} {word} a road" for word in ("with", "beside", "and", "next to")]
    for _ in range(300):
        text = sentences._join(["a road", clause, "trees"], rng) + " " + sentences._join([clause, "a road"], rng)
        assert not any(words in text.lower() for words in needing), text
    assert not any("is" in opening.split() for opening in openings), "more houses may follow, or a single one"


def texts_from(facts: dict[str, str], seeds: int = 200) -> str:
    """All that is written from facts, in lower case."""
    return "\n".join(write_caption(facts, np.random.default_rng(seed)).text.lower() for seed in range(seeds))


def test_what_is_absent_is_not_said_to_lie_beside_the_next_thing():
    rng = np.random.default_rng(0)
    for _ in range(300):
        text = sentences._join(["no houses", "a road", "trees"], rng).lower()
        assert not any(f"no houses {word} a road" in text for word in ("with", "beside", "and", "next to")), text


@pytest.mark.parametrize("clause", ["without trees", "treeless", "densely built up", "loosely built", "covered by sea"])
def test_a_property_is_not_joined_to_things_by_and(clause: str):
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert f"and {clause}" not in sentences._join(["a road", "trees", clause], rng).lower()


def test_one_building_has_one_roof():
    one, many = (texts_from({"buildings": count, "roofs": "red"}) for count in ("1", "several"))
    assert "with a red roof" in one
    assert "roofs" not in one
    assert "with red roofs" in many
    assert "with a red roof" not in many


def test_nothing_lies_next_to_no_houses():
    text = texts_from({"E": "empty"})
    assert "next to empty land on the east" in text
    assert "west of empty land" in text
    assert not any(words in text for words in ("next to no", " of no"))
    assert "no houses further east" in text


def test_there_is_no_lot_of_a_river():
    assert "a lot of a" not in texts_from({"water": "much", "water kind": "river"})


def test_a_vague_road_fits_any_cell_with_a_road_and_no_other():
    caption = write_caption({"road": "NS"}, np.random.default_rng(0), "vague")
    assert caption.facts == {}
    assert caption.fits({"road": "EW"})
    assert not caption.fits({"road": "none"})
    assert not caption.fits({})
