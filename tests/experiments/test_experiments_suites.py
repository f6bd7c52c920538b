"""Trials are planned by the content of data and weights, and suites whose data is not there are skipped."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from airloc.agents.registry import available_agents
from airloc.areas.pairs import Names
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import RECIPES, find
from airloc.experiments import suites as suites_module
from airloc.experiments.suites import choose_agents, plan_trials
from small_suites import write_data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def kinds(tasks: list) -> list[str]:
    return [task.kind for task in tasks]


def test_suites_over_the_same_areas_read_them_once(data: Path):
    plan = plan_trials(find(["masa-5x5", "masa-blur", "masa-wrong-goal"]), ["random", "blind"], data)
    assert kinds(plan.tasks) == ["ground", *["trial"] * 6]
    assert len({task.key for task in plan.tasks}) == 7


def test_all_suites_and_agents_are_planned_and_no_two_are_one():
    plan = plan_trials(RECIPES, available_agents(), None)
    assert {suite for _, suite in plan.trials} == {recipe.name for recipe in RECIPES if not recipe.place}
    assert {agent for agent, _ in plan.trials} == set(available_agents())
    assert len({task.key for task in plan.trials.values()}) == len(plan.trials)


def test_new_weights_play_again_and_nobody_else(data: Path, monkeypatch: pytest.MonkeyPatch):
    recipes = find(["masa-5x5"])
    before = plan_trials(recipes, ["airloc", "blind"], data).trials
    monkeypatch.setattr(suites_module, "weights_digest", lambda name: "new" if name == "airloc" else "")
    after = plan_trials(recipes, ["airloc", "blind"], data).trials
    assert before["blind", "masa-5x5"].key == after["blind", "masa-5x5"].key
    assert before["airloc", "masa-5x5"].key != after["airloc", "masa-5x5"].key


def test_changed_pictures_play_again_and_other_datasets_do_not(data: Path):
    recipes = find(["masa-5x5", "xbd-pre-post", "procedural"])
    before = plan_trials(recipes, ["random"], data).trials
    Image.new("RGB", (150, 150)).save(data / "masa" / "images" / "100_0_0.png")
    after = plan_trials(recipes, ["random"], data).trials
    assert [suite for (agent, suite) in before if before[agent, suite].key != after[agent, suite].key] == ["masa-5x5"]


def test_a_seed_and_a_cut_are_parts_of_the_address(data: Path):
    recipes = find(["masa-5x5"])
    plans = [plan_trials(recipes, ["random"], data, **options) for options in ({}, {"seed": 1}, {"most": 1})]
    assert len({plan.tasks[-1].key for plan in plans}) == 3
    assert len({plan.tasks[0].key for plan in plans}) == 2, "a seed reads the same areas"


def test_suites_without_data_are_skipped_with_the_reason(data: Path):
    (data / "dubai").rename(data / "elsewhere")
    plan = plan_trials(find(["masa-5x5", "dubai-5x5"]), ["random"], data)
    assert [(skip.recipe.name, skip.why) for skip in plan.skipped] == [
        ("dubai-5x5", "there is no folder 'dubai' in the data folder")
    ]
    assert list(plan.trials) == [("random", "masa-5x5")]
    with pytest.raises(AirlocError, match="There is nothing to play: it needs the dataset 'masa'"):
        plan_trials(find(["masa-5x5"]), ["random"], None)
    with pytest.raises(AirlocError, match="There is no data folder"):
        plan_trials(find(["masa-5x5"]), ["random"], data / "nowhere")


def test_a_suite_may_be_for_some_agents_only(data: Path):
    recipe = replace(find(["masa-5x5"])[0], agents=Names(only=("blind", "spiral")))
    assert list(plan_trials([recipe], ["random", "blind"], data).trials) == [("blind", "masa-5x5")]
    with pytest.raises(AirlocError, match="none of these agents plays these suites"):
        plan_trials([recipe], ["random"], data)


def test_agents_are_chosen_by_pattern_and_those_that_see_stand_first():
    everybody = choose_agents(())
    assert sorted(everybody) == sorted(available_agents())
    assert everybody.index("belief") < everybody.index("airloc") < everybody.index("blind") < everybody.index("random")
    assert choose_agents(["belief", "*random"]) == ["belief", "priv-random", "random"]
    with pytest.raises(AirlocError, match=r"No agent is called 'belif\*'.*belief-greedy"):
        choose_agents(["random", "belif*"])
