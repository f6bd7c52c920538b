"""`airloc analyse`: charts, files and tables of the same numbers, and bad input."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.agents.pretrained import save_airloc, save_belief
from airloc.areas.area import SearchArea
from airloc.grid import Grid
from untrained import untrained_airloc, untrained_encoder, untrained_relation

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def believer(tmp_path_factory) -> Path:
    """The checkpoint of a small belief agent."""
    folder = tmp_path_factory.mktemp("agents") / "believer"
    save_belief(folder, untrained_relation(), {}, "# Card", dtype=torch.float32)
    return folder


@pytest.fixture(scope="module")
def follower(tmp_path_factory) -> Path:
    """The checkpoint of an AiRLoc agent that always follows its prior."""
    policy = untrained_airloc().policy
    with torch.no_grad():
        policy.decide.zero_()
        policy.offset.zero_()
    folder = tmp_path_factory.mktemp("agents") / "follower"
    save_airloc(folder, untrained_encoder(), policy, {"grid": "5x5"}, "# Card")
    return folder


def svg_text(path: Path) -> str:
    return "".join(ElementTree.parse(path).getroot().itertext())


def test_calibration_writes_the_same_numbers_to_the_diagram_the_file_and_the_table(
    airloc, believer, areas_folder, tmp_path
):
    chart, out = tmp_path / "chart.svg", tmp_path / "calibration.json"
    done = airloc("analyse", "calibration", believer, "--areas", areas_folder, "--chart", chart, "--json", out)
    assert done.code == 0
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"], record["areas"]) == (str(believer), 16, 4)
    assert sum(entry["count"] for entry in record["largest"]["bins"]) == record["beliefs"]
    error = f"{100 * record['largest']['ece']:.1f} %"
    assert error in done.out
    assert error in svg_text(chart)


def test_calibration_gives_the_same_bytes_for_the_same_seed(airloc, believer, areas_folder, tmp_path):
    for name in ("one.json", "two.json"):
        how = ("--areas", areas_folder, "--episodes", "uniform", "--json", tmp_path / name)
        assert airloc("analyse", "calibration", believer, *how).code == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_analyses_take_flight_conditions(airloc, believer, areas_folder, tmp_path):
    records, areas = [], ("--areas", areas_folder, "--only", "a.png")
    for strength in ((), ("--flight-conditions", 0), ("--flight-conditions", 1)):
        out = tmp_path / "calibration.json"
        assert airloc("analyse", "calibration", believer, *areas, *strength, "--json", out).code == 0
        records.append(json.loads(out.read_text()))
    assert [record.pop("flight_conditions") for record in records] == [None, 0.0, 1.0]
    plain, zero, one = records
    assert plain == zero
    assert plain["largest"] != one["largest"]
    sheet = tmp_path / "failures.png"
    failures = ("analyse", "failures", "random", *areas, "--flight-conditions", 1, "--sheet", sheet)
    assert airloc(*failures).code == 0
    assert sheet.is_file()


def test_match_probabilities_of_any_agent_can_be_analysed(airloc, areas_folder, tmp_path):
    chart, out = tmp_path / "chart.svg", tmp_path / "match.json"
    where = ("--areas", areas_folder, "--chart", chart, "--json", out)
    done = airloc("analyse", "calibration", "lawnmower", "--match", *where)
    assert done.code == 0
    record = json.loads(out.read_text())
    assert sum(entry["count"] for entry in record["here"]["bins"]) == record["glimpses"]
    assert f"{record['glimpses']:,} glimpses" in done.out
    assert "lawnmower" in svg_text(chart)


def test_patterns_select_the_areas(airloc, areas_folder, tmp_path):
    name = sorted(path.name for path in areas_folder.iterdir() if path.suffix in (".png", ".jpg"))[0]
    for how, areas in ((("--only", name), 1), (("--except", name), 3)):
        out = tmp_path / f"{areas}.json"
        where = ("--areas", areas_folder, *how, "--json", out)
        assert airloc("analyse", "calibration", "lawnmower", "--match", *where).code == 0
        assert json.loads(out.read_text())["areas"] == areas


def test_prior_agreement_is_compared_in_a_chart_a_file_and_a_table(airloc, follower, areas_folder, tmp_path):
    chart, out = tmp_path / "chart.svg", tmp_path / "shares.json"
    where = ("--areas", areas_folder, "--chart", chart, "--json", out)
    done = airloc("analyse", "exploitation", follower, "airloc", *where)
    assert done.code == 0
    shares = json.loads(out.read_text())
    assert list(shares) == [str(follower), "airloc"]
    assert all(at["share"] == 1.0 for at in shares[str(follower)].values())
    assert 0 < shares["airloc"]["1"]["share"] < 1
    assert f"{100 * shares['airloc']['1']['share']:.1f}" in done.out
    assert any(int(distance) > 4 for distance in shares[str(follower)]), "it leaves the area"
    text = svg_text(chart)
    assert "4: 100 %" in text
    assert "5: 100 %" not in text


def test_prior_agreement_takes_all_pairs_and_another_grid(airloc, follower, areas_folder, tmp_path):
    out = tmp_path / "shares.json"
    how = ("--areas", areas_folder, "--grid", "2x2", "--episodes", "all-pairs", "--json", out)
    assert airloc("analyse", "exploitation", follower, *how).code == 0
    moves = sum(at["moves"] for at in json.loads(out.read_text())[str(follower)].values())
    assert 4 * 12 <= moves <= 4 * 12 * 4


def test_failures_are_drawn_and_listed(airloc, believer, areas_folder, tmp_path):
    sheet, out = tmp_path / "sheet.png", tmp_path / "failures.json"
    where = ("--areas", areas_folder, "--count", "3", "--sheet", sheet, "--json", out)
    done = airloc("analyse", "failures", believer, *where)
    assert done.code == 0
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"]) == (str(believer), 16)
    assert record["failures"]
    assert f"{len(record['failures'])} of 16" in done.out
    for failure in record["failures"]:
        assert failure["goal"] not in failure["path"]
        assert 1 <= failure["rank"] <= 25
        assert 0 <= failure["belief"] <= 1
    with Image.open(sheet) as picture:
        assert np.asarray(picture).std() > 10


def test_there_is_no_sheet_when_every_goal_is_found(airloc, areas_folder, tmp_path):
    sheet = tmp_path / "sheet.png"
    done = airloc("analyse", "failures", "blind", "--areas", areas_folder, "--grid", "1x2", "--sheet", sheet)
    assert done.code == 0
    assert "0 of 4" in done.out
    assert not sheet.exists()


@pytest.mark.parametrize("analysis", ["calibration", "exploitation", "failures"])
def test_long_work_is_announced_on_the_error_stream(airloc, analysis, areas_folder, tmp_path, monkeypatch, follower):
    monkeypatch.chdir(tmp_path)
    agent = {"calibration": "lawnmower", "exploitation": follower, "failures": "lawnmower"}[analysis]
    match = ("--match",) if analysis == "calibration" else ()
    done = airloc("analyse", analysis, agent, *match, "--areas", areas_folder, "--budget", "1")
    assert done.code == 0
    assert "16 episodes" in done.err


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("calibration", "blind"), ("'blind'", "belief")),
        (("calibration", "lawnmower", "--batch", "0"), ("0", "--batch 1")),
        (("calibration", "lawnmower", "--episodes", "missing.csv"), ("missing.csv",)),
        (("calibration", "lawnmower", "--split", "val"), ("--areas",)),
        (("calibration", "beleif"), ("'belief'",)),
        (("calibration", ""), ("belief",)),
        (("exploitation", "blind"), ("'blind'",)),
        (("exploitation", "airloc", "blind"), ("'blind'",)),
        (("exploitation", "airloc", "--budget", "0"), ("0",)),
        (("exploitation", "nobody"), ("'nobody'",)),
        (("exploitation",), ("agent",)),
        (("failures", "blind", "--count", "0"), ("--count",)),
        (("failures", "blind", "--columns", "0"), ("--columns",)),
        (("folds",), ("--out", "airloc train segmenter")),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(airloc, tmp_path, arguments, facts, monkeypatch):
    grey = SearchArea("grey", np.full((*Grid().size, 3), 90, np.uint8))
    monkeypatch.setattr("airloc.areas.synthetic.Synthetic.areas", lambda source, grid: iter([grey]))
    monkeypatch.chdir(tmp_path)
    assert airloc("analyse", *arguments, "--json", tmp_path / "new" / "out.json").refused(*facts)
    assert list(tmp_path.iterdir()) == []
