"""Pretraining of the patch embedder: in which of the eight directions does the neighbouring patch lie?

Pairs of adjacent patches, with the grid's gap between them, are cut from training pictures; the network names the
direction; cross-entropy, Adam 1e-3, batches of 256, as the paper. Deviations from the paper:

1. Pairs are cut at any offset of a picture and at several scales, not only on the grid.
2. All eight flips and turns, the direction turned with them; the paper flips areas.
3. Photometric change, alike for both patches.
4. The learning rate rises over the first 500 updates (over a tenth of a short training) and then falls to zero along
   a cosine.
5. Batch normalisation (see `airloc.vision.embedder`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from airloc.agents.freeze import freeze
from airloc.areas.area import SearchArea
from airloc.grid import MOVES, Grid
from airloc.task.cells import cut_patches
from airloc.task.rules import moves_on
from airloc.training.atlas import Atlas
from airloc.training.augment import SYMMETRIES, recolour, turn_directions, turn_patches
from airloc.training.data import Data, load_atlas, validation_areas
from airloc.training.learner import Learner
from airloc.training.runs import Run, check_finite
from airloc.training.state import restore_rng, rng_state
from airloc.vision.eyes import Eyes, standardise

GRID = Grid()
SPREAD = 0.3
"""Standard deviation that the numbers of c are brought to. Over the cells of 5 x 5 the encoded position varies by more
than this in 34 of its 256 numbers, and by at most 0.8."""


@dataclass(frozen=True)
class EmbedderConfig:
    """Settings of the embedder's training."""

    data: Data = field(default_factory=Data)
    """What is trained on."""
    sem_seg: bool = True
    """Let the embedder see building masks."""
    segmenter: str = ""
    """The agent whose segmentation unit marks them, where it is not the one trained before."""
    steps: int = 60_000
    """Updates."""
    batch: int = 256
    """Pairs in an update."""
    rate: float = 1e-3
    """Adam's learning rate at its highest."""
    recolour: float = 0.6
    """Strength of photometric change, 0 to 1."""
    validate_every: int = 2000
    """Updates between validations, each of which saves the state."""
    seed: int = 0
    """Decides weights and draws."""


def train_embedder(
    folder: Path, config: EmbedderConfig, eyes: Eyes, *, on_step: Callable[[int, dict[str, float]], None]
) -> Eyes:
    """Train the embedder of `eyes`, whose segmentation unit stays as it is, in a run folder."""
    device = next(eyes.parameters()).device
    eyes.eval()
    # The layout that tensor cores like, and that takes three quarters of the time on a CPU.
    eyes.embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = Learner(eyes.embedder, config.rate)
    with Run.open(folder, config) as run:
        if run.state:
            learner.put(run.state["learner"])
        if not (run.state and run.state.get("done")):
            atlas = load_atlas(config.data, 3 * GRID.pitch - GRID.gap, device)
            _learn(run, config, eyes, atlas, learner, on_step)
            even_out(eyes, atlas)
            run.save_state(config.steps - 1, {"learner": learner.take(), "rng": rng_state(device), "done": True})
    return eyes.eval()


def _learn(
    run: Run,
    config: EmbedderConfig,
    eyes: Eyes,
    atlas: Atlas,
    learner: Learner,
    on_step: Callable[[int, dict[str, float]], None],
) -> None:
    """The loop, from where the run stands."""
    device = atlas.first.device
    torch.manual_seed(config.seed)
    pairs = adjacent_pairs(validation_areas(config.data, GRID), device)
    marker = freeze(eyes, device)  # its segmentation unit does not learn here, and is faster frozen
    eyes.embedder.train()

    def update() -> torch.Tensor:
        # Cut pairs, turn and recolour them.
        current, goal, direction = draw_pairs(atlas, config.batch, config.recolour)
        # Name the direction.
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            _, logits = eyes.embedder(marker.mark(current), marker.mark(goal))
        # Learn.
        loss = cross_entropy(logits.float(), direction)
        learner.descend(loss)
        right = (logits.argmax(dim=1) == direction).float().mean()
        return torch.stack([loss.detach(), right])

    fast_update = learner.capture(update)
    if run.state:
        restore_rng(run.state["rng"])
    seen = torch.zeros(2, device=device)
    for step in range(run.step + 1, config.steps):
        learner.set_rate(config.rate * schedule(step, config.steps))
        seen += fast_update()
        # Validate, log and save.
        if (step + 1) % config.validate_every == 0 or step + 1 == config.steps:
            loss, right = (seen / (step - run.step)).tolist()
            seen.zero_()
            check_finite(loss, step, run)
            figures = {"loss": loss, "accuracy": right, "val_accuracy": accuracy(eyes, pairs)}
            run.log(step, **figures)
            run.save_state(step, {"learner": learner.take(), "rng": rng_state(device)})
            on_step(step + 1, figures)


