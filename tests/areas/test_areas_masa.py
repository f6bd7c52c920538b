"""The Massachusetts tiles are cut, cleaned of white and split as in the paper."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.masa import Masa, count, tiles
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(2, 2)
"""Areas of 200 x 200 px keep the fakes small."""


def tile(path: Path, seed: int, side: int = 600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)
    Image.fromarray(image).save(path)
    labels = np.zeros((side, side, 3), dtype=np.uint8)
    labels[:200, :200, 0] = 255
    twin = path.parent.with_name(path.parent.name + "_labels") / path.with_suffix(".tif").name
    twin.parent.mkdir(exist_ok=True)
    Image.fromarray(labels).save(twin)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six tiles of nine pieces in the published layout."""
    for n in range(4):
        tile(tmp_path / "train" / f"2267{n}_15.tiff", n)
    tile(tmp_path / "val" / "22970_15.tiff", 8)
    tile(tmp_path / "test" / "23429_15.tiff", 9)
    return tmp_path


def whiten(path: Path, pixels: int) -> None:
    image = np.asarray(Image.open(path)).copy()
    image[:200, 200:400].reshape(-1, 3)
    for n in range(pixels):
        image[n // 200, 200 + n % 200] = 255
    Image.fromarray(image).save(path)


def test_tiles_become_areas_with_masks_ground_and_tile(root: Path) -> None:
    areas = {area.name: area for area in Masa(root).areas(GRID)}
    assert len(areas) == 54
    first, second = areas["22670_15_0_0.tiff"], areas["22670_15_0_200.tiff"]
    assert first.image.shape == (*GRID.size, 3)
    assert (first.tile, first.ground_m) == ("22670_15", (200.0, 200.0))
    assert first.mask is not None
    assert first.mask.all()
    assert second.mask is not None
    assert not second.mask.any()


@pytest.mark.parametrize(("white", "kept"), [(99, 54), (100, 53)])
def test_a_hundred_white_pixels_cost_their_piece_only(root: Path, white: int, kept: int) -> None:
    whiten(root / "train" / "22670_15.tiff", white)
    assert len(Masa(root).pieces(GRID)) == kept


def test_the_limit_of_white_can_be_lifted(root: Path) -> None:
    whiten(root / "train" / "22670_15.tiff", 5000)
    assert len(Masa(root, max_white=10**9).pieces(GRID)) == 54


def test_splits_partition_the_areas_in_70_15_15(root: Path) -> None:
    parts = {split: {area.name for area in Masa(root, split=split).areas(GRID)} for split in ("train", "val", "test")}
    assert {split: len(part) for split, part in parts.items()} == {"train": 38, "val": 8, "test": 8}
    assert len(set.union(*parts.values())) == 54
    assert {area.split for area in Masa(root, split="val").areas(GRID)} == {"val"}


def test_spatial_splits_share_no_tile(root: Path) -> None:
    homes: dict[str, set[str]] = {}
    for area in Masa(root, scheme="spatial").areas(GRID):
        homes.setdefault(area.tile, set()).add(area.split)
    assert sorted(map(len, homes.values())) == [1] * 6
    assert {name for names in homes.values() for name in names} == {"train", "val", "test"}


def test_published_splits_are_the_folders(root: Path) -> None:
    found = Counter(piece.split for piece in Masa(root, scheme="published").pieces(GRID))
    assert found == {"train": 36, "val": 9, "test": 9}


def test_the_seed_draws_the_split_and_order_is_fixed(root: Path) -> None:
    again = [Masa(root, split="val", seed=seed).pieces(GRID) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_tiles_without_labels_have_no_mask(root: Path) -> None:
    (root / "test_labels" / "23429_15.tif").unlink()
    masks = {area.tile: area.mask for area in Masa(root).areas(GRID)}
    assert masks["23429_15"] is None
    assert masks["22670_15"] is not None


def test_the_png_layout_is_found_one_folder_down(tmp_path: Path) -> None:
    tile(tmp_path / "png" / "train" / "1_2.png", 0)
    assert [path.name for _, path in tiles(tmp_path)] == ["1_2.png"]


def test_tiles_smaller_than_an_area_give_none(root: Path) -> None:
    assert Masa(root).pieces(Grid(7, 7)) == []
    assert count(root, Grid(7, 7)) == {"train": 0, "val": 0, "test": 0}


def test_labels_of_another_size_are_refused(root: Path) -> None:
    Image.new("L", (10, 10)).save(root / "train_labels" / "22670_15.tif")
    with pytest.raises(AirlocError, match=r"mask of area '22670_15\.tiff' is 10 x 10 px"):
        list(Masa(root).areas(GRID))


def test_a_truncated_tile_is_named(root: Path) -> None:
    path = root / "train" / "22670_15.tiff"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(AirlocError, match=r"22670_15\.tiff"):
        Masa(root).pieces(GRID)


def test_a_missing_folder_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"nowhere.*airloc data fetch masa --root"):
        tiles(tmp_path / "nowhere")
    with pytest.raises(AirlocError, match=r"none of the folders train, val, test.*airloc data fetch masa"):
        tiles(tmp_path)


def test_the_default_root_is_under_the_data_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "masa").symlink_to(root)
    monkeypatch.setenv("AIRLOC_DATA", str(root.parent))
    assert len(Masa().pieces(GRID)) == 54
    monkeypatch.delenv("AIRLOC_DATA")
    with pytest.raises(AirlocError, match="Set AIRLOC_DATA, or give --root"):
        Masa().pieces(GRID)


def test_the_real_windows_are_sent_to_the_folder_source(data_root: Path) -> None:
    with pytest.raises(AirlocError, match=r"holds windows.*folder --path"):
        tiles(data_root / "masa")
