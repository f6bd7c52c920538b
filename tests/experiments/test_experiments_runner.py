"""Killed and resumed, run twice, changed: nothing is lost and nothing is done again."""

from pathlib import Path

import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.experiments import play as scoring
from airloc.experiments.graph import Task
from airloc.experiments.paper import Asked, Plan, declined, outcomes
from airloc.experiments.runner import missing, run_here
from airloc.experiments.store import Store
from airloc.reports.outcomes import Setup
from airloc.task.batch import Observation
from small_reproduction import Silent, few_tasks, planner


class KilledError(Exception):
    """Stands for a kill."""


class Killer(Silent):
    """Kills everything while a task of a kind is at work."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def say(self, words: str) -> None:
        if self.now.kind == self.kind and (self.kind != "policy" or words.startswith("policy")):
            raise KilledError


def run(tasks: list[Task], store: Store, watcher: Silent | None = None) -> list[str]:
    watcher = watcher or Silent()
    run_here(missing(tasks, store), store, watcher, device="cpu", command="airloc reproduce")
    return watcher.done


def content(tasks: list[Task], store: Store) -> dict[str, dict[str, bytes]]:
    """All results but for what a clock and paths decide."""
    passing = ("score.json", "config.json", "card.md")
    return {
        task.label: {name: data for name, data in store.files(task).items() if not name.endswith(passing)}
        for task in tasks
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The results of a run that nothing disturbed."""
    store = Store(tmp_path_factory.mktemp("whole"))
    assert run(few_tasks(planner()), store) == ["areas", "pictures", "embedder", "policy", *["score"] * 4]
    return store


def test_a_second_run_does_nothing(whole: Store, tasks: list[Task]):
    assert run(tasks, whole) == []


@pytest.mark.parametrize("kind", ["policy", "score"])
def test_killed_in_any_task_it_goes_on_to_the_same_results(kind: str, whole: Store, tasks: list[Task], tmp_path: Path):
    store = Store(tmp_path)
    killer = Killer(kind)
    with pytest.raises(KilledError):
        run(tasks, store, killer)
    assert kind not in killer.done
    assert run(tasks, store) == ["areas", "pictures", "embedder", "policy", *["score"] * 4][len(killer.done) :]
    assert content(tasks, store) == content(tasks, whole)


def test_a_changed_setting_runs_again_what_depends_on_it_alone(whole: Store):
    changed = few_tasks(planner(episodes=40))
    assert [task.kind for task in missing(changed, whole)] == ["policy", "score", "score"]


def test_a_training_that_was_killed_is_not_begun_anew(tasks: list[Task], tmp_path: Path):
    store = Store(tmp_path)
    with pytest.raises(KilledError):
        run(tasks, store, Killer("policy"))
    policy = next(task for task in tasks if task.kind == "policy")
    assert (store.working(policy) / "run" / "policy" / "state.pt").is_file()


def test_an_agent_that_cannot_fly_straight_says_so_and_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An agent that knows eight moves alone declines the successors' protocol."""

    class Diagonal:
        name = "diagonal"

        def reset(self, briefing: EpisodeBatch) -> None:
            del briefing

        def act(self, observation: Observation, state: None) -> tuple[torch.Tensor, None]:
            return torch.full((len(observation.patch),), 3), state

    monkeypatch.setattr(scoring, "make_agent", lambda name, options: Diagonal())
    setup = Setup("diagonal", "masa", "val", suite="far-pairs", moves=4)
    task = planner().score(setup)
    assert task is not None
    plan = Plan(Asked(protocol=True), {setup: task})
    assert run(plan.tasks, Store(tmp_path)) == ["areas", "score"]
    assert outcomes(plan, Store(tmp_path)) == {}
    assert declined(plan, Store(tmp_path)) == ["The agent 'diagonal' moves diagonally, and the task has four moves."]
