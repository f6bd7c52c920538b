"""Does this glimpse show the goal? Image similarity, and agents with a `match` method.

In the field nobody tells an agent that it has reached the goal. An agent that can decide this itself has a third
method, `match(observation, state) -> (probability, state)`. `with_match` adds a reference implementation to any other
agent: the similarity of glimpse and goal.

The similarity is the largest normalised cross-correlation of glimpse and goal over small shifts, which does not depend
on brightness and contrast. The four quarters of a patch are compared separately and averaged, so that a single road
that runs the same way in both patches does not decide the result. Pixels without data are ignored. A logistic curve
maps the similarity to a probability. The curve is calibrated for searches in which about one glimpse in ten shows the
goal; `docs/field.md` reports its calibration.

Legend: B pairs or episodes, S = 48 side of a patch, s = 24 side after halving, c = 20 side of the compared centre,
n = 25 shifts, d = 300 values of a quarter.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch.nn import functional

from airloc.agents.agent import Agent, EpisodeBatch, belief_of, logits_of
from airloc.areas.area import Pixels
from airloc.task.batch import Observation
from airloc.task.rules import check_false_alarm_cost
from airloc.vision.locator import Compare, SightingCalibration
from airloc.vision.offsets import ZERO_OFFSET
from airloc.vision.relation import RelationNetwork

SLOPE, MIDPOINT = 19.4, 0.40
"""Logistic curve of `same_place`: its slope, and the similarity with probability one half. Fitted by
`python -m benchmarks.field_similarity`."""
_MAX_SHIFT = 2
"""Largest shift in halved pixels: four pixels of a patch, a twelfth of a cell."""
_BLUR = 9
"""Side in halved pixels of the local mean that is subtracted."""
_NO_DATA_LEVEL = 8
"""A pixel has no data if none of its values, of 255, is larger."""
_MIN_NORM = 60.0
"""Norm of a quarter's values below which it counts as nearly uniform: 3.5 of 255 on average."""


class SamePlaceCalibration(NamedTuple):
    """Weights that combine the evidence of a network and the similarity in one probability of a match.

    The log-odds are `scale * (evidence + weight * (similarity - midpoint))`. Networks are overconfident when goal and
    glimpse are from different days; the similarity depends on the place alone.
    """

    scale: float
    """Factor of the combined evidence."""
    weight: float
    """Factor of the similarity."""
    midpoint: float
    """Similarity that is evidence neither for nor against a match."""


SAME_PLACE = SamePlaceCalibration(scale=0.57, weight=16.9, midpoint=0.216)
"""Calibration of the pretrained relation network. `python -m benchmarks.field_match` fits it to searches with goals
from the same day and from before a disaster; run it again when the weights change."""


LOCATOR_ALONE = SightingCalibration(score=5.72, margin=2.94, verified=0.64, network=0.0, constant=-5.52)
"""Calibration of `airloc.vision.locator` alone, for exported agents without a relation network."""

SIGHTING = SightingCalibration(score=1.10, margin=4.35, verified=0.57, network=0.42, constant=-1.42)
"""Calibration of the locator with the pretrained relation network. `python -m benchmarks.field_anywhere --fit` fits
both as if one photo in ten showed the goal. Run it again when the weights of locator or network change."""


def comparison(network: RelationNetwork) -> Compare:
    """Return a function that compares aligned pairs by a relation network: the log-probability of the zero offset."""

    @torch.inference_mode()
    def compare(photo: Pixels, goal: Pixels) -> float:
        device = next(network.parameters()).device
        encoding = network.encode_patches(torch.from_numpy(np.stack([photo, goal])).to(device))
        first, second = (encoding.at(torch.tensor([number], device=device)) for number in range(2))
        logits = network.relate(first, second)[0]
        return float(logits.float().log_softmax(dim=0)[ZERO_OFFSET])

    return compare


@runtime_checkable
class MatchingAgent(Agent, Protocol):
    """An agent that can also tell whether a glimpse shows the goal."""

    def match(self, observation: Observation, state: Any) -> tuple[torch.Tensor, Any]:
        """Return the probability (B,) that the glimpse shows the goal, and a state for `act` on the same glimpse.

        The returned state may cache features of the glimpse, so that `act` does not compute them again.
        """
        ...


