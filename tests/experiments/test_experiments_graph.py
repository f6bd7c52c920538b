"""Keys: the same for the same result, another for everything that changes it."""

import dataclasses
from pathlib import Path

from airloc.experiments.datasets import AREAS, IMAGES
from airloc.experiments.evaluation import EVALUATION
from airloc.experiments.graph import Task, TaskContext, topological_order
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
