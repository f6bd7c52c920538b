"""`airloc suites`: evaluate all agents on all benchmark suites, and write one page of tables."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, UseAppendAction, arg

from airloc.agents.agent import check_device
from airloc.areas.dataset import VARIABLE
from airloc.cli.console import status
from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.suites import SuiteSpec, find_suites
from airloc.experiments.runner import check_ray, made_with, run_missing
from airloc.experiments.store import Store
from airloc.experiments.suites import choose_agents, plan_suites
from airloc.reports.suites import PageOptions, make_page


@dataclass(frozen=True)
class Suites:
    """Evaluate agents on benchmark suites, and write tables with intervals, blind optimum and commands.

    Finished results are stored and not computed again.
    """

    names: Positional[Annotated[tuple[str, ...], arg(metavar="[SUITE ...]")]] = ()
    """Names of suites. Default: all."""
    agent: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Only the agents whose names match a pattern such as 'belief*'. Repeat for several patterns."""
    data: Path | None = None
    """Folder of datasets. Default: $AIRLOC_DATA. Suites whose data is absent are skipped."""
    limit: Annotated[int | None, arg(metavar="AREAS")] = None
    """Use at most this many areas of each suite, evenly spaced, for a test run."""
    list: bool = False
    """Only print the suites and their commands."""
    seed: int = 0
    """Random seed for episodes, sampling and bootstrap."""
    out: Path = Path("out/suites")
    """Folder of results, tables and charts."""
    device: str = "cpu"
    """Device of this machine, such as cpu or cuda."""
    ray: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Run on the Ray cluster at this address, such as 10.0.0.1:6379 or auto; local: one task per CPU core here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc suites`."""
    options = tyro.cli(Suites, args=arguments, prog="airloc suites")
    run(options, " ".join(["airloc", "suites", *map(shlex.quote, arguments)]))


def run(options: Suites, command: str) -> None:
    """Plan the tasks, run those without a result, write the page and print it."""
    suites = find_suites(options.names)
    if options.list:
        print("\n".join(map(_describe, suites)))
        return
    if options.limit is not None and options.limit < 1:
        raise AirlocError(f"Cannot evaluate on {options.limit} areas", "Give --limit 1 or more")
    check_device(options.device)
    agents, root = choose_agents(options.agent), _data_root(options)
    if root is not None and root.is_dir():
        status(f"Reading the datasets in {root}")
    plan = plan_suites(suites, agents, root, seed=options.seed, limit=options.limit)
    check_ray(options.ray)
    store = Store(options.out)
    with store.locked():
        run_missing(plan.tasks, store, device=options.device, ray=options.ray, command=command)
        about = PageOptions(command, made_with(), suites, agents, plan.skipped, options.seed, options.limit)
        page = make_page(plan.results(store), about)
        path = page.write(options.out)
    print(page.markdown)
    status(f"Page: {path.resolve()}")


def _data_root(options: Suites) -> Path | None:
    """Return the folder of datasets, or None if there is none."""
    if options.data is not None and not options.data.is_dir():
        raise AirlocError(f"There is no data folder {str(options.data)!r}", "Check --data, or leave it out")
    named = os.environ.get(VARIABLE, "")
    return options.data or (Path(named).expanduser() if named else None)


def _describe(suite: SuiteSpec) -> str:
    return "\n".join([f"{suite.name}: {suite.description}", *(f"    {line}" for line in suite.commands())])
