"""Interrupted, repeated and changed runs lose nothing and compute nothing twice."""

import shutil
from pathlib import Path

import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.evaluation.benchmarks.paper import Setup
from airloc.experiments import evaluation
from airloc.experiments.graph import Task
from airloc.experiments.paper import PaperPlan
from airloc.experiments.runner import run_tasks
from airloc.experiments.store import Store
from airloc.task.batch import Observation
from small_reproduction import RecordedProgress, few_tasks, planner

pytestmark = pytest.mark.long

ALL = ["areas", "images", "embedder", "policy", *["evaluation"] * 4]


class KilledError(Exception):
    """Stands for a kill."""


class Killer(RecordedProgress):
    """Kills the run while a task of a kind is running."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def message(self, text: str) -> None:
        if self.current.kind.name == self.kind and (self.kind != "policy" or text.startswith("policy")):
            raise KilledError


def run(tasks: list[Task], store: Store, progress: RecordedProgress | None = None) -> list[str]:
    progress = progress or RecordedProgress()
    run_tasks(store.missing(tasks), store, progress, threads=1, command="airloc reproduce")
    return progress.done


def content(tasks: list[Task], store: Store) -> dict[str, dict[str, bytes]]:
    """All results, except for files that depend on wall time and paths."""
    passing = ("score.json", "config.json", "card.md")
    return {
        task.label: {name: data for name, data in store.read(task).items() if not name.endswith(passing)}
        for task in tasks
    }


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The results of a run without interruption."""
    store = Store(tmp_path_factory.mktemp("complete"))
    assert run(few_tasks(planner()), store) == ALL
    return store


def test_a_second_run_does_nothing(complete: Store, tasks: list[Task]):
    assert run(tasks, complete) == []


def test_killed_in_a_training_it_resumes_and_gives_the_same_results(complete: Store, tasks: list[Task], tmp_path: Path):
    store = Store(tmp_path)
    for task in tasks[:3]:
        shutil.copytree(complete.result_folder(task), store.result_folder(task))
    with pytest.raises(KilledError):
        run(tasks, store, Killer("policy"))
    policy = next(task for task in tasks if task.kind.name == "policy")
    assert (store.working_folder(policy) / "run" / "policy" / "state.pt").is_file(), "it does not start again"
    assert run(tasks, store) == ALL[3:]
    assert content(tasks, store) == content(tasks, complete)


def test_killed_in_an_evaluation_it_goes_on(tmp_path: Path):
    task = planner().evaluation(Setup("priv-random", "masa", "val"))
    assert task is not None
    tasks, store = [task.inputs["areas"], task], Store(tmp_path)
    with pytest.raises(KilledError):
        run(tasks, store, Killer("evaluation"))
    assert run(tasks, store) == ["evaluation"]


def test_a_changed_setting_runs_again_only_what_depends_on_it(complete: Store):
    changed = few_tasks(planner(episodes=40))
    assert [task.kind.name for task in complete.missing(changed)] == ["policy", "evaluation", "evaluation"]


def test_threads_are_limited_while_tasks_run_and_restored_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = []
    monkeypatch.setattr(evaluation, "generate", lambda *_, **__: seen.append(torch.get_num_threads()) or 1 / 0)
    task = planner().evaluation(Setup("priv-random", "masa", "val"))
    assert task is not None
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError):
            run([task.inputs["areas"], task], Store(tmp_path))
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_an_agent_that_moves_diagonally_declines_the_four_moves_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Diagonal:
        name = "diagonal"

        def reset(self, episodes: EpisodeBatch) -> None:
            del episodes

        def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
            return torch.full((len(observation.patch),), 3), state

    monkeypatch.setattr(evaluation, "make_agent", lambda name, options: Diagonal())
    setup = Setup("diagonal", "masa", "val", episodes="far-pairs", moves=4)
    task = planner().evaluation(setup)
    assert task is not None
    plan, store = PaperPlan({setup: task}), Store(tmp_path)
    assert run(plan.tasks, store) == ["areas", "evaluation"]
    assert plan.results(store) == {}
    [reason] = plan.declined(store)
    assert "diagonal" in reason


def test_trainings_are_repeated_only_for_results_that_are_missing(complete: Store, tasks: list[Task], tmp_path: Path):
    store = Store(tmp_path)
    shutil.copytree(complete.folder / "results", tmp_path / "results")
    for folder in (tmp_path / "results").glob("*"):
        if folder.name.split("-")[0] in ("images", "embedder", "policy"):
            shutil.rmtree(folder)
    assert store.missing(tasks) == []
    shutil.rmtree(next((tmp_path / "results").glob("areas-*")))
    assert [task.kind.name for task in store.missing(tasks)] == ["areas"], "reports show them"
    trained = next(task for task in tasks if "policy" in task.inputs)
    shutil.rmtree(store.result_folder(trained))
    assert [task.kind.name for task in store.missing(tasks)] == ["areas", "images", "embedder", "policy", "evaluation"]
