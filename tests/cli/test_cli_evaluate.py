"""`airloc evaluate`: the JSON contract and every option of its own."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.agents.pretrained import weights_root
from airloc.agents.registry import available_agents
from airloc.areas.changes import CHANGES

pytestmark = pytest.mark.long

CONTRACT = {
    *("agent", "episodes", "areas", "success", "steps", "step_ratio", "step_ratio_table", "residual_distance"),
    *("runtime_ms", "success_by_distance", "ci95", "blind_optimum"),
}
METRICS = ("success", "steps", "step_ratio", "step_ratio_table", "residual_distance")
HEADER = "area,start_row,start_col,goal_row,goal_col\n"


@pytest.mark.parametrize("agent", ["random", "blind", "airloc", "belief"])
def test_the_json_has_every_key_of_the_contract(score, areas_folder: Path, agent: str):
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


def test_the_help_names_every_change(airloc):
    shown = " ".join(airloc("evaluate", "--help").out.replace("│", " ").split())
    assert all(name in shown for name in CHANGES)


def test_terms_of_research_weights_are_printed(airloc, areas_folder: Path):
    research = next(name for name in available_agents() if name.endswith("-research"))
    assert "CC BY-NC-SA 4.0" in airloc("evaluate", research, "--areas", areas_folder, "--budget", 1).err


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


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "without words"), ("Häuser mit roten Dächern am Teich", "English"), ("Fly to the pond", "instruction")],
)
def test_texts_that_are_not_understood_are_played_with_a_warning(airloc, areas_folder, tmp_path: Path, text, said):
    done = airloc("evaluate", "belief", "--areas", areas_folder, "--goal-texts", write_texts(tmp_path, text))
    assert said in done.err
    assert "(4 of 4 goals)" in done.err
    assert "Goals in words: from" in done.out


def test_a_text_of_ten_thousand_words_is_refused(airloc, areas_folder: Path, tmp_path: Path):
    texts = write_texts(tmp_path, "pond " * 10_000)
    done = airloc("evaluate", "belief", "--areas", areas_folder, "--goal-texts", texts)
    assert done.code == 2
    assert "10,000 words" in done.err
    assert "of 'a.png'" in done.err


def write_texts(folder: Path, text: str) -> Path:
    """A file that describes all cells of one area alike."""
    path = folder / "texts.csv"
    rows = "".join(f'a.png,{n // 5},{n % 5},"{text}"\n' for n in range(25))
    path.write_text("area,goal_row,goal_col,text\n" + rows, encoding="utf-8")
    return path


def test_the_record_names_weights_images_device_batch_versions_and_resamples(score, areas_folder, tmp_path: Path):
    record = score("airloc", "--areas", areas_folder, "--batch", 5)
    files = {name: weights_root() / name / "weights.safetensors" for name in ("airloc", "vision-sem-seg")}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert record["weights_sha256"] == hashes
    assert (record["device"], record["batch"], record["torch"]) == ("cpu", 5, torch.__version__)
    assert (record["package"], record["resamples"], record["clusters"]) == (None, 2000, 4)
    assert record["images"]["goals_sha256"] is None
    described = score("belief", "--areas", areas_folder, "--goal-texts", write_texts(tmp_path, "woods"))[
        "weights_sha256"
    ]
    assert list(described) == ["belief", "text"]
    folder = score(weights_root() / "airloc", "--areas", areas_folder)
    assert (folder["weights_sha256"], folder["images"]) == (hashes, record["images"])
    with Image.open(areas_folder / "a.png") as image:
        image.putpixel((60, 60), (1, 2, 3))
        image.save(areas_folder / "a.png")
    goals = shutil.copytree(areas_folder, tmp_path / "goals")
    other = score("blind", "--areas", areas_folder, "--goals", goals)
    assert other["weights_sha256"] == {}
    assert other["images"]["sha256"] == other["images"]["goals_sha256"] != record["images"]["sha256"]


def test_a_comparison_has_all_metrics_and_intervals_of_both_agents(score, areas_folder: Path):
    both = score("blind", "--areas", areas_folder, "--against", "belief", "--no-timing")
    alone = score("belief", "--areas", areas_folder, "--no-timing")
    for key in (*METRICS, "agent", "runtime_ms", "ci95", "success_by_distance", "success_by_distance_ci95"):
        assert both["against"][key] == alone[key], key
    assert both["against"]["weights_sha256"] == alone["weights_sha256"] != both["weights_sha256"] == {}
    for name in METRICS:
        first, second, gap = both[name], alone[name], both["against"]["metrics"][name]["difference"]
        assert gap == (None if first is None or second is None else first - second)


def test_a_change_is_recorded_and_shown_whatever_the_batch(score, airloc, areas_folder: Path):
    options = ("--areas", areas_folder, "--change", "all", "--no-timing")
    record = score("priv-local", *options)
    assert (record["change"], record["options"]["change_strength"]) == ("all", 1.0)
    assert score("priv-local", *options, "--batch", 3) == record
    assert "change all" in airloc("evaluate", "random", *options).out
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


def test_flight_conditions_are_recorded_and_shown_whatever_the_batch(score, airloc, areas_folder: Path):
    options = ("--areas", areas_folder, "--no-timing")
    plain = score("priv-local", *options)
    record = score("priv-local", *options, "--flight-conditions", 1)
    assert (plain["flight_conditions"], record["flight_conditions"]) == (None, 1.0)
    assert score("priv-local", *options, "--flight-conditions", 1, "--batch", 3) == record
    assert record["suite"] == plain["suite"]
    assert "Flight conditions of strength 1" in airloc("evaluate", "random", *options, "--flight-conditions", 1).out
    none = score("priv-local", *options, "--flight-conditions", 0)
    same = CONTRACT | {"success_by_distance_ci95"}
    assert {key: none[key] for key in same} == {key: plain[key] for key in same}


def test_flight_conditions_go_with_pairs_declarations_and_controls(score, pairs: Path):
    both = ("--areas", pairs, "--goals", pairs, "--flight-conditions", 0.5, "--no-timing")
    assert score("priv-local", *both, "--false-alarm-cost", 4)["flight_conditions"] == 0.5
    for control in ("wrong-goal", "mean-goal"):
        record = score("priv-local", *both, "--control", control)
        assert (record["control"], record["flight_conditions"]) == (control, 0.5)


@pytest.mark.parametrize("strength", ["-1", "nan", "inf", "1e9"])
def test_impossible_flight_conditions_are_refused(refuses, areas_folder: Path, strength: str):
    refuses(["--areas", areas_folder, "--flight-conditions", strength], "from 0", "to 5")


def test_flight_conditions_do_not_go_with_a_change(refuses, areas_folder: Path):
    refuses(["--areas", areas_folder, "--flight-conditions", 1, "--change", "blur"], "--change", "--flight-conditions")


def test_a_text_is_no_strength_of_flight_conditions(airloc, areas_folder: Path):
    outcome = airloc("evaluate", "random", "--areas", areas_folder, "--flight-conditions", "strong")
    assert outcome.code == 2
    assert "strong" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("arguments", [["--budget", "200"], ["--grid", "20x20"], ["--grid", "1x2", "--budget", "2048"]])
def test_long_budgets_and_large_grids_end(score, areas_folder: Path, arguments: list[str]):
    assert 0 < score("blind", "--areas", areas_folder, *arguments)["blind_optimum"] <= 1 + 1e-9


def test_a_wrong_goal_needs_a_second_area(refuses, areas_folder: Path):
    refuses(["--areas", areas_folder, "--only", "a.png", "--control", "wrong-goal"], "two areas")


@pytest.mark.parametrize(("name", "facts"), [("spirl", ["'spirl'", "'spiral'"]), ("", ["belief"]), (" ", ["belief"])])
def test_an_unknown_agent_is_refused(airloc, areas_folder: Path, name: str, facts: list[str]):
    assert airloc("evaluate", name, "--areas", areas_folder).refused(*facts)


@pytest.mark.parametrize("out", ["areas", "areas/a.png/score.json", "/proc/no/score.json", "n" * 300])
def test_outputs_that_cannot_be_written_are_refused_before_anything_is_read(airloc, areas_folder, tmp_path, out):
    (areas_folder / "broken.png").write_bytes(b"no image")
    before = sorted(tmp_path.rglob("*"))
    for option in ("--json", "--trajectories", "--save-episodes"):
        other = [] if option == "--save-episodes" else ["--save-episodes", tmp_path / "new" / "e.csv"]
        outcome = airloc("evaluate", "random", "--areas", areas_folder, *other, option, tmp_path / out)
        assert outcome.refused(str(tmp_path / out))
    assert sorted(tmp_path.rglob("*")) == before


def test_two_outputs_cannot_be_one_file(airloc, areas_folder: Path, tmp_path: Path):
    outcome = airloc("evaluate", "random", "--json", tmp_path / "x", "--trajectories", tmp_path / "x")
    assert outcome.refused(str(tmp_path / "x"))


def test_an_interrupt_while_playing_leaves_nothing(airloc, areas_folder: Path, tmp_path: Path, monkeypatch):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airloc.evaluation.scores.rollout", interrupt)
    before = sorted(tmp_path.rglob("*"))
    arguments = ["--areas", areas_folder, "--json", tmp_path / "new" / "score.json"]
    assert airloc("evaluate", "random", *arguments).refused()
    assert sorted(tmp_path.rglob("*")) == before


def test_the_declare_variant_reports_finds_false_alarms_and_misses(airloc, areas_folder: Path, tmp_path: Path):
    out = tmp_path / "score.json"
    outcome = airloc("evaluate", "spiral", "--areas", areas_folder, "--false-alarm-cost", 4, "--json", out)
    assert outcome.code == 0
    record = json.loads(out.read_text())
    assert record["success"] + record["false_alarms"] + record["missed"] == pytest.approx(1)
    assert record["suite"]["name"] == "per-distance, declared"
    assert record["options"]["false_alarm_cost"] == 4
    assert airloc("evaluate", "spiral", "--false-alarm-cost", -1).refused("-1", "0 or more")
