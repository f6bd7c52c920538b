import numpy as np
import pytest
import torch

from airloc.training.augment import recolour, turn_patches

SIDE = 6


@pytest.mark.parametrize(
    ("symmetry", "expected"),
    [
        (0, [[0, 1], [2, 3]]),
        (1, [[1, 0], [3, 2]]),
        (2, [[2, 3], [0, 1]]),
        (3, [[3, 2], [1, 0]]),
        (4, [[0, 2], [1, 3]]),
        (5, [[1, 3], [0, 2]]),
        (6, [[2, 0], [3, 1]]),
        (7, [[3, 1], [2, 0]]),
    ],
)
def test_the_eight_symmetries_on_a_worked_square(symmetry, expected):
    square = torch.tensor([[[[0, 1], [2, 3]]]])
    assert turn_patches(square, torch.tensor([symmetry]))[0, 0].tolist() == expected


def test_every_patch_is_turned_by_its_own_symmetry():
    patches = torch.randn(8, 4, SIDE, SIDE)
    shared_jitter = turn_patches(patches, torch.arange(8))
    for n in range(8):
        assert torch.equal(shared_jitter[n], turn_patches(patches[n : n + 1], torch.tensor([n]))[0])
    assert np.array_equal(shared_jitter[1], np.flip(patches[1].numpy(), axis=-1))


def test_no_strength_changes_nothing():
    pairs = torch.rand(3, 2, 3, SIDE, SIDE)
    torch.testing.assert_close(recolour(pairs, 0.0), pairs, rtol=1e-5, atol=1e-4)


def test_both_patches_of_a_pair_are_recoloured_alike_and_pairs_differently():
    torch.manual_seed(1)
    patch = torch.rand(1, 1, 3, SIDE, SIDE) * 0.5 + 0.2
    out = recolour(patch.expand(4, 2, -1, -1, -1), 1.0)
    torch.testing.assert_close(out[:, 0], out[:, 1], rtol=1e-4, atol=1e-6)
    assert all(not torch.allclose(out[0], out[n], atol=0.01) for n in range(1, 4))
    assert out.min() >= 0
    assert out.max() <= 1
    assert recolour(torch.randint(0, 2, (50, 2, 3, 4, 4)).float(), 1.0).isfinite().all()
