"""Tasks that let one agent play one suite.

`score.json` is the record of the `evaluate` contract, as `airloc evaluate` with the suite's command writes it;
`episodes.json` says which goals were found, for paired comparisons.
"""

from airloc.agents.registry import AgentOptions, make_agent
from airloc.areas.prepared import Prepared
from airloc.drawing.files import write_atomically
from airloc.evaluation.changed import Change
from airloc.evaluation.evaluate import evaluate
from airloc.evaluation.records import to_json
from airloc.grid import Grid
from airloc.reports.suites.trials import pack_episodes
from airloc.reproduce.ground import AREAS, GOALS
from airloc.reproduce.job import Job
from airloc.task.suites import generate

SCORE, EPISODES = "score.json", "episodes.json"


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
        flown,
        suite,
        goal_areas=list(Prepared(goals).areas(grid)) if goals.is_dir() else None,
        control=settings["control"],
        change=None if settings["change"] is None else Change(settings["change"]),
        seed=seed,
        device=job.device,
    )
    record = {**score.record(), "control": settings["control"], "change": settings["change"]}
    tiles = [area.source for area in flown]
    packed = pack_episodes(score.played.found.tolist(), suite.area.tolist(), tiles, suite.weight.tolist(), seed)
    write_atomically(job.out / SCORE, to_json(record))
    write_atomically(job.out / EPISODES, packed)
