"""`airloc analyse`: what agents believe, where they fail, shortcuts they take, and how folds of a training sum up."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.airloc import AirlocAgent
from airloc.agents.registry import DEFAULT_AGENT
from airloc.cli.console import PICTURES, check_suffix, progress_bar, say, status, writable_outputs
from airloc.cli.options import Episodes, PlayOptions, load_agents, load_episodes
from airloc.cli.shortcuts import Puzzles, Shortcuts
from airloc.errors import AirlocError
from airloc.evaluation.analysis import (
    PriorAgreement,
    Reliability,
    calibration,
    first_glimpses,
    match_calibration,
    prior_agreement,
)
from airloc.evaluation.metrics import Bootstrap, Overlap, pooled
from airloc.evaluation.scores import to_json
from airloc.files import save_picture, write_atomically
from airloc.reports.analysis import calibration_chart, calibration_table, exploitation_chart, exploitation_table
from airloc.reports.searches import choose_failures, failure_sheet
from airloc.rollout import BELIEF, MATCH, PRIOR_FOLLOWED, Recorder, RolloutLog, rollout
from airloc.training.segmenter import fold_overlaps


@dataclass(frozen=True, kw_only=True)
class Calibration(PlayOptions):
    """Compare an agent's probabilities with outcomes: reliability by bins, and the expected calibration error."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent that has a belief, or its checkpoint folder."""
    match: bool = False
    """Analyse the match probability at every glimpse instead of the belief. Works with every agent."""
    chart: Annotated[Path | None, arg(metavar="OUT.svg")] = None
    """Write the reliability diagram to this file."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the numbers to this file."""

    def run(self) -> None:
        """Play the episodes, compare, write and print."""
        self.check()
        check_suffix(self.chart, ".svg")
        with writable_outputs(self.chart, self.json):
            log, found = self._play()
            count = int((first_glimpses(log.path, log.suite.grid) if self.match else log.moved).sum())
            if self.chart is not None:
                write_atomically(self.chart, calibration_chart(log.agent, found))
            if self.json is not None:
                write_atomically(self.json, to_json(self._record(log, count, found)))
        forecasts = f"{count:,} {'glimpses' if self.match else 'beliefs'}"
        Console().print(calibration_table(log.agent, log.suite, forecasts, found))

    def _play(self) -> tuple[RolloutLog, Mapping[str, Reliability]]:
        agents = load_agents([self.agent], AgentOptions(seed=self.seed, device=self.device))
        episodes = load_episodes(self)
        if not self.match:
            ((log, bootstrap),) = _rollouts(agents, episodes, self, replace(BELIEF, required=True))
            return log, calibration(log, bootstrap)
        # Episodes must not end at the goal, or a goal that is flown over unrecognised would count as recognised.
        episodes = episodes._replace(suite=replace(episodes.suite, by_declaration=True))
        ((log, bootstrap),) = _rollouts(agents, episodes, self, MATCH, threshold=math.inf)
        return log, {"here": match_calibration(log, bootstrap)}

    def _record(self, log: RolloutLog, count: int, found: Mapping[str, Reliability]) -> dict[str, object]:
        suite = log.suite
        return {
            "agent": log.agent,
            "episodes": len(suite),
            "areas": len(set(suite.area.tolist())),
            "glimpses" if self.match else "beliefs": count,
            "grid": str(suite.grid),
            "budget": suite.budget,
            "flight_conditions": self.flight_conditions,
            "suite": {"name": suite.name, "sha256": suite.digest},
            **{name: entry.record() for name, entry in found.items()},
        }


@dataclass(frozen=True, kw_only=True)
class Exploitation(PlayOptions):
    """Measure how often AiRLoc makes the move argmax u, by the distance left to the goal (the paper's figure)."""

    agents: Positional[tuple[str, ...]]
    """Names of AiRLoc agents, or checkpoint folders. All play the same episodes."""
    chart: Annotated[Path | None, arg(metavar="OUT.svg")] = None
    """Write the chart to this file."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the shares to this file."""

    def run(self) -> None:
        """Play the episodes, count, write and print."""
        self.check()
        check_suffix(self.chart, ".svg")
        with writable_outputs(self.chart, self.json):
            found = self._play()
            if self.chart is not None:
                write_atomically(self.chart, exploitation_chart(found, self.parsed_grid().max_distance))
            if self.json is not None:
                records = {name: {str(d): at.record() for d, at in shares.items()} for name, shares in found.items()}
                write_atomically(self.json, to_json(records))
        Console().print(exploitation_table(found))

    def _play(self) -> dict[str, dict[int, PriorAgreement]]:
        agents = load_agents(
            list(dict.fromkeys(self.agents)), AgentOptions(seed=self.seed, device=self.device), _require_prior
        )
        rollouts = _rollouts(agents, load_episodes(self), self, PRIOR_FOLLOWED)
        return {log.agent: prior_agreement(log, bootstrap) for log, bootstrap in rollouts}


