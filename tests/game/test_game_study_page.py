"""A participant's way through a study in a real browser, and what comes out at the end."""

import json
from pathlib import Path

import pytest
from game_studies import lobby_of, small_study

from airloc.game.app import make_app
from airloc.game.routes import study_routes
from airloc.grid import MOVES
from game_server import NO_LIMITS, move_towards, running


def win(page, store) -> None:
    """Click along a shortest path to the end."""
    page.wait_for_selector("#game:not([hidden])")
    number = page.evaluate("fetch('/api/me').then(r => r.json()).then(me => me.current)")
    game = store.game(number)
    position = game.position
    for turn in range(1, 10):
        move = move_towards(position, game.episode.goal)
        position = (position[0] + int(MOVES[move][0]), position[1] + int(MOVES[move][1]))
        page.locator("#board .cell").nth(position[0] * 3 + position[1]).click()
        if position == game.episode.goal:
            break
        page.wait_for_selector(f"#board .cell.here >> text='{turn}'")
    page.wait_for_selector("#ending:not([hidden])")


@pytest.mark.parametrize("age", ["31", ""])
def test_practice_then_the_games_then_the_results(open_page, airloc, tmp_path: Path, age: str):
    study = small_study(tmp_path / "s.db", people=1)
    lobby = lobby_of(study, ("lawnmower",))
    with running(make_app(lobby, limits=NO_LIMITS, routers=[study_routes(lobby)])) as url:
        page = open_page(f"{url}join/{study.participants()[0].token}")
        assert "/join/" not in page.url, "the secret does not stay in the address bar"
        page.wait_for_selector("#consent:not([hidden])")
        assert "Nothing else about you is recorded" in page.inner_text("#consent-text")
        page.fill("#age", age)
        page.select_option("#gender", "woman" if age else "")
        page.click("#consent-form button")
        page.wait_for_selector("#welcome:not([hidden])")
        assert page.inner_text("#welcome-title") == "Practice"

        page.click("#start")
        win(page, lobby._practice.referee.store)
        page.click("#again")  # once more, as long as they like
        win(page, lobby._practice.referee.store)
        page.click("#stop-practice")

        for number in (1, 2):
            if number == 1:
                page.wait_for_selector("#welcome:not([hidden])")
                assert page.inner_text("#welcome-title") == "Game 1 of 2"
                page.click("#start")
            page.wait_for_selector("#game:not([hidden])")
            assert page.inner_text("#game-title") == f"Game {number} of 2"
            if number == 2:
                page.reload()
            win(page, study.store)
            page.click("#again")
        page.wait_for_selector("#note:not([hidden])")
        assert page.inner_text("#note-title") == "Thank you"
        assert "found 2 places" in page.inner_text("#note-text")
        page.reload()
        page.wait_for_selector("#note:not([hidden])")

    out = tmp_path / "human.json"
    outcome = airloc("study", "results", tmp_path / "s.db", "--agents", "lawnmower", "--json", out)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Human" in outcome.out
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"], record["success"]) == ("Human", 2, 1.0)
    assert record["study"]["age"]["span"] == ([31, 31] if age else None)


def test_without_a_link_the_page_says_what_is_missing(chromium, tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1)
    lobby = lobby_of(study)
    with running(make_app(lobby, limits=NO_LIMITS, routers=[study_routes(lobby)])) as url:
        page = chromium.new_page()
        page.goto(url)
        page.wait_for_selector("#note:not([hidden])")
        assert "open the link that you were given" in page.inner_text("#note-text")
        page.close()


def test_those_who_run_it_see_how_far_people_are(open_page, tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=2)
    lobby = lobby_of(study)
    with running(make_app(lobby, limits=NO_LIMITS, routers=[study_routes(lobby)])) as url:
        page = open_page(f"{url}admin", ready="#enter")
        page.fill("#token", study.admin_token)
        page.click("#enter button")
        page.wait_for_selector("#people:not([hidden])")
        rows = page.locator("#rows tr").all_inner_texts()
        assert len(rows) == 2
        assert "not begun" in rows[0]
        assert study.participants()[0].token in rows[0]
