"""The game page in a real browser: won and lost games, mouse, keyboard, touch, screens, reload, two windows."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from playwright.sync_api import expect

from airloc.game import Baselines, Episode, PlayRoom, Store
from airloc.game.worker_pool import play_agents
from airloc.task.sampling import EpisodeSampler
from game_server import (
    LETTERS,
    ThreadWorkerPool,
    cell_after,
    click_move,
    game_of,
    move_away,
    noise_sampler,
    play_room,
    playing,
    start_game,
    wait_for_turn,
    win,
)

pytestmark = pytest.mark.browser

KEYS = ("ArrowUp", "PageUp", "ArrowRight", "PageDown", "ArrowDown", "End", "ArrowLeft", "Home")
NUMPAD = ("Numpad8", "Numpad9", "Numpad6", "Numpad3", "Numpad2", "Numpad1", "Numpad4", "Numpad7")

SCREENS = [(1280, 800), (768, 1024), (390, 844), (844, 390), (640, 400)]


@pytest.fixture(scope="module")
def room() -> PlayRoom:
    return play_room(agents=("lawnmower", "blind"))


@pytest.fixture(scope="module")
def url(room: PlayRoom) -> Iterator[str]:
    with playing(room) as url:
        yield url


def begin(page: Any, room: PlayRoom, episode: Episode) -> None:
    """Begin a game on this episode."""
    start_game(page)
    game = game_of(page, room)
    room.delete(game.id)
    room.begin(game.player, episode)
    page.reload()
    page.wait_for_selector("#game:not([hidden])")


def test_a_won_game_shows_the_area_the_paths_and_the_result(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    assert page.locator("#board .cell.visited").count() == 1
    assert page.locator("#board .cell canvas").count() == 1, "unvisited patches are not on the page"
    moves = win(page, room)
    assert f"You found it in {moves} move" in page.inner_text("#ending-title")
    assert f"The shortest route takes {moves} move" in page.inner_text("#ending-text")
    expect(page.locator("#routes label")).to_have_count(4)  # the player, a shortest path, two agents
    assert [
        word for word in ("The lawnmower", "The best blind path") if word not in page.inner_text("#ending-agents")
    ] == []
    assert page.locator("#map polyline").count() == 8, "four paths, each with its outline"
    assert page.inner_text(".marks").split()[:4] == ["S", "start", "G", "goal"]
    page.locator("#routes input").nth(2).uncheck()
    assert page.eval_on_selector_all("#map g", "all => all.filter(g => g.style.display === 'none').length") == 1
    assert page.locator("#map image").bounding_box()["width"] > 300
    page.click("#again")
    page.wait_for_selector("#game:not([hidden])")
    assert game_of(page, room).turn == 0


class SlowAgents(ThreadWorkerPool):
    """Lets no agent play before `released` is set."""

    def __init__(self, samplers: Mapping[str, EpisodeSampler]) -> None:
        super().__init__(samplers)
        self.released = threading.Event()

    async def run(self, job, sampler: str, *args: Any, **kwargs: Any) -> Any:
        if job is play_agents:
            await asyncio.to_thread(self.released.wait, 20)
        return await super().run(job, sampler, *args, **kwargs)


def test_the_ending_is_shown_at_once_and_the_agents_follow(open_page):
    sampler = noise_sampler(1)
    pool = SlowAgents({"play": sampler})
    room = PlayRoom(sampler, Store(), 60.0, Baselines(("lawnmower",), pool, "play"))
    with playing(room) as url:
        page = open_page(url)
        start_game(page)
        goal = page.evaluate("document.querySelector('#goal').toDataURL()")
        moves = win(page, room)
        assert page.inner_text("#ending-title").startswith(f"You found it in {moves} move")
        page.wait_for_function("document.querySelector('#map image').getBBox().width > 200")
        assert page.evaluate("document.querySelector('#ending-goal').toDataURL()") == goal
        assert "searching" in page.inner_text("#ending-agents")
        page.locator("#routes input").first.uncheck()
        pool.released.set()
        expect(page.locator("#routes label")).to_have_count(3)
        assert "lawnmower" in page.inner_text("#ending-agents")
        assert not page.locator("#routes input").first.is_checked(), "what the player has hidden stays hidden"
        page.keyboard.press("Enter")
        page.wait_for_selector("#game:not([hidden])")
        assert game_of(page, room).turn == 0


def test_the_frame_of_a_goal_in_the_corner_is_whole(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    begin(page, room, Episode(0, (1, 1), (0, 0)))
    win(page, room)
    corners = """all => all.map(one => {
        const box = one.getBBox(), rim = one.getAttribute("stroke-width") / 2;
        return [box.x - rim, box.y - rim];
    })"""
    left, top, *_ = map(float, page.get_attribute("#map svg", "viewBox").split())
    assert all(x >= left and y >= top for x, y in page.eval_on_selector_all("#map rect", corners))


def test_a_game_ends_when_no_moves_are_left(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    for left in range(room.sampler.budget, 0, -1):
        assert page.inner_text("#moves-left") == str(left)
        game = game_of(page, room)
        click_move(page, room, move_away(game.position, game.episode.goal, room.sampler.grid))
    page.wait_for_selector("#ending:not([hidden])")
    assert game_of(page, room).ending == "moves"
    assert page.inner_text("#ending-title") == "No moves left: you did not find it"


def test_a_game_ends_when_no_time_is_left(open_page):
    room = play_room(seconds=1.5)
    with playing(room) as url:
        page = open_page(url)
        start_game(page)
        assert 0 < int(page.inner_text("#seconds-left")) <= 2
        page.wait_for_selector("#ending:not([hidden])")
        assert (game_of(page, room).ending, game_of(page, room).turn) == ("time", 0)
        assert page.inner_text("#ending-title") == "Time's up: you did not find it"


def test_the_keyboard_is_enough_to_play_with_arrows_letters_or_the_number_pad(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    page.keyboard.press("Enter")  # the button has the focus
    page.wait_for_selector("#game:not([hidden])")
    for keys in (KEYS, LETTERS, NUMPAD):
        win(page, room, keys)
        page.wait_for_selector("#again:enabled")
        page.keyboard.press("Enter")
        page.wait_for_selector("#game:not([hidden])")
        assert game_of(page, room).turn == 0


def test_keys_that_lead_outside_cost_no_move(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    position, grid = game_of(page, room).position, room.sampler.grid
    outside = [move for move in range(8) if not grid.contains(cell_after(position, move))]
    for move in outside:
        page.keyboard.press(KEYS[move])
    page.wait_for_timeout(200)
    assert game_of(page, room).turn == 0
    assert not outside or "ends" in page.inner_text("#status")


def test_a_key_held_down_makes_one_move(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    game = game_of(page, room)
    key = KEYS[move_away(game.position, game.episode.goal, room.sampler.grid)]
    for _ in range(5):
        page.keyboard.down(key)  # all but the first are repeats
    wait_for_turn(page, room, 1)
    page.wait_for_timeout(200)
    page.keyboard.up(key)
    assert game_of(page, room).turn == 1


def test_tab_reaches_the_neighbouring_cells_and_every_cell_has_its_own_name(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    near = page.locator("#board .cell.near")
    assert near.count() == len(room.sampler.grid.neighbours(game_of(page, room).position))
    labels = [cell.get_attribute("aria-label") for cell in page.locator("#board .cell").all()]
    assert len(set(labels)) == room.sampler.grid.count
    assert sum("you are here" in label for label in labels) == 1
    assert sum(", go " in label for label in labels) == near.count()
    near.first.focus()
    page.keyboard.press("Enter")
    wait_for_turn(page, room, 1)


def test_the_board_fits_on_the_screen_and_both_pictures_have_one_size(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        assert page.locator("#start").bounding_box()["y"] < height
    start_game(page)
    game = game_of(page, room)
    click_move(page, room, move_away(game.position, game.episode.goal, room.sampler.grid))
    shown = "query => document.querySelector(query).toDataURL()"
    assert page.evaluate(shown, "#glimpse") == page.evaluate(shown, "#board .here canvas")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        board, side, goal, glimpse = (
            page.locator(name).bounding_box() for name in ("#board", ".side", "#goal", "#glimpse")
        )
        assert board["y"] + board["height"] <= height
        assert board["width"] >= (600 if min(width, height) > 700 else 290)
        beside = side["x"] + side["width"] <= board["x"]
        assert beside == (width > height), "pictures beside the board on wide screens"
        assert beside or side["y"] + side["height"] <= board["y"]
        assert (goal["width"], goal["height"]) == (glimpse["width"], glimpse["height"])
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_a_description_of_the_goal_is_shown_whole_beside_the_board(open_page):
    sampler = noise_sampler()
    text = "Loosely built houses with red roofs, and more of them to the east, " * 4 + "<b>a pond</b>"
    texts = {(name, cell): text for name in sampler.names for cell in sampler.grid.cells()}
    with playing(play_room(sampler, texts=texts)) as url:
        page = open_page(url)
        start_game(page)
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            words, glimpse, board = (page.locator(name).bounding_box() for name in ("#goal-text", "#glimpse", "#board"))
            assert page.inner_text("#goal-text") == text
            for name in ("#goal-text", ".counts"):
                fits = "node => node.scrollHeight <= node.clientHeight && node.scrollWidth <= node.clientWidth"
                assert page.locator(name).evaluate(fits)
            assert words["width"] >= 200
            assert words["x"] + words["width"] <= glimpse["x"] or words["y"] + words["height"] <= glimpse["y"]
            assert board["y"] + board["height"] <= height
            assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_the_numbers_do_not_hide_the_cells_of_a_large_board_on_a_phone(open_page):
    room = play_room(noise_sampler(1, grid="12x12"))
    with playing(room) as url:
        page = open_page(url, viewport={"width": 390, "height": 844})
        start_game(page)
        cell, mark = (page.locator(f"#board .here{name}").bounding_box() for name in ("", " b"))
        assert mark["width"] * mark["height"] < 0.2 * cell["width"] * cell["height"]
        assert cell["width"] >= 24


def test_keys_are_explained_only_where_there_are_keys(open_page, url: str):
    assert open_page(url).locator(".keys").is_visible()
    touch = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    assert open_page(url, **touch).locator(".keys").is_hidden()


def test_touch_on_a_phone_is_enough_to_play(open_page, url: str, room: PlayRoom):
    page = open_page(url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.locator("#start").tap()
    page.wait_for_selector("#game:not([hidden])")
    assert page.locator("#board .cell").first.bounding_box()["width"] >= 44, "large enough for a finger"
    board = page.locator("#board").bounding_box()
    assert board["y"] + board["height"] <= 844, "the whole area is visible without scrolling"
    win(page, room, tap=True)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    page.locator("#again").tap()
    page.wait_for_selector("#game:not([hidden])")


def test_a_game_continues_after_a_reload(open_page, url: str, room: PlayRoom):
    canvases = "all => all.map(c => c.toDataURL())"
    page = open_page(url)
    start_game(page)
    game = game_of(page, room)
    click_move(page, room, move_away(game.position, game.episode.goal, room.sampler.grid))
    before = page.eval_on_selector_all("#board .cell canvas", canvases)
    page.reload()
    page.wait_for_selector("#game:not([hidden])")
    assert page.inner_text("#moves-left") == str(room.sampler.budget - 1)
    assert page.eval_on_selector_all("#board .cell canvas", canvases) == before
    assert game_of(page, room).id == game.id
    win(page, room)


def test_the_page_tells_the_server_when_it_is_closed_during_a_game(open_page, url: str, room: PlayRoom, monkeypatch):
    left = threading.Event()
    page = open_page(url)
    start_game(page)
    game = game_of(page, room)
    monkeypatch.setattr(room, "leave", lambda *who: left.set() if who == (game.id, game.player) else None)
    page.close()
    assert left.wait(10)


def test_two_windows_show_the_same_game(open_page, url: str, room: PlayRoom):
    first = open_page(url)
    start_game(first)
    second = open_page(url, context=first.context, ready="#game:not([hidden])")
    game = game_of(first, room)
    first.bring_to_front()
    click_move(first, room, move_away(game.position, game.episode.goal, room.sampler.grid))
    # The second window still shows the start; its move is for a past turn and changes nothing.
    second.evaluate("document.querySelectorAll('#board .cell.near')[0].click()")
    second.wait_for_selector("#board .cell.here >> text='1'")
    assert game_of(first, room).turn == 1
    assert "another window" in second.inner_text("#error")
    win(second, room)
    first.bring_to_front()
    first.evaluate("window.dispatchEvent(new Event('focus'))")
    first.wait_for_selector("#ending:not([hidden])")


def test_the_page_is_small(open_page, url: str):
    page, sizes = open_page(url), []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector("#start:visible")
    assert sum(sizes) < 200_000


def test_a_game_continues_when_the_server_is_back(open_page, url: str, room: PlayRoom):
    page = open_page(url)
    start_game(page)
    page.route("**/api/**", lambda route: route.fulfill(status=409, body="no JSON at all"))
    game = game_of(page, room)
    move = move_away(game.position, game.episode.goal, room.sampler.grid)
    page.keyboard.press(KEYS[move])
    page.wait_for_selector("#error:not([hidden])")
    page.unroute("**/api/**")
    page.wait_for_selector("#error", state="hidden")
    click_move(page, room, move)
    assert game_of(page, room).turn == 1


def test_open_pages_close_before_their_server(open_page):
    with playing(play_room(noise_sampler(1))) as url:
        open_page(url).evaluate("setInterval(() => fetch('/api/me'), 5) && null")
