import numpy as np
import pytest
import torch

from airloc.grid import MOVES
from airloc.training.augment import SYMMETRIES, directions_after, recolour, turn_directions, turn_patches

SIDE, PITCH = 6, 8
"""Small patches with a gap of two pixels."""


def pair(image: torch.Tensor, direction: int) -> torch.Tensor:
    """The patch in the middle of an image (C, 3 PITCH - 2, 3 PITCH - 2) and its neighbour in a direction."""
    row, col = ((1 + step) * PITCH for step in MOVES[direction].tolist())
    middle = image[:, PITCH : PITCH + SIDE, PITCH : PITCH + SIDE]
    return torch.stack([middle, image[:, row : row + SIDE, col : col + SIDE]])


@pytest.mark.parametrize("direction", range(8))
@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_a_turned_pair_is_the_pair_of_the_turned_image(symmetry, direction):
    image = torch.randn(3, 3 * PITCH - 2, 3 * PITCH - 2, generator=torch.Generator().manual_seed(0))
    by = torch.tensor([symmetry, symmetry])
    turned = turn_patches(pair(image, direction), by)
    label = int(turn_directions(torch.tensor([direction]), by[:1]))
    whole = turn_patches(image[None], by[:1])[0]
    assert torch.equal(turned, pair(whole, label))


def test_the_bits_of_a_symmetry_on_worked_directions():
    number = {tuple(step): n for n, step in enumerate(MOVES.tolist())}
    north, east, south, north_east = number[-1, 0], number[0, 1], number[1, 0], number[-1, 1]
    after = directions_after(torch.device("cpu"))
    assert after[0].tolist() == list(range(8))
    assert after[1, east] == number[0, -1]
    assert after[2, north] == south
    assert after[4, north] == number[0, -1], "transposing lays the top on the left"
    assert after[4, north_east] == number[1, -1]
    assert sorted(map(tuple, after.tolist())) == sorted(set(map(tuple, after.tolist()))), "eight different symmetries"
    assert all(sorted(row) == list(range(8)) for row in after.tolist())


def test_every_patch_is_turned_by_its_own_symmetry():
    patches = torch.randn(8, 4, SIDE, SIDE)
    together = turn_patches(patches, torch.arange(8))
    for n in range(8):
        assert torch.equal(together[n], turn_patches(patches[n : n + 1], torch.tensor([n]))[0])
    assert np.array_equal(together[1], np.flip(patches[1].numpy(), axis=-1))


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
