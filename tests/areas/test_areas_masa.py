"""The Massachusetts tiles are cut, cleaned of white and split as in the paper."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from airloc.areas.masa import Masa, split_by_area, split_by_tile, split_sizes
from airloc.areas.records import SPLITS
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
    assert len(Masa(root).scan_for(GRID)) == kept


def test_the_limit_of_white_can_be_lifted(root: Path) -> None:
    whiten(root / "train" / "22670_15.tiff", 5000)
    assert len(Masa(root, max_white=10**9).scan_for(GRID)) == 54


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
    found = Counter(piece.split for piece in Masa(root, scheme="published").scan_for(GRID))
    assert found == {"train": 36, "val": 9, "test": 9}


def test_the_seed_draws_the_split_and_order_is_fixed(root: Path) -> None:
    again = [Masa(root, seed=seed).scan_for(GRID) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_tiles_without_labels_have_no_mask(root: Path) -> None:
    (root / "test_labels" / "23429_15.tif").unlink()
    masks = {area.tile: area.mask for area in Masa(root).areas(GRID)}
    assert masks["23429_15"] is None
    assert masks["22670_15"] is not None


def test_the_png_layout_is_found_one_folder_down(tmp_path: Path) -> None:
    tile(tmp_path / "png" / "train" / "1_2.png", 0)
    assert {record.path.name for record in Masa(tmp_path).scan_for(GRID)} == {"1_2.png"}


def test_tiles_smaller_than_an_area_give_none(root: Path) -> None:
    assert Masa(root).scan_for(Grid(7, 7)) == []
    assert Masa(root).count_areas() == {"train": 4, "val": 1, "test": 1}


def test_labels_of_another_size_are_refused(root: Path) -> None:
    Image.new("L", (10, 10)).save(root / "train_labels" / "22670_15.tif")
    with pytest.raises(AirlocError, match=r"22670_15\.tiff.*10 x 10 px"):
        list(Masa(root).areas(GRID))


def test_a_truncated_tile_is_named(root: Path) -> None:
    path = root / "train" / "22670_15.tiff"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(AirlocError, match=r"22670_15\.tiff"):
        Masa(root).scan_for(GRID)


def test_a_missing_folder_names_the_command(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(AirlocError, match=rf"{folder.name}.*`airloc data fetch masa"):
            Masa(folder).scan()


def test_the_default_root_is_under_the_data_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "masa").symlink_to(root)
    monkeypatch.setenv("AIRLOC_DATA", str(root.parent))
    assert len(Masa().scan_for(GRID)) == 54
    monkeypatch.delenv("AIRLOC_DATA")
    with pytest.raises(AirlocError, match="AIRLOC_DATA"):
        Masa().scan_for(GRID)


def test_images_are_the_pieces_of_5x5_areas_at_full_resolution(root: Path) -> None:
    images = list(Masa(root, split="val").images())
    fitted = list(Masa(root, split="val").areas(Grid(5, 5, cell=100, gap=0)))
    assert [image.name for image in images] == [area.name for area in fitted]
    for image, area in zip(images, fitted, strict=True):
        assert image.image.shape == (500, 500, 3)
        assert (image.image == area.image).all()
        assert (image.split, image.tile, image.ground_m) == ("val", area.tile, (500.0, 500.0))


def test_windows_are_read_with_the_splits_of_their_index(tmp_path: Path) -> None:
    tile(tmp_path / "images" / "9_0_0.png", 1, side=300)
    tile(tmp_path / "images" / "9_300_0.png", 2, side=300)
    (tmp_path / "windows.csv").write_text("image,side_m,split\n9_0_0.png,300,train\n9_300_0.png,300,val\n")
    (area,) = Masa(tmp_path, split="val").areas(GRID)
    assert (area.name, area.tile, area.ground_m) == ("9_300_0.png", "9", (300.0, 300.0))
    assert (Masa(tmp_path).state(), Masa(tmp_path).count_areas()) == ("windows", {"train": 1, "val": 1})


@pytest.mark.long  # the test of the same name for folders reads the same windows
def test_the_real_windows_load_with_splits_and_masks(data_root: Path) -> None:
    areas = list(Masa(data_root / "masa", cell_metres=100).areas(Grid(5, 5)))
    assert Counter(area.split for area in areas) == {"train": 76, "val": 20}
    assert sum(area.mask is not None for area in areas) == 32
    assert len({area.tile for area in areas}) == 50


def test_the_papers_1188_areas_split_832_178_178() -> None:
    assert Counter(split_by_area(1188, seed=0)) == Masa.expected


def test_the_papers_132_tiles_split_by_whole_tiles_of_nine() -> None:
    split = Counter(split_by_tile([str(n // 9) for n in range(1188)], seed=0))
    assert split == {"train": 828, "val": 180, "test": 180}


@given(st.integers(0, 400), st.integers(0, 9))
def test_splits_by_area_have_their_sizes(count: int, seed: int) -> None:
    split = Counter(split_by_area(count, seed))
    assert {name: split[name] for name in SPLITS} == split_sizes(count)
    assert sum(split_sizes(count).values()) == count


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(0, 9))
def test_no_tile_is_in_two_splits_and_no_split_is_a_tile_too_large(sizes: list[int], seed: int) -> None:
    tiles = [str(tile) for tile, size in enumerate(sizes) for _ in range(size)]
    split = split_by_tile(tiles, seed)
    splits_of = defaultdict(set)
    for name, label in zip(tiles, split, strict=True):
        splits_of[name].add(label)
    assert all(len(names) == 1 for names in splits_of.values())
    counts = Counter(split)
    assert all(counts[name] < size + max(sizes) for name, size in split_sizes(len(tiles)).items())


def test_the_seed_draws_the_split() -> None:
    assert split_by_area(100, 1) == split_by_area(100, 1) != split_by_area(100, 2)
    tiles = [str(n) for n in range(50)]
    assert split_by_tile(tiles, 1) == split_by_tile(tiles, 1) != split_by_tile(tiles, 2)
