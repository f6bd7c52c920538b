"""Photos of cells: compression, and flight conditions of any strength."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cell_tables, cut_patches
from airloc.task.photos import HEADING, HEIGHT, MAX_STRENGTH, POSITION, FlightConditions, average_chroma, capture, jpeg

GRID = Grid(3, 4)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return generate(3, size=(176, 176), regime="suburb").image


@pytest.fixture(scope="module")
def areas() -> list[SearchArea]:
    return [SearchArea(f"area {n}", generate(n, size=GRID.size, regime="suburb").image) for n in range(3)]


def as_tensor(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255


def save_jpeg(image: np.ndarray, quality: int, subsampling: int = 0) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, subsampling=subsampling)
    return np.asarray(Image.open(file))


@pytest.mark.parametrize("quality", [30, 60, 75])
@pytest.mark.parametrize("subsampling", [0, 2])
def test_compression_is_that_of_pillow(image: np.ndarray, quality: int, subsampling: int):
    pillow = save_jpeg(image, quality, subsampling).astype(float)
    ours = jpeg(as_tensor(image), torch.tensor([float(quality)]), torch.tensor([subsampling == 2]))
    difference = np.abs(ours[0].permute(1, 2, 0).numpy() * 255 - pillow).mean()
    assert difference < 0.25 * np.abs(pillow - image).mean()


def test_less_quality_changes_more(image: np.ndarray):
    images = as_tensor(image).expand(3, -1, -1, -1)
    done = jpeg(images, torch.tensor([95.0, 70.0, 20.0]), torch.zeros(3, dtype=torch.bool))
    change = (done - images).abs().mean(dim=(1, 2, 3))
    assert change[0] < change[1] < change[2]


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_averaged_chroma_leaves_luma_and_greys_and_turns_with_the_image(scale: int):
    rgb = torch.rand(2, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    luma = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    averaged = average_chroma(rgb, scale)
    torch.testing.assert_close((luma * averaged).sum(dim=1), (luma * rgb).sum(dim=1))
    torch.testing.assert_close(average_chroma(rgb.rot90(1, (2, 3)), scale), averaged.rot90(1, (2, 3)))
    grey = rgb[:, :1].expand(-1, 3, -1, -1)
    torch.testing.assert_close(average_chroma(grey, scale), grey)
    assert (averaged - rgb).abs().mean() > 0.1


def test_chroma_averaged_over_two_pixels_is_that_of_subsampled_jpeg(image: np.ndarray):
    pillow = as_tensor(save_jpeg(image, 100, subsampling=2))
    untouched, averaged = as_tensor(image), average_chroma(as_tensor(image), 2)
    assert (averaged - pillow).abs().mean() < 0.3 * (untouched - pillow).abs().mean()


@given(
    rows=st.integers(1, 4), cols=st.integers(2, 4), cell=st.integers(5, 60), gap=st.integers(0, 6), seed=st.integers()
)
@settings(max_examples=25)
def test_photos_of_strength_zero_are_the_exact_cells(rows: int, cols: int, cell: int, gap: int, seed: int):
    grid = Grid(rows, cols, cell, gap)
    image = np.random.default_rng(abs(seed)).integers(0, 256, (*grid.size, 3), dtype=np.uint8)
    (photographed,) = FlightConditions(0, seed).photograph([SearchArea("x", image)], grid)
    assert np.array_equal(photographed.image, image)


@given(strength=st.floats(0, MAX_STRENGTH), cell=st.integers(5, 50), name=st.text(), seed=st.integers())
@settings(max_examples=25)
def test_photos_of_any_strength_keep_the_area_around_them(strength: float, cell: int, name: str, seed: int):
    grid = Grid(2, 3, cell, 3)
    image = np.random.default_rng(0).integers(0, 256, (*grid.size, 3), dtype=np.uint8)
    (photographed,) = FlightConditions(strength, seed).photograph([SearchArea(name, image, tile="t")], grid)
    gaps = np.ones(grid.size, dtype=bool)
    for left, top, right, bottom in map(grid.box, grid.cells()):
        gaps[top:bottom, left:right] = False
    assert np.array_equal(photographed.image[gaps], image[gaps])
    assert (photographed.name, photographed.tile) == (name, "t")


def test_a_photo_depends_on_seed_area_role_and_variant_only(areas: list[SearchArea]):
    flight = FlightConditions(1.0, seed=5)
    alone = flight.photograph([areas[1]], GRID)[0].image
    assert np.array_equal(flight.photograph(areas, GRID)[1].image, alone)
    assert np.array_equal(flight.photograph(areas[::-1], GRID)[1].image, alone)
    torch.manual_seed(99)
    assert np.array_equal(FlightConditions(1.0, seed=5, variants=3).photograph(areas, GRID)[1].image, alone)
    others = [
        FlightConditions(1.0, seed=6).photograph([areas[1]], GRID)[0],
        FlightConditions(0.9, seed=5).photograph([areas[1]], GRID)[0],
        flight.photograph([SearchArea("other", areas[1].image)], GRID)[0],
        flight.photograph([areas[1]], GRID, "goal")[0],
        flight.photograph([areas[1]], GRID, "glimpse", variant=1)[0],
    ]
    for other in others:
        differs = (cut_patches(other.image, GRID) != cut_patches(alone, GRID)).mean(axis=(1, 2, 3))
        assert (differs > 0.2).all(), "every cell has another photo"


def test_photos_leave_the_global_random_numbers_alone(areas: list[SearchArea]):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    FlightConditions().photograph(areas[:1], GRID)
    assert torch.equal(torch.rand(3), expected)


def test_more_strength_changes_more(areas: list[SearchArea]):
    exact = areas[0].image.astype(float)
    change = [
        np.abs(FlightConditions(strength).photograph(areas[:1], GRID)[0].image - exact).mean()
        for strength in (0, 0.5, 1, 2, 4)
    ]
    assert change == sorted(change)
    assert change[0] == 0


def test_goals_of_other_areas_are_photos_of_those(areas: list[SearchArea]):
    flight = FlightConditions()
    glimpses, goals = flight.apply(areas[:1], areas[1:2], GRID)
    assert np.array_equal(glimpses[0].image, flight.photograph(areas[:1], GRID, "glimpse")[0].image)
    assert np.array_equal(goals[0].image, flight.photograph(areas[1:2], GRID, "goal")[0].image)


def test_tables_hold_the_photos_of_all_variants(areas: list[SearchArea]):
    flight = FlightConditions(variants=2)
    cells, goal_cells = cell_tables(areas, GRID, flight=flight)
    assert (cells.areas, goal_cells.areas) == (6, 6)
    for role, table in (("glimpse", cells), ("goal", goal_cells)):
        for variant in range(2):
            for number, area in enumerate(flight.photograph(areas, GRID, role, variant)):
                first = (variant * len(areas) + number) * GRID.count
                assert np.array_equal(table.array[first : first + GRID.count], cut_patches(area.image, GRID))
        assert not table.array[-1].any(), "the patch outside stays black"


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_errors_of_position_heading_and_height_have_the_documented_size(
    monkeypatch: pytest.MonkeyPatch, strength: float
):
    """Photograph an image whose colours are its coordinates, and fit the pose of every photo to what it shows."""
    monkeypatch.setattr("airloc.task.photos.expose", lambda photos, strength, generator: photos)
    grid = Grid(20, 20)
    height, width = grid.size
    row, col = torch.meshgrid(torch.arange(height) / height, torch.arange(width) / width, indexing="ij")
    inner = torch.tensor([cell for cell in grid.cells() if 1 <= min(cell) <= max(cell) <= 18])
    corner = inner.T[:, None].float() * grid.pitch
    level = torch.full((1, 1), strength)
    errors = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        coordinates = torch.stack([row, col, torch.zeros_like(row)])[None]
        shots, phase = capture(coordinates, grid, corner, torch.zeros(1, len(inner)), level, generator)
        errors.append(pose_errors(shots[:, 0] * height, shots[:, 1] * width, phase, corner[:, 0], grid.cell))
    position, heading, zoom = (torch.cat(parts, dim=-1) for parts in zip(*errors, strict=True))
    assert position.std() == pytest.approx(strength * POSITION * grid.pitch, rel=0.1)
    assert torch.rad2deg(heading).std() == pytest.approx(strength * HEADING, rel=0.1)
    assert zoom.log().std() == pytest.approx(strength * HEIGHT, rel=0.1)
    for part in (position, heading, zoom.log()):
        assert part.mean().abs() < 0.1 * part.std()


def test_aligned_photos_begin_with_a_whole_block(areas: list[SearchArea]):
    images = as_tensor(areas[0].image).expand(2, -1, -1, -1)
    corner, upright, still = torch.zeros(2, 2, 40), torch.zeros(2, 40), torch.zeros(2, 1)
    shots, phase = capture(images, GRID, corner, upright, still, aligned=torch.tensor([[True], [False]]))
    aligned, other = phase.view(2, 2, 40).unbind(dim=1)
    assert not aligned.any()
    assert other.any()
    torch.testing.assert_close(shots[0, :, : GRID.cell, : GRID.cell], images[0, :, : GRID.cell, : GRID.cell])


def test_a_zoom_of_two_shows_twice_the_ground():
    row, col = torch.meshgrid(torch.arange(256.0), torch.arange(256.0), indexing="ij")
    coordinates = torch.stack([row, col, torch.zeros_like(row)])[None] / 256
    corner, one = torch.full((2, 1, 2), 104.0), torch.zeros(1, 1)
    shots, phase = capture(coordinates, Grid(), corner, torch.zeros(1, 2), one, zoom=torch.tensor([[1.0, 2.0]]))
    zoom = pose_errors(shots[:, 0] * 256, shots[:, 1] * 256, phase, corner[:, 0], 48)[2]
    assert zoom.tolist() == pytest.approx([1.0, 2.0], rel=1e-3)


def pose_errors(
    row: torch.Tensor, col: torch.Tensor, phase: torch.Tensor, corner: torch.Tensor, side: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return errors of position (2, N) in pixels, heading (N,) in radians and the zoom (N,), from coordinates shown."""
    number = torch.arange(len(row))
    top, left = phase
    ends = [(top, left), (top + side - 1, left), (top, left + side - 1), (top + side - 1, left + side - 1)]
    shown = torch.stack([torch.stack([row[number, r, c], col[number, r, c]]) for r, c in ends])  # (4, 2, N)
    down = (shown[1] - shown[0] + shown[3] - shown[2]) / 2 / (side - 1)
    return shown.mean(dim=0) - corner - (side - 1) / 2, torch.atan2(-down[1], down[0]), down.norm(dim=0)


