"""`airloc play`: search yourself, in the browser, and watch agents do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro
from rich.console import Console

from airloc.agents.registry import DEFAULT_AGENT, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.registry import choose_source
from airloc.areas.synthetic import Synthetic
from airloc.cli.console import reading
from airloc.errors import AirlocError
from airloc.game.app import LOOPBACK_NAMES, listen, make_app, open_browser, serve
from airloc.game.baselines import Baselines
from airloc.game.lobby import FreeTable, PlayDesk
from airloc.game.referee import Referee
from airloc.game.routes import watch_routes
from airloc.game.store import Store
from airloc.game.watch import Watch
from airloc.game.worker_pool import ProcessWorkerPool
from airloc.grid import Grid
from airloc.task.rules import check_budget
from airloc.task.world import World
from airloc.web import url_of

MAX_SIDE = 12
"""Cells of a side that fit on a screen."""
PROCEDURAL = 40
WATCHED = 10


@dataclass(frozen=True)
class Play:
    """Search yourself: starts a server on this machine and opens its page."""

    areas: Path | None = None
    """Folder of pictures, each an area, or a prepared cache; procedural areas unless given."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed; twice the longer side unless given."""
    seconds: float = 60.0
    """Time limit of a game; 0 for none."""
    agents: tuple[str, ...] = (DEFAULT_AGENT, "blind")
    """Who plays the same episode when a game is over."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    public: bool = False
    """Let other machines in; needed for any address but loopback."""
    port: int = 8765
    """The port to listen on; 0 for any that is free."""
    open: bool = True
    """Open the page in the browser."""
    seed: int = 0
    """Which procedural areas."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc play`."""
    run(tyro.cli(Play, args=arguments, prog="airloc play"))


def run(options: Play) -> None:
    """Check everything cheap, take the address, read the areas, serve until interrupted."""
    grid, seconds = Grid.parse(options.grid), limit(options.seconds)
    check_screen(grid)
    if options.budget is not None:
        check_budget(options.budget)
    check_agents(options.agents)
    with listen(options.host, options.port, public=options.public) as taken:
        play, watch = (
            World.build(areas, grid, options.budget, "per-distance", None) for areas in _areas(options, grid)
        )
        worker_pool = ProcessWorkerPool({"play": play, "watch": watch}, options.agents)
        table = FreeTable(Referee(play, Store(), seconds), Baselines(options.agents, worker_pool, "play"))
        more = [watch_routes(Watch(watch, worker_pool), options.agents)]
        app = make_app(PlayDesk(table), hosts=None if options.public else LOOPBACK_NAMES, more=more)
        url = url_of(taken)
        say(f"Play at {url} and watch agents at {url}watch; Ctrl-C ends it.")
        serve(app, taken, on_ready=partial(open_browser, url) if options.open else lambda: None)
        worker_pool.close()


def check_agents(names: Sequence[str]) -> None:
    """Make the agents once: a wrong name is an error now, and not when a game is over."""
    for name in names:
        make_agent(name)


def check_screen(grid: Grid) -> None:
    """Refuse grids that no screen shows."""
    if max(grid.shape) > MAX_SIDE:
        raise AirlocError(f"A grid of {grid} does not fit on a screen", f"Ask for {MAX_SIDE}x{MAX_SIDE} at most")


def limit(seconds: float) -> float:
    """The time limit that a number on the command line stands for."""
    if seconds < 0:
        raise AirlocError(f"A game of {seconds} seconds cannot be played", "Give --seconds above 0, or 0 for no limit")
    return seconds or float("inf")


def say(text: str) -> None:
    """Tell the person at the terminal."""
    Console().print(text, soft_wrap=True, highlight=False, markup=False)


def _areas(options: Play, grid: Grid) -> tuple[list[SearchArea], list[SearchArea]]:
    """Areas to play on and areas to watch agents on: never the same, or watching would show what is to be found."""
    if options.areas is not None:
        areas = reading(choose_source(options.areas).areas(grid))
        if len(areas) > 1:
            watched = areas[:: max(2, len(areas) // WATCHED)]
            return [area for area in areas if area not in watched], watched
        return areas, reading(Synthetic(count=WATCHED, seed=options.seed + 1).areas(grid))
    areas = reading(Synthetic(count=PROCEDURAL + WATCHED, seed=options.seed).areas(grid))
    return areas[:PROCEDURAL], areas[PROCEDURAL:]
