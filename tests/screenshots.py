"""Take screenshots of the pages on procedural areas in a real browser.

`PYTHONPATH=src python tests/screenshots.py` takes those of docs/play.md. With a folder, it takes every page on every
screen, in light and dark colours, to look at.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from airloc.areas.synthetic import Synthetic
from airloc.game import Episode, PlayRoom, WatchService, watch_routes
from airloc.grid import Grid
from airloc.task.sampling import EpisodeSampler
from game_server import ThreadWorkerPool, play_room, playing, serving_study, small_study

OUT = Path(__file__).parent.parent / "docs" / "img"
EPISODE = Episode(0, (3, 1), (1, 3))
KEYS = ("ArrowRight", "c", "e", "q")
LAST = ("q", "ArrowRight")
MISSES = ("ArrowDown", "ArrowUp") * 5
DESK = {"viewport": {"width": 1120, "height": 720}}
PHONE = {"viewport": {"width": 390, "height": 700}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
SCREENS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "tablet": {"viewport": {"width": 768, "height": 1024}, "has_touch": True},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "landscape": {"viewport": {"width": 844, "height": 390}, "has_touch": True},
    "zoomed": {"viewport": {"width": 640, "height": 400}},
}


def sampler_of(grid: Grid) -> EpisodeSampler:
    """Return the areas of the screenshots."""
    areas = list(Synthetic(count=3, seed=3, regime="city").areas(grid))
    return EpisodeSampler.build(areas, grid, None, "per-distance", None)


def take_docs(browser: Any, out: Path) -> None:
    """Take the screenshots of docs/play.md."""
    sampler = sampler_of(Grid(5, 5))
    room = play_room(sampler, agents=("airloc", "blind"))
    watch = WatchService(sampler, ThreadWorkerPool({"watch": sampler}))
    with playing(room, routers=[watch_routes(watch, ["airloc", "blind"])]) as url:
        page = opened(browser.new_page(**DESK), url)
        page.screenshot(path=out / "play-welcome.jpg", quality=85)
        for name, screen in (("play-phone", PHONE), ("play-desk", DESK)):
            page = begin(browser.new_page(**screen), url, room)
            press(page, KEYS)
            page.screenshot(path=out / f"{name}.jpg", quality=85)
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=out / "play-dark.jpg", quality=85)
        page.emulate_media(color_scheme="light")
        press(page, LAST)
        page.wait_for_selector("#routes label:nth-of-type(4)")
        page.wait_for_timeout(500)
        page.screenshot(path=out / "play-end.jpg", quality=85, full_page=True)
        page = browser.new_page(viewport={"width": 1260, "height": 860})
        opened(page, f"{url}watch?area={sampler.names[2]}&start=4,0&goal=1,3&agents=airloc,belief,blind")
        page.click("#forward")
        page.wait_for_timeout(500)
        page.screenshot(path=out / "watch.jpg", quality=85)


def take_screens(browser: Any, out: Path) -> None:
    """Take every page on every screen, light and dark."""
    small, large = sampler_of(Grid(5, 5)), sampler_of(Grid(12, 12))
    room, large_room = play_room(small, agents=("belief", "blind")), play_room(large, agents=())
    watch = WatchService(small, ThreadWorkerPool({"watch": small}))
    routes = [watch_routes(watch, ["airloc", "belief"])]
    with (
        tempfile.TemporaryDirectory() as folder,
        playing(room, routers=routes) as url,
        playing(large_room) as large_url,
        serving_study(small_study(Path(folder) / "s.db", people=20)) as (study_url, lobby),
    ):
        tokens = [person.token for person in lobby.study.participants()]
        for scheme in ("light", "dark"):
            for screen, options in SCREENS.items():
                context = browser.new_context(color_scheme=scheme, **options)
                link = f"{study_url}join/{tokens.pop()}"
                for name, page in _pages(context, url, room, large_url, large_room, link, study_url, lobby):
                    page.wait_for_timeout(200)
                    page.screenshot(path=out / f"{name}-{screen}-{scheme}.png", full_page=name != "game")
                context.close()


def _pages(
    context: Any, url: str, room: PlayRoom, large_url: str, large_room: PlayRoom, link: str, study_url: str, lobby: Any
) -> Iterator[tuple[str, Any]]:
    yield "welcome", opened(context.new_page(), url)
    page = begin(context.new_page(), url, room)
    press(page, KEYS)
    yield "game", page
    press(page, LAST)
    page.wait_for_selector("#routes label:nth-of-type(4)")
    yield "found", page
    page = begin(context.new_page(), url, room, Episode(0, (3, 1), (0, 0)))
    press(page, MISSES)
    page.wait_for_selector("#routes label:nth-of-type(4)")
    yield "lost", page
    page = opened(
        context.new_page(), f"{url}watch?area={room.sampler.names[2]}&start=4,0&goal=1,3&agents=airloc,belief"
    )
    page.click("#forward")
    yield "watch", page
    page = begin(context.new_page(), large_url, large_room, Episode(0, (6, 5), (2, 3)))
    press(page, KEYS)
    yield "large", page
    yield from _study_pages(context, link, study_url, lobby)


def _study_pages(context: Any, link: str, url: str, lobby: Any) -> Iterator[tuple[str, Any]]:
    page = opened(context.new_page(), link)
    yield "consent", page
    page.click("#consent-form .main")
    page.wait_for_selector("#welcome:not([hidden])")
    yield "practice", page
    page.click("#to-recorded")
    yield "confirm", page
    page.click("#confirm-no")
    page.click("#withdraw")
    yield "withdraw", page
    page.click("#confirm-yes")
    page.wait_for_selector("#note:not([hidden])")
    yield "withdrawn", page
    page = context.new_page()
    page.goto(f"{url}admin")
    page.fill("#token", lobby.study.admin_token)
    page.click("#enter button")
    page.wait_for_selector("#people:not([hidden])")
    yield "admin", page


def opened(page: Any, url: str) -> Any:
    """Open a page."""
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def begin(page: Any, url: str, room: PlayRoom, episode: Episode = EPISODE) -> Any:
    """Open the page on a new game."""
    opened(page, url)
    name = f"airloc-{urlsplit(url).port}"
    player = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == name)
    room.begin(player, episode)
    page.reload()
    page.wait_for_selector("#game:not([hidden])")
    return page


def press(page: Any, keys: tuple[str, ...]) -> None:
    """Make moves at a human pace."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(250)


def main(out: Path | None = None) -> None:
    """Take the screenshots of the documentation, or all screens."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if out is None:
            take_docs(browser, OUT)
        else:
            take_screens(browser, out)
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
