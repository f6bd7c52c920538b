"""`airloc evaluate` from the command line: the JSON contract, every option, and every kind of bad input."""

import csv
import itertools
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from airloc.agents.registry import available_agents

CONTRACT = {
    *("agent", "episodes", "areas", "success", "steps", "step_ratio", "step_ratio_table", "residual_distance"),
    *("runtime_ms", "success_by_distance", "ci95", "blind_optimum"),
}
METRICS = ("success", "steps", "step_ratio", "step_ratio_table", "residual_distance")
HEADER = "area,start_row,start_col,goal_row,goal_col\n"


def picture(seed: int, height: int = 120, width: int = 120) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, size=(height, width, 3), dtype=np.uint8))


@pytest.fixture
def score(airloc, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Evaluate and give the JSON."""
    numbers = itertools.count()

    def run(*arguments: object) -> dict[str, Any]:
        out = tmp_path / "scores" / f"{next(numbers)}.json"
        outcome = airloc("evaluate", *arguments, "--json", out)
        said = "are under CC BY-NC-SA 4.0" if "research" in str(arguments[0]) else ""
        assert outcome.code == 0, outcome
        assert bool(said) == bool(outcome.err), outcome
        assert said in outcome.err
        record: dict[str, Any] = json.loads(out.read_text(), parse_constant=pytest.fail)
        return record

    return run


@pytest.mark.parametrize("agent", available_agents())
def test_every_agent_writes_every_key_of_the_contract(score, areas_folder: Path, agent: str):
    record = score(agent, "--areas", areas_folder)
    assert record.keys() >= CONTRACT
    assert (record["agent"], record["episodes"], record["areas"]) == (agent, 16, 4)
    assert all(isinstance(record[count], int) for count in ("episodes", "areas"))
    assert all(record[name] is None or isinstance(record[name], float) for name in METRICS)
    assert record["runtime_ms"] > 0
    assert record["success_by_distance"].keys() == {"1", "2", "3", "4"}
    for name in METRICS:
        low, high = record["ci95"][name]
        assert low is None or low <= record[name] <= high
    assert record["blind_optimum"] == pytest.approx(0.5211, abs=5e-5)
    assert record["blind_optimum_exact"] is True


def test_undefined_values_are_null(score, areas_folder: Path, tmp_path: Path):
    episodes = tmp_path / "e.csv"
    episodes.write_text(HEADER + "a.png,0,0,4,4\nb.png,0,0,4,4\n")
    failed = score("blind", "--areas", areas_folder, "--episodes", episodes, "--budget", 1)
    assert (failed["success"], failed["step_ratio"], failed["step_ratio_table"]) == (0, None, None)
    assert failed["ci95"]["step_ratio"] == [None, None]
    episodes.write_text(HEADER + "a.png,2,2,1,1\na.png,2,2,3,3\n")
    found = score("lawnmower", "--areas", areas_folder, "--episodes", episodes, "--budget", 100)
    assert (found["success"], found["residual_distance"]) == (1, None)
    assert found["ci95"]["success"] == [None, None], "one area says nothing about others"


@pytest.mark.parametrize(
    ("arguments", "optimum", "episodes"),
    [
        ([], 0.5211, 16),
        (["--per-area", "3"], 0.5211, 48),
        (["--episodes", "all-pairs", "--equal-distances"], 0.5211, 2400),
        (["--episodes", "all-pairs"], 0.4167, 2400),
        (["--episodes", "uniform"], 0.4167, 16),
    ],
    ids=["per-distance", "per-distance, three times", "all-pairs, equal distances", "all-pairs", "uniform"],
)
def test_reference_values_of_blind_flight(score, areas_folder: Path, arguments, optimum: float, episodes: int):
    record = score("blind", "--areas", areas_folder, *arguments)
    assert record["blind_optimum"] == pytest.approx(optimum, abs=5e-5)
    assert record["episodes"] == episodes
    if "all-pairs" in arguments:
        assert record["success"] == pytest.approx(optimum, abs=5e-5), "blind reaches its optimum on all pairs"


def test_priv_random_finds_about_41_percent(score, areas_folder: Path):
    record = score("priv-random", "--areas", areas_folder, "--episodes", "all-pairs", "--equal-distances")
    assert record["success"] == pytest.approx(0.41, abs=0.02)


def test_blind_optimum_is_in_expectation_for_a_suite_and_on_these_episodes_for_a_file(
    score, airloc, areas_folder: Path, tmp_path: Path
):
    saved = tmp_path / "saved.csv"
    drawn = score("spiral", "--areas", areas_folder, "--seed", 3, "--save-episodes", saved, "--no-timing")
    listed = score("spiral", "--areas", areas_folder, "--episodes", saved, "--seed", 3, "--no-timing")
    assert drawn["blind_optimum"] == pytest.approx(0.5211, abs=5e-5)
    assert listed["blind_optimum"] != drawn["blind_optimum"]
    same = CONTRACT - {"blind_optimum"}
    assert {key: listed[key] for key in same} == {key: drawn[key] for key in same}
    assert listed["suite"]["sha256"] == drawn["suite"]["sha256"]
    with saved.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == drawn["episodes"]


def test_with_an_episode_file_only_its_areas_are_read(score, airloc, areas_folder: Path, tmp_path: Path):
    (areas_folder / "broken.png").write_bytes(b"no picture")
    assert airloc("evaluate", "random", "--areas", areas_folder).refused("broken.png")
    episodes = tmp_path / "my episodes.csv"
    episodes.write_text("\ufeff" + HEADER + "c d.png,0,0,1,1\n\nb.png,4,4,0,0\n", encoding="utf-8")
    record = score("random", "--areas", areas_folder, "--episodes", episodes)
    assert (record["episodes"], record["areas"], record["suite"]["name"]) == (2, 2, "my episodes.csv")


def test_names_with_spaces_and_pictures_that_are_not_square(score, tmp_path: Path):
    folder = tmp_path / "my own pictures"
    folder.mkdir()
    picture(0, 90, 200).save(folder / "wide one.jpg")
    picture(1, 300, 77).save(folder / "tall one.webp")
    (folder / "notes.txt").write_text("no picture")
    (folder / "deeper").mkdir()
    picture(2).save(folder / "deeper" / "not read.png")
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


def test_pictures_of_every_kind_are_areas(score, tmp_path: Path):
    folder = tmp_path / "kinds"
    folder.mkdir()
    deep = np.random.default_rng(0).integers(0, 65536, size=(99, 99)).astype(np.uint16)
    Image.fromarray(deep).save(folder / "16 bit.png")
    picture(0).convert("CMYK").save(folder / "cmyk.jpg")
    picture(0).convert("P").save(folder / "palette.png", transparency=3)
    picture(0).convert("LA").save(folder / "grey.png")
    picture(0).convert("1").save(folder / "bits.png")
    picture(0).save(folder / "moving.webp", save_all=True, append_images=[picture(1)], duration=100)
    picture(0).save(folder / "moving.gif", save_all=True, append_images=[picture(1)])
    picture(0, 48, 20_000).save(folder / "strip.png")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (folder / "itself").symlink_to(".")
    assert score("random", "--areas", folder)["areas"] == 7


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Two pairs of pictures in one folder, and one picture without its partner."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    for number, when in enumerate(("pre", "post", "pre", "post")):
        picture(number).save(folder / f"fire_0000000{number // 2}_{when}_disaster.png")
    picture(9).save(folder / "fire_00000007_pre_disaster.png")
    return folder


def test_goals_come_from_before_the_event(score, airloc, pairs: Path, tmp_path: Path):
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


def test_goals_come_from_the_same_name_in_another_folder(score, airloc, areas_folder: Path, tmp_path: Path):
    other = tmp_path / "other day"
    shutil.copytree(areas_folder, other)
    assert score("random", "--areas", areas_folder, "--goals", other, "--control", "wrong-goal")["areas"] == 4
    (other / "c d.png").unlink()
    assert airloc("evaluate", "random", "--areas", areas_folder, "--goals", other).refused("'c d.png'")
    assert airloc("evaluate", "random", "--goals", other).refused("Give --areas too")
    assert airloc("evaluate", "random", "--areas", areas_folder, "--goals", tmp_path / "no").refused("no folder")


def test_the_pairs_of_xbd(score, data_root: Path):
    folder = data_root / "xbd" / "images"
    record = score("priv-random", "--areas", folder, "--goals", folder)
    assert record["areas"] == len(list(folder.glob("*_post_disaster.*")))
    assert record["episodes"] == 4 * record["areas"]


def test_the_windows_of_masa_by_split_and_by_metres(score, data_root: Path):
    folder = data_root / "masa" / "images"
    everything = score("blind", "--areas", folder)
    val = score("blind", "--areas", folder, "--split", "val")
    assert (everything["areas"], val["areas"]) == (96, 20)
    assert val["clusters"] < 20, "windows of one tile are not independent"
    near = score("blind", "--areas", folder, "--split", "val", "--cell-metres", 100)
    assert 0 < near["areas"] <= 20


def test_pictures_of_dubai_are_not_square(score, data_root: Path):
    assert score("lawnmower", "--areas", data_root / "dubai" / "Tile 1" / "images")["areas"] > 0


def test_a_prepared_cache_scores_as_its_folder_does(score, airloc, areas_folder: Path, tmp_path: Path):
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
    assert unknown.refused("names the area 'no.png'", "--areas")
    assert airloc("evaluate", "random", "--areas", cache, "--grid", "7x7").refused("prepared for 5x5")
    assert airloc("evaluate", "random", "--areas", cache, "--cell-metres", "100").refused("prepared cache")
    assert airloc("evaluate", "random", "--areas", cache, "--goals", areas_folder).refused("prepared cache")


@pytest.mark.parametrize("agent", ["random", "priv-random", "blind"])
def test_the_batch_changes_nothing(score, areas_folder: Path, agent: str):
    records = [score(agent, "--areas", areas_folder, "--batch", batch, "--no-timing") for batch in (1, 3, 1024)]
    assert records[0] == records[1] == records[2]


def test_without_timing_the_same_seed_gives_the_same_bytes(airloc, areas_folder: Path, tmp_path: Path):
    outputs: list[bytes] = []
    for number in range(2):
        out, lines = tmp_path / f"{number}.json", tmp_path / f"{number}.jsonl"
        arguments = ("--areas", areas_folder, "--seed", 7, "--no-timing", "--json", out, "--trajectories", lines)
        assert airloc("evaluate", "random", *arguments, "--against", "blind").code == 0
        outputs.append(out.read_bytes() + lines.read_bytes())
    assert outputs[0] == outputs[1]
    assert json.loads((tmp_path / "0.json").read_text())["runtime_ms"] is None


@pytest.mark.parametrize("seed", [-1, 10**30])
def test_any_whole_number_is_a_seed(score, areas_folder: Path, seed: int):
    record = score("blind", "--areas", areas_folder, "--seed", seed, "--no-timing")
    assert record == score("blind", "--areas", areas_folder, "--seed", seed, "--no-timing")


def test_trajectories_are_one_json_object_a_line(score, areas_folder: Path, tmp_path: Path):
    lines = tmp_path / "deep" / "paths.jsonl"
    record = score("priv-random", "--areas", areas_folder, "--trajectories", lines)
    episodes = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(episodes) == record["episodes"]
    assert np.mean([episode["found"] for episode in episodes]) == record["success"]
    assert np.mean([episode["steps"] for episode in episodes]) == record["steps"]
    for episode in episodes:
        assert episode["path"][0] == episode["start"]
        assert len(episode["path"]) == episode["steps"] + 1 <= 11
        assert (episode["path"][-1] == episode["goal"]) is episode["found"]


def test_controls_and_comparisons_are_recorded_and_shown(score, airloc, areas_folder: Path):
    for control in ("wrong-goal", "mean-goal"):
        assert score("random", "--areas", areas_folder, "--control", control)["control"] == control
    record = score("priv-random", "--areas", areas_folder, "--against", "random", "--sample")
    assert record["control"] is None
    assert record["against"]["agent"] == "random"
    difference = record["against"]["metrics"]["success"]["difference"]
    only = record["against"]["found_by_first_only"] - record["against"]["found_by_second_only"]
    assert difference == pytest.approx(only / 16)
    shown = airloc("evaluate", "priv-random", "--areas", areas_folder, "--against", "random").out
    assert "priv-random minus random" in shown
    assert "blind optimum" in shown


def test_a_change_is_recorded_and_shown_whatever_the_batch(score, airloc, areas_folder: Path):
    options = ("--areas", areas_folder, "--change", "all", "--no-timing")
    record = score("priv-local", *options)
    assert (record["change"], record["options"]["change_strength"]) == ("all", 1.0)
    assert score("priv-local", *options, "--batch", 3) == record
    assert "Goals' pictures: change all" in airloc("evaluate", "random", *options).out
    plain = score("priv-local", "--areas", areas_folder, "--no-timing")
    assert (plain["change"], plain["options"]["change_strength"]) == (None, None)
    none = score("priv-local", *options, "--change-strength", 0)
    same = CONTRACT | {"success_by_distance_ci95"}
    assert {key: none[key] for key in same} == {key: plain[key] for key in same}


def test_changes_go_with_pairs_episode_files_and_a_wrong_goal(score, airloc, pairs: Path, tmp_path: Path):
    saved = tmp_path / "saved.csv"
    both = ("--areas", pairs, "--goals", pairs, "--change", "turned", "--no-timing")
    drawn = score("priv-local", *both, "--save-episodes", saved)
    listed = score("priv-local", *both, "--episodes", saved)
    assert (listed["success"], listed["steps"]) == (drawn["success"], drawn["steps"])
    wrong = score("priv-local", *both, "--control", "wrong-goal")
    assert (wrong["control"], wrong["change"]) == ("wrong-goal", "turned")


def test_areas_are_chosen_by_patterns_on_their_names(score, airloc, pairs: Path, areas_folder: Path, tmp_path: Path):
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
    (areas_folder / "broken.png").write_bytes(b"no picture")
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


def test_without_a_folder_the_areas_are_procedural(airloc, tmp_path: Path):
    out = tmp_path / "new" / "folder" / "score.json"
    outcome = airloc("evaluate", "random", "--grid", "1x2", "--json", out)
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(out.read_text())["areas"] == 100
    assert [path.name for path in out.parent.iterdir()] == ["score.json"]


@pytest.mark.parametrize("arguments", [["--budget", "200"], ["--grid", "30x30"], ["--grid", "1x2", "--budget", "2048"]])
def test_long_budgets_and_large_grids_end(score, areas_folder: Path, arguments: list[str]):
    assert 0 < score("blind", "--areas", areas_folder, *arguments)["blind_optimum"] <= 1 + 1e-9


# Bad input: exit code 2, one line with the problem and the cure, nothing left behind.


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.fixture
def refuses(airloc, tmp_path: Path) -> Callable[..., None]:
    """Check that an evaluation is refused, and that it leaves nothing behind."""

    def check(arguments: list[object], *said: str) -> None:
        before = listing(tmp_path)
        out = ["--json", tmp_path / "out" / "deep" / "score.json", "--trajectories", tmp_path / "out" / "paths.jsonl"]
        assert airloc("evaluate", "random", *arguments, *out).refused(*said)
        assert listing(tmp_path) == before

    return check


def bomb() -> bytes:
    """A small PNG file that claims 60,000 x 60,000 px."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(999))) + chunk(b"IEND", b"")


def test_a_missing_and_an_empty_folder_and_a_file_for_a_folder_are_refused(refuses, areas_folder, tmp_path: Path):
    refuses(["--areas", tmp_path / "nowhere"], "There is no folder", "Check the path")
    (tmp_path / "empty").mkdir()
    refuses(["--areas", tmp_path / "empty"], "holds no pictures", "Put JPEG, PNG, TIFF or WebP files in it")
    refuses(["--areas", areas_folder / "a.png"], "There is no folder")
    (tmp_path / "loop").symlink_to("loop")
    refuses(["--areas", tmp_path / "loop"], "There is no folder")


def test_pictures_that_cannot_be_used_are_refused(refuses, areas_folder: Path):
    good = (areas_folder / "a.png").read_bytes()
    bad, cure = areas_folder / "x.png", "Replace the file, or take it out of the folder"
    for content in (b"no picture", b"", good[: len(good) // 2], good[:40]):
        bad.write_bytes(content)
        refuses(["--areas", areas_folder], "Cannot read the picture", "x.png", cure)
    bad.write_bytes(bomb())
    refuses(["--areas", areas_folder], "million pixels", "x.png", "Cut it into smaller pictures first")
    for size in ((20, 200), (1, 100_000)):
        picture(0, *size).save(bad)
        refuses(["--areas", areas_folder], "'x.png'", "smaller than one cell of 48 px", "Use a larger picture")
    picture(0).save(bad.with_suffix(".jpg"))
    bad.unlink()
    cut = bad.with_suffix(".jpg").read_bytes()
    bad.with_suffix(".jpg").write_bytes(cut[: len(cut) // 2])
    refuses(["--areas", areas_folder], "truncated", "x.jpg", cure)


def test_a_mask_of_another_size_or_none_at_all_is_refused(refuses, tmp_path: Path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    picture(0).save(tmp_path / "images" / "a.png")
    picture(0, 50, 60).save(tmp_path / "masks" / "a.png")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,a.png,500,val\n")
    refuses(["--areas", tmp_path / "images"], "60 x 50 px", "120 x 120 px", "Give a mask of the size of the image")
    (tmp_path / "masks" / "a.png").unlink()
    refuses(["--areas", tmp_path / "images"], "There is no picture")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,,wide,val\n")
    refuses(["--areas", tmp_path / "images"], "Line 2", "is broken")
    (tmp_path / "windows.csv").write_text("image,mask,side_m,split\na.png,,500,val\n")
    refuses(["--areas", tmp_path / "images", "--cell-metres", "0.001"], "smaller than one cell")
    refuses(["--areas", tmp_path / "images", "--cell-metres", "200"], "1000 x 1000 m", "Ask for less")


@pytest.mark.parametrize(
    ("rows", "problem", "cure"),
    [
        (HEADER + "no.png,0,0,1,1\n", "no picture 'no.png'", "Check the names"),
        (HEADER + "../a.png,0,0,1,1\n", "no picture '../a.png'", "Check the names"),
        (HEADER + "a.png,0,0,5,1\n", "The goal (5, 1) in line 2", "Use rows 0 to 4 and columns 0 to 4"),
        (HEADER + "a.png,-1,0,1,1\n", "The start (-1, 0) in line 2", "Use rows 0 to 4"),
        (HEADER + "a.png,1,1,1,1\n", "Start and goal are both (1, 1) in line 2", "Make them different cells"),
        (HEADER + "a.png,0,0,1,1\na.png,1,x,1,1\n", "Cannot read line 3", "Write it as area,start_row"),
        (HEADER + "a.png,1\n", "Cannot read line 2", "Write it as"),
        (HEADER + "a.png,0,0,1,1,1\n", "Cannot read line 2", "Write it as"),
        (HEADER + f"a.png,0,0,1,{'9' * 9000}\n", "Cannot read line 2", "Write it as"),
        (HEADER + '"a.png,0,0,1,1\n', "Cannot read the episode file", "Give a CSV file"),
        ("a.png,0,0,1,1\n", "does not begin with the header", "Make its first line area,"),
        ("", "does not begin with the header", "Make its first line area,"),
        (HEADER, "lists no episodes", "Add at least one row"),
    ],
)
def test_broken_episode_files_are_refused(refuses, areas_folder: Path, tmp_path: Path, rows, problem, cure):
    episodes = tmp_path / "e.csv"
    episodes.write_text(rows)
    refuses(["--areas", areas_folder, "--episodes", episodes], problem, cure)


def test_episode_files_that_are_none_are_refused(refuses, areas_folder: Path, tmp_path: Path):
    refuses(["--areas", areas_folder, "--episodes", "per-distanse"], "no episode file", "per-distance, all-pairs")
    refuses(["--areas", areas_folder, "--episodes", areas_folder], "Cannot read the episode file")
    refuses(["--areas", areas_folder, "--episodes", areas_folder / "a.png"], "episode file")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grid", "1x1"], "Ask for at least 1x2 cells"),
        (["--grid", "five"], "Write rows and columns as in 5x5"),
        (["--grid", "1000x1000"], "Ask for a smaller grid"),
        (["--budget", "0"], "Give a budget of 1 or more"),
        (["--budget", "1000000000"], "Give at most 2048"),
        (["--batch", "0"], "Give a batch of 1 or more"),
        (["--cell-metres", "-5"], "Give --cell-metres above 0"),
        (["--cell-metres", "nan"], "Give --cell-metres above 0"),
        (["--cell-metres", "100"], "Ask for less, or give the ground size"),
        (["--split", "val"], "is in the split 'val'"),
        (["--equal-distances"], "Add --episodes all-pairs"),
        (["--per-area", "0"], "Give 1 to 10,000"),
        (["--per-area", "2", "--episodes", "all-pairs"], "Leave out --per-area"),
        (["--device", "warp"], "Use --device cpu"),
        (["--device", "meta"], "Use --device cpu"),
        (["--against", "belif"], "There is no agent 'belif'"),
        (["--change", "offgrid"], "There is no change 'offgrid'. Did you mean 'off-grid'?"),
        (["--change", ""], "Changes are: photometric, blur, coarse, off-grid, turned, all"),
        (["--change", "all", "--change-strength", "1.5"], "Give 0 (no change) to 1"),
        (["--change", "all", "--change-strength", "nan"], "Give 0 (no change) to 1"),
        (["--change-strength", "0.5"], "Add --change"),
        (["--change", "blur", "--control", "mean-goal"], "Leave out --change, or use --control wrong-goal"),
        (["--only", "z*"], "left by --only z*"),
        (["--except", "*"], "left by --except *"),
    ],
)
def test_options_that_make_no_sense_are_refused(refuses, areas_folder: Path, arguments: list[str], said: str):
    refuses(["--areas", areas_folder, *arguments], said)


def test_procedural_areas_are_not_chosen_by_name(refuses):
    refuses(["--only", "synthetic*"], "Procedural areas are not chosen by name", "Give --areas too")


def test_a_wrong_goal_needs_a_second_area(refuses, tmp_path: Path):
    (tmp_path / "one").mkdir()
    picture(0).save(tmp_path / "one" / "a.png")
    refuses(["--areas", tmp_path / "one", "--control", "wrong-goal"], "Give at least two areas")


def test_an_unknown_agent_is_refused_with_the_nearest_one(airloc):
    assert airloc("evaluate", "spirl").refused("There is no agent 'spirl'", "Did you mean 'spiral'?")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("areas", "There is a folder of that name; choose another name"),
        ("areas/a.png/score.json", "A part of the path is a file; choose another folder"),
        ("/proc/no/score.json", "Choose a folder that you may write to"),
        ("n" * 300, "Choose a shorter name"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_anything_is_read(airloc, areas_folder, tmp_path, out, said):
    before = listing(tmp_path)
    for option in ("--json", "--trajectories", "--save-episodes"):
        nowhere = ["--areas", tmp_path / "nowhere", "--save-episodes", tmp_path / "new" / "e.csv"]
        arguments = [*nowhere[: 2 if option == "--save-episodes" else 4], option, tmp_path / out]
        assert airloc("evaluate", "random", *arguments).refused("Cannot write", said)
    assert listing(tmp_path) == before


def test_two_outputs_cannot_be_one_file(airloc, areas_folder: Path, tmp_path: Path):
    outcome = airloc("evaluate", "random", "--json", tmp_path / "x", "--trajectories", tmp_path / "x")
    assert outcome.refused("Two outputs", "Give each a name of its own")


def test_an_interrupt_while_playing_leaves_nothing(airloc, areas_folder: Path, tmp_path: Path, monkeypatch):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airloc.evaluation.evaluate.play", interrupt)
    before = listing(tmp_path)
    arguments = ["--areas", areas_folder, "--json", tmp_path / "new" / "score.json"]
    assert airloc("evaluate", "random", *arguments).refused("nothing half-written was left")
    assert listing(tmp_path) == before


def test_the_declare_variant_reports_finds_false_alarms_and_misses(airloc, tmp_path: Path):
    out = tmp_path / "score.json"
    outcome = airloc("evaluate", "spiral", "--false-alarm-cost", 4, "--json", out)
    record = json.loads(out.read_text())
    assert "declared rightly" in outcome.out
    assert record["success"] + record["false_alarms"] + record["missed"] == pytest.approx(1)
    assert record["suite"]["name"] == "per-distance, declared"
    assert record["options"]["false_alarm_cost"] == 4
    assert airloc("evaluate", "spiral", "--false-alarm-cost", -1).refused("false alarm", "0 or more")
