"""`airloc calibration`: is the goal where an agent believes it is, as often as it says?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT
from airloc.cli.console import bar, promised
from airloc.cli.options import Playing, prepare
from airloc.evaluation.calibration import Reliability, calibration, judge, match_calibration
from airloc.evaluation.evaluate import to_json
from airloc.evaluation.recording import watch
from airloc.files import write_atomically
from airloc.reports.analysis import calibration_chart, calibration_table
from airloc.task.suites import Suite


@dataclass(frozen=True, kw_only=True)
class Calibration(Playing):
    """Compare an agent's belief with where the goals were: reliability by bins, and expected calibration error."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent that keeps a belief, or its checkpoint folder."""
    here: bool = False
    """Judge instead what the agent says at every glimpse of its being the goal's; any agent can be asked."""
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
        asked = _judge(options) if options.here else _watch(options)
        if options.chart is not None:
            write_atomically(options.chart, calibration_chart(asked.agent, asked.found))
        if options.json is not None:
            write_atomically(options.json, to_json(_record(asked)))
    forecasts = f"{asked.forecasts:,} {'glimpses' if options.here else 'beliefs'}"
    Console().print(calibration_table(asked.agent, asked.suite, forecasts, asked.found))


class _Asked(NamedTuple):
    """What an agent forecast over a suite, and how it came true."""

    agent: str
    suite: Suite
    forecasts: int
    """Beliefs before moves, or glimpses."""
    found: Mapping[str, Reliability]


def _watch(options: Calibration) -> _Asked:
    (agent,), suite, areas, goal_areas = prepare(options, [options.agent])
    with bar("playing", len(suite)) as advance:
        watched = watch(
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
    return _Asked(watched.agent, suite, int(watched.made.sum()), calibration(watched, seed=options.seed))


def _judge(options: Calibration) -> _Asked:
    (agent,), suite, areas, goal_areas = prepare(options, [options.agent])
    with bar("playing", len(suite)) as advance:
        judged = judge(
            agent,
            areas,
            suite,
            goal_areas=goal_areas,
            seed=options.seed,
            batch=options.batch,
            device=options.device,
            on_batch=advance,
        )
    found = {"here": match_calibration(judged, seed=options.seed)}
    return _Asked(judged.agent, judged.suite, int(judged.asked.sum()), found)


def _record(asked: _Asked) -> dict[str, object]:
    suite = asked.suite
    return {
        "agent": asked.agent,
        "episodes": len(suite),
        "areas": len(set(suite.area.tolist())),
        "glimpses" if "here" in asked.found else "beliefs": asked.forecasts,
        "grid": str(suite.grid),
        "budget": suite.budget,
        "suite": {"name": suite.name, "sha256": suite.digest},
        **{name: entry.record() for name, entry in asked.found.items()},
    }
