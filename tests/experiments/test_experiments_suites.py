"""Suites are planned by the content of data and weights, and suites whose data is absent are skipped."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from airloc.agents.registry import available_agents
from airloc.areas import NameFilter
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import SUITES, find_suites
from airloc.experiments import datasets, graph
from airloc.experiments import suites as suites_plan
from airloc.experiments.datasets import AREAS
from airloc.experiments.evaluation import evaluation_task
from airloc.experiments.graph import Task
from airloc.experiments.suites import choose_agents, plan_suites
from small_suites import write_data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def kinds(tasks: list) -> list[str]:
    return [task.kind.name for task in tasks]


def test_suites_with_the_same_areas_share_the_areas_task(data: Path):
    plan = plan_suites(find_suites(["masa-5x5", "masa-blur", "masa-wrong-goal"]), ["random", "blind"], data)
    assert kinds(plan.tasks) == ["areas", *["evaluation"] * 6]
    assert len({task.key for task in plan.tasks}) == 7


def test_all_suites_and_agents_are_planned_and_no_two_are_one():
    plan = plan_suites(SUITES, available_agents(), None)
    assert {suite for _, suite in plan.evaluations} == {suite.name for suite in SUITES if not suite.folder}
    assert {agent for agent, _ in plan.evaluations} == set(available_agents())
    assert len({task.key for task in plan.evaluations.values()}) == len(plan.evaluations)


def test_new_weights_change_the_keys_of_their_agent_only(data: Path, monkeypatch: pytest.MonkeyPatch):
    suites = find_suites(["masa-5x5"])
    before = plan_suites(suites, ["airloc", "blind"], data).evaluations
    monkeypatch.setattr(suites_plan, "weights_digest", lambda name, *, texts: "new" if name == "airloc" else "")
    after = plan_suites(suites, ["airloc", "blind"], data).evaluations
    assert before["blind", "masa-5x5"].key == after["blind", "masa-5x5"].key
    assert before["airloc", "masa-5x5"].key != after["airloc", "masa-5x5"].key


def test_new_weights_for_descriptions_change_the_keys_of_suites_of_goals_in_words_only(monkeypatch: pytest.MonkeyPatch):
    suites, agents = find_suites(["procedural", "procedural-words"]), ["belief", "blind"]
    before = plan_suites(suites, agents, None).evaluations
    monkeypatch.setattr(graph, "DEFAULT_TEXT", "text-research")
    after = plan_suites(suites, agents, None).evaluations
    assert [which for which in before if before[which].key != after[which].key] == [("belief", "procedural-words")]


def test_new_words_change_the_keys_of_suites_of_goals_in_words_only(monkeypatch: pytest.MonkeyPatch):
    suites = find_suites(["procedural", "procedural-words"])
    before = plan_suites(suites, ["blind"], None).evaluations
    monkeypatch.setattr(datasets, "TEXTS_VERSION", datasets.TEXTS_VERSION + 1)
    after = plan_suites(suites, ["blind"], None).evaluations
    assert [which for which in before if before[which].key != after[which].key] == [("blind", "procedural-words")]


def test_changed_images_change_the_keys_of_their_dataset_only(data: Path):
    suites = find_suites(["masa-5x5", "xbd-pre-post", "procedural"])
    before = plan_suites(suites, ["random"], data).evaluations
    Image.new("RGB", (150, 150)).save(data / "masa" / "images" / "100_0_0.png")
    after = plan_suites(suites, ["random"], data).evaluations
    assert [suite for (agent, suite) in before if before[agent, suite].key != after[agent, suite].key] == ["masa-5x5"]


def test_seed_and_limit_are_part_of_the_key(data: Path):
    suites = find_suites(["masa-5x5"])
    plans = [plan_suites(suites, ["random"], data, **options) for options in ({}, {"seed": 1}, {"limit": 1})]
    assert len({plan.tasks[-1].key for plan in plans}) == 3
    assert len({plan.tasks[0].key for plan in plans}) == 2, "a seed reads the same areas"


def test_flight_conditions_change_no_key_of_other_evaluations():
    areas = Task(AREAS, "areas", {})
    plain, flight = (evaluation_task("x", "belief", areas, grid="5x5", flight_conditions=f) for f in (None, 1.0))
    assert "flight_conditions" not in plain.settings
    assert flight.settings == {**plain.settings, "flight_conditions": 1.0}
    assert plain.key != flight.key


def test_suites_without_data_are_skipped_with_the_reason(data: Path):
    (data / "dubai").rename(data / "elsewhere")
    plan = plan_suites(find_suites(["masa-5x5", "dubai-5x5"]), ["random"], data)
    [skip] = plan.skipped
    assert skip.suite.name == "dubai-5x5"
    assert "'dubai'" in skip.reason
    assert list(plan.evaluations) == [("random", "masa-5x5")]
    with pytest.raises(AirlocError, match="'masa'"):
        plan_suites(find_suites(["masa-5x5"]), ["random"], None)
    with pytest.raises(AirlocError, match="nowhere"):
        plan_suites(find_suites(["masa-5x5"]), ["random"], data / "nowhere")


def test_a_suite_may_be_for_some_agents_only(data: Path):
    suite = replace(find_suites(["masa-5x5"])[0], agents=NameFilter(only=("blind", "spiral")))
    assert list(plan_suites([suite], ["random", "blind"], data).evaluations) == [("blind", "masa-5x5")]
    with pytest.raises(AirlocError, match="data list"):
        plan_suites([suite], ["random"], data)


def test_agents_are_chosen_by_pattern_and_trained_ones_come_first():
    everybody = choose_agents(())
    assert sorted(everybody) == sorted(available_agents())
    assert everybody.index("belief") < everybody.index("airloc") < everybody.index("blind") < everybody.index("random")
    assert choose_agents(["belief", "*random"]) == ["belief", "priv-random", "random"]
    with pytest.raises(AirlocError, match=r"'belif\*'.*belief-greedy"):
        choose_agents(["random", "belif*"])
