"""Figures of a reproduction, from results written by hand."""

from pathlib import Path

from airloc.evaluation.benchmarks.paper import Setup
from airloc.reports.figures import charts, choose_pairs, successor_chart
from airloc.reports.results import EvaluationResult, LearningCurve
from paper_results import VAL, episodes, record, results


def test_charts_carry_the_data_they_were_made_from():
    shares = {"1": {"share": 0.8, "ci95": [0.7, 0.9]}, "2": {"share": 0.5, "ci95": [0.4, 0.6]}}
    bins = [{"forecast": 0.1, "hit": 0.2, "count": 5}, {"forecast": 0.9, "hit": 0.7, "count": 5}]
    calibration = {"ece": 0.1, "bins": bins}
    found = results((Setup("airloc", *VAL, seed="1"), record(0.5)), (Setup("belief", *VAL), record(0.8)))
    found[Setup("airloc", *VAL)] = EvaluationResult(
        "airloc", record(0.6), Path(), agreement=shares, calibration=calibration
    )
    curve = LearningCurve("airloc", "masa", (64, 128), (0.3, 0.4))
    made = {figure.name: figure for figure in charts(found, [curve])}
    assert set(made) == {"success-by-distance-5x5", "agreement", "seeds", "learning-curves", "calibration"}
    by_distance = made["success-by-distance-5x5"].data["agents"]
    assert list(by_distance) == ["airloc", "belief"]
    assert by_distance["airloc"]["success"] == {"1": 0.6, "2": 0.6, "3": 0.6, "4": 0.6}
    assert made["agreement"].data["agents"]["airloc"]["2"]["share"] == 0.5
    assert made["seeds"].data["agents"]["airloc"]["1"]["success"] == 0.5
    assert made["calibration"].data["agents"]["airloc"]["bins"] == bins
    assert all("<svg" in figure.content for figure in made.values())


def test_the_successors_chart_needs_results():
    assert successor_chart({}) is None
    four = Setup("airloc", *VAL, episodes="far-pairs", moves=4)
    chart = successor_chart(results((four, record(0.7, d4=0.5, d5=0.6, d6=0.7, d7=0.8, d8=0.9))))
    assert chart is not None
    assert chart.data["airloc"]["8"] == 0.9


def test_the_chosen_pairs_show_how_agents_differ():
    first = episodes({1: [True], 2: [True], 3: [False], 4: [True]})
    second = episodes({1: [True], 2: [False], 3: [False], 4: [True]}, paths=[1, 1, 1, 2])
    assert choose_pairs(first, second) == [1, 3]
    assert choose_pairs(episodes({1: [True]}), episodes({1: [True]})) == [0]
