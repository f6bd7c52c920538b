"""The examples of README and of the first page of the docs run; the files that CONTRIBUTING names exist."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]


def python_blocks() -> list[tuple[str, str]]:
    pages = ("README.md", "docs/index.md")
    pattern = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
    return [(page, block) for page in pages for block in pattern.findall((ROOT / page).read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "block"), python_blocks())
def test_python_examples_run(page: str, block: str):
    names: dict[str, object] = {}
    exec(block.replace("count=20", "count=2"), names)
    assert {"score", "observation"} & set(names), page


def test_the_readme_fits_on_one_screen_with_one_picture():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert text.count("![") == 1


def contributing() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_tree_names_what_exists():
    tree = re.search(r"```\nsrc/airloc/\n(.*?)```", contributing(), flags=re.DOTALL)
    assert tree
    named = {line.split()[0].rstrip("/") for line in tree[1].splitlines() if line.startswith("  ")}
    there = {path.name for path in (ROOT / "src" / "airloc").iterdir()} - {"__init__.py", "__pycache__", "py.typed"}
    assert named == there
    others = [line.split()[0] for line in tree[1].splitlines() if line[:1].strip()]
    assert [name for name in others if not (ROOT / name).exists()] == []


def test_the_three_walks_have_at_most_six_stops_that_exist():
    walks = re.search(r"## Three walks\n(.*?)\n## ", contributing(), flags=re.DOTALL)
    assert walks
    titles = re.split(r"\*\*[^*]+\*\*", walks[1])[1:]
    stops = [re.findall(r"^\d\. `([^`]+)`", walk, flags=re.MULTILINE) for walk in titles]
    assert len(stops) == 3
    assert all(1 <= len(walk) <= 6 for walk in stops)
    assert [path for walk in stops for path in walk if not (ROOT / path).is_file()] == []


def test_other_files_that_contributing_names_exist():
    named = set(re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", contributing()))
    assert len(named) > 10
    assert [
        path for path in sorted(named) if not (ROOT / path.replace("NAME", "")).exists() and "NAME" not in path
    ] == []
