"""`airloc reproduce`: make the paper's tables and figures, with our results beside them, in one report."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import arg

from airloc.agents.agent import check_device
from airloc.cli.console import say, status
from airloc.errors import AirlocError
from airloc.experiments.paper import PaperPlanner, Selection, Weights
from airloc.experiments.paper_data import PRESETS, PaperData
from airloc.experiments.runner import check_ray, made_with, run_missing
from airloc.experiments.store import Store
from airloc.reports.reproduction import ReportOptions, make_report


@dataclass(frozen=True)
class Reproduce:
    """Train and evaluate the agents of the paper, and our own agents, and write a report.

    Finished results are stored and not computed again.
    """

    table: int | None = None
    """Only this table of the paper, 1 to 5."""
    figure: int | None = None
    """Only this figure of the paper: 3 (success by distance), or 2 or 4 to 19 (searches)."""
    all: bool = False
    """All tables and figures, and the successors' protocol."""
    data: Path | None = None
    """Folder of datasets (masa, dubai, xbd), such as $AIRLOC_DATA. Default: procedural areas."""
    preset: Literal["smoke", "fast", "paper", "tuned"] = "smoke"
    """A test run of minutes on two cores, small trainings, or on a GPU the paper's training, or that of the shipped
    weights."""
    weights: Weights = "trained"
    """Train the agents of the paper, or only their policies on the shipped encoders, or use the shipped weights."""
    seeds: int = 5
    """Policies to train of each variant. The tables show the median one."""
    seed: int = 0
    """Random seed for initial weights, episodes and sampling."""
    out: Path = Path("out/reproduce")
    """Folder of results and of the report."""
    device: str = "cpu"
    """Device of this machine, such as cpu or cuda."""
    threads: int | None = None
    """CPU threads of a task on this machine. Default: 1 for the preset smoke, else PyTorch's default."""
    ray: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Run on the Ray cluster at this address, such as 10.0.0.1:6379 or auto; local: one task per CPU core here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc reproduce`."""
    options = tyro.cli(Reproduce, args=arguments, prog="airloc reproduce")
    run(options, "airloc reproduce " + shlex.join(arguments))


def run(options: Reproduce, command: str) -> None:
    """Plan the tasks, run those without a result, and write the report."""
    selection = _selection(options)
    _check(options)
    preset = PRESETS[options.preset]
    data = PaperData(options.data, preset)
    if not options.all:  # with --all, tables whose data is absent are left out
        for name, role in selection.required_data():
            data.require(role, name)
    if options.data is not None:
        status(f"Reading the datasets in {options.data}")
    plan = PaperPlanner(data, options.seeds, options.seed, options.weights).plan(selection)
    check_ray(options.ray)
    store = Store(options.out)
    with store.locked():
        threads = options.threads or preset.threads
        run_missing(plan.tasks, store, device=options.device, ray=options.ray, command=command, threads=threads)
        remarks = [*data.remarks(), *plan.declined(store)]
        about = ReportOptions(
            command, _base_command(options), remarks, made_with(), selection.tables, selection.successors
        )
        page = make_report(plan.results(store), plan.learning_curves(store), about).write(options.out)
    say(f"Report: {page.resolve()}")


def _selection(options: Reproduce) -> Selection:
    """Return the selected tables and figures."""
    if (options.table is not None) + (options.figure is not None) + options.all != 1:
        raise AirlocError("Nothing or too much is selected", "Give one of --table N, --figure N and --all")
    if options.table is not None:
        return Selection(tables=(options.table,))
    return Selection.everything() if options.all else Selection(figures=(options.figure or 0,))


def _check(options: Reproduce) -> None:
    """Check the options that need no data."""
    if options.seeds < 1:
        raise AirlocError(f"Cannot train {options.seeds} seeds", "Give --seeds 1 or more")
    if options.threads is not None and options.threads < 1:
        raise AirlocError(f"Cannot compute with {options.threads} threads", "Give --threads 1 or more")
    if options.weights == "encoders" and options.preset == "paper":
        raise AirlocError("The shipped encoders are not those of the preset paper", "Give --preset tuned")
    check_device(options.device)


def _base_command(options: Reproduce) -> str:
    """Return the command without --all, --table and --figure."""
    words = ["airloc", "reproduce", "--preset", options.preset, "--seeds", str(options.seeds)]
    words += ["--seed", str(options.seed), "--weights", options.weights, "--out", str(options.out)]
    return shlex.join(words + (["--data", str(options.data)] if options.data else []))
