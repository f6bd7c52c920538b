"""Photos of places in an area: each with its own errors of position, heading and height, lens, light and compression.

In a real flight every glimpse is a photo of its own. It is rendered from the image of the area with its own position,
heading and height, its own sharpness, exposure, white balance and noise, and it is compressed on its own block grid.
`FlightConditions` takes such photos of all cells of an area, for the task. Training takes them with the same functions:
`capture`, then `compress`.

All operations have static shapes, so that a training step can be captured as a CUDA graph.

Legend: A areas, P photos of an area, N images or photos, H, W height and width of an image, S side of a patch, n cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch.nn.functional import avg_pool2d, grid_sample, interpolate

from airloc.areas.area import Pixels, SearchArea, fit
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import derive

Role: TypeAlias = Literal["glimpse", "goal"]
"""What a photo is used for. The glimpse and the goal of one cell are different photos."""
ROLES: tuple[Role, Role] = ("glimpse", "goal")

BLOCK = 16
"""Pixels rendered beyond a patch: the JPEG block grid, 16 px with chroma subsampling, can then have any phase."""
MARGIN = 16
"""Pixels around the grid that photos with errors can show. Without them, photos would show the border of the area."""
POSITION, HEADING, HEIGHT = 0.03, 4.0, 0.04
"""Standard deviations of the errors at strength one: position in cells, heading in degrees, height relative."""
LARGEST_ERROR = 2.5
"""Errors are normal, and cut off at this many standard deviations."""
MAX_STRENGTH = 5.0
"""Largest strength of flight conditions. The centre of a photo is then still inside its own cell."""
QUALITY_LOSS = (10.0, 40.0)
"""Smallest and largest loss of JPEG quality at strength one: 100 less the quality, which is 60 to 90."""
LOWEST_QUALITY = 10.0
"""Lowest JPEG quality at any strength."""
_LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
"""Quantisation table of luma at quality 50 (ITU-T T.81, table K.1)."""
_CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *(((99,) * 8,) * 4),
)
"""Quantisation table of chroma at quality 50 (ITU-T T.81, table K.2)."""


@dataclass(frozen=True)
class FlightConditions:
    """Every glimpse and every goal is a photo of its own, with its own errors.

    The photos depend on the seed, the name of the area, the cell, the role (glimpse or goal) and the variant only. They
    do not depend on other areas, the batch or the device. Beyond the border of an area, photos show its mirror image.

    At strength one, each photo has these errors, normal with these standard deviations and cut off at 2.5 of them:

    | error         | standard deviation                                                             |
    |---------------|--------------------------------------------------------------------------------|
    | position      | 3 % of the distance between cells, in each direction                           |
    | heading       | 4 degrees                                                                      |
    | height        | 4 %                                                                            |
    | exposure      | factors: brightness e^0.12, contrast e^0.1, saturation e^0.15, exponent e^0.1  |
    | white balance | factors of red, green and blue: e^0.04 each                                    |
    | lens, sensor  | sometimes blur or sharpening, chromatic shift, vignetting and noise            |
    | compression   | JPEG of quality 60 to 90, uniform, with and without chroma subsampling         |

    A strength of s multiplies the errors, and the loss of JPEG quality (10 to 40 at one), by s.
    """

    strength: float = 1.0
    """Strength of the errors, 0 to 5. Zero gives the exact cells."""
    seed: int = 0
    """Random seed of the photos."""
    variants: int = 1
    """Number of photos of each cell and role. An environment draws one variant for each episode."""

    def __post_init__(self) -> None:
        check_strength(self.strength)
        if self.variants < 1:
            raise AirlocError(f"Cells cannot have {self.variants} photos", "Use one variant or more")

    def photograph(
        self, areas: Sequence[SearchArea], grid: Grid, role: Role = "glimpse", variant: int = 0
    ) -> list[SearchArea]:
        """Return the areas as photographed: every cell shows its photo, and the gaps between cells do not change.

        Args:
            areas: The areas, which are fitted to the grid if necessary.
            grid: The grid.
            role: Glimpses and goals are different photos.
            variant: Number of the photo, from zero on.
        """
        return [self._photograph(fit(area, grid), grid, role, variant) for area in areas]

    def apply(
        self, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None, grid: Grid, variant: int = 0
    ) -> tuple[list[SearchArea], list[SearchArea]]:
        """Return the areas of a suite as photographed, for glimpses and for goals.

        Goals are photos of `goal_areas` if there are any, or else of `areas`.
        """
        goals = areas if goal_areas is None else goal_areas
        return self.photograph(areas, grid, "glimpse", variant), self.photograph(goals, grid, "goal", variant)

    def _photograph(self, area: SearchArea, grid: Grid, role: Role, variant: int) -> SearchArea:
        """Return an area of the grid's size as photographed."""
        seed = derive(self.seed, "flight", role, ascii(area.name), variant)
        photos = self._photos(area.image, grid, torch.Generator().manual_seed(seed))
        image = area.image.copy()
        for cell, photo in zip(grid.cells(), photos, strict=True):
            left, top, right, bottom = grid.box(cell)
            image[top:bottom, left:right] = photo
        return replace(area, image=image)

    @torch.no_grad()
    def _photos(self, image: Pixels, grid: Grid, generator: torch.Generator) -> Pixels:
        """Take one photo of each cell of an image in row-major order, (n, S, S, 3)."""
        images = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None] / 255
        corner = torch.tensor([*grid.cells()], dtype=torch.float32).T[:, None] * grid.pitch  # (2, 1, n)
        strength = torch.full((1, 1), float(self.strength))
        shots, phase = capture(images, grid, corner, torch.zeros(1, grid.count), strength, generator)
        low, high = (max(100 - loss * self.strength, LOWEST_QUALITY) for loss in reversed(QUALITY_LOSS))
        quality, subsampled = draw_quality(grid.count, low, high, shots.device, generator)
        compressed = torch.full((grid.count,), self.strength > 0)
        photos = compress(shots, phase, grid.cell, quality, subsampled, compressed)
        taken: Pixels = (photos * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        return taken


def check_strength(strength: float) -> float:
    """Return a strength of flight conditions, or raise an error if it is not a number from 0 to 5."""
    if isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= strength <= MAX_STRENGTH:
        raise AirlocError(
            f"Flight conditions cannot have a strength of {strength!r}",
            f"Use a number from 0 (exact cells) to {MAX_STRENGTH:g}; 1 is a usual flight",
        )
    return strength


def jpeg(images: torch.Tensor, quality: torch.Tensor, subsampled: torch.Tensor) -> torch.Tensor:
    """Compress and decompress images as JPEG does, with the block grid at (0, 0).

    Args:
        images: RGB in [0, 1], (N, 3, H, W). H and W are multiples of 16.
        quality: Quality of each image, 1 to 100, (N,).
        subsampled: Whether the chroma of each image is subsampled (4:2:0), bool (N,).
    """
    scale = torch.where(quality < 50, 5000 / quality, 200 - 2 * quality)[:, None, None]
    luma_table, chroma_table = (
        ((table * scale + 50) / 100).floor().clamp(1, 255) for table in _tables(images.device)
    )  # (N, 8, 8)
    images = (images * 255).round()
    luma = _luma(images)
    differences = [(images[:, 2] - luma) / 1.772, (images[:, 0] - luma) / 1.402]
    chroma = torch.stack(differences, dim=1)  # (N, 2, H, W), zero for grey
    luma = _quantise(luma[:, None] - 128, luma_table)[:, 0] + 128
    full = _quantise(chroma, chroma_table)
    half = interpolate(_quantise(avg_pool2d(chroma, 2), chroma_table), scale_factor=2, mode="bilinear")
    cb, cr = torch.where(subsampled[:, None, None, None], half, full).unbind(dim=1)
    rgb = torch.stack([luma + 1.402 * cr, luma - 0.344136 * cb - 0.714136 * cr, luma + 1.772 * cb], dim=1)
    return (rgb.round() / 255).clamp(0, 1)


def capture(
    images: torch.Tensor,
    grid: Grid,
    corner: torch.Tensor,
    angle: torch.Tensor,
    strength: torch.Tensor,
    generator: torch.Generator | None = None,
    *,
    zoom: torch.Tensor | float = 1.0,
    aligned: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Take uncompressed photos of places in areas, with up to 16 px around each patch.

    Args:
        images: Areas, RGB in [0, 1], (A, 3, H, W). Beyond their border they are mirrored.
        grid: The grid.
        corner: Row and column of the upper left pixel of each place in the image, (2, A, P).
        angle: Rotation of each place in radians, (A, P).
        strength: Strength of the errors of an area's photos, (A, 1). Zero gives exact crops.
        generator: Random generator on the device of the images. Default: the global one.
        zoom: Side of the ground that each photo shows, in cells, (A, P) or one number.
        aligned: Areas whose photos begin with a whole JPEG block, bool (A, 1). Default: none.

    Returns:
        Photos (A * P, 3, H, W), and the row and the column at which the patch begins in each, (2, A * P).
    """
    areas, photos = angle.shape
    device = images.device
    errors = torch.randn(4, areas, photos, device=device, generator=generator)
    errors = errors.clamp(-LARGEST_ERROR, LARGEST_ERROR) * strength
    centre = corner + (grid.cell - 1) / 2 + errors[:2] * POSITION * grid.pitch
    angle = angle + errors[2] * math.radians(HEADING)
    phase = (torch.rand(2, areas, photos, device=device, generator=generator) * (BLOCK + 1)).floor()
    if aligned is not None:
        phase = phase.masked_fill(aligned, 0.0)
    shots = render(images, centre, angle, zoom * (errors[3] * HEIGHT).exp(), phase, grid.cell).flatten(0, 1)
    return expose(shots, strength.expand(-1, photos).flatten(), generator), phase.long().flatten(1)


def draw_quality(
    count: int, low: float, high: float, device: torch.device, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the JPEG quality, uniform from low to high, and the chroma subsampling of images, each (N,)."""
    quality, subsampling = torch.rand(2, count, device=device, generator=generator)
    return low + (high - low) * quality, subsampling < 0.5


def compress(
    photos: torch.Tensor,
    phase: torch.Tensor,
    patch: int,
    quality: torch.Tensor,
    subsampled: torch.Tensor,
    compressed: torch.Tensor,
) -> torch.Tensor:
    """Compress photos of `capture` where `compressed` (N,) is True, and crop their patches, (N, 3, S, S)."""
    shots = torch.where(compressed[:, None, None, None], jpeg(photos, quality, subsampled), photos)
    top, left = phase
    return crop(shots, top, left, patch, patch)


def render(
    images: torch.Tensor,
    centre: torch.Tensor,
    angle: torch.Tensor,
    zoom: torch.Tensor,
    phase: torch.Tensor,
    patch: int,
) -> torch.Tensor:
    """Render photos (A, P, 3, side, side) from areas, with a side of whole JPEG blocks.

    The patch of `patch` pixels around `centre` begins at `phase`, both (2, A, P).
    """
    areas, photos = angle.shape
    height, width = images.shape[2:]
    side = patch + BLOCK + -patch % BLOCK
    step = torch.arange(side, device=images.device, dtype=torch.float32)
    down, right = step - phase[..., None] - (patch - 1) / 2  # (A, P, side) each
    cos, sin = ((zoom * part)[..., None, None] for part in (angle.cos(), angle.sin()))
    row = centre[0][..., None, None] + cos * down[..., :, None] + sin * right[..., None, :]
    col = centre[1][..., None, None] - sin * down[..., :, None] + cos * right[..., None, :]
    where = torch.stack([(col + 0.5) * 2 / width - 1, (row + 0.5) * 2 / height - 1], dim=-1)
    where = where.view(areas, photos * side, side, 2)  # all photos of an area in one sample
    shots = grid_sample(images, where, mode="bicubic", padding_mode="reflection", align_corners=False)
    return shots.view(areas, 3, photos, side, side).transpose(1, 2)


def expose(photos: torch.Tensor, strength: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """Give every photo (N, 3, H, W) its own lens, light and sensor; strength (N,), zero changes nothing."""
    count, device = len(photos), photos.device

    def normal(channels: int = 1) -> torch.Tensor:
        level = torch.randn(count, channels, 1, 1, device=device, generator=generator)
        return level.clamp(-LARGEST_ERROR, LARGEST_ERROR) * strength[:, None, None, None]

    def sometimes(probability: float) -> torch.Tensor:
        return (torch.rand(count, 1, 1, 1, device=device, generator=generator) < probability).float()

    # Lens: blur or sharpening, chromatic shift, vignetting.
    sharpness = sometimes(0.6) * (normal() * 0.5).clamp(-0.9, 0.9)
    photos = photos + sharpness * (blur(photos) - photos)
    shift = sometimes(0.3) * (normal(2) * 0.7).abs().clamp(max=0.7)
    red, green, blue = (photos[:, channel : channel + 1] for channel in range(3))
    red, blue = red + shift[:, :1] * (red.roll(1, 3) - red), blue + shift[:, 1:] * (blue.roll(1, 2) - blue)
    row, col = (torch.linspace(-1, 1, side, device=device) for side in photos.shape[2:])
    vignetting = sometimes(0.3) * (normal() * 0.1).abs() * (row[:, None] ** 2 + col**2)
    photos = torch.cat([red, green, blue], dim=1) * (1 - vignetting)
    # Light: saturation, contrast, exposure, white balance, gamma.
    grey = photos.mean(dim=1, keepdim=True)
    photos = grey + (photos - grey) * (normal() * 0.15).exp()
    middle = photos.mean(dim=(1, 2, 3), keepdim=True)
    photos = middle + (photos - middle) * (normal() * 0.1).exp()
    photos = photos * (normal() * 0.12).exp() * (normal(3) * 0.04).exp()
    photos = photos.clamp(0, 1).pow((normal() * 0.1).exp())
    # Sensor: noise.
    grain = torch.randn(photos.shape, device=device, generator=generator)
    return (photos + grain * sometimes(0.5) * normal().abs() * 0.012).clamp(0, 1)


def blur(photos: torch.Tensor) -> torch.Tensor:
    """Blur photos with the kernel 1 2 1 along both axes, edges repeated."""
    rows = torch.cat([photos[:, :, :1], photos, photos[:, :, -1:]], dim=2)
    photos = (rows[:, :, :-2] + 2 * rows[:, :, 1:-1] + rows[:, :, 2:]) / 4
    cols = torch.cat([photos[..., :1], photos, photos[..., -1:]], dim=3)
    return (cols[..., :-2] + 2 * cols[..., 1:-1] + cols[..., 2:]) / 4


def average_chroma(rgb: torch.Tensor, scale: int) -> torch.Tensor:
    """Average the chroma of images (N, 3, H, W) over squares of `scale` pixels and interpolate it; luma stays as it is.

    JPEG with subsampled chroma does the same at a scale of 2. H and W are multiples of the scale.
    """
    luma = _luma(rgb)[:, None]
    chroma = rgb - luma
    return luma + interpolate(avg_pool2d(chroma, scale), scale_factor=scale, mode="bilinear")


def _luma(rgb: torch.Tensor) -> torch.Tensor:
    """Return the luma of images (N, 3, H, W), (N, H, W)."""
    red, green, blue = rgb.unbind(dim=1)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _quantise(planes: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Quantise the 8 x 8 DCT of planes (N, C, H, W) by tables (N, 8, 8)."""
    count, channels, height, width = planes.shape
    basis = _dct_basis(planes.device)
    blocks = planes.view(count, channels, height // 8, 8, width // 8, 8).transpose(3, 4)
    step = table[:, None, None, None]
    coefficients = (basis @ blocks @ basis.T / step).round() * step
    return (basis.T @ coefficients @ basis).transpose(3, 4).reshape(planes.shape)


@lru_cache
def _tables(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the quantisation tables of luma and chroma at quality 50, each (8, 8)."""
    luma, chroma = (torch.tensor(table, dtype=torch.float32, device=device) for table in (_LUMA, _CHROMA))
    return luma, chroma


@lru_cache
def _dct_basis(device: torch.device) -> torch.Tensor:
    """Return the orthonormal DCT of eight samples, (8, 8)."""
    index = torch.arange(8, device=device, dtype=torch.float32)
    basis = torch.cos((2 * index + 1) * index[:, None] * math.pi / 16) / 2
    return torch.where(index[:, None] == 0, basis / math.sqrt(2), basis)


def crop(images: torch.Tensor, top: torch.Tensor, left: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Crop (N, 3, height, width) from images, each at its own corner (N,)."""
    rows = top[:, None] + torch.arange(height, device=images.device)
    cols = left[:, None] + torch.arange(width, device=images.device)
    number = torch.arange(len(images), device=images.device)[:, None, None]
    return images.permute(0, 2, 3, 1)[number, rows[:, :, None], cols[:, None]].permute(0, 3, 1, 2)


def reflect(index: torch.Tensor, side: int) -> torch.Tensor:
    """Reflect indices into 0..side - 1."""
    index = index.abs()
    return torch.where(index >= side, 2 * side - 2 - index, index).clamp(0, side - 1)
