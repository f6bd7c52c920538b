"""Shortcuts in the pixels: whether an agent profits from conditions that carry no information about place.

`play_conditions` plays the same episodes under every condition of `airloc.evaluation.conditions`. A difference from
clean is paired by episode. The claim to hold for each condition:

| condition                             | the claim fails if                                          | verdict |
|---------------------------------------|-------------------------------------------------------------|---------|
| any                                   | the interval of the difference lies above zero              | raises  |
| one that a person would not notice    | success falls by more than three points                     | lowers  |
| a mirrored area                       | the interval of the difference does not contain zero        | changes |

Areas saved at different sizes must also be within three points of each other (`size_spread`).

`phase_preference` needs no episodes. It relates pairs of unrelated patches, whose block grids have the phase that each
of the eight directions would give them. If the preferred direction does not depend on the phase, it agrees with the
phase in exactly one of eight phases, whatever it is.

Legend: E episodes, P pairs, K = 8 directions, S side of a cell in pixels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from airloc.agents.agent import Agent
from airloc.agents.airloc import AirlocAgent, LocalAgent, embed_pairs, encode_goals
from airloc.agents.belief import BeliefAgent
from airloc.areas.area import Pixels, SearchArea, fit
from airloc.evaluation.conditions import BLOCK, CONDITIONS, Condition, jpeg
from airloc.evaluation.metrics import Bootstrap, Interval, Metric, blind_optimum
from airloc.evaluation.scores import Score, evaluate
from airloc.grid import MOVES, Grid
from airloc.seeding import stream
from airloc.task.cells import cut_patches
from airloc.task.suites import Suite
from airloc.vision.relation import adjacent_offsets

CLEAN = "clean"
"""Name of the areas as they are."""
TOLERANCE = 0.03
"""Largest loss of success under a condition that a person would not notice, and largest spread between sizes."""
CHANCE = 1 / len(MOVES)
"""Agreement of the preferred direction with the phase if it does not depend on it."""
_QUALITY = 75
"""JPEG quality of unrelated pairs."""
_CHUNK = 25
"""Unrelated pairs that go through the network at once."""


class Outcome(NamedTuple):
    """The success of an agent under one condition, compared with clean areas."""

    name: str
    """Name of the condition, or `CLEAN`."""
    score: Score
    difference: float
    """Success minus success on clean areas, paired by episode."""
    ci95: Interval
    """95 % interval of the difference."""
    verdict: str
    """`holds`, `raises`, `lowers` or `changes`."""

    @property
    def title(self) -> str:
        """What the condition is."""
        return CLEAN if self.name == CLEAN else CONDITIONS[self.name].title

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "title": self.title,
            "success": self.score.value("success"),
            "ci95": list(self.score.interval("success")),
            "difference": self.difference,
            "difference_ci95": list(self.ci95),
            "verdict": self.verdict,
        }


def play_conditions(
    agent: Agent,
    suite: Suite,
    areas: Sequence[SearchArea],
    conditions: Mapping[str, Condition],
    *,
    seed: int = 0,
    batch: int = 1024,
    device: str = "cpu",
    on_batch: Callable[[int], None] = lambda episodes: None,
) -> Iterator[Outcome]:
    """Play a suite on clean areas, then under every condition.

    Args:
        agent: The agent.
        suite: The episodes.
        areas: The areas in the order of the suite, at their own resolution.
        conditions: The conditions by name.
        seed: Random seed of the conditions, the agent's noise and the bootstrap.
        batch: Number of episodes played in parallel.
        device: Device for the areas.
        on_batch: Called with the number of episodes after every batch.
    """

    def play(episodes: Suite, changed: Sequence[SearchArea]) -> Score:
        return evaluate(agent, episodes, changed, seed=seed, batch=batch, device=device, on_batch=on_batch)

    grid = suite.grid
    clean = play(suite, [fit(area, grid) for area in areas])
    yield Outcome(CLEAN, clean, 0.0, (0.0, 0.0), "holds")
    for name, condition in conditions.items():
        start, goal = (condition.move_cells(cells, grid) for cells in (suite.start, suite.goal))
        changed = [condition.apply(name, area, grid, seed) for area in areas]
        score = play(replace(suite, start=start, goal=goal), changed)
        first, second = score.metrics["success"], clean.metrics["success"]
        difference = (first.value() or 0.0) - (second.value() or 0.0)
        ci95 = clean.bootstrap.difference(first, second)
        yield Outcome(name, score, difference, ci95, judge(condition, difference, ci95))


def judge(condition: Condition, difference: float, ci95: Interval) -> str:
    """Return `holds`, or how the claim fails: `raises`, `lowers` or `changes`."""
    low, high = ci95
    if low is not None and high is not None:
        if condition.mirrors and not low <= 0 <= high:
            return "changes"
        if low > 0:
            return "raises"
    if not condition.mirrors and not condition.noticeable and difference < -TOLERANCE:
        return "lowers"
    return "holds"


def playable(names: Sequence[str], grid: Grid) -> dict[str, Condition]:
    """Return the conditions with these names that the grid allows."""
    return {name: CONDITIONS[name] for name in names if grid.rows == grid.cols or not CONDITIONS[name].square}


def size_spread(outcomes: Sequence[Outcome]) -> float | None:
    """Return the largest difference in success between areas saved at different sizes; None without two sizes."""
    sized = [each for each in outcomes if each.name != CLEAN and CONDITIONS[each.name].size is not None]
    found = [each.difference for each in sized]
    return max(found) - min(found) if len(found) > 1 else None


@dataclass(frozen=True, slots=True)
class PhasePreference:
    """How often the preferred direction of unrelated patches is the one that the phase of the block grid suggests."""

    pairs: int
    share: float
    """Share over all pairs and phases; `CHANCE` if the direction does not depend on the phase."""
    ci95: Interval

    @property
    def verdict(self) -> str:
        """`holds`, or `depends` if the interval of the share does not contain chance."""
        low, high = self.ci95
        return "holds" if low is None or high is None or low <= CHANCE <= high else "depends"

    def record(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"pairs": self.pairs, "share": self.share, "ci95": list(self.ci95), "verdict": self.verdict}


def shortcut_record(outcomes: Sequence[Outcome], preference: PhasePreference | None) -> dict[str, Any]:
    """Return plain JSON values of all outcomes of an agent. The first outcome is that of clean areas."""
    score, spread = outcomes[0].score, size_spread(outcomes)
    suite = score.suite
    within = spread is None or spread <= TOLERANCE
    verdicts = [each.verdict for each in outcomes] + ([] if preference is None else [preference.verdict])
    return {
        "agent": score.agent,
        "episodes": len(suite),
        "areas": len(suite.areas),
        "clusters": score.bootstrap.clusters,
        "grid": str(suite.grid),
        "budget": suite.budget,
        "blind_optimum": blind_optimum(suite),
        "suite": {"name": suite.name, "sha256": suite.digest},
        "conditions": {each.name: each.record() for each in outcomes},
        "size_spread": spread,
        "size_verdict": "holds" if within else "differs",
        "unrelated_patches": None if preference is None else preference.record(),
        "holds": within and all(verdict == "holds" for verdict in verdicts),
    }


@torch.inference_mode()
def phase_preference(
    agent: Agent, areas: Sequence[SearchArea], grid: Grid, *, pairs: int = 200, seed: int = 0
) -> PhasePreference | None:
    """Measure whether the phase of the block grid selects a direction between unrelated patches.

    The patches of a pair come from different tiles. The glimpse has its block grid at phase (0, 0), the goal at the
    phase of the neighbour in each of the eight directions.

    Returns:
        None if the agent relates no patches, or all areas are of one tile.
    """
    relate = _direction_logits(agent)
    if relate is None or len({area.source for area in areas}) < 2:
        return None
    glimpses, goals, tiles = _unrelated_patches(areas, grid, pairs, seed)
    preferred = [
        relate(torch.from_numpy(glimpses[some]), torch.from_numpy(goals[some]).flatten(0, 1)).argmax(dim=1).cpu()
        for some in np.array_split(np.arange(pairs), -(-pairs // _CHUNK))
    ]
    agrees = torch.cat(preferred).view(pairs, len(MOVES)) == torch.arange(len(MOVES))
    share = agrees.double().mean(dim=1).numpy()  # (P,)
    interval = Bootstrap(tiles, seed).interval(Metric(share, np.ones(pairs)))
    return PhasePreference(pairs, float(share.mean()), interval)


def _unrelated_patches(
    areas: Sequence[SearchArea], grid: Grid, pairs: int, seed: int
) -> tuple[Pixels, Pixels, list[str]]:
    """Draw compressed glimpses (P, S, S, 3), goals at eight phases (P, K, S, S, 3) and the tiles of the glimpses."""
    rng = stream(seed, "unrelated patches")
    sources = np.array([area.source for area in areas])
    images = [fit(area, grid).image for area in areas]
    phases = [(row, col) for row, col in (MOVES * grid.pitch % BLOCK).tolist()]
    glimpses, goals, tiles = [], [], []
    for _ in range(pairs):
        first = int(rng.integers(len(areas)))
        second = int(rng.choice(np.flatnonzero(sources != sources[first])))
        glimpse, goal = (cut_patches(images[area], grid)[rng.integers(grid.count)] for area in (first, second))
        glimpses.append(jpeg(glimpse, rng, quality=_QUALITY))
        goals.append(np.stack([jpeg(goal, rng, quality=_QUALITY, phase=phase) for phase in phases]))
        tiles.append(areas[first].source)
    return np.stack(glimpses), np.stack(goals), tiles


def _direction_logits(agent: Agent) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None:
    """Return the function that relates glimpses (P, S, S, 3) and K goals each (P K, S, S, 3): logits (P K, 8)."""
    if isinstance(agent, BeliefAgent):
        network = agent.network
        device = next(network.parameters()).device

        def relate(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
            repeated = torch.arange(len(glimpse), device=device).repeat_interleave(len(MOVES))
            glimpses = network.encode_patches(glimpse.to(device)).at(repeated)
            return network.relate(glimpses, network.encode_patches(goal.to(device)))[:, adjacent_offsets(device)]

        return relate
    if isinstance(agent, AirlocAgent | LocalAgent):
        encoder = agent.encoder
        place = next(encoder.parameters()).device

        def embed(glimpse: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
            glimpse = glimpse.to(place).repeat_interleave(len(MOVES), dim=0)
            return embed_pairs(encoder, glimpse, encode_goals(encoder, goal.to(place)))[1]

        return embed
    return None
