"""Prepared areas equal the areas they were made from, and a folder is complete or absent."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from airloc.areas.area import SearchArea
from airloc.areas.prepared import Prepared, open_prepared, write_prepared
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.grid import Grid

GRID = Grid(2, 3)
SOURCE = {"name": "test", "path": Path("somewhere")}


def make(count: int, grid: Grid = GRID) -> Iterator[SearchArea]:
    """Areas of noise; every second one has a mask."""
    for n in range(count):
        image = np.random.default_rng(n).integers(0, 256, (*grid.size, 3), dtype=np.uint8)
        mask = image[..., 0] > 99 if n % 2 else None
        ground = (200.0, 300.5) if n % 3 else None
        yield SearchArea(
            f"area {n}.png", image, mask, ground, tile=f"t{n // 4}", split="val" if n % 5 == 0 else "train"
        )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    write_prepared(make(12), GRID, tmp_path / "cache", source=SOURCE)
    return tmp_path / "cache"


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_prepared_areas_are_read_unchanged(cache: Path) -> None:
    for before, after in zip(make(12), Prepared(cache).areas(GRID), strict=True):
        assert (before.name, before.tile, before.split, before.ground_m) == (
            after.name,
            after.tile,
            after.split,
            after.ground_m,
        )
        assert (before.image == after.image).all()
        assert (before.mask is None) == (after.mask is None)
        assert before.mask is None or (before.mask == after.mask).all()
    opened = open_prepared(cache)
    assert (len(opened), opened.source["path"]) == (12, "somewhere")
    checksums = json.loads((cache / "index.json").read_text())["sha256"]
    assert checksums["images.npy"] == hashlib.sha256(opened.images.tobytes()).hexdigest()


def test_a_split_can_be_picked(cache: Path) -> None:
    assert [area.name for area in Prepared(cache, split="val").areas(GRID)] == [f"area {n}.png" for n in (0, 5, 10)]
    with pytest.raises(AirlocError, match="'test'"):
        list(Prepared(cache, split="test").areas(GRID))


def test_without_masks_there_is_no_file_of_masks(tmp_path: Path) -> None:
    write_prepared(unmasked(), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path / "cache") == ["images.npy", "index.json"]


def unmasked() -> Iterator[SearchArea]:
    return (area for area in make(6) if area.mask is None)


def test_the_arrays_are_mapped_not_read(cache: Path) -> None:
    opened = open_prepared(cache)
    assert isinstance(opened.images.base, np.memmap)
    assert not opened.images.flags.writeable


def test_another_grid_is_refused(cache: Path) -> None:
    with pytest.raises(AirlocError, match=r"2x3.*5x5.*airloc data prepare"):
        Prepared(cache).areas(Grid(5, 5))


def test_existing_areas_are_replaced_only_on_request(cache: Path) -> None:
    with pytest.raises(AirlocError, match="--overwrite"):
        write_prepared(make(3), GRID, cache, source={})
    assert len(open_prepared(cache)) == 12
    write_prepared(make(3), GRID, cache, source={}, overwrite=True)
    assert len(open_prepared(cache)) == 3
    assert left_over(cache.parent) == ["cache"]


def test_other_folders_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(AirlocError, match=tmp_path.name):
        write_prepared(make(3), GRID, tmp_path, source={}, overwrite=True)
    assert left_over(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, AirlocError("a", "b")])
def test_an_interrupted_prepare_leaves_nothing(tmp_path: Path, failure: type[BaseException] | BaseException) -> None:
    def breaking() -> Iterator[SearchArea]:
        yield from make(3)
        raise failure

    with pytest.raises((KeyboardInterrupt, AirlocError)):
        write_prepared(breaking(), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path) == []


def test_an_interrupted_overwrite_keeps_the_old(cache: Path) -> None:
    def breaking() -> Iterator[SearchArea]:
        yield from make(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_prepared(breaking(), GRID, cache, source={}, overwrite=True)
    assert len(open_prepared(cache)) == 12
    assert left_over(cache.parent) == ["cache"]


def test_the_leftovers_of_a_killed_prepare_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".cache.partial").mkdir()
    (tmp_path / ".cache.partial" / "images.npy").write_bytes(b"half")
    write_prepared(make(3), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path) == ["cache"]


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(AirlocError, match="/proc/cache"):
        write_prepared(make(3), GRID, Path("/proc/cache"), source={})


def test_no_areas_and_two_areas_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match="--split"):
        write_prepared(iter(()), GRID, tmp_path / "cache", source={})
    with pytest.raises(AirlocError, match=r"area 0\.png"):
        write_prepared(iter([*make(1), *make(1)]), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("name", ["images.npy", "masks.npy", "index.json"])
@pytest.mark.parametrize("keep", [0, 50, 300])
def test_a_truncated_file_is_named_with_the_cure(cache: Path, name: str, keep: int) -> None:
    (cache / name).write_bytes((cache / name).read_bytes()[:keep])
    with pytest.raises(AirlocError, match=rf"{name}.*airloc data prepare --overwrite"):
        open_prepared(cache)


def test_a_missing_file_is_named(cache: Path) -> None:
    (cache / "images.npy").unlink()
    with pytest.raises(AirlocError, match=r"images\.npy"):
        open_prepared(cache)
    with pytest.raises(AirlocError, match=r"airloc data prepare"):
        open_prepared(cache.parent)


@pytest.mark.parametrize("change", [{"version": 99}, {"areas": []}, {"grid": {"rows": 2, "cols": 2}}, {"areas": 7}])
def test_an_index_that_does_not_fit_is_refused(cache: Path, change: dict[str, object]) -> None:
    index = json.loads((cache / "index.json").read_text())
    (cache / "index.json").write_text(json.dumps(index | change))
    with pytest.raises(AirlocError, match=r"index\.json|images\.npy|masks\.npy"):
        open_prepared(cache)


def test_prepared_areas_serve_for_training(cache: Path) -> None:
    images = list(Prepared(cache, split="train", only=("area 1*",)).images())
    assert [image.name for image in images] == ["area 1.png", "area 11.png"]
    records = Prepared(cache).records()
    assert [record.mask is not None for record in records] == [n % 2 == 1 for n in range(12)]
    assert [Prepared(cache).read(record).name for record in records] == [record.name for record in records]


def test_an_area_is_read_anew_after_its_folder_was_written_again(cache: Path) -> None:
    dataset = Prepared(cache)
    before = dataset.read(dataset.records()[0]).image.copy()
    again = (SearchArea(area.name, 255 - area.image) for area in make(12))
    write_prepared(again, GRID, cache, source={}, overwrite=True)
    assert (dataset.read(dataset.records()[0]).image == 255 - before).all()


def test_ground_size_cannot_be_changed(cache: Path) -> None:
    with pytest.raises(AirlocError, match="--cell-metres"):
        Prepared(cache, cell_metres=100)


def test_pairs_come_from_two_prepared_folders(cache: Path, tmp_path: Path) -> None:
    goals = (SearchArea(area.name, area.image // 4, area.mask) for area in make(12))
    write_prepared(goals, GRID, tmp_path / "goals", source={})
    found = list(Prepared(cache, goals=tmp_path / "goals", split="val").pairs(GRID))
    assert [(area.name, goal.name) for area, goal in found] == [(f"area {n}.png",) * 2 for n in (0, 5, 10)]
    assert all((goal.image == area.image // 4).all() for area, goal in found)


def test_pairs_need_two_prepared_folders(cache: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path / "other")
    (tmp_path / "other" / "index.json").unlink()
    with pytest.raises(AirlocError, match="other"):
        list(Prepared(cache, goals=tmp_path / "other").pairs(GRID))
    with pytest.raises(AirlocError, match="post_disaster"):
        list(Prepared(cache).pairs(GRID))


def test_one_folder_may_hold_both_images_of_every_place(tmp_path: Path) -> None:
    worlds = Synthetic(count=2, disaster="any")
    write_prepared(worlds.areas(GRID), GRID, tmp_path / "pairs", source={})
    found = list(Prepared(tmp_path / "pairs").pairs(GRID))
    assert len(found) == 2
    for (area, goal), (expected_area, expected_goal) in zip(found, worlds.pairs(GRID), strict=True):
        assert (area.name, goal.name) == (f"{area.tile}_post_disaster", f"{area.tile}_pre_disaster")
        assert (area.image == expected_area.image).all()
        assert (goal.image == expected_goal.image).all()
