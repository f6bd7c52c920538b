"""Pretraining of the patch embedder: in which of the eight directions does the neighbouring patch lie?

Pairs of adjacent patches, with the grid's gap between them, are cut from training pictures; the network names the
direction; cross-entropy, Adam 1e-3, batches of 256, as the paper. Deviations from the paper:

1. Pairs are cut at any offset of a picture and at several scales, not only on the grid.
2. All eight flips and turns, the direction turned with them; the paper flips areas.
3. Photometric change, alike for both patches.
4. The learning rate rises over the first 500 updates and then falls to zero along a cosine.
5. Batch normalisation (see `airloc.vision.embedder`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

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
"""Standard deviation that the numbers of c are brought to; the encoded position varies about as much."""


@dataclass(frozen=True)
class EmbedderConfig:
    """Settings of the embedder's training."""

    data: Data = field(default_factory=Data)
    """What is trained on."""
    sem_seg: bool = True
    """Let the embedder see building masks."""
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
    torch.manual_seed(config.seed)
    atlas = load_atlas(config.data, 3 * GRID.pitch - GRID.gap, device)
    pairs = adjacent_pairs(validation_areas(config.data, GRID), device)
    if device.type == "cuda":  # the layout that tensor cores like
        eyes.embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = Learner(eyes.embedder, config.rate)
    eyes.embedder.train()

    def update() -> torch.Tensor:
        # Cut pairs, turn and recolour them.
        current, goal, direction = draw_pairs(atlas, config.batch, config.recolour)
        # Name the direction.
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            _, logits = eyes.embedder(eyes.mark(current), eyes.mark(goal))
        # Learn.
        loss = cross_entropy(logits.float(), direction)
        learner.descend(loss)
        right = (logits.argmax(dim=1) == direction).float().mean()
        return torch.stack([loss.detach(), right])

    with Run.open(folder, config) as run:
        fast_update = learner.capture(update)
        if run.state:
            learner.put(run.state["learner"])
            restore_rng(run.state["rng"])
        seen = torch.zeros(2, device=device)
        for step in range(run.step + 1, config.steps):
            learner.set_rate(config.rate * schedule(step, config.steps))
            seen += fast_update()
            # Validate, log and save.
            if (step + 1) % config.validate_every == 0 or step + 1 == config.steps:
                loss, right = (seen / config.validate_every).tolist()
                seen.zero_()
                check_finite(loss, step, run)
                figures = {"loss": loss, "accuracy": right, "val_accuracy": accuracy(eyes, *pairs)}
                run.log(step, **figures)
                run.save_state(step, {"learner": learner.take(), "rng": rng_state(device)})
                on_step(step, figures)
    eyes.embedder.eval()
    even_out(eyes, atlas)
    return eyes


@torch.no_grad()
def even_out(eyes: Eyes, atlas: Atlas, spread: float = SPREAD, draws: int = 8) -> None:
    """Scale the numbers of c to one spread, without changing u.

    The temporal unit reads c + p: where c is much larger than the encoded position p, it hardly sees where it is. ReLU
    lets a scale pass, so what is taken from the layer that gives c is given to the layer that reads it.
    """
    torch.manual_seed(0)
    seen = []
    for _ in range(draws):
        current, _, _ = draw_pairs(atlas, 512, strength=0.0)
        goal, _, _ = draw_pairs(atlas, 512, strength=0.0)
        seen.append(eyes.embedder(eyes.mark(current), eyes.mark(goal))[0])
    scale = spread / torch.cat(seen).std(dim=0).clamp(min=1e-6)
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


def adjacent_pairs(
    areas: Sequence[SearchArea], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """All adjacent pairs of areas on the grid: patches (P, S, S, 3) uint8 each, and directions (P,)."""
    current, goal, direction = [], [], []
    for area in areas:
        patches = cut_patches(area.image, GRID)
        for cell in GRID.cells():
            for number, (row, col) in enumerate(MOVES.tolist()):
                to = cell[0] + row, cell[1] + col
                if GRID.contains(to):
                    current.append(patches[GRID.index(cell)])
                    goal.append(patches[GRID.index(to)])
                    direction.append(number)
    stacked = (torch.from_numpy(np.stack(patches)).to(device) for patches in (current, goal))
    return *stacked, torch.tensor(direction, device=device)  # type: ignore[return-value]


@torch.no_grad()
def accuracy(eyes: Eyes, current: torch.Tensor, goal: torch.Tensor, direction: torch.Tensor) -> float:
    """How often the right one of the eight directions is named."""
    was_training = eyes.embedder.training
    eyes.embedder.eval()
    right = 0
    for first in range(0, len(direction), 1024):
        part = slice(first, first + 1024)
        _, logits = eyes.embedder(eyes.look(current[part]), eyes.look(goal[part]))
        right += int((logits.argmax(dim=1) == direction[part]).sum())
    eyes.embedder.train(was_training)
    return right / len(direction)


def schedule(step: int, steps: int, rise: int = 500) -> float:
    """Share of the learning rate: a short rise, then a cosine to zero."""
    return min(1.0, (step + 1) / rise) * 0.5 * (1 + math.cos(math.pi * step / steps))
