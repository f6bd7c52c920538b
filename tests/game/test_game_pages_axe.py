"""Every screen, checked by axe: no serious finding, light and dark, wide and narrow."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from game_page import click_move, held, start
from game_studies import lobby_of, small_study

from airloc.game.app import make_app
from airloc.game.routes import study_routes, watch_routes
from airloc.game.watch import WatchService
from airloc.game.worker_pool import ThreadWorkerPool
from game_server import NO_LIMITS, move_away, noise_world, play_room, playing, running

SCREENS = [
    {"viewport": {"width": 1200, "height": 850}},
    {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
]


def check(page) -> None:
    """Fail on what axe calls serious or critical, and on moderate findings too."""
    found = Axe().run(page).response["violations"]
    assert [
        (v["id"], v["impact"], [n["html"][:120] for n in v["nodes"]]) for v in found if v["impact"] != "minor"
    ] == []


@pytest.mark.parametrize("screen", SCREENS, ids=["wide and light", "narrow and dark"])
def test_playing_has_no_serious_finding(open_page, screen):
    room = play_room(noise_world(budget=2))
    with playing(room) as url:
        page = open_page(url, **screen)
        check(page)
        start(page)
        for _ in range(2):
            game = held(room)
            click_move(page, room, move_away(game.position, game.episode.goal, room.world.grid))
            if game.turn == 0:
                check(page)
        page.wait_for_selector("#ending:not([hidden])")
        check(page)


@pytest.mark.parametrize("screen", SCREENS, ids=["wide and light", "narrow and dark"])
def test_watching_has_no_serious_finding(open_page, screen):
    world = noise_world(2)
    watch = watch_routes(WatchService(world, ThreadWorkerPool({"watch": world})), ["airloc", "blind"])
    with playing(play_room(), routers=[watch]) as url:
        page = open_page(f"{url}watch?area=noise_0&start=4,0&goal=1,3&agents=airloc,blind", **screen)
        page.click("#forward")
        page.click("#more summary")
        check(page)


@pytest.mark.parametrize("screen", SCREENS, ids=["wide and light", "narrow and dark"])
def test_the_study_has_no_serious_finding(open_page, tmp_path: Path, screen):
    study = small_study(tmp_path / "s.db", people=1)
    lobby = lobby_of(study)
    with running(make_app(lobby, limits=NO_LIMITS, routers=[study_routes(lobby)])) as url:
        page = open_page(f"{url}join/{study.participants()[0].token}", **screen)
        page.wait_for_selector("#consent:not([hidden])")
        check(page)
        admin = open_page(f"{url}admin", ready="#enter", **screen)
        check(admin)
        admin.fill("#token", study.admin_token)
        admin.click("#enter button")
        admin.wait_for_selector("#people:not([hidden])")
        check(admin)
