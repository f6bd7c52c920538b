"""Tasks that play: one agent on one suite, with everything that tables and figures are made from.

`score.json` holds the record of the `evaluate` contract under `score`, agreement with the exploitation prior by
distance under `agreement` and the calibration under `calibration`, where the agent has such, and under `tiles` what
each area was cut from; `episodes.jsonl` has one line an episode with its path. An agent that cannot play with four
moves has a score of null, and `declined` says why.
"""

from typing import Any

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.airloc import AirlocAgent
from airloc.agents.blind import blind
from airloc.agents.freeze import freeze
from airloc.agents.learned import load_agent, load_units
from airloc.agents.local import LocalAgent
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.prepared import Prepared
from airloc.drawing.files import write_atomically
from airloc.evaluation.evaluate import evaluate
from airloc.evaluation.exploitation import by_distance, followed_prior
from airloc.evaluation.records import to_json, trajectory_lines
from airloc.evaluation.reliability import calibration
from airloc.evaluation.watching import Recorder, Watched, belief_of
from airloc.grid import Grid
from airloc.reproduce.job import Job
from airloc.rollout import DiagonalError
from airloc.task import priors
from airloc.task.suites import Suite, far_pairs, per_distance, uniform

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
    recorder = Recorder(agent, followed_prior if isinstance(agent, AirlocAgent) else belief_of)
    score = evaluate(recorder, areas, suite, seed=job.settings["seed"], device=job.device)
    tiles = {area.name: area.source for area in areas}
    record: dict[str, Any] = {"score": score.record(), "agreement": None, "calibration": None, "tiles": tiles}
    notes = recorder.notes(suite.budget)
    if notes is not None and isinstance(agent, AirlocAgent):
        followed = by_distance(suite, score.played, notes, score.bootstrap)
        record["agreement"] = {str(distance): share.record() for distance, share in followed.items()}
    elif notes is not None:
        watched = Watched(agent.name, areas, areas, suite, score.played, notes)
        record["calibration"] = calibration(watched, seed=job.settings["seed"])["cells"].record()
    return record, trajectory_lines(score)


def _agent(job: Job) -> Agent:
    """The agent that the settings name, with the weights of the job's input where there is one."""
    name = job.settings["agent"]
    options = AgentOptions(seed=job.settings["seed"], device=job.device, exact=True)
    if name == "blind" and job.settings["suite"] == "far-pairs":
        return blind(options.seed, priors.far_pairs)
    if "policy" not in job.inputs:
        return make_agent(name, options)
    folder = job.inputs["policy"] / f"agent-{job.settings['place']}"
    if "local" in name:
        eyes = freeze(load_units(folder).eyes, options.device)
        return LocalAgent(name, eyes, privileged=name.startswith("priv"))
    return load_agent(folder, options, name)
