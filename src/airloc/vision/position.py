"""The positional encoding of the paper: where a cell lies in its area, as 256 numbers.

The first half encodes x (the row), the second y (the column), each with cosines at odd and sines at even places of ever
longer waves: for i = 1, ..., d / 2

    cos(x / 100^(2 (i - 1) / (d / 2)))  if i is odd,    sin(x / 100^(2 i / (d / 2)))  if i is even.

The equation as printed lets i run on to d in the second half, where every wave is so long that y would hardly show;
here i begins anew, as the text ("similarly to Transformers") means. Positions outside the area are encoded alike.
"""

import torch

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
