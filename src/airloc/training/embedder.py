"""Pretraining of the patch embedder: in which of the eight directions does the neighbouring patch lie?

Pairs of adjacent patches, with the gap of the grid between them, are cropped from training images, and the network
classifies the direction, with cross-entropy and Adam as in the paper. The settings below are those of the shipped
agents, which deviate from the paper; docs/paper-map.md has the table, and the preset `paper` the paper's values:

1. `batches`: pairs come from blocks of 3 x 3 patches. A block is encoded once, its nine patches both as current patches
   and as goals, and all its 40 pairs of neighbours contribute to the loss: an update with 28 blocks encodes as many
   patches as the 256 pairs of the paper (252 and 252), and learns from 1120 pairs. The paper's 256 pairs are drawn
   from all ordered pairs of adjacent cells of an area.
2. `learning_rate`, `schedule` and `keep`: the highest learning rate is 2e-3, about the paper's 1e-3 times the square
   root of 1120 / 256. It rises over the first 500 updates (over a tenth of a short training) and then falls to zero
   along a cosine. The last weights are kept, not the best by validation.
3. `crops`: blocks are cropped at any offset of an image and at several scales, not only on the grid.
4. `augmentation`: all eight symmetries of a block, and of the directions with it, and colour jitter, the same for the
   whole block; the paper flips areas. With `photos`, the patches of a share of the blocks are photos with errors and
   compression of their own.
5. `rescale`: the numbers of c are scaled to one standard deviation after the training.
6. `layers`: batch normalisation (see `airloc.vision.embedder`).

Legend: B blocks, C channels, S = 48 side of a patch, P pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from airloc.agents.inference import optimize_for_inference
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import MOVES, Grid
from airloc.task.cells import cut_patches
from airloc.task.photos import MARGIN
from airloc.training.atlas import Atlas
from airloc.training.augment import FLIPS, SYMMETRIES, Augmentation, apply_symmetry, colour_jitter
from airloc.training.data import Crops, DataConfig, load_atlas, validation_areas
from airloc.training.learner import Learner, mixed_precision
from airloc.training.loop import SCHEDULES, BestWeights, Keep, OnStep, Schedule, UpdateLoop
from airloc.training.photos import cut_cells, photograph_cells
from airloc.training.runs import PositiveFloat, PositiveInt, Probability, Run, check_settings, rng_state
from airloc.vision.embedder import Layers, PatchEncoder, standardise

GRID = Grid()
SIDE = 3
"""Patches along the side of a block."""
BLOCK_GRID = Grid(SIDE, SIDE)
SPAN = BLOCK_GRID.size[0]
"""Pixels along the side of a block."""
_ADJACENT = [
    (GRID.index(cell), GRID.index(to), number)
    for cell in GRID.cells()
    for number, (row, col) in enumerate(MOVES.tolist())
    if GRID.contains(to := (cell[0] + row, cell[1] + col))
]
"""All ordered pairs of adjacent cells of an area, as indices, each with its direction."""
EMBEDDING_STD = 0.3
"""Standard deviation that the numbers of c are scaled to. Over the cells of 5 x 5 the encoded position varies by more
than this in 34 of its 256 numbers, and by at most 0.8."""
NORMALISED_BLOCKS = 28
"""Number of blocks over whose patches the standard deviation is taken."""


@dataclass(frozen=True)
class EmbedderConfig:
    """Settings of the training of the embedder."""

    data: DataConfig = field(default_factory=DataConfig)
    """Training and validation images."""
    sem_seg: bool = True
    """Use building masks as input of the embedder."""
    segmenter: str = ""
    """Agent whose segmentation unit predicts the masks, if it is not the one trained before."""
    init_from: str = ""
    """Agent whose embedder the training starts with, if its weights are not random."""
    steps: PositiveInt = 30_000
    """Number of updates."""
    batches: Literal["blocks", "pairs"] = "blocks"
    """An update learns from blocks of 3 x 3 patches, or from pairs of patches."""
    blocks: PositiveInt = 28
    """Blocks of 3 x 3 patches per update."""
    pairs: PositiveInt = 256
    """Pairs of patches per update, instead of blocks."""
    learning_rate: PositiveFloat = 2e-3
    """Highest learning rate of Adam."""
    schedule: Schedule = "cosine"
    """The learning rate falls along a cosine, or is constant."""
    keep: Keep = "last"
    """Keep the last weights, or train until convergence and keep those with the highest accuracy in validation."""
    crops: Crops = "random"
    """Squares at any offset and scale of the images, or on the grid of the search areas."""
    augmentation: Augmentation = "full"
    """All symmetries and colour jitter, or flips alone."""
    jitter: Probability = 0.6
    """Strength of colour jitter, 0 to 1."""
    rescale: bool = True
    """Scale the numbers of c to one standard deviation after the training."""
    layers: Layers = field(default_factory=Layers)
    """Layers of the networks."""
    photos: Probability = 0.0
    """Share of the blocks whose patches are photos with errors and compression of their own."""
    validate_every: PositiveInt = 2000
    """Updates between validations; each validation saves the state."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.photos and (self.batches, self.crops) != ("blocks", "random"):
            problem = "Photos are taken of blocks at any offset only"
            raise AirlocError(problem, "Give --embedder blocks and --crops random, or leave --photos out")

    @property
    def crop_side(self) -> int:
        """Side of the squares that are cropped: an area for pairs; photos may show the ground around a block."""
        return GRID.size[0] if self.batches == "pairs" else _crop_side(self.photos)

    @property
    def offset_step(self) -> int:
        """Pixels between possible offsets of crops."""
        return GRID.pitch if self.crops == "grid" else 1

    @property
    def distortions(self) -> "Distortions":
        """The augmentation as numbers."""
        full = self.augmentation == "full"
        return Distortions(SYMMETRIES, self.jitter) if full else Distortions(FLIPS, 0.0)


