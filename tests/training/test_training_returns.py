import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.training.returns import discounted_returns, normalise_by_group


def test_discounted_returns_on_worked_numbers():
    # Found on the third move: -1 - 0.9 + 0.81 * 2, -1 + 0.9 * 2, 2; and never found, then zero after the end.
    reward = torch.tensor([[-1, -1, 2, 0], [-1, -1, -1, -1]])
    expected = [[-0.28, 0.8, 2.0, 0.0], [-3.439, -2.71, -1.9, -1.0]]
    assert discounted_returns(reward, 0.9).tolist() == [pytest.approx(row) for row in expected]
    assert torch.equal(discounted_returns(reward, 0.0), reward.float())
    assert torch.equal(discounted_returns(reward[:, :1], 0.9), reward[:, :1].float())


def test_groups_are_normalised_on_worked_numbers():
    value = torch.tensor([[1.0, 3.0, 10.0, 20.0, 30.0]])
    group = torch.tensor([[2, 2, 0, 0, 0]])
    out = normalise_by_group(value, group, torch.ones(1, 5), groups=4)
    outer = (3 / 2) ** 0.5  # 10 over the spread of 10, 20, 30, which is sqrt(200 / 3)
    assert out[0].tolist() == pytest.approx([-1.0, 1.0, -outer, 0.0, outer])


def test_a_group_without_spread_has_zero_mean_and_divides_by_one():
    value = torch.tensor([[7.3, 7.3, 7.3, 5.0]])
    out = normalise_by_group(value, torch.tensor([[1, 1, 1, 3]]), torch.ones(1, 4), groups=4)
    assert out.abs().max() < 1e-5


def test_what_does_not_count_changes_nothing():
    value = torch.tensor([[1.0, 3.0, 1000.0]])
    group = torch.zeros(1, 3, dtype=torch.long)
    out = normalise_by_group(value, group, torch.tensor([[1.0, 1.0, 0.0]]), groups=1)
    assert out[0, :2].tolist() == pytest.approx([-1.0, 1.0])
    assert out.isfinite().all()


def test_policies_are_normalised_independently():
    value = torch.tensor([[1.0, 3.0], [100.0, 300.0]])
    out = normalise_by_group(value, torch.zeros(2, 2, dtype=torch.long), torch.ones(2, 2), groups=1)
    assert torch.equal(out[0], out[1])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), policies=st.integers(1, 3), count=st.integers(1, 60), groups=st.integers(1, 6))
def test_every_group_ends_with_zero_mean_and_unit_variance(seed, policies, count, groups):
    chance = torch.Generator().manual_seed(seed)
    value = torch.randn(policies, count, generator=chance) * 5 - 3
    group = torch.randint(groups, (policies, count), generator=chance)
    counts = (torch.rand(policies, count, generator=chance) < 0.8).float()
    out = normalise_by_group(value, group, counts, groups)
    for k in range(policies):
        for number in range(groups):
            mine = out[k][(group[k] == number) & (counts[k] > 0)]
            if len(mine):
                assert abs(float(mine.mean())) < 1e-4
            if len(mine) > 1:
                assert float(mine.var(correction=0)) == pytest.approx(1.0, abs=1e-2)
