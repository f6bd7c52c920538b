"""`airloc play`: search yourself in the browser, and watch agents search."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from airloc.agents.registry import DEFAULT_AGENT, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.captions import describe_cells
from airloc.areas.dataset import Dataset
from airloc.areas.registry import load_dataset
from airloc.cli.console import collect_game_areas, need
from airloc.errors import AirlocError
from airloc.evaluation.texts import check_reader
from airloc.grid import Cell, Grid
from airloc.seeding import stream
from airloc.task.rules import check_budget
from airloc.task.sampling import EpisodeSampler
from airloc.vision.sentences import embed_descriptions

MAX_SIDE = 12
"""Largest number of cells per side that fits on a screen."""
PLAY_AREAS = 40
"""Procedural areas to play on."""
WATCH_AREAS = 10
"""Areas to watch agents on."""


@dataclass(frozen=True)
class Play:
    """Search yourself: start a server on this machine and open its page in the browser."""

    areas: Path | None = None
    """Folder of images, one area each, or a prepared dataset. Default: procedural areas."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed. Default: twice the longer side."""
    seconds: float = 60.0
    """Time limit of a game in seconds; 0 for none."""
    texts: bool = False
    """Describe the goal in words instead of showing it. Needs areas whose land cover is known: procedural ones, or
    images with building masks."""
    agents: tuple[str, ...] = (DEFAULT_AGENT, "blind")
    """Agents that play the same episode for comparison."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    public: bool = False
    """Allow access from other machines; required for any address except loopback."""
    port: int = 8765
    """Port to listen on; 0 for any free port."""
    open: bool = True
    """Open the page in the browser."""
    seed: int = 0
    """Random seed of the procedural areas."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc play`."""
    options = tyro.cli(Play, args=arguments, prog="airloc play")
    need("web", "fastapi", "uvicorn")
    run(options)


def run(options: Play) -> None:
    """Check the options, bind the port, read the areas, and serve until Ctrl-C."""
    from airloc import game, web

    grid, seconds = Grid.parse(options.grid), time_limit(options.seconds)
    check_screen(grid)
    if options.budget is not None:
        check_budget(options.budget)
    check_agents(options.agents, texts=options.texts)
    with web.bind(options.host, options.port, public=options.public) as bound:
        played, watched = _areas(options, grid)
        texts = _describe(options, grid, played) if options.texts else None
        play_sampler, watch_sampler = (
            EpisodeSampler.build(areas, grid, options.budget, "per-distance", None) for areas in (played, watched)
        )
        worker_pool = game.ProcessWorkerPool({"play": play_sampler, "watch": watch_sampler}, options.agents)
        baselines = game.Baselines(
            options.agents,
            worker_pool,
            "play",
            None if texts is None else lambda episode: texts[play_sampler.names[episode.area], episode.goal],
        )
        app = game.make_app(
            game.PlayLobby(game.PlayRoom(play_sampler, game.Store(), seconds, baselines, texts)),
            routers=[game.watch_routes(game.WatchService(watch_sampler, worker_pool), options.agents)],
            hosts=None if options.public else game.LOOPBACK_HOSTS,
        )
        url = web.url_of(bound)
        print(f"Play at {url} or watch agents at {url}watch. Press Ctrl-C to stop.", flush=True)
        game.serve(app, bound, open_url=url if options.open else None)
        worker_pool.close()


def _describe(options: Play, grid: Grid, areas: Sequence[SearchArea]) -> dict[tuple[str, Cell], str]:
    """Describe all cells of the areas to play on, by the name of the area and the cell."""
    names = tuple(area.name for area in areas)
    dataset = load_dataset(options.areas, names=names) if options.areas else _procedural(options, names=names)
    described = {
        (area.name, cell): caption.text
        for area, land in dataset.land_covers(grid)
        for cell, caption, _ in describe_cells(land, grid, stream(options.seed, "goal texts", area.name))
    }
    if missing := [name for name in names if (name, (0, 0)) not in described]:
        problem = f"The land cover of {len(missing)} of {len(names)} areas is unknown, such as {missing[0]!r}"
        raise AirlocError(problem, "Leave out --texts, or give building masks in windows.csv")
    return described


def _procedural(options: Play, **more: Any) -> Dataset:
    return load_dataset("synthetic", count=PLAY_AREAS + WATCH_AREAS, seed=options.seed, **more)


def check_agents(names: Sequence[str], *, texts: bool = False) -> None:
    """Make the agents once, so that a wrong name is an error before the server starts.

    With `texts`, agents that need a picture of the goal are refused, and so is a missing sentence encoder.
    """
    for name in names:
        agent = make_agent(name)
        if texts:
            check_reader(agent)
    if texts:
        embed_descriptions(["a pond"])  # raises an error without the encoder


def check_screen(grid: Grid) -> None:
    """Refuse a grid that is too large for a screen."""
    if max(grid.shape) > MAX_SIDE:
        raise AirlocError(f"A grid of {grid} does not fit on a screen", f"Give --grid {MAX_SIDE}x{MAX_SIDE} or smaller")


def time_limit(seconds: float) -> float:
    """Return the time limit of `--seconds`: 0 stands for none, which is infinite."""
    from airloc.game.store import check_seconds

    return check_seconds(seconds or float("inf"))


def _areas(options: Play, grid: Grid) -> tuple[list[SearchArea], list[SearchArea]]:
    """Return areas to play on and other areas to watch agents on, because spectators see areas whole."""
    if options.areas is not None:
        areas = collect_game_areas(load_dataset(options.areas).areas(grid))
        if len(areas) > 1:
            watched = areas[:: max(2, len(areas) // WATCH_AREAS)]
            return [area for area in areas if area not in watched], watched
        return areas, collect_game_areas(
            load_dataset("synthetic", count=WATCH_AREAS, seed=options.seed + 1).areas(grid)
        )
    areas = collect_game_areas(_procedural(options).areas(grid))
    return areas[:PLAY_AREAS], areas[PLAY_AREAS:]
