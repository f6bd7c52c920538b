"""`airloc show`: pictures of one search, and bad input."""

import pytest
from PIL import Image

pytestmark = pytest.mark.long


def test_one_search_becomes_a_strip_and_an_animation(airloc, areas_folder, tmp_path):
    strip, gif = tmp_path / "strip.png", tmp_path / "new" / "search.gif"
    how = ("--areas", areas_folder, "--area", "c d.png", "--start", "0,0", "--goal", "4, 4", "--scale", "1")
    done = airloc("show", "belief", *how, "--strip", strip, "--gif", gif)
    assert done.code == 0
    assert "belief" in done.err, "the search is announced while it runs"
    assert "frames" in done.err
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


def test_a_search_in_flight_conditions_is_drawn_with_its_photos(airloc, areas_folder, tmp_path):
    how = ("--areas", areas_folder, "--start", "2,2", "--goal", "0,2", "--budget", "3", "--scale", "1", "--strip")
    strips = [tmp_path / f"{name}.png" for name in ("plain", "zero", "one")]
    for strip, flight in zip(strips, ((), ("--flight-conditions", 0), ("--flight-conditions", 1)), strict=True):
        assert airloc("show", "lawnmower", *how, strip, *flight).code == 0
    plain, zero, one = (strip.read_bytes() for strip in strips)
    assert plain == zero != one


def test_the_name_of_a_file_does_not_control_the_terminal(airloc, areas_folder, tmp_path):
    (areas_folder / "a.png").rename(areas_folder / "\x1b[31mred.png")
    how = ("--areas", areas_folder, "--scale", "1", "--strip", tmp_path / "\x1b[32mgreen.png", "--area")
    done = airloc("show", "spiral", *how, "\x1b[31mred.png")
    assert done.code == 0
    assert ("\\x1b[31mred.png" in done.out, "\\x1b[32mgreen.png" in done.out) == (True, True)
    refused = airloc("show", "spiral", *how, "\x1b[33mother.png")
    assert refused.refused("x1b[33mother.png")
    assert "\x1b[3" not in done.out + done.err + refused.err


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--flight-conditions", "9"), ("9", "to 5")),
        (("--start", "5,0"), ("5,0", "5x5")),
        (("--gif", "search.png"), ("search.png", ".gif")),
        (("--goal", "1;2"), ("'1;2'", "--goal 0,3")),
        (("--goal", "1"), ("'1'", "--goal 0,3")),
        (("--start", "1,1", "--goal", "1,1"), ("1,1",)),
        (("--scale", "0"), ("--scale 0", "1 to 8")),
        (("--budget", "0"), ("0",)),
        (("--area", "nowhere.png"), ("'nowhere.png'",)),
        (("nobody",), ("'nobody'",)),
        (("",), ("belief",)),
        (("--grid", "32x32"), ("32x32", "716 million", "80 million", "--scale")),
        (("spiral", "blind", "--grid", "7x7", "--scale", "8"), ("30 frames", "7x7")),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(airloc, areas_folder, tmp_path, arguments, facts):
    out = tmp_path / "new" / "strip.png"
    assert airloc("show", *arguments, "--areas", areas_folder, "--strip", out).refused(*facts)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("show", "spiral", "--strip"),
        ("data", "show", "synthetic", "--out"),
        ("data", "photos", "synthetic", "--out"),
        ("demo", "--picture"),
        ("analyse", "failures", "random", "--sheet"),
        ("analyse", "calibration", "--chart"),
        ("analyse", "exploitation", "--chart"),
        ("analyse", "shortcuts", "--chart"),
    ],
)
def test_a_file_whose_ending_promises_another_format_is_refused(airloc, tmp_path, command):
    assert airloc(*command, tmp_path / "new" / "picture.gif").refused("picture.gif", "ends in")
    assert list(tmp_path.iterdir()) == []


def test_a_procedural_area_that_does_not_exist_is_named(airloc, monkeypatch):
    monkeypatch.setattr("airloc.areas.synthetic.Synthetic.areas", lambda source, grid: iter(()))
    assert airloc("show", "blind", "--area", "x").refused("'x'", "procedural")
