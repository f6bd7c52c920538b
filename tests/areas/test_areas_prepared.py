"""Prepared areas are the same areas, open at once, and are there whole or not at all."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from airloc.areas.area import SearchArea
from airloc.areas.prepared import Prepared, PreparedAreas, open_prepared, write_prepared
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


def test_what_was_prepared_comes_back_the_same(cache: Path) -> None:
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
    opened.verify()
    assert (len(opened), opened.source["path"]) == (12, "somewhere")


def test_a_split_can_be_picked(cache: Path) -> None:
    assert [area.name for area in Prepared(cache, split="val").areas(GRID)] == [f"area {n}.png" for n in (0, 5, 10)]
    with pytest.raises(AirlocError, match="in the split 'test'"):
        Prepared(cache, split="test").areas(GRID)


def test_without_masks_there_is_no_file_of_masks(tmp_path: Path) -> None:
    write_prepared(unmasked(), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path / "cache") == ["images.npy", "index.json"]


def unmasked() -> Iterator[SearchArea]:
    return (area for area in make(6) if area.mask is None)


def test_thousands_of_areas_open_in_well_under_a_second(tmp_path: Path) -> None:
    write_prepared(make(3000, Grid(1, 2, cell=8, gap=0)), Grid(1, 2, cell=8, gap=0), tmp_path / "cache", source={})
    start = time.perf_counter()
    assert len(open_prepared(tmp_path / "cache")) == 3000
    assert time.perf_counter() - start < 0.5


def test_the_arrays_are_mapped_not_read(cache: Path) -> None:
    opened = open_prepared(cache)
    assert isinstance(opened.images.base, np.memmap)
    assert not opened.images.flags.writeable


def test_another_grid_is_refused(cache: Path) -> None:
    with pytest.raises(AirlocError, match=r"prepared for 2x3 cells of 48 px, 4 px apart, not for 5x5"):
        Prepared(cache).areas(Grid(5, 5))


def test_existing_areas_are_replaced_only_when_told_to(cache: Path) -> None:
    with pytest.raises(AirlocError, match=r"holds prepared areas already.*--overwrite"):
        write_prepared(make(3), GRID, cache, source={})
    assert len(open_prepared(cache)) == 12
    write_prepared(make(3), GRID, cache, source={}, overwrite=True)
    assert len(open_prepared(cache)) == 3
    assert left_over(cache.parent) == ["cache"]


def test_other_folders_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(AirlocError, match="holds no prepared areas"):
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


def test_what_a_killed_prepare_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".cache.partial").mkdir()
    (tmp_path / ".cache.partial" / "images.npy").write_bytes(b"half")
    write_prepared(make(3), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path) == ["cache"]


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(AirlocError, match="Cannot write prepared areas to /proc/cache"):
        write_prepared(make(3), GRID, Path("/proc/cache"), source={})


def test_no_areas_and_twins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match="no areas"):
        write_prepared(iter(()), GRID, tmp_path / "cache", source={})
    with pytest.raises(AirlocError, match=r"Two areas are called 'area 0\.png'"):
        write_prepared(iter([*make(1), *make(1)]), GRID, tmp_path / "cache", source={})
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("name", ["images.npy", "masks.npy", "index.json"])
@pytest.mark.parametrize("keep", [0, 50, 300])
def test_a_truncated_file_is_named_with_the_cure(cache: Path, name: str, keep: int) -> None:
    (cache / name).write_bytes((cache / name).read_bytes()[:keep])
    with pytest.raises(AirlocError, match=rf"{name} is damaged.*airloc data prepare --overwrite"):
        open_prepared(cache)


def test_a_missing_file_is_named(cache: Path) -> None:
    (cache / "images.npy").unlink()
    with pytest.raises(AirlocError, match=r"images\.npy is damaged"):
        open_prepared(cache)
    with pytest.raises(AirlocError, match="no prepared areas in"):
        open_prepared(cache.parent)


@pytest.mark.parametrize("change", [{"version": 99}, {"areas": []}, {"grid": {"rows": 2, "cols": 2}}, {"areas": 7}])
def test_an_index_that_does_not_fit_is_refused(cache: Path, change: dict[str, object]) -> None:
    index = json.loads((cache / "index.json").read_text())
    (cache / "index.json").write_text(json.dumps(index | change))
    with pytest.raises(AirlocError, match="is damaged"):
        open_prepared(cache)


def test_changed_bytes_are_found_by_verify(cache: Path) -> None:
    content = bytearray((cache / "images.npy").read_bytes())
    content[-1] ^= 1
    (cache / "images.npy").write_bytes(content)
    opened: PreparedAreas = open_prepared(cache)
    with pytest.raises(AirlocError, match="not the ones that were written"):
        opened.verify()
