"""Pretraining of the patch embedder: in which of the eight directions does the neighbouring patch lie?

Pairs of adjacent patches, with the grid's gap between them, are cut from training pictures; the network names the
direction; cross-entropy and Adam, as the paper. Deviations from the paper:

1. Pairs come from blocks of 3 x 3 patches. A block is encoded once, its nine patches as current ones and as goals, and
   all its 40 pairs of neighbours are learned from: an update of 28 blocks encodes as many patches as the paper's 256
   pairs have (252 and 252), and learns from 1120 pairs.
2. Adam's rate is 2e-3 at its highest, about the paper's 1e-3 times the root of 1120 / 256. It rises over the first 500
   updates (over a tenth of a short training) and then falls to zero along a cosine.
3. Blocks are cut at any offset of a picture and at several scales, not only on the grid.
4. All eight flips and turns of a block, and of the directions with it; the paper flips areas.
5. Photometric change, alike for the whole block.
6. Batch normalisation (see `airloc.vision.embedder`).

Legend: B blocks, C channels, S = 48 side of a patch, P pairs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from airloc.agents.inference import optimize_for_inference
from airloc.areas.area import SearchArea
from airloc.grid import MOVES, Grid
from airloc.task.cells import cut_patches
from airloc.training.augment import SYMMETRIES, recolour, turn_patches
from airloc.training.data import Atlas, Data, load_atlas, validation_areas
from airloc.training.learner import Learner
from airloc.training.runs import Run, check_finite, refuse_below_one, restore_rng, rng_state
from airloc.vision.embedder import PatchEncoder, standardise

GRID = Grid()
SIDE = 3
"""Patches along the side of a block."""
SPAN = SIDE * GRID.pitch - GRID.gap
"""Pixels along the side of a block."""
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
    steps: int = 30_000
    """Updates."""
    blocks: int = 28
    """Blocks of 3 x 3 patches in an update."""
    learning_rate: float = 2e-3
    """Adam's learning rate at its highest."""
    recolour: float = 0.6
    """Strength of photometric change, 0 to 1."""
    validate_every: int = 2000
    """Updates between validations, each of which saves the state."""
    seed: int = 0
    """Decides weights and draws."""

    def __post_init__(self) -> None:
        refuse_below_one("The embedder", self, ("steps", "blocks", "validate_every"))


def train_embedder(
    folder: Path, config: EmbedderConfig, encoder: PatchEncoder, *, on_step: Callable[[int, dict[str, float]], None]
) -> PatchEncoder:
    """Train the embedder of `encoder`, whose segmentation unit stays as it is, in a run folder."""
    device = next(encoder.parameters()).device
    encoder.eval()
    # The layout that tensor cores like, and that takes three quarters of the time on a CPU.
    encoder.embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = Learner(encoder.embedder, config.learning_rate)
    with Run.open(folder, config) as run:
        if run.state:
            learner.put(run.state["learner"])
        if not (run.state and run.state.get("done")):
            atlas = load_atlas(config.data, SPAN, device)
            _learn(run, config, encoder, atlas, learner, on_step)
            even_out(encoder, atlas)
            run.save_state(config.steps - 1, {"learner": learner.take(), "rng": rng_state(device), "done": True})
    return encoder.eval()


def _learn(
    run: Run,
    config: EmbedderConfig,
    encoder: PatchEncoder,
    atlas: Atlas,
    learner: Learner,
    on_step: Callable[[int, dict[str, float]], None],
) -> None:
    """The loop, from where the run stands."""
    device = atlas.first.device
    torch.manual_seed(config.seed)
    pairs = adjacent_pairs(validation_areas(config.data, GRID), device)
    marker = optimize_for_inference(encoder, device)  # its segmentation unit does not learn here, and is faster frozen
    encoder.embedder.train()

    direction = directions(config.blocks, device)

    def update() -> torch.Tensor:
        # Cut blocks, turn and recolour them.
        patches = marker.add_mask(draw_blocks(atlas, config.blocks, config.recolour))
        # Name the directions of all pairs of neighbours.
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            current, goal = encoder.embedder.current_first(patches), encoder.embedder.goal_first(patches)
            _, logits = encoder.embedder.relate(*neighbours(current, goal))
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
        learner.set_learning_rate(config.learning_rate * schedule(step, config.steps))
        seen += fast_update()
        # Validate, log and save.
        if (step + 1) % config.validate_every == 0 or step + 1 == config.steps:
            loss, right = (seen / (step - run.step)).tolist()
            seen.zero_()
            check_finite(loss, step, run)
            figures = {"loss": loss, "accuracy": right, "val_accuracy": accuracy(encoder, pairs)}
            run.log(step, **figures)
            run.save_state(step, {"learner": learner.take(), "rng": rng_state(device)})
            on_step(step + 1, figures)


