"""The page in a real browser: games won and lost, keyboard, touch, reload, two windows."""

import time

import pytest
from game_page import await_turn, click_move, held, start

from airloc.game.lobby import PlayRoom
from airloc.grid import MOVES
from game_server import move_away, move_towards, noise_world, play_room, playing

KEYS = ("ArrowUp", "PageUp", "ArrowRight", "PageDown", "ArrowDown", "End", "ArrowLeft", "Home")
NUMPAD = ("Numpad8", "Numpad9", "Numpad6", "Numpad3", "Numpad2", "Numpad1", "Numpad4", "Numpad7")


def win(page, room: PlayRoom, **how) -> int:
    moves = 0
    while held(room).ending is None:
        game = held(room)
        click_move(page, room, move_towards(game.position, game.episode.goal), **how)
        moves += 1
    page.wait_for_selector("#ending:not([hidden])")
    return moves


def test_a_game_won_shows_the_area_the_paths_and_the_score(open_page):
    room = play_room(agents=("airloc", "blind"))
    with playing(room) as url:
        page = open_page(url)
        start(page)
        assert page.locator("#board .cell.visited").count() == 1
        assert page.locator("#board .cell canvas").count() == 1, "what was not visited is not on the page"
        moves = win(page, room)
        assert page.inner_text("#ending-title") == f"Found in {moves} move{'' if moves == 1 else 's'}"
        assert [
            word for word in ("shortest way", "airloc", "blind") if word not in page.inner_text("#ending-text")
        ] == []
        labels = page.locator("#routes label").all_inner_texts()
        assert [label.strip() for label in labels] == ["Your path", "Shortest path", "airloc", "blind"]
        assert page.locator("#map polyline").count() == 8, "four paths, each on its casing"
        page.locator("#routes input").nth(2).uncheck()
        assert page.eval_on_selector_all("#map g", "all => all.filter(g => g.style.display === 'none').length") == 1
        box = page.locator("#map image").bounding_box()
        assert box is not None
        assert box["width"] > 300
        page.click("#again")
        page.wait_for_selector("#game:not([hidden])")
        assert held(room).turn == 0


