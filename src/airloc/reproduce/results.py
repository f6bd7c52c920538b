"""From results in a store to what reports are made from."""

import json

from airloc.reports.outcomes import Curve, Outcome, Setup
from airloc.reproduce.plan import Plan
from airloc.reproduce.scoring import EPISODES, SCORE
from airloc.reproduce.store import Store
from airloc.reproduce.tasks import Task
from airloc.reproduce.training import METRICS


def outcomes(plan: Plan, store: Store) -> dict[Setup, Outcome]:
    """How every setup of a plan went; those whose agent could not play are left out."""
    found = {setup: _outcome(setup, task, store) for setup, task in plan.scores.items()}
    return {setup: outcome for setup, outcome in found.items() if outcome is not None}


def declined(plan: Plan, store: Store) -> list[str]:
    """Why agents could not play, each once."""
    records = (json.loads((store.place(task) / SCORE).read_bytes()) for task in plan.scores.values())
    return list(dict.fromkeys(f"{record['declined']}." for record in records if record["score"] is None))


def curves(plan: Plan, store: Store) -> list[Curve]:
    """How every training of policies went."""
    return [_curve(task, store) for task in plan.policies]


def _outcome(setup: Setup, task: Task, store: Store) -> Outcome | None:
    folder = store.place(task)
    record = json.loads((folder / SCORE).read_bytes())
    if record["score"] is None:
        return None
    return Outcome(
        setup=setup,
        score=record["score"],
        agreement=record["agreement"],
        calibration=record["calibration"],
        tiles=record["tiles"],
        episodes=folder / EPISODES,
        areas=store.place(task.inputs["areas"]),
    )


def _curve(task: Task, store: Store) -> Curve:
    lines = (store.place(task) / METRICS).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    batch, variant = task.settings["batch"], task.settings["variant"]
    return Curve(
        agent=variant,
        trained_on=task.name.removeprefix(f"{variant} on "),
        steps=tuple((entry["step"] + 1) * batch for entry in entries),
        success=tuple(entry["val_success"] for entry in entries),
    )
