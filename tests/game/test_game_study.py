"""The file of a study, and the assignment of episodes to participants."""

import resource
import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.game import (
    Episode,
    Study,
    StudyConfig,
    assign_episodes,
    count_shared,
    create_study,
    draw_games,
    episodes_of,
)
from airloc.grid import Grid, distance
from airloc.task.suites import per_distance
from game_server import noise_areas, small_study


@settings(max_examples=30, deadline=None)
@given(people=st.integers(1, 25), each=st.integers(1, 3), spare=st.integers(0, 40), seed=st.integers(0, 9))
def test_participants_play_different_areas_all_distances_equally_often_and_share_no_episode(people, each, spare, seed):
    grid = Grid(5, 5)
    names = [f"a{n}" for n in range(4 * each + spare)]
    games = draw_games(names, grid, people, each, seed)
    assert count_shared(games) == 0
    for own in games:
        assert len({episode.area for episode in own}) == len(own) == 4 * each
        away = [distance(episode.start, episode.goal) for episode in own]
        assert sorted(away) == sorted([1, 2, 3, 4] * each)


@settings(max_examples=30, deadline=None)
@given(each=st.integers(1, 3), people=st.integers(2, 25), seed=st.integers(0, 9))
@example(each=2, people=13, seed=0)
def test_a_suite_with_just_enough_episodes_is_used_up(each: int, people: int, seed: int):
    grid = Grid(5, 5)
    areas = max(each * people, 4 * each)
    episodes = episodes_of(per_distance([f"a{n}" for n in range(areas)], grid, seed=seed))
    games = assign_episodes(episodes, people, each, seed)
    assert count_shared(games) == 0
    assert areas > each * people or {episode for own in games for episode in own} == set(episodes)


def test_games_share_episodes_only_if_there_are_too_few():
    episodes = [Episode(area, (0, 0), (0, 1)) for area in range(5)]
    assert count_shared(assign_episodes(episodes, 5, 1, seed=0)) == 0
    assert count_shared(assign_episodes(episodes, 8, 1, seed=0)) == 3


def test_too_few_areas_are_an_airloc_error():
    with pytest.raises(AirlocError, match="--per-distance"):
        draw_games(["a", "b"], Grid(5, 5), 1, 1, 0)


def test_a_study_is_one_private_file_that_holds_the_pixels(tmp_path: Path):
    study = small_study(tmp_path / "s.db")
    again = Study(tmp_path / "s.db")
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600
    assert [area.name for area in again.areas()] == [f"noise_{n}" for n in range(12)]
    assert all((a.image == b.image).all() for a, b in zip(study.areas(), noise_areas(12, Grid(3, 3)), strict=True))
    assert len({person.token for person in again.participants()}) == 2
    assert all(len(person.token) >= 32 for person in again.participants())
    assert len(again.admin_token) >= 32


def test_a_study_is_not_overwritten(tmp_path: Path):
    small_study(tmp_path / "s.db")
    before = Study(tmp_path / "s.db").admin_token
    with pytest.raises(AirlocError, match=r"s\.db"):
        small_study(tmp_path / "s.db")
    assert Study(tmp_path / "s.db").admin_token == before


def test_an_area_of_the_study_cannot_be_an_area_of_practice(tmp_path: Path):
    areas = noise_areas(3, Grid(3, 3))
    with pytest.raises(AirlocError, match="--practice"):
        create_study(tmp_path / "t.db", StudyConfig("3x3", 6), areas, areas[:1], [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room_left", [0, 5_000, 10_000, 100_000])
def test_a_full_disk_is_an_airloc_error_and_leaves_no_file(tmp_path: Path, room_left: int):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_left, hard))
    try:
        with pytest.raises(AirlocError) as caught:
            small_study(tmp_path / "full.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "full.db" in caught.value.problem
    assert "space" in caught.value.cure
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_a_study_is_an_airloc_error_that_names_it(tmp_path: Path):
    with pytest.raises(AirlocError, match=r"none\.db"):
        Study(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(AirlocError, match=r"empty\.db"):
        Study(tmp_path / "empty.db")
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize(
    "tables",
    [
        "CREATE TABLE things (name TEXT)",
        "PRAGMA journal_mode = WAL; CREATE TABLE study (key TEXT, value TEXT)",
        "CREATE TABLE study (key TEXT, value TEXT); INSERT INTO study VALUES ('version', '1')",
        "CREATE TABLE study (key TEXT, value TEXT); CREATE TABLE areas (a); CREATE TABLE people (a); "
        "CREATE TABLE assigned (a); INSERT INTO study VALUES ('version', '1'), ('admin', 'x'), ('rules', '{\"a\": 1}')",
    ],
)
def test_the_database_of_another_program_is_not_changed(tmp_path: Path, tables: str):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.executescript(tables)
    db.close()
    before = path.read_bytes()
    with pytest.raises(AirlocError, match=r"other\.db.*airloc study create"):
        Study(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("seconds", [float("nan"), 0.0, -5.0])
def test_a_time_limit_that_is_not_above_0_is_refused(seconds: float):
    with pytest.raises(AirlocError, match="--seconds"):
        StudyConfig(seconds=seconds)


@pytest.mark.parametrize("text", ["", " \n\n\t"])
def test_an_empty_consent_text_is_refused(text: str):
    with pytest.raises(AirlocError, match="consent text is empty"):
        StudyConfig(consent=text)
