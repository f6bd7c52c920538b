"""Training of the segmentation unit, which predicts the building pixels of a patch.

Cross-entropy per pixel, Adam with learning rate 1e-4, batches of 128 patches, as in the paper. The settings below are
those of the shipped agents, which deviate from the paper; docs/paper-map.md has the table, and the preset `paper` the
paper's values:

1. `crops`: patches are cropped at any offset and several scales, not from the cells of the search areas.
2. `augmentation`: all eight symmetries and colour jitter, not flips alone.
3. `building_weight`: the pixels of buildings, the rarer class, have more weight.
4. `schedule` and `keep`: the learning rate falls to zero along a cosine, and the last weights are kept, not the best by
   validation.
5. The U-net has one convolution in a block (`airloc.vision.embedder.Layers`).

For a cross-validation, each fold is one run with the same settings except `fold`. Its metrics hold the pixel counts of
the validation, so that `fold_overlaps` can pool the folds exactly.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.evaluation.metrics import Overlap, pooled
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.training.augment import FLIPS, SYMMETRIES, Augmentation, apply_symmetry, colour_jitter
from airloc.training.data import Crops, DataConfig, load_atlas, validation_areas
from airloc.training.learner import Learner
from airloc.training.loop import SCHEDULES, BestWeights, Keep, OnStep, Schedule, UpdateLoop
from airloc.training.runs import CONFIG, METRICS, PositiveFloat, PositiveInt, Probability, Run, check_settings
from airloc.vision.embedder import Segmenter, standardise

GRID = Grid()


@dataclass(frozen=True)
class SegmenterConfig:
    """Settings of the training of the segmentation unit."""

    data: DataConfig = field(default_factory=DataConfig)
    """Training and validation images; images without building masks are skipped."""
    steps: PositiveInt = 20_000
    """Number of updates."""
    batch: PositiveInt = 128
    """Patches per update."""
    learning_rate: PositiveFloat = 1e-4
    """Highest learning rate of Adam."""
    schedule: Schedule = "cosine"
    """The learning rate falls along a cosine, or is constant."""
    keep: Keep = "last"
    """Keep the last weights, or train until convergence and keep those with the highest IoU in validation."""
    building_weight: PositiveFloat = 3.0
    """Weight of building pixels in the loss; others have weight 1."""
    crops: Crops = "random"
    """Patches at any offset and scale of the images, or the cells of the search areas."""
    augmentation: Augmentation = "full"
    """All symmetries and colour jitter, or flips alone."""
    jitter: Probability = 0.8
    """Strength of colour jitter, 0 to 1."""
    unet: Literal["light", "paper"] = "light"
    """Form of the network; see `airloc.vision.embedder.Layers`."""
    validate_every: PositiveInt = 2000
    """Updates between validations; each validation saves the state."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)


def train_segmenter(folder: Path, config: SegmenterConfig, segmenter: Segmenter, *, on_step: OnStep) -> Segmenter:
    """Train the segmentation unit in a run folder; a finished run is only loaded."""
    if next(segmenter.parameters()).device.type == "cpu":
        segmenter.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # three quarters of the time
    learner = Learner(segmenter, config.learning_rate)
    with Run.open(folder, config) as run:
        if run.state:
            learner.load_state_dict(run.state["learner"])
        if run.step + 1 < config.steps and not (run.state or {}).get("done"):
            _train(run, config, segmenter, learner, on_step)
    return segmenter.eval()


