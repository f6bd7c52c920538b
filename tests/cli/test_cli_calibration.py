"""`airloc calibration` from the command line: diagram, JSON and table of the same numbers, and bad input."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from airloc.agents.pretrained import save_belief
from airloc.areas.area import SearchArea
from airloc.grid import Grid
from untrained import untrained_relation


@pytest.fixture(scope="session")
def believer(tmp_path_factory) -> Path:
    """The checkpoint of a small belief searcher."""
    folder = tmp_path_factory.mktemp("agents") / "believer"
    save_belief(folder, untrained_relation(), {}, "# Card", dtype=torch.float32)
    return folder


def grey(grid: Grid) -> SearchArea:
    return SearchArea("grey", np.full((*grid.size, 3), 90, np.uint8))


def test_the_diagram_the_file_and_the_table_say_the_same(airloc, believer, areas_folder, tmp_path):
    chart, out = tmp_path / "chart.svg", tmp_path / "calibration.json"
    done = airloc("calibration", believer, "--areas", areas_folder, "--chart", chart, "--json", out)
    assert (done.code, done.err) == (0, "")
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"], record["areas"]) == (str(believer), 16, 4)
    assert sum(entry["count"] for entry in record["largest"]["bins"]) == record["beliefs"]
    error = f"{100 * record['largest']['ece']:.1f} %"
    assert f"the most probable cell: expected calibration error {error}" in done.out
    assert f"(ECE {error})" in "".join(ElementTree.parse(chart).getroot().itertext())


def test_the_same_seed_gives_the_same_bytes(airloc, believer, areas_folder, tmp_path):
    for name in ("one.json", "two.json"):
        how = ("--areas", areas_folder, "--episodes", "uniform", "--json", tmp_path / name)
        assert airloc("calibration", believer, *how).code == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_what_is_said_of_being_there_is_judged_for_any_agent(airloc, areas_folder, tmp_path):
    chart, out = tmp_path / "chart.svg", tmp_path / "here.json"
    where = ("--areas", areas_folder, "--chart", chart, "--json", out)
    done = airloc("calibration", "lawnmower", "--here", *where)
    assert (done.code, done.err) == (0, "")
    record = json.loads(out.read_text())
    assert sum(entry["count"] for entry in record["here"]["bins"]) == record["glimpses"]
    assert f"{record['glimpses']:,} glimpses in 16 episodes" in " ".join(done.out.split())
    assert "saying here: lawnmower" in "".join(ElementTree.parse(chart).getroot().itertext())


def test_patterns_choose_the_areas(airloc, areas_folder, tmp_path):
    name = sorted(path.name for path in areas_folder.iterdir() if path.suffix in (".png", ".jpg"))[0]
    for how, areas in ((("--only", name), 1), (("--except", name), 3)):
        out = tmp_path / f"{areas}.json"
        assert airloc("calibration", "lawnmower", "--here", "--areas", areas_folder, *how, "--json", out).code == 0
        assert json.loads(out.read_text())["areas"] == areas


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("blind",), "'blind' keeps no belief"),
        (("airloc",), "'airloc' keeps no belief"),
        (("belief", "--batch", "0"), "A batch of 0"),
        (("belief", "--episodes", "missing.csv"), "no episode file missing.csv"),
        (("belief", "--split", "val"), "Give --areas too"),
        (("beleif",), "Did you mean 'belief'?"),
    ],
)
def test_what_cannot_be_judged_is_refused_and_leaves_nothing(airloc, tmp_path, arguments, said, monkeypatch):
    monkeypatch.setattr("airloc.areas.synthetic.Synthetic.areas", lambda source, grid: iter([grey(grid)]))
    assert airloc("calibration", *arguments, "--json", tmp_path / "new" / "out.json").refused(said)
    assert list(tmp_path.iterdir()) == []
