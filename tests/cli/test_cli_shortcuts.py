"""`airloc analyse shortcuts` and `airloc analyse puzzles`: the same numbers in every output, and bad input."""

import json

import pytest
from PIL import Image

from airloc.areas.synthetic import generate

pytestmark = pytest.mark.long


def test_shortcuts_writes_the_same_numbers_to_the_file_the_page_and_the_table(airloc, areas_folder, tmp_path):
    out, page, chart = (tmp_path / name for name in ("out.json", "page.md", "chart.svg"))
    where = ("--areas", areas_folder, "--grid", "2x2", "--conditions", "jpeg-75*", "--conditions", "mirrored")
    done = airloc("analyse", "shortcuts", "lawnmower", "blind", *where, "--json", out, "--page", page, "--chart", chart)
    assert done.code == 0, done.err
    records = json.loads(out.read_text())
    assert list(records) == ["lawnmower", "blind"]
    assert {"clean", "jpeg-75", "jpeg-75-444-cells-phase", "mirrored"} < set(records["blind"]["conditions"])
    assert records["blind"]["unrelated_patches"] is None
    for record in records.values():
        success = f"{100 * record['conditions']['jpeg-75']['success']:.1f}"
        assert success in done.out
        assert success in page.read_text()
        assert f"{100 * record['blind_optimum']:.1f}" in done.out
    assert chart.read_text().startswith("<svg")


def test_pieces_are_cut_before_they_are_changed(airloc, areas_folder, tmp_path):
    out = tmp_path / "out.json"
    where = ("--areas", areas_folder, "--grid", "2x2", "--cut", 60, "--conditions", "size-0.92")
    assert airloc("analyse", "shortcuts", "lawnmower", *where, "--json", out).code == 0
    assert json.loads(out.read_text())["lawnmower"]["areas"] == 16  # four of each image of 120 px


def test_the_exit_status_is_zero_unless_strict_and_the_claim_fails(airloc, areas_folder, monkeypatch):
    monkeypatch.setattr("airloc.evaluation.shortcuts.judge", lambda *outcome: "raises")
    where = ("--areas", areas_folder, "--grid", "2x2", "--conditions", "sharpened")
    assert airloc("analyse", "shortcuts", "lawnmower", *where).code == 0
    assert airloc("analyse", "shortcuts", "lawnmower", *where, "--strict").code == 1


def test_earlier_weights_stand_beside_the_new_ones(airloc, areas_folder, tmp_path):
    old, page = tmp_path / "old.json", tmp_path / "page.md"
    where = ("--areas", areas_folder, "--grid", "2x2", "--conditions", "sharpened")
    assert airloc("analyse", "shortcuts", "lawnmower", *where, "--json", old).code == 0
    assert airloc("analyse", "shortcuts", "lawnmower", *where, "--before", old, "--page", page).code == 0
    assert "minus clean, before | after" in page.read_text()


def test_bad_input_is_refused(airloc, areas_folder, tmp_path):
    where = ("--areas", areas_folder)
    assert airloc("analyse", "shortcuts", *where, "--conditions", "jpg").refused("'jpg'", "jpeg-75")
    assert airloc("analyse", "shortcuts", *where, "--cut", 0).refused("--cut 0")
    assert airloc("analyse", "shortcuts", *where, "--batch", 0).refused("--batch 0")
    for option in ("--images", "--puzzles"):
        assert airloc("analyse", "puzzles", "masa", option, 0).refused(f"{option} 0")
    assert airloc("analyse", "shortcuts", "blind", *where, "--cut", 500).refused("large enough")
    wrong = tmp_path / "wrong.json"
    assert airloc("analyse", "shortcuts", *where, "--before", wrong).refused("wrong.json")
    wrong.write_text("[]")
    assert airloc("analyse", "shortcuts", *where, "--before", wrong).refused("not a record")


def test_puzzles_compares_crops_with_training_puzzles(airloc, tmp_path, monkeypatch):
    folder = tmp_path / "data" / "naip"
    folder.mkdir(parents=True)
    for number in range(4):
        image = Image.fromarray(generate(number, size=(200, 200)).image)
        image.save(folder / f"town_2016_{number}.jpg", quality=60)
    monkeypatch.setenv("AIRLOC_DATA", str(tmp_path / "data"))
    out = tmp_path / "out.json"
    done = airloc("analyse", "puzzles", "naip", "--puzzles", 8, "--json", out)
    assert done.code == 0, done.err
    record = json.loads(out.read_text())["naip"]
    kinds = ["plain crops", "training", "training, exact areas", "training, augmented areas"]
    assert list(record) == kinds
    assert {record[kind]["pairs"] for kind in kinds} == {8 * 40}
    assert all(f"{100 * record[kind]['accuracy']:.1f}" in done.out for kind in kinds)
