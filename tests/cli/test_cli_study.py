"""`airloc study`: from images to links, and from games to the row Human."""

import csv
import json
import resource
import stat
from pathlib import Path

import pytest

from airloc.agents.registry import available_agents
from airloc.game import Study
from game_server import joined, lobby_of, move_away, serving_study, small_study, take_part

pytestmark = pytest.mark.long


def test_a_study_is_made_from_a_folder_with_a_link_for_everybody(airloc, areas_folder: Path, tmp_path: Path):
    out, text = tmp_path / "new" / "study.db", tmp_path / "consent.txt"
    text.write_text("You agree to nothing at all.")
    options = ["--people", 3, "--per-distance", 1, "--seconds", 30, "--consent", text]
    made = airloc("study", "create", out, "--areas", areas_folder, *options)
    assert (made.code, made.err) == (0, "")
    assert [fact for fact in ("3 participants", "4 games", "4 areas", str(out)) if fact not in made.out] == []
    study = Study(out)
    assert (study.config.seconds, study.config.consent) == (30, "You agree to nothing at all.")
    links = airloc("study", "links", out, "--base", "https://example.org/").out.split()
    assert links[1::2] == [f"https://example.org/join/{person.token}" for person in study.participants()]


def test_the_games_can_come_from_an_episode_file(airloc, areas_folder: Path, tmp_path: Path):
    rows = [f"{name},0,0,{d},{d}" for name in ("a.png", "b.png", "e.png") for d in (1, 2)]
    episodes = tmp_path / "episodes.csv"
    episodes.write_text("\n".join(["area,start_row,start_col,goal_row,goal_col", *rows]))
    out = tmp_path / "study.db"
    options = ["--episodes", episodes, "--people", 4, "--per-distance", 1]
    made = airloc("study", "create", out, "--areas", areas_folder, *options)
    assert made.code == 0
    assert "2 games" in made.out, "the number of repeated episodes"
    assert [area.name for area in Study(out).areas()] == ["a.png", "b.png", "e.png"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--people", "0"], ["--people", "0"]),
        (["--people", "1000000"], ["1000000", "10000"]),
        (["--per-distance", "2"], ["4 areas", "8 games", "--per-distance"]),
        (["--grid", "13x13"], ["13x13", "12x12"]),
        (["--seconds", "nan"], ["nan", "--seconds"]),
        (["--seconds", "-3"], ["-3", "--seconds"]),
        (["--consent", "/no/such/text"], ["/no/such/text", "UTF-8"]),
        (["--practice", "{areas}"], ["--practice"]),
    ],
)
def test_an_invalid_study_is_refused_and_leaves_no_file(
    airloc, areas_folder: Path, tmp_path: Path, arguments: list[str], facts: list[str]
):
    out = tmp_path / "new" / "study.db"
    options = [argument.format(areas=areas_folder) for argument in arguments]
    start = ["study", "create", out, "--areas", areas_folder, "--per-distance", 1, "--people", 2]
    assert airloc(*start, *options).refused(*facts)
    assert not out.parent.exists()


def test_a_file_name_that_is_no_text_is_refused_before_it_is_stored_or_served(
    airloc, areas_folder: Path, tmp_path: Path
):
    (areas_folder / "a.png").rename(areas_folder / "\udcff.png")
    out = tmp_path / "study.db"
    for command in (["study", "create", out, "--people", 2, "--per-distance", 1], ["play", "--no-open", "--port", 0]):
        assert airloc(*command, "--areas", areas_folder).refused("'\\udcff.png'", "UTF-8")
    assert not out.exists()


