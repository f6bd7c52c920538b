"""The declared suites are valid, and their commands give the stored results."""

import json
from pathlib import Path
from typing import Any

import pytest

from airloc.areas.changes import CHANGES
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import GROUPS, SUITES, SuiteSpec, find_suites
from airloc.evaluation.controls import CONTROLS
from airloc.evaluation.texts import TEXT_CONTROLS
from airloc.experiments.runner import run_tasks
from airloc.experiments.store import Store
from airloc.experiments.suites import plan_suites
from airloc.grid import Grid
from airloc.task.photos import FlightConditions
from airloc.task.suites import GENERATED
from small_reproduction import RecordedProgress
from small_suites import smaller, write_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def test_every_suite_has_a_unique_name_and_valid_options():
    assert len({suite.name for suite in SUITES}) == len(SUITES) > 20
    for suite in SUITES:
        assert [bool(suite.areas), bool(suite.dataset), bool(suite.prepare)].count(True) == 1, suite.name
        assert Grid.parse(suite.grid).count >= 25
        assert suite.episodes in GENERATED
        assert suite.change is None or suite.change in CHANGES
        assert suite.control is None or suite.control in (CONTROLS if suite.texts is None else TEXT_CONTROLS)
        assert suite.flight_conditions is None or FlightConditions(suite.flight_conditions)
        assert suite.description.endswith(".")


def test_every_change_and_every_size_has_a_suite():
    in_the_field = {"any-heading"}  # benchmarks.field_anywhere plays searches for such goals
    assert {suite.change for suite in SUITES if suite.change} == CHANGES.keys() - in_the_field
    assert {(suite.dataset_folder, suite.grid) for suite in SUITES} >= {
        *((name, grid) for name in ("masa", "dubai") for grid in ("5x5", "7x7")),
        *((name, grid) for name in ("austin", "") for grid in ("10x10", "15x15")),
    }
    assert {suite.cell_metres for suite in SUITES if suite.grid == "7x7" and suite.dataset_folder == "masa"} == {
        70,
        100,
    }
    assert {(suite.dataset_folder, suite.pairs) for suite in SUITES if suite.dataset_folder in ("xbd", "")} == {
        *(("xbd", goals) for goals in (True, False)),
        *(("", goals) for goals in (True, False)),
    }


def test_flight_conditions_have_suites_of_three_strengths_and_of_every_dataset():
    flight = [suite for suite in SUITES if suite.flight_conditions is not None]
    assert {suite.flight_conditions for suite in flight if suite.name.startswith("masa-flight")} == {0.5, 1.0, 2.0}
    assert {(suite.dataset_folder, suite.grid) for suite in flight if suite.flight_conditions == 1} == {
        *((name, "5x5") for name in ("masa", "dubai", "")),
        ("masa", "7x7"),
    }


def test_suites_that_share_a_cache_prepare_it_alike():
    commands = {}
    for suite in SUITES:
        if suite.prepare is not None:
            assert commands.setdefault(suite.prepare.cache, suite.prepare_command()) == suite.prepare_command()


def test_suites_are_found_in_the_order_of_the_file_and_unknown_names_are_refused():
    assert find_suites(()) == SUITES == tuple(suite for group in GROUPS for suite in group.suites)
    assert [suite.name for suite in find_suites(["dubai-5x5", "masa-5x5"])] == ["masa-5x5", "dubai-5x5"]
    with pytest.raises(AirlocError, match=r"'masa-5x6'.*'masa-5x5'\?.*austin-15x15"):
        find_suites(["masa-5x6"])


def test_commands_are_quoted_for_the_shell():
    assert find_suites(["xbd-pre-post"])[0].commands("belief") == [
        "airloc evaluate belief --areas $AIRLOC_DATA/xbd/images --pairs --except 'hurricane-michael_*' --per-area 4"
    ]
    assert find_suites(["austin-10x10"])[0].commands(seed=3) == [
        "airloc data prepare --grid 10x10 --out austin-10x10 folder --path $AIRLOC_DATA/austin --cut 1250",
        "airloc evaluate AGENT --areas austin-10x10 --grid 10x10 --per-area 10 --seed 3",
    ]
    assert find_suites(["masa-flight-half"])[0].commands("belief") == [
        "airloc evaluate belief --areas $AIRLOC_DATA/masa/images --split val --cell-metres 100 --per-area 6 "
        "--flight-conditions 0.5"
    ]


@pytest.mark.long
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_commands_of_a_suite_give_the_stored_result(
    suite: SuiteSpec, data: Path, airloc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AIRLOC_DATA", str(data))
    monkeypatch.chdir(tmp_path)
    suite = smaller(suite)
    plan, store = plan_suites([suite], ["priv-random", "blind"], data), Store(tmp_path / "store")
    run_tasks(plan.tasks, store, RecordedProgress())
    first, second = plan.results(store).values()

    *before, command = (
        [word.replace("$AIRLOC_DATA", str(data)) for word in words[1:]]
        for words in (suite.prepare_command(), suite.texts_command(), suite.evaluate_command(first.agent))
        if words
    )
    for words in (*before, [*command, "--against", second.agent, "--json", tmp_path / "score.json"]):
        outcome = airloc(*words)
        assert outcome.code == 0, outcome
    record: dict[str, Any] = json.loads((tmp_path / "score.json").read_bytes())
    against, options = record.pop("against"), record.pop("options")
    assert {**first.record, "runtime_ms": 0} == {**{name: record[name] for name in first.record}, "runtime_ms": 0}
    assert second.success == against["success"]
    difference = against["metrics"]["success"]
    gap, interval = first.minus(second)
    assert gap == pytest.approx(difference["difference"])
    assert interval == pytest.approx(tuple(difference["ci95"]), nan_ok=True)
    assert options["seed"] == first.seed
