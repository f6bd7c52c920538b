"""Tasks on a real Ray cluster of two nodes, one of which is killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import find_suites
from airloc.experiments.graph import Task
from airloc.experiments.runner import run_tasks
from airloc.experiments.store import Store
from airloc.experiments.suites import plan_suites
from airloc.reports.results import SCORE
from small_reproduction import RecordedProgress, few_tasks, planner
from small_suites import smaller

pytestmark = pytest.mark.ray

pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

from airloc.experiments import cluster as cluster_module  # noqa: E402
from airloc.experiments.cluster import MAX_RETRIES, run_on_cluster  # noqa: E402

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}
HEAD = {
    **NODE,
    "include_dashboard": False,
    # A dead node is noticed after one second, not after twenty.
    "_system_config": {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 2,
    },
}


@pytest.fixture
def ray_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # sums are added in one order, here and on the nodes
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or tasks wait for the tests of the other process


@pytest.fixture
def cluster(ray_settings: None) -> Iterator[Cluster]:
    made = Cluster(initialize_head=True, head_node_args=HEAD)
    yield made
    made.shutdown()


class NodeKiller(RecordedProgress):
    """Kills a node of the cluster when the first task is finished there."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster, self.node = cluster, cluster.add_node(**NODE)
        self.done_at_kill: list[str] = []

    def finished(self, task: Task) -> None:
        super().finished(task)
        if not task.kind.reads_data and not self.done_at_kill:
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.done_at_kill = list(self.done)


def content(tasks: list[Task], store: Store) -> dict[str, dict[str, Any]]:
    """All results, except for what depends on wall time and paths."""
    found: dict[str, dict[str, Any]] = {}
    for task in tasks:
        files: dict[str, Any] = store.read(task)
        found[task.label] = {
            name: data for name, data in files.items() if not name.endswith(("config.json", "card.md"))
        }
        if SCORE in files:
            found[task.label][SCORE] = {**json.loads(files[SCORE]), "runtime": None}
            del found[task.label][SCORE]["record"]["runtime_ms"]
    return found


@pytest.mark.slow
def test_with_a_killed_node_the_results_are_the_same(cluster: Cluster, tasks: list[Task], tmp_path: Path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    run_tasks(tasks, here, RecordedProgress(), threads=1, command="airloc reproduce")
    killer = NodeKiller(cluster)
    run_on_cluster(tasks, there, killer, address=cluster.address, command="airloc reproduce")
    assert len(killer.done_at_kill) < len(killer.done) == len(tasks)
    assert there.missing(tasks) == []
    assert content(tasks, there) == content(tasks, here)


def test_a_local_cluster_gives_the_results_of_this_machine(tmp_path: Path, ray_settings: None):
    plan = plan_suites([smaller(find_suites(["procedural"])[0])], ["blind"], None)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    run_tasks(plan.tasks, here, RecordedProgress(), threads=1)
    run_tasks(plan.tasks, there, RecordedProgress(), ray="local")
    assert content(plan.tasks, there) == content(plan.tasks, here)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://127.0.0.1:1"])
def test_an_address_without_a_cluster_is_an_error_at_once(address: str, tasks: list[Task], tmp_path: Path):
    with pytest.raises(AirlocError) as error:
        run_on_cluster(tasks, Store(tmp_path), RecordedProgress(), address=address, command="")
    assert repr(address) in error.value.problem
    assert "ray start" in error.value.cure


def test_a_machine_with_another_airloc_refuses_the_task():
    with pytest.raises(AirlocError, match="another airloc"):
        cluster_module._run_remotely("evaluation", "a task", {}, "", "another digest", [])


def test_a_training_asks_for_a_gpu_only_if_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked = []

    class Remote:
        def options(self, **resources: object) -> "Remote":
            asked.append((resources["num_gpus"], resources["max_retries"]))
            return self

        def remote(self, *arguments: object) -> object:
            return object()

    monkeypatch.setattr(cluster_module.ray, "remote", lambda function: Remote())
    monkeypatch.setattr(cluster_module.ray, "put", lambda files: object())
    monkeypatch.setattr(Store, "read", lambda self, task: {})
    chosen = [task for task in few_tasks(planner()) if not task.kind.reads_data]
    for gpus in (0, 2):
        monkeypatch.setattr(cluster_module.ray, "cluster_resources", lambda gpus=gpus: {"GPU": gpus})
        cluster_module._submit(chosen, Store(tmp_path), "")
    assert asked == [(gpus, MAX_RETRIES) for gpus in [0] * 6 + [1] * 2 + [0] * 4]