def test_a_full_disk_is_refused_in_one_sentence_and_leaves_no_file(airloc, areas_folder: Path, tmp_path: Path):
    out = tmp_path / "new" / "study.db"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        made = airloc("study", "create", out, "--areas", areas_folder, "--per-distance", 1, "--people", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert made.refused(str(out), "space")
    assert not out.parent.exists()


def simulated(path: Path) -> None:
    """Simulate the paper's study: 19 people, 12 games each."""
    study = small_study(path, people=19, each=3, areas=30, grid="5x5")
    take_part(study, lobby_of(study))
    study.store.close()


def check_results(airloc, tmp_path: Path, agents: list[str], *options: object) -> None:
    """Check that the row Human stands beside the agents on the same 228 episodes, in the table and in the files."""
    path, records = tmp_path / "study.db", tmp_path / "records"
    simulated(path)
    games, episodes = tmp_path / "games.csv", tmp_path / "episodes.csv"
    files = ["--csv", games, "--records", records, "--save-episodes", episodes, "--json", tmp_path / "human.json"]
    files += ["--trajectories", tmp_path / "paths.jsonl"]
    outcome = airloc("study", "results", path, *files, *options)
    assert outcome.code == 0, outcome.err
    shown = outcome.out
    assert "228 episodes (study.db)" in shown
    assert [
        word for word in ("Human", "blind optimum", "19 people, 228 games", "Age: ", "Gender: ") if word not in shown
    ] == []
    row = next(line for line in shown.splitlines() if line.strip().startswith("Human"))
    assert "[" in row, "with its interval"

    human = json.loads((records / "Human.json").read_text())
    assert human == json.loads((tmp_path / "human.json").read_text())
    assert (human["agent"], human["episodes"], human["grid"], human["budget"]) == ("Human", 228, "5x5", 10)
    low, high = human["ci95"]["success"]
    assert low < human["success"] < high
    assert list(human["success_by_distance"]) == ["1", "2", "3", "4"]
    assert len(human["study"]["success_by_person"]) == 19
    assert [person["games"] for person in human["study"]["success_by_person"]] == [12] * 19
    assert sorted(one["agent"] for one in human["comparisons"]) == sorted(agents)
    for agent in agents:
        record = json.loads((records / f"{agent}.json").read_text())
        assert (record["agent"], record["suite"]) == (agent, human["suite"]), "exactly the same episodes"
        assert set(record) <= set(human)
    rows = list(csv.DictReader(games.open()))
    assert len(rows) == 228
    assert sum(int(row["found"]) for row in rows) == round(228 * human["success"])
    assert len(episodes.read_text().splitlines()) == 229
    paths = [json.loads(line) for line in (tmp_path / "paths.jsonl").read_text().splitlines()]
    assert sum(one["path"][-1] == one["goal"] for one in paths) == sum(int(row["found"]) for row in rows)


def test_a_simulated_study_of_19_times_12_games_gives_the_row_human(airloc, tmp_path: Path):
    agents = ["lawnmower", "blind", "airloc"]
    check_results(airloc, tmp_path, agents, "--agents", *agents)


@pytest.mark.slow
def test_the_row_human_stands_beside_all_agents(airloc, tmp_path: Path):
    check_results(airloc, tmp_path, available_agents())


def test_a_backup_holds_every_move_that_the_running_server_has_acknowledged(airloc, tmp_path: Path):
    study, copy = small_study(tmp_path / "s.db"), tmp_path / "new" / "copy.db"
    with serving_study(study) as (url, _):
        client = joined(url, study.participants()[0].token)
        client.ask("POST", "/api/consent", {"age": 41})
        client.ask("POST", "/api/practised")
        game = client.begin("recorded")
        move = move_away(tuple(game["position"]), study.episodes(1)[0].goal, study.grid)
        assert client.move(game["game"], 0, move).status == 200
        made = airloc("study", "backup", study.path, copy)
        assert (made.code, made.out) == (0, f"{copy}: 1 game with 1 move.\n")
        client.close()
    held = Study(copy)
    assert [played.moves for played in held.store.recorded()] == [(move,)]
    assert held.participants() == study.participants()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert airloc("study", "backup", study.path, copy).refused("copy.db", "already exists")
    assert airloc("study", "backup", tmp_path / "none.db", tmp_path / "x" / "y.db").refused("none.db")
    assert not (tmp_path / "x").exists()


def test_a_study_has_one_server_at_a_time(airloc, tmp_path: Path):
    study = small_study(tmp_path / "s.db")
    serve = ("study", "serve", study.path, "--port", 0, "--agents", "spiral")
    with study.served():
        assert airloc(*serve).refused("s.db", "Another server")
    with Study(study.path).served():
        pass


def test_results_need_a_study_with_a_finished_game(airloc, tmp_path: Path):
    small_study(tmp_path / "s.db").store.close()
    assert airloc("study", "results", tmp_path / "s.db").refused("s.db")
    unknown = airloc("study", "results", tmp_path / "s.db", "--agents", "nobody", "--csv", tmp_path / "x" / "y.csv")
    assert unknown.refused("'nobody'")
    assert not (tmp_path / "x").exists()
    assert airloc("study", "results", tmp_path / "none.db").refused("none.db", "airloc study create")
    assert airloc("study", "serve", tmp_path / "s.db", "--host", "0.0.0.0").refused("--public")
