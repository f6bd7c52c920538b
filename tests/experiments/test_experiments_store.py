"""The store keeps complete results, and reports damaged ones."""

from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.experiments.evaluation import EVALUATION
from airloc.experiments.graph import Task
from airloc.experiments.store import DONE, Store

TASK = Task(EVALUATION, "an evaluation", {"agent": "blind"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.add_files(TASK, {"score.json": b"{}", "deep/down.txt": b"x"})
    return store


def test_a_stored_result_is_read_back(store: Store):
    assert store.has(TASK)
    assert store.read(TASK) == {"score.json": b"{}", "deep/down.txt": b"x"}
    assert not store.working_folder(TASK).exists()
    assert not store.has(Task(EVALUATION, "an evaluation", {"agent": "random"}))


@pytest.mark.parametrize(
    ("name", "content"), [("score.json", b"{ }"), ("deep/down.txt", None), (DONE, b"{"), (DONE, b'{"files": 3}')]
)
def test_a_damaged_result_names_its_folder_and_the_cure(store: Store, name: str, content: bytes | None):
    path = store.result_folder(TASK) / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(AirlocError) as error:
        store.missing([TASK])
    assert str(path) in error.value.problem
    assert repr(str(store.result_folder(TASK))) in error.value.cure


def test_a_result_left_over_from_a_kill_is_replaced(store: Store):
    (store.result_folder(TASK) / DONE).unlink()
    assert not store.has(TASK)
    store.add_files(TASK, {"score.json": b"[]"})
    assert store.read(TASK) == {"score.json": b"[]"}


def test_a_second_process_is_refused(store: Store):
    with store.locked(), pytest.raises(AirlocError, match="--out"), Store(store.folder).locked():
        pass
    with store.locked():
        pass
