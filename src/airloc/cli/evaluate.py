"""`airloc evaluate`: score an agent on areas, with intervals and beside the blind optimum."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from airloc import __version__
from airloc.agents.agent import AgentOptions
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import DEFAULT_AGENT, plugin_agents, weight_hashes
from airloc.cli.console import device_name, progress_bar, status, writable_outputs
from airloc.cli.options import Episodes, PlayOptions, load_agents, load_episodes
from airloc.errors import AirlocError
from airloc.evaluation.controls import GoalChange, check_control, check_flight
from airloc.evaluation.scores import Score, compare, evaluate, images_digest, to_json, trajectory_lines
from airloc.evaluation.texts import TEXT_CONTROLS, DescribedGoals, check_texts
from airloc.files import write_atomically
from airloc.reports.tables import comparison_line, goals_line, score_table
from airloc.task.goal_texts import read_goal_texts, texts_of
from airloc.task.motion import Motion
from airloc.task.suites import Suite, end_by_declaration, with_drones


@dataclass(frozen=True, kw_only=True)
class Evaluate(PlayOptions):
    """Score an agent: the paper's five metrics with 95 % intervals, beside the blind optimum."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    equal_distances: bool = False
    """With --episodes all-pairs, weight pairs so that every distance counts the same, as in per-distance."""
    control: Literal["wrong-goal", "mean-goal", "wrong-text", "no-text", "true-text"] | None = None
    """Replace the goal patch or the text, to measure how much of the score depends on it."""
    goal_texts: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Describe the goals in words: a file with the columns area, goal_row, goal_col and text. Agents get no goal patch
    then, and generated episodes are those of the areas in the file."""
    with_pictures: bool = False
    """With --goal-texts, give agents the goal patches too."""
    change: str | None = None
    """Alter the goal patch: photometric, blur, coarse, off-grid, turned or all; or let goals lie anywhere between the
    cells, of any size and heading: anywhere, or any-heading if the heading is unknown."""
    change_strength: float = 1.0
    """Strength of the change, from 0 (none) to 1."""
    false_alarm_cost: Annotated[float | None, arg(metavar="FINDS")] = None
    """End episodes by declaration, with this cost of a false alarm in units of finds."""
    drones: int = 1
    """Number of drones, each with the budget; an episode ends when one of them reaches the goal."""
    launch: Literal["apart", "together"] = "apart"
    """Where several drones start: in different random cells, or all in the start."""
    moving: Annotated[float, arg(metavar="CELLS")] = 0.0
    """Let the goal walk, this many steps per move of a drone on average. Its patch shows where it was at first."""
    against: str | None = None
    """Another agent for a paired comparison on the same episodes."""
    sample: bool = False
    """Sample moves from their probabilities instead of taking the most probable one."""
    exact: bool = False
    """Compute in full precision, so that all machines give the same results."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the score to this file."""
    trajectories: Annotated[Path | None, arg(metavar="OUT.jsonl")] = None
    """Write the path of every episode to this file, one JSON object per line."""
    save_episodes: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write the episodes to this file, as an episode file."""
    timing: bool = True
    """Write the runtime. Without it, the same seed gives the same bytes."""

    def weighs_distances(self) -> bool:
        """Return True if pairs are weighted so that every distance counts the same."""
        return self.equal_distances

    def check(self) -> None:
        """Check the options without reading any file."""
        if self.goal_change() is not None:
            check_control(self.control)
        if self.flight_conditions is not None:
            check_flight(self.goal_change())
        if self.equal_distances and self.episodes != "all-pairs":
            raise AirlocError("--equal-distances weights all pairs of cells", "Add --episodes all-pairs")
        if self.false_alarm_cost is not None:
            declaration_threshold(self.false_alarm_cost)
        self._check_texts()
        Motion(self.moving)
        if self.false_alarm_cost is not None and (self.drones > 1 or self.moving):
            raise AirlocError("Teams and moving goals do not declare finds", "Leave out --false-alarm-cost")
        super().check()

    def _check_texts(self) -> None:
        if self.goal_texts is None and (self.with_pictures or self.control in TEXT_CONTROLS):
            option = "--with-pictures" if self.with_pictures else f"--control {self.control}"
            raise AirlocError(f"{option} needs goals in words", "Add --goal-texts FILE.csv")
        if self.goal_texts is not None and (self.drones > 1 or self.moving):
            raise AirlocError("Teams and moving goals have goal pictures", "Leave out --goal-texts")
        pictures = self.with_pictures or self.goal_texts is None
        if not pictures and (self.change or self.control not in (None, *TEXT_CONTROLS)):
            raise AirlocError("Without goal patches there is none to change or replace", "Add --with-pictures")

    def described_areas(self) -> set[str] | None:
        """Return the names of the areas that the file of texts describes; only these are played."""
        if self.goal_texts is None:
            return None
        return {area for area, _ in read_goal_texts(self.goal_texts, self.parsed_grid())}

    def described(self, suite: Suite) -> DescribedGoals | None:
        """Return the goals of a suite in words, if there is a file of texts; print warnings about them."""
        if self.goal_texts is None:
            return None
        texts = texts_of(suite, read_goal_texts(self.goal_texts, suite.grid))
        for warning in check_texts(suite, texts):
            status(f"airloc: {warning}")
        control = self.control if self.control in TEXT_CONTROLS else None
        return DescribedGoals(texts, self.with_pictures, control)

    def goal_change(self) -> GoalChange | None:
        """Return the change of the goal patches."""
        if self.change is not None:
            return GoalChange(self.change, self.change_strength)
        if self.change_strength != 1:
            raise AirlocError("--change-strength needs a change", "Add --change, such as --change all")
        return None


def main(arguments: Sequence[str]) -> None:
    """Run `airloc evaluate`."""
    run(tyro.cli(Evaluate, args=arguments, prog="airloc evaluate"))


def run(options: Evaluate) -> None:
    """Check the options, read the input, play, write and print."""
    options.check()
    with writable_outputs(options.json, options.trajectories, options.save_episodes):
        scores, episodes = _score(options)
        record = _record(scores, episodes, options)
        _write(options, scores[0], record)
    _show(scores, record, options)


def _score(options: Evaluate) -> tuple[list[Score], Episodes]:
    """Play the same episodes with the agent and the one it is compared with."""
    how = AgentOptions(seed=options.seed, device=options.device, sample=options.sample, full_precision=options.exact)
    names = [options.agent] if options.against is None else [options.agent, options.against]
    agents = load_agents(names, how)
    episodes = load_episodes(options)
    suite, areas, goal_areas = episodes
    suite = suite if options.false_alarm_cost is None else end_by_declaration(suite)
    suite = with_drones(suite, options.drones, options.launch, options.moving)
    described = options.described(suite)
    with progress_bar("playing", len(suite) * len(agents)) as advance:
        scores = [
            evaluate(
                agent,
                suite,
                areas,
                goal_areas=goal_areas,
                control=None if options.control in TEXT_CONTROLS else options.control,
                change=options.goal_change(),
                described=described,
                threshold=declaration_threshold(options.false_alarm_cost or 0.0),
                seed=options.seed,
                batch=options.batch,
                device=options.device,
                on_batch=advance,
            )
            for agent in agents
        ]
    return scores, episodes


def _record(scores: list[Score], episodes: Episodes, options: Evaluate) -> dict[str, Any]:
    record = scores[0].record(timing=options.timing) | _weights(options.agent, options)
    record["images"] = {
        "sha256": images_digest(episodes.areas),
        "goals_sha256": None if episodes.goal_areas is None else images_digest(episodes.goal_areas),
    }
    record["device"] = device_name(options.device)
    record["torch"] = torch.__version__
    record["batch"] = options.batch if options.timing else None  # without timing no value depends on it
    record["control"] = options.control
    record["change"] = options.change
    record["flight_conditions"] = options.flight_conditions
    record["options"] = {
        "areas": None if options.areas is None else str(options.areas),
        "dataset": options.dataset,
        "goals": None if options.goals is None else str(options.goals),
        "goal_texts": None if options.goal_texts is None else str(options.goal_texts),
        "with_pictures": options.with_pictures,
        "pairs": options.pairs,
        "subset": options.subset,
        "split": options.split,
        "only": list(options.only),
        "except": list(options.without),
        "change_strength": None if options.change is None else options.change_strength,
        "cell_metres": options.cell_metres,
        "equal_distances": options.equal_distances,
        "per_area": options.per_area,
        "false_alarm_cost": options.false_alarm_cost,
        "launch": options.launch,
        "sample": options.sample,
        "exact": options.exact,
        "seed": options.seed,
        "airloc": __version__,
    }
    if len(scores) > 1:
        assert options.against is not None
        record["against"] = compare(scores[0], scores[1], timing=options.timing) | _weights(options.against, options)
    return record


def _weights(agent: str, options: Evaluate) -> dict[str, Any]:
    """Return what identifies the weights and the code of an agent."""
    hashes = weight_hashes(agent, texts=options.goal_texts is not None)
    return {"weights_sha256": hashes, "package": plugin_agents().get(agent)}


def _write(options: Evaluate, score: Score, record: dict[str, Any]) -> None:
    if options.save_episodes is not None:
        write_atomically(options.save_episodes, score.suite.to_bytes())
    if options.trajectories is not None:
        write_atomically(options.trajectories, trajectory_lines(score))
    if options.json is not None:
        write_atomically(options.json, to_json(record))


def _show(scores: list[Score], record: dict[str, Any], options: Evaluate) -> None:
    console = Console()
    goals = goals_line(
        change=options.change,
        strength=options.change_strength,
        control=options.control,
        texts=options.goal_texts,
        pictures=options.with_pictures,
        source="another day" if options.pairs else options.goals,
        flight=options.flight_conditions,
    )
    console.print(score_table(scores, record["blind_optimum"], exact=record["blind_optimum_exact"], goals=goals))
    if "against" in record:
        console.print(comparison_line(scores[0].agent, record["against"]))