class Distortions(NamedTuple):
    """Augmentation of squares."""

    symmetries: int
    """The first of the eight symmetries to draw from."""
    jitter: float
    """Strength of colour jitter."""


def train_embedder(folder: Path, config: EmbedderConfig, encoder: PatchEncoder, *, on_step: OnStep) -> PatchEncoder:
    """Train the embedder of a patch encoder in a run folder; its segmentation unit is frozen.

    A finished run is only loaded.
    """
    device = next(encoder.parameters()).device
    encoder.eval()
    # The memory layout of tensor cores; on a CPU it takes three quarters of the time.
    encoder.embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = Learner(encoder.embedder, config.learning_rate)
    with Run.open(folder, config) as run:
        if run.state:
            learner.load_state_dict(run.state["learner"])
        if not (run.state and run.state.get("done")):
            atlas = load_atlas(config.data, config.crop_side, device, crops=config.crops)
            _train(run, config, encoder, atlas, learner, on_step)
            if config.rescale:
                normalise_embedding(encoder, atlas, NORMALISED_BLOCKS)
            state = {"learner": learner.state_dict(), "rng": rng_state(device), "done": True}
            run.save_state(config.steps - 1, state)
    return encoder.eval()


def _train(
    run: Run,
    config: EmbedderConfig,
    encoder: PatchEncoder,
    atlas: Atlas,
    learner: Learner,
    on_step: OnStep,
) -> None:
    """Run the training loop from the step of the run."""
    device = atlas.first.device
    torch.manual_seed(config.seed)
    pairs = adjacent_pairs(validation_areas(config.data, GRID), device)
    frozen = optimize_for_inference(encoder, device)  # for its segmentation unit, which is not trained here
    encoder.embedder.train()
    block_directions = pair_directions(config.blocks, device)

    def update() -> torch.Tensor:
        # Crop and augment patches, predict their building masks, and classify the directions of pairs.
        if config.batches == "pairs":
            patches, direction = sample_pairs(atlas, config.pairs, config.distortions, config.offset_step)
            current, goal = frozen.add_mask(patches).chunk(2)
        else:
            how = config.photos, config.distortions.symmetries, config.offset_step
            current = goal = frozen.add_mask(sample_blocks(atlas, config.blocks, config.distortions.jitter, *how))
            direction = block_directions
        with mixed_precision(device):
            maps = encoder.embedder.current_first(current), encoder.embedder.goal_first(goal)
            _, logits = encoder.embedder.relate(*(maps if config.batches == "pairs" else neighbour_pairs(*maps)))
        # Loss and step.
        loss = cross_entropy(logits.float(), direction)
        learner.step(loss)
        correct = (logits.argmax(dim=1) == direction).float().mean()
        return torch.stack([loss.detach(), correct])

    best = BestWeights(encoder.embedder)
    loop = UpdateLoop(
        run,
        config,
        learner,
        learner.capture(update),
        metrics=2,
        schedule=SCHEDULES[config.schedule],
        stop=lambda: best.converged,
    )
    if run.state:
        best.load_state_dict(run.state["best"])
    for step, (loss, correct), validates in loop:
        # Validate, log and save.
        metrics = {"loss": loss, "accuracy": correct}
        if validates:
            metrics["val_accuracy"] = accuracy(encoder, pairs)
            if config.keep == "best":
                best.offer(metrics["val_accuracy"])
            run.log(step, **metrics)
        run.save_state(step, {**loop.state(), "best": best.state_dict()})
        if validates:
            on_step(step + 1, metrics)
    best.restore()