class SimilarityState(NamedTuple):
    """State of a `SimilarityMatcher`: the goal patches and the state of the wrapped agent."""

    goal: torch.Tensor
    inner: Any

    @property
    def belief(self) -> torch.Tensor | None:
        """Belief of the wrapped agent, if it keeps one."""
        return belief_of(self.inner)

    @property
    def logits(self) -> torch.Tensor | None:
        """Logits of the wrapped agent, if it keeps them."""
        return logits_of(self.inner)


@dataclass(frozen=True)
class SimilarityMatcher:
    """Wraps an agent and adds `match` by the similarity of glimpse and goal."""

    agent: Agent

    @property
    def name(self) -> str:
        """Name of the wrapped agent."""
        return self.agent.name

    def reset(self, episodes: EpisodeBatch) -> SimilarityState:
        """Store the goal patches and reset the wrapped agent."""
        return SimilarityState(episodes.goal, self.agent.reset(episodes))

    def match(self, observation: Observation, state: SimilarityState) -> tuple[torch.Tensor, SimilarityState]:
        """Compare glimpse and goal."""
        return same_place(observation.patch, state.goal), state

    def act(self, observation: Observation, state: SimilarityState) -> tuple[torch.Tensor, SimilarityState]:
        """Let the wrapped agent act."""
        action, inner = self.agent.act(observation, state.inner)
        return action, state._replace(inner=inner)


def with_match(agent: Agent) -> MatchingAgent:
    """Return the agent itself if it has `match`, otherwise the agent in a `SimilarityMatcher`."""
    return cast("MatchingAgent", agent) if hasattr(agent, "match") else SimilarityMatcher(agent)


def declaration_threshold(false_alarm_cost: float) -> float:
    """Return the match probability above which a declaration has positive expected value.

    A declaration gains one find with probability p and loses `false_alarm_cost` finds with probability 1 - p. The two
    are equal at cost / (1 + cost).

    >>> declaration_threshold(1.0), declaration_threshold(4.0)
    (0.5, 0.8)
    """
    cost = check_false_alarm_cost(false_alarm_cost)
    return cost / (1 + cost)


def same_place(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Return the probability (B,) that patches (B, S, S, 3) uint8 show the same place."""
    return (SLOPE * (similarity(glimpse, goal) - MIDPOINT)).sigmoid()


def similarity(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Return the largest correlation of the goal's centre with the glimpse over small shifts, (B,) in [-1, 1]."""
    centre = _detail(goal)[..., _MAX_SHIFT:-_MAX_SHIFT, _MAX_SHIFT:-_MAX_SHIFT]
    half = centre.shape[-1] // 2
    windows = functional.unfold(_quarters(_detail(glimpse), half + 2 * _MAX_SHIFT, half), half)  # (4 B, d, n)
    template = _quarters(centre, half, half).flatten(1)
    template = template - template.mean(dim=1, keepdim=True)
    template = template / template.norm(dim=1, keepdim=True).clamp(min=_MIN_NORM)
    # The template has zero mean, so that the means of the windows do not change the product.
    correlation = torch.bmm(template[:, None], windows)[:, 0]  # (4 B, n)
    variance = windows.norm(dim=1).square() - windows.sum(dim=1).square() / windows.shape[1]
    correlation = correlation / variance.clamp(min=0).sqrt().clamp(min=_MIN_NORM)
    best: torch.Tensor = correlation.view(len(goal), 4, -1).mean(dim=1).amax(dim=1)
    return best


def _detail(patches: torch.Tensor) -> torch.Tensor:
    """Return patches at half the size without their local mean, (B, 3, s, s), zero where there is no data."""
    small = functional.avg_pool2d(patches.permute(0, 3, 1, 2).float(), 2)
    dark = (patches.amax(dim=3) <= _NO_DATA_LEVEL).float()[:, None]
    valid = (functional.max_pool2d(dark, 2) == 0).float()  # (B, 1, s, s)
    return (small - _blur(small * valid) / _blur(valid).clamp(min=1e-3)) * valid


def _blur(values: torch.Tensor) -> torch.Tensor:
    return functional.avg_pool2d(values, _BLUR, stride=1, padding=_BLUR // 2, count_include_pad=False)


def _quarters(squares: torch.Tensor, side: int, step: int) -> torch.Tensor:
    """Cut each square (B, 3, ...) into four squares of a side, a step apart: (4 B, 3, side, side)."""
    parts = squares.unfold(2, side, step).unfold(3, side, step)  # (B, 3, 2, 2, side, side)
    return parts.permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, side, side)
