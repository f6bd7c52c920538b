"""Tables, charts and the page of all agents, from results written by hand."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from airloc.evaluation.benchmarks.suites import GROUPS, find
from airloc.reports.suites import About, Skipped, Trial, chart, group_table, make_page, pack_episodes, sizes, summary

FOUND = {"belief": "1111", "airloc": "1010", "random": "0000"}


def trial(folder: Path, agent: str, suite: str, found: str = "", **other: Any) -> Trial:
    found = found or FOUND[agent]
    path = folder / f"{agent}-{suite}.json"
    path.write_text(pack_episodes([one == "1" for one in found], [0, 0, 1, 1], ["t", "u"], [1.0] * 4, 0))
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
    return Trial(agent, find([suite])[0], record, path, {"data": "d", "weights": "w", "code": "c", "result": "r"})


def plain(text: str) -> str:
    """A text whose spaces may break."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def by_names(*trials: Trial) -> dict[tuple[str, str], Trial]:
    return {(each.agent, each.recipe.name): each for each in trials}


def test_a_cell_is_the_success_with_its_interval_and_the_floor_stands_last(tmp_path: Path):
    played = by_names(trial(tmp_path, "airloc", "masa-5x5"), trial(tmp_path, "random", "masa-5x5"))
    lines = plain(group_table(GROUPS[0], ["belief", "airloc", "random"], played, [])).splitlines()
    assert lines == [
        "| agent | Massachusetts |",
        "| --- | --: |",
        "| `airloc` | 50.0 [45.0, 55.0] |",
        "| `random` | 0.0 [-5.0, 5.0] |",
        "| *blind optimum* | 52.1 |",
    ]


def test_who_was_trained_on_the_areas_is_marked_and_a_floor_that_is_not_proven_too(tmp_path: Path):
    open_floor = {"blind_optimum": 0.197, "blind_optimum_exact": False}
    seen = trial(tmp_path, "belief", "austin-15x15", **open_floor)
    not_seen = trial(tmp_path, "belief", "procedural-15x15", **open_floor)
    text = plain(group_table(GROUPS[-1], ["belief"], by_names(seen, not_seen), []))
    assert "| `belief` | 100.0 [95.0, 105.0] | 100.0† [95.0, 105.0] |" in text
    assert "| *blind optimum* | ≥ 19.7 | ≥ 19.7 |" in text
    austin = find(["austin-10x10"])[0]
    names = ["airloc-priv", "priv-local", "blind", "airloc-xbd-research", "belief-greedy"]
    assert [austin.has_trained(name) for name in names] == [True, True, False, False, True]


def test_a_suite_without_data_keeps_its_column_and_the_page_says_why(tmp_path: Path):
    missing = Skipped(find(["dubai-5x5"])[0], "there is no folder 'dubai' in the data folder")
    played = [trial(tmp_path, "belief", "masa-5x5")]
    recipes = find(["masa-5x5", "dubai-5x5"])
    page = plain(make_page(played, About("airloc suites", "airloc", recipes, ["belief"], [missing])).markdown)
    assert "| agent | Massachusetts | Dubai (no data) |" in page
    assert "| `belief` | 100.0 [95.0, 105.0] | – |" in page  # noqa: RUF001
    assert "dubai-5x5 was not played: there is no folder 'dubai'" in page
    assert "airloc data prepare --out dubai-5x5 dubai" in page


def test_the_summary_tells_the_lead_over_the_floor_and_the_paired_one_over_the_papers_agent(tmp_path: Path):
    played = by_names(trial(tmp_path, "belief", "masa-5x5"), trial(tmp_path, "airloc", "masa-5x5"))
    row = plain(summary(find(["masa-5x5"]), played)).splitlines()[2]
    assert row == "| masa-5x5 | 52.1 | 100.0 [95.0, 105.0] | +47.9 [+42.9, +52.9] | +50.0 [+50.0, +50.0] |"
    alone = summary(find(["masa-5x5"]), by_names(trial(tmp_path, "airloc", "masa-5x5"))).splitlines()[2]
    assert alone == "| masa-5x5 | 52.1 | – | – | – |"  # noqa: RUF001


def test_a_single_tile_has_no_interval(tmp_path: Path):
    lonely = trial(tmp_path, "belief", "masa-5x5", ci95={"success": [None, None]})
    text = summary(find(["masa-5x5"]), by_names(lonely))
    assert "| 100.0 | +47.9 | – |" in text  # noqa: RUF001


def test_sizes_are_told_with_the_tiles_where_areas_share_them(tmp_path: Path):
    recipe = find(["masa-5x5"])[0]
    assert sizes(recipe, {}) == ""
    alone = by_names(trial(tmp_path, "airloc", "masa-5x5"))
    assert sizes(recipe, alone) == "5 x 5 cells, 10 moves, 2 areas, 1,200 episodes."
    shared = by_names(trial(tmp_path, "airloc", "masa-5x5", clusters=1))
    assert sizes(recipe, shared) == "5 x 5 cells, 10 moves, 2 areas of 1 tiles, 1,200 episodes."


def test_charts_are_svg_with_the_floor_and_only_where_somebody_known_played(tmp_path: Path):
    played = by_names(trial(tmp_path, "belief", "masa-5x5"), trial(tmp_path, "airloc", "dubai-5x5"))
    drawn = chart("Same day", GROUPS[0].recipes, played)
    assert drawn is not None
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert all(name in drawn for name in ("belief", "airloc", "blind optimum", "Massachusetts", "Dubai"))
    assert "Procedural" not in drawn
    assert chart("Same day", GROUPS[0].recipes, by_names(trial(tmp_path, "random", "masa-5x5"))) is None


def test_the_page_names_its_pictures_and_its_data_every_command(tmp_path: Path):
    recipes = find(["masa-5x5", "masa-blur"])
    played = [trial(tmp_path, agent, recipe.name) for recipe in recipes for agent in ("belief", "airloc")]
    page = make_page(played, About("airloc suites", "Made with airloc.", recipes, ["belief", "airloc"], most=2))
    place = page.write(tmp_path / "out")
    text = place.read_text(encoding="utf-8")
    for name in page.pictures:
        assert f"(img/{name})" in text
        assert (tmp_path / "out" / "img" / name).is_file()
    assert len(page.pictures) == 2
    assert "At most 2 areas of each suite were played" in text
    data = json.loads((tmp_path / "out" / "suites.json").read_text())
    assert [(entry["suite"], entry["agent"]) for entry in data] == [
        (recipe.name, agent) for recipe in recipes for agent in ("belief", "airloc")
    ]
    assert data[2]["commands"][0].startswith("airloc evaluate belief --areas $AIRLOC_DATA/masa/images")
    assert data[0]["weights"] == "w"
    assert data[0]["record"]["success"] == 1.0


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.title[:20])
def test_no_group_is_too_wide_to_read(group: Any):
    assert 2 <= len(group.recipes) <= 7