def _train(
    run: Run,
    config: SegmenterConfig,
    segmenter: Segmenter,
    learner: Learner,
    on_step: OnStep,
) -> None:
    """Run the training loop from the step of the run."""
    device = next(segmenter.parameters()).device
    torch.manual_seed(config.seed)
    atlas = load_atlas(config.data, GRID.cell, device, masks=True, crops=config.crops)
    step_px = GRID.pitch if config.crops == "grid" else 1
    symmetries, jitter = (SYMMETRIES, config.jitter) if config.augmentation == "full" else (FLIPS, 0.0)
    validation = [area for area in validation_areas(config.data, GRID) if area.mask is not None]
    building_weight = torch.tensor(config.building_weight, device=device)
    segmenter.train()

    def update() -> torch.Tensor:
        # Crop and augment patches.
        origins = atlas.sample(config.batch, GRID.cell, step_px)
        patches = atlas.crop(*origins, GRID.cell).permute(0, 3, 1, 2).float() / 255
        patches = apply_symmetry(patches, torch.randint(symmetries, (config.batch,), device=device))
        rgb = standardise(colour_jitter(patches[:, None, :3], jitter)[:, 0])
        mask = (patches[:, 3:] > 0.5).float()
        # Loss and step.
        loss = binary_cross_entropy_with_logits(segmenter(rgb), mask, pos_weight=building_weight)
        learner.step(loss)
        return loss.detach()[None]

    best = BestWeights(segmenter)
    loop = UpdateLoop(run, config, learner, learner.capture(update), metrics=1, schedule=SCHEDULES[config.schedule])
    if run.state:
        best.load_state_dict(run.state["best"])
    for step, (loss,), validates in loop:
        # Validate, log and save.
        metrics: dict[str, float] = {"loss": loss}
        if validates:
            if (match := overlap(segmenter, validation, device)) is not None:
                metrics |= {"iou": match.iou, "f1": match.f1, **match._asdict()}
                if config.keep == "best":
                    best.offer(match.iou)
            run.log(step, **metrics)
        done = best.converged or step + 1 == config.steps
        if done:
            best.restore()
        run.save_state(step, {**loop.state(), "best": best.state_dict(), "done": done})
        if validates:
            on_step(step + 1, metrics)
        if done:
            return


@torch.no_grad()
def overlap(segmenter: Segmenter, areas: Sequence[SearchArea], device: torch.device) -> Overlap | None:
    """Count the pixels of the building class over all cells of areas with masks; None if there are no areas."""
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
        predicted = segmenter(standardise(patches))[:, 0] > 0
        cases = (predicted & truth, predicted & ~truth, ~predicted & truth)
        counts.append(Overlap(*(int(case.sum()) for case in cases)))
    segmenter.train(was_training)
    return pooled(counts)


def fold_overlaps(folders: Sequence[Path]) -> dict[int, Overlap]:
    """Read the last pixel counts of the runs of a cross-validation, by fold; the runs are of the segmentation unit.

    Raises:
        AirlocError: If a folder is not such a run or has no metrics yet, or the runs are not the folds of one
            cross-validation.
    """
    found: dict[int, Overlap] = {}
    first: dict[str, Any] = {}
    for folder in folders:
        settings = _fold_settings(folder)
        fold = settings["data"].pop("fold")
        first = first or settings
        if settings != first or fold in found:
            problem = f"{str(folder)!r} is not another fold of the run in {str(folders[0])!r}"
            raise AirlocError(problem, "Give one run for each fold, trained with the same settings")
        found[fold] = _last_counts(folder / METRICS)
    folds = first["data"]["folds"] if first else 1
    if missing := sorted(set(range(folds)) - set(found)):
        raise AirlocError(f"Fold {missing[0]} is missing", f"Train it with --fold {missing[0]}, and give its run too")
    return dict(sorted(found.items()))


def _fold_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of a run of the segmentation unit with a fold held out."""
    try:
        content = json.loads((folder / CONFIG).read_bytes())
        settings: dict[str, Any] = content["settings"]
        valid = content["kind"] == "SegmenterConfig" and settings["data"]["fold"] is not None
    except (OSError, ValueError, LookupError, TypeError):
        valid = False
    if not valid:
        problem = f"{str(folder)!r} is not a run of the segmentation unit with a fold held out"
        raise AirlocError(problem, "Train one with 'airloc train segmenter --fold 0' and give its folder")
    return settings


def _last_counts(path: Path) -> Overlap:
    try:
        last = json.loads(path.read_bytes().splitlines()[-1])
        return Overlap(last["tp"], last["fp"], last["fn"])
    except (OSError, ValueError, LookupError, TypeError):
        problem = f"{str(path)!r} has no pixel counts of a validation"
        raise AirlocError(problem, "Finish the run, with data whose masked images are held out") from None
