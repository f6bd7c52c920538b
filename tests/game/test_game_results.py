"""Results of a study: finished games count, with the moves of games that ran out of time."""

from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.game import PlayRoom, Results, Room, Store, StudyLobby
from airloc.game.results import HUMAN
from game_server import lobby_of, small_study, take_part


def test_results_are_the_finished_games(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=3)
    lobby = lobby_of(study)
    with pytest.raises(AirlocError, match=r"s\.db"):
        Results.read(study)
    take_part(study, lobby)
    results = Results.read(study)
    score = results.score()
    assert (score.agent, len(results.games), results.unfinished) == (HUMAN, 6, 0)
    summary = results.summary(score)
    assert summary.people == 3
    ages = sorted(person.age for person in study.participants())
    assert (summary.age.span, summary.age.median) == ((ages[0], ages[-1]), ages[1])
    assert sum(summary.gender.values()) == 3
    found = [game.ending == "found" for game in results.games]
    assert score.value("success") == sum(found) / 6
    assert [person.games for person in summary.success_by_person] == [2, 2, 2]
    lines = results.csv().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("person,age,gender,game,area,")


def test_a_game_out_of_time_counts_as_not_found_with_all_of_its_moves_and_one_without_a_page_does_not(tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1, each=2)
    samplers, now = study.samplers(), [0.0]
    baselines = lobby_of(study).rooms[0].baselines
    room = Room(samplers["games"], study.store, 60.0, baselines, clock=lambda: now[0])
    lobby = StudyLobby(study, room, PlayRoom(samplers["practice"], Store(), 60.0, baselines))
    token = study.participants()[0].token
    lobby.give_consent(token, None, None)
    lobby.end_practice(token)
    for wait, ending in ((61, "time"), (71, "disconnected"), (61, "time")):
        _, game = lobby.begin(token, recorded=True)
        now[0] += wait
        assert room.game(game.id, token).ending == ending
    _, game = lobby.begin(token, recorded=True)
    room.leave(game.id, token)
    now[0] += 71
    room.end_late_games()
    results = Results.read(study)
    score = results.score()
    assert (score.value("success"), score.value("steps")) == (0.0, 6.0)
    assert score.value("residual_distance") == results.suite.distance.mean()
    summary = results.summary(score)
    assert (summary.games, summary.left, summary.disconnected, summary.unfinished) == (2, 1, 1, 0)
    endings = [line.split(",")[10] for line in results.csv().splitlines()]
    assert endings == ["ending", "time", "disconnected", "time", "left"]
    assert (summary.lost_by_time, summary.age.span, summary.gender) == (2, None, {"not said": 1})
