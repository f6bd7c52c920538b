"""`airloc reproduce`: a tiny reproduction of everything, its report in a browser, and errors."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.cli import reproduce
from airloc.cli.main import main
from airloc.evaluation.benchmarks import paper as benchmark
from airloc.evaluation.benchmarks.paper import TABLES, Row, Table
from airloc.experiments import paper, paper_data
from small_reproduction import TINY

pytestmark = pytest.mark.long

CHARTS = 7
SEARCHES = 3 * 4
ROWS = ("airloc", "priv-random")
"""Agents of the paper whose rows are reproduced; the plan of all rows is tested elsewhere."""
LARGE = 1
"""The table that keeps its rows of 7 x 7 cells."""
OTHERS = ["belief"]
"""Agents that are evaluated beside those of the paper."""


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    make_tiny(monkeypatch)


def make_tiny(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(paper_data.PRESETS, "smoke", TINY)
    patch.setattr(paper, "available_agents", lambda: OTHERS)
    patch.setattr(benchmark, "TABLES", tables())
    trained = {name: variant for name, variant in paper.TRAINED_VARIANTS.items() if variant == "airloc"}
    patch.setattr(paper, "TRAINED_VARIANTS", trained)  # other variants use their shipped weights


def tables() -> tuple[Table, ...]:
    def kept(table: Table) -> tuple[Row, ...]:
        rows = (row for row in table.rows if row.grid == "5x5" or table.number == LARGE)
        return tuple(row for row in rows if row.agent in ROWS and row.trained_on == "masa")

    return tuple(replace(table, rows=kept(table)) for table in TABLES)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a full reproduction on procedural areas, trained from scratch."""
    folder = tmp_path_factory.mktemp("everything")
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        main(["reproduce", "--all", "--seeds", "2", "--out", str(folder)])
    return folder


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*")}


def test_every_table_has_all_rows_of_the_paper_and_our_values(everything: Path):
    for table in tables():
        lines = json.loads((everything / "figures" / f"table-{table.number}.json").read_text())
        assert len(lines) > len(table.rows)
        for line, row in zip(lines, table.rows, strict=False):
            assert line["success"]["paper"] == row.printed["success"]
            assert (line["success"]["ours"] is None) == (row.seed in ("2", "3", "4")), "two seeds were trained"
        assert set(OTHERS) <= {line["agent"] for line in lines}
    assert (everything / "tables.md").read_text(encoding="utf-8").count("## Table") == len(TABLES)


