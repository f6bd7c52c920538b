"""What is declared of suites makes sense, and the commands it gives are those that score an agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from airloc.areas.changes import CHANGES
from airloc.areas.registry import SOURCES
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import GROUPS, PLACED, RECIPES, Recipe, find
from airloc.evaluation.controls import CONTROLS
from airloc.experiments.runner import run_here
from airloc.experiments.store import Store
from airloc.experiments.suites import plan_trials
from airloc.grid import Grid
from airloc.task.suites import GENERATED
from small_reproduction import Silent
from small_suites import smaller, write_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def test_every_suite_has_a_name_of_its_own_and_names_only_what_there_is():
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES) > 20
    for recipe in RECIPES:
        assert bool(recipe.areas) != bool(recipe.prepare), recipe.name
        assert Grid.parse(recipe.grid).count >= 25
        assert recipe.episodes in GENERATED
        assert recipe.change is None or recipe.change in CHANGES
        assert recipe.control is None or recipe.control in CONTROLS
        assert recipe.what.endswith(".")
        if recipe.prepare is not None:
            placed = {PLACED[recipe.prepare.source]: Path("there")} if recipe.place else {}
            SOURCES[recipe.prepare.source](**recipe.prepare.options, **placed)


def test_every_change_and_every_size_that_is_asked_for_has_its_suite():
    assert {recipe.change for recipe in RECIPES if recipe.change} == set(CHANGES)
    assert {(recipe.dataset, recipe.grid) for recipe in RECIPES} >= {
        *((name, grid) for name in ("masa", "dubai") for grid in ("5x5", "7x7")),
        *((name, grid) for name in ("austin", "") for grid in ("10x10", "15x15")),
    }
    assert {recipe.cell_metres for recipe in RECIPES if recipe.grid == "7x7" and recipe.dataset == "masa"} == {70, 100}
    assert {(recipe.dataset, recipe.goals) for recipe in RECIPES if recipe.dataset in ("xbd", "")} == {
        *(("xbd", goals) for goals in (True, False)),
        *(("", goals) for goals in (True, False)),
    }


def test_suites_of_one_cache_prepare_it_alike():
    told = {}
    for recipe in RECIPES:
        if recipe.prepare is not None:
            assert told.setdefault(recipe.prepare.cache, recipe.prepare_words()) == recipe.prepare_words()


def test_suites_are_found_in_the_order_of_the_file_and_unknown_ones_are_refused():
    assert find(()) == RECIPES == tuple(recipe for group in GROUPS for recipe in group.recipes)
    assert [recipe.name for recipe in find(["dubai-5x5", "masa-5x5"])] == ["masa-5x5", "dubai-5x5"]
    with pytest.raises(AirlocError, match=r"no suite 'masa-5x6'.*Did you mean 'masa-5x5'\?.*austin-15x15"):
        find(["masa-5x6"])


def test_commands_are_written_as_they_are_typed():
    assert find(["xbd-pre-post"])[0].commands("belief") == [
        "airloc evaluate belief --areas $AIRLOC_DATA/xbd/images --goals $AIRLOC_DATA/xbd/images "
        "--except 'hurricane-michael_*' --per-area 4"
    ]
    assert find(["austin-10x10"])[0].commands(seed=3) == [
        "airloc data prepare --grid 10x10 --out austin-10x10 folder --path $AIRLOC_DATA/austin --cut 1250",
        "airloc evaluate AGENT --areas austin-10x10 --grid 10x10 --per-area 10 --seed 3",
    ]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_result_is_what_the_commands_of_its_suite_give(recipe: Recipe, data: Path, airloc, tmp_path: Path):
    recipe = smaller(recipe)
    plan, store = plan_trials([recipe], ["priv-random", "blind"], data), Store(tmp_path / "store")
    run_here(plan.tasks, store, Silent(), device="cpu", command="")
    first, second = plan.results(store)

    for words in filter(None, [recipe.prepare_words(str(data), f"{tmp_path}/")]):
        outcome = airloc(*words[1:])
        assert outcome.code == 0, outcome
    words = recipe.evaluate_words(first.agent, str(data), f"{tmp_path}/")
    outcome = airloc(*words[1:], "--against", second.agent, "--json", tmp_path / "score.json")
    assert outcome.code == 0, outcome
    record: dict[str, Any] = json.loads((tmp_path / "score.json").read_bytes())
    against, options = record.pop("against"), record.pop("options")
    assert {**first.record, "runtime_ms": 0} == {**record, "runtime_ms": 0}
    assert second.success == against["success"]
    difference = against["metrics"]["success"]
    gap, interval = first.minus(second)
    assert gap == pytest.approx(difference["difference"])
    assert interval == pytest.approx(tuple(difference["ci95"]), nan_ok=True)
    assert options["seed"] == first.seed
