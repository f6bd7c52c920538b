"""The belief agent: keeps a probability for every cell of being the goal, and flies where it finds the goal soonest.

At every step the relation network relates the glimpse to the goal. Its logits, one for each offset, are placed on the
grid around the agent's cell and added to the evidence of earlier glimpses. The sum is raised to a power below one,
because the errors of glimpses of one area are correlated. Cells outside the grid do not exist and visited cells are not
the goal; the rest, normalised, is the belief. A planner turns belief, position and moves left into a move. The
probability that the glimpse shows the goal (`match`) follows from the same evidence and from the similarity of glimpse
and goal.

A goal may also be described in words, instead of by a picture or besides it. The text network relates every glimpse to
the description, and its logits are added to those of the relation network. Glimpses that show nothing and empty
descriptions give no evidence.

Each patch is encoded once and each pair is related once; see `RelationCache`.

Legend: B episodes, n of them with missing features, C cells, O offsets, S = 48 side of a patch, F numbers of an
encoding, R rows of a description, D numbers of a row.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import interpolate

from airloc.agents.agent import EpisodeBatch, check_patch_side, select_action
from airloc.agents.between import cell_belief, position_likelihood
from airloc.agents.cache import FeatureCache, content_keys, pair_keys
from airloc.agents.matching import SAME_PLACE, SamePlaceCalibration, similarity
from airloc.agents.planner import PLANNERS, Planner
from airloc.agents.planner import move_values as planner_values
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.goal_prior import goal_prior
from airloc.task.rules import inside
from airloc.vision.locator import FLAT_STD
from airloc.vision.offsets import NUM_OFFSETS, ZERO_OFFSET
from airloc.vision.relation import SIDE, Encoding, RelationNetwork, offsets_from
from airloc.vision.text import TextNetwork, is_blank

CHUNK_PER_CORE, CHUNK = 32, 256
"""Patches and pairs that go through the network at once: for each CPU core, so that they stay in its cache, and at
most."""
IMPOSSIBLE = 1e-30
"""Probability that stands for zero in a prior, so that logarithms are finite."""


class TextEvidence(NamedTuple):
    """The descriptions of a batch, and the encodings of all patches so far."""

    description: torch.Tensor
    """Encoded descriptions, (B, F)."""
    blank: torch.Tensor
    """Which descriptions are empty, bool (B,)."""
    patches: FeatureCache
    """Encodings by patch, rows (F,)."""


class BeliefState(NamedTuple):
    """State of a `BeliefAgent`."""

    grid: Grid
    noise: torch.Tensor
    step: int
    prior: torch.Tensor
    """Log-probability of the goal in each cell before the first glimpse, up to a constant, (B, C)."""
    evidence: torch.Tensor
    """Log of prior times likelihood of all glimpses for the goal in each cell, up to a constant, (B, C)."""
    visited: torch.Tensor
    """Visited cells, bool (B, C)."""
    belief: torch.Tensor
    """Probability of every cell of being the goal, (B, C). Rows sum to one."""
    match: torch.Tensor
    """Probability that the last glimpse shows the goal, (B,).

    It does not assume that earlier cells are excluded: the last cell of a search is not the goal for lack of others.
    """
    cache: "RelationCache"
    prior_given: bool = False
    """True if the prior came with the episodes and does not depend on the start."""
    text: TextEvidence | None = None
    """Descriptions of the goals in words, if there are any."""
    positions: torch.Tensor | None = None
    """Log-likelihood of all glimpses for the goal at positions half a cell apart, (B, 2 rows - 1, 2 cols - 1), if goals
    may lie between cells."""


@dataclass(frozen=True, eq=False)
class BeliefAgent:
    """Searches with a relation network, a belief and a planner."""

    name: str
    network: RelationNetwork
    """Optimised for inference, on the device of play."""
    planner: Planner = PLANNERS["lookahead"]
    prior: str = "per-distance"
    """Assumed distribution of goals before the first glimpse: a name in `GOAL_PRIORS`."""
    likelihood_power: float = 0.55
    """Power of the glimpses' likelihood in the belief. Success is the same from 0.55 to 0.75. At 0.55 the belief is not
    overconfident even if the goal image is from before a disaster, and on the same day it is less sure than right."""
    memory: bool = True
    """Keep the evidence of earlier glimpses. Without it only the last glimpse and the visited cells count."""
    between: bool = False
    """Goals may lie between cells: the belief is kept for positions half a cell apart (`airloc.agents.between`)."""
    calibration: SamePlaceCalibration = SAME_PLACE
    """Weights of network and similarity in the probability of a match."""
    sample: bool = False
    """Sample moves in proportion to their value instead of taking the best move."""
    text_network: Callable[[], TextNetwork] | None = None
    """Returns the network for goals in words, on the device of play; called when there is a description."""
    text_power: tuple[float, float] = (1.36, 0.34)
    """Powers of the likelihood of descriptions, alone and beside a picture, before `likelihood_power`. A picture and a
    description tell in part the same."""

    @torch.inference_mode()
    def reset(self, episodes: EpisodeBatch) -> BeliefState:
        """Return the prior of the episodes, or a uniform belief. The agent's prior applies once the start is known."""
        count, cells, device = len(episodes.goal), episodes.grid.count, episodes.goal.device
        uniform = torch.full((count, cells), 1 / cells, device=device)
        prior = torch.zeros_like(uniform) if episodes.prior is None else episodes.prior.clamp(min=IMPOSSIBLE).log()
        return BeliefState(
            grid=episodes.grid,
            noise=episodes.noise,
            step=0,
            prior=prior,
            evidence=prior,
            visited=torch.zeros_like(uniform, dtype=torch.bool),
            belief=uniform if episodes.prior is None else episodes.prior,
            match=torch.zeros(count, device=device),
            cache=prepare_goals(episodes.goal, self.calibration),
            prior_given=episodes.prior is not None,
            text=None if episodes.text is None else prepare_texts(self._text_network(), episodes.text),
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: BeliefState) -> tuple[torch.Tensor, BeliefState]:
        """Update the belief and plan a move."""
        state = self.observe(observation, state)
        moves_left = int(observation.moves_left.min())  # the same in all episodes but those that have ended
        values = move_values(self.planner, state.belief, observation.position, moves_left, state.grid)
        if not self.sample:
            return select_action(values), state
        return select_action(values.clamp(min=0).log(), state.noise[:, state.step - 1]), state

    def match(self, observation: Observation, state: BeliefState) -> tuple[torch.Tensor, BeliefState]:
        """Return the probability (B,) that the glimpse shows the goal, and the state with the glimpse cached."""
        after = self.observe(observation, state)
        return after.match, state._replace(cache=after.cache)

    @torch.inference_mode()
    def observe(self, observation: Observation, state: BeliefState) -> BeliefState:
        """Return the state after a glimpse, without a move."""
        logits, cache = offset_logits(self.network, observation.patch, state.cache)
        text = state.text
        if text is not None:
            described, text = text_logits(self._text_network(), observation.patch, text, is_flat(observation.patch))
            alone, beside = self.text_power
            logits = logits + torch.where(state.cache.goal_flat, alone, beside)[:, None] * described
        grid, position = state.grid, observation.position
        row, col = position[:, 0].clamp(0, grid.rows - 1), position[:, 1].clamp(0, grid.cols - 1)
        known = state.step > 0 or state.prior_given
        prior = state.prior if known else log_prior(self.prior, position, grid)
        evidence, visited, belief, match = self.update(
            logits,
            offsets_from(torch.stack([row, col], dim=1), grid),
            prior,
            state.evidence if known else prior,
            state.visited,
            (row * grid.cols + col)[:, None],
            inside(position, grid)[:, None],
        )
        positions = state.positions
        if self.between:
            before = state.evidence if known else prior
            belief, positions = self._between(evidence - before, prior, visited, positions, grid)
        return state._replace(
            positions=positions,
            step=state.step + 1,
            prior=prior,
            evidence=evidence,
            visited=visited,
            belief=belief,
            match=match,
            cache=cache,
            text=text,
        )

    def _between(
        self,
        likelihood: torch.Tensor,
        prior: torch.Tensor,
        visited: torch.Tensor,
        positions: torch.Tensor | None,
        grid: Grid,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return belief (B, C) and log-likelihood of positions after a glimpse with a likelihood of cells (B, C)."""
        cells = [part.cpu().numpy().reshape(-1, *grid.shape) for part in (likelihood, prior, visited)]
        total = position_likelihood(cells[0]) + (0 if positions is None else positions.cpu().numpy())
        probability = cell_belief(self.likelihood_power * total, cells[1], cells[2])
        belief = torch.from_numpy(probability).to(likelihood).flatten(1)
        return belief, torch.from_numpy(total).to(likelihood.device)

    def place(self, state: BeliefState) -> torch.Tensor:
        """Return the probability of every cell, visited or not, (B, C): that the goal image was taken there."""
        return (state.prior + self.likelihood_power * (state.evidence - state.prior)).softmax(dim=1)

    def _text_network(self) -> TextNetwork:
        if self.text_network is None:
            raise AirlocError(f"The agent {self.name!r} reads no descriptions", "Use belief, or give a goal picture")
        return self.text_network()

    def update(
        self,
        logits: torch.Tensor,
        offsets: torch.Tensor,
        prior: torch.Tensor,
        evidence: torch.Tensor,
        visited: torch.Tensor,
        cell: torch.Tensor,
        within: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Update a belief by the logits of a glimpse. `airloc export` writes this function as a graph.

        Args:
            logits: Offset logits of the glimpse, (B, O).
            offsets: Index of the offset from the agent's cell to every cell, (B, C).
            prior: Log-prior, (B, C).
            evidence: Evidence before the glimpse, (B, C).
            visited: Visited cells before the glimpse, bool (B, C).
            cell: Index of the agent's cell, (B, 1).
            within: Whether the agent is inside the grid, bool (B, 1).

        Returns:
            Evidence (B, C), visited cells (B, C), belief (B, C) and probability of a match (B,).
        """
        new = within & ~visited.gather(1, cell)
        likelihood = logits.gather(1, offsets) * new
        evidence = evidence + likelihood
        # Visited cells stay in the softmax: an agent that declares its finds may have passed the goal.
        match = (self.calibration.scale * evidence).softmax(dim=1).gather(1, cell) * new
        visited = visited.scatter(1, cell, visited.gather(1, cell) | within)
        tempered = prior + self.likelihood_power * (evidence - prior) if self.memory else likelihood
        return evidence, visited, normalise(tempered, visited), match[:, 0]


def normalise(evidence: torch.Tensor, visited: torch.Tensor) -> torch.Tensor:
    """Return the softmax of the evidence (B, C) over unvisited cells; uniform where all cells are visited."""
    belief = evidence.masked_fill(visited, -torch.inf).softmax(dim=1)
    return torch.where(visited.all(dim=1, keepdim=True), torch.full_like(belief, 1 / belief.shape[1]), belief)


def log_prior(kind: str, start: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Return the log-probability of goals for starts (B, 2) up to a constant, (B, C); see `goal_prior`."""
    starts, index = torch.unique(start, dim=0, return_inverse=True)
    weights = [goal_prior(kind, (row, col), *grid.shape, grid.moves) for row, col in starts.tolist()]
    return torch.from_numpy(np.stack(weights)).to(start.device).log()[index]


def move_values(
    planner: Planner, belief: torch.Tensor, position: torch.Tensor, moves_left: int, grid: Grid
) -> torch.Tensor:
    """Return the value of each first move under the best path that begins with it, (B, 8), for beliefs (B, C)."""
    cells = belief.cpu().numpy().reshape(-1, *grid.shape)
    values = planner_values(planner, cells, position.cpu().numpy(), moves_left, grid.moves)
    return torch.from_numpy(values).to(belief.device)


class RelationCache(NamedTuple):
    """The goals of a batch, and the features of all patches and pairs so far."""

    goal: torch.Tensor
    """Goal patches, (B, S, S, 3) uint8."""
    goal_keys: torch.Tensor
    """Content keys of the goal patches, (B,)."""
    goal_flat: torch.Tensor
    """Which goal patches show nothing, bool (B,)."""
    encodings: FeatureCache
    """Encodings by patch, rows (F,)."""
    pairs: FeatureCache
    """Offset logits by pair, rows (O,)."""
    calibration: SamePlaceCalibration
    """Weights of network and similarity in the logit of the zero offset."""


def prepare_goals(goal: torch.Tensor, calibration: SamePlaceCalibration) -> RelationCache:
    """Return an empty cache for goals (B, S, S, 3). Goals of another size are resampled, with a warning."""
    if goal.shape[1:] != (SIDE, SIDE, 3):
        height, width = goal.shape[1:3]
        warnings.warn(f"Goals of {height} x {width} px are resampled to {SIDE} x {SIDE} px", stacklevel=3)
        values = goal.permute(0, 3, 1, 2).float()
        values = interpolate(values, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
        goal = values.round().clamp(0, 255).byte().permute(0, 2, 3, 1).contiguous()
    return RelationCache(goal, content_keys(goal), is_flat(goal), FeatureCache(), FeatureCache(), calibration)


def offset_logits(
    network: RelationNetwork, patch: torch.Tensor, cache: RelationCache
) -> tuple[torch.Tensor, RelationCache]:
    """Return the logits (B, O) of the offsets from glimpses (B, S, S, 3) to the goals, and the updated cache.

    The logits are zero if glimpse or goal shows nothing. The logit of the zero offset includes the similarity.

    Raises:
        AirlocError: If the glimpses are not 48 x 48 px.
    """
    check_patch_side(patch, SIDE)
    if cache.goal_flat.all():
        return torch.zeros(len(patch), NUM_OFFSETS, device=patch.device), cache
    keys, chunk = content_keys(patch), _chunk(patch.device)
    encodings = cache.encodings

    def relate(some: torch.Tensor) -> torch.Tensor:
        nonlocal encodings
        both = torch.cat([patch[some], cache.goal[some]])
        both_keys = torch.cat([keys[some], cache.goal_keys[some]])
        rows, encodings = encodings.lookup(
            both_keys, lambda these: _rows(network.encode_patches(both[these])), chunk=chunk
        )
        glimpse, goal = rows.chunk(2)
        logits = network.relate(_encoding(network, glimpse), _encoding(network, goal))
        logits = add_similarity(logits, patch[some], cache.goal[some], cache.calibration)
        return logits.masked_fill((is_flat(patch[some]) | cache.goal_flat[some])[:, None], 0.0)

    logits, pairs = cache.pairs.lookup(pair_keys(keys, cache.goal_keys), relate, chunk=chunk)
    if len(patch) == 1:  # no other episode needs the glimpse, and if it occurs again its pair is cached
        encodings = encodings.only(cache.goal_keys)
    return logits, cache._replace(encodings=encodings, pairs=pairs)


def add_similarity(
    logits: torch.Tensor, glimpse: torch.Tensor, goal: torch.Tensor, calibration: SamePlaceCalibration
) -> torch.Tensor:
    """Add the similarity of glimpse and goal (B, S, S, 3) to the logit of the zero offset in logits (B, O)."""
    evidence = calibration.weight * (similarity(glimpse, goal) - calibration.midpoint)
    same = logits[:, ZERO_OFFSET] + evidence
    return torch.cat([logits[:, :ZERO_OFFSET], same[:, None], logits[:, ZERO_OFFSET + 1 :]], dim=1)


def is_flat(patches: torch.Tensor) -> torch.Tensor:
    """Return which patches (B, S, S, 3) show nothing, bool (B,)."""
    return patches.float().flatten(1, 2).std(dim=1).amax(dim=1) < FLAT_STD


def _chunk(device: torch.device) -> int:
    return min(CHUNK, CHUNK_PER_CORE * torch.get_num_threads()) if device.type == "cpu" else CHUNK


def _rows(encoding: Encoding) -> torch.Tensor:
    return torch.cat([part.flatten(1) for part in encoding], dim=1)


def _encoding(network: RelationNetwork, rows: torch.Tensor) -> Encoding:
    parts = torch.split(rows, [shape.numel() for shape in network.shapes], dim=1)
    return Encoding(*(part.reshape(-1, *shape) for part, shape in zip(parts, network.shapes, strict=True)))


def prepare_texts(network: TextNetwork, rows: torch.Tensor) -> TextEvidence:
    """Encode descriptions (B, R, D)."""
    return TextEvidence(network.encode_text(rows), is_blank(rows), FeatureCache())


def text_logits(
    network: TextNetwork, patch: torch.Tensor, evidence: TextEvidence, nothing: torch.Tensor
) -> tuple[torch.Tensor, TextEvidence]:
    """Return the logits (B, O) of the offsets from glimpses (B, S, S, 3) to the described goals, and the evidence.

    `nothing` tells which glimpses show nothing, bool (B,). Their logits are zero, as are those of empty descriptions.
    """
    encoded, patches = evidence.patches.lookup(content_keys(patch), lambda some: network.encode_patches(patch[some]))
    logits = network.relate(encoded, evidence.description)
    return logits.masked_fill((nothing | evidence.blank)[:, None], 0.0), evidence._replace(patches=patches)
