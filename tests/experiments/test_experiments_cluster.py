"""A real Ray cluster of two nodes, one of which is killed in the middle."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ray.cluster_utils import Cluster

from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import find
from airloc.experiments import cluster as cluster_module
from airloc.experiments.cluster import run_on_cluster
from airloc.experiments.graph import Task
from airloc.experiments.play import SCORE
from airloc.experiments.runner import missing, run_here
from airloc.experiments.store import Store
from airloc.experiments.suites import plan_trials
from small_reproduction import Silent, few_tasks, planner
from small_suites import smaller

ROOM = {"num_cpus": 1, "object_store_memory": 100_000_000}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(initialize_head=True, head_node_args={**ROOM, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Here and on the cluster's nodes, so that sums are added up in one order."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class NodeKiller(Silent):
    """Kills a node of the cluster when the first task is done, while both are at work."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster, self.node = cluster, cluster.add_node(**ROOM)
        self.killed_after: list[str] = []

    def end(self, task: Task) -> None:
        super().end(task)
        if task.kind not in ("pictures", "areas") and not self.killed_after:
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.killed_after = list(self.done)


def content(tasks: list[Task], store: Store) -> dict[str, dict[str, object]]:
    """All results but for what a clock and paths decide."""
    found: dict[str, dict[str, object]] = {}
    for task in tasks:
        files: dict[str, object] = {
            name: data
            for name, data in store.files(task).items()
            if not name.endswith(("config.json", "card.md", SCORE))
        }
        if task.kind == "score":
            record = json.loads(store.files(task)[SCORE])
            del record["score"]["runtime_ms"]
            files[SCORE] = record
        found[task.label] = files
    return found


@pytest.mark.usefixtures("one_thread")
def test_with_a_node_killed_in_the_middle_the_results_are_the_same(cluster: Cluster, tasks: list[Task], tmp_path: Path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    run_here(tasks, here, Silent(), device="cpu", command="airloc reproduce")
    killer = NodeKiller(cluster)
    run_on_cluster(tasks, there, killer, address=cluster.address, command="airloc reproduce")
    assert len(killer.killed_after) < len(killer.done) == len(tasks)
    assert missing(tasks, there) == []
    assert content(tasks, there) == content(tasks, here)


@pytest.mark.usefixtures("one_thread")
def test_a_cluster_of_this_machine_alone_plays_trials_as_they_are_played_without_it(tmp_path: Path):
    recipe = smaller(find(["procedural-pre-post"])[0])
    played = []
    for name in ("here", "there"):
        plan, store = plan_trials([recipe], ["random", "blind"], None), Store(tmp_path / name)
        if name == "here":
            run_here(plan.tasks, store, Silent(), device="cpu", command="")
        else:
            run_on_cluster(plan.tasks, store, Silent(), address="local", command="")
        played.append([{**trial.record, "runtime_ms": None} for trial in plan.results(store)])
    assert played[0] == played[1]


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://127.0.0.1:1"])
def test_a_dead_address_is_told_at_once_and_nothing_is_lost(address: str, tasks: list[Task], tmp_path: Path):
    store = Store(tmp_path)
    with pytest.raises(AirlocError, match=r"no Ray cluster at .*what is done is kept"):
        run_on_cluster(tasks, store, Silent(), address=address, command="")


def test_a_machine_with_another_airloc_is_refused():
    with pytest.raises(AirlocError, match="another airloc"):
        cluster_module._do_elsewhere("score", "a score", {}, "", "another digest", [])


def test_a_training_asks_for_a_gpu_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked = []

    class Remote:
        def options(self, **room: object) -> "Remote":
            asked.append((room["num_gpus"], room["max_retries"]))
            return self

        def remote(self, *arguments: object) -> object:
            return object()

    monkeypatch.setattr(cluster_module.ray, "remote", lambda function: Remote())
    monkeypatch.setattr(cluster_module.ray, "put", lambda files: object())
    monkeypatch.setattr(Store, "files", lambda self, task: {})
    chosen = [task for task in few_tasks(planner()) if task.kind in ("embedder", "policy", "score")]
    for gpus in (0, 2):
        monkeypatch.setattr(cluster_module.ray, "cluster_resources", lambda gpus=gpus: {"GPU": gpus})
        cluster_module._submit(chosen, Store(tmp_path), "")
    assert asked == [(0, 3)] * 6 + [(1, 3)] * 2 + [(0, 3)] * 4
