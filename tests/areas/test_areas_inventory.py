"""The inventory says what is there, and how it differs from the paper."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.areas.prepared import write_prepared
from airloc.areas.registry import Found, check, take_stock
from airloc.errors import AirlocError
from airloc.grid import Grid


def picture(path: Path, side: int = 500) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side)).save(path)


def stock(root: Path) -> dict[str, Found]:
    return {found.name: found for found in take_stock(root)}


def test_absent_datasets_name_the_command(tmp_path: Path) -> None:
    found = stock(tmp_path)
    assert {name: entry.state for name, entry in found.items()} == dict.fromkeys(("masa", "dubai", "xbd"), "absent")
    assert found["masa"].remark == "run `airloc data fetch masa`"
    assert found["masa"].place == tmp_path / "masa"


def test_differences_to_the_paper_are_counted(tmp_path: Path) -> None:
    picture(tmp_path / "dubai" / "Tile 1" / "images" / "image_part_001.jpg")
    picture(tmp_path / "xbd" / "images" / "hurricane-michael_00000000_pre_disaster.png")
    picture(tmp_path / "masa" / "train" / "1_15.png")
    found = stock(tmp_path)
    assert found["dubai"].differences == {"test": -195}
    assert found["xbd"].differences == {"pre": -901, "disaster": -1303}
    assert found["masa"].differences == {"train": -831, "val": -178, "test": -178}


def test_the_papers_counts_leave_no_difference() -> None:
    full = Found("masa", Path("masa"), "published layout", {"train": 832, "val": 178, "test": 178})
    assert full.differences == {}
    assert Found("naip", Path("naip"), "pictures", {"pictures": 3}).paper == {}


def test_other_folders_are_listed_with_what_reads_them(tmp_path: Path) -> None:
    picture(tmp_path / "own town" / "a.png")
    picture(tmp_path / "cut" / "images" / "b.png")
    (tmp_path / "cut" / "windows.csv").write_text("image,split\nb.png,val\nmissing.png,val\n")
    (tmp_path / "empty").mkdir()
    area = SearchArea("a", np.zeros((*Grid().size, 3), dtype=np.uint8))
    write_prepared(iter([area]), Grid(), tmp_path / "cache", source={})
    found = stock(tmp_path)
    assert set(found) == {"masa", "dubai", "xbd", "own town", "cut", "cache"}
    assert (found["own town"].areas, found["own town"].source) == (
        {"pictures": 1},
        f"folder --path '{tmp_path}/own town'",
    )
    assert (found["cut"].state, found["cut"].areas) == ("windows", {"val": 1})
    assert (found["cache"].state, found["cache"].areas) == ("prepared", {"without split": 1})


def test_damaged_data_is_listed_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "xbd").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "index.json").write_text(json.dumps({"version": 0}))
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "windows.csv").write_text("nonsense")
    found = stock(tmp_path)
    assert {found[name].state for name in ("xbd", "cache", "cut")} == {"damaged"}
    assert all(found[name].remark for name in ("xbd", "cache", "cut"))


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match="Set AIRLOC_DATA"):
        list(take_stock(tmp_path / "nowhere"))


def test_the_real_data_is_counted(data_root: Path) -> None:
    assert check("masa", data_root / "masa").areas == {"train": 76, "val": 20}
    assert check("dubai", data_root / "dubai").differences == {"test": -42}
    assert check("xbd", data_root / "xbd").areas == {"pre": 101, "disaster": 42}
