"""Results of evaluations are written and read without loss."""

from pathlib import Path

import numpy as np
import pytest

from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.evaluation.scores import compare, evaluate
from airloc.grid import Grid
from airloc.reports.results import EPISODES, Episodes, load_reason, load_result, save_declined, save_result
from airloc.task.suites import all_pairs


def test_a_result_keeps_the_record_the_episodes_and_paired_differences(toy_areas: list[SearchArea], tmp_path: Path):
    suite = all_pairs([area.name for area in toy_areas], Grid(5, 5), equal_distances=True)
    scores, loaded = [], []
    for name in ("blind", "random"):
        scores.append(evaluate(make_agent(name), suite, toy_areas, seed=3))
        (tmp_path / name).mkdir()
        save_result(tmp_path / name, scores[-1], toy_areas, seed=3, extra={"control": None})
        assert load_reason(tmp_path / name) is None
        result = load_result(tmp_path / name, name)
        assert result is not None
        assert result.record == {**scores[-1].record(), "control": None}
        loaded.append(result)
    difference = compare(*scores)["metrics"]["success"]
    value, interval = loaded[0].minus(loaded[1])
    assert value == pytest.approx(difference["difference"])
    assert interval == tuple(difference["ci95"])
    again = Episodes.load(tmp_path / "blind" / EPISODES)
    assert np.array_equal(again.weight, suite.weight)
    assert again.record(5)["path"][0] == again.record(5)["start"] == suite.start[5].tolist()


def test_equal_results_are_equal_bytes(toy_areas: list[SearchArea], tmp_path: Path):
    suite = all_pairs([area.name for area in toy_areas[:1]], Grid(2, 2))
    score = evaluate(make_agent("blind"), suite, toy_areas[:1])
    for name in ("a", "b"):
        Episodes.of(score, toy_areas[:1]).save(tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_declined_evaluation_keeps_its_reason(tmp_path: Path):
    save_declined(tmp_path, "only eight moves", seed=0)
    assert load_result(tmp_path, "agent") is None
    assert load_reason(tmp_path) == "only eight moves"
