"""`airloc export`: write an agent as ONNX graphs, with a runner that needs neither PyTorch nor airloc."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import make_agent
from airloc.cli.console import need, say, status, writable_outputs
from airloc.errors import AirlocError

if TYPE_CHECKING:
    from airloc.export.export import ExportReport


@dataclass(frozen=True)
class Export:
    """Write an agent as ONNX graphs, with an int8 version and a runner in one file, and compare them with PyTorch."""

    agent: Positional[str]
    """Name of an agent, or a checkpoint folder."""
    onnx: Path
    """Output folder."""
    episodes: int = 200
    """Number of episodes on procedural areas for the comparison."""
    seed: int = 0
    """Random seed for the areas and inputs of the comparison."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc export`."""
    options = tyro.cli(Export, args=arguments, prog="airloc export")
    need("export", "onnx", "onnxruntime", "onnxscript")
    run(options)


def run(options: Export) -> None:
    """Export the agent and print the comparison; print each step on the error stream."""
    if options.episodes < 1:
        problem = f"An export cannot be compared on {options.episodes} episodes"
        raise AirlocError(problem, "Use --episodes 1 or more")
    status(f"Loading {options.agent}")
    agent = make_agent(options.agent, AgentOptions(seed=options.seed, full_precision=True))
    from airloc.export.export import RUNNER, export_agent

    with writable_outputs(options.onnx / RUNNER):
        report = export_agent(agent, options.onnx, episodes=options.episodes, seed=options.seed, on_step=status)
    _print(report)


def _print(report: "ExportReport") -> None:
    table = Table("Version", "MB", "ms a move", "Success %", "Paths as in torch %", box=SIMPLE_HEAD)
    for version in report.versions:
        size = f"{version.bytes / 1e6:.2f}" if version.bytes else ""
        numbers = (f"{100 * share:.1f}" for share in (version.success, version.same_paths))
        table.add_row(version.name, size, f"{version.ms_a_move:.2f}", *numbers)
    print(f"{report.episodes} episodes on procedural areas, one core, one episode at a time")
    Console().print(table)
    print(f"Largest difference to torch on random inputs: {report.difference:.1e}")
    say(f"Written to {report.folder.resolve()}")
