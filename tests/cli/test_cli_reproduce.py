"""`airloc reproduce`: a small cut of everything, the report in a real browser, and clear words when things go wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airloc.agents.registry import available_agents
from airloc.cli.main import main
from airloc.evaluation.benchmarks.paper import TABLES
from airloc.experiments import data as presets
from small_reproduction import TINY

CHARTS = 7
SEARCHES = 3 * 4
BROWSER_OPTIONS = ["--no-sandbox", "--disable-background-networking"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(presets.PRESETS, "smoke", TINY)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole reproduction on procedural areas, trained from nothing."""
    folder = tmp_path_factory.mktemp("everything")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(presets.PRESETS, "smoke", TINY)
        main(["reproduce", "--all", "--seeds", "2", "--out", str(folder)])
    return folder


def test_every_table_has_all_rows_of_the_paper_and_ours_beside_them(everything: Path):
    for table in TABLES:
        lines = json.loads((everything / "figures" / f"table-{table.number}.json").read_text())
        assert len(lines) > len(table.rows)
        for line, row in zip(lines, table.rows, strict=False):
            assert line["success"]["paper"] == row.printed["success"]
            assert (line["success"]["ours"] is None) == (row.seed in ("2", "3", "4")), "two seeds were trained"
        assert {"blind", "random", "lawnmower"} <= {line["agent"] for line in lines}
    assert (everything / "tables.md").read_text(encoding="utf-8").count("## Table") == len(TABLES)


def test_every_figure_links_to_its_data_and_prints_its_command(everything: Path):
    text = (everything / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(figures/[^"]+)"', text)
    assert len(set(links)) == len(list((everything / "figures").iterdir())) == len(links)
    for link in links:
        json.loads((everything / link).read_text())
    for asked in ("--table 1", "--table 5", "--figure 2", "--figure 3", "--figure 4"):
        assert f"--out {everything} {asked}" in text


def test_a_browser_shows_tables_charts_and_searches_and_fetches_nothing(everything: Path):
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is not installed, and CI must have it")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    asked, said = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_OPTIONS)
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="dark")
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((everything / "report.html").as_uri(), wait_until="load")
        captions = page.eval_on_selector_all("caption", "cells => cells.map(c => c.innerText)")
        widths = page.eval_on_selector_all("img", "pictures => pictures.map(p => p.naturalWidth)")
        charts = page.eval_on_selector_all("svg", "all => all.map(c => c.getBoundingClientRect().width)")
        sideways = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        browser.close()
    assert [url for url in asked if not url.startswith("data:")] == [(everything / "report.html").as_uri()]
    assert said == []
    assert [caption.split(".")[0] for caption in captions[:5]] == [f"Table {number}" for number in range(1, 6)]
    assert len(charts) == CHARTS
    assert min(charts) > 300
    assert len(widths) > SEARCHES
    assert min(widths) > 0
    assert not sideways


def test_a_second_run_computes_nothing_and_writes_the_same_page(everything: Path, airloc):
    before = (everything / "report.html").read_bytes()
    results = {path: path.stat().st_mtime_ns for path in (everything / "results").rglob("*")}
    outcome = airloc("reproduce", "--all", "--seeds", 2, "--out", everything)
    assert (outcome.code, outcome.err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in (everything / "results").rglob("*")} == results
    assert (everything / "report.html").read_bytes() == before


def test_one_table_alone_is_made_from_what_is_there(everything: Path, airloc, tmp_path: Path):
    shutil.copytree(everything / "results", tmp_path / "results")
    outcome = airloc("reproduce", "--table", 3, "--seeds", 2, "--out", tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert re.findall("## Table .", text) == ["## Table 3"]


def test_a_damaged_result_is_told_and_nothing_is_lost(everything: Path, airloc, tmp_path: Path):
    shutil.copytree(everything / "results", tmp_path / "results")
    score = next((tmp_path / "results").glob("score-*/score.json"))
    score.write_text("{}")
    outcome = airloc("reproduce", "--all", "--seeds", 2, "--out", tmp_path)
    assert outcome.refused(str(score), "its checksum differs", "Delete the folder")
    shutil.rmtree(score.parent)
    outcome = airloc("reproduce", "--all", "--seeds", 2, "--out", tmp_path)
    assert outcome.code == 0
    assert outcome.err.count("score:") == 1, "that one alone was computed again"


def test_real_data_in_its_published_layout_fills_its_tables(airloc, tmp_path: Path):
    folder = tmp_path / "data" / "dubai" / "Tile 1" / "images"
    folder.mkdir(parents=True)
    for number in range(2):
        noise = np.random.default_rng(number).integers(0, 200, (720, 720, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"image_part_{number:03d}.jpg")
    arguments = ("--data", tmp_path / "data", "--weights", "shipped", "--out", tmp_path / "out")
    outcome = airloc("reproduce", "--table", 2, *arguments)
    assert outcome.code == 0, outcome
    lines = json.loads((tmp_path / "out" / "figures" / "table-2.json").read_text())
    assert all(line["success"]["ours"] is not None for line in lines[:14])
    assert airloc("reproduce", "--table", 1, *arguments).refused("Table 1 needs Massachusetts", "data fetch masa")
    assert airloc("reproduce", "--figure", 4, *arguments).refused("Figure 4 needs xBD-disaster")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "6"], "The paper has no table 6"),
        (["--figure", "1"], "Figure 1 of the paper"),
        ([], "Give one of --table N, --figure N and --all"),
        (["--all", "--table", "1"], "Give one of"),
        (["--all", "--data", "nowhere"], "There is no data folder nowhere"),
        (["--all", "--seeds", "0"], "0 seeds train nothing"),
        (["--all", "--device", "abacus"], "Cannot use the device 'abacus'"),
        (["--table", "1", "--ray", "127.0.0.1:1"], "There is no Ray cluster at '127.0.0.1:1'"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is(arguments: list[str], said: str, airloc, tmp_path: Path):
    assert airloc("reproduce", *arguments, "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out" / "results").exists()


def test_killed_outright_it_goes_on_from_where_it_was(airloc, tmp_path: Path):
    command = [sys.executable, "-m", "airloc.cli.main", "reproduce", "--table", "4", "--weights", "shipped"]
    process = subprocess.Popen([*command, "--out", tmp_path], stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path.parent.name for path in (tmp_path / "results").glob("*/done.json")}
    assert done
    times = {name: (tmp_path / "results" / name).stat().st_mtime_ns for name in done}
    time.sleep(0.01)
    assert subprocess.run([*command, "--out", tmp_path], check=False, capture_output=True).returncode == 0
    assert {name: (tmp_path / "results" / name).stat().st_mtime_ns for name in done} == times
    assert (tmp_path / "report.html").is_file()


def test_agents_that_can_be_had_here_are_all_in_the_tables(everything: Path):
    lines = json.loads((everything / "figures" / "table-5.json").read_text())
    assert {name for name in available_agents() if "research" not in name} <= {line["agent"] for line in lines} | {
        "priv-random",
        "local-no-sem-seg",
        "priv-local-no-sem-seg",
    }
