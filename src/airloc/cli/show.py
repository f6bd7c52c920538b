"""`airloc show`: draw one search step by step, as a strip of frames or an animation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from tyro.conf import Positional, arg

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import DEFAULT_AGENT
from airloc.areas.area import SearchArea
from airloc.cli.console import PICTURES, check_suffix, say, status, writable_outputs
from airloc.cli.options import AreaOptions, load_agents
from airloc.drawing.sheet import save_gif
from airloc.errors import AirlocError
from airloc.files import save_picture
from airloc.grid import Cell, Grid
from airloc.reports.searches import search_animation, search_strip
from airloc.rollout import BELIEF, EpisodeRecord, rollout
from airloc.seeding import stream
from airloc.task.photos import FlightConditions, check_strength
from airloc.task.suites import Suite

MAX_SCALE = 8
MAX_PIXELS = 80_000_000
"""Upper limit for the pixels of all frames; drawing needs about ten bytes of memory per pixel."""


@dataclass(frozen=True, kw_only=True)
class Show(AreaOptions):
    """Draw one search step by step: the path, and the belief as a heat map if the agent has one."""

    agents: Positional[tuple[str, ...]] = (DEFAULT_AGENT,)
    """Names of agents, or checkpoint folders. Several agents search for the same goal, side by side."""
    area: str = ""
    """Name of the area. Default: the first one."""
    start: Annotated[str, arg(metavar="ROW,COL")] = ""
    """Start cell. Default: drawn by the seed."""
    goal: Annotated[str, arg(metavar="ROW,COL")] = ""
    """Goal cell. Default: drawn by the seed."""
    flight_conditions: Annotated[float | None, arg(metavar="STRENGTH")] = None
    """Glimpses and goals are photos, as in `airloc evaluate`, and are drawn as such."""
    scale: int = 2
    """Pixels of the picture per pixel of the area, 1 to 8."""
    strip: Annotated[Path | None, arg(metavar="OUT.png")] = None
    """Write all steps as one picture to this file, PNG or JPEG by its suffix. Default: out/search.png without --gif."""
    gif: Annotated[Path | None, arg(metavar="OUT.gif")] = None
    """Write an animation to this file."""

    def check(self) -> None:
        """Check the options without reading any image."""
        super().check()
        if self.flight_conditions is not None:
            check_strength(self.flight_conditions)
        if not 1 <= self.scale <= MAX_SCALE:
            raise AirlocError(f"--scale {self.scale} is out of range", f"Use 1 to {MAX_SCALE}")
        check_suffix(self.strip, *PICTURES)
        check_suffix(self.gif, ".gif")
        self._check_pixels()

    def _check_pixels(self) -> None:
        """Refuse a search whose frames do not fit into memory."""
        grid = self.parsed_grid()
        frames = max(len(self.agents), 1) * ((self.budget or grid.default_budget) + 1)
        pixels = frames * grid.size[0] * grid.size[1] * self.scale**2
        if pixels > MAX_PIXELS:
            raise AirlocError(
                f"{frames} frames of a {grid} grid at --scale {self.scale} have {pixels / 1e6:,.0f} million pixels, "
                f"more than {MAX_PIXELS / 1e6:.0f} million",
                "Use a smaller --scale, --budget or --grid, or fewer agents",
            )


def main(arguments: Sequence[str]) -> None:
    """Run `airloc show`."""
    run(tyro.cli(Show, args=arguments, prog="airloc show"))


def run(options: Show) -> None:
    """Play one episode with every agent and draw it."""
    options.check()
    grid = options.parsed_grid()
    start, goal = _ends(options, grid)
    strip = Path("out/search.png") if options.strip is None and options.gif is None else options.strip
    with writable_outputs(strip, options.gif):
        episodes = _play(options, grid, start, goal)
        status(f"Drawing {sum(episode.moves + 1 for episode in episodes)} frames")
        if strip is not None:
            save_picture(search_strip(episodes, grid, scale=options.scale), strip)
        if options.gif is not None:
            save_gif(search_animation(episodes, grid, scale=options.scale), options.gif, ms=900)
    _print(episodes, [path for path in (strip, options.gif) if path])


def _play(options: Show, grid: Grid, start: Cell, goal: Cell) -> list[EpisodeRecord]:
    """Play the same episode with every agent."""
    agents = load_agents(list(dict.fromkeys(options.agents)), AgentOptions(seed=options.seed, device=options.device))
    area = _area(options, grid)
    areas, goal_areas = [area], [area]
    if options.flight_conditions is not None:
        areas, goal_areas = FlightConditions(options.flight_conditions, options.seed).apply([area], None, grid)
    budget = grid.default_budget if options.budget is None else options.budget
    suite = Suite("shown", grid, budget, (area.name,), np.zeros(1, dtype=np.int64), np.array([start]), np.array([goal]))
    episodes = []
    for agent in agents:
        status(f"Searching with {agent.name}")
        log = rollout(
            agent, suite, areas, record=[BELIEF], goal_areas=goal_areas, seed=options.seed, device=options.device
        )
        episodes.append(log.episode(0, areas, goal_areas))
    return episodes


def _ends(options: Show, grid: Grid) -> tuple[Cell, Cell]:
    """Return start and goal; by default the start is uniform, and the goal uniform over the other cells."""
    rng = stream(options.seed, "show")
    start, goal = _cell(options.start, "start", grid), _cell(options.goal, "goal", grid)
    drawn = [grid.cell_of(int(number)) for number in rng.permutation(grid.count)]
    start = start or next(cell for cell in drawn if cell != goal)
    goal = goal or next(cell for cell in drawn if cell != start)
    if start == goal:
        raise AirlocError(f"Start and goal are both {start[0]},{start[1]}", "Use different cells")
    return start, goal


def _cell(text: str, what: str, grid: Grid) -> Cell | None:
    """Parse a cell written as ROW,COL; return None for an empty text."""
    if not text.strip():
        return None
    row, _, col = (part.strip() for part in text.partition(","))
    if not (row.isdecimal() and col.isdecimal()):
        raise AirlocError(f"{text!r} is not a cell", f"Write the {what} as row and column, as in --{what} 0,3")
    cell = int(row), int(col)
    if not grid.contains(cell):
        problem = f"The {what} {row},{col} is outside the {grid} grid"
        raise AirlocError(problem, f"Use rows 0 to {grid.rows - 1} and columns 0 to {grid.cols - 1}")
    return cell


def _area(options: Show, grid: Grid) -> SearchArea:
    """Read the area that the options name, and no more images than necessary."""
    named = {"names": (options.area,)} if options.area and options.areas is not None else {}
    for area in options.load(**named).areas(grid):
        if options.area in ("", area.name):
            return area
    where = options.dataset or ("the procedural areas" if options.areas is None else str(options.areas))
    raise AirlocError(f"There is no area {options.area!r} in {where}", "Check the name, or leave out --area")


def _print(episodes: Sequence[EpisodeRecord], written: Sequence[Path]) -> None:
    """Print how each search ended, and the files."""
    for episode in episodes:
        (row, col), (to_row, to_col) = episode.path[0], episode.goal
        ended = f"found after {episode.moves}" if episode.found else f"not found in {episode.moves}"
        say(f"{episode.agent} on {episode.area.name} from {row},{col} to {to_row},{to_col}: {ended} moves")
    for path in written:
        say(f"Pictures: {path.resolve()}")
