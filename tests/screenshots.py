"""Take the screenshots of docs/play.md: `PYTHONPATH=src python tests/screenshots.py [FOLDER]`.

A game on procedural areas in a real browser: on a desktop, on a phone, in dark mode and at its end, and the watch page.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from airloc.areas.synthetic import Synthetic
from airloc.game import Episode, PlayRoom, WatchService, watch_routes
from airloc.grid import Grid
from airloc.task.sampling import EpisodeSampler
from game_server import ThreadWorkerPool, play_room, playing

OUT = Path(__file__).parent.parent / "docs" / "img"
GRID = Grid(5, 5)
EPISODE = Episode(0, (3, 1), (1, 3))
KEYS = ("ArrowRight", "PageDown", "PageUp", "Home")
LAST = ("Home", "ArrowRight")
DESK = {"viewport": {"width": 1120, "height": 720}}
PHONE = {"viewport": {"width": 390, "height": 700}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
DARK = {**DESK, "color_scheme": "dark"}


def main(out: Path = OUT) -> None:
    """Take all screenshots."""
    areas = list(Synthetic(count=3, seed=3, regime="city").areas(GRID))
    sampler = EpisodeSampler.build(areas, GRID, None, "per-distance", None)
    room = play_room(sampler, agents=("airloc", "blind"))
    watch = WatchService(sampler, ThreadWorkerPool({"watch": sampler}))
    with playing(room, routers=[watch_routes(watch, ["airloc", "blind"])]) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, screen in (("play-desk", DESK), ("play-phone", PHONE), ("play-dark", DARK)):
            page = begin(browser.new_page(**screen), url, room)
            press(page, KEYS)
            page.screenshot(path=out / f"{name}.jpg", quality=85)
        press(page, LAST)
        page.emulate_media(color_scheme="light")
        page.wait_for_selector("#ending:not([hidden])")
        page.wait_for_timeout(500)
        page.screenshot(path=out / "play-end.jpg", quality=85, full_page=True)
        page = browser.new_page(viewport={"width": 1260, "height": 1010})
        page.goto(f"{url}watch?area={sampler.names[2]}&start=4,0&goal=1,3&agents=airloc,priv-local,blind")
        page.wait_for_selector("html[data-ready]", state="attached")
        page.click("#forward")
        page.wait_for_timeout(500)
        page.screenshot(path=out / "watch.jpg", quality=85)
        browser.close()


def begin(page: Any, url: str, room: PlayRoom) -> Any:
    """Open the page on a new game."""
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached")
    player = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "airloc")
    room.begin(player, EPISODE)
    page.reload()
    page.wait_for_selector("#game:not([hidden])")
    return page


def press(page: Any, keys: tuple[str, ...]) -> None:
    """Make moves at a human pace."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(400)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
