"""Goals come from the picture of the same name, or from the other day of the same place."""

from pathlib import Path

import pytest

from airloc.areas.pairs import goal_pictures, pair_up, partner
from airloc.errors import AirlocError

PRE, POST = "fire_00000001_pre_disaster.png", "fire_00000001_post_disaster.png"


def folder(path: Path, *names: str) -> Path:
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).write_bytes(b"")
    return path


def test_the_same_name_comes_first(tmp_path: Path) -> None:
    areas, goals = folder(tmp_path / "areas", POST), folder(tmp_path / "goals", PRE, POST)
    assert goal_pictures(areas, goals) == {POST: goals / POST}


def test_failing_that_the_other_day_is_taken(tmp_path: Path) -> None:
    areas, goals = folder(tmp_path / "areas", PRE, POST), folder(tmp_path / "goals", PRE)
    assert goal_pictures(areas, goals) == {PRE: goals / PRE, POST: goals / PRE}


def test_in_one_folder_only_the_pictures_after_are_areas(tmp_path: Path) -> None:
    both = folder(tmp_path / "both", PRE, POST, "town.png")
    (tmp_path / "link").symlink_to(both)
    assert goal_pictures(both, tmp_path / "link") == {POST: tmp_path / "link" / PRE}


def test_named_areas_keep_their_order(tmp_path: Path) -> None:
    areas, goals = folder(tmp_path / "areas", "a.png", "b c.png"), folder(tmp_path / "goals", "a.png", "b c.png")
    assert list(goal_pictures(areas, goals, ["b c.png", "a.png"])) == ["b c.png", "a.png"]


def test_a_missing_goal_is_named_with_its_folder(tmp_path: Path) -> None:
    areas, goals = folder(tmp_path / "areas", "a.png", POST), folder(tmp_path / "goals", "b.png")
    with pytest.raises(AirlocError, match=r"goals has no picture 'a\.png' for the area 'a\.png'"):
        goal_pictures(areas, goals, ["a.png"])
    with pytest.raises(AirlocError, match=f"no picture '{POST}' or '{PRE}'"):
        goal_pictures(areas, goals, [POST])


def test_an_unknown_area_is_named_with_its_folder(tmp_path: Path) -> None:
    areas, goals = folder(tmp_path / "areas", "a.png"), folder(tmp_path / "goals", "b.png")
    with pytest.raises(AirlocError, match=r"areas has no picture 'b\.png'"):
        goal_pictures(areas, goals, ["b.png"])


def test_one_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    both = folder(tmp_path / "both", "a.png", PRE)
    with pytest.raises(AirlocError, match="holds no pictures named"):
        goal_pictures(both, both)
    with pytest.raises(AirlocError, match="would come from the same folder"):
        goal_pictures(both, both, [PRE])


def test_an_area_after_without_one_before_is_refused(tmp_path: Path) -> None:
    both = folder(tmp_path / "both", POST)
    with pytest.raises(AirlocError, match=f"has no picture '{PRE}'"):
        goal_pictures(both, both)


def test_partners_are_mutual() -> None:
    assert partner(PRE) == POST
    assert partner(POST) == PRE
    assert partner("town.png") is None


def test_pairs_leave_singles_out(tmp_path: Path) -> None:
    both = folder(tmp_path / "both", PRE, POST, "flood_00000002_pre_disaster.png", "town.png")
    assert pair_up(both) == [(both / PRE, both / POST)]


def test_the_real_pairs_are_all_found(data_root: Path) -> None:
    folder = data_root / "xbd" / "images"
    assert len(goal_pictures(folder, folder)) == len(pair_up(folder)) == 143
