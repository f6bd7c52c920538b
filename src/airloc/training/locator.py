"""Training of the locator's network: features that agree where a goal lies in a photo, on any day.

An update draws photos and goals, one goal for each photo, and correlates all goals with all photos at all shifts, as
the locator does. The loss is the sum of two:

1. Contrast (InfoNCE, arXiv 1807.03748): given a goal, in which photo and at which shift does it lie? And given a photo,
   which goal lies in it, and where? Every other shift of every photo is a negative.
2. Verification: given an aligned pair, is it the same place? Positives are the true alignments; negatives are the best
   alignments with the photos that agree most with a goal and do not show it, and wrong alignments with its own photo.

Photos of one place may show the same ground, so that pairs of them are left out, but for the two photos of one crop:
they lie side by side, and each is a negative of the other's goal.

`train_locator` writes two folders:

    FOLDER/network    the run of the network
    FOLDER/locator    the checkpoint of the locator

Legend: B photos and goals, D features, T = 18 side of a goal's features, P = 24 side of a photo's, R = P + 1 shifts in
each direction, K hard negatives of a goal.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, pad

from airloc.agents.checkpoint import model_card
from airloc.agents.pretrained import MAX_WIDTH, save_locator
from airloc.errors import AirlocError
from airloc.training.atlas import CropSampler, Scales
from airloc.training.data import DataConfig, PairConfig, dataset_names, load_imagery, load_pairs, terms
from airloc.training.learner import Learner, Prefetcher, mixed_precision
from airloc.training.locator_batches import CROP, PHOTO, LocatorAugmentation, LocatorBatch, sample_batch
from airloc.training.loop import OnStage, OnStep, UpdateLoop
from airloc.training.runs import Bounds, NonNegativeFloat, PositiveFloat, PositiveInt, Run, check_settings
from airloc.vision.feature_map import STRIDE
from airloc.vision.locator import CANVAS
from airloc.vision.locator_network import LocatorNetwork

SCALES = Scales(cell_widths=(0.3, 1.5), resolutions=(0.4, 1.2))
GOAL, PLACES = CANVAS // STRIDE, PHOTO // STRIDE
SPECTRUM = 48
"""Side of the spectra: at least photo and goal together."""
NEAR = 1.0
"""Largest distance of a right shift from the true one, in features."""
OVERLAP = 0.4
"""Smallest fraction of a goal that a shift must show."""
NEVER = -1e4
VALIDATION_BATCHES = 8


@dataclass(frozen=True)
class LocatorConfig:
    """Settings of the training of the locator's network."""

    data: DataConfig = field(
        default_factory=lambda: DataConfig(synthetic=0, datasets=("masa", "austin"), weights=(5.0, 1.0))
    )
    """Training images."""
    pairs: PairConfig = field(default_factory=lambda: PairConfig(pairs_share=0.75))
    """Pairs of images of the same place on two days."""
    augmentation: LocatorAugmentation = field(default_factory=LocatorAugmentation)
    """Differences between goals and photos."""
    validation: str = ""
    """Dataset with image pairs to validate on: a folder, or the name of a dataset under the root."""
    validation_only: str = "*"
    """Shell pattern of the image names of these pairs."""
    width: Annotated[int, Bounds(low=1, high=MAX_WIDTH)] = 48
    """Channels of the first layer."""
    channels: Annotated[int, Bounds(low=1, high=MAX_WIDTH)] = 32
    """Number of features."""
    verifier: Annotated[tuple[int, int], Bounds(low=1, high=MAX_WIDTH)] = (64, 3)
    """Channels and convolutions of the verifier."""
    steps: PositiveInt = 8000
    """Number of updates."""
    batch: Annotated[int, Bounds(low=4)] = 128
    """Photos per update, an even number."""
    hard: PositiveInt = 4
    """Negatives of the verification per goal."""
    temperature: PositiveFloat = 24.0
    """Factor of the scores in the contrast."""
    verification_weight: NonNegativeFloat = 1.0
    """Weight of the loss of the verification."""
    learning_rate: PositiveFloat = 1.5e-3
    """Highest learning rate of AdamW."""
    weight_decay: NonNegativeFloat = 0.02
    """Decoupled weight decay of AdamW."""
    validate_every: PositiveInt = 1000
    """Updates between validations; each validation saves the state."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.batch % 2:
            raise AirlocError(
                f"A batch has {self.batch} photos, and crops have two each", "Give an even number of --batch"
            )


class Scores(NamedTuple):
    """Agreement of all goals with all photos."""

    scores: torch.Tensor
    """Score at every shift, (B goals, B photos, R, R); `NEVER` where too little of the goal is shown."""
    photos: torch.Tensor
    """Features of the photos, padded by half a goal, (B, D, P + T, P + T)."""
    photos_seen: torch.Tensor
    goals: torch.Tensor
    """Features of the goals, (B, D, T, T)."""
    goals_seen: torch.Tensor


def train_locator(
    folder: Path,
    config: LocatorConfig,
    *,
    device: torch.device,
    command: str,
    on_step: OnStage,
) -> None:
    """Train the network and write the checkpoint of the locator; a stopped training resumes.

    The model card quotes `command`, the command line. Every validation calls `on_step` with "locator", the number of
    updates and the metrics.
    """
    all_terms = terms(config.data, config.pairs)  # also checks that the data is there, before anything is written
    torch.manual_seed(config.seed)
    network = LocatorNetwork(config.width, config.channels, config.verifier).to(device)
    learner = Learner(network, config.learning_rate, config.weight_decay)
    with Run.open(folder / "network", config) as run:
        if run.state:
            learner.load_state_dict(run.state["learner"])
        if run.step + 1 < config.steps:
            _train(run, config, network, learner, partial(on_step, "locator"))
        metrics = run.state["metrics"] if run.state else {}
    settings = {"terms": all_terms} if all_terms else {}
    save_locator(folder / "locator", network.cpu().eval(), settings, _card(config, metrics, command, all_terms))


def _train(
    run: Run,
    config: LocatorConfig,
    network: LocatorNetwork,
    learner: Learner,
    on_step: OnStep,
) -> None:
    """Run the training loop from the step of the run."""
    device = next(network.parameters()).device
    torch.manual_seed(config.seed)
    crops = CropSampler(load_imagery(config.data, config.pairs, device, SCALES), CROP, 0)
    validation = _validation_batches(config, device)
    network.train()
    # Photos and goals are drawn ahead of the update that learns from them.
    prefetcher = Prefetcher([partial(sample_batch, crops, config.batch, config.augmentation)], device)

    def update() -> torch.Tensor:
        with prefetcher.batches() as (batch,):
            # Correlate all goals with all photos.
            table = correlate(network, batch)
            # Losses.
            contrast, located = contrast_loss(table.scores, batch, config.temperature)
            verification, correct = verification_loss(network, table, batch, config.hard)
            # Step.
            learner.step(contrast + config.verification_weight * verification)
        return torch.stack([contrast.detach(), located, verification.detach(), correct])

    loop = UpdateLoop(run, config, learner, learner.capture(update), metrics=4)
    metrics: dict[str, float] = {}
    if run.state:
        prefetcher.load_state(run.state["batches"])
        metrics = run.state["metrics"]
    for step, means, validates in loop:
        # Validate, log and save.
        if validates:
            names = ("contrast_loss", "located", "verification_loss", "verified")
            metrics = dict(zip(names, means, strict=True)) | validate(network, validation, config.hard)
            run.log(step, **metrics)
        run.save_state(step, {**loop.state(), "batches": prefetcher.state(), "metrics": metrics})
        if validates:
            on_step(step + 1, metrics)


def correlate(network: LocatorNetwork, batch: LocatorBatch) -> Scores:
    """Compute the normalised cross-correlation of all goals with all photos at all shifts, as the locator does."""
    device = batch.photos.device
    with mixed_precision(device):
        photos, photos_seen = network.encode(batch.photos, batch.photos_seen)
        goals, goals_seen = network.encode(batch.goals, batch.goals_seen)
    photos, photos_seen = (pad(part, (GOAL // 2,) * 4) for part in (photos, photos_seen))

    def spectrum(maps: torch.Tensor) -> torch.Tensor:
        transformed: torch.Tensor = torch.fft.rfft2(maps, s=(SPECTRUM, SPECTRUM))
        return transformed

    def products(photo: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        both = torch.einsum("pdij,gdij->gpij", spectrum(photo), spectrum(goal).conj())
        maps: torch.Tensor = torch.fft.irfft2(both, s=(SPECTRUM, SPECTRUM))
        return maps[..., : PLACES + 1, : PLACES + 1]

    energy = products(photos.square().sum(dim=1, keepdim=True), goals_seen)
    energy = energy.clamp(min=0) * products(photos_seen, goals.square().sum(dim=1, keepdim=True)).clamp(min=0)
    score = products(photos, goals) / energy.clamp(min=1e-3).sqrt()
    with torch.no_grad():
        shown = products(photos_seen, goals_seen) / goals_seen.sum(dim=(1, 2, 3)).clamp(min=1)[:, None, None, None]
    score = score.masked_fill(shown < OVERLAP, NEVER)
    return Scores(score, photos, photos_seen, goals, goals_seen)


def contrast_loss(scores: torch.Tensor, batch: LocatorBatch, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the contrast of goals (B goals, B photos, R, R), and the share that is located among all photos."""
    number = torch.arange(len(scores), device=scores.device)
    logits = (temperature * scores).masked_fill(_ambiguous(batch)[..., None, None], temperature * NEVER)
    right = _right_shifts(batch)
    own = logits[number, number]  # (B, R, R)
    usable = (own.masked_fill(~right, NEVER * temperature).flatten(1).amax(dim=1) > NEVER).float()
    positive = own.masked_fill(~right, NEVER * temperature).flatten(1).logsumexp(dim=1)
    maps = logits.flatten(2).logsumexp(dim=2)  # (B goals, B photos)
    loss = maps.logsumexp(dim=1) + 0.5 * maps.logsumexp(dim=0) - 1.5 * positive
    best = own.flatten(1).argmax(dim=1)
    found = right.flatten(1).gather(1, best[:, None])[:, 0]
    best_photo = logits.flatten(2).amax(dim=2).argmax(dim=1) == number
    total = usable.sum().clamp(min=1)
    return (loss * usable).sum() / total, ((found & best_photo) * usable).sum().detach() / total


