"""What the shipped weights achieve on real validation areas."""

from pathlib import Path

import pytest

from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.folder import Folder
from airloc.evaluation.evaluate import compare, evaluate
from airloc.evaluation.metrics import blind_optimum
from airloc.grid import Grid
from airloc.task.suites import Suite, all_pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def windows(data_root: Path) -> list[SearchArea]:
    """The validation windows of Massachusetts at the paper's scale."""
    return list(Folder(data_root / "masa" / "images", split="val", cell_metres=100).areas(Grid(5, 5)))


@pytest.fixture(scope="module")
def suite(windows: list[SearchArea]) -> Suite:
    return all_pairs([area.name for area in windows], Grid(5, 5), equal_distances=True)


def test_airloc_finds_more_than_priv_local_and_far_more_than_blind_flight(windows, suite):
    airloc, local = (evaluate(make_agent(name), suite, windows) for name in ("airloc", "priv-local"))
    assert airloc.value("success") > 0.80
    assert airloc.value("success") > blind_optimum(suite) + 0.25
    low, _ = compare(airloc, local)["metrics"]["success"]["ci95"]
    assert low > 0.03


def test_local_without_privileges_is_far_below_priv_local(windows, suite):
    alone, privileged = (evaluate(make_agent(name), suite, windows) for name in ("local", "priv-local"))
    assert privileged.value("success") > alone.value("success") + 0.3


@pytest.mark.parametrize("name", ["airloc", "priv-local"])
def test_with_a_wrong_goal_agents_that_look_find_no_more_than_blind_flight(windows, suite, name: str):
    assert evaluate(make_agent(name), suite, windows, control="wrong-goal").value("success") < blind_optimum(suite)
