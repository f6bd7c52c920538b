"""Options shared by the verbs that play: areas, datasets, goals and episodes, and every kind of bad input."""

import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.long

HEADER = "area,start_row,start_col,goal_row,goal_col\n"


def test_with_an_episode_file_only_its_areas_are_read(score, airloc, areas_folder: Path, tmp_path: Path):
    (areas_folder / "broken.png").write_bytes(b"no image")
    assert airloc("evaluate", "random", "--areas", areas_folder).refused("broken.png")
    episodes = tmp_path / "my episodes.csv"
    episodes.write_text("\ufeff" + HEADER + "c d.png,0,0,1,1\n\nb.png,4,4,0,0\n", encoding="utf-8")
    record = score("random", "--areas", areas_folder, "--episodes", episodes)
    assert (record["episodes"], record["areas"], record["suite"]["name"]) == (2, 2, "my episodes.csv")


@pytest.mark.parametrize("option", ["--areas", "--json"])
def test_an_empty_path_is_refused_and_does_not_stand_for_the_current_folder(
    airloc, areas_folder: Path, monkeypatch, option: str
):
    monkeypatch.chdir(areas_folder)
    outcome = airloc("evaluate", "blind", option, "")
    assert outcome.code == 2
    assert option in outcome.err
    assert "empty" in outcome.err
    assert airloc("evaluate", "blind", "--areas", ".").code == 0


def test_names_with_spaces_and_images_that_are_not_square(draw_image, score, tmp_path: Path):
    folder = tmp_path / "my own images"
    folder.mkdir()
    draw_image(0, 90, 200).save(folder / "wide one.jpg")
    draw_image(1, 300, 77).save(folder / "tall one.webp")
    (folder / "notes.txt").write_text("no image")
    (folder / "deeper").mkdir()
    draw_image(2).save(folder / "deeper" / "not read.png")
    assert score("random", "--areas", folder)["areas"] == 2
    assert score("random", "--areas", folder, "--grid", "2x4")["grid"] == "2x4"


def test_names_that_are_not_utf_8_survive_a_round_trip(score, areas_folder: Path, tmp_path: Path):
    odd = os.fsencode(areas_folder) + b"/b\xffd.png"
    try:
        shutil.copy(os.fsencode(areas_folder / "a.png"), odd)
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    saved, lines = tmp_path / "saved.csv", tmp_path / "lines.jsonl"
    first = score("random", "--areas", areas_folder, "--save-episodes", saved, "--trajectories", lines)
    again = score("random", "--areas", areas_folder, "--episodes", saved)
    assert (again["success"], again["areas"]) == (first["success"], 5)
    assert len(lines.read_text().splitlines()) == 20


def test_images_of_every_format_are_areas(draw_image, score, tmp_path: Path):
    folder = tmp_path / "kinds"
    folder.mkdir()
    deep = np.random.default_rng(0).integers(0, 65536, size=(99, 99)).astype(np.uint16)
    Image.fromarray(deep).save(folder / "16 bit.png")
    draw_image(0).convert("CMYK").save(folder / "cmyk.jpg")
    draw_image(0).convert("P").save(folder / "palette.png", transparency=3)
    draw_image(0).convert("LA").save(folder / "grey.png")
    draw_image(0).convert("1").save(folder / "bits.png")
    draw_image(0).save(folder / "moving.webp", save_all=True, append_images=[draw_image(1)], duration=100)
    draw_image(0).save(folder / "moving.gif", save_all=True, append_images=[draw_image(1)])
    draw_image(0, 48, 20_000).save(folder / "strip.png")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (folder / "itself").symlink_to(".")
    assert score("random", "--areas", folder)["areas"] == 7


def test_without_a_folder_the_areas_are_procedural(airloc, tmp_path: Path):
    out = tmp_path / "new" / "folder" / "score.json"
    outcome = airloc("evaluate", "random", "--grid", "1x2", "--json", out)
    assert outcome.code == 0
    assert json.loads(out.read_text())["areas"] == 100
    assert [path.name for path in out.parent.iterdir()] == ["score.json"]


