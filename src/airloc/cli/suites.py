"""`airloc suites`: every agent on every suite, in one table; what is done is not done again."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, UseAppendAction, arg

from airloc.areas.dataset import VARIABLE
from airloc.cli.reproduce import compute, made_with
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import Recipe, find
from airloc.evaluation.evaluate import check_device
from airloc.experiments.store import Store
from airloc.experiments.suites import choose_agents, plan_trials
from airloc.reports.suites import About, make_page


@dataclass(frozen=True)
class Suites:
    """Play all agents on all suites and write the tables with intervals, blind optimum and commands."""

    names: Positional[Annotated[tuple[str, ...], arg(metavar="[SUITE ...]")]] = ()
    """Suites to play; all of them unless named."""
    agent: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Only the agents whose names match a pattern such as 'belief*'; may be given several times."""
    data: Path | None = None
    """Folder of datasets; $AIRLOC_DATA unless given. Suites whose data is not there are skipped."""
    most: Annotated[int | None, arg(metavar="AREAS")] = None
    """Play at most so many areas of each suite, evenly spread, to see that everything runs."""
    list: bool = False
    """Only tell the suites and their commands."""
    seed: int = 0
    """Decides the drawn episodes and every random choice."""
    out: Path = Path("out/suites")
    """Folder of results, tables and charts."""
    device: str = "cpu"
    """Where to compute here, such as cpu or cuda."""
    ray: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Compute on the Ray cluster at this address instead, such as 10.0.0.1:6379, or auto; local: a task a core here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc suites`."""
    options = tyro.cli(Suites, args=arguments, prog="airloc suites")
    run(options, " ".join(["airloc", "suites", *map(shlex.quote, arguments)]))


def run(options: Suites, command: str) -> None:
    """Plan, play what is missing, write the page and print it."""
    recipes = find(options.names)
    if options.list:
        print("\n".join(map(_told, recipes)))
        return
    if options.most is not None and options.most < 1:
        raise AirlocError(f"With {options.most} areas there is nothing to play", "Give --most 1 or more")
    check_device(options.device)
    agents = choose_agents(options.agent)
    plan = plan_trials(recipes, agents, _root(options), seed=options.seed, most=options.most)
    store = Store(options.out)
    with store.locked():
        compute(plan.tasks, store, device=options.device, ray=options.ray, command=command)
        about = About(command, made_with(), recipes, agents, plan.skipped, options.seed, options.most)
        page = make_page(plan.results(store), about)
        place = page.write(options.out)
    print(page.markdown)
    print(f"The page: {place.resolve()}", file=sys.stderr)


def _root(options: Suites) -> Path | None:
    named = os.environ.get(VARIABLE, "")
    return options.data or (Path(named).expanduser() if named else None)


def _told(recipe: Recipe) -> str:
    return "\n".join([f"{recipe.name}: {recipe.what}", *(f"    {line}" for line in recipe.commands())])