def verification_loss(
    network: LocatorNetwork, table: Scores, batch: LocatorBatch, hard: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of the verification, and the share of goals above all their negatives."""
    count, device = len(table.goals), table.goals.device
    number = torch.arange(count, device=device)
    right = _right_shifts(batch)
    scores = table.scores.detach()
    own = scores[number, number].flatten(1)
    # Positives: the best of the right shifts. Negatives: the best wrong one, and the best ones with other photos.
    true_score, true_shift = own.masked_fill(~right.flatten(1), NEVER).max(dim=1)
    false_shift = own.masked_fill(_near_shifts(batch, 3.0).flatten(1), NEVER).argmax(dim=1)
    elsewhere, shifts = scores.flatten(2).max(dim=2)  # (B goals, B photos)
    elsewhere = elsewhere.masked_fill(_ambiguous(batch) | torch.eye(count, dtype=torch.bool, device=device), NEVER)
    others = elsewhere.topk(min(hard, count - 1), dim=1).indices  # (B, K)
    photo = torch.cat([number[:, None], number[:, None], others], dim=1)
    shift = torch.cat([true_shift[:, None], false_shift[:, None], shifts.gather(1, others)], dim=1)
    answer = _verify(network, table, number[:, None].expand_as(photo).flatten(), photo.flatten(), shift.flatten())
    answer = answer.view(photo.shape)
    usable = (true_score > NEVER).float()
    positive = binary_cross_entropy_with_logits(answer[:, 0], torch.ones_like(usable), reduction="none")
    negative = binary_cross_entropy_with_logits(answer[:, 1:], torch.zeros_like(answer[:, 1:]))
    total = usable.sum().clamp(min=1)
    correct = ((answer[:, 0] > answer[:, 1:].amax(dim=1)) * usable).sum().detach() / total
    return (positive * usable).sum() / total + negative, correct


def _verify(
    network: LocatorNetwork, table: Scores, goal: torch.Tensor, photo: torch.Tensor, shift: torch.Tensor
) -> torch.Tensor:
    """Verify goals in photos at shifts, (N,) each."""
    step = torch.arange(GOAL, device=goal.device)
    row = (shift // (PLACES + 1))[:, None] + step
    col = (shift % (PLACES + 1))[:, None] + step

    def window(maps: torch.Tensor) -> torch.Tensor:
        cut = maps.permute(0, 2, 3, 1)[photo[:, None, None], row[:, :, None], col[:, None]]
        return cut.permute(0, 3, 1, 2)

    parts = table.goals[goal], table.goals_seen[goal], window(table.photos), window(table.photos_seen)
    with mixed_precision(goal.device):
        return network.verify(*parts).float()


def _ambiguous(batch: LocatorBatch) -> torch.Tensor:
    """Return the pairs of goals and photos of one place but of different crops, which may show the same, (B, B)."""
    return (batch.place[:, None] == batch.place) & (batch.crop[:, None] != batch.crop)


def _near_shifts(batch: LocatorBatch, distance: float) -> torch.Tensor:
    """Return the shifts that are at most a distance in features from the true ones, (B, R, R)."""
    at = batch.offset / STRIDE + PLACES / 2
    step = torch.arange(PLACES + 1, device=at.device)
    rows, cols = ((step - at[:, axis, None]).abs() <= distance for axis in (0, 1))
    return rows[:, :, None] & cols[:, None]


def _right_shifts(batch: LocatorBatch) -> torch.Tensor:
    """Return the right shifts, (B, R, R)."""
    return _near_shifts(batch, NEAR)


def _validation_batches(config: LocatorConfig, device: torch.device) -> list[LocatorBatch]:
    """Draw photos and goals to validate on; none if the config names no pairs for it."""
    if not config.validation:
        return []
    pairs = PairConfig((config.validation,), (config.validation_only,))
    crops = CropSampler(load_pairs(pairs, config.data.root, device, SCALES), CROP, 0)
    return [sample_batch(crops, config.batch, config.augmentation) for _ in range(VALIDATION_BATCHES)]


@torch.no_grad()
def validate(network: LocatorNetwork, batches: list[LocatorBatch], hard: int) -> dict[str, float]:
    """Return the share of goals that are located among all photos, and verified above all negatives."""
    if not batches:
        return {}
    located, verified = [], []
    for batch in batches:
        table = correlate(network, batch)
        located.append(float(contrast_loss(table.scores, batch, 1.0)[1]))
        verified.append(float(verification_loss(network, table, batch, hard)[1]))
    return {"val_located": sum(located) / len(located), "val_verified": sum(verified) / len(verified)}


def _card(config: LocatorConfig, metrics: dict[str, float], command: str, all_terms: str) -> str:
    """Return the model card, in Markdown."""
    paired = ", ".join(Path(name).name for name in config.pairs.pairs) or "no dataset"
    scores = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
    about = [
        "What: the network of the locator, which finds a goal in a photo.",
        f"Data: datasets {dataset_names(config.data)}; {config.data.synthetic} procedural areas; pairs of {paired}; "
        f"{config.pairs.disaster_pairs} procedural pairs.",
    ]
    return model_card("locator", about, all_terms, command, f"Last metrics: {scores}.")