def test_procedural_areas_are_chosen_by_name_too(score, refuses, monkeypatch):
    monkeypatch.setattr("airloc.cli.options.PROCEDURAL_AREAS", 20)
    city = score("random", "--grid", "1x2", "--only", "synthetic_city_*")["areas"]
    others = score("random", "--grid", "1x2", "--except", "synthetic_city_*")["areas"]
    assert 0 < city < 20
    assert city + others == 20
    refuses(["--split", "val"], "--areas")


def test_of_an_episode_file_the_episodes_over_areas_of_the_split_are_played(score, airloc, areas_folder, tmp_path):
    index, episodes = areas_folder / "windows.csv", tmp_path / "e.csv"
    index.write_text("image,split\na.png,train\nb.png,val\n")
    episodes.write_text(HEADER + "a.png,0,0,1,1\nb.png,0,0,1,1\nb.png,0,0,2,2\n")
    record = score("random", "--areas", areas_folder, "--split", "val", "--episodes", episodes)
    assert (record["areas"], record["episodes"]) == (1, 2)
    outcome = airloc("evaluate", "random", "--areas", areas_folder, "--split", "test", "--episodes", episodes)
    assert outcome.refused("'test'")


def test_goals_come_from_before_the_disaster(score, airloc, pairs: Path, tmp_path: Path):
    lines = tmp_path / "lines.jsonl"
    record = score("random", "--areas", pairs, "--goals", pairs, "--trajectories", lines)
    assert (record["areas"], record["episodes"]) == (2, 8)
    areas = {json.loads(line)["area"] for line in lines.read_text().splitlines()}
    assert areas == {"fire_00000000_post_disaster.png", "fire_00000001_post_disaster.png"}
    (pairs / "fire_00000001_pre_disaster.png").unlink()
    assert airloc("evaluate", "random", "--areas", pairs, "--goals", pairs).refused("fire_00000001_pre_disaster.png")
    episodes = tmp_path / "e.csv"
    episodes.write_text(HEADER + "fire_00000000_post_disaster.png,0,0,1,1\n")
    assert score("random", "--areas", pairs, "--goals", pairs, "--episodes", episodes)["areas"] == 1


