"""Keys and digests: the same for the same result, another for everything that changes it."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from airloc.agents.pretrained import weights_root
from airloc.experiments import graph
from airloc.experiments.datasets import AREAS, IMAGES
from airloc.experiments.evaluation import EVALUATION
from airloc.experiments.graph import (
    Task,
    TaskContext,
    folder_digest,
    package_digest,
    topological_order,
    weights_digest,
)
from airloc.experiments.runner import KINDS
from airloc.experiments.training import EMBEDDER, POLICY, SEGMENTER


def test_the_key_depends_on_kind_settings_and_inputs_and_not_on_the_name():
    areas = Task(AREAS, "areas", {"count": 2})
    one = Task(EVALUATION, "one", {"agent": "blind"}, {"areas": areas})
    assert one.key == Task(EVALUATION, "another name", {"agent": "blind"}, {"areas": areas}).key
    others = [
        Task(POLICY, "one", {"agent": "blind"}, {"areas": areas}),
        Task(EVALUATION, "one", {"agent": "random"}, {"areas": areas}),
        Task(EVALUATION, "one", {"agent": "blind"}, {"areas": Task(AREAS, "areas", {"count": 3})}),
        Task(EVALUATION, "one", {"agent": "blind"}, {"other": areas}),
    ]
    assert len({one.key, *(other.key for other in others)}) == 5


def test_a_new_version_of_a_kind_changes_its_keys_and_those_of_what_builds_on_it():
    newer = dataclasses.replace(AREAS, version=AREAS.version + 1)
    before, after = (Task(kind, "areas", {"count": 2}) for kind in (AREAS, newer))
    assert before.key != after.key
    keys = {Task(EVALUATION, "one", {}, {"areas": areas}).key for areas in (before, after)}
    assert len(keys) == 2


def test_rewritten_code_keeps_the_key_until_the_version_is_raised():
    def rewritten(context: TaskContext) -> None:
        renamed = context.settings
        del renamed

    for kind in KINDS.values():
        other = dataclasses.replace(kind, function=rewritten)
        assert Task(other, "task", {"seed": 0}).key == Task(kind, "task", {"seed": 0}).key


def test_the_path_of_the_data_is_not_part_of_the_key():
    here, there = (Task(AREAS, "areas", {"data": "digest"}, source=Path(path)) for path in ("/a", "/b"))
    assert here.key == there.key


def test_every_kind_is_registered_under_its_name():
    assert set(KINDS.values()) == {IMAGES, AREAS, SEGMENTER, EMBEDDER, POLICY, EVALUATION}
    assert [name for name, kind in KINDS.items() if kind.uses_gpu] == ["segmenter", "embedder", "policy"]
    assert [name for name, kind in KINDS.items() if kind.reads_data] == ["images", "areas"]


def test_tasks_come_once_and_after_their_inputs():
    first = Task(IMAGES, "first", {})
    second = Task(SEGMENTER, "second", {}, {"images": first})
    third = Task(EMBEDDER, "third", {}, {"segmenter": second, "images": Task(IMAGES, "first again", {})})
    assert [task.name for task in topological_order([third, second])] == ["first", "second", "third"]


def test_weights_count_and_cards_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = weights_digest("belief")
    shutil.copytree(weights_root() / "belief", tmp_path / "belief")
    monkeypatch.setattr(graph, "weights_root", lambda: tmp_path)
    assert weights_digest("belief") == weights_digest("belief-greedy") == before
    (tmp_path / "belief" / "card.md").write_text("Other figures.")
    assert weights_digest("belief") == before
    with (tmp_path / "belief" / "weights.safetensors").open("ab") as file:
        file.write(b"\0")
    changed = weights_digest("belief")
    (tmp_path / "belief" / "weights.safetensors").unlink()
    assert len({before, changed, weights_digest("belief")}) == 3


def test_agents_without_weights_have_no_digest():
    assert weights_digest("blind") == ""


def test_the_digest_of_a_folder_is_of_names_and_content(tmp_path: Path):
    def digest(name: str, files: dict[str, str]) -> str:
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        return folder_digest(tmp_path / name)

    same = digest("a", {"x": "1", "d/y": "2"})
    assert digest("b", {"d/y": "2", "x": "1"}) == same
    others = [digest("c", {"x": "2", "d/y": "2"}), digest("d", {"z": "1", "d/y": "2"}), digest("e", {"x": "1"})]
    assert len({same, *others}) == 4


def test_the_digest_of_the_package_is_stable():
    assert package_digest() == package_digest.__wrapped__()
