"""Train the text network from areas whose cells have captions.

Every update takes some areas, encodes all their cells, and draws cells as goals with one of their captions each. The
losses are those of the relation network, with a caption in the place of the goal's patch:

1. The cell of the goal among all cells of the area, given each single glimpse. The other cells are negatives of the
   same area: the same landscape, light and style of building.
2. The cell of the goal among the unvisited cells, given the sum of the logits of a random walk. It makes the sum
   calibrated, because errors of glimpses of one area are correlated.
3. Contrastive: the patch of each caption among all patches of the update, and the caption of each goal's patch among
   all captions. Images with captions, if there are any, have this loss alone.
4. Facts: what covers each zone of each patch, and what each caption states (`airloc.training.text_facts`).

After the last update the logits of each distance are scaled so that their sum over a walk is calibrated.

Of some captions only the whole sentence, all clauses or some clauses count, so that each suffices.

Legend: A areas, C = V cells, G goals of an area, R rows of a caption, D numbers of a row, M images, S side of a patch.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from airloc.agents.checkpoint import model_card, save_checkpoint, stored_as
from airloc.agents.pretrained import load_text
from airloc.training.augment import SYMMETRIES, apply_symmetry, change_appearance, random_views
from airloc.training.learner import Learner, mixed_precision
from airloc.training.loop import OnStage, OnStep, UpdateLoop
from airloc.training.photos import cut_cells
from airloc.training.relation_batches import random_walks
from airloc.training.relation_losses import logits_by_cell, pair_loss, walk_loss
from airloc.training.runs import (
    Bounds,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Run,
    check_settings,
    restore_rng,
    rng_state,
)
from airloc.training.text_data import (
    FIRST,
    GRID,
    CaptionedAreas,
    CaptionedImages,
    load_captioned_areas,
    load_captioned_images,
    read_masked_images,
)
from airloc.training.text_facts import FactHeads
from airloc.vision.embedder import standardise
from airloc.vision.offsets import RADIUS
from airloc.vision.text import TextNetwork

WALKS, WALK_LENGTH = 4096, 10
METRICS = ("pair_loss", "walk_loss", "ground_loss", "stated_loss", "accuracy")
"""Metrics of an update."""
VALIDATION_AREAS = 60
"""Procedural areas to validate on, with seeds before those of training."""
CALIBRATION_AREAS, CALIBRATION_STEPS = 110, 60
"""Areas that the logits are calibrated on, and steps of the optimiser."""
DROPPED = 0.15
"""Share of the captions of which only the whole sentence counts, and share of which only the clauses count."""
SHORTENED, DROPPED_CLAUSES = 0.35, 0.3
"""Share of the captions of which only some clauses count, and share of these clauses that are left out."""


@dataclass(frozen=True)
class TextConfig:
    """Settings of the training of the text network."""

    masks: Path | None = None
    """Folder of a dataset with building masks and images of 1 m per pixel, such as masa; its split `train` is used."""
    unmasked: tuple[Path, ...] = ()
    """Folders of datasets whose images without masks are used too, with the building masks that
    the segmentation unit of the package predicts."""
    captioned_images: Path | None = None
    """Folder with images and captions.csv, such as rsicd, to train on too."""
    captioned_terms: str = ""
    """Terms of these images, for the card."""
    init_from: str = ""
    """Start with these weights, text or a checkpoint folder, instead of random weights."""
    procedural: NonNegativeInt = 6000
    """Number of procedural scenes."""
    variants: Annotated[int, Bounds(low=1, high=8)] = 3
    """Areas of every scene, turned and flipped, each with its own captions."""
    masked: NonNegativeInt = 1500
    """Number of areas cropped from the images with masks."""
    captions: PositiveInt = 3
    """Captions of every cell."""
    width: Annotated[int, Bounds(low=8, high=512)] = 40
    """Channels of the first layers."""
    features: PositiveInt = 192
    """Numbers of an encoding."""
    steps: PositiveInt = 6000
    """Number of updates."""
    areas: PositiveInt = 64
    """Areas per update."""
    goals: PositiveInt = 16
    """Goals per area."""
    images: PositiveInt = 256
    """Images with captions per update, if there are any."""
    contrastive_weight: NonNegativeFloat = 0.25
    """Weight of the contrastive loss of cells."""
    ground_weight: NonNegativeFloat = 0.5
    """Weight of the loss of what covers the patches."""
    stated_weight: NonNegativeFloat = 0.1
    """Weight of the loss of what the captions state."""
    image_weight: NonNegativeFloat = 0.5
    """Weight of the contrastive loss of images with captions."""
    learning_rate: PositiveFloat = 1e-3
    """Highest learning rate of AdamW."""
    weight_decay: NonNegativeFloat = 0.05
    """Decoupled weight decay of AdamW."""
    validate_every: PositiveInt = 1000
    """Updates between validations; each validation saves the state."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)