def test_goals_come_from_another_day_of_a_dataset(score, airloc, draw_image, pairs: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("AIRLOC_DATA", str(tmp_path / "data"))
    naip, xbd, austin = (tmp_path / "data" / name for name in ("naip", "xbd/images", "austin"))
    for folder in (naip, xbd, austin):
        folder.mkdir(parents=True)
    for seed, name in enumerate(("chico_2016_1", "chico_2018_1", "chico_2020_1", "chico_2018_2")):
        draw_image(seed).save(naip / f"{name}.png")
    for seed, event in enumerate(("hurricane-michael", "santa-rosa-wildfire")):
        for when in ("pre", "post"):
            draw_image(seed).save(xbd / f"{event}_0000000{seed}_{when}_disaster.png")
    draw_image(0).save(austin / "a.png")

    def names(*arguments: object) -> list[str]:
        lines = tmp_path / "lines.jsonl"
        score("random", *arguments, "--pairs", "--trajectories", lines)
        return sorted({json.loads(line)["area"] for line in lines.read_text().splitlines()})

    michael, fire = (
        f"{name}_post_disaster.png" for name in ("hurricane-michael_00000000", "santa-rosa-wildfire_00000001")
    )
    assert names("--dataset", "naip") == ["chico_2018_1.png", "chico_2020_1.png"]
    assert names("--dataset", "naip", "--only", "*_2020_*") == ["chico_2020_1.png"]
    assert names("--dataset", "xbd") == [michael]
    assert names("--dataset", "xbd", "--subset", "disaster") == [fire]
    assert names("--dataset", "xbd", "--subset", "all") == names("--areas", xbd) == [michael, fire]
    assert "another day" in airloc("evaluate", "random", "--dataset", "naip", "--pairs").out
    for dataset in ("austin", "synthetic"):
        assert airloc("evaluate", "random", "--dataset", dataset, "--pairs").refused("pair", "naip")
    assert airloc("evaluate", "random", "--pairs").refused("--pairs", "--dataset")
    assert airloc("evaluate", "random", "--areas", pairs, "--goals", pairs, "--pairs").refused("--goals", "--pairs")
    assert airloc("evaluate", "random", "--dataset", "xbd", "--subset", "none").refused("'none'", "disaster")
    assert airloc("evaluate", "random", "--dataset", "naip", "--subset", "pre").refused("'subset'", "naip")


def test_goals_come_from_the_same_name_in_another_folder(score, airloc, areas_folder: Path, tmp_path: Path):
    other = tmp_path / "other day"
    shutil.copytree(areas_folder, other)
    assert score("random", "--areas", areas_folder, "--goals", other, "--control", "wrong-goal")["areas"] == 4
    (other / "c d.png").unlink()
    assert airloc("evaluate", "random", "--areas", areas_folder, "--goals", other).refused("'c d.png'")
    assert airloc("evaluate", "random", "--goals", other).refused("--goals", "--areas")
    assert airloc("evaluate", "random", "--areas", areas_folder, "--goals", tmp_path / "no").refused(
        str(tmp_path / "no")
    )


def test_areas_are_selected_by_patterns_on_their_names(score, airloc, pairs: Path, areas_folder: Path, tmp_path: Path):
    def names(*arguments: object) -> set[str]:
        lines = tmp_path / "lines.jsonl"
        record = score("random", *arguments, "--trajectories", lines)
        found = {json.loads(line)["area"] for line in lines.read_text().splitlines()}
        assert record["areas"] == len(found)
        return found

    first, second = (f"fire_0000000{number}_post_disaster.png" for number in range(2))
    both = ("--areas", pairs, "--goals", pairs)
    assert names(*both, "--only", "fire_00000000*") == {first}
    (pairs / "fire_00000000_pre_disaster.png").unlink()  # what is left out is not missed
    assert names(*both, "--except", "fire_00000000*") == {second}
    (areas_folder / "broken.png").write_bytes(b"no image")
    left = names("--areas", areas_folder, "--except", "b*", "--except", "e.*")
    assert left == {"a.png", "c d.png"}
    (areas_folder / "broken.png").unlink()
    episodes, cache = tmp_path / "e.csv", tmp_path / "cache"
    episodes.write_text(HEADER + "e.png,0,0,1,1\na.png,0,0,1,1\na.png,0,0,2,1\n")
    assert names("--areas", areas_folder, "--episodes", episodes, "--only", "a*") == {"a.png"}
    assert airloc("data", "prepare", "folder", "--path", areas_folder, "--out", cache).code == 0
    assert names("--areas", cache, "--only", "?.png") == {"a.png", "b.png", "e.png"}
    assert names("--areas", cache, "--episodes", episodes, "--except", "a*") == {"e.png"}
    record = score("random", "--areas", cache, "--only", "a*", "--only", "b*", "--except", "c*")
    assert (record["options"]["only"], record["options"]["except"]) == (["a*", "b*"], ["c*"])


def test_the_pairs_of_xbd(score, data_root: Path):
    folder = data_root / "xbd" / "images"
    record = score("priv-random", "--areas", folder, "--goals", folder, "--only", "santa-rosa-*")
    assert record["areas"] == len(list(folder.glob("santa-rosa-*_post_disaster.*"))) > 0
    assert record["episodes"] == 4 * record["areas"]


def test_the_windows_of_masa_by_split_and_by_metres(score, data_root: Path):
    folder = data_root / "masa" / "images"
    val = score("random", "--areas", folder, "--split", "val")
    assert val["areas"] == 20
    assert val["clusters"] < 20, "windows of one tile are not independent"
    near = score("random", "--areas", folder, "--split", "val", "--cell-metres", 100)
    assert 0 < near["areas"] <= 20


def test_a_dataset_is_named_instead_of_its_folder(score, airloc, data_root: Path, monkeypatch):
    monkeypatch.setenv("AIRLOC_DATA", str(data_root))
    named = score("random", "--dataset", "masa", "--split", "val", "--no-timing")
    folder = score("random", "--areas", data_root / "masa" / "images", "--split", "val", "--no-timing")
    assert (named["options"].pop("dataset"), folder["options"].pop("dataset")) == ("masa", None)
    assert named["options"].pop("areas") != folder["options"].pop("areas")
    assert named == folder


def test_images_of_dubai_are_not_square(score, data_root: Path):
    assert score("lawnmower", "--areas", data_root / "dubai" / "Tile 1" / "images")["areas"] > 0


def test_a_prepared_dataset_scores_as_its_folder_does(score, airloc, areas_folder: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    assert airloc("data", "prepare", "folder", "--path", areas_folder, "--out", cache).code == 0
    first, second = (score("random", "--areas", where, "--no-timing") for where in (areas_folder, cache))
    assert first.pop("options")["areas"] != second.pop("options")["areas"]
    assert first == second
    episodes = tmp_path / "e.csv"
    episodes.write_text(HEADER + "e.png,0,0,1,1\na.png,0,0,1,1\n")
    assert score("random", "--areas", cache, "--episodes", episodes)["areas"] == 2
    episodes.write_text(HEADER + "no.png,0,0,1,1\n")
    unknown = airloc("evaluate", "random", "--areas", cache, "--episodes", episodes)
    assert unknown.refused("'no.png'")
    assert airloc("evaluate", "random", "--areas", cache, "--grid", "7x7").refused("5x5")
    assert airloc("evaluate", "random", "--areas", cache, "--cell-metres", "100").refused(str(cache))
    assert airloc("evaluate", "random", "--areas", cache, "--goals", areas_folder).refused(str(cache))


def bomb() -> bytes:
    """A small PNG file that claims 60,000 x 60,000 px."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(999))) + chunk(b"IEND", b"")


def test_a_missing_and_an_empty_folder_and_a_file_for_a_folder_are_refused(refuses, areas_folder, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for where in (tmp_path / "nowhere", tmp_path / "empty", areas_folder / "a.png", tmp_path / "loop"):
        refuses(["--areas", where], str(where))


def test_images_that_cannot_be_used_are_refused(draw_image, refuses, areas_folder: Path):
    good = (areas_folder / "a.png").read_bytes()
    bad = areas_folder / "x.png"
    for content in (b"no image", b"", good[: len(good) // 2], good[:40]):
        bad.write_bytes(content)
        refuses(["--areas", areas_folder], "x.png")
    bad.write_bytes(bomb())
    refuses(["--areas", areas_folder], "million pixels", "x.png")
    for size in ((20, 200), (1, 100_000)):
        draw_image(0, *size).save(bad)
        refuses(["--areas", areas_folder], "'x.png'", "48 px")
    draw_image(0).save(bad.with_suffix(".jpg"))
    bad.unlink()
    cut = bad.with_suffix(".jpg").read_bytes()
    bad.with_suffix(".jpg").write_bytes(cut[: len(cut) // 2])
    refuses(["--areas", areas_folder], "truncated", "x.jpg")


def test_a_mask_of_another_size_or_none_at_all_is_refused(draw_image, refuses, tmp_path: Path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    draw_image(0).save(tmp_path / "images" / "a.png")
    draw_image(0, 50, 60).save(tmp_path / "masks" / "a.png")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,a.png,500,val\n")
    refuses(["--areas", tmp_path / "images"], "60 x 50 px", "120 x 120 px")
    (tmp_path / "masks" / "a.png").unlink()
    refuses(["--areas", tmp_path / "images"], "a.png")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,,wide,val\n")
    refuses(["--areas", tmp_path / "images"], "Line 2", "windows.csv")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,,500,val\n")
    refuses(["--areas", tmp_path / "images", "--cell-metres", "0.001"], "a.png")
    refuses(["--areas", tmp_path / "images", "--cell-metres", "200"], "1000 x 1000 m")


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        (HEADER + "no.png,0,0,1,1\n", ["'no.png'"]),
        (HEADER + "../a.png,0,0,1,1\n", ["'../a.png'"]),
        (HEADER + "a.png,0,0,5,1\n", ["(5, 1)", "line 2", "rows 0 to 4"]),
        (HEADER + "a.png,-1,0,1,1\n", ["(-1, 0)", "line 2", "rows 0 to 4"]),
        (HEADER + "a.png,1,1,1,1\n", ["(1, 1)", "line 2"]),
        (HEADER + "a.png,0,0,1,1\na.png,1,x,1,1\n", ["line 3", "area,start_row"]),
        (HEADER + "a.png,1\n", ["line 2", "area,start_row"]),
        (HEADER + "a.png,0,0,1,1,1\n", ["line 2", "area,start_row"]),
        (HEADER + f"a.png,0,0,1,{'9' * 9000}\n", ["line 2", "area,start_row"]),
        (HEADER + '"a.png,0,0,1,1\n', ["e.csv", "CSV"]),
        ("a.png,0,0,1,1\n", ["header", "area,start_row"]),
        ("", ["header", "area,start_row"]),
        (HEADER, ["e.csv"]),
    ],
)
def test_broken_episode_files_are_refused(refuses, areas_folder: Path, tmp_path: Path, rows, facts):
    episodes = tmp_path / "e.csv"
    episodes.write_text(rows)
    refuses(["--areas", areas_folder, "--episodes", episodes], *facts)


def test_paths_that_are_no_episode_files_are_refused(refuses, areas_folder: Path, tmp_path: Path):
    refuses(["--areas", areas_folder, "--episodes", "per-distanse"], "per-distanse", "per-distance, all-pairs")
    refuses(["--areas", areas_folder, "--episodes", areas_folder], "episode file", str(areas_folder))
    refuses(["--areas", areas_folder, "--episodes", areas_folder / "a.png"], "episode file")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--grid", "1x1"], ["1x2"]),
        (["--grid", "five"], ["'five'", "5x5"]),
        (["--grid", "1000x1000"], ["1000x1000", "1024"]),
        (["--budget", "0"], ["0", "1 or more"]),
        (["--budget", "1000000000"], ["1000000000", "2048"]),
        (["--batch", "0"], ["--batch 1"]),
        (["--cell-metres", "-5"], ["--cell-metres", "-5"]),
        (["--cell-metres", "nan"], ["--cell-metres", "nan"]),
        (["--cell-metres", "100"], ["500 x 500 m", "side_m"]),
        (["--split", "val"], ["'val'"]),
        (["--equal-distances"], ["--episodes all-pairs"]),
        (["--per-area", "0"], ["--per-area 0", "1 to 10,000"]),
        (["--per-area", "2", "--episodes", "all-pairs"], ["--per-area"]),
        (["--device", "warp"], ["'warp'", "--device cpu"]),
        (["--device", "warp:0"], ["'warp:0'", "--device cpu"]),
        (["--device", "meta"], ["'meta'", "--device cpu"]),
        (["--against", "belif"], ["'belif'", "'belief'"]),
        (["--against", ""], ["belief"]),
        (["--change", "offgrid"], ["'offgrid'", "'off-grid'"]),
        (["--change", ""], ["photometric, blur, coarse, off-grid, turned, anywhere, any-heading, all"]),
        (["--change", "all", "--change-strength", "1.5"], ["1.5"]),
        (["--change", "all", "--change-strength", "nan"], ["nan"]),
        (["--change-strength", "0.5"], ["--change"]),
        (["--change", "blur", "--control", "mean-goal"], ["--change", "--control wrong-goal"]),
        (["--only", "z*"], ["--only z*"]),
        (["--except", "*"], ["--except *"]),
        (["--dataset", "masa"], ["--areas", "--dataset"]),
    ],
)
def test_options_that_make_no_sense_are_refused(refuses, areas_folder: Path, arguments: list[str], facts: list[str]):
    refuses(["--areas", areas_folder, *arguments], *facts)


def test_an_unknown_dataset_is_refused_with_the_known_ones(refuses):
    refuses(["--dataset", "mars"], "'mars'", "masa", "--areas")