def test_every_figure_links_to_its_data_and_prints_its_command(everything: Path):
    text = (everything / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(figures/[^"]+)"', text)
    assert len(set(links)) == len(list((everything / "figures").iterdir())) == len(links)
    for link in links:
        json.loads((everything / link).read_text())
    for option in ("--table 1", "--table 5", "--figure 2", "--figure 3", "--figure 4"):
        assert f"--out {everything} {option}" in text


@pytest.mark.browser
def test_a_browser_shows_tables_charts_and_searches_and_requests_nothing_else(everything: Path, open_report):
    page = open_report(everything / "report.html", color_scheme="dark")
    captions = page.eval_on_selector_all("caption", "cells => cells.map(c => c.innerText)")
    widths = page.eval_on_selector_all("img", "images => images.map(p => p.naturalWidth)")
    charts = page.eval_on_selector_all("svg", "all => all.map(c => c.getBoundingClientRect().width)")
    too_wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert [caption.split(".")[0] for caption in captions[:5]] == [f"Table {number}" for number in range(1, 6)]
    assert len(charts) == CHARTS
    assert min(charts) > 300
    assert len(widths) > SEARCHES
    assert min(widths) > 0
    assert not too_wide


def test_a_second_run_computes_nothing_and_writes_the_same_page(everything: Path, airloc):
    before, results = (everything / "report.html").read_bytes(), times(everything)
    outcome = airloc("reproduce", "--all", "--seeds", 2, "--out", everything)
    assert (outcome.code, outcome.err) == (0, "")
    assert times(everything) == results
    assert (everything / "report.html").read_bytes() == before


def test_a_smoke_reproduction_uses_one_thread_a_task_unless_told_otherwise(airloc, monkeypatch, tmp_path: Path):
    monkeypatch.undo()  # the real presets
    threads = []

    class StoppedError(Exception):
        """Ends the command before it computes."""

    def run_missing(*arguments: object, **options: object) -> None:
        threads.append(options["threads"])
        raise StoppedError

    monkeypatch.setattr(reproduce, "run_missing", run_missing)
    for options in ((), ("--threads", 2), ("--preset", "fast")):
        with pytest.raises(StoppedError):
            airloc("reproduce", "--table", 4, "--out", tmp_path, *options)
    assert threads == [1, 2, None]


def test_the_shipped_encoders_are_not_those_of_the_preset_paper(airloc, tmp_path: Path):
    outcome = airloc("reproduce", "--table", 4, "--preset", "paper", "--weights", "encoders", "--out", tmp_path / "out")
    assert outcome.refused("encoders", "--preset tuned")
    assert not (tmp_path / "out").exists()


def test_one_table_is_made_from_stored_results(everything: Path, airloc, tmp_path: Path):
    shutil.copytree(everything / "results", tmp_path / "results")
    outcome = airloc("reproduce", "--table", 3, "--seeds", 2, "--out", tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert re.findall("## Table .", text) == ["## Table 3"]


def test_only_a_damaged_result_is_computed_again(everything: Path, airloc, tmp_path: Path):
    shutil.copytree(everything / "results", tmp_path / "results")
    done = (tmp_path / "results").glob("evaluation-*/done.json")
    named = "airloc (median seed, trained on masa) on dubai"
    score = next(path for path in done if named in path.read_text()).with_name("score.json")
    score.write_text("{}")
    outcome = airloc("reproduce", "--table", 2, "--seeds", 2, "--out", tmp_path)
    assert outcome.refused(str(score), str(score.parent))
    shutil.rmtree(score.parent)
    outcome = airloc("reproduce", "--table", 2, "--seeds", 2, "--out", tmp_path)
    assert outcome.code == 0
    assert outcome.err.count("evaluation:") == 1


def test_a_published_dataset_fills_its_table(airloc, tmp_path: Path):
    folder = tmp_path / "data" / "dubai" / "Tile 1" / "images"
    folder.mkdir(parents=True)
    noise = np.random.default_rng(0).integers(0, 200, (720, 720, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "image_part_001.jpg")
    arguments = ("--data", tmp_path / "data", "--weights", "shipped", "--out", tmp_path / "out")
    outcome = airloc("reproduce", "--table", 2, *arguments)
    assert outcome.code == 0, outcome
    lines = json.loads((tmp_path / "out" / "figures" / "table-2.json").read_text())
    assert all(line["success"]["ours"] is not None for line in lines[:4])
    assert airloc("reproduce", "--table", 1, *arguments).refused("Table 1", "airloc data fetch masa")
    assert airloc("reproduce", "--figure", 4, *arguments).refused("Figure 4", "airloc data fetch xbd")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--table", "6"], "table 6"),
        (["--figure", "1"], "Figure 1"),
        ([], "--table N"),
        (["--all", "--table", "1"], "--table N"),
        (["--all", "--data", "nowhere"], "nowhere"),
        (["--all", "--seeds", "0"], "--seeds 1"),
        (["--all", "--threads", "0"], "--threads 1"),
        (["--all", "--device", "abacus"], "'abacus'"),
        pytest.param(["--table", "1", "--ray", "127.0.0.1:1"], "'127.0.0.1:1'", marks=pytest.mark.ray),
    ],
)
def test_bad_options_are_errors_before_anything_is_written(arguments: list[str], fact: str, airloc, tmp_path: Path):
    assert airloc("reproduce", *arguments, "--out", tmp_path / "out").refused(fact)
    assert not (tmp_path / "out").exists()