@torch.no_grad()
def even_out(encoder: PatchEncoder, atlas: Atlas, spread: float = SPREAD, blocks: int = 28) -> None:
    """Scale the numbers of c to one spread, without changing u.

    The temporal unit reads c + p: where c is much larger than the encoded position p, it hardly sees where it is. ReLU
    lets a scale pass, so what is taken from the layer that gives c is given to the layer that reads it.
    """
    encoder.embedder.eval()
    torch.manual_seed(0)
    current = encoder.embedder.current_first(encoder.add_mask(draw_blocks(atlas, blocks, strength=0.0)))
    goal = encoder.embedder.goal_first(encoder.add_mask(draw_blocks(atlas, blocks, strength=0.0)))
    # Pairs of unrelated patches, each patch in eight of them.
    seen = torch.cat([encoder.embedder.relate(current, goal.roll(shift, dims=0))[0] for shift in range(8)])
    scale = spread / seen.std(dim=0).clamp(min=1e-6)
    encoder.embedder.join.weight.mul_(scale[:, None])
    encoder.embedder.join.bias.mul_(scale)
    encoder.embedder.prior.weight.div_(scale)


def draw_blocks(atlas: Atlas, count: int, strength: float) -> torch.Tensor:
    """Draw blocks of 3 x 3 patches, standardised: (9 B, 3, S, S), by block, row and column."""
    squares = atlas.cut(*atlas.draw(count, SPAN), SPAN).permute(0, 3, 1, 2).float() / 255  # (B, 3, span, span)
    squares = standardise(recolour(squares[:, None], strength)[:, 0])
    squares = turn_patches(squares, torch.randint(SYMMETRIES, (count,), device=squares.device))
    patches = squares.unfold(2, GRID.cell, GRID.pitch).unfold(3, GRID.cell, GRID.pitch)  # (B, 3, row, column, S, S)
    return patches.permute(0, 2, 3, 1, 4, 5).flatten(0, 2)


def neighbours(current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair what was made of the patches of blocks, (9 B, C, ...) as current ones and as goals, with the neighbours'.

    Returns:
        The same of the current patches and of the goals of all pairs, (P, C, ...), by direction.
    """
    here, there = (maps.view(-1, SIDE, SIDE, *maps.shape[1:]) for maps in (current, goal))
    steps = MOVES.tolist()
    return (
        torch.cat([here[:, _leaving(row), _leaving(col)].flatten(0, 2) for row, col in steps]),
        torch.cat([there[:, _leaving(-row), _leaving(-col)].flatten(0, 2) for row, col in steps]),
    )


def directions(blocks: int, device: torch.device) -> torch.Tensor:
    """The directions of the pairs that `neighbours` gives, (P,)."""
    counts = [blocks * (SIDE - abs(row)) * (SIDE - abs(col)) for row, col in MOVES.tolist()]
    return torch.arange(len(MOVES), device=device).repeat_interleave(torch.tensor(counts, device=device))


def _leaving(step: int) -> slice:
    """The rows, or columns, of a block from which a step stays inside it."""
    return slice(max(0, -step), SIDE - max(0, step))


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
def accuracy(encoder: PatchEncoder, pairs: Pairs) -> float:
    """How often the right one of the eight directions is named; what sees one patch alone is computed once."""
    was_training = encoder.embedder.training
    encoder.embedder.eval()
    looked = [encoder.preprocess(some) for some in torch.split(pairs.patches, 512)]
    current = torch.cat([encoder.embedder.current_first(some) for some in looked])
    goal = torch.cat([encoder.embedder.goal_first(some) for some in looked])
    right = 0
    for part in torch.split(torch.arange(len(pairs.direction), device=current.device), 1024):
        _, logits = encoder.embedder.relate(current[pairs.current[part]], goal[pairs.goal[part]])
        right += int((logits.argmax(dim=1) == pairs.direction[part]).sum())
    encoder.embedder.train(was_training)
    return right / len(pairs.direction)


def schedule(step: int, steps: int) -> float:
    """Share of the learning rate: a short rise, then a cosine to zero."""
    rise = max(1, min(500, steps // 10))
    return min(1.0, (step + 1) / rise) * 0.5 * (1 + math.cos(math.pi * step / steps))
