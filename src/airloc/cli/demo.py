"""`airloc demo`: agents on procedural areas, a table and a page to look at."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from airloc.agents.registry import BELIEF_AGENTS, DEFAULT_AGENT, AgentOptions, make_agent
from airloc.areas.area import Pixels, SearchArea
from airloc.areas.synthetic import Synthetic
from airloc.cli.console import bar, promised, reading
from airloc.drawing.sheet import contact_sheet
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import Score, evaluate
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.files import save_picture, write_atomically
from airloc.grid import Grid
from airloc.reports.demo import choose_search, demo_page, draw_searches
from airloc.reports.searches import search_strip
from airloc.reports.tables import score_table
from airloc.rollout import BELIEF, rollout
from airloc.task.priors import check_size
from airloc.task.suites import Suite, per_distance

AGENTS = ("random", "lawnmower", "spiral", "priv-random", "blind", "local", "priv-local", "airloc", DEFAULT_AGENT)
"""The baselines, the paper's agent and ours; variants are left out."""


@dataclass(frozen=True)
class Demo:
    """Play agents on procedural areas; print a table and write a page with pictures."""

    out: Path = Path("out/demo.html")
    """The page to write."""
    picture: Path | None = None
    """Also write the page's trajectories as one picture, PNG or JPEG by its name."""
    agents: tuple[str, ...] = AGENTS
    """Who plays: names of agents, or checkpoint folders."""
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
    """Draw areas and episodes, let the agents play them, and show how they did."""
    with promised([path for path in (options.out, options.picture) if path]):
        areas, suite = _draw(options)
        scores = _play(options, areas, suite)
        floor = blind_optimum(suite)
        _write(options, scores, areas, floor, _believed(scores, areas))
    console = Console()
    console.print(score_table(scores, floor, exact=blind_optimum_is_exact(scores[0].suite)))
    console.print(f"A page with pictures: {options.out.resolve()}", soft_wrap=True, highlight=False, markup=False)


def _draw(options: Demo) -> tuple[list[SearchArea], Suite]:
    """Draw areas and episodes."""
    if not options.agents:
        raise AirlocError("Nobody is to play", f"Name agents with --agents, such as {' '.join(AGENTS[-2:])}")
    if options.areas < 1:
        raise AirlocError(f"There is nothing to play on {options.areas} areas", "Give --areas 1 or more")
    grid = Grid.parse(options.grid)
    check_size(grid)
    areas = reading(Synthetic(count=options.areas, seed=options.seed).areas(grid))
    return areas, per_distance([area.name for area in areas], grid, seed=options.seed)


def _play(options: Demo, areas: list[SearchArea], suite: Suite) -> list[Score]:
    """Give the scores of the agents, best last."""
    agents = [make_agent(name, AgentOptions(seed=options.seed)) for name in options.agents]
    with bar("playing", len(suite) * len(agents)) as advance:
        scores = [evaluate(agent, suite, areas, seed=options.seed, on_batch=advance) for agent in agents]
    return sorted(scores, key=_success)


def _believed(scores: list[Score], areas: list[SearchArea]) -> Pixels | None:
    """One search of the best agent that keeps a belief, step by step; None where nobody does."""
    for score in reversed(scores):
        if score.agent in BELIEF_AGENTS:
            number = choose_search(score)
            suite = score.suite.episodes([number])
            log = rollout(make_agent(score.agent), suite, areas, record=(BELIEF,))
            return search_strip([log.episode(0, areas)], suite.grid, scale=1)
    return None


def _write(options: Demo, scores: list[Score], areas: list[SearchArea], floor: float, believed: Pixels | None) -> None:
    """Write the page and, if asked for, the picture."""
    chosen = {"--areas": options.areas, "--grid": options.grid, "--seed": options.seed, "--out": options.out}
    who = () if options.agents == AGENTS else ("--agents", *options.agents)
    made_by = shlex.join(["airloc", "demo", *who, *(str(word) for option in chosen.items() for word in option)])
    write_atomically(options.out, demo_page(scores, areas, floor, made_by, believed))
    if options.picture is not None:
        pictures, captions = zip(*draw_searches(scores[-1], areas), strict=True)
        save_picture(contact_sheet(pictures, captions, columns=4, tile=300), options.picture)


def _success(score: Score) -> float:
    return score.value("success") or 0.0
