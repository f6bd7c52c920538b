"""The pages of a study and of watching agents in a real browser, and all pages under axe."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from airloc.agents.registry import AGENTS, make_agent
from airloc.game import Episode, PlayRoom, WatchService, watch_routes
from airloc.game.watch import record_search
from airloc.game.worker_pool import AgentCache
from browser_pages import SCREENS, check_accessibility, check_screens
from game_server import (
    LETTERS,
    Believer,
    ThreadWorkerPool,
    click_move,
    game_of,
    move_away,
    noise_sampler,
    play_room,
    playing,
    serving_study,
    small_study,
    start_game,
    win,
)

pytestmark = pytest.mark.browser

SAMPLER = noise_sampler(3)
EPISODE = Episode(1, (4, 0), (1, 3))
SEARCH = "area=noise_1&start=4,0&goal=1,3"


@pytest.fixture(scope="module")
def room() -> PlayRoom:
    return play_room(noise_sampler(budget=2))


@pytest.fixture(scope="module")
def url(room: PlayRoom) -> Iterator[str]:
    """A server to play and watch on; the lawnmower has a belief."""
    agents = AgentCache({"lawnmower": Believer(SAMPLER.grid)})
    routes = watch_routes(WatchService(SAMPLER, ThreadWorkerPool({"watch": SAMPLER}, agents)), ["lawnmower", "spiral"])
    with playing(room, routers=[routes]) as url:
        yield url


def test_a_participant_practises_and_plays_on_a_phone_and_the_results_are_there(open_page, airloc, tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=1)
    with serving_study(study, ("lawnmower",)) as (url, lobby):
        games_room, practice_room = lobby.rooms
        phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
        page = open_page(f"{url}join/{study.participants()[0].token}", **phone)
        press = page.tap
        assert "/join/" not in page.url, "the secret does not stay in the address bar"
        page.wait_for_selector("#consent:not([hidden])")
        assert page.inner_text("#consent-text").split() == study.config.consent.split()
        press("text=I do not agree")
        assert "Nothing about you has been recorded" in page.inner_text("#note-text")
        page.reload()
        page.wait_for_selector("#consent:not([hidden])")
        page.fill("#age", "31")
        page.select_option("#gender", "woman")
        press("#consent-form button")
        page.wait_for_selector("#welcome:not([hidden])")

        press("#start")
        page.wait_for_selector("#game:not([hidden])")
        win(page, practice_room, tap=True)
        press("#again")
        page.wait_for_selector("#game:not([hidden])")
        win(page, practice_room, tap=True)
        press("#stop-practice")
        assert "2 games are recorded" in page.inner_text("#confirm-text")
        press("#confirm-no")
        page.wait_for_selector("#welcome:not([hidden])")
        assert lobby.stage(study.participants()[0].token) == "practice"
        press("#to-recorded")
        press("#confirm-yes")
        for number in (1, 2):
            page.wait_for_selector("#game:not([hidden])")
            assert f"{number} of 2" in page.inner_text("#game-title")
            if number == 2:
                page.reload()
                page.wait_for_selector("#game:not([hidden])")
            win(page, games_room, tap=True)
            press("#again")
        page.wait_for_selector("#note:not([hidden])")
        assert "2 places" in page.inner_text("#note-text")
        page.reload()
        page.wait_for_selector("#note:not([hidden])")

    out = tmp_path / "human.json"
    outcome = airloc("study", "results", tmp_path / "s.db", "--agents", "lawnmower", "--json", out)
    assert (outcome.code, outcome.err) == (0, "")
    record = json.loads(out.read_text())
    assert (record["agent"], record["episodes"], record["success"]) == ("Human", 2, 1.0)
    assert record["study"]["age"]["span"] == [31, 31]


def test_a_participant_withdraws_by_keyboard_and_nothing_about_them_is_left(open_page, tmp_path: Path):
    path = tmp_path / "s.db"
    study = small_study(path, people=1)
    (person,) = study.participants()
    with serving_study(study) as (url, lobby):
        page = open_page(f"{url}join/{person.token}")
        for name in ("#age", "#gender"):
            page.keyboard.press("Tab")
            while page.evaluate("document.activeElement.id") != name[1:]:
                page.keyboard.press("Tab")
            page.keyboard.type("97" if name == "#age" else "w")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#welcome:not([hidden])")
        assert (study.participants()[0].age, study.participants()[0].gender) == (97, "woman")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#confirm:not([hidden])")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#game:not([hidden])")
        win(page, lobby.rooms[0], LETTERS)
        page.locator("#withdraw").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#confirm:not([hidden])")
        check_accessibility(page)
        page.click("text=Go back")
        page.wait_for_selector("#welcome:not([hidden])")
        assert len(study.store.games_of(person.token)) == 1
        page.click("#withdraw")
        page.click("#confirm-yes")
        page.wait_for_selector("#note:not([hidden])")
        assert "deleted" in page.inner_text("#note-text")
        page.reload()
        page.wait_for_selector("#note:not([hidden])")
        assert page.locator("#withdraw").is_hidden()
        (person,) = study.participants()
        assert (person.withdrawn, person.age, person.gender) == (True, None, None)
        assert study.store.recorded() == []
        assert study.store.db.execute("SELECT count(*) FROM moves").fetchone() == (0,)
        assert [one["stage"] for one in lobby.progress()] == ["withdrawn"]


def test_the_pages_of_a_study_are_accessible_and_need_a_link_or_a_token(open_page, tmp_path: Path):
    study = small_study(tmp_path / "s.db", people=2)
    with serving_study(study) as (url, _):
        page = open_page(f"{url}join/{study.participants()[0].token}")
        page.wait_for_selector("#consent:not([hidden])")
        check_screens(page)

        uninvited = open_page(url, ready="#note:not([hidden])")
        assert "link" in uninvited.inner_text("#note-text")
        check_screens(uninvited)

        admin = open_page(f"{url}admin", ready="#enter")
        check_screens(admin)
        admin.fill("#token", "wrong")
        admin.click("#enter button")
        admin.wait_for_selector("#error:not([hidden])")
        assert admin.locator("#people").is_hidden()
        admin.fill("#token", study.admin_token)
        admin.click("#enter button")
        admin.wait_for_selector("#people:not([hidden])")
        rows = admin.locator("#rows tr").all_inner_texts()
        assert [person.token in row for person, row in zip(study.participants(), rows, strict=True)] == [True, True]
        check_screens(admin)


def test_the_progress_is_shown_again_after_the_server_could_not_answer(open_page, tmp_path: Path):
    study, people = small_study(tmp_path / "s.db", people=2), "**/api/admin/people"
    with serving_study(study) as (url, _):
        admin = open_page(f"{url}admin", ready="#enter", ignore_console=True)  # Chromium writes the failed requests
        admin.clock.install()
        admin.reload()
        admin.route(people, lambda route: route.abort())
        admin.fill("#token", study.admin_token)
        admin.click("#enter button")
        expect(admin.locator("#error")).to_contain_text("The server does not respond")
        admin.unroute(people)
        admin.click("#enter button")
        expect(admin.locator("#rows tr")).to_have_count(2)
        admin.route(people, lambda route: route.fulfill(status=503, json={"message": "Try again in a moment."}))
        admin.clock.run_for(5000)
        expect(admin.locator("#error")).to_have_text("Try again in a moment.")
        admin.unroute(people)
        admin.clock.run_for(5000)
        expect(admin.locator("#error")).to_be_hidden()
        expect(admin.locator("#people")).to_be_visible()


def test_the_game_page_is_accessible(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    check_screens(page)
    start_game(page)
    for turn in range(2):
        game = game_of(page, room)
        click_move(page, room, move_away(game.position, game.episode.goal, room.sampler.grid))
        if turn == 0:
            check_screens(page)
    page.wait_for_selector("#ending:not([hidden])")
    check_screens(page)


def test_the_watch_page_is_accessible(open_page, url: str):
    page = open_page(f"{url}watch?area=noise_0&start=4,0&goal=1,3&agents=airloc,lawnmower")
    page.click("#forward")
    page.click("#more summary")
    check_screens(page)
    for _, size in SCREENS:
        page.set_viewport_size(size)
        panel, settings = (page.locator(name).bounding_box() for name in (".panel >> nth=0", ".controls"))
        narrow = size["width"] < 500
        assert panel["y"] < settings["y"] if narrow else panel["x"] < settings["x"], "panels come before settings"


def test_every_agent_has_a_name_for_people(open_page, url: str):
    page = open_page(f"{url}watch?{SEARCH}&agents=airloc,blind")
    names = page.evaluate(
        "agents => import('/static/agents.js').then(all => agents.map(agent => all.describe(agent)))", list(AGENTS)
    )
    assert [one for one in names if "-" in one["name"] or not one["line"]] == []
    assert len({one["name"] for one in names}) == len(AGENTS)
    assert page.locator(".panel h2").all_inner_texts()[0].startswith("AiRLoc")
    assert "The paper's agent" in page.inner_text(".panel[data-agent=airloc] .about")
    assert page.get_attribute("#goal-picture svg", "viewBox") == "156 52 48 48", "the goal's cell of the area"


def test_a_search_is_played_to_the_end_shared_and_saved(open_page, url: str):
    page = open_page(f"{url}watch?{SEARCH}&agents=lawnmower,spiral")
    assert page.locator(".panel").count() == 2
    assert page.locator(".panel[data-agent=lawnmower] .belief").count() == 24, "all cells except the start"
    assert page.locator(".panel[data-agent=spiral] .belief").count() == 0
    page.click("#forward")
    assert page.get_attribute("html", "data-step") == "1"
    page.click("#back")
    assert page.get_attribute("html", "data-step") == "0"
    page.locator("#speed").fill("8")
    page.click("#play")
    expect(page.locator("#play")).to_have_text("Pause")
    page.click("#play")
    paused = page.get_attribute("html", "data-step")
    page.wait_for_timeout(300)
    assert page.get_attribute("html", "data-step") == paused
    page.click("#play")
    steps = max(len(record_search(make_agent(name), SAMPLER, EPISODE).path) - 1 for name in ("lawnmower", "spiral"))
    page.wait_for_selector(f"html[data-step='{steps}']", state="attached")
    assert [word for word in ("lawnmower", "spiral", "found") if word not in page.inner_text("#status")] == []
    expect(page.locator("#play")).to_have_text("Play")

    with page.expect_download() as saved:
        page.click("#gif")
    assert saved.value.suggested_filename == "search.gif"
    shared = open_page(page.url)
    assert shared.locator(".panel").count() == 2
    assert (shared.input_value("#start"), shared.input_value("#goal")) == ("4,0", "1,3")


def test_start_goal_area_and_agents_are_chosen_on_the_page(open_page, url: str):
    page = open_page(f"{url}watch")
    assert page.locator(".panel").count() == 2
    cells = page.locator("#picker rect[fill='#ffffff']")
    assert cells.count() == 25
    cells.nth(0).click()
    page.locator("#picker rect[fill='#ffffff']").nth(24).click()
    expect(page).to_have_url(re.compile("start=0%2C0&goal=4%2C4"))
    page.select_option("#area", "noise_2")
    expect(page).to_have_url(re.compile("noise_2"))
    page.check("input[value=blind]")
    page.wait_for_selector(".panel[data-agent=blind]")
    page.click("#random")
    page.wait_for_selector(".panel[data-agent=blind]")
    for name in ("lawnmower", "spiral"):
        page.uncheck(f"input[value={name}]")
    expect(page.locator(".panel")).to_have_count(1)
    page.click("input[value=blind]")
    expect(page.locator("#error")).to_have_text("Choose at least one agent.")
    page.click("#random")
    expect(page.locator("#error")).to_be_hidden()
    expect(page.locator(".panel[data-agent=blind]")).to_have_count(1)


def test_a_search_that_could_not_be_loaded_leaves_no_other_one_in_its_place(open_page, url: str):
    page = open_page(f"{url}watch?{SEARCH}&agents=lawnmower", ignore_console=True)  # Chromium writes the failed request
    page.route("**/api/watch/search?*", lambda route: route.abort())
    page.click("#random")
    expect(page.locator("#error")).to_contain_text("The server does not respond")
    expect(page.locator(".panel")).to_have_count(0)
    page.unroute("**/api/watch/search?*")
    page.click("#random")
    expect(page.locator(".panel")).to_have_count(1)
    expect(page.locator("#error")).to_be_hidden()