def test_the_ground_is_where_the_photos_were_taken(areas: list[SearchArea]):
    """Register whole photos against the ground: the best offset is small, with the documented deviation."""
    offsets = []
    for seed in range(4):
        (photographed,) = FlightConditions(1.0, seed).photograph(areas[:1], GRID)
        for (row, col), photo in zip(GRID.cells(), cut_patches(photographed.image, GRID), strict=True):
            offsets.append(registered(photo, areas[0].image, row * GRID.pitch, col * GRID.pitch))
    deviation = np.sqrt(np.mean(np.square(offsets)))
    assert deviation == pytest.approx(POSITION * GRID.pitch, rel=0.35)


def registered(photo: np.ndarray, ground: np.ndarray, top: int, left: int) -> tuple[int, int]:
    """Return the offset of whole pixels, up to six, at which the inner part of a photo correlates best."""
    inner = photo[8:-8, 8:-8].mean(axis=2)
    best, found = -1.0, (0, 0)
    grey = np.pad(ground.mean(axis=2), 8, mode="symmetric")
    for down in range(-6, 7):
        for right in range(-6, 7):
            place = grey[top + down + 16 :, left + right + 16 :][: inner.shape[0], : inner.shape[1]]
            score = np.corrcoef(inner.ravel(), place.ravel())[0, 1]
            if score > best:
                best, found = score, (down, right)
    return found


@pytest.mark.parametrize("strength", [-0.1, float("nan"), float("inf"), 1e9, 5.01, "strong", None, True, 1j])
def test_impossible_strengths_are_refused(strength: object):
    with pytest.raises(AirlocError, match=r"from 0 .* to 5"):
        FlightConditions(strength)  # type: ignore[arg-type]


def test_impossible_variants_are_refused():
    with pytest.raises(AirlocError, match="0 photos"):
        FlightConditions(variants=0)


@pytest.mark.parametrize("strength", [0, 5, 1, np.float32(0.5), np.float64(2)])
def test_any_kind_of_number_is_a_strength(strength: float):
    assert FlightConditions(strength).strength == strength
