"""What a belief searcher has recognised: glimpses and goals through the relation network, each patch and pair once.

Legend: B episodes, n of them with something new, S = 48 side of a patch, O offsets, E numbers of an encoding.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import interpolate

from airloc.agents.agent import EpisodeBatch, choose
from airloc.agents.cache import FeatureCache, content_keys, pair_keys
from airloc.agents.planner import PLANNERS, Planner
from airloc.agents.similarity import SAME_PLACE, SamePlaceCalibration, correlation
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.rules import inside
from airloc.vision.offsets import SAME, offsets_from
from airloc.vision.relation import SIDE, Encoding, RelationNetwork

FLAT = 1.5
"""Spread of the values of a picture, of 255, below which it shows nothing: black, fog, a uniform card."""

SHARE, CHUNK = 32, 256
"""Patches and pairs that go through the network together: for each core of a CPU, whose cache they stay in, and at
most."""


class Recognition(NamedTuple):
    """The goals of a batch and all that was seen in it so far."""

    goal: torch.Tensor
    """The pictures of the goals, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Their content, (B,)."""
    goal_flat: torch.Tensor
    """Which of them show nothing, bool (B,)."""
    encodings: FeatureCache
    """Encodings by patch, rows (E,)."""
    pairs: FeatureCache
    """Logits by pair, rows (O,)."""
    calibration: SamePlaceCalibration
    """How the likeness of glimpse and goal is heard."""


def begin(goal: torch.Tensor, calibration: SamePlaceCalibration) -> Recognition:
    """Get ready to look for goals (B, S, S, 3); pictures of another size are resampled, with a warning."""
    if goal.shape[1:] != (SIDE, SIDE, 3):
        height, width = goal.shape[1:3]
        warnings.warn(f"Goals of {height} x {width} px are resampled to {SIDE} x {SIDE} px", stacklevel=3)
        values = goal.permute(0, 3, 1, 2).float()
        values = interpolate(values, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
        goal = values.round().clamp(0, 255).byte().permute(0, 2, 3, 1).contiguous()
    return Recognition(goal, content_keys(goal), is_flat(goal), FeatureCache(), FeatureCache(), calibration)


def recognise(network: RelationNetwork, patch: torch.Tensor, before: Recognition) -> tuple[torch.Tensor, Recognition]:
    """Judge how the goals lie to glimpses (B, S, S, 3): logits (B, O), all zero where there is nothing to see.

    Whether the glimpse shows the goal itself is judged by the network and by the likeness of the two.
    """
    if patch.shape[1:] != (SIDE, SIDE, 3):
        problem = f"Learned agents see cells of {SIDE} x {SIDE} px, not of {patch.shape[1]} x {patch.shape[2]}"
        raise AirlocError(problem, f"Lay a grid with cells of {SIDE} px on the areas")
    keys, chunk = content_keys(patch), _chunk(patch.device)
    encodings = before.encodings

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal encodings
        both = torch.cat([patch[some], before.goal[some]])
        both_keys = torch.cat([keys[some], before.goal_keys[some]])
        rows, encodings = encodings.lookup(both_keys, lambda these: _rows(network.look(both[these])), chunk=chunk)
        glimpse, goal = rows.chunk(2)
        logits = network.relate(_encoding(network, glimpse), _encoding(network, goal))
        logits[:, SAME] += before.calibration.weight * (
            correlation(patch[some], before.goal[some]) - before.calibration.neutral
        )
        empty = is_flat(patch[some]) | before.goal_flat[some]
        return logits.masked_fill(empty[:, None], 0.0)

    logits, pairs = before.pairs.lookup(pair_keys(keys, before.goal_keys), relate, chunk=chunk)
    if len(patch) == 1:  # where nobody else may come to see it, a glimpse that comes up again is known as a pair
        encodings = encodings.only(before.goal_keys)
    return logits, before._replace(encodings=encodings, pairs=pairs)


def is_flat(patches: torch.Tensor) -> torch.Tensor:
    """Which pictures (B, S, S, 3) show nothing, bool (B,)."""
    return patches.float().flatten(1, 2).std(dim=1).amax(dim=1) < FLAT


def _chunk(device: torch.device) -> int:
    return min(CHUNK, SHARE * torch.get_num_threads()) if device.type == "cpu" else CHUNK


def _rows(encoding: Encoding) -> torch.Tensor:
    return torch.cat([part.flatten(1) for part in encoding], dim=1)


def _encoding(network: RelationNetwork, rows: torch.Tensor) -> Encoding:
    parts = torch.split(rows, [shape.numel() for shape in network.shapes], dim=1)
    return Encoding(*(part.reshape(-1, *shape) for part, shape in zip(parts, network.shapes, strict=True)))


# ---------- The belief searcher: keeps a probability for every cell of being the goal, and flies where it is found soonest.
# ~
# ~ At every step the relation network judges how the goal may lie to the glimpse; its logits, one an offset, are laid over
# ~ the grid from the agent's cell and added to what earlier glimpses said. The sum is trusted a little less than it claims,
# ~ for glimpses of one area err alike. Cells outside do not exist and visited cells are not the goal, so that the rest,
# ~ normalised, is the belief. A planner turns belief, position and moves left into a move. Whether the glimpse shows the
# ~ goal itself follows from the same evidence and from the likeness of the two pictures.
# ~
# ~ Legend: B episodes, C cells, O offsets, S side of a patch.


class BeliefState(NamedTuple):
    """What is known of the goals, and what glimpses were taken."""

    grid: Grid
    noise: torch.Tensor
    step: int
    prior: torch.Tensor
    """Logarithm of the probability of goals in each cell before the first glimpse, up to a constant, (B, C)."""
    evidence: torch.Tensor
    """Logarithm of prior and likelihood of all glimpses so far for the goal in each cell, up to a constant, (B, C)."""
    visited: torch.Tensor
    """Cells seen, bool (B, C)."""
    belief: torch.Tensor
    """Probability of every cell of being the goal, (B, C), rows summing to one."""
    same: torch.Tensor
    """Probability that the last glimpse showed the goal itself, (B,), were that not excluded by flying on.

    It leaves room for a goal that was overlooked: the last cell of a search is not the goal for want of others.
    """
    recognition: Recognition


@dataclass(frozen=True, eq=False)
class BeliefAgent:
    """Searches with a relation network, a belief and a planner."""

    name: str
    network: RelationNetwork
    """Frozen, on the device of play."""
    planner: Planner = PLANNERS["lookahead"]
    prior: str = "per-distance"
    """How goals are thought to lie before the first glimpse: a name of `PRIORS`."""
    trust: float = 0.75
    """Power that the likelihood of the glimpses is raised to in the belief; with one it is too sure of itself."""
    memory: bool = True
    """Keep what earlier glimpses said; without it only the last one and the visits count."""
    calibration: SamePlaceCalibration = SAME_PLACE
    """How the likeness of glimpse and goal is heard when it is judged whether this is the goal."""
    sample: bool = False
    """Draw moves in proportion to their worth instead of taking the best one."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> BeliefState:
        """Look at the goals; every cell is as probable as another until the start is known."""
        count, cells, device = len(episodes.goal), episodes.grid.count, episodes.goal.device
        flat = torch.full((count, cells), 1 / cells, device=device)
        return BeliefState(
            grid=episodes.grid,
            noise=episodes.noise,
            step=0,
            prior=torch.zeros_like(flat),
            evidence=torch.zeros_like(flat),
            visited=torch.zeros_like(flat, dtype=torch.bool),
            belief=flat,
            same=torch.zeros(count, device=device),
            recognition=begin(episodes.goal, self.calibration),
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: BeliefState) -> tuple[torch.Tensor, BeliefState]:
        """Look, update the belief and plan."""
        state = self.observe(observation, state)
        left = int(observation.moves_left.min())  # episodes are in step; those that have ended keep what they had
        worth = self.planner(state.belief, observation.position, left, state.grid)
        noise = state.noise[:, state.step - 1] if self.sample else None
        return choose(worth.clamp(min=0).log() if self.sample else worth, noise), state

    def match(self, observation: Observation, state: BeliefState) -> tuple[torch.Tensor, BeliefState]:
        """The probability that the glimpse shows the goal itself, (B,); what was recognised is kept for acting."""
        after = self.observe(observation, state)
        return after.same, state._replace(recognition=after.recognition)

    @torch.inference_mode()
    def observe(self, observation: Observation, state: BeliefState) -> BeliefState:
        """Take a glimpse into account, without moving."""
        logits, recognition = recognise(self.network, observation.patch, state.recognition)
        grid, position = state.grid, observation.position
        within = inside(position, grid)[:, None]
        row, col = position[:, 0].clamp(0, grid.rows - 1), position[:, 1].clamp(0, grid.cols - 1)
        here = (row * grid.cols + col)[:, None]  # (B, 1)
        new = within & ~state.visited.gather(1, here)
        said = logits.gather(1, offsets_from(torch.stack([row, col], dim=1), grid)) * new  # (B, C)
        prior = state.prior if state.step else PRIORS[self.prior](position, grid)
        evidence = (state.evidence if state.step else prior) + said
        # Where nobody tells of an arrival, a cell seen before may have been the goal: it counts as it looked.
        same = (self.calibration.temper * evidence).softmax(dim=1).gather(1, here) * new
        visited = state.visited.scatter(1, here, state.visited.gather(1, here) | within)
        return state._replace(
            step=state.step + 1,
            prior=prior,
            evidence=evidence,
            visited=visited,
            belief=normalise(self._trusted(evidence, prior) if self.memory else said, visited),
            same=same[:, 0],
            recognition=recognition,
        )

    def _trusted(self, evidence: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
        """The prior and as much of what the glimpses said as is trusted, (B, C)."""
        return prior + self.trust * (evidence - prior)


def normalise(evidence: torch.Tensor, visited: torch.Tensor) -> torch.Tensor:
    """The belief: evidence over the cells not visited, normalised; flat where all have been visited."""
    belief = evidence.masked_fill(visited, -torch.inf).softmax(dim=1)
    return torch.where(visited.all(dim=1, keepdim=True), torch.full_like(belief, 1 / belief.shape[1]), belief)


def per_distance(start: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Log of the probability of goals, given starts (B, 2), when every distance is equally often: (B, C).

    As the rows of `airloc.task.priors.per_distance`, for grids of any size.
    """
    away = _distances(start, grid)
    farthest = grid.max_distance + 1
    ring = torch.zeros(len(start), farthest, device=start.device).scatter_add_(1, away, torch.ones_like(away).float())
    cells = torch.cartesian_prod(*(torch.arange(side, device=start.device) for side in grid.shape))
    rows, cols = (torch.maximum(part, side - 1 - part) for part, side in zip(cells.T, grid.shape, strict=True))
    reach = _far(rows, cols, grid).sort().values  # the farthest goal of each start, in order
    starts = grid.count - torch.searchsorted(reach, torch.arange(farthest, device=start.device))
    weight = 1 / (ring * starts)
    weight[:, 0] = 0  # the goal is not where one starts
    return (weight.gather(1, away) + 1e-12).log()


def uniform(start: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Log of the probability of goals, given starts (B, 2), when every other cell is as probable: (B, C)."""
    return (_distances(start, grid) == 0).float() * -30.0


def anywhere(start: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Log of the probability of goals when every cell is as probable, the start too, as in the field: (B, C)."""
    return torch.zeros(len(start), grid.count, device=start.device)


PRIORS: dict[str, Callable[[torch.Tensor, Grid], torch.Tensor]] = {
    "per-distance": per_distance,
    "uniform": uniform,
    "anywhere": anywhere,
}


def _distances(position: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Moves from cells (B, 2) to every cell, (B, C)."""
    rows, cols = (
        (position[:, axis, None] - torch.arange(side, device=position.device)).abs()
        for axis, side in enumerate(grid.shape)
    )
    return _far(rows[:, :, None], cols[:, None], grid).flatten(1)


def _far(rows: torch.Tensor, cols: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Moves that so many rows and columns take."""
    return torch.maximum(rows, cols) if grid.moves == 8 else rows + cols
