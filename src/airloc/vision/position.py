"""The positional encoding of the paper: the position of a cell in its area as 256 numbers.

The first half encodes x (the row), the second y (the column), each with cosines at odd and sines at even places and
increasing wavelengths: for i = 1, ..., d / 2

    cos(x / 100^(2 (i - 1) / (d / 2)))  if i is odd,    sin(x / 100^(2 i / (d / 2)))  if i is even.

In the printed equation i continues up to d in the second half, where the wavelengths are so long that y has almost no
effect. That contradicts the text, by which leaving the area "is easy to avoid given" the encoding. Here i starts again
at 1, as in Transformers and in the authors' published code, unless the encoding is `printed`. The published code also
has much shorter wavelengths, so that all numbers change from cell to cell (`published`): for i = 0, ..., d / 2 - 1

    sin(x / e^(0.01 i))  if i is even,    cos(x / e^(0.01 (i - 1)))  if i is odd.

Positions outside the area are encoded in the same way.

A policy learns where the borders of its training grid are. On another grid, `to_training_grid` maps positions by their
distance to the nearest border; otherwise the policy would take the far side of a larger grid for the outside. The paper
encodes positions as they are. `PositionEncoding` selects the forms.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from airloc.grid import Grid

SIZE = 256
BASE = 100.0
EncodingForm = Literal["restarted", "printed", "published"]


@dataclass(frozen=True)
class PositionEncoding:
    """How the position of a cell becomes numbers, by default as in the shipped agents."""

    encoding: EncodingForm = "restarted"
    """The index of the second half starts again at 1, or continues as printed in the paper; or the encoding of the
    paper's published code."""
    positions: Literal["border", "raw"] = "border"
    """On other grids than the training grid: by the distance to the nearest border, or as they are."""

    def encode(self, position: torch.Tensor, grid: Grid, training_grid: Grid) -> torch.Tensor:
        """Encode cells (..., 2) of a grid: (..., 256) float32."""
        if self.positions == "border":
            position = to_training_grid(position, grid, training_grid)
        return encode_position(position, encoding=self.encoding)


def encode_position(position: torch.Tensor, size: int = SIZE, *, encoding: EncodingForm = "restarted") -> torch.Tensor:
    """Encode cells (..., 2): (..., size) float32."""
    half = size // 2
    number = torch.arange(1, half + 1, device=position.device, dtype=torch.float32)
    number = torch.stack([number, number + half]) if encoding == "printed" else number  # (2, half) or (half,)
    odd = number % 2 == 1
    if encoding == "published":
        odd, wavelength = ~odd, torch.exp(0.01 * 2 * ((number - 1) // 2))
    else:
        wavelength = BASE ** (torch.where(odd, 2 * (number - 1), 2 * number) / half)
    angle = position[..., None].float() / wavelength  # (..., 2, half)
    waves = torch.where(odd, angle.cos(), angle.sin())
    return waves.flatten(-2)


def to_training_grid(position: torch.Tensor, grid: Grid, training_grid: Grid) -> torch.Tensor:
    """Map positions (..., 2) on a grid to the training grid: the distance to the nearest border stays the same.

    Cells that are farther from every border than any cell of the training grid are mapped to its middle.

    >>> to_training_grid(torch.tensor([[0, 1], [3, 5], [6, 7]]), Grid(7, 7), Grid(5, 5)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    if grid.shape == training_grid.shape:
        return position
    sides = zip(grid.shape, training_grid.shape, strict=True)
    middle, excess = torch.tensor(
        [((min(pair) - 1) // 2, pair[0] - pair[1]) for pair in sides], device=position.device
    ).T
    return torch.where(position <= middle, position, torch.maximum(position - excess, middle))
