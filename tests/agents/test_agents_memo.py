import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.agents import airloc as sight
from airloc.agents import cache as memos
from airloc.agents.cache import CHUNK, FeatureCache, content_keys, pair_keys
from airloc.agents.inference import optimize_for_inference
from airloc.errors import AirlocError
from untrained import untrained_encoder


def counted(values: torch.Tensor, calls: list[int]):
    """Computes the square of values, and notes for how many at a time."""

    def compute(places: torch.Tensor) -> torch.Tensor:
        calls.append(len(places))
        return values[places, None].float() ** 2

    return compute


def test_only_what_is_new_is_computed_and_once():
    calls: list[int] = []
    first = torch.tensor([3, 5, 3, 3, 7])
    rows, memo = FeatureCache().lookup(first, counted(first, calls))
    assert rows.flatten().tolist() == [9, 25, 9, 9, 49]
    second = torch.tensor([7, 8, 8, 3])
    rows, _ = memo.lookup(second, counted(second, calls))
    assert rows.flatten().tolist() == [49, 64, 64, 9]
    assert calls == [3, 1]


def test_nothing_new_computes_nothing():
    calls: list[int] = []
    keys = torch.tensor([1, 2])
    _, memo = FeatureCache().lookup(keys, counted(keys, []))
    _, same = memo.lookup(keys, counted(keys, calls))
    assert calls == []
    assert same is memo


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), min_size=1, max_size=5))
def test_lookups_equal_direct_computation(batches: list[list[int]]):
    memo = FeatureCache()
    for batch in batches:
        keys = torch.tensor(batch)
        rows, memo = memo.lookup(keys, lambda places, keys=keys: keys[places, None] // 3)
        assert torch.equal(rows[:, 0], keys // 3)


def test_work_comes_in_chunks():
    calls: list[int] = []
    keys = torch.arange(2 * CHUNK + 1)
    rows, _ = FeatureCache().lookup(keys, counted(keys, calls))
    assert calls == [CHUNK, CHUNK, 1]
    assert torch.equal(rows[:, 0], keys.float() ** 2)


def test_a_memo_is_a_value():
    keys = torch.tensor([1])
    _, memo = FeatureCache().lookup(keys, counted(keys, []))
    before = dict(memo.rows)
    memo.lookup(torch.tensor([2]), counted(torch.tensor([2]), []))
    assert dict(memo.rows) == before


def test_a_memo_can_be_cut_down_to_some_keys():
    keys = torch.tensor([1, 2, 3])
    _, memo = FeatureCache().lookup(keys, counted(keys, []))
    few = memo.only(torch.tensor([3, 9]))
    assert list(few.rows) == [3]
    assert len(memo.rows) == 3


def test_a_full_memo_begins_anew_and_stays_right(monkeypatch):
    monkeypatch.setattr(memos, "LIMIT", 8)
    memo, sizes = FeatureCache(), []
    for start in range(10):
        keys = torch.tensor([start, start + 1, 0])
        rows, memo = memo.lookup(keys, counted(keys, []))
        assert rows.flatten().tolist() == [start**2, (start + 1) ** 2, 0]
        sizes.append(len(memo.rows))
    assert max(sizes) <= 5


def test_keys_follow_content_alone():
    patches = torch.randint(0, 256, (5, 48, 48, 3), dtype=torch.uint8)
    keys = content_keys(patches)
    assert torch.equal(keys, content_keys(patches.clone()))
    assert torch.equal(keys[2:3], content_keys(patches[2:3]))
    assert torch.equal(keys[::2], content_keys(patches[::2]))


def test_pictures_that_differ_in_one_bit_have_other_keys():
    rng = np.random.default_rng(0)
    for base in (0, 255):
        patches = torch.full((4001, 48, 48, 3), base, dtype=torch.uint8)
        chosen = rng.choice(48 * 48 * 3 * 8, size=4000, replace=False)
        flat = patches.view(4001, -1)
        flat[torch.arange(4000), torch.from_numpy(chosen // 8)] ^= torch.from_numpy(1 << chosen % 8).to(torch.uint8)
        assert len(content_keys(patches).unique()) == 4001


def test_pairs_are_ordered():
    a, b = content_keys(torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8)).split(1)
    assert pair_keys(a, b) != pair_keys(b, a)


@torch.inference_mode()
def test_sight_equals_the_embedder_on_every_pair():
    encoder = untrained_encoder()
    frozen = optimize_for_inference(encoder)
    cells = torch.randint(0, 256, (6, 48, 48, 3), dtype=torch.uint8)
    goal = cells[[0, 1, 2, 2]]
    seen = sight.begin(frozen, goal)
    for step in ([3, 3, 3, 3], [0, 1, 2, 3], [4, 5, 4, 5], [3, 3, 0, 1]):
        patch = cells[step]
        embedding, prior, seen = sight.see(frozen, patch, seen)
        direct = encoder.embedder(encoder.preprocess(patch), encoder.preprocess(goal))
        torch.testing.assert_close(embedding, direct[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(prior, direct[1], rtol=1e-4, atol=1e-4)
    assert len(seen.goals.rows) == 3
    assert len(seen.glimpses.rows) == 6


@torch.inference_mode()
def test_every_patch_of_a_batch_is_segmented_once(monkeypatch):
    encoder, looked = optimize_for_inference(untrained_encoder()), []
    look = encoder.preprocess
    monkeypatch.setattr(encoder, "look", lambda patches: (looked.append(len(patches)), look(patches))[1])
    cells = torch.randint(0, 256, (5, 48, 48, 3), dtype=torch.uint8)
    seen = sight.begin(encoder, cells[[0, 0, 1]])
    for step in ([2, 3, 2], [0, 1, 4], [4, 4, 0]):
        _, _, seen = sight.see(encoder, cells[step], seen)
    assert sum(looked) == 5


def test_eyes_that_learn_or_cells_of_another_size_are_refused():
    goal = torch.zeros(1, 48, 48, 3, dtype=torch.uint8)
    with pytest.raises(ValueError, match="eval mode"):
        sight.begin(untrained_encoder().train(), goal)
    with pytest.raises(AirlocError, match="cells of 48 x 48 px, not of 24 x 24"):
        sight.begin(untrained_encoder(), goal[:, ::2, ::2])


def test_freezing_leaves_the_original_as_it_was():
    encoder = untrained_encoder().train()
    optimize_for_inference(encoder)
    assert encoder.training
    assert any(isinstance(module, torch.nn.BatchNorm2d) for module in encoder.embedder.current_first)
    assert all(parameter.requires_grad for parameter in encoder.parameters())
