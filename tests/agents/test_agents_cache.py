import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents import cache as cache_module
from airloc.agents.cache import CHUNK, FeatureCache, content_keys, pair_keys


def counted(values: torch.Tensor, calls: list[int]):
    """Return a function that squares values and records the number of values in each call."""

    def compute(places: torch.Tensor) -> torch.Tensor:
        calls.append(len(places))
        return values[places, None].float() ** 2

    return compute


def test_only_missing_rows_are_computed_and_each_once():
    calls: list[int] = []
    first = torch.tensor([3, 5, 3, 3, 7])
    rows, cache = FeatureCache().lookup(first, counted(first, calls))
    assert rows.flatten().tolist() == [9, 25, 9, 9, 49]
    second = torch.tensor([7, 8, 8, 3])
    rows, _ = cache.lookup(second, counted(second, calls))
    assert rows.flatten().tolist() == [49, 64, 64, 9]
    assert calls == [3, 1]


def test_cached_rows_are_not_computed_again():
    calls: list[int] = []
    keys = torch.tensor([1, 2])
    _, cache = FeatureCache().lookup(keys, counted(keys, []))
    _, same = cache.lookup(keys, counted(keys, calls))
    assert calls == []
    assert same is cache


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), min_size=1, max_size=5))
def test_lookups_equal_direct_computation(batches: list[list[int]]):
    cache = FeatureCache()
    for batch in batches:
        keys = torch.tensor(batch)
        rows, cache = cache.lookup(keys, lambda places, keys=keys: keys[places, None] // 3)
        assert torch.equal(rows[:, 0], keys // 3)


def test_rows_are_computed_in_chunks():
    calls: list[int] = []
    keys = torch.arange(2 * CHUNK + 1)
    rows, _ = FeatureCache().lookup(keys, counted(keys, calls))
    assert calls == [CHUNK, CHUNK, 1]
    assert torch.equal(rows[:, 0], keys.float() ** 2)


def test_a_cache_is_a_value():
    keys = torch.tensor([1])
    _, cache = FeatureCache().lookup(keys, counted(keys, []))
    before = dict(cache.rows)
    cache.lookup(torch.tensor([2]), counted(torch.tensor([2]), []))
    assert dict(cache.rows) == before


def test_a_cache_can_be_reduced_to_some_keys():
    keys = torch.tensor([1, 2, 3])
    _, cache = FeatureCache().lookup(keys, counted(keys, []))
    few = cache.only(torch.tensor([3, 9]))
    assert list(few.rows) == [3]
    assert len(cache.rows) == 3


def test_a_full_cache_is_cleared_and_stays_correct(monkeypatch):
    monkeypatch.setattr(cache_module, "LIMIT", 8)
    cache, sizes = FeatureCache(), []
    for start in range(10):
        keys = torch.tensor([start, start + 1, 0])
        rows, cache = cache.lookup(keys, counted(keys, []))
        assert rows.flatten().tolist() == [start**2, (start + 1) ** 2, 0]
        sizes.append(len(cache.rows))
    assert max(sizes) <= 5


def test_keys_depend_on_content_alone():
    patches = torch.randint(0, 256, (5, 48, 48, 3), dtype=torch.uint8)
    keys = content_keys(patches)
    assert torch.equal(keys, content_keys(patches.clone()))
    assert torch.equal(keys[2:3], content_keys(patches[2:3]))
    assert torch.equal(keys[::2], content_keys(patches[::2]))


def test_patches_that_differ_in_one_bit_have_different_keys():
    rng = np.random.default_rng(0)
    for base in (0, 255):
        patches = torch.full((4001, 48, 48, 3), base, dtype=torch.uint8)
        chosen = rng.choice(48 * 48 * 3 * 8, size=4000, replace=False)
        flat = patches.view(4001, -1)
        flat[torch.arange(4000), torch.from_numpy(chosen // 8)] ^= torch.from_numpy(1 << chosen % 8).to(torch.uint8)
        assert len(content_keys(patches).unique()) == 4001


def test_pair_keys_depend_on_the_order():
    a, b = content_keys(torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8)).split(1)
    assert pair_keys(a, b) != pair_keys(b, a)