@dataclass(frozen=True, kw_only=True)
class Failures(PlayOptions):
    """Draw failed searches: the goal patch, the path and the last belief, with the rank of the goal in it."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    count: int = 20
    """Number of searches to draw, from as many areas as possible."""
    columns: int = 2
    """Searches per row of the sheet."""
    sheet: Annotated[Path, arg(metavar="OUT.png")] = Path("out/failures.png")
    """Write the sheet to this file, PNG or JPEG by its suffix. Nothing is written if every goal was found."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write all failures to this file, with the probability and the rank of the goal in the last belief."""

    def run(self) -> None:
        """Play the episodes, then draw and list the failures."""
        self.check()
        if self.count < 1 or self.columns < 1:
            problem = f"A sheet of {self.count} searches in {self.columns} columns is empty"
            raise AirlocError(problem, "Use --count and --columns of 1 or more")
        check_suffix(self.sheet, *PICTURES)
        with writable_outputs(self.sheet, self.json):
            agents = load_agents([self.agent], AgentOptions(seed=self.seed, device=self.device))
            episodes = load_episodes(self)
            ((log, _),) = _rollouts(agents, episodes, self, BELIEF)
            drawn = choose_failures(log, self.count, self.seed)
            if drawn:
                status(f"Drawing {len(drawn)} failed searches")
                sheet = failure_sheet(log, drawn, episodes.areas, episodes.goal_areas, columns=self.columns)
                save_picture(sheet, self.sheet)
            if self.json is not None:
                write_atomically(self.json, to_json(_failures(log, episodes)))
        print(f"{log.agent} did not find {int((~log.found).sum())} of {len(log.suite)} goals")
        if drawn:
            say(f"Sheet: {self.sheet.resolve()}")


@dataclass(frozen=True)
class Folds:
    """Pool IoU and F1 of the building class over the folds trained by 'airloc train segmenter --fold N --out DIR'."""

    runs: Positional[tuple[Path, ...]]
    """The folders given as --out, one per fold."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the numbers to this file."""

    def run(self) -> None:
        """Read the pixel counts of every fold, add them up and print them."""
        if not self.runs:
            raise AirlocError("No run is named", "Name the --out folder of every fold of 'airloc train segmenter'")
        with writable_outputs(self.json):
            counts = fold_overlaps([folder / "segmenter" for folder in self.runs])
            rows = {**{str(fold): count for fold, count in counts.items()}, "pooled": pooled(counts.values())}
            if self.json is not None:
                write_atomically(self.json, to_json({name: _overlap(count) for name, count in rows.items()}))
        table = Table("fold", "IoU", "F1", "building pixels")
        for name, count in rows.items():
            table.add_row(name, f"{count.iou:.3f}", f"{count.f1:.3f}", f"{count.tp + count.fn:,}")
        Console().print(table)


def main(arguments: Sequence[str]) -> None:
    """Run `airloc analyse`."""
    analysis: Calibration | Exploitation | Failures | Folds | Shortcuts | Puzzles = (
        tyro.extras.subcommand_cli_from_dict(
            {
                "calibration": Calibration,
                "exploitation": Exploitation,
                "failures": Failures,
                "folds": Folds,
                "shortcuts": Shortcuts,
                "puzzles": Puzzles,
            },
            args=arguments,
            prog="airloc analyse",
            description="Analyse an agent's probabilities, failures, shortcuts or use of the prior, or pool folds.",
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        )
    )
    analysis.run()


def _rollouts(
    agents: Sequence[Agent], episodes: Episodes, options: PlayOptions, record: Recorder, threshold: float = 0.5
) -> list[tuple[RolloutLog, Bootstrap]]:
    """Play the episodes with every agent and one recorder."""
    suite, areas, goal_areas = episodes
    status(f"Playing {len(suite) * len(agents):,} episodes")
    with progress_bar("playing", len(suite) * len(agents)) as advance:
        logs = [
            rollout(
                agent,
                suite,
                areas,
                record=[record],
                goal_areas=goal_areas,
                threshold=threshold,
                seed=options.seed,
                batch=options.batch,
                device=options.device,
                on_batch=advance,
            )
            for agent in agents
        ]
    return [(log, Bootstrap.over(suite, areas, options.seed)) for log in logs]


def _require_prior(agent: Agent) -> None:
    """Raise an error for an agent that has no exploitation prior."""
    if not isinstance(agent, AirlocAgent):
        problem = f"The agent {agent.name!r} has no exploitation prior"
        raise AirlocError(problem, "Use airloc, one of its variants, or the checkpoint folder of one")


def _failures(log: RolloutLog, episodes: Episodes) -> dict[str, Any]:
    """Return all failures as plain JSON values."""
    failures = []
    for index in (~log.found).nonzero()[0].tolist():
        episode = log.episode(index, episodes.areas, episodes.goal_areas)
        failures.append(
            {
                "area": episode.area.name,
                "start": list(episode.path[0]),
                "goal": list(episode.goal),
                "distance": int(log.suite.distance[index]),
                "belief": episode.goal_probability,
                "rank": episode.goal_rank,
                "path": [list(cell) for cell in episode.path],
            }
        )
    return {"agent": log.agent, "episodes": len(log.suite), "failures": failures}


def _overlap(count: Overlap) -> dict[str, float]:
    return {**count._asdict(), "iou": count.iou, "f1": count.f1}
