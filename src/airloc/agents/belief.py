"""The belief searcher: keeps a probability for every cell of being the goal, and flies where it is found soonest.

At every step the relation network judges how the goal may lie to the glimpse; its logits, one an offset, are laid over
the grid from the agent's cell and added to what earlier glimpses said. The sum is trusted a little less than it claims,
for glimpses of one area err alike. Cells outside do not exist and visited cells are not the goal, so that the rest,
normalised, is the belief. A planner turns belief, position and moves left into a move. Whether the glimpse shows the
goal itself follows from the same evidence and from the likeness of the two pictures.

Legend: B episodes, C cells, O offsets, S side of a patch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from airloc.agents.agent import Briefing
from airloc.agents.choice import choose
from airloc.agents.likeness import WITNESS, Witness
from airloc.agents.planner import PLANNERS, Planner
from airloc.agents.recognition import Recognition, begin, recognise
from airloc.grid import Grid
from airloc.task.batch import Observation
from airloc.task.rules import inside
from airloc.vision.offsets import offsets_from
from airloc.vision.relation import RelationNetwork


class State(NamedTuple):
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
    witness: Witness = WITNESS
    """How the likeness of glimpse and goal is heard when it is judged whether this is the goal."""
    sample: bool = False
    """Draw moves in proportion to their worth instead of taking the best one."""

    @torch.inference_mode()
    def reset(self, briefing: Briefing) -> State:
        """Look at the goals; every cell is as probable as another until the start is known."""
        count, cells, device = len(briefing.goal), briefing.grid.count, briefing.goal.device
        flat = torch.full((count, cells), 1 / cells, device=device)
        return State(
            grid=briefing.grid,
            noise=briefing.noise,
            step=0,
            prior=torch.zeros_like(flat),
            evidence=torch.zeros_like(flat),
            visited=torch.zeros_like(flat, dtype=torch.bool),
            belief=flat,
            same=torch.zeros(count, device=device),
            recognition=begin(briefing.goal, self.witness),
        )

    @torch.inference_mode()
    def act(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """Look, update the belief and plan."""
        state = self.observe(observation, state)
        left = int(observation.moves_left.min())  # episodes are in step; those that have ended keep what they had
        worth = self.planner(state.belief, observation.position, left, state.grid)
        noise = state.noise[:, state.step - 1] if self.sample else None
        return choose(worth.clamp(min=0).log() if self.sample else worth, noise), state

    def here(self, observation: Observation, state: State) -> tuple[torch.Tensor, State]:
        """The probability that the glimpse shows the goal itself, (B,); what was recognised is kept for acting."""
        after = self.observe(observation, state)
        return after.same, state._replace(recognition=after.recognition)

    @torch.inference_mode()
    def observe(self, observation: Observation, state: State) -> State:
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
        same = (self.witness.temper * evidence).softmax(dim=1).gather(1, here) * new
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
