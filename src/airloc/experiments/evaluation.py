"""Evaluation tasks: one agent plays one suite."""

from collections.abc import Sequence
from typing import Any

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.blind import blind
from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_local
from airloc.agents.registry import load_agent, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.prepared import Prepared
from airloc.evaluation.analysis import calibration, prior_agreement
from airloc.evaluation.controls import GoalChange
from airloc.evaluation.scores import Score, evaluate
from airloc.evaluation.texts import TEXT_CONTROLS, DescribedGoals
from airloc.experiments.datasets import AREAS_FOLDER, GOALS_FOLDER, TEXTS
from airloc.experiments.graph import Task, TaskContext, TaskKind
from airloc.experiments.training import agent_folder
from airloc.grid import Grid
from airloc.reports.results import save_declined, save_result
from airloc.rollout import BELIEF, PRIOR_FOLLOWED, DiagonalError
from airloc.task import priors
from airloc.task.goal_texts import read_goal_texts, texts_of
from airloc.task.photos import FlightConditions
from airloc.task.suites import Suite, generate, with_drones


def _evaluate_agent(context: TaskContext) -> None:
    """Let the agent play the suite, and write the result."""
    settings = context.settings
    grid = Grid.parse(settings["grid"], moves=settings["moves"])
    areas, goals = (context.inputs["areas"] / name for name in (AREAS_FOLDER, GOALS_FOLDER))
    search_areas = list(Prepared(areas).areas(grid))
    goal_areas = list(Prepared(goals).areas(grid)) if goals.is_dir() else None
    suite = generate(
        settings["episodes"],
        [area.name for area in search_areas],
        grid,
        per_area=settings["per_area"],
        equal_distances=settings["equal_distances"],
        seed=settings["seed"],
        budget=settings["budget"],
    )
    context.report(f"{len(suite)} episodes")
    try:
        _play(context, suite, search_areas, goal_areas)
    except DiagonalError as error:  # an agent without the four moves does not stop the others
        save_declined(context.out, error.problem, seed=settings["seed"])


EVALUATION = TaskKind("evaluation", 1, _evaluate_agent)


def evaluation_task(
    name: str,
    agent: str,
    areas: Task,
    *,
    grid: str,
    moves: int = 8,
    budget: int | None = None,
    episodes: str = "per-distance",
    per_area: int | None = None,
    equal_distances: bool = False,
    change: str | None = None,
    control: str | None = None,
    flight_conditions: float | None = None,
    drones: int = 1,
    moving: float = 0.0,
    weights: str = "",
    policy: Task | None = None,
    seed_rank: int = 0,
    seed: int = 0,
    full_precision: bool = False,
    analyses: bool = False,
) -> Task:
    """Return the task that evaluates an agent on a suite.

    Args:
        name: Description of the evaluation.
        agent: Name of the agent.
        areas: The areas task.
        grid: Rows and columns of cells.
        moves: Directions of a move, 8 or 4.
        budget: Moves allowed; the grid's default if None.
        episodes: How the episodes are drawn.
        per_area: Episodes of each area, or of each area and distance.
        equal_distances: Weight all pairs so that all distances count the same.
        change: Change of the goal images.
        control: Control of the goal images.
        flight_conditions: Strength of the flight conditions.
        drones: Number of drones.
        moving: Steps of the goal per move of a drone.
        weights: Digest of the installed weights.
        policy: The training whose weights the agent uses instead.
        seed_rank: Which of its seeds; 0 is the median one.
        seed: Seed of the episodes, the agent and the bootstrap.
        full_precision: Compute in full precision on a GPU too.
        analyses: Also record agreement with the exploitation prior and calibration of the belief.
    """
    settings = {
        "agent": agent,
        "weights": weights,
        "seed_rank": seed_rank,
        "grid": grid,
        "moves": moves,
        "budget": budget,
        "episodes": episodes,
        "per_area": per_area,
        "equal_distances": equal_distances,
        "change": change,
        "control": control,
        "seed": seed,
        "full_precision": full_precision,
        "analyses": analyses,
    }
    if flight_conditions is not None:  # a setting of its own, so that the keys of other evaluations do not change
        settings["flight_conditions"] = flight_conditions
    if drones > 1 or moving:
        settings["drones"], settings["moving"] = drones, moving
    return Task(EVALUATION, name, settings, {"areas": areas} if policy is None else {"areas": areas, "policy": policy})


def _play(
    context: TaskContext, suite: Suite, areas: Sequence[SearchArea], goal_areas: Sequence[SearchArea] | None
) -> None:
    """Play the suite and write the result, with agreement and calibration where the settings ask for them."""
    settings, seed = context.settings, context.settings["seed"]
    strength = settings.get("flight_conditions")
    texts = context.inputs["areas"] / TEXTS
    described = None
    if texts.exists():
        control = settings["control"] if settings["control"] in TEXT_CONTROLS else None
        described = DescribedGoals(texts_of(suite, read_goal_texts(texts, suite.grid)), control=control)
    score = evaluate(
        _make_agent(context),
        with_drones(suite, settings.get("drones", 1), moving=settings.get("moving", 0.0)),
        areas,
        goal_areas=goal_areas,
        control=None if described is not None else settings["control"],
        described=described,
        change=None if settings["change"] is None else GoalChange(settings["change"]),
        flight=None if strength is None else FlightConditions(strength, seed),
        record=(PRIOR_FOLLOWED, BELIEF) if settings["analyses"] else (),
        seed=seed,
        device=context.device,
    )
    extra = {"control": settings["control"], "change": settings["change"], "flight_conditions": strength}
    save_result(context.out, score, areas, seed=seed, extra=extra, **_analyse(score))


def _analyse(score: Score) -> dict[str, dict[str, Any]]:
    """Return the agreement with the prior and the calibration of the belief, as far as they were recorded."""
    analyses: dict[str, dict[str, Any]] = {}
    if PRIOR_FOLLOWED in score.log.recorded:
        shares = prior_agreement(score.log, score.bootstrap)
        analyses["agreement"] = {str(distance): share.record() for distance, share in shares.items()}
    if BELIEF in score.log.recorded:
        analyses["calibration"] = calibration(score.log, score.bootstrap)["cells"].record()
    return analyses


def _make_agent(context: TaskContext) -> Agent:
    """Make the agent of the settings, with the weights of the policy task if there is one."""
    settings, name = context.settings, context.settings["agent"]
    options = AgentOptions(seed=settings["seed"], device=context.device, full_precision=settings["full_precision"])
    if name == "blind" and settings["episodes"] == "far-pairs":
        return blind(options.seed, priors.far_pairs)
    if "policy" not in context.inputs:
        return make_agent(name, options)
    folder = agent_folder(context.inputs["policy"], settings["seed_rank"])
    if "local" in name:
        return load_local(load_checkpoint(folder), name, options, privileged=name.startswith("priv"))
    return load_agent(folder, options, name)
