"""Calibration: does what an agent holds for likely happen as often as it says?

An agent whose state has a `belief` gives every cell a probability of being the goal, (B, n). AiRLoc and its kin have
none, but their exploitation prior u, through a softmax, gives each move the probability that it leads to the goal; it
is asked only when the goal is adjacent, which is what u was trained for. Probabilities are put into bins of equal
width; a calibrated agent's share of hits in each bin is the mean probability there.

Legend: E episodes, B of a batch, n cells, N forecasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.agent import Agent, Briefing
from airloc.grid import MOVES
from airloc.task.batch import Observation
from airloc.task.suites import Suite

BINS = 10

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bin:
    """The forecasts of about one probability."""

    forecast: float
    """Their mean."""
    hit: float
    """The share that came true."""
    count: int

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"forecast": self.forecast, "hit": self.hit, "count": self.count}


class Forecaster:
    """An agent that plays as another does and notes what it held for likely; the notes change nothing.

    Args:
        agent: Who plays.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._batches: list[list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = []
        self.kind = ""
        """`belief` or `prior` once something was noted."""

    @property
    def name(self) -> str:
        """The name of the agent that plays."""
        return self._agent.name

    def reset(self, briefing: Briefing) -> Any:
        """Begin the notes of another batch."""
        self._batches.append([])
        return self._agent.reset(briefing)

    def act(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Let the agent act, and note what it holds for likely now."""
        action, state = self._agent.act(observation, state)
        likely, self.kind = _likely(state)
        if likely is not None:
            self._batches[-1].append((observation.position.cpu(), likely.cpu(), observation.moves_left.cpu()))
        return action, state

    def bins(self, suite: Suite) -> list[Bin]:
        """The forecasts of a suite that was played in its order, by probability; nothing where there were none."""
        forecasts, hits, first = [], [], 0
        for notes in self._batches:
            left = None
            for position, likely, now in notes:
                goal = suite.goal[first : first + len(position)]
                # An episode that has ended stands on its goal once, and then its moves are not counted any more.
                playing = (position.numpy() != goal).any(axis=1)
                playing &= True if left is None else (now < left).numpy()
                left = now
                forecast, hit, asked = _judged(position.numpy(), likely.double().numpy(), goal, suite, self.kind)
                forecasts.append(forecast[asked & playing].ravel())
                hits.append(hit[asked & playing].ravel())
            first += len(notes[0][0]) if notes else 0
        return binned(np.concatenate(forecasts), np.concatenate(hits)) if forecasts else []


def _likely(state: Any) -> tuple[torch.Tensor | None, str]:
    """What a state says is likely: over cells, or over moves."""
    if (belief := getattr(state, "belief", None)) is not None:
        return belief, "belief"
    if (prior := getattr(state, "prior", None)) is not None:
        return prior.softmax(dim=1), "prior"
    return None, ""


def _judged(
    position: npt.NDArray[np.int64], likely: Floats, goal: npt.NDArray[np.int64], suite: Suite, kind: str
) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Forecasts and what came true, both (B, ...), and whether the question makes sense, (B,)."""
    if kind == "belief":
        number = goal[:, 0] * suite.grid.cols + goal[:, 1]
        hit = np.arange(suite.grid.count) == number[:, None]
        return likely, hit, np.ones(len(goal), dtype=bool)
    hit = (position[:, None] + MOVES == goal[:, None]).all(axis=2)
    return likely, hit, hit.any(axis=1)


def binned(forecast: Floats, hit: npt.NDArray[np.bool_]) -> list[Bin]:
    """Put forecasts (N,) and whether they came true (N,) into bins of equal width; empty bins are left out."""
    number = np.minimum((forecast * BINS).astype(np.int64), BINS - 1)
    parts = [number == at for at in range(BINS)]
    return [Bin(float(forecast[at].mean()), float(hit[at].mean()), int(at.sum())) for at in parts if at.any()]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """The mean gap between forecast and hits, weighed by the number of forecasts; None where there are none."""
    total = sum(entry.count for entry in bins)
    return sum(entry.count * abs(entry.forecast - entry.hit) for entry in bins) / total if total else None
