"""Computing what is missing of a plan, here or on a cluster, with one progress display for everything."""

import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tyro.conf import arg

from airloc import __version__
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import check_device
from airloc.experiments.data import PRESETS, Sources
from airloc.experiments.graph import CODE, Task, code_digest
from airloc.experiments.paper import Asked, Planner, Weights, curves, declined, outcomes
from airloc.experiments.runner import Watcher, missing, run_here
from airloc.experiments.store import Store
from airloc.reports.reproduction import About, make_report


def compute(tasks: Sequence[Task], store: Store, *, device: str, ray: str | None, command: str) -> None:
    """Do what is missing of some tasks.

    Args:
        tasks: What is wanted, each after its inputs.
        store: Where results are and go; to be held by the caller.
        device: Where to compute here.
        ray: Address of a Ray cluster to compute on instead.
        command: The command that all this is for.
    """
    todo = missing(tasks, store)
    if not todo:
        return
    with _watch(len(tasks), len(tasks) - len(todo)) as watcher:
        if ray is not None:
            from airloc.experiments.cluster import run_on_cluster

            run_on_cluster(todo, store, watcher, address=ray, command=command)
        else:
            run_here(todo, store, watcher, device=device, command=command)


def made_with() -> str:
    """Version, code and machine."""
    parts = tuple(sorted({part for parts in CODE.values() for part in parts}))
    return (
        f"Made with airloc {__version__}, code {code_digest(parts)[:12]}, on {platform.machine()} with "
        f"{os.cpu_count()} CPU cores, Python {platform.python_version()}."
    )


class _Display(Watcher):
    """One bar for everything, with what is being done beside it."""

    def __init__(self, progress: Progress, total: int, done: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("reproducing", total=total, completed=done, now="")
        self._quiet = not progress.console.is_terminal
        self._total, self._done = total, done

    def begin(self, task: Task) -> None:
        """Show what is begun."""
        self._name = f"{task.kind}: {task.name}"
        self._progress.update(self._bar, now=self._name)

    def say(self, words: str) -> None:
        """Show how far it is."""
        self._progress.update(self._bar, now=f"{self._name}, {words}")

    def end(self, task: Task) -> None:
        """Count it."""
        self._done += 1
        self._progress.update(self._bar, advance=1)
        if self._quiet:
            line = f"{self._done}/{self._total} {task.kind}: {task.name}"
            self._progress.console.print(line, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def _watch(total: int, done: int) -> Iterator[Watcher]:
    """Show progress on the error stream: a bar where somebody watches, else a line a task."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Display(progress, total, done)


# ---------- `airloc reproduce`: the paper's tables and figures made again, ours beside theirs, in one report.
# ~


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
