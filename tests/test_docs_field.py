"""The example of docs/field.md runs as the page says, and writes the files that it names."""

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_search_of_the_page_ends_as_it_says(airloc, tmp_path: Path, monkeypatch):
    page = (ROOT / "docs" / "field.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import make_ortho

    make_ortho.main(Path("field"))
    sys.modules.pop("make_ortho")
    commands = re.findall(r"^airloc search (.*?[^\\])$", page, flags=re.MULTILINE | re.DOTALL)
    outcome = airloc("search", *shlex.split(commands[0].replace("\\\n", " ")))
    assert outcome.code == 0, outcome
    printed = re.search(r"^    (Declared after .*)$", page, flags=re.MULTILINE)
    assert printed
    assert printed[1] in outcome.out
    named = set(re.findall(r"`((?:flight|belief|path|search|index|candidates)\.[a-z]+)`", page))
    assert named == {path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith("sweep.")}
