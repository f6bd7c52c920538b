"""Results are kept whole, and what is damaged says so."""

from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.experiments.graph import Task
from airloc.experiments.store import DONE, Store, folder_digest

TASK = Task("score", "a score", {"agent": "blind"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.keep_files(TASK, {"score.json": b"{}", "deep/down.txt": b"x"})
    return store


def test_what_is_kept_comes_back(store: Store):
    assert store.has(TASK)
    assert store.files(TASK) == {"score.json": b"{}", "deep/down.txt": b"x"}
    assert not store.working(TASK).exists()
    assert not store.has(Task("score", "a score", {"agent": "random"}))


@pytest.mark.parametrize(
    ("name", "content"), [("score.json", b"{ }"), ("deep/down.txt", None), (DONE, b"{"), (DONE, b'{"files": 3}')]
)
def test_a_damaged_result_names_its_folder_and_the_cure(store: Store, name: str, content: bytes | None):
    path = store.place(TASK) / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(AirlocError, match=r"is damaged: .*Delete the folder .* every other result is kept"):
        store.has(TASK)


def test_the_rest_of_a_kill_is_no_result_and_is_replaced(store: Store):
    (store.place(TASK) / DONE).unlink()
    assert not store.has(TASK)
    store.keep_files(TASK, {"score.json": b"[]"})
    assert store.files(TASK) == {"score.json": b"[]"}


def test_one_process_at_a_time(store: Store):
    with store.locked(), pytest.raises(AirlocError, match="Another process"), Store(store.folder).locked():
        pass
    with store.locked():
        pass


def test_the_digest_of_a_folder_is_of_names_and_content(tmp_path: Path):
    def made(name: str, files: dict[str, str]) -> str:
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        return folder_digest(tmp_path / name)

    same = made("a", {"x": "1", "d/y": "2"})
    assert made("b", {"d/y": "2", "x": "1"}) == same
    assert len({same, made("c", {"x": "2", "d/y": "2"}), made("d", {"z": "1", "d/y": "2"}), made("e", {"x": "1"})}) == 4
