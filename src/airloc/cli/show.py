"""`airloc show`: one search step by step, with what the agent believes, as a strip of pictures or an animation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT, AgentOptions, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.registry import choose_source
from airloc.cli.console import promised
from airloc.drawing.sheet import save_gif
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import check_device
from airloc.files import save_picture
from airloc.grid import Cell, Grid
from airloc.reports.searches import search_animation, search_strip
from airloc.rollout import BELIEF, EpisodeRecord, rollout
from airloc.seeding import stream
from airloc.task.priors import check_size
from airloc.task.rules import check_budget
from airloc.task.suites import Suite


@dataclass(frozen=True)
class Show:
    """Draw one search step by step: the path, and the belief as a heat map where the agent has one."""

    agents: Positional[tuple[str, ...]] = (DEFAULT_AGENT,)
    """Names of agents, or checkpoint folders; several search for the same goal and are shown together."""
    areas: Path | None = None
    """Folder of pictures, each an area, or a prepared cache; procedural areas unless given."""
    area: str = ""
    """Name of the area; the first one unless given."""
    start: Annotated[str, arg(metavar="ROW,COL")] = ""
    """Where the search begins; drawn by the seed unless given."""
    goal: Annotated[str, arg(metavar="ROW,COL")] = ""
    """The cell to be found; drawn by the seed unless given."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed; twice the longer side unless given."""
    cell_metres: float | None = None
    """Crop areas of known ground size so that each cell stands for this many metres."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    seed: int = 0
    """Decides procedural areas, start and goal where they are not given, and every random choice."""
    scale: int = 2
    """Pixels of the pictures for one of the area."""
    strip: Annotated[Path | None, arg(metavar="OUT.png")] = None
    """Write all steps as one picture here, PNG or JPEG by its name; out/search.png where --gif is not given either."""
    gif: Annotated[Path | None, arg(metavar="OUT.gif")] = None
    """Write the animation here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc show`."""
    run(tyro.cli(Show, args=arguments, prog="airloc show"))


def run(options: Show) -> None:
    """Let the agents search, and draw how they did."""
    strip = Path("out/search.png") if options.strip is None and options.gif is None else options.strip
    with promised([path for path in (strip, options.gif) if path]):
        grid, searches = _search(options)
        if strip is not None:
            save_picture(search_strip(searches, grid, scale=options.scale), strip)
        if options.gif is not None:
            save_gif(search_animation(searches, grid, scale=options.scale), options.gif, ms=900)
    _tell(searches, [path for path in (strip, options.gif) if path])


def _search(options: Show) -> tuple[Grid, list[EpisodeRecord]]:
    """Let the agents play the same episode."""
    grid = Grid.parse(options.grid)
    _check(options, grid)
    start, goal = _ends(options, grid)
    makers = AgentOptions(seed=options.seed, device=options.device)
    agents = [make_agent(name, makers) for name in dict.fromkeys(options.agents)]
    area = _area(options, grid)
    budget = grid.default_budget if options.budget is None else options.budget
    suite = Suite("shown", grid, budget, (area.name,), np.zeros(1, dtype=np.int64), np.array([start]), np.array([goal]))
    how: dict[str, Any] = {"record": (BELIEF,), "seed": options.seed, "device": options.device}
    return grid, [rollout(agent, suite, [area], **how).episode(0, [area]) for agent in agents]


def _check(options: Show, grid: Grid) -> None:
    """Refuse what makes no sense before anything is read."""
    check_size(grid)
    check_device(options.device)
    if options.budget is not None:
        check_budget(options.budget)
    if not options.agents:
        raise AirlocError("There is no agent to show", f"Name at least one, such as {DEFAULT_AGENT}")
    if not 1 <= options.scale <= 8:
        raise AirlocError(f"A scale of {options.scale} cannot be drawn", "Give --scale 1 to 8")


def _ends(options: Show, grid: Grid) -> tuple[Cell, Cell]:
    """Start and goal, drawn where they are not given: the start uniform, the goal uniform over the other cells."""
    rng = stream(options.seed, "show")
    start, goal = _cell(options.start, "start", grid), _cell(options.goal, "goal", grid)
    drawn = [grid.cell_of(int(number)) for number in rng.permutation(grid.count)]
    start = start or next(cell for cell in drawn if cell != goal)
    goal = goal or next(cell for cell in drawn if cell != start)
    if start == goal:
        raise AirlocError("The search begins at the goal: there is nothing to find", "Give another start or goal")
    return start, goal


def _cell(text: str, what: str, grid: Grid) -> Cell | None:
    """Read a cell written as ROW,COL; None where nothing is."""
    if not text.strip():
        return None
    row, _, col = (part.strip() for part in text.partition(","))
    if not (row.isdecimal() and col.isdecimal()):
        raise AirlocError(f"{text!r} is not a cell", f"Write the {what} as row and column, as in --{what} 0,3")
    cell = int(row), int(col)
    if not grid.contains(cell):
        problem = f"The {what} {row},{col} lies outside the {grid} grid"
        raise AirlocError(problem, f"Give rows 0 to {grid.rows - 1} and columns 0 to {grid.cols - 1}")
    return cell


def _area(options: Show, grid: Grid) -> SearchArea:
    """The area asked for, reading no more than needed."""
    only = [options.area] if options.area and options.areas is not None else None
    source = choose_source(options.areas, cell_metres=options.cell_metres, only=only, seed=options.seed)
    for area in source.areas(grid):
        if options.area in ("", area.name):
            return area
    where = "the procedural ones" if options.areas is None else str(options.areas)
    raise AirlocError(f"There is no area {options.area!r} among {where}", "Check the name, or leave it out")


def _tell(searches: Sequence[EpisodeRecord], written: Sequence[Path]) -> None:
    """Say how each search ended and where the pictures are."""
    console = Console()
    for search in searches:
        (row, col), (to_row, to_col) = search.path[0], search.goal
        ended = f"found after {search.moves}" if search.found else f"not found in {search.moves}"
        line = f"{search.agent} on {search.area.name} from {row},{col} to {to_row},{to_col}: {ended} moves"
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    for path in written:
        console.print(f"Pictures: {path.resolve()}", soft_wrap=True, highlight=False, markup=False)
