"""The positional encoding of the paper: where a cell lies in its area, as 256 numbers.

The first half encodes x (the row), the second y (the column), each with cosines at odd and sines at even places of ever
longer waves: for i = 1, ..., d / 2

    cos(x / 100^(2 (i - 1) / (d / 2)))  if i is odd,    sin(x / 100^(2 i / (d / 2)))  if i is even.

The equation as printed lets i run on to d in the second half, where every wave is so long that y would hardly show;
here i begins anew, as the text ("similarly to Transformers") means. Positions outside the area are encoded alike.

What a policy learns of positions are the borders of the grid it was trained on. On another grid it is told positions by
the nearest border (`as_trained`): else the far side of a larger grid would be the outside to it, where it never flies.
"""

import torch

from airloc.grid import Grid

SIZE = 256
BASE = 100.0


def encode_position(position: torch.Tensor, size: int = SIZE) -> torch.Tensor:
    """Encode cells (..., 2): (..., size) float32."""
    half = size // 2
    number = torch.arange(1, half + 1, device=position.device, dtype=torch.float32)
    odd = number % 2 == 1
    power = torch.where(odd, 2 * (number - 1), 2 * number) / half
    angle = position[..., None].float() / BASE**power  # (..., 2, half)
    waves = torch.where(odd, angle.cos(), angle.sin())
    return waves.flatten(-2)


def as_trained(position: torch.Tensor, grid: Grid, trained: Grid) -> torch.Tensor:
    """Positions (..., 2) on a grid as the trained one has them: as far from the nearest border, the inside its middle.

    >>> as_trained(torch.tensor([[0, 1], [3, 5], [6, 7]]), Grid(7, 7), Grid(5, 5)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    if grid.shape == trained.shape:
        return position
    sides = zip(grid.shape, trained.shape, strict=True)
    middle, spare = torch.tensor(
        [((min(pair) - 1) // 2, pair[0] - pair[1]) for pair in sides], device=position.device
    ).T
    return torch.where(position <= middle, position, torch.maximum(position - spare, middle))
