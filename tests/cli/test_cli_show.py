"""`airloc show` and `airloc failures` from the command line: real pictures on the disk, and bad input."""

import json

import numpy as np
import pytest
from PIL import Image


def test_one_search_becomes_a_strip_and_an_animation(airloc, areas_folder, tmp_path):
    strip, gif = tmp_path / "strip.png", tmp_path / "new" / "search.gif"
    how = ("--areas", areas_folder, "--area", "c d.png", "--start", "0,0", "--goal", "4, 4", "--scale", "1")
    done = airloc("show", "belief", *how, "--strip", strip, "--gif", gif)
    assert (done.code, done.err) == (0, "")
    assert "belief on c d.png from 0,0 to 4,4: " in done.out
    assert str(strip.resolve()) in done.out
    with Image.open(gif) as animation, Image.open(strip) as picture:
        assert 5 <= animation.n_frames <= 11
        assert picture.width > animation.width > 256


def test_agents_are_shown_together_the_one_with_and_the_one_without_a_belief(airloc, areas_folder, tmp_path):
    one, two = tmp_path / "one.png", tmp_path / "two.jpg"
    how = ("--areas", areas_folder, "--start", "2,2", "--goal", "0,2", "--budget", "3", "--scale", "1")
    assert airloc("show", "lawnmower", *how, "--strip", one).code == 0
    done = airloc("show", "lawnmower", "belief", *how, "--strip", two)
    assert ("lawnmower on a.png" in done.out, "belief on a.png" in done.out) == (True, True)
    with Image.open(one) as alone, Image.open(two) as both:
        assert both.format == "JPEG"
        assert both.height > 1.8 * alone.height


def test_without_options_a_procedural_area_is_searched_and_the_seed_decides(airloc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, again, other = (airloc("show", "spiral", "--scale", "1", "--seed", seed) for seed in (4, 4, 6))
    assert first.out == again.out
    assert "spiral on synthetic_" in first.out
    assert (tmp_path / "out" / "search.png").exists()
    assert first.out.split(" from ")[1].split(":")[0] != other.out.split(" from ")[1].split(":")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--start", "5,0"), "The start 5,0 lies outside the 5x5 grid"),
        (("--goal", "1;2"), "'1;2' is not a cell"),
        (("--goal", "1"), "'1' is not a cell"),
        (("--start", "1,1", "--goal", "1,1"), "begins at the goal"),
        (("--scale", "0"), "A scale of 0"),
        (("--budget", "0"), "budget of 0"),
        (("--area", "nowhere.png"), "'nowhere.png'"),
        (("nobody",), "no agent 'nobody'"),
    ],
)
def test_what_cannot_be_shown_is_refused_and_leaves_nothing(airloc, areas_folder, tmp_path, arguments, said):
    out = tmp_path / "new" / "strip.png"
    assert airloc("show", *arguments, "--areas", areas_folder, "--strip", out).refused(said)
    assert not out.parent.exists()


def test_a_procedural_area_that_does_not_exist_is_named(airloc, monkeypatch):
    monkeypatch.setattr("airloc.areas.synthetic.Synthetic.areas", lambda source, grid: iter(()))
    assert airloc("show", "blind", "--area", "x").refused("no area 'x' among the procedural ones")


def test_failures_are_drawn_and_listed(airloc, areas_folder, tmp_path):
    sheet, out = tmp_path / "sheet.png", tmp_path / "failures.json"
    done = airloc("failures", "--areas", areas_folder, "--count", "3", "--sheet", sheet, "--json", out)
    assert (done.code, done.err) == (0, "")
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"]) == ("belief", 16)
    assert f"belief did not find {len(record['failures'])} of 16 goals" in done.out
    for failure in record["failures"]:
        assert failure["goal"] not in failure["path"]
        assert 1 <= failure["rank"] <= 25
        assert 0 <= failure["belief"] <= 1
    assert sheet.exists() == bool(record["failures"])
    with Image.open(sheet) as picture:
        assert np.asarray(picture).std() > 10


def test_where_every_goal_is_found_there_is_no_sheet(airloc, areas_folder, tmp_path):
    sheet = tmp_path / "sheet.png"
    done = airloc("failures", "blind", "--areas", areas_folder, "--grid", "1x2", "--sheet", sheet)
    assert done.code == 0
    assert "did not find 0 of 4 goals" in done.out
    assert not sheet.exists()


@pytest.mark.parametrize("arguments", [("--count", "0"), ("--columns", "0")])
def test_a_sheet_of_nothing_is_refused(airloc, tmp_path, arguments):
    assert airloc("failures", "blind", *arguments, "--sheet", tmp_path / "new" / "x.png").refused("shows nothing")
    assert list(tmp_path.iterdir()) == []
