"""`airloc calibration`: is the goal where an agent believes it is, as often as it says?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT
from airloc.cli.outputs import promised
from airloc.cli.playing import Playing, prepare
from airloc.cli.progress import bar
from airloc.drawing.files import write_atomically
from airloc.evaluation.records import to_json
from airloc.evaluation.reliability import Reliability, calibration
from airloc.evaluation.watching import Watched, watch
from airloc.reports.calibration import calibration_chart, calibration_table


@dataclass(frozen=True, kw_only=True)
class Calibration(Playing):
    """Compare an agent's belief with where the goals were: reliability by bins, and expected calibration error."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent that keeps a belief, or its checkpoint folder."""
    chart: Annotated[Path | None, arg(metavar="OUT.svg")] = None
    """Write the reliability diagram here."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the figures here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc calibration`."""
    run(tyro.cli(Calibration, args=arguments, prog="airloc calibration"))


def run(options: Calibration) -> None:
    """Let the agent play, and show, draw and write how reliable its belief was."""
    with promised([path for path in (options.chart, options.json) if path]):
        watched = _watch(options)
        found = calibration(watched, seed=options.seed)
        if options.chart is not None:
            write_atomically(options.chart, calibration_chart(watched.agent, found))
        if options.json is not None:
            write_atomically(options.json, to_json(_record(watched, found)))
    Console().print(calibration_table(watched, found))


def _watch(options: Calibration) -> Watched:
    (agent,), suite, areas, goal_areas = prepare(options, [options.agent])
    with bar("playing", len(suite)) as advance:
        return watch(
            agent,
            areas,
            suite,
            goal_areas=goal_areas,
            must_believe=True,
            seed=options.seed,
            batch=options.batch,
            device=options.device,
            on_batch=advance,
        )


def _record(watched: Watched, found: Mapping[str, Reliability]) -> dict[str, object]:
    suite = watched.suite
    return {
        "agent": watched.agent,
        "episodes": len(suite),
        "areas": len(set(suite.area.tolist())),
        "beliefs": int(watched.made.sum()),
        "grid": str(suite.grid),
        "budget": suite.budget,
        "suite": {"name": suite.name, "sha256": suite.digest},
        **{name: entry.record() for name, entry in found.items()},
    }
