"""`airloc reproduce`: the paper's tables and figures made again, ours beside theirs, in one report."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from tyro.conf import arg

from airloc.cli.computing import compute, made_with
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import check_device
from airloc.reports.reproduction import About, make_report
from airloc.reproduce.plan import Asked, Planner, Weights
from airloc.reproduce.presets import PRESETS
from airloc.reproduce.results import curves, declined, outcomes
from airloc.reproduce.sources import Sources
from airloc.reproduce.store import Store


@dataclass(frozen=True)
class Reproduce:
    """Train and evaluate what the paper reports, and our own agents beside it; what is done is not done again."""

    table: int | None = None
    """Only this table of the paper: 1 to 5."""
    figure: int | None = None
    """Only this figure of the paper: 3 (success by distance), or 2 or 4 to 19 (searches)."""
    all: bool = False
    """All tables and figures, and the successors' protocol."""
    data: Path | None = None
    """Folder of datasets (masa, dubai, xbd), such as $AIRLOC_DATA; procedural areas unless given."""
    preset: Literal["smoke", "fast", "paper"] = "smoke"
    """How much is computed: minutes on two cores to see that it runs, small trainings, or the paper's on a GPU."""
    weights: Weights = "trained"
    """Train the paper's agents, or take the shipped weights."""
    seeds: int = 5
    """Policies trained of each variant; the median one stands in the tables."""
    seed: int = 0
    """Decides weights, episodes and every random choice."""
    out: Path = Path("out/reproduce")
    """Folder of results and of the report."""
    device: str = "cpu"
    """Where to compute here, such as cpu or cuda."""
    ray: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Compute on the Ray cluster at this address instead, such as 10.0.0.1:6379, or auto; local: a task a core here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc reproduce`."""
    options = tyro.cli(Reproduce, args=arguments, prog="airloc reproduce")
    run(options, "airloc reproduce " + shlex.join(arguments))


def run(options: Reproduce, command: str) -> None:
    """Plan, compute what is missing, and write the report."""
    asked = _asked(options)
    if options.seeds < 1:
        raise AirlocError(f"{options.seeds} seeds train nothing", "Give --seeds 1 or more")
    check_device(options.device)
    preset = PRESETS[options.preset]
    sources = Sources(options.data, preset)
    _require_data(options, sources, asked)
    plan = Planner(sources, preset, options.seeds, options.seed, options.weights).plan(asked)
    store = Store(options.out)
    with store.locked():
        compute(plan.tasks, store, device=options.device, ray=options.ray, command=command)
        remarks = [*sources.remarks(), *declined(plan, store)]
        about = About(command, _base(options), remarks, made_with(), asked.tables, asked.protocol)
        page = make_report(outcomes(plan, store), curves(plan, store), about).write(options.out)
    console = Console()
    console.print(f"The report: {page.resolve()}", soft_wrap=True, highlight=False, markup=False)


def _asked(options: Reproduce) -> Asked:
    """What is asked for, if it is one thing that the paper has."""
    chosen = [options.table is not None, options.figure is not None, options.all]
    if sum(chosen) != 1:
        raise AirlocError("It is not said what to reproduce", "Give one of --table N, --figure N and --all")
    if options.table is not None:
        return Asked(tables=(options.table,))
    return Asked.everything() if options.all else Asked(figures=(options.figure or 0,))


def _require_data(options: Reproduce, sources: Sources, asked: Asked) -> None:
    """Refuse a table or a figure whose data is not there; with --all it is left out and the report says so."""
    if options.all:
        return
    for number, role in asked.needs():
        sources.require(role, number)


def _base(options: Reproduce) -> str:
    """The command but for what is asked for."""
    words = ["airloc", "reproduce", "--preset", options.preset, "--seeds", str(options.seeds)]
    words += ["--seed", str(options.seed), "--weights", options.weights, "--out", str(options.out)]
    return shlex.join(words + (["--data", str(options.data)] if options.data else []))
