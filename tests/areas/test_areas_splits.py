"""Splits partition the areas in the paper's numbers; spatial ones never share a tile."""

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from airloc.areas.dataset import NAMES, by_area, by_tile, targets


def test_the_papers_1188_areas_split_832_178_178() -> None:
    assert Counter(by_area(1188, seed=0)) == {"train": 832, "val": 178, "test": 178}


def test_the_papers_132_tiles_split_by_whole_tiles_of_nine() -> None:
    split = Counter(by_tile([str(n // 9) for n in range(1188)], seed=0))
    assert split == {"train": 828, "val": 180, "test": 180}


@given(st.integers(0, 400), st.integers(0, 9))
def test_splits_by_area_meet_their_targets(count: int, seed: int) -> None:
    split = Counter(by_area(count, seed))
    assert {name: split[name] for name in NAMES} == targets(count)
    assert sum(targets(count).values()) == count


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(0, 9))
def test_no_tile_is_in_two_splits_and_no_split_is_a_tile_too_large(sizes: list[int], seed: int) -> None:
    tiles = [str(tile) for tile, size in enumerate(sizes) for _ in range(size)]
    split = by_tile(tiles, seed)
    homes = defaultdict(set)
    for tile, name in zip(tiles, split, strict=True):
        homes[tile].add(name)
    assert all(len(names) == 1 for names in homes.values())
    counts = Counter(split)
    assert all(counts[name] < target + max(sizes) for name, target in targets(len(tiles)).items())


def test_the_seed_draws_the_split() -> None:
    assert by_area(100, 1) == by_area(100, 1) != by_area(100, 2)
    tiles = [str(n) for n in range(50)]
    assert by_tile(tiles, 1) == by_tile(tiles, 1) != by_tile(tiles, 2)