class TextData(NamedTuple):
    """Everything that a training reads."""

    areas: CaptionedAreas
    validation: CaptionedAreas
    images: CaptionedImages | None
    image_validation: CaptionedImages | None


def train_text(
    folder: Path,
    config: TextConfig,
    *,
    device: torch.device,
    command: str,
    on_step: OnStage,
) -> None:
    """Train a text network; its checkpoint is the folder `agent` in the run folder.

    `on_step` is called after every validation with "text", the number of updates and the metrics.
    """
    torch.manual_seed(config.seed)
    network = TextNetwork(config.width, config.features)
    if config.init_from:
        network.load_state_dict(load_text(config.init_from).state_dict())
    network.to(device)
    data = load_text_data(config, device)
    metrics = fit_text(folder / "text", config, network, data, partial(on_step, "text"))
    save_text(folder / "agent", network, config, metrics, command)


def load_text_data(config: TextConfig, device: torch.device) -> TextData:
    """Read and generate the training and validation data."""
    masked = read_masked_images(config.masks, config.unmasked)
    areas = load_captioned_areas(config.procedural, config.masked, masked, config.captions, config.variants, device)
    first = FIRST - VALIDATION_AREAS
    validation = load_captioned_areas(VALIDATION_AREAS, 0, (), 1, 1, device, first=first)
    if config.captioned_images is None:
        return TextData(areas, validation, None, None)
    images = (load_captioned_images(config.captioned_images, split, device) for split in ("train", "val"))
    return TextData(areas, validation, *images)


def fit_text(
    folder: Path,
    config: TextConfig,
    network: TextNetwork,
    data: TextData,
    on_step: OnStep,
) -> dict[str, float]:
    """Train a network in a run folder and return its last metrics; a finished run is only loaded."""
    device = data.areas.images.device
    torch.manual_seed(config.seed)
    heads = FactHeads(network).to(device)
    learner = Learner(nn.ModuleList([network, heads]), config.learning_rate, config.weight_decay)
    walks = random_walks(GRID, WALKS, WALK_LENGTH, device)
    with Run.open(folder, config) as run:
        if run.state:
            learner.load_state_dict(run.state["learner"])
        network.train()

        def update() -> torch.Tensor:
            # Encode and relate cells and captions; losses.
            chosen = torch.randint(len(data.areas.images), (config.areas,), device=device)
            with mixed_precision(device):
                loss, metrics = area_loss(network, heads, data.areas, chosen, config, walks)
                if data.images is not None:
                    loss = loss + config.image_weight * image_loss(network, data.images, config.images)
            # Step.
            learner.step(loss)
            return metrics

        loop = UpdateLoop(run, config, learner, learner.capture(update), metrics=len(METRICS))
        for step, means, validates in loop:
            # Validate, log and save.
            values = dict(zip(METRICS, means, strict=True))
            if validates:
                values |= validate(network, data)
                run.log(step, **values)
            run.save_state(step, loop.state())
            if validates:
                on_step(step + 1, values)
    network.eval()
    calibrate(network, data.areas)
    return validate(network, data)


