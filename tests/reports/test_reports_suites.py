"""Tables, charts and the page of all agents, from results written by hand."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloc.evaluation.benchmarks.suites import GROUPS, find_suites
from airloc.reports.results import EPISODES, Episodes, EvaluationResult
from airloc.reports.suites import (
    PageOptions,
    SkippedSuite,
    group_chart,
    group_table,
    make_page,
    suite_size,
    summary_table,
)

FOUND = {"belief": "1111", "airloc": "1010", "random": "0000"}


def result(folder: Path, agent: str, suite: str, found: str = "", **other: Any) -> EvaluationResult:
    found = found or FOUND[agent]
    place = folder / f"{agent}-{suite}"
    place.mkdir(exist_ok=True)
    cells, ones = np.zeros((4, 2), dtype=np.int64), np.ones(4, dtype=np.int64)
    Episodes(
        areas=np.array(["a", "b"]),
        tiles=np.array(["t", "u"]),
        area=np.array([0, 0, 1, 1]),
        start=cells,
        goal=cells + 1,
        distance=ones,
        weight=np.ones(4),
        found=np.array([letter == "1" for letter in found]),
        steps=ones,
        path=np.stack([cells, cells + 1], axis=1),
    ).save(place / EPISODES)
    success = found.count("1") / 4
    record = {
        "success": success,
        "ci95": {"success": [success - 0.05, success + 0.05]},
        "blind_optimum": 0.5211,
        "blind_optimum_exact": True,
        "grid": "5x5",
        "budget": 10,
        "areas": 2,
        "clusters": 2,
        "episodes": 1200,
        **other,
    }
    return EvaluationResult(agent, record, place, provenance={"data": "d", "weights": "w", "result": "r"})


def plain(text: str) -> str:
    """A text whose spaces may break."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def results(folder: Path, *names: tuple[str, str], **other: Any) -> dict[tuple[str, str], EvaluationResult]:
    return {(agent, suite): result(folder, agent, suite, **other) for agent, suite in names}


def test_a_cell_has_success_and_interval_and_the_blind_optimum_comes_last(tmp_path: Path):
    found = results(tmp_path, ("airloc", "masa-5x5"), ("random", "masa-5x5"))
    lines = plain(group_table(GROUPS[0], ["belief", "airloc", "random"], found, [])).splitlines()
    assert lines == [
        "| agent | Massachusetts |",
        "| --- | --: |",
        "| `airloc` | 50.0 [45.0, 55.0] |",
        "| `random` | 0.0 [-5.0, 5.0] |",
        "| *blind optimum* | 52.1 |",
    ]


def test_agents_trained_on_the_areas_and_an_unproven_optimum_are_marked(tmp_path: Path):
    open_floor = {"blind_optimum": 0.197, "blind_optimum_exact": False}
    found = results(tmp_path, ("belief", "austin-15x15"), ("belief", "procedural-15x15"), **open_floor)
    group = next(group for group in GROUPS if "austin-15x15" in [suite.name for suite in group.suites])
    text = plain(group_table(group, ["belief"], found, []))
    assert "| `belief` | 100.0 [95.0, 105.0] | 100.0† [95.0, 105.0] |" in text
    assert "| *blind optimum* | ≥ 19.7 | ≥ 19.7 |" in text
    austin = find_suites(["austin-10x10"])[0]
    names = ["airloc-priv", "priv-local", "blind", "airloc-xbd-research", "belief-greedy"]
    assert [austin.trained_on_areas(name) for name in names] == [True, True, False, False, True]


def test_a_suite_without_data_keeps_its_column_and_the_page_gives_the_reason(tmp_path: Path):
    missing = SkippedSuite(find_suites(["dubai-5x5"])[0], "no folder 'dubai'")
    found = results(tmp_path, ("belief", "masa-5x5"))
    suites = find_suites(["masa-5x5", "dubai-5x5"])
    page = plain(make_page(found, PageOptions("airloc suites", "airloc", suites, ["belief"], [missing])).markdown)
    assert "| agent | Massachusetts | Dubai (no data) |" in page
    assert "| `belief` | 100.0 [95.0, 105.0] | – |" in page  # noqa: RUF001
    assert "no folder 'dubai'" in page
    assert "airloc data prepare --out dubai-5x5 dubai" in page


def test_the_summary_compares_with_the_blind_optimum_and_paired_with_airloc(tmp_path: Path):
    found = results(tmp_path, ("belief", "masa-5x5"), ("airloc", "masa-5x5"))
    row = plain(summary_table(find_suites(["masa-5x5"]), found)).splitlines()[2]
    assert row == "| masa-5x5 | 52.1 | 100.0 [95.0, 105.0] | +47.9 [+42.9, +52.9] | +50.0 [+50.0, +50.0] |"
    alone = summary_table(find_suites(["masa-5x5"]), results(tmp_path, ("airloc", "masa-5x5"))).splitlines()[2]
    assert alone == "| masa-5x5 | 52.1 | – | – | – |"  # noqa: RUF001


def test_a_single_tile_has_no_interval(tmp_path: Path):
    found = results(tmp_path, ("belief", "masa-5x5"), ci95={"success": [None, None]})
    text = summary_table(find_suites(["masa-5x5"]), found)
    assert "| 100.0 | +47.9 | – |" in text  # noqa: RUF001


def test_the_size_of_a_suite_names_tiles_if_areas_share_them(tmp_path: Path):
    suite = find_suites(["masa-5x5"])[0]
    assert suite_size(suite, {}) == ""
    alone = results(tmp_path, ("airloc", "masa-5x5"))
    assert suite_size(suite, alone) == "5 x 5 cells, 10 moves, 2 areas, 1,200 episodes."
    shared = results(tmp_path, ("airloc", "masa-5x5"), clusters=1)
    assert suite_size(suite, shared) == "5 x 5 cells, 10 moves, 2 areas of 1 tiles, 1,200 episodes."


def test_charts_are_svg_with_the_blind_optimum(tmp_path: Path):
    drawn = group_chart(GROUPS[0], results(tmp_path, ("belief", "masa-5x5"), ("airloc", "dubai-5x5")))
    assert drawn is not None
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert all(name in drawn for name in ("belief", "airloc", "blind optimum", "Massachusetts", "Dubai"))
    assert "Procedural" not in drawn
    assert group_chart(GROUPS[0], results(tmp_path, ("random", "masa-5x5"))) is None


def test_the_page_links_its_charts_and_the_data_has_every_command(tmp_path: Path):
    suites = find_suites(["masa-5x5", "masa-blur"])
    names = [(agent, suite.name) for suite in suites for agent in ("belief", "airloc")]
    options = PageOptions("airloc suites", "Made with airloc.", suites, ["belief", "airloc"], limit=2)
    page = make_page(results(tmp_path, *names), options)
    place = page.write(tmp_path / "out")
    text = place.read_text(encoding="utf-8")
    for name in page.charts:
        assert f"(img/{name})" in text
        assert (tmp_path / "out" / "img" / name).is_file()
    assert len(page.charts) == 2
    assert "At most 2 areas" in text
    data = json.loads((tmp_path / "out" / "suites.json").read_text())
    assert [(entry["agent"], entry["suite"]) for entry in data] == names
    assert data[2]["commands"][0].startswith("airloc evaluate belief --areas $AIRLOC_DATA/masa/images")
    assert data[0]["weights"] == "w"
    assert data[0]["record"]["success"] == 1.0


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.title[:20])
def test_no_group_is_too_wide_to_read(group: Any):
    assert 2 <= len(group.suites) <= 7
