"""`airloc demo`: play agents on procedural areas, print a table and write a page with pictures."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.registry import BELIEF_AGENTS, DEFAULT_AGENT
from airloc.areas.area import Pixels, SearchArea
from airloc.areas.synthetic import Synthetic
from airloc.cli.console import PICTURES, check_suffix, collect_areas, say, status, writable_outputs
from airloc.cli.options import load_agents, score_agents
from airloc.drawing.sheet import contact_sheet
from airloc.errors import AirlocError
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.evaluation.scores import Score
from airloc.files import save_picture, write_atomically
from airloc.grid import Grid
from airloc.reports.demo import choose_search, demo_page, draw_searches
from airloc.reports.searches import search_strip
from airloc.reports.tables import score_table
from airloc.rollout import BELIEF, rollout
from airloc.task.priors import check_size
from airloc.task.suites import per_distance

AGENTS = ("random", "lawnmower", "spiral", "priv-random", "blind", "local", "priv-local", "airloc", DEFAULT_AGENT)
"""The baselines, the paper's agent and the belief agent, without variants."""


@dataclass(frozen=True)
class Demo:
    """Play agents on procedural areas, print a table and write a page with pictures."""

    out: Path = Path("out/demo.html")
    """Write the page to this file."""
    picture: Path | None = None
    """Write the trajectories of the page as one picture to this file, PNG or JPEG by its suffix."""
    agents: tuple[str, ...] = AGENTS
    """Names of agents, or checkpoint folders."""
    areas: int = 100
    """Number of procedural areas."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    seed: int = 0
    """Random seed for areas, episodes and agents."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc demo`."""
    run(tyro.cli(Demo, args=arguments, prog="airloc demo"))


def run(options: Demo) -> None:
    """Generate areas and episodes, play them with the agents, and print and write the results."""
    grid = Grid.parse(options.grid)
    check_size(grid)
    if options.areas < 1:
        raise AirlocError(f"--areas {options.areas} is out of range", "Use --areas 1 or more")
    check_suffix(options.picture, *PICTURES)
    with writable_outputs(options.out, options.picture):
        agents = load_agents(options.agents, AgentOptions(seed=options.seed))
        areas = collect_areas(Synthetic(count=options.areas, seed=options.seed).areas(grid))
        suite = per_distance([area.name for area in areas], grid, seed=options.seed)
        status(f"Playing {len(suite):,} episodes with each of {len(agents)} agents")
        scores = score_agents(agents, suite, areas, seed=options.seed)
        floor = blind_optimum(suite)
        _write(options, scores, areas, floor, _belief_strip(scores, agents, areas))
    Console().print(score_table(scores, floor, exact=blind_optimum_is_exact(suite)))
    say(f"A page with pictures: {options.out.resolve()}")


def _belief_strip(scores: Sequence[Score], agents: Sequence[Agent], areas: Sequence[SearchArea]) -> Pixels | None:
    """Draw one search of the best agent that has a belief, step by step; return None if there is no such agent."""
    by_name = {agent.name: agent for agent in agents}
    for score in reversed(scores):
        if score.agent in BELIEF_AGENTS:
            suite = score.suite.subset([choose_search(score)])
            log = rollout(by_name[score.agent], suite, areas, record=[BELIEF])
            return search_strip([log.episode(0, areas)], suite.grid, scale=1)
    return None


def _write(options: Demo, scores: list[Score], areas: list[SearchArea], floor: float, strip: Pixels | None) -> None:
    """Write the page, and the picture if there is a file for it."""
    chosen = {"--areas": options.areas, "--grid": options.grid, "--seed": options.seed, "--out": options.out}
    who = () if options.agents == AGENTS else ("--agents", *options.agents)
    made_by = shlex.join(["airloc", "demo", *who, *(str(word) for option in chosen.items() for word in option)])
    write_atomically(options.out, demo_page(scores, areas, floor, made_by, strip))
    if options.picture is not None:
        pictures, captions = zip(*draw_searches(scores[-1], areas), strict=True)
        save_picture(contact_sheet(pictures, captions, columns=4, tile=300), options.picture)
