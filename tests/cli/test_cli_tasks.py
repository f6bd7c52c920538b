"""An option of `airloc search` that has no effect is refused in one sentence, before anything is written."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import tyro
from PIL import Image

from airloc.cli.flight import FlightOptions
from airloc.cli.search import SearchOptions
from airloc.cli.tasks import COVERAGE, NEEDED, ON_GROUND, OTHERS_ONLY, PHOTOS, REPLACED, check_options, given_options
from field_files import ground, write_projected

pytestmark = pytest.mark.long

PLACE = "59.3560,15.0020"
TASKS = {
    "area": ("--area", "ortho.tif", "--goal", "goal.png"),
    "words": ("--area", "ortho.tif", "--goal-text", "a pond"),
    "photos": ("--photos", "photos", "--goal", "goal.png"),
    "track": ("--track", "track.gpx", "--within", "59.355,15 59.357,15.004"),
}


@pytest.fixture
def refuses(airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Check that a task refuses further options with facts, and writes nothing."""
    monkeypatch.chdir(tmp_path)
    write_projected(tmp_path / "ortho.tif", ground(4))
    Image.fromarray(ground(4)[:48, :48]).save(tmp_path / "goal.png")

    def check(task: str, more: tuple, *facts: str) -> None:
        outcome = airloc("search", *TASKS[task], *more, "--out", tmp_path / "out")
        assert outcome.refused(*facts), outcome
        assert not (tmp_path / "out").exists()

    return check


def test_every_name_of_the_tables_is_an_option():
    known = {field.name.replace("_", "-") for part in (SearchOptions, FlightOptions) for field in fields(part)}
    related = {name for table in (*NEEDED.values(), *REPLACED.values()) for name in table}
    assert PHOTOS | COVERAGE | OTHERS_ONLY | related | set(ON_GROUND) <= known


@pytest.mark.parametrize(
    ("task", "more", "belongs"),
    [
        ("area", ("--height", "80m"), "--track"),
        ("photos", ("--budget", 9), "--area"),
        ("photos", ("--speed", "8m/s"), "--area"),
        ("photos", ("--no-fly", "zone.kml"), "--area"),
        ("photos", ("--within", "area.kml"), "--area and --track"),
        ("photos", ("--goal-same-day",), "--area and --track"),
        ("photos", ("--no-sweep",), "--area"),
        ("track", ("--goal=goal.png",), "--area and --photos"),
        ("track", ("--goal_width", "60m"), "--area and --photos"),
        ("track", ("--gap", "0m"), "--area"),
        ("track", ("--seed", 0), "--area"),
    ],
)
def test_an_option_of_another_task_is_refused_by_name(refuses, task: str, more: tuple, belongs: str):
    (name,) = given_options([str(word) for word in more])
    refuses(task, more, f"--{name} belongs to {belongs}, and has no effect with --{task}")


@pytest.mark.parametrize(
    ("task", "more", "facts"),
    [
        ("area", ("--margin", "9m"), ("--margin", "--within or --no-fly")),
        ("area", ("--reserve", "20%", "--budget", 9), ("--reserve", "--endurance")),
        ("area", ("--roads", "trails.geojson", "--drift", "1m/s,90"), ("--roads", "--moving")),
        ("words", ("--goal-width", "60m"), ("--goal-width", "without --goal")),
        ("words", ("--goal-heading", "nan"), ("--goal-heading", "without --goal")),
        ("words", ("--goal-same-day",), ("--goal-same-day", "without --goal")),
        ("area", ("--goal-same-day", "--detection", 0.8), ("--goal-same-day", "--detection")),
        ("words", ("--goal", PLACE, "--goal-same-day"), ("--goal-same-day", "a place")),
        ("track", ("--height", "80m", "--footprint", 2), ("--footprint", "--height")),
        ("track", ("--detection", 0.8, "--false-alarm-cost", 4), ("--false-alarm-cost", "--detection")),
        ("track", ("--detection", 0.8, "--goal-heading", 0), ("--goal-heading", "--detection")),
    ],
)
def test_an_option_that_another_one_makes_ineffective_is_refused(refuses, task: str, more: tuple, facts: tuple):
    refuses(task, more, "has no effect", *facts)


def test_the_commands_of_the_documentation_are_not_refused():
    root = Path(__file__).parents[2]
    text = "\n".join(path.read_text(encoding="utf-8") for path in (root / "README.md", *(root / "docs").glob("*.md")))
    commands = re.findall(r"^ *airloc search (.*?[^\\])$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(commands) >= 9
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        check_options(tyro.cli(SearchOptions, args=words), given_options(words))