def test_a_game_is_lost_by_moves(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        for left in range(room.world.budget, 0, -1):
            assert page.inner_text("#moves-left") == str(left)
            game = held(room)
            click_move(page, room, move_away(game.position, game.episode.goal, room.world.grid))
        page.wait_for_selector("#ending:not([hidden])")
        assert page.inner_text("#ending-title") == "Out of moves"
        assert held(room).ending == "moves"


def test_a_game_is_lost_by_time(open_page):
    room = play_room(seconds=1.5)
    with playing(room) as url:
        page = open_page(url)
        start(page)
        assert 0 < int(page.inner_text("#seconds-left")) <= 2
        page.wait_for_selector("#ending:not([hidden])")
        assert page.inner_text("#ending-title") == "Time is over"
        assert (held(room).ending, held(room).turn) == ("time", 0)


@pytest.mark.parametrize("keys", [KEYS, NUMPAD], ids=["arrows", "number pad"])
def test_the_keyboard_alone_is_enough(open_page, keys):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        page.keyboard.press("Enter")  # the button has the focus
        page.wait_for_selector("#game:not([hidden])")
        while held(room).ending is None:
            game = held(room)
            page.keyboard.press(keys[move_towards(game.position, game.episode.goal)])
            await_turn(room, game.turn + 1)
            if held(room).ending is None:
                page.wait_for_selector(f"#board .cell.here >> text='{game.turn + 1}'")
        page.wait_for_selector("#ending:not([hidden])")
        page.keyboard.press("Tab")  # from the headline into what is below it
        for _ in range(10):
            if page.evaluate("document.activeElement.id") == "again":
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#game:not([hidden])")
        assert held(room).turn == 0


def test_keys_that_lead_outside_cost_no_move(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        before = held(room)
        edge = [
            n
            for n in range(8)
            if not room.world.grid.contains(
                (before.position[0] + int(MOVES[n][0]), before.position[1] + int(MOVES[n][1]))
            )
        ]
        for move in edge:
            page.keyboard.press(KEYS[move])
        page.wait_for_timeout(200)
        assert held(room).turn == 0
        if edge:
            assert page.inner_text("#status") == "The area ends here"


def test_a_key_that_is_held_down_is_one_move(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        game = held(room)
        key = KEYS[move_away(game.position, game.episode.goal, room.world.grid)]
        for _ in range(5):
            page.keyboard.down(key)  # the second and later ones are repeats
        await_turn(room, 1)
        page.wait_for_timeout(200)
        page.keyboard.up(key)
        assert held(room).turn == 1


def test_tabbing_reaches_the_cells_around_and_each_has_a_name(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        position = held(room).position
        near = page.locator("#board .cell.near")
        assert near.count() == len(room.world.grid.neighbours(position))
        labels = [cell.get_attribute("aria-label") for cell in page.locator("#board .cell").all()]
        assert len(set(labels)) == room.world.grid.count
        assert sum("you are here" in label for label in labels) == 1
        assert sum(", go " in label for label in labels) == near.count()
        near.first.focus()
        page.keyboard.press("Enter")
        await_turn(room, 1)


def test_a_page_that_still_asks_leaves_before_its_server(open_page):
    with playing(play_room()) as url:
        open_page(url).evaluate("setInterval(() => fetch('/api/me'), 5) && null")


def test_touch_on_a_phone_is_enough(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        page.locator("#start").tap()
        page.wait_for_selector("#game:not([hidden])")
        cell = page.locator("#board .cell").first.bounding_box()
        assert cell["width"] >= 44, "large enough for a finger"
        board = page.locator("#board").bounding_box()
        assert board["y"] + board["height"] <= 844, "the whole area without scrolling"
        win(page, room, tap=True)
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_a_reload_in_the_middle_goes_on_where_it_was(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        game = held(room)
        click_move(page, room, move_away(game.position, game.episode.goal, room.world.grid))
        shown = page.eval_on_selector_all("#board .cell canvas", "all => all.map(c => c.toDataURL())")
        page.reload()
        page.wait_for_selector("#game:not([hidden])")
        assert page.inner_text("#moves-left") == str(room.world.budget - 1)
        assert page.eval_on_selector_all("#board .cell canvas", "all => all.map(c => c.toDataURL())") == shown
        assert held(room).id == game.id
        win(page, room)


def test_two_windows_on_one_game_see_the_same_game(open_page):
    room = play_room()
    with playing(room) as url:
        first = open_page(url)
        start(first)
        second = open_page(url, context=first.context, ready="#game:not([hidden])")
        game = held(room)
        first.bring_to_front()
        move = move_away(game.position, game.episode.goal, room.world.grid)
        click_move(first, room, move)
        # The second window still shows the start; what it sends is for a turn that is past, and changes nothing.
        second.evaluate("move => document.querySelectorAll('#board .cell.near')[0].click()", move)
        second.wait_for_selector("#board .cell.here >> text='1'")
        assert held(room).turn == 1
        assert "another window" in second.inner_text("#error")
        win(second, room)
        first.bring_to_front()
        first.evaluate("window.dispatchEvent(new Event('focus'))")
        first.wait_for_selector("#ending:not([hidden])")


def test_the_first_page_is_ready_within_a_second_and_small(open_page):
    room = play_room(noise_world(2))
    with playing(room) as url:
        sizes = []
        page = open_page(url)
        page.on("response", lambda response: sizes.append(len(response.body())))
        seconds = []
        for _ in range(3):
            page.goto("about:blank")
            sizes.clear()
            began = time.perf_counter()
            page.goto(url)
            page.wait_for_selector("html[data-ready]", state="attached")
            page.wait_for_selector("#start:visible")
            seconds.append(time.perf_counter() - began)
        assert min(seconds) < 1.0
        assert sum(sizes) < 200_000


def test_a_server_that_goes_away_is_told_to_the_player_and_the_game_goes_on_when_it_is_back(open_page):
    room = play_room()
    with playing(room) as url:
        page = open_page(url)
        start(page)
        page.route("**/api/**", lambda route: route.fulfill(status=409, body="no JSON at all"))
        game = held(room)
        move = move_away(game.position, game.episode.goal, room.world.grid)
        page.keyboard.press(KEYS[move])
        page.wait_for_selector("#error:not([hidden])")
        assert "trying again" in page.inner_text("#error")
        page.unroute("**/api/**")
        page.wait_for_selector("#error", state="hidden")
        click_move(page, room, move)
        assert held(room).turn == 1
