"""`airloc demo`: all agents on procedural areas, a table and a page to look at."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from airloc.agents.registry import AgentOptions, available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.synthetic import Synthetic
from airloc.cli.outputs import promised
from airloc.cli.progress import bar, reading
from airloc.drawing.files import save_picture, write_atomically
from airloc.drawing.sheet import contact_sheet
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import evaluate
from airloc.evaluation.floor import blind_optimum, blind_optimum_is_exact
from airloc.evaluation.records import Score
from airloc.grid import Grid
from airloc.reports.demo import demo_page, searches, shown
from airloc.reports.tables import score_table
from airloc.task.priors import check_size
from airloc.task.suites import per_distance


@dataclass(frozen=True)
class Demo:
    """Play all agents on procedural areas; print a table and write a page with pictures."""

    out: Path = Path("out/demo.html")
    """The page to write."""
    picture: Path | None = None
    """Also write the page's trajectories as one picture, PNG or JPEG by its name."""
    areas: int = 100
    """How many procedural areas."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    seed: int = 0
    """Decides areas, episodes and every random choice."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc demo`."""
    run(tyro.cli(Demo, args=arguments, prog="airloc demo"))


def run(options: Demo) -> None:
    """Draw areas and episodes, let every agent play them, and show how they did."""
    with promised([path for path in (options.out, options.picture) if path]):
        scores, areas = _play(options)
        floor = blind_optimum(scores[0].suite)
        _write(options, scores, areas, floor)
    console = Console()
    console.print(score_table(scores, floor, exact=blind_optimum_is_exact(scores[0].suite)))
    console.print(f"A page with pictures: {options.out.resolve()}", soft_wrap=True, highlight=False, markup=False)


def _play(options: Demo) -> tuple[list[Score], list[SearchArea]]:
    """Give the scores of all agents, best last, and the areas they played on."""
    if options.areas < 1:
        raise AirlocError(f"There is nothing to play on {options.areas} areas", "Give --areas 1 or more")
    grid = Grid.parse(options.grid)
    check_size(grid)
    areas = reading(Synthetic(count=options.areas, seed=options.seed).areas(grid))
    suite = per_distance([area.name for area in areas], grid, seed=options.seed)
    agents = [make_agent(name, AgentOptions(seed=options.seed)) for name in available_agents()]
    with bar("playing", len(suite) * len(agents)) as advance:
        scores = [evaluate(agent, areas, suite, seed=options.seed, on_batch=advance) for agent in agents]
    return sorted(scores, key=_success), areas


def _write(options: Demo, scores: list[Score], areas: list[SearchArea], floor: float) -> None:
    """Write the page and, if asked for, the picture."""
    chosen = {"--areas": options.areas, "--grid": options.grid, "--seed": options.seed, "--out": options.out}
    made_by = shlex.join(["airloc", "demo", *(str(word) for option in chosen.items() for word in option)])
    write_atomically(options.out, demo_page(scores, areas, floor, made_by))
    if options.picture is not None:
        pictures, captions = zip(*searches(shown(scores), areas), strict=True)
        save_picture(contact_sheet(pictures, captions, columns=4, tile=300), options.picture)


def _success(score: Score) -> float:
    return score.value("success") or 0.0
