"""The study: who plays what, in which order of stages, and who may see what."""

import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airloc.errors import AirlocError
from airloc.game.app import make_app
from airloc.game.match import Episode
from airloc.game.results import HUMAN, results_of
from airloc.game.routes import study_routes
from airloc.game.study import Rules, Study, assign, create_study, draw_games, episodes_of, overlaps
from airloc.grid import Grid, distance
from airloc.task.suites import per_distance
from game_hall import GENEROUS, Client, noise_areas, running
from game_studies import desk_of, joined, small_study, take_part


@settings(max_examples=30, deadline=None)
@given(people=st.integers(1, 25), each=st.integers(1, 3), spare=st.integers(0, 40), seed=st.integers(0, 9))
def test_everybody_plays_different_areas_as_many_of_each_distance_and_nothing_twice(people, each, spare, seed):
    grid = Grid(5, 5)
    names = [f"a{n}" for n in range(4 * each + spare)]
    games = draw_games(names, grid, people, each, seed)
    assert overlaps(games) == 0
    for own in games:
        assert len({episode.area for episode in own}) == len(own) == 4 * each
        away = [distance(episode.start, episode.goal) for episode in own]
        assert sorted(away) == sorted([1, 2, 3, 4] * each)


@settings(max_examples=30, deadline=None)
@given(each=st.integers(1, 3), people=st.integers(2, 25), seed=st.integers(0, 9))
@example(each=2, people=13, seed=0)
def test_a_suite_that_is_just_enough_is_played_to_the_last_episode(each: int, people: int, seed: int):
    grid = Grid(5, 5)
    areas = max(each * people, 4 * each)
    episodes = episodes_of(per_distance([f"a{n}" for n in range(areas)], grid, seed=seed))
    games = assign(episodes, people, each, seed)
    assert overlaps(games) == 0
    assert areas > each * people or {episode for own in games for episode in own} == set(episodes)


def test_games_overlap_only_when_the_episodes_do_not_last():
    episodes = [Episode(area, (0, 0), (0, 1)) for area in range(5)]
    assert overlaps(assign(episodes, 5, 1, seed=0)) == 0
    assert overlaps(assign(episodes, 8, 1, seed=0)) == 3


def test_too_few_areas_are_an_error_for_people():
    grid = Grid(5, 5)
    with pytest.raises(AirlocError, match="fewer games with --per-distance"):
        draw_games(["a", "b"], grid, 1, 1, 0)


def test_a_study_is_one_private_file_that_holds_the_pixels(tmp_path: Path):
    study = small_study(tmp_path / "s.db")
    again = Study(tmp_path / "s.db")
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600
    assert [area.name for area in again.areas()] == [f"noise_{n}" for n in range(12)]
    assert all((a.image == b.image).all() for a, b in zip(study.areas(), noise_areas(12, Grid(3, 3)), strict=True))
    assert len({person.token for person in again.people()}) == 2
    assert all(len(person.token) >= 32 for person in again.people())
    assert len(again.admin) >= 32


def test_a_study_is_never_replaced_and_practice_shows_none_of_its_areas(tmp_path: Path):
    small_study(tmp_path / "s.db")
    with pytest.raises(AirlocError, match="never replaced"):
        small_study(tmp_path / "s.db")
    areas = noise_areas(3, Grid(3, 3))
    with pytest.raises(AirlocError, match="--practice"):
        create_study(tmp_path / "t.db", Rules("3x3", 6), areas, areas[:1], [])
    assert not (tmp_path / "t.db").exists()


