"""Watching: the recorder changes nothing, and the page plays a search to its end."""

import io
import re
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from airloc.agents.registry import make_agent
from airloc.game.baselines import path_of, play_one
from airloc.game.match import Episode
from airloc.game.routes import watch_routes
from airloc.game.watch import Watch, follow
from airloc.game.worker_pool import AgentPool, ThreadWorkerPool
from airloc.grid import MOVES, Grid
from game_hall import Client, free_table, noise_world, playing
from untrained import untrained_airloc

WORLD = noise_world(3)
EPISODE = Episode(1, (4, 0), (1, 3))


class State(NamedTuple):
    """A state with a belief, as that of a belief searcher."""

    inner: object
    belief: torch.Tensor


class Believer:
    """Flies as the lawnmower does and believes in one cell more with every move."""

    name = "lawnmower"

    def __init__(self, grid: Grid) -> None:
        self._agent, self._count = make_agent("lawnmower"), grid.count

    def reset(self, episodes):
        return State(self._agent.reset(episodes), torch.full((len(episodes.goal), self._count), 1 / self._count))

    def act(self, observation, state):
        action, inner = self._agent.act(observation, state.inner)
        belief = state.belief * 0.7
        belief[:, 8] += 0.3
        return action, State(inner, belief)


@pytest.mark.parametrize("name", ["random", "blind", "priv-local", "airloc"])
def test_a_watched_agent_does_what_it_does_unwatched(name: str):
    agent = make_agent(name)
    track = follow(agent, WORLD, EPISODE)
    played = play_one(agent, WORLD, EPISODE)
    assert (track.path, track.found) == (path_of(played), bool(played.found[0]))
    assert len(track.looks) == len(track.path) - 1


def test_airloc_shows_how_likely_it_took_each_move_for():
    agent = untrained_airloc("airloc")
    track = follow(agent, WORLD, EPISODE)
    moves = np.diff(np.array(track.path), axis=0)
    for look, step in zip(track.looks, moves, strict=True):
        assert look.belief is None
        assert sum(look.chances) == pytest.approx(1, abs=1e-3)
        assert MOVES[int(np.argmax(look.chances))].tolist() == step.tolist(), "the most probable move is made"


def test_forbidden_moves_have_no_chance():
    track = follow(untrained_airloc("airloc-priv"), WORLD, EPISODE)
    assert track.looks[0].chances[4:8] == [0, 0, 0, 0], "from the lower left corner nothing leads down or left"


def test_a_belief_is_shown_cell_by_cell():
    track = follow(Believer(WORLD.grid), WORLD, EPISODE)
    assert len(track.looks[0].belief) == 25
    assert sum(track.looks[0].belief) == pytest.approx(1, abs=1e-2)
    assert track.looks[-1].belief[8] > track.looks[0].belief[8]
    assert track.looks[0].chances is None


def watching(pool: AgentPool | None = None):
    return watch_routes(Watch(WORLD, ThreadWorkerPool({"watch": WORLD}, pool)), ["lawnmower", "spiral"])


def believing() -> AgentPool:
    pool = AgentPool()
    pool._made["lawnmower"] = Believer(WORLD.grid)
    return pool


SEARCH = "area=noise_1&start=4,0&goal=1,3"


def test_a_search_can_be_had_as_an_animation():
    with playing(free_table(), more=[watching(believing())]) as url:
        client = Client(url)
        answer = client.ask("GET", f"/api/watch/search.gif?{SEARCH}&agents=lawnmower,spiral")
        assert (answer.status, answer.headers["content-type"]) == (200, "image/gif")
        picture = Image.open(io.BytesIO(answer.body))
        longest = max(len(follow(make_agent(name), WORLD, EPISODE).path) for name in ("lawnmower", "spiral"))
        assert picture.n_frames == longest
        assert picture.width > 2 * 256
        client.close()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("area=none&start=4,0&goal=1,3&agent=spiral", 404),
        ("area=noise_1&start=4,0&goal=4,0&agent=spiral", 422),
        ("area=noise_1&start=5,0&goal=1,3&agent=spiral", 422),
        ("area=noise_1&start=-1,0&goal=1,3&agent=spiral", 422),
        ("area=noise_1&start=4,0&goal=1,3&agent=../../etc", 404),
        ("area=noise_1&start=4,0&goal=1,3&agent=", 422),
        ("area=noise_1&start=4,0&goal=1,3", 422),
    ],
)
def test_searches_that_make_no_sense_are_refused(query: str, status: int):
    with playing(free_table(), more=[watching()]) as url:
        client = Client(url)
        answer = client.ask("GET", f"/api/watch/search?{query}")
        assert answer.status == status
        assert set(answer.json) == {"error", "message"}
        client.close()


def test_watchers_wait_only_in_a_short_queue(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("airloc.game.watch.MAX_WAITING", 0)
    with playing(free_table(), more=[watching()]) as url:
        client = Client(url)
        assert client.ask("GET", f"/api/watch/search?{SEARCH}&agent=spiral").status == 503
        assert client.ask("GET", "/api/watch").status == 200
        client.close()


def test_an_agent_is_watched_to_the_end_shared_and_saved(open_page):
    with playing(free_table(), more=[watching(believing())]) as url:
        page = open_page(f"{url}watch?{SEARCH}&agents=lawnmower,spiral")
        assert page.locator(".panel").count() == 2
        assert page.locator(".panel[data-agent=lawnmower] .belief").count() == 24, "all but the start"
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
        steps = max(len(follow(make_agent(name), WORLD, EPISODE).path) - 1 for name in ("lawnmower", "spiral"))
        page.wait_for_selector(f"html[data-step='{steps}']", state="attached")
        assert [word for word in ("lawnmower", "spiral", "found") if word not in page.inner_text("#say")] == []
        assert page.inner_text("#play") == "Play"

        with page.expect_download() as saved:
            page.click("#gif")
        assert saved.value.suggested_filename == "search.gif"
        shared = open_page(page.url)
        assert shared.locator(".panel").count() == 2
        assert (shared.input_value("#start"), shared.input_value("#goal")) == ("4,0", "1,3")


def test_start_goal_area_and_agents_are_picked_on_the_page(open_page):
    with playing(free_table(), more=[watching()]) as url:
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
        page.keyboard.press("Tab")
        for name in ("lawnmower", "spiral"):
            page.uncheck(f"input[value={name}]")
        expect(page.locator(".panel")).to_have_count(1)
        page.uncheck("input[value=blind]")
        assert page.inner_text("#trouble") == "Choose an agent."
