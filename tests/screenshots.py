"""Take screenshots of the pages on procedural areas in a real browser.

`PYTHONPATH=src python tests/screenshots.py` takes those of docs/play.md and docs/field.md. With a folder, it takes
every page on every screen, in light and dark colours, to look at.
"""

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import sync_playwright

from airloc.areas.synthetic import Synthetic
from airloc.game import Episode, PlayRoom, WatchService, watch_routes
from airloc.grid import Grid
from airloc.missions.plan import point_of
from airloc.task.sampling import EpisodeSampler
from field_server import HEADERS, TOKEN, SearchGround, server_thread
from game_server import ThreadWorkerPool, play_room, playing, serving_study, small_study

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "img"
EPISODE = Episode(0, (3, 1), (1, 3))
KEYS = ("ArrowRight", "c", "e", "q")
LAST = ("q", "ArrowRight")
MISSES = ("ArrowDown", "ArrowUp") * 5
MAP = {"viewport": {"width": 1280, "height": 960}}
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


def take_map(browser: Any, out: Path, screens: dict[str, dict[str, Any]]) -> None:
    """Take the live map of a search over the image of examples/make_ortho.py, on some screens."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "examples" / "make_ortho.py", folder], check=True)
        ground = SearchGround(Path(folder) / "ortho.tif", share=0.97)
        outline = json.loads((Path(folder) / "area.geojson").read_text())["coordinates"][0][:-1]
        goal = base64.b64encode((Path(folder) / "goal.jpg").read_bytes()).decode()
        with (
            server_thread(Path(folder) / "a.sqlite", ground=ground.raster) as url,
            httpx.Client(base_url=url, headers=HEADERS, timeout=60) as client,
        ):
            corners = [{"lat": lat, "lon": lon} for lon, lat in outline]
            request = {"outline": corners, "goal": goal, "cell_m": 96, "goal_heading": 0, "agent": "belief"}
            state = client.post("/searches", json=request | {"name": "North ridge", "drones": 3}).json()
            for turn in range(9):
                vehicle = state["vehicles"][turn % 3]
                position = {name: vehicle["next"][name] for name in ("lat", "lon")}
                place = ground.layout.grid_position(point_of(ground.layout, tuple(position.values())))
                photo = ground.photo(place, 4 / 3)
                query = position | {"height_m": state["height_m"], "heading": 0, "vehicle": vehicle["id"]}
                state |= client.post(f"/searches/{state['id']}/photos", params=query, content=photo).json()
                if state["status"] != "searching":
                    break
            for name, options in screens.items():
                page = opened(browser.new_page(**options), url)
                page.fill("#token", TOKEN)
                page.click("#sign-in-form button")
                page.wait_for_selector("#list:not([hidden])")
                opened(page, f"{url}/#/{state['id']}")
                page.wait_for_selector("html[data-photos]", state="attached")
                page.wait_for_timeout(3000)
                page.screenshot(path=out / f"{name}.jpg", quality=85)


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
            take_map(browser, OUT, {"field-map": MAP})
        else:
            take_screens(browser, out)
            dark = {f"map-{name}-dark": {**screen, "color_scheme": "dark"} for name, screen in SCREENS.items()}
            take_map(browser, out, {f"map-{name}-light": screen for name, screen in SCREENS.items()} | dark)
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
