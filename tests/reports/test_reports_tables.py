"""The tables on the terminal."""

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.evaluation.scores import Score, compare, evaluate
from airloc.evaluation.texts import DescribedGoals
from airloc.grid import Grid
from airloc.reports.tables import comparison_line, goals_line, number, percent, percent_interval, score_table
from airloc.task.goal_texts import SuiteTexts
from airloc.task.suites import Suite, per_distance


@pytest.fixture(scope="module")
def scores(toy_areas: list[SearchArea]) -> list[Score]:
    suite = per_distance([area.name for area in toy_areas], Grid(5, 5))
    return [evaluate(make_agent(name), suite, toy_areas) for name in ("random", "blind")]


def shown(scores: list[Score], *, exact: bool = True, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(score_table(scores, 0.5211, exact=exact))
    return out.getvalue()


def test_numbers_are_short_and_undefined_ones_are_dashes():
    assert (percent(0.5211), percent(None)) == ("52.1", "–")  # noqa: RUF001
    assert (number(1.23456, 2), number(None, 2)) == ("1.23", "–")  # noqa: RUF001
    assert (percent_interval((0.1, 0.255)), percent_interval((None, None))) == ("[10.0, 25.5]", "")


def test_the_table_shows_each_agent_the_floor_and_every_distance(scores: list[Score]):
    text = shown(scores)
    assert "24 episodes (per-distance) on 6 areas, 5x5 cells, 10 moves" in text
    assert text.count("random") == text.count("blind ") - 1 == 2
    assert "blind optimum" in text
    assert "52.1" in text
    assert percent(scores[0].value("success")) in text
    assert [f"d = {d}" for d in range(1, 5) if f"d = {d}" not in text] == []


def test_the_table_says_how_goals_differ(scores: list[Score]):
    out = io.StringIO()
    goals = goals_line(change="blur", strength=0.5, control="wrong-goal", source=Path("before"))
    Console(file=out, width=120).print(score_table(scores, 0.5, exact=True, goals=goals))
    assert goals in out.getvalue()
    assert [part for part in ("before", "blur", "0.5", "wrong-goal") if part not in goals] == []
    assert goals_line() == ""


def test_goals_in_words_say_whether_the_one_meant_or_any_that_fits_was_found(toy_areas: list[SearchArea]):
    suite = per_distance([area.name for area in toy_areas], Grid(5, 5))
    described = DescribedGoals(SuiteTexts(["a road"] * len(suite), np.ones((len(suite), 25), dtype=np.bool_)))
    score = evaluate(make_agent("blind"), suite, toy_areas, described=described)
    meant = percent(score.value("success"))
    text = " ".join(shown([score]).split())
    assert f"blind: found the cell meant {meant} % [" in text
    assert "any that the description fits 100.0 % [100.0, 100.0]" in text
    goals = goals_line(texts=Path("town.csv"), control="wrong-text", pictures=True)
    assert goals == "Goals in words and images: from town.csv, control wrong-text"


def test_a_floor_that_is_not_proven_says_so(scores: list[Score]):
    assert "blind, at least" in shown(scores, exact=False, width=120)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_legend_fills_the_width_of_the_terminal(scores: list[Score], width: int):
    lines = shown(scores, width=width).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("Success in %"))
    legend = lines[first : lines.index("", first)]
    assert all(len(line) <= width for line in lines)
    assert all(len(line) + len(after.split()[0]) >= width - 1 for line, after in pairwise(legend))


def test_many_distances_are_spread_over_several_tables(toy_areas: list[SearchArea]):
    grid = Grid(2, 20)
    suite = per_distance([area.name for area in toy_areas], grid)
    text = shown([evaluate(make_agent("random"), suite, toy_areas)])
    assert [f"d = {d}" for d in range(1, 20) if f"d = {d}" not in text] == []
    assert "…" not in text


def test_a_score_without_success_is_a_row_of_dashes(toy_areas: list[SearchArea]):
    drawn = per_distance([area.name for area in toy_areas], Grid(5, 5), budget=1)
    far = drawn.distance > 1
    suite = Suite("far", drawn.grid, 1, drawn.areas, drawn.area[far], drawn.start[far], drawn.goal[far])
    assert "– / –" in shown([evaluate(make_agent("blind"), suite, toy_areas)])  # noqa: RUF001


def test_a_comparison_is_one_line(scores: list[Score]):
    record = compare(scores[0], scores[1])
    line = comparison_line("random", record)
    assert line.startswith("random minus blind: -")
    assert f"only by blind: {record['found_by_second_only']}" in line
    record["metrics"]["success"]["ci95"] = (None, None)
    assert "[" not in comparison_line("random", record)
