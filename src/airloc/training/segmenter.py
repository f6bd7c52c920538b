"""Training of the segmentation unit: which pixels of a patch are buildings?

Cross-entropy a pixel, Adam 1e-4, batches of 128 patches, as the paper. Deviations from the paper:

1. Patches are cut at any offset and several scales, with all eight flips and turns and photometric change.
2. Buildings are the rarer class: their pixels weigh `building_weight` times as much.
3. Batch normalisation in the U-net, and a learning rate that falls to zero along a cosine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from airloc.areas.area import SearchArea
from airloc.evaluation.metrics import Overlap, pooled
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.training.augment import SYMMETRIES, recolour, turn_patches
from airloc.training.data import Data, load_atlas, validation_areas
from airloc.training.embedder import schedule
from airloc.training.learner import Learner
from airloc.training.runs import Run, check_finite, refuse_below_one, restore_rng, rng_state
from airloc.vision.embedder import Segmenter, standardise

GRID = Grid()


@dataclass(frozen=True)
class SegmenterConfig:
    """Settings of the segmentation unit's training."""

    data: Data = field(default_factory=Data)
    """What is trained on; pictures without building masks are left out."""
    steps: int = 20_000
    """Updates."""
    batch: int = 128
    """Patches in an update."""
    learning_rate: float = 1e-4
    """Adam's learning rate at its highest."""
    building_weight: float = 3.0
    """How much more a building's pixel counts than another."""
    recolour: float = 0.8
    """Strength of photometric change, 0 to 1."""
    validate_every: int = 2000
    """Updates between validations, each of which saves the state."""
    seed: int = 0
    """Decides weights and draws."""

    def __post_init__(self) -> None:
        refuse_below_one("The segmentation unit", self, ("steps", "batch", "validate_every"))


def train_segmenter(
    folder: Path, config: SegmenterConfig, segmenter: Segmenter, *, on_step: Callable[[int, dict[str, float]], None]
) -> Segmenter:
    """Train the segmentation unit in a run folder."""
    if next(segmenter.parameters()).device.type == "cpu":  # three quarters of the time there
        segmenter.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = Learner(segmenter, config.learning_rate)
    with Run.open(folder, config) as run:
        if run.state:
            learner.put(run.state["learner"])
        if run.step + 1 < config.steps:
            _learn(run, config, segmenter, learner, on_step)
    return segmenter.eval()


def _learn(
    run: Run,
    config: SegmenterConfig,
    segmenter: Segmenter,
    learner: Learner,
    on_step: Callable[[int, dict[str, float]], None],
) -> None:
    """The loop, from where the run stands."""
    device = next(segmenter.parameters()).device
    torch.manual_seed(config.seed)
    atlas = load_atlas(config.data, GRID.cell, device, masks=True)
    checked = [area for area in validation_areas(config.data, GRID) if area.mask is not None]
    weight = torch.tensor(config.building_weight, device=device)
    segmenter.train()

    def update() -> torch.Tensor:
        # Cut patches, turn and recolour them.
        patches = atlas.cut(*atlas.draw(config.batch, GRID.cell), GRID.cell).permute(0, 3, 1, 2).float() / 255
        patches = turn_patches(patches, torch.randint(SYMMETRIES, (config.batch,), device=device))
        rgb = standardise(recolour(patches[:, None, :3], config.recolour)[:, 0])
        # Mark buildings, learn.
        loss = binary_cross_entropy_with_logits(segmenter(rgb), (patches[:, 3:] > 0.5).float(), pos_weight=weight)
        learner.descend(loss)
        return loss.detach()[None]

    fast_update = learner.capture(update)
    if run.state:
        restore_rng(run.state["rng"])
    seen = torch.zeros(1, device=device)
    for step in range(run.step + 1, config.steps):
        learner.set_learning_rate(config.learning_rate * schedule(step, config.steps))
        seen += fast_update()
        # Validate, log and save.
        if (step + 1) % config.validate_every == 0 or step + 1 == config.steps:
            loss = float(seen) / (step - run.step)
            seen.zero_()
            check_finite(loss, step, run)
            figures: dict[str, float] = {"loss": loss}
            if (match := overlap(segmenter, checked, device)) is not None:
                figures |= {"iou": match.iou, "f1": match.f1, **match._asdict()}
            run.log(step, **figures)
            run.save_state(step, {"learner": learner.take(), "rng": rng_state(device)})
            on_step(step + 1, figures)


@torch.no_grad()
def overlap(segmenter: Segmenter, areas: Sequence[SearchArea], device: torch.device) -> Overlap | None:
    """Counts of the building class over all cells of areas with masks; nothing where there are none."""
    if not areas:
        return None
    was_training = segmenter.training
    segmenter.eval()
    counts = []
    for area in areas:
        assert area.mask is not None
        patches = torch.from_numpy(cut_patches(area.image, GRID)).to(device).permute(0, 3, 1, 2).float() / 255
        mask = np.repeat(area.mask[..., None].astype(np.uint8), 3, axis=2)
        truth = torch.from_numpy(cut_patches(mask, GRID)[..., 0]).to(device) > 0
        found = segmenter(standardise(patches))[:, 0] > 0
        cases = (found & truth, found & ~truth, ~found & truth)
        counts.append(Overlap(*(int(case.sum()) for case in cases)))
    segmenter.train(was_training)
    return pooled(counts)
