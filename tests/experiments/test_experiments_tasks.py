"""Keys: the same for the same result, another for everything that could change it."""

from pathlib import Path

import pytest

from airloc.experiments import graph as tasks_module
from airloc.experiments.graph import CODE, Task, code_digest, in_order
from airloc.experiments.runner import WORK


def test_every_kind_of_task_can_be_done_and_knows_its_code():
    assert set(WORK) == set(CODE)


def test_the_key_is_of_kind_settings_and_inputs_and_not_of_the_name():
    areas = Task("areas", "areas", {"count": 2})
    one = Task("score", "one", {"agent": "blind"}, {"areas": areas})
    assert one.key == Task("score", "another name", {"agent": "blind"}, {"areas": areas}).key
    others = [
        Task("policy", "one", {"agent": "blind"}, {"areas": areas}),
        Task("score", "one", {"agent": "random"}, {"areas": areas}),
        Task("score", "one", {"agent": "blind"}, {"areas": Task("areas", "areas", {"count": 3})}),
        Task("score", "one", {"agent": "blind"}, {"other": areas}),
    ]
    assert len({one.key, *(other.key for other in others)}) == 5


def test_where_the_data_lies_does_not_matter():
    here, there = (Task("areas", "areas", {"data": "digest"}, source=Path(place)) for place in ("/a", "/b"))
    assert here.key == there.key


def test_tasks_come_once_and_after_their_inputs():
    first = Task("pictures", "first", {})
    second = Task("segmenter", "second", {}, {"pictures": first})
    third = Task("embedder", "third", {}, {"segmenter": second, "pictures": Task("pictures", "first again", {})})
    assert [task.name for task in in_order([third, second])] == ["first", "second", "third"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "code.py").write_text('"""Says."""\n\ndef f():\n    """Told."""\n    return 1  # so\n')
    monkeypatch.setattr(tasks_module.resources, "files", lambda name: tmp_path)
    yield tmp_path / "part" / "code.py"
    code_digest.cache_clear()


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ('"""Says more."""\ndef f():\n    return 1\n', True),
        ("def f():\n    return (1)\n", True),
        ("def f():\n    return 2\n", False),
        ("def f(a):\n    return 1\n", False),
    ],
)
def test_the_code_counts_by_what_it_does_and_not_by_its_words(package: Path, changed: str, same: bool):
    code_digest.cache_clear()
    before = code_digest(("part",))
    package.write_text(changed)
    code_digest.cache_clear()
    assert (code_digest(("part",)) == before) == same
