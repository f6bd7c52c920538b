"""Tasks that play: one agent on one suite, with everything that tables and figures are made from.

`score.json` holds the record of the `evaluate` contract under `score`, agreement with the exploitation prior by
distance under `agreement` and the calibration under `calibration`, where the agent has such, and under `tiles` what
each area was cut from; `episodes.jsonl` has one line an episode with its path. An agent that cannot play with four
moves has a score of null, and `declined` says why.
"""

from typing import Any

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.airloc import LocalAgent
from airloc.agents.blind import blind
from airloc.agents.inference import optimize_for_inference
from airloc.agents.pretrained import load_units
from airloc.agents.registry import load_agent, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.prepared import Prepared
from airloc.evaluation.analysis import calibration, prior_agreement
from airloc.evaluation.controls import GoalChange
from airloc.evaluation.evaluate import evaluate, to_json, trajectory_lines
from airloc.experiments.data import AREAS, GOALS
from airloc.experiments.graph import Job
from airloc.files import write_atomically
from airloc.grid import Grid
from airloc.reports.suites import pack_episodes
from airloc.rollout import BELIEF, PRIOR_FOLLOWED, DiagonalError
from airloc.task import priors
from airloc.task.suites import Suite, far_pairs, generate, per_distance, uniform

SCORE, EPISODES = "score.json", "episodes.jsonl"

SUITES = {"per-distance": per_distance, "far-pairs": far_pairs, "uniform": uniform}


def play_suite(job: Job) -> None:
    """Let the agent play, and write how it did."""
    grid = Grid.parse(job.settings["grid"], moves=job.settings["moves"])
    areas = list(Prepared(job.inputs["areas"]).areas(grid))
    suite = SUITES[job.settings["suite"]]([area.name for area in areas], grid, seed=job.settings["seed"])
    agent = _agent(job)
    job.say(f"{len(suite)} episodes")
    try:
        record, episodes = _played(agent, areas, suite, job)
    except DiagonalError as error:  # no reason to stop everybody else
        record, episodes = {"score": None, "declined": error.problem}, ""
    write_atomically(job.out / SCORE, to_json(record))
    write_atomically(job.out / EPISODES, episodes)


def _played(agent: Agent, areas: list[SearchArea], suite: Suite, job: Job) -> tuple[dict[str, Any], str]:
    """Play with all notes taken; give the record and the episodes as lines."""
    seed, recorders = job.settings["seed"], (PRIOR_FOLLOWED, BELIEF)
    score = evaluate(agent, suite, areas, record=recorders, seed=seed, device=job.device)
    tiles = {area.name: area.source for area in areas}
    record: dict[str, Any] = {"score": score.record(), "agreement": None, "calibration": None, "tiles": tiles}
    if PRIOR_FOLLOWED in score.log.recorded:
        agreement = prior_agreement(score.log, score.bootstrap)
        record["agreement"] = {str(distance): share.record() for distance, share in agreement.items()}
    if BELIEF in score.log.recorded:
        record["calibration"] = calibration(score.log, score.bootstrap)["cells"].record()
    return record, trajectory_lines(score)


def _agent(job: Job) -> Agent:
    """The agent that the settings name, with the weights of the job's input where there is one."""
    name = job.settings["agent"]
    options = AgentOptions(seed=job.settings["seed"], device=job.device, full_precision=True)
    if name == "blind" and job.settings["suite"] == "far-pairs":
        return blind(options.seed, priors.far_pairs)
    if "policy" not in job.inputs:
        return make_agent(name, options)
    folder = job.inputs["policy"] / f"agent-{job.settings['place']}"
    if "local" in name:
        encoder = optimize_for_inference(load_units(folder).encoder, options.device)
        return LocalAgent(name, encoder, privileged=name.startswith("priv"))
    return load_agent(folder, options, name)


# ---------- Tasks that let one agent play one suite.
# ~
# ~ `score.json` is the record of the `evaluate` contract, as `airloc evaluate` with the suite's command writes it;
# ~ `episodes.json` says which goals were found, for paired comparisons.

TRIAL_SCORE, TRIAL_EPISODES = "score.json", "episodes.json"


def play_trial(job: Job) -> None:
    """Let the agent play, and write how it did."""
    settings, seed = job.settings, job.settings["seed"]
    grid = Grid.parse(settings["grid"])
    areas, goals = (job.inputs["ground"] / part for part in (AREAS, GOALS))
    flown = list(Prepared(areas).areas(grid))
    suite = generate(
        settings["episodes"],
        [area.name for area in flown],
        grid,
        per_area=settings["per_area"],
        equal_distances=settings["equal_distances"],
        seed=seed,
        budget=settings["budget"],
    )
    job.say(f"{len(suite)} episodes")
    score = evaluate(
        make_agent(settings["agent"], AgentOptions(seed=seed, device=job.device)),
        suite,
        flown,
        goal_areas=list(Prepared(goals).areas(grid)) if goals.is_dir() else None,
        control=settings["control"],
        change=None if settings["change"] is None else GoalChange(settings["change"]),
        seed=seed,
        device=job.device,
    )
    record = {**score.record(), "control": settings["control"], "change": settings["change"]}
    tiles = [area.source for area in flown]
    packed = pack_episodes(score.log.found.tolist(), suite.area.tolist(), tiles, suite.weight.tolist(), seed)
    write_atomically(job.out / TRIAL_SCORE, to_json(record))
    write_atomically(job.out / TRIAL_EPISODES, packed)