def calibrate(network: TextNetwork, areas: CaptionedAreas) -> None:
    """Scale the logits of every distance so that their sum over a walk is calibrated, and fold the scales in.

    Training fits single glimpses and walks at once, which makes the logits of distant cells too large for sums.
    """
    device, cells, count = areas.images.device, GRID.count, min(CALIBRATION_AREAS, len(areas.images))
    patch = torch.cat([network.encode(_cells(areas.images[one : one + 1])) for one in range(count)])
    text = network.encode_text(areas.table[areas.captions[:count, :, 0].flatten(0, 1)].float())
    patch, text = (part.detach().view(count, cells, -1) for part in (patch, text))
    with torch.no_grad():
        logits = torch.cat([relate_all(network, patch[one : one + 1], text[one : one + 1]) for one in range(count)])
    every = torch.arange(cells, device=device).expand(count, -1)
    by_cell = logits_by_cell(logits.float(), every, GRID)
    place = torch.tensor(list(GRID.cells()), device=device)
    away = (place[:, None] - place).abs().amax(dim=2)  # (C, C)
    walks = random_walks(GRID, WALKS, WALK_LENGTH, device)
    scale = torch.ones(RADIUS + 1, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([scale], lr=0.05)
    for _ in range(CALIBRATION_STEPS):
        loss, _ = walk_loss(by_cell * scale[away][:, None], every, every, walks)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    steps_from_middle = (torch.arange(2 * RADIUS + 1, device=device) - RADIUS).abs()
    distance = torch.maximum(steps_from_middle[:, None], steps_from_middle).flatten()
    last = network.judge[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(scale[distance][:, None])
        last.bias.mul_(scale[distance])


def _rgb(images: torch.Tensor) -> torch.Tensor:
    """Convert images (A, H, W, 3) uint8 to RGB in [0, 1], (A, 3, H, W)."""
    return images.permute(0, 3, 1, 2).float() / 255


def _cells(images: torch.Tensor) -> torch.Tensor:
    """Cut the cells of areas (A, H, W, 3) uint8, standardised, (A C, 3, S, S)."""
    return standardise(cut_cells(_rgb(images), GRID).flatten(0, 1))


def area_loss(
    network: TextNetwork,
    heads: FactHeads,
    areas: CaptionedAreas,
    chosen: torch.Tensor,
    config: TextConfig,
    walks: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of the areas with the indices `chosen` (A,), and its `METRICS` (5,)."""
    device, cells = areas.images.device, GRID.count
    images = change_appearance(_rgb(areas.images[chosen]))
    goal = torch.rand(len(chosen), cells, device=device).argsort(dim=1)[:, : config.goals]  # (A, G)
    which = torch.randint(areas.captions.shape[2], goal.shape, device=device)
    rows, whole = drop_rows(areas.table[areas.captions[chosen[:, None], goal, which].flatten(0, 1)].float())
    maps, text = network.encode_maps(standardise(cut_cells(images, GRID).flatten(0, 1))), network.encode_text(rows)
    known = areas.known[chosen].repeat_interleave(cells, dim=0)
    ground = heads.ground_loss(maps, areas.shares[chosen].flatten(0, 1), known, areas.buildings[chosen].flatten(0, 1))
    stated = heads.stated_loss(text, areas.stated[chosen[:, None], goal, which].flatten(0, 1), whole)
    patch = network.summarise(maps)
    logits = relate_all(network, patch.view(len(chosen), cells, -1), text.view(*goal.shape, -1)).float()
    observed = torch.arange(cells, device=device).expand(len(chosen), -1)
    by_cell = logits_by_cell(logits, observed, GRID)
    pair = pair_loss(by_cell, goal)
    walk, accuracy = walk_loss(by_cell, goal, observed, walks)
    index = (torch.arange(len(chosen), device=device)[:, None] * cells + goal).flatten()
    contrast = contrastive_loss(network, patch, text, index)
    loss = pair + walk + config.contrastive_weight * contrast
    loss = loss + config.ground_weight * ground + config.stated_weight * stated
    return loss, torch.stack([pair, walk, ground, stated, accuracy]).detach()


def image_loss(network: TextNetwork, images: CaptionedImages, count: int) -> torch.Tensor:
    """Return the contrastive loss of some images with captions, turned, cropped and flipped."""
    device = images.images.device
    chosen = torch.rand(len(images.images), device=device).argsort()[:count]
    pixels = random_views(change_appearance(_rgb(images.images[chosen]), 0.7))
    which = torch.randint(images.captions.shape[1], (len(chosen),), device=device)
    rows, _ = drop_rows(images.table[images.captions[chosen, which]].float())
    index = torch.arange(len(chosen), device=device)
    return contrastive_loss(network, network.encode(standardise(pixels)), network.encode_text(rows), index)


def contrastive_loss(
    network: TextNetwork, patch: torch.Tensor, text: torch.Tensor, index: torch.Tensor
) -> torch.Tensor:
    """Return the loss of the patch of every caption among all patches, and of the caption among all captions.

    Args:
        network: The network.
        patch: Encoded patches, (N, F).
        text: Encoded captions, (B, F).
        index: The patch of every caption, (B,).
    """
    similar = network.embed_text(text).float() @ network.embed_patch(patch).float().T * network.log_scale.exp()
    own = torch.arange(len(text), device=text.device)
    return (cross_entropy(similar, index) + cross_entropy(similar[:, index].T, own)) / 2


def relate_all(network: TextNetwork, patch: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
    """Relate all cells (A, V, F) to all captions (A, G, F) of the same area: logits (A, V, G, O)."""
    areas, cells, goals = len(patch), patch.shape[1], text.shape[1]
    pairs = (
        patch[:, :, None].expand(-1, -1, goals, -1).flatten(0, 2),
        text[:, None].expand(-1, cells, -1, -1).flatten(0, 2),
    )
    return network.relate(*pairs).view(areas, cells, goals, -1)


def drop_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Drop the whole sentence of some captions (B, R, D), the clauses of others, and single clauses of yet others.

    Returns:
        The rows that are left, at least one of each caption, and which captions still say all, bool (B,).
    """
    drawn = torch.rand(len(rows), 1, device=rows.device)
    there = (rows != 0).any(dim=2)
    several = there[:, 1:].any(dim=1, keepdim=True)
    clauses_only, shortened = several & (drawn < DROPPED + SHORTENED), several & (drawn < SHORTENED)
    score = torch.rand(there.shape, device=rows.device).masked_fill(~there, -1.0)[:, 1:]
    some = (score > DROPPED_CLAUSES) | (score == score.amax(dim=1, keepdim=True))  # at least one clause stays
    clauses = (some | ~shortened) & (drawn < 1 - DROPPED)
    keep = torch.cat([~clauses_only, clauses], dim=1)
    return rows * keep[..., None], ~shortened[:, 0]


@torch.no_grad()
def validate(network: TextNetwork, data: TextData) -> dict[str, float]:
    """Return the loss of single glimpses and of walks on the validation areas, and the recall of images."""
    areas = data.validation
    device, count = areas.images.device, len(areas.images)
    was_training, state = network.training, rng_state(device)
    network.eval()
    torch.manual_seed(0)
    patch = network.encode(_cells(areas.images))
    text = network.encode_text(areas.table[areas.captions[:, :, 0].flatten(0, 1)].float())
    logits = relate_all(network, patch.view(count, GRID.count, -1), text.view(count, GRID.count, -1)).float()
    cells = torch.arange(GRID.count, device=device).expand(count, -1)
    by_cell = logits_by_cell(logits, cells, GRID)
    walks = random_walks(GRID, WALKS, WALK_LENGTH, device)
    walk, accuracy = walk_loss(by_cell, cells, cells, walks)
    metrics = {"val_pair_loss": float(pair_loss(by_cell, cells)), "val_walk_loss": float(walk)}
    metrics["val_accuracy"] = float(accuracy)
    if data.image_validation is not None:
        metrics |= recall(network, data.image_validation)
    restore_rng(state)
    network.train(was_training)
    return metrics


@torch.no_grad()
def recall(network: TextNetwork, images: CaptionedImages) -> dict[str, float]:
    """Return the recall at 1, 5 and 10: an image by one of its captions, and one of its captions by the image.

    The embedding of an image is the mean over its eight turns and flips.
    """
    pixels = standardise(_rgb(images.images))
    turned = (apply_symmetry(pixels, torch.full_like(images.captions[:, 0, 0], one)) for one in range(SYMMETRIES))
    patch = normalize(torch.stack([network.embed_patch(network.encode(one)) for one in turned]).mean(dim=0), dim=1)
    count, captions = images.captions.shape[:2]
    text = network.embed_text(network.encode_text(images.table[images.captions.flatten(0, 1)].float()))
    similar = text @ patch.T  # (M K, M)
    own = torch.arange(count, device=patch.device).repeat_interleave(captions)
    to_image = (similar > similar.gather(1, own[:, None])).sum(dim=1)
    best = similar.T.view(count, count, captions)[torch.arange(count), torch.arange(count)].amax(dim=1)
    to_text = (best[:, None] < similar.T).sum(dim=1)
    ranks = {"text_to_image": to_image, "image_to_text": to_text}
    return {f"{name}_{k}": float((rank < k).float().mean()) for name, rank in ranks.items() for k in (1, 5, 10)}


def save_text(folder: Path, network: TextNetwork, config: TextConfig, metrics: dict[str, float], command: str) -> None:
    """Save the checkpoint of a text network, in half precision."""
    terms = config.captioned_terms
    settings = {
        "kind": "text",
        "width": config.width,
        "features": config.features,
        **({"terms": terms} if terms else {}),
    }
    save_checkpoint(folder, stored_as(torch.float16, network), settings, text_card(config, metrics, command))


def text_card(config: TextConfig, metrics: dict[str, float], command: str) -> str:
    """Return the model card, in Markdown."""
    masks = f"; {config.masked} crops of the images of {config.masks.name} with building masks" if config.masks else ""
    masks += "".join(f"; images of {folder.name} with predicted building masks" for folder in config.unmasked)
    images = f"; the images and captions of {config.captioned_images.name}" if config.captioned_images else ""
    scores = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
    about = [
        "What: the text network, which relates patches to descriptions in words.",
        f"Data: {config.procedural} procedural scenes with generated captions{masks}{images}.",
    ]
    return model_card("text", about, config.captioned_terms, command, f"On the validation data: {scores}.")