def test_files_that_are_no_study_are_errors_for_people(tmp_path: Path):
    with pytest.raises(AirlocError, match="There is no study"):
        Study(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(AirlocError, match="is no study"):
        Study(tmp_path / "empty.db")


@pytest.fixture
def served(tmp_path: Path):
    """A study under way: its address, the study, and how its desk sees it."""
    study = small_study(tmp_path / "s.db")
    lobby = desk_of(study, ("lawnmower",))
    with running(make_app(lobby, limits=GENEROUS, more=[study_routes(lobby)])) as url:
        yield url, study, lobby


def test_without_a_link_nobody_plays(served):
    url, _, _ = served
    client = Client(url)
    for method, path, body in [("GET", "/api/me", None), ("POST", "/api/games", {}), ("POST", "/api/consent", {})]:
        answer = client.ask(method, path, body)
        assert (answer.status, answer.json["error"]) == (401, "no-link")
    assert "set-cookie" not in client.ask("GET", "/join/guessed").headers
    client.close()


def test_the_stages_come_in_order_and_none_comes_back(served):
    url, study, _ = served
    client = joined(url, study.people()[0].token)

    def stage() -> str:
        return client.ask("GET", "/api/me").json["stage"]

    assert stage() == "consent"
    assert client.ask("POST", "/api/games", {"kind": "free"}).status == 409
    assert client.ask("POST", "/api/games", {"kind": "recorded"}).status == 409
    assert client.ask("POST", "/api/consent", {"age": 200}).status == 422
    assert client.ask("POST", "/api/consent", {"name": "x"}).status == 422
    assert client.ask("POST", "/api/consent", {"age": 33, "gender": "woman"}).status == 200
    assert client.ask("POST", "/api/consent", {"age": 34}).status == 409
    assert stage() == "practice"
    practice = client.begin("free")
    assert client.ask("GET", "/api/me").json["current"] == practice["game"]
    assert client.ask("POST", "/api/games", {"kind": "recorded"}).status == 409
    assert client.ask("POST", "/api/practised").status == 200
    assert client.ask("POST", "/api/practised").status == 409
    assert stage() == "games"
    assert client.ask("POST", "/api/games", {"kind": "free"}).status == 409
    game = client.begin("recorded")
    assert game["slot"] == 0
    again = client.ask("POST", "/api/games", {"kind": "recorded"})
    assert (again.status, again.json["error"]) == (409, "game-under-way")
    person = study.people()[0]
    assert (person.age, person.gender, person.agreed, person.practised) == (33, "woman", True, True)
    client.close()


def test_practice_leaves_no_trace(served):
    url, study, _ = served
    client = joined(url, study.people()[0].token)
    client.ask("POST", "/api/consent", {})
    game = client.begin("free")
    client.move(game["game"], 0, 0)
    assert study.store.db.execute("SELECT count(*) FROM games").fetchone() == (0,)
    assert study.store.db.execute("SELECT count(*) FROM moves").fetchone() == (0,)
    client.close()


def test_one_participants_game_is_no_other_ones(served):
    url, study, _ = served
    first, second = (joined(url, person.token) for person in study.people())
    for client in (first, second):
        client.ask("POST", "/api/consent", {})
        client.ask("POST", "/api/practised")
    game = first.begin("recorded")["game"]
    assert second.ask("GET", f"/api/games/{game}").status == 404
    assert second.move(game, 0, 0).status == 404
    first.close()
    second.close()


def test_those_who_run_it_need_the_token(served):
    url, study, _ = served
    client = Client(url)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": study.admin[:-1]}):
        assert client.ask("GET", "/api/admin/people", headers=headers).status == 401
    answer = client.ask("GET", "/api/admin/people", headers={"Authorization": f"Bearer {study.admin}"})
    assert [(row["stage"], row["played"], row["games"]) for row in answer.json["people"]] == [("consent", 0, 2)] * 2
    assert answer.json["people"][0]["link"] == f"/join/{study.people()[0].token}"
    client.close()


def test_results_are_the_games_that_are_over(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=3)
    lobby = desk_of(study)
    with pytest.raises(AirlocError, match="Nobody has ended a game"):
        results_of(study)
    take_part(study, lobby)
    results = results_of(study)
    score = results.score()
    assert (score.agent, len(results.games), results.unfinished) == (HUMAN, 6, 0)
    facts = results.of_people(score)
    assert facts.people == 3
    ages = sorted(person.age for person in study.people())
    assert (facts.age.span, facts.age.median) == ((ages[0], ages[-1]), ages[1])
    assert sum(facts.gender.values()) == 3
    found = [game.ending == "found" for game in results.games]
    assert score.value("success") == sum(found) / 6
    assert [person.games for person in facts.success_by_person] == [2, 2, 2]
    lines = results.csv().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("person,age,gender,game,area,")


def test_a_game_lost_by_time_counts_with_all_of_its_moves_and_where_it_stopped(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1, seconds=0.0)
    lobby = desk_of(study)
    token = study.people()[0].token
    lobby.agree(token, None, None)
    lobby.end_practice(token)
    for _ in range(2):
        table, game = lobby.begin(token, recorded=True)
        assert table.referee.look(game.id, token).ending == "time"
    results = results_of(study)
    score = results.score()
    assert (score.value("success"), score.value("steps")) == (0.0, 6.0)
    assert score.value("residual_distance") == results.suite.distance.mean()
    facts = results.of_people(score)
    assert (facts.lost_by_time, facts.age.span, facts.gender) == (2, None, {"not said": 1})
