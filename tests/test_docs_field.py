"""The examples of docs/field.md, known.md and desk.md run as the pages say, and write the files that they name."""

import re
import shlex
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]


@pytest.fixture
def field(tmp_path: Path, monkeypatch) -> Path:
    """The folder of the example's data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import make_ortho

    make_ortho.main(Path("field"))
    sys.modules.pop("make_ortho")
    return tmp_path


def searches(page: str) -> list[list[str]]:
    """The arguments of every `airloc search` of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    commands = re.findall(r"^airloc search (.*?[^\\])$", text, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(command.replace("\\\n", " ")) for command in commands]


def printed(page: str) -> list[str]:
    """The outcomes of searches that a page quotes, each as one line without the number of files."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [
        in_one_line(block)
        for block in re.findall(r"^    (?:Declared after|Seen: ).*(?:\n    .+)*$", text, re.MULTILINE)
    ]


def in_one_line(text: str) -> str:
    return " ".join(re.sub(r"\d+ files in \S+", "", text).split())


def test_the_search_of_the_page_ends_as_it_says(airloc, field: Path):
    outcome = airloc("search", *searches("field.md")[0])
    assert outcome.code == 0, outcome
    assert printed("field.md")[0] in in_one_line(outcome.out)
    page = (ROOT / "docs" / "field.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:flight|belief|path|search|index|candidates)\.[a-z]+)`", page))
    assert named == {path.name for path in (field / "out").iterdir() if not path.name.startswith("sweep.")}
    [track] = [command for command in searches("field.md") if "--track" in command]
    assert printed("field.md")[1] in in_one_line(airloc("search", *track).out), "the coverage of the planned sweep"


@pytest.mark.usefixtures("field")
def test_the_search_with_what_is_known_ends_as_the_page_says(airloc):
    assert printed("known.md")[0] in in_one_line(airloc("search", *searches("known.md")[0]).out)


def test_three_drones_find_the_goal_of_the_story_as_it_says(airloc, field: Path):
    outcome = airloc("search", *searches("desk.md")[2])
    assert outcome.code == 0, outcome
    assert printed("desk.md")[1] in in_one_line(outcome.out)
    assert {"prior.tif", "flight.plan", "flight-3.plan", "pattern-best-blind.kml"} <= {
        path.name for path in (field / "three").iterdir()
    }
