"""What README and the first page of the docs show is run as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_python_examples_run(page: str):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        names: dict[str, object] = {}
        exec(block, names)
        assert "observation" in names


def test_the_file_tree_names_what_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = re.search(r"```\nsrc/airloc/\n(.*?)```", text, flags=re.DOTALL)
    assert tree
    named = {line.split()[0].rstrip("/") for line in tree[1].splitlines() if line.startswith("  ")}
    there = {path.name for path in (ROOT / "src" / "airloc").iterdir()} - {"__init__.py", "__pycache__", "py.typed"}
    assert named == there