@torch.no_grad()
def even_out(eyes: Eyes, atlas: Atlas, spread: float = SPREAD, patches: int = 256) -> None:
    """Scale the numbers of c to one spread, without changing u.

    The temporal unit reads c + p: where c is much larger than the encoded position p, it hardly sees where it is. ReLU
    lets a scale pass, so what is taken from the layer that gives c is given to the layer that reads it.
    """
    eyes.embedder.eval()
    torch.manual_seed(0)
    current = eyes.embedder.current_first(eyes.mark(draw_pairs(atlas, patches, strength=0.0)[0]))
    goal = eyes.embedder.goal_first(eyes.mark(draw_pairs(atlas, patches, strength=0.0)[0]))
    # Pairs of unrelated patches, each patch in eight of them.
    seen = torch.cat([eyes.embedder.relate(current, goal.roll(shift, dims=0))[0] for shift in range(8)])
    scale = spread / seen.std(dim=0).clamp(min=1e-6)
    eyes.embedder.join.weight.mul_(scale[:, None])
    eyes.embedder.join.bias.mul_(scale)
    eyes.embedder.prior.weight.div_(scale)


def draw_pairs(atlas: Atlas, count: int, strength: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw adjacent pairs: current and goal patches, standardised (B, 3, S, S), and directions (B,)."""
    device, pitch, side = atlas.first.device, GRID.pitch, GRID.cell
    which, top, left = atlas.draw(count, 3 * pitch - GRID.gap)
    direction = torch.randint(len(MOVES), (count,), device=device)
    step = moves_on(device)[direction] * pitch
    current = atlas.cut(which, top + pitch, left + pitch, side)
    goal = atlas.cut(which, top + pitch + step[:, 0], left + pitch + step[:, 1], side)
    both = torch.stack([current, goal], dim=1).permute(0, 1, 4, 2, 3).float() / 255  # (B, 2, 3, S, S)
    both = standardise(recolour(both, strength))
    symmetry = torch.randint(SYMMETRIES, (count,), device=device)
    return turn_patches(both[:, 0], symmetry), turn_patches(both[:, 1], symmetry), turn_directions(direction, symmetry)


class Pairs(NamedTuple):
    """Adjacent pairs by the numbers of their patches."""

    patches: torch.Tensor
    """(N, S, S, 3) uint8."""
    current: torch.Tensor
    goal: torch.Tensor
    direction: torch.Tensor
    """In which the goal lies; like the numbers of both patches (P,)."""


def adjacent_pairs(areas: Sequence[SearchArea], device: torch.device) -> Pairs:
    """All adjacent pairs of areas on the grid."""
    pairs = [
        (GRID.index(cell), GRID.index(to), number)
        for cell in GRID.cells()
        for number, (row, col) in enumerate(MOVES.tolist())
        if GRID.contains(to := (cell[0] + row, cell[1] + col))
    ]
    patches = np.concatenate([cut_patches(area.image, GRID) for area in areas])
    current, goal, direction = torch.tensor(pairs, device=device).T
    first = torch.arange(0, len(patches), GRID.count, device=device)[:, None]
    return Pairs(
        torch.from_numpy(patches).to(device),
        (first + current).flatten(),
        (first + goal).flatten(),
        direction.repeat(len(areas)),
    )


@torch.no_grad()
def accuracy(eyes: Eyes, pairs: Pairs) -> float:
    """How often the right one of the eight directions is named; what sees one patch alone is computed once."""
    was_training = eyes.embedder.training
    eyes.embedder.eval()
    looked = [eyes.look(some) for some in torch.split(pairs.patches, 512)]
    current = torch.cat([eyes.embedder.current_first(some) for some in looked])
    goal = torch.cat([eyes.embedder.goal_first(some) for some in looked])
    right = 0
    for part in torch.split(torch.arange(len(pairs.direction), device=current.device), 1024):
        _, logits = eyes.embedder.relate(current[pairs.current[part]], goal[pairs.goal[part]])
        right += int((logits.argmax(dim=1) == pairs.direction[part]).sum())
    eyes.embedder.train(was_training)
    return right / len(pairs.direction)


def schedule(step: int, steps: int) -> float:
    """Share of the learning rate: a short rise, then a cosine to zero."""
    rise = max(1, min(500, steps // 10))
    return min(1.0, (step + 1) / rise) * 0.5 * (1 + math.cos(math.pi * step / steps))