@torch.no_grad()
def normalise_embedding(encoder: PatchEncoder, atlas: Atlas, blocks: int) -> None:
    """Scale the numbers of c to one standard deviation, without changing u.

    The standard deviations are those of pairs of patches from this number of blocks.

    The temporal unit reads c + p. If c is much larger than the encoded position p, the position has little effect. ReLU
    is homogeneous, so that the next layer can undo the scale of the layer that computes c.
    """
    encoder.embedder.eval()
    torch.manual_seed(0)
    current = encoder.embedder.current_first(encoder.add_mask(sample_blocks(atlas, blocks, strength=0.0)))
    goal = encoder.embedder.goal_first(encoder.add_mask(sample_blocks(atlas, blocks, strength=0.0)))
    # Pairs of unrelated patches, each patch in eight of them.
    embedding = torch.cat([encoder.embedder.relate(current, goal.roll(shift, dims=0))[0] for shift in range(8)])
    scale = EMBEDDING_STD / embedding.std(dim=0).clamp(min=1e-6)
    encoder.embedder.join.weight.mul_(scale[:, None])
    encoder.embedder.join.bias.mul_(scale)
    encoder.embedder.prior.weight.div_(scale)


def sample_pairs(
    atlas: Atlas, count: int, distortions: Distortions, step: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw areas, and in each an ordered pair of adjacent cells; the same augmentation for both.

    Returns:
        The current patches and then the goals, standardised, (2 B, 3, S, S), and the directions of the goals, (B,).
    """
    device = atlas.first.device
    index, top, left = (part.repeat(2) for part in atlas.sample(count, GRID.size[0], step))
    chosen = _area_pairs(device)[torch.randint(len(_area_pairs(device)), (count,), device=device)]  # (B, 5)
    row, col = torch.cat([chosen[:, :2], chosen[:, 2:4]]).T * GRID.pitch
    patches = atlas.crop(index, top + row, left + col, GRID.cell).permute(0, 3, 1, 2).float() / 255
    pairs = colour_jitter(patches.view(2, count, *patches.shape[1:]).transpose(0, 1), distortions.jitter)
    symmetry = torch.randint(distortions.symmetries, (count,), device=device)
    patches = apply_symmetry(pairs.transpose(0, 1).flatten(0, 1), symmetry.repeat(2))
    return standardise(patches), _turned_directions(device)[symmetry, chosen[:, 4]]


@lru_cache
def _area_pairs(device: torch.device) -> torch.Tensor:
    """Return all ordered pairs of adjacent cells of an area: row and column of both, and the direction, (P, 5)."""
    pairs = [(*GRID.cell_of(current), *GRID.cell_of(goal), direction) for current, goal, direction in _ADJACENT]
    return torch.tensor(pairs, device=device)


@lru_cache
def _turned_directions(device: torch.device) -> torch.Tensor:
    """Return the direction that each symmetry (first axis) makes of each direction, (8, 8)."""
    table = []
    for symmetry in range(SYMMETRIES):
        moves = MOVES * ((-1 if symmetry & 2 else 1), (-1 if symmetry & 1 else 1))
        moves = moves[:, ::-1] if symmetry & 4 else moves
        table.append([MOVES.tolist().index(move) for move in moves.tolist()])
    return torch.tensor(table, device=device)


def sample_blocks(
    atlas: Atlas,
    count: int,
    strength: float,
    photos: float = 0.0,
    symmetries: int = SYMMETRIES,
    step: int = 1,
) -> torch.Tensor:
    """Crop and augment blocks of 3 x 3 patches, standardised: (9 B, 3, S, S), by block, row and column."""
    side = _crop_side(photos)
    squares = atlas.crop(*atlas.sample(count, side, step), side).permute(0, 3, 1, 2).float() / 255  # (B, 3, side, side)
    squares = colour_jitter(squares[:, None], strength)[:, 0]
    squares = apply_symmetry(squares, torch.randint(symmetries, (count,), device=squares.device))
    patches = photograph_cells(squares, BLOCK_GRID, photos) if photos else cut_cells(squares, BLOCK_GRID)
    return standardise(patches.flatten(0, 1))


def _crop_side(photos: float) -> int:
    """Return the side of the squares that blocks are cropped from; photos may show the ground around a block."""
    return SPAN + (2 * MARGIN if photos else 0)


def neighbour_pairs(current: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair the features of the patches of blocks, as current patches and as goals (9 B, C, ...), with their neighbours.

    Returns:
        The features of the current patch and of the goal of all pairs, (P, C, ...), by direction.
    """
    currents, goals = (maps.view(-1, SIDE, SIDE, *maps.shape[1:]) for maps in (current, goal))
    moves = MOVES.tolist()
    return (
        torch.cat([currents[:, _origins(row), _origins(col)].flatten(0, 2) for row, col in moves]),
        torch.cat([goals[:, _origins(-row), _origins(-col)].flatten(0, 2) for row, col in moves]),
    )


def pair_directions(blocks: int, device: torch.device) -> torch.Tensor:
    """Return the directions of the pairs of `neighbour_pairs`, (P,)."""
    counts = [blocks * (SIDE - abs(row)) * (SIDE - abs(col)) for row, col in MOVES.tolist()]
    return torch.arange(len(MOVES), device=device).repeat_interleave(torch.tensor(counts, device=device))


def _origins(step: int) -> slice:
    """Return the rows, or columns, of a block from which a step stays inside the block."""
    return slice(max(0, -step), SIDE - max(0, step))


class AdjacentPairs(NamedTuple):
    """Adjacent pairs of patches."""

    patches: torch.Tensor
    """(N, S, S, 3) uint8."""
    current: torch.Tensor
    """Index of the current patch, (P,)."""
    goal: torch.Tensor
    """Index of the goal, (P,)."""
    direction: torch.Tensor
    """Direction of the goal, (P,)."""


def adjacent_pairs(areas: Sequence[SearchArea], device: torch.device) -> AdjacentPairs:
    """Return all adjacent pairs of areas on the grid."""
    patches = np.concatenate([cut_patches(area.image, GRID) for area in areas])
    current, goal, direction = torch.tensor(_ADJACENT, device=device).T
    first = torch.arange(0, len(patches), GRID.count, device=device)[:, None]
    return AdjacentPairs(
        torch.from_numpy(patches).to(device),
        (first + current).flatten(),
        (first + goal).flatten(),
        direction.repeat(len(areas)),
    )


@torch.no_grad()
def accuracy(encoder: PatchEncoder, pairs: AdjacentPairs) -> float:
    """Return the 8-way accuracy of the directions; each patch is encoded once."""
    was_training = encoder.embedder.training
    encoder.embedder.eval()
    inputs = [encoder.preprocess(some) for some in torch.split(pairs.patches, 512)]
    current = torch.cat([encoder.embedder.current_first(some) for some in inputs])
    goal = torch.cat([encoder.embedder.goal_first(some) for some in inputs])
    correct = 0
    for part in torch.split(torch.arange(len(pairs.direction), device=current.device), 1024):
        _, logits = encoder.embedder.relate(current[pairs.current[part]], goal[pairs.goal[part]])
        correct += int((logits.argmax(dim=1) == pairs.direction[part]).sum())
    encoder.embedder.train(was_training)
    return correct / len(pairs.direction)
