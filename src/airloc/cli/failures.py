"""`airloc failures`: the searches in which an agent did not find the goal, on one sheet to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT
from airloc.cli.console import bar, promised
from airloc.cli.options import Playing, prepare
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import to_json
from airloc.evaluation.recording import RolloutLog, watch
from airloc.files import save_picture, write_atomically
from airloc.reports.searches import failure_sheet, choose_failures


@dataclass(frozen=True, kw_only=True)
class Failures(Playing):
    """Draw failed searches: goal picture, path and the last belief, with the place of the goal in it."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    count: int = 20
    """How many to draw, from as many areas as there are."""
    columns: int = 2
    """Searches in a row of the sheet."""
    sheet: Annotated[Path, arg(metavar="OUT.png")] = Path("out/failures.png")
    """Write the sheet here, PNG or JPEG by its name; nothing is written where every goal was found."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write all failures here, with the belief at the goal and its place."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc failures`."""
    run(tyro.cli(Failures, args=arguments, prog="airloc failures"))


def run(options: Failures) -> None:
    """Let the agent play, and draw and list what it did not find."""
    if options.count < 1 or options.columns < 1:
        problem = f"A sheet of {options.count} failures in {options.columns} columns shows nothing"
        raise AirlocError(problem, "Give --count and --columns of 1 or more")
    with promised([path for path in (options.sheet, options.json) if path]):
        watched = _watch(options)
        shown = choose_failures(watched, options.count, options.seed)
        if shown:
            save_picture(failure_sheet(watched, shown, columns=options.columns), options.sheet)
        if options.json is not None:
            write_atomically(options.json, to_json(_record(watched)))
    _tell(watched, options.sheet if shown else None)


def _watch(options: Failures) -> RolloutLog:
    (agent,), suite, areas, goal_areas = prepare(options, [options.agent])
    how: dict[str, Any] = {"seed": options.seed, "batch": options.batch, "device": options.device}
    with bar("playing", len(suite)) as advance:
        return watch(agent, areas, suite, goal_areas=goal_areas, on_batch=advance, **how)


def _record(watched: RolloutLog) -> dict[str, Any]:
    """All failures as plain JSON values."""
    suite, failures = watched.suite, []
    for number in (~watched.played.found).nonzero()[0].tolist():
        search = watched.search(number)
        failures.append(
            {
                "area": search.area.name,
                "start": list(search.path[0]),
                "goal": list(search.goal),
                "distance": int(suite.distance[number]),
                "belief": search.chance,
                "rank": search.rank,
                "path": [list(cell) for cell in search.path],
            }
        )
    return {"agent": watched.agent, "episodes": len(suite), "failures": failures}


def _tell(watched: RolloutLog, sheet: Path | None) -> None:
    """Say how many failed and where the sheet is."""
    console, failed = Console(), int((~watched.played.found).sum())
    console.print(f"{watched.agent} did not find {failed} of {len(watched.suite)} goals", highlight=False, markup=False)
    if sheet is not None:
        console.print(f"The sheet: {sheet.resolve()}", soft_wrap=True, highlight=False, markup=False)
